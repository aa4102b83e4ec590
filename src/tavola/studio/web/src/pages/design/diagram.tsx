// Diagram: entities, the templates of their keys and the indexes these lead to, with findings pinned where they belong.
import { useMemo, useRef, useState } from "preact/hooks";
import type { EntityPicture, LintFinding, IndexPicture, KeyPicture, TablePicture } from "../../generated/api";
import { bytes, colourOf, num } from "../../parts";
import { COLUMNS, family, type Layout, layout, type NodeKind } from "./layout";
import { counted, worst } from "./state";

interface Shown {
  table: TablePicture;
  findings: readonly LintFinding[];
  selected: string;
  onSelect: (id: string) => void;
  onBadge: (id: string) => void;
}

export function Diagram({ table, findings, selected, onSelect, onBadge }: Shown) {
  const drawn = useMemo(() => layout(table), [table]);
  const [pointed, setPointed] = useState<string | null>(null);
  const holder = useRef<HTMLDivElement>(null);
  const names = useMemo(() => new Map(table.entities.map((each) => [each.id, each.name])), [table]);
  const focus = pointed ?? (selected || null);
  const lit = focus ? family(drawn, focus) : null;
  const order = [...drawn.entities, ...drawn.keys, ...drawn.indexes].map((each) => each.node.id);
  const stop = order.includes(selected) ? selected : (order[0] ?? "");
  const pinned = useMemo(() => byNode(findings), [findings]);
  const move = (event: KeyboardEvent) => {
    const from = (event.target as HTMLElement).closest<HTMLElement>("[data-node]")?.dataset["node"];
    const to = from ? next(drawn, from, event.key) : null;
    if (!to) return;
    event.preventDefault();
    holder.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(to)}"]`)?.focus();
  };
  const node = (
    kind: NodeKind,
    id: string,
    top: number,
    height: number,
    label: string,
    children: preact.ComponentChildren,
    colour?: string,
  ) => {
    const mine = pinned.get(id) ?? [];
    const [left, width] = COLUMNS[kind];
    return (
      <li
        key={id}
        class={`design-node ${kind} ${lit && !lit.has(id) ? "dim" : ""} ${focus === id ? "focus" : ""}`}
        style={{
          top: `${top}px`,
          height: `${height}px`,
          left: `${left}%`,
          width: `${width}%`,
          ...(colour ? { "--entity": colour } : {}),
        }}
      >
        <button
          type="button"
          data-node={id}
          class="design-node-button"
          tabIndex={id === stop ? 0 : -1}
          aria-pressed={selected === id}
          aria-label={`${label}${mine.length ? `; ${counted(mine)}` : ""}`}
          onClick={() => onSelect(id)}
          onMouseEnter={() => setPointed(id)}
          onMouseLeave={() => setPointed(null)}
          onFocus={() => setPointed(id)}
          onBlur={() => setPointed(null)}
        >
          {children}
        </button>
        {mine.length ? <NodeBadge findings={mine} label={label} onOpen={() => onBadge(id)} /> : null}
      </li>
    );
  };
  return (
    <div class="design-diagram" ref={holder} onKeyDown={move}>
      <div class="design-heads" aria-hidden="true">
        <span>Entities</span>
        <span>Keys</span>
        <span>Table and indexes</span>
      </div>
      <div class="design-drawing" style={{ height: `${drawn.height}px` }}>
        <svg class="design-lines" viewBox={`0 0 100 ${drawn.height}`} preserveAspectRatio="none" aria-hidden="true">
          {drawn.links.map((link) => (
            <path
              key={link.id}
              d={link.path}
              class={
                lit
                  ? lit.has(link.key) && (focus === link.entity || focus === link.key || focus === link.index)
                    ? "lit"
                    : "dim"
                  : ""
              }
              style={{ stroke: colourOf(names.get(link.entity) ?? "") }}
            />
          ))}
        </svg>
        <ul class="design-column" aria-label="Entities">
          {drawn.entities.map(({ node: each, top, height }) =>
            node("entity", each.id, top, height, entityLabel(each), <EntityBox entity={each} />, colourOf(each.name)),
          )}
        </ul>
        <ul class="design-column" aria-label="Keys">
          {drawn.keys.map(({ node: each, top, height }) => {
            const owner = names.get(each.entity) ?? "";
            return node(
              "key",
              each.id,
              top,
              height,
              keyLabel(each, owner, table),
              <KeyBox of={each} owner={owner} table={table} />,
              colourOf(owner),
            );
          })}
        </ul>
        <ul class="design-column" aria-label="Table and indexes">
          {drawn.indexes.map(({ node: each, top, height }) =>
            node("index", each.id, top, height, indexLabel(each), <IndexBox index={each} />),
          )}
        </ul>
      </div>
    </div>
  );
}

function byNode(findings: readonly LintFinding[]): ReadonlyMap<string, LintFinding[]> {
  const found = new Map<string, LintFinding[]>();
  for (const each of findings) found.set(each.node, [...(found.get(each.node) ?? []), each]);
  return found;
}

/** The badge of a node: how many findings, in the colour of the worst. */
export function NodeBadge({
  findings,
  label,
  onOpen,
}: {
  findings: readonly LintFinding[];
  label: string;
  onOpen: () => void;
}) {
  return (
    <button
      type="button"
      class={`design-badge ${worst(findings) ?? ""}`}
      aria-label={`${counted(findings)}: ${label}`}
      title={counted(findings)}
      onClick={onOpen}
    >
      {findings.length}
    </button>
  );
}

/** Return the node that an arrow key leads to: up and down in a column, left and right along a line. */
function next(drawn: Layout, from: string, key: string): string | null {
  const columns = [drawn.entities, drawn.keys, drawn.indexes].map((column) => column.map((each) => each.node.id));
  const at = columns.findIndex((column) => column.includes(from));
  const column = columns[at];
  if (!column) return null;
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (step) return column[column.indexOf(from) + step] ?? null;
  if (key === "Home") return column[0] ?? null;
  if (key === "End") return column.at(-1) ?? null;
  const side = { ArrowRight: 1, ArrowLeft: -1 }[key];
  const other = side ? columns[at + side] : undefined;
  if (!other) return null;
  const kin = family(drawn, from);
  return other.find((each) => kin.has(each)) ?? null;
}

function EntityBox({ entity }: { entity: EntityPicture }) {
  return (
    <>
      <strong class="cut">{entity.name}</strong>
      <span class="design-beside cut">
        {entity.fields.length} fields · {bytes(entity.item_bytes)}
        {entity.items === null ? "" : ` · ${num(entity.items)} items`}
      </span>
    </>
  );
}

function KeyBox({ of, owner, table }: { of: KeyPicture; owner: string; table: TablePicture }) {
  const more = [
    of.members.length ? `where ${of.members.join(" and ")}` : of.sparse ? "sparse" : "",
    of.shards ? `shards ${of.shards}` : "",
  ].filter(Boolean);
  const index = table.indexes.find((each) => each.id === of.index);
  return (
    <>
      <span class="design-key-of">
        {owner} · {index?.kind === "table" ? "table" : (index?.name ?? "")}
      </span>
      <Sources sources={of.hash} word="PK" />
      {of.range.length ? <Sources sources={of.range} word="SK" /> : null}
      {more.length ? (
        <span class="design-beside cut" title={more.join("; ")}>
          {more.join("; ")}
        </span>
      ) : null}
    </>
  );
}

function Sources({ sources, word }: { sources: KeyPicture["hash"]; word: string }) {
  return (
    <span class="design-template cut" title={sources.map((each) => `${each.attribute} = ${each.template}`).join(", ")}>
      <span class="design-half">{word}</span>
      {sources.map((source, at) => (
        <span key={source.attribute}>
          {at ? <span class="muted"> + </span> : null}
          {source.parts.map((part, number) => (
            <span key={number} class={part.field === null ? "literal" : "given"}>
              {part.field === null ? part.text : `{${part.text}}`}
            </span>
          ))}
        </span>
      ))}
    </span>
  );
}

function IndexBox({ index }: { index: IndexPicture }) {
  return (
    <>
      <span class="row tight nowrap design-index-name">
        <strong class="cut" title={index.name}>
          {index.name}
        </strong>
        {index.kind === "table" ? null : <span class="design-kind">{index.kind}</span>}
      </span>
      <span class="design-beside cut" title={index.label}>
        {index.kind === "table"
          ? "the table itself"
          : `${index.label === index.name ? "" : `${index.label} · `}${index.projection}`}{" "}
        · {index.patterns.length} {index.patterns.length === 1 ? "pattern" : "patterns"}
      </span>
    </>
  );
}

function entityLabel(entity: EntityPicture): string {
  return `Entity ${entity.name}, ${entity.fields.length} fields`;
}

function keyLabel(key: KeyPicture, owner: string, table: TablePicture): string {
  const index = table.indexes.find((each) => each.id === key.index);
  const where = index?.kind === "table" ? "the table" : `index ${index?.name ?? ""}`;
  const made = [...key.hash, ...key.range].map((each) => each.template).join(", ");
  return `Key of ${owner} in ${where}: ${made}${key.members.length ? `, where ${key.members.join(" and ")}` : key.sparse ? ", sparse" : ""}`;
}

function indexLabel(index: IndexPicture): string {
  return index.kind === "table"
    ? `The table ${index.name}`
    : `${index.kind === "local" ? "Local" : "Global"} index ${index.name}, ${index.projection}`;
}

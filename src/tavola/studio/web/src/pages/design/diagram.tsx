// Diagram: entities, their key templates and the indexes, with lint findings on the node they concern.
import { useMemo, useRef, useState } from "preact/hooks";
import { templateParts, templateText } from "../../entity_keys";
import type {
  EntityPicture,
  IndexDesign,
  IndexPicture,
  KeyPicture,
  LocatedFinding,
  SourceDesign,
  TablePicture,
} from "../../generated/api";
import { colourOf } from "../../parts";
import { COLUMNS, family, type Layout, layout, type NodeKind } from "./layout";
import { countBySeverity, worst } from "./state";
import { formatBytes, formatCount } from "../../format";

interface DiagramProps {
  table: TablePicture;
  findings: readonly LocatedFinding[];
  selected: string;
  onSelect: (id: string) => void;
  onBadge: (id: string) => void;
}

export function Diagram({ table, findings, selected, onSelect, onBadge }: DiagramProps) {
  const drawn = useMemo(() => layout(table), [table]);
  const [hovered, setHovered] = useState<string | null>(null);
  const holder = useRef<HTMLDivElement>(null);
  const names = useMemo(() => new Map(table.entities.map((each) => [each.id, each.entity.name])), [table]);
  const focus = hovered ?? (selected || null);
  const lit = focus ? family(drawn, focus) : null;
  const order = [...drawn.entities, ...drawn.keys, ...drawn.indexes].map((each) => each.node.id);
  const tabStop = order.includes(selected) ? selected : (order[0] ?? "");
  const findingsByNode = useMemo(() => groupByNode(findings), [findings]);
  const move = (event: KeyboardEvent) => {
    const from = (event.target as HTMLElement).closest<HTMLElement>("[data-node]")?.dataset["node"];
    const to = from ? neighbour(drawn, from, event.key) : null;
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
    const own = findingsByNode.get(id) ?? [];
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
          tabIndex={id === tabStop ? 0 : -1}
          aria-pressed={selected === id}
          aria-label={`${label}${own.length ? `; ${countBySeverity(own)}` : ""}`}
          onClick={() => onSelect(id)}
          onMouseEnter={() => setHovered(id)}
          onMouseLeave={() => setHovered(null)}
          onFocus={() => setHovered(id)}
          onBlur={() => setHovered(null)}
        >
          {children}
        </button>
        {own.length ? <NodeBadge findings={own} label={label} onOpen={() => onBadge(id)} /> : null}
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
            node(
              "entity",
              each.id,
              top,
              height,
              entityLabel(each),
              <EntityBox picture={each} />,
              colourOf(each.entity.name),
            ),
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
            node("index", each.id, top, height, indexLabel(each), <IndexBox picture={each} />),
          )}
        </ul>
      </div>
    </div>
  );
}

function groupByNode(findings: readonly LocatedFinding[]): ReadonlyMap<string, LocatedFinding[]> {
  const groups = new Map<string, LocatedFinding[]>();
  for (const each of findings) groups.set(each.node, [...(groups.get(each.node) ?? []), each]);
  return groups;
}

interface NodeBadgeProps {
  findings: readonly LocatedFinding[];
  label: string;
  onOpen: () => void;
}

/** The badge of a node: how many findings, in the colour of the worst. */
export function NodeBadge({ findings, label, onOpen }: NodeBadgeProps) {
  return (
    <button
      type="button"
      class={`design-badge ${worst(findings) ?? ""}`}
      aria-label={`${countBySeverity(findings)}: ${label}`}
      title={countBySeverity(findings)}
      onClick={onOpen}
    >
      {findings.length}
    </button>
  );
}

/** Return the node that an arrow key moves to: up and down in a column, left and right along a line. */
function neighbour(drawn: Layout, from: string, key: string): string | null {
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
  const related = family(drawn, from);
  return other.find((each) => related.has(each)) ?? null;
}

function EntityBox({ picture }: { picture: EntityPicture }) {
  const { entity, item_bytes: bytes } = picture;
  const text = [
    formatCount(entity.fields.length, "field"),
    formatBytes(bytes),
    ...(entity.items === null ? [] : [formatCount(entity.items, "item")]),
  ].join(" · ");
  return (
    <>
      <strong class="cut">{entity.name}</strong>
      <span class="design-beside cut" title={text}>
        {text}
      </span>
    </>
  );
}

function KeyBox({ of, owner, table }: { of: KeyPicture; owner: string; table: TablePicture }) {
  const more = [
    of.members.length ? `where ${of.members.join(" and ")}` : of.key.sparse ? "sparse" : "",
    of.shards,
  ].filter(Boolean);
  const index = table.indexes.find((each) => each.id === of.index);
  return (
    <>
      <span class="design-key-of">
        {owner} · {index?.kind === "table" ? "table" : (index?.index.name ?? "")}
      </span>
      <Sources sources={of.key.hash} word="PK" />
      {of.key.range.length ? <Sources sources={of.key.range} word="SK" /> : null}
      {more.length ? (
        <span class="design-beside cut" title={more.join("; ")}>
          {more.join("; ")}
        </span>
      ) : null}
    </>
  );
}

function Sources({ sources, word }: { sources: readonly SourceDesign[]; word: string }) {
  return (
    <span
      class="design-template cut"
      title={sources.map((each) => `${each.attribute} = ${templateText(each)}`).join(", ")}
    >
      <span class="design-half">{word}</span>
      {sources.map((source, at) => (
        <span key={source.attribute}>
          {at ? <span class="muted"> + </span> : null}
          {templateParts(source).map((part, number) => (
            <span key={number} class={part.field === null ? "literal" : "field-value"}>
              {part.field === null ? part.text : `{${part.text}}`}
            </span>
          ))}
        </span>
      ))}
    </span>
  );
}

function IndexBox({ picture }: { picture: IndexPicture }) {
  const { index, kind, patterns } = picture;
  const text = [
    ...(kind === "table" ? ["table"] : [...(index.label === index.name ? [] : [index.label]), projectionText(index)]),
    formatCount(patterns.length, "pattern"),
  ].join(" · ");
  return (
    <>
      <span class="row tight nowrap design-index-name">
        <strong class="cut" title={index.name}>
          {index.name}
        </strong>
        {kind === "table" ? null : <span class="design-kind">{kind}</span>}
      </span>
      <span class="design-beside cut" title={text}>
        {text}
      </span>
    </>
  );
}

function entityLabel({ entity }: EntityPicture): string {
  return `Entity ${entity.name}, ${formatCount(entity.fields.length, "field")}`;
}

function keyLabel(key: KeyPicture, owner: string, table: TablePicture): string {
  const index = table.indexes.find((each) => each.id === key.index);
  const where = index?.kind === "table" ? "the table" : `index ${index?.index.name ?? ""}`;
  const templates = [...key.key.hash, ...key.key.range].map(templateText).join(", ");
  return `Key of ${owner} in ${where}: ${templates}${key.members.length ? `, where ${key.members.join(" and ")}` : key.key.sparse ? ", sparse" : ""}`;
}

function indexLabel({ index, kind }: IndexPicture): string {
  return kind === "table"
    ? `The table ${index.name}`
    : `${kind === "local" ? "Local" : "Global"} index ${index.name}, ${projectionText(index)}`;
}

export function projectionText({ projection }: IndexDesign): string {
  if (typeof projection !== "string") return formatCount(projection.length, "attribute");
  return projection === "ALL" ? "all attributes" : "keys only";
}

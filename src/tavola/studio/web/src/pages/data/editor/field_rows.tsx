// FieldRows: an item as rows of name, type and value; only those in view are on the page, and keys move between them.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { EntityForm } from "../../../generated/api";
import { Button, Menu, type Tag, TAG_NAMES, TAGS, type VirtualHandle, VirtualRows } from "../../../parts";
import type { Draft } from "./draft";
import { isContainer, isSet, type Node, type TreeRow } from "./tree";
import { ValueCell } from "./value_cell";

const ROW_PX = 34;
type Part = "name" | "type" | "value";

interface RowsProps {
  draft: Draft;
  form: EntityForm | null;
  keys: readonly string[];
  readOnly: boolean;
}

/** Return the key attributes that templates compute, with the template and index of each. */
function computedKeys(form: EntityForm | null): ReadonlyMap<string, { template: string; index: string | null }> {
  const parts = (form?.keys ?? []).flatMap(({ index, hash, range }) =>
    [...hash, ...range].filter((part) => part.computed).map((part) => ({ ...part, index })),
  );
  return new Map(parts.reverse().map((part) => [part.attribute, part]));
}

export function FieldRows({ draft, form, keys, readOnly }: RowsProps) {
  const handle = useRef<VirtualHandle>(null);
  const shape = draft.shape.value;
  const flaws = draft.flaws.value;
  const rows = useMemo(() => draft.tree.rows(flaws), [draft, shape, flaws]);
  const fields = useMemo(() => new Map(form?.fields.map((each) => [each.attribute, each])), [form]);
  const made = useMemo(() => computedKeys(form), [form]);
  const lock = form?.fields.find((each) => each.lock)?.attribute;

  /** Bring a row into view and put the focus there. */
  const focus = (node: Node, part: Part) => {
    const at = draft.tree.rows(draft.flaws.value).findIndex((row) => row.node === node);
    if (at < 0) return;
    handle.current?.reveal(at);
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        const row = handle.current?.element()?.querySelector(`[data-node="${node.id}"]`);
        (
          row?.querySelector<HTMLElement>(`[data-part="${part}"]`) ?? row?.querySelector<HTMLElement>("[data-part]")
        )?.focus();
      }),
    );
  };
  useEffect(() => {
    // The first thing that can be typed: people open an item to change a value, seldom its key.
    if (readOnly || !document.activeElement?.closest(".drawer")) return;
    const settled = (name: string) =>
      keys.includes(name) ||
      made.has(name) ||
      name === form?.tag_attribute ||
      (fields.get(name)?.feeds.some((each) => keys.includes(each)) ?? false);
    const editable = rows.filter((row) => !row.flaw && !isContainer(row.node.tag));
    const first = draft.before.value ? (editable.find((row) => !settled(row.node.name)) ?? editable[0]) : editable[0];
    if (first) focus(first.node, "value");
  }, [draft]);

  const add = (parent: Node, after: Node | null) => {
    const node = draft.tree.add(parent, after);
    draft.changed(true);
    focus(node, isSet(parent.tag) || parent.tag === "L" ? "value" : "name");
  };
  const remove = (node: Node) => {
    const at = rows.findIndex((row) => row.node === node);
    const beside = rows.slice(at + 1).find((row) => !within(row.node, node)) ?? rows[at - 1];
    draft.tree.remove(node);
    draft.changed(true);
    if (beside) focus(beside.node, "value");
  };
  const move = (node: Node, step: -1 | 1, part: Part) => {
    if (!draft.tree.move(node, step)) return;
    draft.changed(true);
    focus(node, part);
  };
  const onKey = (event: KeyboardEvent, row: TreeRow) => {
    const part = ((event.target as HTMLElement).dataset["part"] ?? "value") as Part;
    const vertical = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const mod = event.ctrlKey || event.metaKey;
    if (vertical && event.altKey && !readOnly) move(row.node, vertical, part);
    else if (vertical && !mod && (event.target as HTMLElement).tagName !== "SELECT") {
      const at = rows.indexOf(row);
      const next =
        vertical > 0 ? rows.slice(at + 1).find((each) => !each.flaw) : rows.slice(0, at).findLast((each) => !each.flaw);
      if (!next) return;
      focus(next.node, part);
    } else if (event.key === "Enter" && mod && !readOnly) add(row.node.parent ?? draft.tree.root, row.node);
    else if (event.key === "Backspace" && mod && !readOnly) remove(row.node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const line = (at: number) => {
    const row = rows[at];
    if (!row) return null;
    const { node, depth, flaw } = row;
    const indent = { paddingInlineStart: `${8 + depth * 16}px` };
    if (flaw) {
      return (
        <div
          key={`${node.id}-${flaw.text}`}
          role="listitem"
          class={`data-editor-flaw ${flaw.severity === "warning" ? "warning" : ""}`}
          style={{ height: `${ROW_PX}px`, ...indent }}
          title={flaw.text}
        >
          <span aria-hidden="true">{flaw.severity === "warning" ? "△" : "✕"}</span>
          <span class="cut">{flaw.text}</span>
        </div>
      );
    }
    const parent = node.parent ?? draft.tree.root;
    const top = depth === 0;
    const field = top ? fields.get(node.name) : undefined;
    const template = top ? made.get(node.name) : undefined;
    const isLock = top && node.name === lock;
    const held = readOnly || ((template !== undefined || isLock) && draft.keepKeys.value);
    const name =
      parent.tag === "M" ? node.name || "(no name)" : `${parent.name || "member"} ${parent.children.indexOf(node) + 1}`;
    const wrong = rows[at + 1]?.node === node && rows[at + 1]?.flaw?.severity !== "warning";
    const set = isSet(parent.tag);
    return (
      <div
        key={node.id}
        data-node={node.id}
        role="listitem"
        class="data-editor-row"
        style={{ height: `${ROW_PX}px` }}
        onKeyDown={(event) => onKey(event, row)}
      >
        <span class="data-editor-name" style={indent}>
          {parent.tag === "M" ? (
            <input
              class="input"
              data-part="name"
              aria-label={`Name of ${name}`}
              autocomplete="off"
              spellcheck={false}
              value={node.name}
              readOnly={held || (top && keys.includes(node.name) && draft.before.value !== null)}
              title={field?.description || node.name}
              onInput={(event) => {
                node.name = event.currentTarget.value;
                draft.changed(true); // what the row's other parts are called goes by the name
              }}
            />
          ) : (
            <span class="muted data-editor-place">{parent.children.indexOf(node)}</span>
          )}
          {top && keys.includes(node.name) ? (
            <span class="data-editor-mark" title="Part of the table's key">
              key
            </span>
          ) : null}
        </span>
        {held || set ? (
          <span class="data-editor-type" title={TAG_NAMES[node.tag]}>
            {node.tag}
          </span>
        ) : (
          <select
            class="input data-editor-type"
            data-part="type"
            aria-label={`Type of ${name}`}
            title={TAG_NAMES[node.tag]}
            value={node.tag}
            onChange={(event) => {
              draft.tree.retype(node, event.currentTarget.value as Tag);
              draft.changed(true);
            }}
          >
            {TAGS.map((tag) => (
              <option key={tag} value={tag} selected={tag === node.tag}>
                {tag}
              </option>
            ))}
          </select>
        )}
        <span class="data-editor-value">
          <ValueCell
            node={node}
            label={`Value of ${name}`}
            field={field}
            readOnly={held}
            wrong={wrong}
            onChange={() => draft.changed()}
            onToggle={() => {
              node.open = !node.open;
              draft.shape.value += 1;
            }}
            onAdd={() => add(node, null)}
          />
          {template ? (
            <span
              class="data-editor-hint cut"
              title={`Made by ${template.template}${template.index ? ` for ${template.index}` : ""}`}
            >
              ⚙ {template.template}
            </span>
          ) : isLock ? (
            <span class="data-editor-hint" title="It counts the writes, so that programs see that somebody wrote">
              ⚙ counts
            </span>
          ) : field?.feeds.length ? (
            <span class="data-editor-hint cut" title={`These keys are made of it: ${field.feeds.join(", ")}`}>
              → {field.feeds.join(", ")}
            </span>
          ) : null}
        </span>
        {readOnly ? (
          <span />
        ) : (
          <Menu
            small
            kind="quiet"
            label={`What to do with ${name}`}
            icon={<span aria-hidden="true">⋯</span>}
            items={[
              { label: "Add below", beside: "Ctrl Enter", run: () => add(parent, node) },
              { label: "Move up", beside: "Alt ↑", disabled: set, run: () => move(node, -1, "value") },
              { label: "Move down", beside: "Alt ↓", disabled: set, run: () => move(node, 1, "value") },
              null,
              { label: "Remove", beside: "Ctrl ⌫", run: () => remove(node) },
            ]}
          />
        )}
      </div>
    );
  };

  return (
    <div class="data-editor-rows">
      <VirtualRows
        count={rows.length}
        rowHeight={ROW_PX}
        render={line}
        handle={handle}
        role="list"
        aria-label="Attributes"
      />
      {readOnly ? null : (
        <Button small kind="quiet" onClick={() => add(draft.tree.root, null)}>
          + Add an attribute
        </Button>
      )}
    </div>
  );
}

function within(node: Node, outer: Node): boolean {
  for (let each: Node | null = node; each; each = each.parent) if (each === outer) return true;
  return false;
}

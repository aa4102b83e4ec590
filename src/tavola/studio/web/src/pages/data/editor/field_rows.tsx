// FieldRows: an item as rows of name, type and value, navigable by keyboard.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { keysOf } from "../../../entity_keys";
import type { EntityForm, FieldDesign } from "../../../generated/api";
import { Button, Menu, type Tag, TAG_NAMES, TAGS, type VirtualHandle, VirtualRows } from "../../../parts";
import type { ItemDraft } from "./item_draft";
import { isContainer, isSet, type Node, type TreeRow } from "./tree";
import { ValueCell } from "./value_cell";

const ROW_PX = 34;
type Part = "name" | "type" | "value";

interface RowsProps {
  draft: ItemDraft;
  form: EntityForm | null;
  keys: readonly string[];
  readOnly: boolean;
}

/** Return the key attributes computed from templates, each with its template and index. */
function computedKeys(form: EntityForm | null): ReadonlyMap<string, { template: string; index: string | null }> {
  const parts = (form ? keysOf(form.entity) : []).flatMap(({ index, hash, range }) =>
    [...hash, ...range].flatMap(({ attribute, template }) =>
      template ? [[attribute, { template: template.source, index }] as const] : [],
    ),
  );
  return new Map(parts.reverse());
}

export function FieldRows({ draft, form, keys, readOnly }: RowsProps) {
  const handle = useRef<VirtualHandle>(null);
  const shape = draft.shape.value;
  const issues = draft.issues.value;
  const rows = useMemo(() => draft.tree.rows(issues), [draft, shape, issues]);
  const fields = useMemo(() => new Map(form?.entity.fields.map((each) => [each.attribute, each])), [form]);
  const computed = useMemo(() => computedKeys(form), [form]);
  const lock = form?.entity.fields.find((each) => each.lock)?.attribute;

  /** Return the key attributes computed from a field. */
  const feedsOf = (field: FieldDesign | undefined) => (field && form?.feeds[field.name]) ?? [];

  /** Scroll a row into view and focus it. */
  const focus = (node: Node, part: Part) => {
    const at = draft.tree.rows(draft.issues.value).findIndex((row) => row.node === node);
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
    // Focus the first value that is not part of the key: that is what users usually edit.
    if (readOnly || !document.activeElement?.closest(".drawer")) return;
    const isKeyPart = (name: string) =>
      keys.includes(name) ||
      computed.has(name) ||
      name === form?.tag_attribute ||
      feedsOf(fields.get(name)).some((each) => keys.includes(each));
    const editable = rows.filter((row) => !row.issue && !isContainer(row.node.tag));
    const first = draft.before.value ? (editable.find((row) => !isKeyPart(row.node.name)) ?? editable[0]) : editable[0];
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
        vertical > 0
          ? rows.slice(at + 1).find((each) => !each.issue)
          : rows.slice(0, at).findLast((each) => !each.issue);
      if (!next) return;
      focus(next.node, part);
    } else if (event.key === "Enter" && mod && !readOnly) add(row.node.parent ?? draft.tree.root, row.node);
    else if (event.key === "Backspace" && mod && !readOnly) remove(row.node);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const renderRow = (at: number) => {
    const row = rows[at];
    if (!row) return null;
    const { node, depth, issue } = row;
    const indent = { paddingInlineStart: `${8 + depth * 16}px` };
    if (issue) {
      return (
        <div
          key={`${node.id}-${issue.text}`}
          role="listitem"
          class={`data-editor-issue ${issue.severity === "warning" ? "warning" : ""}`}
          style={{ height: `${ROW_PX}px`, ...indent }}
          title={issue.text}
        >
          <span aria-hidden="true">{issue.severity === "warning" ? "△" : "✕"}</span>
          <span class="cut">{issue.text}</span>
        </div>
      );
    }
    const parent = node.parent ?? draft.tree.root;
    const top = depth === 0;
    const field = top ? fields.get(node.name) : undefined;
    const feeds = feedsOf(field);
    const template = top ? computed.get(node.name) : undefined;
    const isLock = top && node.name === lock;
    const fixed = readOnly || ((template !== undefined || isLock) && draft.keepKeys.value);
    const name =
      parent.tag === "M"
        ? node.name || "(no name)"
        : `${parent.name || "element"} ${parent.children.indexOf(node) + 1}`;
    const hasError = rows[at + 1]?.node === node && rows[at + 1]?.issue?.severity !== "warning";
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
              readOnly={fixed || (top && keys.includes(node.name) && draft.before.value !== null)}
              title={field?.description || node.name}
              onInput={(event) => {
                node.name = event.currentTarget.value;
                draft.changed(true); // the labels of the other controls contain the name
              }}
            />
          ) : (
            <span class="muted data-editor-place">{parent.children.indexOf(node)}</span>
          )}
          {top && keys.includes(node.name) ? (
            <span class="data-editor-mark" title="Part of the primary key">
              key
            </span>
          ) : null}
        </span>
        {fixed || set ? (
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
            readOnly={fixed}
            hasError={hasError}
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
              title={`Computed from ${template.template}${template.index ? ` for ${template.index}` : ""}`}
            >
              ⚙ {template.template}
            </span>
          ) : isLock ? (
            <span class="data-editor-hint" title="Version number, incremented by every write (optimistic locking)">
              ⚙ version
            </span>
          ) : feeds.length ? (
            <span class="data-editor-hint cut" title={`Used in these keys: ${feeds.join(", ")}`}>
              → {feeds.join(", ")}
            </span>
          ) : null}
        </span>
        {readOnly ? (
          <span />
        ) : (
          <Menu
            small
            kind="quiet"
            label={`Actions for ${name}`}
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
        render={renderRow}
        handle={handle}
        role="list"
        aria-label="Attributes"
      />
      {readOnly ? null : (
        <Button small kind="quiet" onClick={() => add(draft.tree.root, null)}>
          + Add attribute
        </Button>
      )}
    </div>
  );
}

function within(node: Node, outer: Node): boolean {
  for (let each: Node | null = node; each; each = each.parent) if (each === outer) return true;
  return false;
}

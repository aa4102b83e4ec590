// BulkDialog: changes or deletes many items: choose the change, preview it, run it.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AttributeValue, BulkAction, BulkRow, ItemSelection, TableSummary } from "../../../generated/api";
import {
  Button,
  Dialog,
  Notice,
  ProblemNotice,
  Progress,
  Segmented,
  Select,
  Stat,
  Stats,
  type Tag,
  TextInput,
  Value,
  useButtonFocus,
  TAG_OPTIONS,
} from "../../../parts";
import { JsonSyntaxError } from "../editor/exact_json";
import { readValue, ItemFormatError } from "../editor/item_json";
import { clearSelection, reload, rows as loadedRows } from "../state";
import { BulkRun } from "./bulk_run";
import { formatMoney, formatNumber, formatCount } from "../../../format";

type Kind = BulkAction["kind"];
const KINDS = [
  { value: "set", label: "Set attribute" },
  { value: "remove", label: "Remove attribute" },
  { value: "delete", label: "Delete items" },
];
const SKIPPED_SHOWN = 50;

interface BulkDialogProps {
  table: TableSummary;
  selection: ItemSelection;
  initialKind: Kind;
  onClose: () => void;
}

export function BulkDialog({ table, selection, initialKind, onClose }: BulkDialogProps) {
  const [kind, setKind] = useState<Kind>(initialKind);
  const [attribute, setAttribute] = useState("");
  const [tag, setTag] = useState<Tag>("S");
  const [text, setText] = useState("");
  const [skippedItems, setSkippedItems] = useState<ItemSelection | null>(null);
  const run = useMemo(() => new BulkRun(), []);
  useEffect(() => () => run.stop(), []);
  const tally = run.tally.value;
  const foot = useButtonFocus(tally.phase);
  const value = valueFrom(tag, text);
  const action: BulkAction = {
    kind,
    attribute: kind === "delete" ? "" : attribute,
    value: kind === "set" && typeof value !== "string" ? value : null,
  };
  const knownNames = useMemo(
    () => [...new Set(loadedRows.value.slice(0, 300).flatMap((row) => Object.keys(row.item)))].sort(),
    [],
  );
  const writing = tally.phase === "running" || tally.phase === "stopping";
  const busy = tally.phase === "previewing" || writing;
  const finished = tally.phase === "done" || (tally.phase === "stopped" && tally.written > 0);
  const target = selection.keys ? formatCount(selection.keys.length, "selected item") : "all matching items";
  const ready = kind === "delete" || (attribute !== "" && (kind === "remove" || typeof value !== "string"));
  const change = () => run.reset();
  const execute = async (items: ItemSelection) => {
    await run.run(items, action);
    if (run.tally.value.phase === "done" && kind === "delete") clearSelection();
    void reload();
  };
  const verb = kind === "delete" ? "Delete" : "Change";
  return (
    <Dialog
      wide
      title={`Edit ${target}`}
      onClose={() => {
        run.stop();
        // A running write finishes its slice first, and its result is shown.
        if (!writing) onClose();
      }}
      footer={
        <span ref={foot} class="row">
          {busy ? (
            <Button onClick={() => run.stop()} data-autofocus aria-disabled={tally.phase === "stopping"}>
              {tally.phase === "stopping" ? "Stopping…" : "Stop"}
            </Button>
          ) : finished ? (
            <>
              {tally.skipped.length ? (
                <Button
                  onClick={() => {
                    const left = { table: table.name, keys: tally.skipped.map((each) => each.key) };
                    setSkippedItems(left);
                    void run.preview(left, action);
                  }}
                >
                  Preview skipped items
                </Button>
              ) : null}
              <Button kind="primary" onClick={onClose}>
                Close
              </Button>
            </>
          ) : (
            <>
              <Button onClick={onClose}>Cancel</Button>
              {tally.phase === "previewed" ? (
                <Button
                  kind={kind === "delete" ? "danger" : "primary"}
                  disabled={!tally.changing}
                  onClick={() => void execute(skippedItems ?? selection)}
                >
                  {verb} {formatCount(tally.changing, "item")}
                </Button>
              ) : (
                <Button
                  kind="primary"
                  disabled={!ready}
                  onClick={() => void run.preview(skippedItems ?? selection, action)}
                >
                  Preview changes
                </Button>
              )}
            </>
          )}
        </span>
      }
    >
      <div class="stack">
        {busy || finished ? null : (
          <>
            <div class="row data-choices">
              <Segmented
                label="Action"
                options={KINDS}
                value={kind}
                onChange={(to) => {
                  setKind(to as Kind);
                  change();
                }}
              />
            </div>
            {kind === "delete" ? null : (
              <div class="row wrap data-bulk-what">
                <TextInput
                  label="Attribute"
                  value={attribute}
                  list="data-bulk-known"
                  mono
                  onInput={(to) => {
                    setAttribute(to);
                    change();
                  }}
                />
                <datalist id="data-bulk-known">
                  {knownNames.map((name) => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
                {kind === "set" ? (
                  <>
                    <Select
                      label="Type"
                      value={tag}
                      options={TAG_OPTIONS}
                      onChange={(to) => {
                        setTag(to as Tag);
                        change();
                      }}
                    />
                    {tag === "NULL" ? null : tag === "BOOL" ? (
                      <Select
                        label="Value"
                        value={text || "false"}
                        options={[
                          { value: "true", label: "true" },
                          { value: "false", label: "false" },
                        ]}
                        onChange={(to) => {
                          setText(to);
                          change();
                        }}
                      />
                    ) : (
                      <TextInput
                        label="Value"
                        value={text}
                        mono={tag !== "S"}
                        onInput={(to) => {
                          setText(to);
                          change();
                        }}
                        error={typeof value === "string" && text ? value : null}
                        hint={hintOf(tag)}
                      />
                    )}
                  </>
                ) : null}
              </div>
            )}
          </>
        )}
        <ProblemNotice problem={tally.problem} />
        {tally.phase === "previewing" || tally.phase === "previewed" ? (
          <>
            <Stats>
              <Stat label="Found" value={formatNumber(tally.matched)} />
              <Stat label={kind === "delete" ? "To delete" : "To change"} value={formatNumber(tally.changing)} />
              <Stat label="Unchanged" value={formatNumber(tally.same)} />
              <Stat
                label="Skipped"
                value={formatNumber(tally.skipped.length)}
                tone={tally.skipped.length ? "warn" : undefined}
              />
              <Stat label="Write units" value={formatNumber(tally.units)} />
              <Stat
                label={tally.onDemand ? "Cost" : "Cost (on-demand equivalent)"}
                value={formatMoney(tally.dollars)}
                beside={tally.priced}
              />
            </Stats>
            {tally.phase === "previewing" ? (
              <p role="status" class="muted">
                Checking: {formatNumber(tally.matched)} items so far…
              </p>
            ) : null}
            {tally.phase === "previewed" && tally.changing ? (
              <p class="data-bulk-final">
                Undo does not cover bulk edits. If point-in-time recovery is on, you can restore single items on the
                History page.
              </p>
            ) : null}
            <PreviewRows table={table} rows={tally.rows} kind={kind} attribute={attribute} />
          </>
        ) : null}
        {writing || finished ? (
          <>
            <Progress
              label="Items done"
              value={tally.written + tally.same + tally.skipped.length}
              max={Math.max(tally.changing + tally.same + tally.skipped.length, 1)}
            />
            <p role="status">
              {writing ? "" : tally.phase === "stopped" ? "Stopped. " : "Done. "}
              {formatNumber(tally.written)} of {formatNumber(tally.changing)}{" "}
              {kind === "delete" ? "deleted" : "changed"}, {formatNumber(tally.skipped.length)} skipped,{" "}
              {formatNumber(tally.units)} capacity units consumed.
            </p>
          </>
        ) : null}
        {tally.skipped.length ? (
          <Notice
            tone="warning"
            title={
              tally.phase === "previewed" || tally.phase === "previewing"
                ? "These items would be skipped"
                : "These items were skipped"
            }
          >
            <ul class="data-bulk-left">
              {tally.skipped.slice(0, SKIPPED_SHOWN).map((each, at) => (
                <li key={at}>
                  <span class="mono">
                    {Object.values(each.key)
                      .map((part) => String(Object.values(part)[0]))
                      .join(" · ")}
                  </span>
                  : {each.reason}
                </li>
              ))}
            </ul>
            {tally.skipped.length > SKIPPED_SHOWN ? (
              <p>… and {formatNumber(tally.skipped.length - SKIPPED_SHOWN)} more.</p>
            ) : null}
          </Notice>
        ) : null}
      </div>
    </Dialog>
  );
}

interface PreviewRowsProps {
  table: TableSummary;
  rows: readonly BulkRow[];
  kind: Kind;
  attribute: string;
}

function PreviewRows({ table, rows, kind, attribute }: PreviewRowsProps) {
  if (!rows.length) return null;
  const others = (row: BulkRow) =>
    row.after
      ? Object.keys({ ...row.before, ...row.after }).filter(
          (name) => name !== attribute && JSON.stringify(row.before[name]) !== JSON.stringify(row.after?.[name]),
        )
      : [];
  return (
    <div class="data-scroll" tabIndex={0} role="region" aria-label="Preview of the first items">
      <table class="plain">
        <thead>
          <tr>
            {table.keys.map((each) => (
              <th key={each.name} scope="col">
                {each.name}
              </th>
            ))}
            {kind === "delete" ? (
              <th scope="col">Contents</th>
            ) : (
              <>
                <th scope="col">{attribute} before</th>
                <th scope="col">{attribute} after</th>
                <th scope="col">Also changes</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {table.keys.map((each) => (
                <td key={each.name} class="mono">
                  <Value value={row.before[each.name]} />
                </td>
              ))}
              {kind === "delete" ? (
                <td>{Object.keys(row.before).length} attributes</td>
              ) : (
                <>
                  <td>
                    <Value value={row.before[attribute]} />
                  </td>
                  <td>
                    <Value value={row.after?.[attribute]} />
                  </td>
                  <td class="mono small">{others(row).join(", ") || "–"}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function hintOf(tag: Tag): string | undefined {
  if (tag === "B") return "base64";
  if (tag === "SS" || tag === "NS" || tag === "BS") return 'As JSON: ["a", "b"]';
  if (tag === "L") return 'As DynamoDB JSON: [{"S": "a"}]';
  if (tag === "M") return 'As DynamoDB JSON: {"name": {"S": "a"}}';
  return undefined;
}

/** Return the value that was typed, or what is wrong with it. */
function valueFrom(tag: Tag, text: string): AttributeValue | string {
  if (tag === "S" || tag === "N" || tag === "B") return { [tag]: text };
  if (tag === "BOOL") return { BOOL: text === "true" };
  if (tag === "NULL") return { NULL: true };
  try {
    return readValue(`{"${tag}": ${text || "null"}}`);
  } catch (thrown) {
    if (thrown instanceof JsonSyntaxError || thrown instanceof ItemFormatError) return thrown.message;
    throw thrown;
  }
}

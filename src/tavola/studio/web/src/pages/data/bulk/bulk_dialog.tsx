// BulkDialog: what shall be done with many items, what that would do, and then the doing of it.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { AttributeValue, BulkAction, BulkRow, ItemSelection, TableSummary } from "../../../generated/api";
import {
  Button,
  Dialog,
  money,
  Notice,
  num,
  ProblemNotice,
  Progress,
  Segmented,
  Select,
  Stat,
  Stats,
  type Tag,
  TAG_NAMES,
  TAGS,
  TextInput,
  Value,
} from "../../../parts";
import { JsonMistake } from "../editor/exact_json";
import { readValue, SpellingMistake } from "../editor/spellings";
import { clearSelection, reload, rows } from "../state";
import { useKeptFocus } from "../transfer/kept_focus";
import { BulkRun } from "./running";

type Kind = BulkAction["kind"];
const KINDS = [
  { value: "set", label: "Set an attribute" },
  { value: "remove", label: "Remove an attribute" },
  { value: "delete", label: "Delete the items" },
];
const LEFT_SHOWN = 50;

interface BulkDialogProps {
  table: TableSummary;
  selection: ItemSelection;
  first: Kind;
  onClose: () => void;
}

export function BulkDialog({ table, selection, first, onClose }: BulkDialogProps) {
  const [kind, setKind] = useState<Kind>(first);
  const [attribute, setAttribute] = useState("");
  const [tag, setTag] = useState<Tag>("S");
  const [text, setText] = useState("");
  const [again, setAgain] = useState<ItemSelection | null>(null);
  const run = useMemo(() => new BulkRun(), []);
  useEffect(() => () => run.stop(), []);
  const tally = run.tally.value;
  const foot = useKeptFocus(tally.phase);
  const value = valueFrom(tag, text);
  const action: BulkAction = {
    kind,
    attribute: kind === "delete" ? "" : attribute,
    value: kind === "set" && typeof value !== "string" ? value : null,
  };
  const known = useMemo(
    () => [...new Set(rows.value.slice(0, 300).flatMap((row) => Object.keys(row.item)))].sort(),
    [],
  );
  const writing = tally.phase === "running" || tally.phase === "stopping";
  const busy = tally.phase === "looking" || writing;
  const finished = tally.phase === "done" || (tally.phase === "stopped" && tally.written > 0);
  const told = selection.keys
    ? selection.keys.length === 1
      ? "1 selected item"
      : `${num(selection.keys.length)} selected items`
    : "all items that the question finds";
  const ready = kind === "delete" || (attribute !== "" && (kind === "remove" || typeof value !== "string"));
  const change = () => run.reset();
  const doIt = async (target: ItemSelection) => {
    await run.run(target, action);
    if (run.tally.value.phase === "done" && kind === "delete") clearSelection();
    void reload();
  };
  const verb = kind === "delete" ? "Delete" : "Change";
  return (
    <Dialog
      wide
      title={`Edit ${told}`}
      onClose={() => {
        run.stop();
        // What is being written is told before the dialog goes.
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
              {tally.left.length ? (
                <Button
                  onClick={() => {
                    const left = { table: table.name, keys: tally.left.map((each) => each.key) };
                    setAgain(left);
                    void run.look(left, action);
                  }}
                >
                  Look at those that were left
                </Button>
              ) : null}
              <Button kind="primary" onClick={onClose}>
                Close
              </Button>
            </>
          ) : (
            <>
              <Button onClick={onClose}>Cancel</Button>
              {tally.phase === "looked" ? (
                <Button
                  kind={kind === "delete" ? "danger" : "primary"}
                  disabled={!tally.changing}
                  onClick={() => void doIt(again ?? selection)}
                >
                  {verb} {tally.changing === 1 ? "1 item" : `${num(tally.changing)} items`}
                </Button>
              ) : (
                <Button kind="primary" disabled={!ready} onClick={() => void run.look(again ?? selection, action)}>
                  Look what it would do
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
                label="What to do"
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
                  {known.map((name) => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
                {kind === "set" ? (
                  <>
                    <Select
                      label="Type"
                      value={tag}
                      options={TAGS.map((each) => ({ value: each, label: `${each} · ${TAG_NAMES[each]}` }))}
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
                        wrong={typeof value === "string" && text ? value : null}
                        hint={hintOf(tag)}
                      />
                    )}
                  </>
                ) : null}
              </div>
            )}
          </>
        )}
        {tally.problem ? <ProblemNotice problem={tally.problem} /> : null}
        {tally.phase === "looking" || tally.phase === "looked" ? (
          <>
            <Stats>
              <Stat label="found" value={num(tally.matched)} />
              <Stat label={kind === "delete" ? "would be deleted" : "would change"} value={num(tally.changing)} />
              <Stat label="are so already" value={num(tally.same)} />
              <Stat
                label="would be left"
                value={num(tally.left.length)}
                {...(tally.left.length ? { tone: "warn" as const } : {})}
              />
              <Stat label="write units" value={num(tally.units)} />
              <Stat
                label={tally.onDemand ? "dollars" : "dollars if it were on demand"}
                value={money(tally.dollars)}
                beside={tally.priced}
              />
            </Stats>
            {tally.phase === "looking" ? (
              <p role="status" class="muted">
                Looking: {num(tally.matched)} items so far…
              </p>
            ) : null}
            {tally.phase === "looked" && tally.changing ? (
              <p class="data-bulk-final">
                This cannot be undone with one key: what is {kind === "delete" ? "deleted" : "changed"} here is not in
                Undo. Where the table keeps its past, Time shows each item as it was and puts it back.
              </p>
            ) : null}
            <Rows table={table} rows={tally.rows} kind={kind} attribute={attribute} />
          </>
        ) : null}
        {writing || finished ? (
          <>
            <Progress
              label="Items done"
              value={tally.written + tally.same + tally.left.length}
              max={Math.max(tally.changing + tally.same + tally.left.length, 1)}
            />
            <p role="status">
              {writing ? "" : tally.phase === "stopped" ? "Stopped. " : "Done. "}
              {num(tally.written)} {kind === "delete" ? "deleted" : "changed"} of {num(tally.changing)},{" "}
              {num(tally.left.length)} left, {num(tally.units)} units with what was read.
            </p>
          </>
        ) : null}
        {tally.left.length ? (
          <Notice
            tone="warning"
            title={
              tally.phase === "looked" || tally.phase === "looking"
                ? "These would be left as they are"
                : "These were left as they are"
            }
          >
            <ul class="data-bulk-left">
              {tally.left.slice(0, LEFT_SHOWN).map((each, at) => (
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
            {tally.left.length > LEFT_SHOWN ? <p>… and {num(tally.left.length - LEFT_SHOWN)} more.</p> : null}
          </Notice>
        ) : null}
      </div>
    </Dialog>
  );
}

function Rows({
  table,
  rows: shownRows,
  kind,
  attribute,
}: {
  table: TableSummary;
  rows: readonly BulkRow[];
  kind: Kind;
  attribute: string;
}) {
  if (!shownRows.length) return null;
  const others = (row: BulkRow) =>
    row.after
      ? Object.keys({ ...row.before, ...row.after }).filter(
          (name) => name !== attribute && JSON.stringify(row.before[name]) !== JSON.stringify(row.after?.[name]),
        )
      : [];
  return (
    <div class="data-scroll" tabIndex={0} role="region" aria-label="The first items, before and after">
      <table class="plain">
        <thead>
          <tr>
            {table.keys.map((each) => (
              <th key={each.name} scope="col">
                {each.name}
              </th>
            ))}
            {kind === "delete" ? (
              <th scope="col">what goes</th>
            ) : (
              <>
                <th scope="col">{attribute} before</th>
                <th scope="col">after</th>
                <th scope="col">also changes</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {shownRows.map((row, at) => (
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

/** Return the value that was typed, or why it is none. */
function valueFrom(tag: Tag, text: string): AttributeValue | string {
  if (tag === "S" || tag === "N" || tag === "B") return { [tag]: text };
  if (tag === "BOOL") return { BOOL: text === "true" };
  if (tag === "NULL") return { NULL: true };
  try {
    return readValue(`{"${tag}": ${text || "null"}}`);
  } catch (thrown) {
    if (thrown instanceof JsonMistake || thrown instanceof SpellingMistake) return thrown.message;
    throw thrown;
  }
}

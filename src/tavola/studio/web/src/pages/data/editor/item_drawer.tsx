// ItemDrawer: the item that the URL names, beside the grid: read, typed in, measured, saved, deleted, undone.
import { useEffect, useMemo, useState } from "preact/hooks";
import { asOf } from "../../../app/as_of";
import { useAsk } from "../../../app/asking";
import { useCommands } from "../../../app/commands";
import { href } from "../../../app/router";
import { currentTable, mayChange, session } from "../../../app/session";
import type { EntityForm, Item, TableSummary, WriteOutcome } from "../../../generated/api";
import {
  Button,
  Chip,
  Confirm,
  Copy,
  Drawer,
  Empty,
  Notice,
  ProblemNotice,
  Segmented,
  Select,
  Spinner,
  TextArea,
} from "../../../parts";
import { keyOf } from "../keys";
import { opened, openItem, reload } from "../state";
import { Conflict, rebased } from "./conflict";
import { type Draft, draftOf, drop, type Mode } from "./draft";
import "./editor.css";
import { FieldRows } from "./field_rows";
import { Gauge } from "./gauge";
import { writeItem } from "./spellings";
import { last, remember, UndoNotice, undone } from "./undoing";

const MODES = [
  { value: "fields", label: "Fields" },
  { value: "plain", label: "JSON" },
  { value: "dynamodb", label: "DynamoDB JSON" },
];
const NO_FORMS: readonly EntityForm[] = [];

/** What is open, or the notice of what was written last. */
export function ItemDrawer() {
  const table = currentTable.value;
  const open = opened.value;
  if (!table || open.kind === "none") return <UndoNotice inside={false} focus={false} />;
  const key = open.kind === "item" ? open.key : null;
  return <OpenItem key={JSON.stringify([table.name, key, asOf.value])} table={table} target={key} />;
}

function OpenItem({ table, target }: { table: TableSummary; target: Item | null }) {
  const { draft, kept } = useMemo(() => draftOf(table.name, target, asOf.value), []);
  const [asking, setAsking] = useState<"" | "delete" | "close">("");
  const [saved, setSaved] = useState(0);
  const told = useAsk("GET /items/forms", table.designed ? { table: table.name } : null);
  const forms = told.data?.forms ?? NO_FORMS;
  const known = !table.designed || told.data !== null || told.problem !== null;
  const editable = mayChange.value;
  const keys = table.keys.map((each) => each.name);

  useEffect(() => {
    if (target && !kept) void draft.load(asOf.value);
    return () => draft.stop();
  }, []);
  useEffect(() => {
    if (!target && !kept && known) draft.beginNew(forms[0] ?? null, table.keys);
  }, [known]);
  const rounds = undone.value;
  useEffect(() => {
    // What was typed since stays; saving it then shows what stands.
    if (rounds && target && !draft.dirty()) void draft.load("");
  }, [rounds]);

  const close = () => {
    if (editable && draft.dirty()) setAsking("close");
    else leave();
  };
  const leave = () => {
    drop(draft);
    openItem(null);
  };
  const settled = (done: WriteOutcome | null, told: string) => {
    if (!done || done.outcome === "conflict" || done.outcome === "exists") return;
    if (done.outcome === "unchanged") {
      remember("Nothing was changed, so nothing was written.", null);
      if (done.current) draft.begin(done.current, done.current, draft.entity.value);
      return;
    }
    remember(told, done.undo);
    setSaved((before) => before + 1);
    void reload();
    if (!done.current) leave();
    else if (!target || JSON.stringify(keyOf(table, done.current)) !== JSON.stringify(keyOf(table, target))) {
      drop(draft);
      openItem(keyOf(table, done.current));
    } else draft.begin(done.current, done.current, draft.entity.value);
  };
  const save = async () => {
    if (!editable || draft.phase.value !== "ready") return;
    const done = await draft.save();
    settled(
      done,
      done
        ? `Saved: ${done.units} WCU${done.keys?.length ? `, and ${done.keys.map((each) => each.attribute).join(", ")} followed` : ""}.`
        : "",
    );
  };
  const remove = async () => {
    setAsking("");
    settled(await draft.remove(), "Deleted.");
  };
  useCommands(
    editable
      ? [
          {
            id: "save-item",
            title: "Save the open item",
            keys: "mod+s",
            group: "Data",
            always: true,
            run: () => void save(),
          },
          { id: "delete-item", title: "Delete the open item", group: "Data", run: () => target && setAsking("delete") },
        ]
      : [],
  );

  const view = draft.view.value;
  const entity = draft.measured.value?.entity ?? draft.entity.value ?? view?.entity ?? null;
  const form = forms.find((each) => each.name === entity) ?? null;
  const phase = draft.phase.value;
  // What the design says of the fields decides how rows look and where the first key press goes, so it is waited for.
  const ready = known && (phase === "ready" || phase === "saving");
  const title = (
    <span class="row">
      {target ? "Item" : "New item"}{" "}
      {entity ? <Chip name={entity} guess={view?.kind === "guess"} title={view?.note ?? ""} /> : null}
    </span>
  );
  return (
    <>
      <Drawer
        title={title}
        onClose={close}
        footer={
          ready ? (
            <>
              <Copy
                label="Copy as JSON"
                text={() => writeItem(draft.item() ?? {}, draft.mode.value === "dynamodb" ? "dynamodb" : "plain")}
              />
              {target ? (
                <a
                  class="button small"
                  href={href({ page: "time", params: { tab: "item", key: JSON.stringify(target) } })}
                >
                  History
                </a>
              ) : null}
              <span class="grow" />
              {editable && target && draft.before.value ? (
                <Button kind="danger" small onClick={() => setAsking("delete")}>
                  Delete…
                </Button>
              ) : null}
              <Button small onClick={close}>
                {editable ? "Cancel" : "Close"}
              </Button>
              {editable ? (
                <Button
                  kind="primary"
                  small
                  disabled={phase === "saving" || draft.conflict.value !== null}
                  title="Ctrl S"
                  onClick={() => void save()}
                >
                  {phase === "saving" ? "Saving…" : target ? "Save" : "Create"}
                </Button>
              ) : null}
            </>
          ) : null
        }
      >
        <div class="data-editor">
          {last.value ? <UndoNotice inside focus={saved > 0 || last.value.told === "Taken back."} /> : null}
          {kept ? (
            <Notice title="Your unsaved changes are still here">They were typed before and never saved.</Notice>
          ) : null}
          {draft.problem.value ? (
            <ProblemNotice
              problem={draft.problem.value}
              {...(phase === "lost" ? { again: () => void draft.load(asOf.value) } : {})}
            />
          ) : null}
          {phase === "loading" || !known ? <Spinner label="Reading the item" /> : null}
          {phase === "missing" ? (
            <Empty title="Nothing stands under this key">
              {asOf.value ? "It was not there at this moment." : "It may have been deleted."}
            </Empty>
          ) : null}
          {ready && draft.conflict.value ? (
            <Conflict
              done={draft.conflict.value}
              onBack={() => (draft.conflict.value = null)}
              onTheirs={() => {
                const stands = draft.conflict.value?.current;
                if (!stands) return;
                if (target) drop(draft);
                else draft.conflict.value = null; // what was typed for the new item is still there when one asks for it
                if (target && JSON.stringify(keyOf(table, stands)) === JSON.stringify(keyOf(table, target)))
                  draft.begin(stands, stands, draft.entity.value);
                else openItem(keyOf(table, stands));
              }}
              onMine={() => {
                const stands = draft.conflict.value?.current ?? null;
                const mine = draft.item() ?? {};
                draft.begin(stands ? rebased(draft.before.value, mine, stands) : mine, stands, draft.entity.value);
              }}
            />
          ) : null}
          {ready && !draft.conflict.value ? (
            <Body
              draft={draft}
              form={form}
              forms={forms}
              keys={keys}
              table={table}
              editable={editable}
              saving={phase === "saving"}
              isNew={!target}
            />
          ) : null}
        </div>
      </Drawer>
      {asking === "delete" && draft.before.value ? (
        <Confirm
          title={`Delete this ${entity ?? "item"}?`}
          yes="Delete it"
          danger
          onYes={() => void remove()}
          onNo={() => setAsking("")}
        >
          <p>
            The item at{" "}
            {keys.map((name) => (
              <span key={name} class="mono data-editor-keyed">
                {name} = {String(Object.values(draft.before.value?.[name] ?? {})[0] ?? "")}
              </span>
            ))}{" "}
            with its {Object.keys(draft.before.value).length} attributes is deleted from{" "}
            <span class="mono">{table.name}</span>, if nobody changed it since it was read.
          </p>
          <p class="muted">It can be taken back right after.</p>
        </Confirm>
      ) : null}
      {asking === "close" ? (
        <Confirm title="Drop what you typed?" yes="Drop it" danger onYes={leave} onNo={() => setAsking("")}>
          <p>There are changes that were not saved.</p>
        </Confirm>
      ) : null}
    </>
  );
}

interface BodyProps {
  draft: Draft;
  form: EntityForm | null;
  forms: readonly EntityForm[];
  keys: readonly string[];
  table: TableSummary;
  editable: boolean;
  saving: boolean;
  isNew: boolean;
}

function Body({ draft, form, forms, keys, table, editable, saving, isNew }: BodyProps) {
  const mode = draft.mode.value;
  const fixed = !editable || saving; // what is typed while it is being saved would be lost by the answer
  const measured = draft.measured.value;
  const whole = draft.flaws.value.filter((flaw) => !flaw.path.length || !draft.tree.at(flaw.path));
  return (
    <>
      {editable ? null : (
        <p class="small muted">
          {session.value?.read_only
            ? "The studio is read-only: values are shown and cannot be changed."
            : "This is the past: values are shown and cannot be changed."}
        </p>
      )}
      {isNew && forms.length ? (
        <Select
          label="What it is"
          value={draft.entity.value ?? ""}
          options={[
            ...forms.map((each) => ({ value: each.name, label: each.name })),
            { value: "", label: "Something else" },
          ]}
          onChange={(value) => draft.beginNew(forms.find((each) => each.name === value) ?? null, table.keys)}
          hint={form?.description.split("\n")[0]}
        />
      ) : null}
      <div class="row wrap">
        <Segmented
          label="How the item is shown"
          options={MODES}
          value={mode}
          onChange={(value) => draft.turn(value as Mode)}
        />
        {editable && form ? (
          <label class="check small" title="Key attributes are made anew of the fields, as the design says">
            <input
              type="checkbox"
              checked={draft.keepKeys.value}
              onChange={(event) => {
                draft.keepKeys.value = event.currentTarget.checked;
                draft.changed(true);
              }}
            />
            <span>Keys follow fields</span>
          </label>
        ) : null}
      </div>
      {measured ? <Gauge measured={measured} stale={draft.measuring.value} writing={editable} /> : null}
      {whole.map((flaw) => (
        <p
          key={flaw.path.join(".") + flaw.text}
          class={`data-editor-flaw whole ${flaw.severity === "warning" ? "warning" : ""}`}
          role={flaw.severity === "warning" ? "status" : "alert"}
        >
          {flaw.path.length ? <strong class="mono">{flaw.path.join(".")}</strong> : null} {flaw.text}
        </p>
      ))}
      {mode === "fields" ? (
        <FieldRows draft={draft} form={form} keys={keys} readOnly={fixed} />
      ) : (
        <TextArea
          label={mode === "plain" ? "The item as JSON" : "The item as DynamoDB JSON"}
          hideLabel
          mono
          class="data-editor-text"
          value={draft.text.value}
          readOnly={fixed}
          wrong={draft.mistake.value || null}
          hint={
            mode === "plain"
              ? "Numbers keep every digit; bytes and sets stand as $binary, $strings, $numbers, $binaries."
              : undefined
          }
          onInput={(text) => {
            draft.text.value = text;
            draft.changed();
          }}
        />
      )}
      {mode === "fields" && editable ? (
        <p class="small muted data-editor-keys">
          ↑ ↓ between rows · Alt ↑ ↓ move · Ctrl Enter adds · Ctrl ⌫ removes · Alt Enter opens a long text · Ctrl S
          saves
        </p>
      ) : null}
    </>
  );
}

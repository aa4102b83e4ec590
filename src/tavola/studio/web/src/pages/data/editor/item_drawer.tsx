// ItemDrawer: the item in the URL, beside the grid: shown, edited, saved, deleted.
import { useEffect, useMemo, useState } from "preact/hooks";
import { asOf } from "../../../app/as_of";
import { useQuery } from "../../../app/queries";
import { useCommands } from "../../../app/commands";
import { href } from "../../../app/router";
import { currentTable, canEdit, session } from "../../../app/session";
import type { EntityForm, Item, TableSummary, WriteOutcome } from "../../../generated/api";
import {
  Button,
  Chip,
  Confirm,
  Copy,
  Drawer,
  Empty,
  Notice,
  plainOptions,
  ProblemNotice,
  Segmented,
  Select,
  Spinner,
  TextArea,
  Checkbox,
} from "../../../parts";
import { keyOf } from "../keys";
import { opened, openItem, reload } from "../state";
import { Conflict, rebase } from "./conflict";
import { type ItemDraft, discard, draftOf, type Mode } from "./item_draft";
import "./editor.css";
import { FieldRows } from "./field_rows";
import { WriteCost } from "./write_cost";
import { writeItem } from "./item_json";
import { last, remember, UNDONE, UndoNotice, undoCount } from "./undo";
import { formatCount } from "../../../format";

const MODES = [
  { value: "fields", label: "Fields" },
  { value: "plain", label: "JSON" },
  { value: "dynamodb", label: "DynamoDB JSON" },
];
const NO_FORMS: readonly EntityForm[] = [];

/** The open item, or the notice about the last write. */
export function ItemDrawer() {
  const table = currentTable.value;
  const open = opened.value;
  if (!table || open.kind === "none") return <UndoNotice inside={false} focus={false} />;
  const key = open.kind === "item" ? open.key : null;
  return <OpenItem key={JSON.stringify([table.name, key, asOf.value])} table={table} target={key} />;
}

function OpenItem({ table, target }: { table: TableSummary; target: Item | null }) {
  const { draft, restored } = useMemo(() => draftOf(table.name, target, asOf.value), []);
  const [confirming, setConfirming] = useState<"" | "delete" | "close">("");
  const [saved, setSaved] = useState(0);
  const formsQuery = useQuery("GET /items/forms", table.designed ? { table: table.name } : null);
  const forms = formsQuery.data?.forms ?? NO_FORMS;
  const formsKnown = !table.designed || formsQuery.data !== null || formsQuery.problem !== null;
  const editable = canEdit.value;
  const keys = table.keys.map((each) => each.name);

  useEffect(() => {
    if (target && !restored) void draft.load(asOf.value);
    return () => draft.stop();
  }, []);
  useEffect(() => {
    if (!target && !restored && formsKnown) draft.beginNew(forms[0] ?? null, table.keys);
  }, [formsKnown]);
  const undos = undoCount.value;
  useEffect(() => {
    // Unsaved changes stay; saving them then shows the stored item.
    if (undos && target && !draft.dirty()) void draft.load("");
  }, [undos]);

  const close = () => {
    if (editable && draft.dirty()) setConfirming("close");
    else leave();
  };
  const leave = () => {
    discard(draft);
    openItem(null);
  };
  const showOutcome = (done: WriteOutcome | null, message: string) => {
    if (!done || done.outcome === "conflict" || done.outcome === "exists") return;
    if (done.outcome === "unchanged") {
      remember("No changes to save.", null);
      if (done.current) draft.begin(done.current, done.current, draft.entity.value);
      return;
    }
    remember(message, done.undo);
    setSaved((before) => before + 1);
    void reload();
    if (!done.current) leave();
    else if (!target || JSON.stringify(keyOf(table, done.current)) !== JSON.stringify(keyOf(table, target))) {
      discard(draft);
      openItem(keyOf(table, done.current));
    } else draft.begin(done.current, done.current, draft.entity.value);
  };
  const save = async () => {
    if (!editable || draft.phase.value !== "ready") return;
    const done = await draft.save();
    showOutcome(
      done,
      done
        ? `Saved: ${formatCount(done.units, "write unit")}${done.keys?.length ? `; also updated ${done.keys.map((each) => each.attribute).join(", ")}` : ""}.`
        : "",
    );
  };
  const remove = async () => {
    setConfirming("");
    showOutcome(await draft.remove(), "Deleted.");
  };
  useCommands(
    editable
      ? [
          {
            id: "save-item",
            title: "Save item",
            keys: "mod+s",
            group: "Data",
            always: true,
            run: () => void save(),
          },
          { id: "delete-item", title: "Delete item", group: "Data", run: () => target && setConfirming("delete") },
        ]
      : [],
  );

  const view = draft.view.value;
  const entity = draft.measured.value?.entity ?? draft.entity.value ?? view?.entity ?? null;
  const form = forms.find((each) => each.entity.name === entity) ?? null;
  const phase = draft.phase.value;
  // The design's form decides how rows look and which gets focus, so wait for it.
  const ready = formsKnown && (phase === "ready" || phase === "saving");
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
                <Button kind="danger" small onClick={() => setConfirming("delete")}>
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
          {last.value ? <UndoNotice inside focus={saved > 0 || last.value.message === UNDONE} /> : null}
          {restored ? (
            <Notice title="Unsaved changes restored">You edited this item earlier without saving it.</Notice>
          ) : null}
          {draft.problem.value ? (
            <ProblemNotice
              problem={draft.problem.value}
              {...(phase === "lost" ? { again: () => void draft.load(asOf.value) } : {})}
            />
          ) : null}
          {phase === "loading" || !formsKnown ? <Spinner label="Loading the item" /> : null}
          {phase === "missing" ? (
            <Empty title="Item not found">
              {asOf.value ? "It did not exist at this point in time." : "It may have been deleted."}
            </Empty>
          ) : null}
          {ready && draft.conflict.value ? (
            <Conflict
              outcome={draft.conflict.value}
              onKeepEditing={() => (draft.conflict.value = null)}
              onUseStored={() => {
                const stored = draft.conflict.value?.current;
                if (!stored) return;
                if (target) discard(draft);
                else draft.conflict.value = null; // the new item's draft stays, and opens again with "New item"
                if (target && JSON.stringify(keyOf(table, stored)) === JSON.stringify(keyOf(table, target)))
                  draft.begin(stored, stored, draft.entity.value);
                else openItem(keyOf(table, stored));
              }}
              onApplyMine={() => {
                const stored = draft.conflict.value?.current ?? null;
                const mine = draft.item() ?? {};
                draft.begin(stored ? rebase(draft.before.value, mine, stored) : mine, stored, draft.entity.value);
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
      {confirming === "delete" && draft.before.value ? (
        <Confirm
          title={`Delete this ${entity ?? "item"}?`}
          yes="Delete"
          danger
          onYes={() => void remove()}
          onNo={() => setConfirming("")}
        >
          <p>
            Deletes the item{" "}
            {keys.map((name) => (
              <span key={name} class="mono data-editor-keyed">
                {name} = {String(Object.values(draft.before.value?.[name] ?? {})[0] ?? "")}
              </span>
            ))}{" "}
            with its {Object.keys(draft.before.value).length} attributes from <span class="mono">{table.name}</span>,
            unless it changed since you opened it.
          </p>
          <p class="muted">You can undo this.</p>
        </Confirm>
      ) : null}
      {confirming === "close" ? (
        <Confirm title="Discard changes?" yes="Discard" danger onYes={leave} onNo={() => setConfirming("")}>
          <p>You have unsaved changes.</p>
        </Confirm>
      ) : null}
    </>
  );
}

interface BodyProps {
  draft: ItemDraft;
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
  const fixed = !editable || saving; // the response would overwrite what is typed while saving
  const measured = draft.measured.value;
  const itemIssues = draft.issues.value.filter((issue) => !issue.path.length || !draft.tree.at(issue.path));
  return (
    <>
      {editable ? null : (
        <p class="small muted">
          {session.value?.read_only
            ? "The studio is in read-only mode."
            : "You are viewing an earlier point in time, which is read-only."}
        </p>
      )}
      {isNew && forms.length ? (
        <Select
          label="Entity"
          value={draft.entity.value ?? ""}
          options={[...plainOptions(forms.map((each) => each.entity.name)), { value: "", label: "Other" }]}
          onChange={(value) => draft.beginNew(forms.find((each) => each.entity.name === value) ?? null, table.keys)}
          hint={form?.entity.description.split("\n")[0]}
        />
      ) : null}
      <div class="row wrap">
        <Segmented label="Item view" options={MODES} value={mode} onChange={(value) => draft.setMode(value as Mode)} />
        {editable && form ? (
          <Checkbox
            label="Update keys automatically"
            title="Recompute key attributes from the fields, as the design declares them"
            checked={draft.keepKeys.value}
            onChange={(checked) => {
              draft.keepKeys.value = checked;
              draft.changed(true);
            }}
          />
        ) : null}
      </div>
      {measured ? <WriteCost measured={measured} stale={draft.measuring.value} writing={editable} /> : null}
      {itemIssues.map((issue) => (
        <p
          key={issue.path.join(".") + issue.text}
          class={`data-editor-issue item ${issue.severity === "warning" ? "warning" : ""}`}
          role={issue.severity === "warning" ? "status" : "alert"}
        >
          {issue.path.length ? <strong class="mono">{issue.path.join(".")}</strong> : null} {issue.text}
        </p>
      ))}
      {mode === "fields" ? (
        <FieldRows draft={draft} form={form} keys={keys} readOnly={fixed} />
      ) : (
        <TextArea
          label={mode === "plain" ? "Item as JSON" : "Item as DynamoDB JSON"}
          hideLabel
          mono
          class="data-editor-text"
          value={draft.text.value}
          readOnly={fixed}
          error={draft.syntaxError.value || null}
          hint={
            mode === "plain"
              ? "Numbers keep every digit. Binary and sets are written as $binary, $strings, $numbers and $binaries."
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
          ↑ ↓ move between rows · Alt ↑ ↓ reorder · Ctrl Enter add · Ctrl ⌫ remove · Alt Enter expand a long text · Ctrl
          S save
        </p>
      ) : null}
    </>
  );
}

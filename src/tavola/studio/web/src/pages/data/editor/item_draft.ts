// ItemDraft: the open item: as it was read, as it is edited, its size and write cost, and how it is saved.
import { signal } from "@preact/signals";
import { call, problemOf, wasAborted } from "../../../app/api";
import type {
  EntityForm,
  Item,
  ItemIssue,
  ItemView,
  ItemMeasures,
  Problem,
  WriteOutcome,
} from "../../../generated/api";
import { JsonSyntaxError } from "./exact_json";
import { readItem, type JsonFormat, ItemFormatError, writeItem } from "./item_json";
import { ItemTree } from "./tree";

export type Mode = "fields" | JsonFormat;
export type Phase = "loading" | "missing" | "ready" | "saving" | "lost";

const MEASURE_DELAY_MS = 250;

/** An item being edited, one for each opened item; unsaved changes stay until they are saved or discarded. */
export class ItemDraft {
  readonly table: string;
  readonly key: Item | null;
  readonly phase = signal<Phase>("loading");
  readonly problem = signal<Problem | null>(null);
  readonly view = signal<ItemView | null>(null);
  readonly before = signal<Item | null>(null);
  readonly mode = signal<Mode>("fields");
  readonly text = signal("");
  readonly syntaxError = signal("");
  readonly measured = signal<ItemMeasures | null>(null);
  readonly measuring = signal(false);
  readonly issues = signal<readonly ItemIssue[]>([]);
  readonly conflict = signal<WriteOutcome | null>(null);
  readonly keepKeys = signal(true);
  readonly entity = signal<string | null>(null);
  /** Counts changes of the number or order of rows. */
  readonly shape = signal(0);
  tree = new ItemTree({});
  /** The initial value of a new item, as JSON. */
  private empty = "{}";
  /** Whether the user tried to save; from then on all issues are shown, also in fields not typed in yet. */
  private saveAttempted = false;
  private hasHiddenIssues = false;
  private timer = 0;
  private controller: AbortController | null = null;

  constructor(table: string, key: Item | null) {
    this.table = table;
    this.key = key;
  }

  /** Read the item, as of a time or now. */
  async load(asOf: string): Promise<void> {
    this.problem.value = null;
    try {
      const view = await call("POST /items/get", { table: this.table, key: this.key ?? {}, as_of: asOf || null });
      this.view.value = view;
      if (!view.item) {
        this.phase.value = "missing";
        return;
      }
      this.begin(view.item, view.item, view.kind === "entity" ? view.entity : null);
    } catch (thrown) {
      this.problem.value = problemOf(thrown);
      this.phase.value = "lost";
    }
  }

  /** Start editing an item; `before` is the stored item, null for a new one. */
  begin(item: Item, before: Item | null, entity: string | null): void {
    this.before.value = before;
    this.entity.value = entity;
    this.conflict.value = null;
    this.replace(item);
    this.phase.value = "ready";
  }

  /** Start a new item of an entity, or with only the table's key. */
  beginNew(form: EntityForm | null, keys: readonly { name: string; type: string }[]): void {
    const empty = (tag: string) =>
      tag === "BOOL"
        ? { BOOL: false }
        : tag === "NULL"
          ? { NULL: true }
          : tag === "L" || tag === "SS" || tag === "NS" || tag === "BS"
            ? { [tag]: [] }
            : tag === "M"
              ? { M: {} }
              : { [tag]: "" };
    const entries = form
      ? form.entity.fields
          .filter((each) => (each.required || form.defaults[each.attribute]) && !each.lock)
          .map(({ attribute, choices, tags: [tag = "S"] }) => {
            const first = choices?.length ? { [tag]: tag === "BOOL" ? choices[0] : String(choices[0]) } : empty(tag);
            return [attribute, form.defaults[attribute] ?? first] as const;
          })
      : keys.map((each) => [each.name, empty(each.type)] as const);
    const item = Object.fromEntries(entries) as Item;
    const typed = this.typedAttributes();
    this.saveAttempted = false;
    this.empty = JSON.stringify(item);
    this.begin({ ...item, ...typed }, null, form?.entity.name ?? null);
  }

  /** Return what was typed in a new item so far; it stays when another entity is chosen. */
  private typedAttributes(): Item {
    if (this.phase.value !== "ready") return {};
    const empty = JSON.parse(this.empty) as Item;
    const untouched = (name: string, value: unknown) =>
      JSON.stringify(Object.hasOwn(empty, name) ? empty[name] : null) === JSON.stringify(value);
    return Object.fromEntries(Object.entries(this.item() ?? {}).filter(([name, value]) => !untouched(name, value)));
  }

  /** Replace the edited item. */
  replace(item: Item): void {
    this.tree = new ItemTree(item);
    this.syntaxError.value = "";
    if (this.mode.value !== "fields") this.text.value = writeItem(item, this.mode.value);
    this.changed(true);
  }

  /** Return the item as edited; null, and `syntaxError` set, if the text is not an item. */
  item(): Item | null {
    const mode = this.mode.value;
    if (mode === "fields") return this.tree.item();
    try {
      const item = readItem(this.text.value, mode);
      this.syntaxError.value = "";
      return item;
    } catch (thrown) {
      if (thrown instanceof JsonSyntaxError)
        this.syntaxError.value = `Line ${thrown.line}, column ${thrown.column}: ${thrown.message}.`;
      else if (thrown instanceof ItemFormatError) this.syntaxError.value = `${thrown.message}.`;
      else throw thrown;
      return null;
    }
  }

  /** Show the item as rows or as text; text that is not an item must be fixed first. */
  setMode(mode: Mode): void {
    const item = this.item();
    if (!item || mode === this.mode.value) return;
    const typed = this.mode.value !== "fields";
    this.mode.value = mode;
    if (mode !== "fields") this.text.value = writeItem(item, mode);
    else if (typed) this.tree = new ItemTree(item);
    this.changed(true);
  }

  /** Return whether there are unsaved changes. */
  dirty(): boolean {
    if (this.phase.value !== "ready" && this.phase.value !== "saving") return false;
    const item = this.item();
    return (
      item === null ||
      JSON.stringify(item) !== (this.before.value === null ? this.empty : JSON.stringify(this.before.value))
    );
  }

  /** Note a change, of the rows themselves if `shape`; the item is measured after a delay. */
  changed(shape = false): void {
    if (shape) this.shape.value += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.measure(), MEASURE_DELAY_MS);
  }

  async measure(): Promise<void> {
    clearTimeout(this.timer);
    this.controller?.abort();
    const item = this.item();
    if (!item) return;
    const own = this.mode.value === "fields" ? this.tree.nameIssues() : [];
    this.controller = new AbortController();
    this.measuring.value = true;
    try {
      const measured = await call("POST /items/measure", this.writeRequest(item), { signal: this.controller.signal });
      this.measured.value = measured;
      const before = JSON.stringify(this.issues.value);
      const visible = measured.issues.filter((issue) => this.saveAttempted || !this.isNotTypedYet(item, issue));
      this.hasHiddenIssues = visible.length < measured.issues.length;
      this.issues.value = [...own, ...visible];
      if (JSON.stringify(this.issues.value) !== before) this.shape.value += 1;
      this.problem.value = null;
      this.measuring.value = false;
    } catch (thrown) {
      if (wasAborted(thrown)) return;
      this.measuring.value = false;
      this.problem.value = problemOf(thrown);
    }
  }

  /** Save the item and return the outcome; null if it was not sent. */
  async save(): Promise<WriteOutcome | null> {
    const item = this.item();
    if (!item || this.phase.value !== "ready") return null;
    const nameIssues = this.mode.value === "fields" ? this.tree.nameIssues() : [];
    if (nameIssues.length) {
      this.issues.value = nameIssues;
      this.shape.value += 1;
      return null;
    }
    // Measure again if there are issues, since they may be fixed by now; an item with errors is not sent.
    this.saveAttempted = true;
    if (this.hasHiddenIssues || this.issues.value.some(isError)) await this.measure();
    if (this.issues.value.some(isError)) return null;
    return this.write(() => call("POST /items/put", this.writeRequest(item)));
  }

  /** Delete the item, unless it changed since it was read. */
  async remove(): Promise<WriteOutcome | null> {
    const before = this.before.value;
    if (!before) return null;
    return this.write(() => call("POST /items/delete", { table: this.table, before }));
  }

  stop(): void {
    clearTimeout(this.timer);
    this.controller?.abort();
  }

  /** Return whether an issue only says that a number of a new item is not typed yet. */
  private isNotTypedYet(item: Item, issue: ItemIssue): boolean {
    const name = issue.path.length === 1 ? issue.path[0] : undefined;
    return (
      this.before.value === null &&
      isError(issue) &&
      name !== undefined &&
      Object.hasOwn(item, name) &&
      item[name]?.["N"] === ""
    );
  }

  private writeRequest(item: Item) {
    return {
      table: this.table,
      item,
      before: this.before.value,
      entity: this.entity.value,
      keys: this.keepKeys.value ? ("design" as const) : ("given" as const),
    };
  }

  private async write(act: () => Promise<WriteOutcome>): Promise<WriteOutcome | null> {
    this.phase.value = "saving";
    this.problem.value = null;
    try {
      const outcome = await act();
      this.phase.value = "ready";
      if (outcome.outcome === "conflict" || outcome.outcome === "exists") this.conflict.value = outcome;
      return outcome;
    } catch (thrown) {
      this.phase.value = "ready";
      this.problem.value = problemOf(thrown);
      void this.measure();
      return null;
    }
  }
}

function isError(issue: ItemIssue): boolean {
  return issue.severity !== "warning";
}

const drafts = new Map<string, ItemDraft>();

addEventListener("beforeunload", (event) => {
  // Drafts exist only in this page: with unsaved changes the browser asks before leaving.
  if ([...drafts.values()].some((each) => each.dirty())) event.preventDefault();
});

/** Return the draft of an item, with its unsaved changes if it has any. */
export function draftOf(table: string, key: Item | null, asOf: string): { draft: ItemDraft; restored: boolean } {
  const id = JSON.stringify([table, key, asOf]);
  const existing = drafts.get(id);
  if (existing?.dirty()) return { draft: existing, restored: true };
  const draft = new ItemDraft(table, key);
  drafts.set(id, draft);
  return { draft, restored: false };
}

/** Discard a draft. */
export function discard(draft: ItemDraft): void {
  draft.stop();
  for (const [id, each] of drafts) if (each === draft) drafts.delete(id);
}

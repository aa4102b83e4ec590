// Draft: the item that is open: as it was read, as it is being typed, what it weighs, and how it is saved.
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
import { JsonMistake } from "./exact_json";
import { readItem, type Spelling, SpellingMistake, writeItem } from "./spellings";
import { ItemTree } from "./tree";

export type Mode = "fields" | Spelling;
export type Phase = "loading" | "missing" | "ready" | "saving" | "lost";

const MEASURE_DELAY_MS = 250;

/** An item under somebody's hands. One for each item that is opened; what was typed stays until it is saved or dropped. */
export class Draft {
  readonly table: string;
  readonly key: Item | null;
  readonly phase = signal<Phase>("loading");
  readonly problem = signal<Problem | null>(null);
  readonly view = signal<ItemView | null>(null);
  readonly before = signal<Item | null>(null);
  readonly mode = signal<Mode>("fields");
  readonly text = signal("");
  readonly mistake = signal("");
  readonly measured = signal<ItemMeasures | null>(null);
  readonly measuring = signal(false);
  readonly flaws = signal<readonly ItemIssue[]>([]);
  readonly conflict = signal<WriteOutcome | null>(null);
  readonly keepKeys = signal(true);
  readonly entity = signal<string | null>(null);
  /** Counts every change of the rows' order and number. */
  readonly shape = signal(0);
  tree = new ItemTree({});
  /** A new item before anybody typed in it. */
  private empty = "{}";
  /** Somebody tried to save it: from then on all that is wrong is told, also where nothing was typed yet. */
  private tried = false;
  private untold = false;
  private timer = 0;
  private giving: AbortController | null = null;

  constructor(table: string, key: Item | null) {
    this.table = table;
    this.key = key;
  }

  /** Read the item, at a moment or now. */
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

  /** Begin anew from an item; `before` is what stands, null for a new one. */
  begin(item: Item, before: Item | null, entity: string | null): void {
    this.before.value = before;
    this.entity.value = entity;
    this.conflict.value = null;
    this.put(item);
    this.phase.value = "ready";
  }

  /** Begin a new item of an entity, or with the table's key alone. */
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
      ? form.fields
          .filter((each) => (each.required || each.default) && !each.lock)
          .map(
            (each) =>
              [
                each.attribute,
                each.default ??
                  (each.choices?.length ? { [each.tags[0] ?? "S"]: each.choices[0] } : empty(each.tags[0] ?? "S")),
              ] as const,
          )
      : keys.map((each) => [each.name, empty(each.type)] as const);
    const item = Object.fromEntries(entries) as Item;
    const typed = this.typed();
    this.tried = false;
    this.empty = JSON.stringify(item);
    this.begin({ ...item, ...typed }, null, form?.name ?? null);
  }

  /** Return what was typed in a new item so far: it stays when the item becomes one of another entity. */
  private typed(): Item {
    if (this.phase.value !== "ready") return {};
    const empty = JSON.parse(this.empty) as Item;
    const untouched = (name: string, value: unknown) =>
      JSON.stringify(Object.hasOwn(empty, name) ? empty[name] : null) === JSON.stringify(value);
    return Object.fromEntries(Object.entries(this.item() ?? {}).filter(([name, value]) => !untouched(name, value)));
  }

  /** Put another item in the place of what was typed. */
  put(item: Item): void {
    this.tree = new ItemTree(item);
    this.mistake.value = "";
    if (this.mode.value !== "fields") this.text.value = writeItem(item, this.mode.value);
    this.changed(true);
  }

  /** Return the item as it is typed; null, and the mistake told, where the text is none. */
  item(): Item | null {
    const mode = this.mode.value;
    if (mode === "fields") return this.tree.item();
    try {
      const item = readItem(this.text.value, mode);
      this.mistake.value = "";
      return item;
    } catch (thrown) {
      if (thrown instanceof JsonMistake)
        this.mistake.value = `Line ${thrown.line}, column ${thrown.column}: ${thrown.message}.`;
      else if (thrown instanceof SpellingMistake) this.mistake.value = `${thrown.message}.`;
      else throw thrown;
      return null;
    }
  }

  /** Show the item as rows or as text; a text that is no item stays until it is mended. */
  turn(mode: Mode): void {
    const item = this.item();
    if (!item || mode === this.mode.value) return;
    const typed = this.mode.value !== "fields";
    this.mode.value = mode;
    if (mode !== "fields") this.text.value = writeItem(item, mode);
    else if (typed) this.tree = new ItemTree(item);
    this.changed(true);
  }

  /** Whether something was typed that is not saved. */
  dirty(): boolean {
    if (this.phase.value !== "ready" && this.phase.value !== "saving") return false;
    const item = this.item();
    return (
      item === null ||
      JSON.stringify(item) !== (this.before.value === null ? this.empty : JSON.stringify(this.before.value))
    );
  }

  /** Somebody changed something: the rows, if `shape`; measure soon. */
  changed(shape = false): void {
    if (shape) this.shape.value += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.measure(), MEASURE_DELAY_MS);
  }

  async measure(): Promise<void> {
    clearTimeout(this.timer);
    this.giving?.abort();
    const item = this.item();
    if (!item) return;
    const own = this.mode.value === "fields" ? this.tree.repeated() : [];
    this.giving = new AbortController();
    this.measuring.value = true;
    try {
      const measured = await call("POST /items/measure", this.asked(item), { signal: this.giving.signal });
      this.measured.value = measured;
      const before = JSON.stringify(this.flaws.value);
      const told = measured.issues.filter((flaw) => this.tried || !this.untyped(item, flaw));
      this.untold = told.length < measured.issues.length;
      this.flaws.value = [...own, ...told];
      if (JSON.stringify(this.flaws.value) !== before) this.shape.value += 1;
      this.problem.value = null;
      this.measuring.value = false;
    } catch (thrown) {
      if (wasAborted(thrown)) return;
      this.measuring.value = false;
      this.problem.value = problemOf(thrown);
    }
  }

  /** Save what was typed; return what became of it, null where it could not even be asked. */
  async save(): Promise<WriteOutcome | null> {
    const item = this.item();
    if (!item || this.phase.value !== "ready") return null;
    const repeated = this.mode.value === "fields" ? this.tree.repeated() : [];
    if (repeated.length) {
      this.flaws.value = repeated;
      this.shape.value += 1;
      return null;
    }
    // What is marked as wrong is looked at once more, for it may be mended by now; what still is wrong is not sent.
    this.tried = true;
    if (this.untold || this.flaws.value.some(isError)) await this.measure();
    if (this.flaws.value.some(isError)) return null;
    return this.write(() => call("POST /items/put", this.asked(item)));
  }

  /** Delete the item, if it still is what was read. */
  async remove(): Promise<WriteOutcome | null> {
    const before = this.before.value;
    if (!before) return null;
    return this.write(() => call("POST /items/delete", { table: this.table, before }));
  }

  stop(): void {
    clearTimeout(this.timer);
    this.giving?.abort();
  }

  /** Tell whether a flaw is only that a number of a new item was not typed yet. */
  private untyped(item: Item, flaw: ItemIssue): boolean {
    const name = flaw.path.length === 1 ? flaw.path[0] : undefined;
    return (
      this.before.value === null &&
      isError(flaw) &&
      name !== undefined &&
      Object.hasOwn(item, name) &&
      item[name]?.["N"] === ""
    );
  }

  private asked(item: Item) {
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
      const done = await act();
      this.phase.value = "ready";
      if (done.outcome === "conflict" || done.outcome === "exists") this.conflict.value = done;
      return done;
    } catch (thrown) {
      this.phase.value = "ready";
      this.problem.value = problemOf(thrown);
      void this.measure();
      return null;
    }
  }
}

function isError(flaw: ItemIssue): boolean {
  return flaw.severity !== "warning";
}

const kept = new Map<string, Draft>();

addEventListener("beforeunload", (event) => {
  // Drafts live in the page alone: leaving it with something unsaved is asked about by the browser.
  if ([...kept.values()].some((each) => each.dirty())) event.preventDefault();
});

/** Return the draft of an item; one that was typed in and not saved is still there. */
export function draftOf(table: string, key: Item | null, asOf: string): { draft: Draft; kept: boolean } {
  const id = JSON.stringify([table, key, asOf]);
  const found = kept.get(id);
  if (found?.dirty()) return { draft: found, kept: true };
  const draft = new Draft(table, key);
  kept.set(id, draft);
  return { draft, kept: false };
}

/** Forget what was typed. */
export function drop(draft: Draft): void {
  draft.stop();
  for (const [id, each] of kept) if (each === draft) kept.delete(id);
}

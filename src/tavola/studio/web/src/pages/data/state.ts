// State: what the data page shows: the question in the URL, the rows read so far, what is selected, what is open.
import { batch, computed, effect, signal } from "@preact/signals";
import { call, problemOf, wasAborted } from "../../app/api";
import { asOf } from "../../app/as_of";
import { go, route } from "../../app/router";
import { currentTable } from "../../app/session";
import type { QueryCondition, PlannedQuery, ItemQuery, Item, Problem } from "../../generated/api";
import { type Group, joinGroups, ungrouped } from "./groups";
import { isKeyed, keyId, keyOf, wayOf } from "./keys";
import { type Row, rowsOf } from "./rows";

const PAGE_ROWS = 1_000;
const FIRST_ROWS = 400; // of the first page after the studio was opened: what a screen shows is there sooner
let first = true;
const RELOAD_ROWS_MAX = 5_000;

/** How far a reading has come. */
export interface Reading {
  /** `asking`: it is a Scan of more than 1 MB, and nobody has said yes yet. */
  readonly phase: "idle" | "planning" | "asking" | "reading";
  /** Reads on by itself until the end or until somebody stops it. */
  readonly onward: boolean;
  readonly scanned: number;
  readonly units: number;
  readonly total: number;
  readonly requests: number;
  readonly cursor: Item | string | null;
  /** Nothing is left to read. */
  readonly ended: boolean;
  readonly problem: Problem | null;
  readonly plan: PlannedQuery | null;
  /** When the last page came, for measuring how long it takes to show. */
  readonly arrived: number;
}

const NOTHING: Reading = {
  phase: "idle",
  onward: false,
  scanned: 0,
  units: 0,
  total: 0,
  requests: 0,
  cursor: null,
  ended: false,
  problem: null,
  plan: null,
  arrived: 0,
};

export const rows = signal<readonly Row[]>([]);
export const groups = signal<readonly Group[]>([]);
export const reading = signal<Reading>(NOTHING);

/** The keys of selected rows by their text; see `keyId`. */
export const selection = signal<ReadonlyMap<string, Item>>(new Map());

/** The index that a tab is pointed at, whose members light up; null: none. */
export const pointedIndex = signal<string | null>(null);

/** What the query bar and the URL ask. Null while there is no table. */
export const question = computed<ItemQuery | null>(() => {
  const table = currentTable.value;
  if (!table || table.status === "MISSING") return null;
  const { index, q, desc, strong, here } = route.value.params;
  return {
    table: table.name,
    index: index || null,
    conditions: parseConditions(q ?? ""),
    choose: here !== "yes",
    consistent: strong === "yes",
    descending: desc === "yes",
    as_of: asOf.value || null,
  };
});

/** The PartiQL statement in the URL; "" where conditions are asked. */
export const statement = computed(() => route.value.params["sql"] ?? "");

/** Return the conditions that a text of the URL holds; what cannot be read asks nothing. */
export function parseConditions(text: string): readonly QueryCondition[] {
  if (!text) return [];
  try {
    const told = JSON.parse(text) as unknown;
    if (!Array.isArray(told)) return [];
    return told
      .filter(
        (each): each is [string, QueryCondition["operator"], ...QueryCondition["values"][]] =>
          Array.isArray(each) && typeof each[0] === "string",
      )
      .map(([attribute, operator, ...values]) => ({ attribute, operator, values }) as unknown as QueryCondition);
  } catch {
    return [];
  }
}

/** Return conditions as the text of the URL. */
export function writeConditions(conditions: readonly QueryCondition[]): string {
  return conditions.length
    ? JSON.stringify(conditions.map((each) => [each.attribute, each.operator, ...(each.values ?? [])]))
    : "";
}

/** What is open beside the grid: nothing, a new item, or the item of a key. */
export const opened = computed<{ kind: "none" } | { kind: "new" } | { kind: "item"; key: Item }>(() => {
  const told = route.value.params["item"] ?? "";
  if (!told) return { kind: "none" };
  if (told === "new") return { kind: "new" };
  try {
    return { kind: "item", key: JSON.parse(told) as Item };
  } catch {
    return { kind: "none" };
  }
});

/** Open the item of a key; null closes it, "new" opens an empty one. */
export function openItem(key: Item | "new" | null): void {
  go({ params: { item: key === null ? null : key === "new" ? "new" : JSON.stringify(key) } });
}

/** Return a row of the open table by its key, if it was read. */
export function rowOf(key: Item): Row | undefined {
  const table = currentTable.value;
  if (!table) return undefined;
  const wanted = keyId(table, key);
  return rows.value.find((row) => keyId(table, row.item) === wanted);
}

/** Select rows, or take them out of the selection. */
export function select(chosen: readonly Row[], on: boolean): void {
  const table = currentTable.value;
  if (!table) return;
  const next = new Map(selection.value);
  for (const row of chosen) {
    if (!isKeyed(table, row.item)) continue;
    const id = keyId(table, row.item);
    if (on) next.set(id, keyOf(table, row.item));
    else next.delete(id);
  }
  selection.value = next;
}

export function clearSelection(): void {
  if (selection.value.size) selection.value = new Map();
}

let giving: AbortController | null = null;

/** Does again what failed; so a page that did not come is asked for again, and nothing that was read is lost. */
export let tryAgain: () => void = () => undefined;

function begin(again: () => void): AbortSignal {
  giving?.abort();
  giving = new AbortController();
  tryAgain = again;
  return giving.signal;
}

function failed(thrown: unknown): void {
  if (!wasAborted(thrown))
    reading.value = { ...reading.value, phase: "idle", onward: false, problem: problemOf(thrown) };
}

/** Ask what the URL asks from the start: the plan, then the first page, or a question where the Scan is large. */
export async function start(options: { agreed?: boolean } = {}): Promise<void> {
  const asked = question.value;
  const stop = begin(() => void start(options));
  rows.value = [];
  groups.value = [];
  reading.value = { ...NOTHING, phase: asked ? "planning" : "idle" };
  if (!asked) return;
  try {
    if (statement.value) {
      const plan = await call("POST /browse/statement-plan", statementAsked(asked, statement.value), { signal: stop });
      reading.value = {
        ...reading.value,
        plan,
        ...(plan.asks_first && !options.agreed ? { phase: "asking" as const } : {}),
      };
      if (reading.value.phase !== "asking") await next(stop);
      return;
    }
    const planning = call("POST /browse/plan", asked, { signal: stop }).then((plan) => {
      reading.value = { ...reading.value, plan };
      return plan;
    });
    // Without a condition one page is read, never more than 1 MB, so it need not wait for the plan; a filter may need the
    // whole table for its first hit.
    const waits = (asked.conditions ?? []).length > 0;
    if (waits && (await planning).asks_first && !options.agreed) {
      reading.value = { ...reading.value, phase: "asking" };
      return;
    }
    await Promise.all([planning, next(stop)]);
  } catch (thrown) {
    failed(thrown);
  }
}

/** Return a statement as the API is asked for its plan. */
export function statementAsked(asked: ItemQuery, text: string) {
  return { table: asked.table, statement: text, consistent: asked.consistent ?? false, as_of: asked.as_of ?? null };
}

/** What was read so far: pages are added to it, and it is shown when it is put into the signals. */
interface Read {
  readonly rows: readonly Row[];
  readonly groups: readonly Group[];
  readonly reading: Reading;
}

/** Ask for the page after what was read, and return both together. */
async function readAfter(before: Read, stop: AbortSignal): Promise<Read> {
  const asked = question.value;
  if (!asked) return before;
  const { cursor, scanned, units, requests } = before.reading;
  if (statement.value) {
    const page = await call(
      "POST /browse/statement",
      {
        table: asked.table,
        statement: statement.value,
        next_token: cursor as string | null,
        limit: PAGE_ROWS,
        consistent: asked.consistent ?? false,
        as_of: asked.as_of ?? null,
      },
      { signal: stop },
    );
    const all = [...before.rows, ...rowsOf(page)];
    return {
      rows: all,
      groups: ungrouped(all),
      reading: {
        ...before.reading,
        scanned: scanned + page.rows.length,
        units: units + page.units,
        requests: requests + 1,
        cursor: page.next_token,
        ended: page.next_token === null,
        problem: null,
      },
    };
  }
  const limit = first ? FIRST_ROWS : PAGE_ROWS;
  first = false;
  const page = await call(
    "POST /browse/page",
    { question: asked, cursor: cursor as Item | null, limit },
    { signal: stop },
  );
  const all = [...before.rows, ...rowsOf(page)];
  const table = currentTable.value;
  const hash = table ? wayOf(table, page.index ?? "").hash.map((each) => each.name) : [];
  return {
    rows: all,
    groups: joinGroups(before.groups, page, all, before.rows.length, hash),
    reading: {
      ...before.reading,
      scanned: scanned + page.scanned,
      units: units + page.units,
      total: page.total,
      requests: requests + 1,
      cursor: page.cursor,
      ended: page.cursor === null,
      problem: null,
    },
  };
}

function show(read: Read): void {
  batch(() => {
    rows.value = read.rows;
    groups.value = read.groups;
    const onward = reading.value.onward && !read.reading.ended;
    const plan = read.reading.plan ?? reading.value.plan; // it may have come while the page was read
    reading.value = { ...read.reading, plan, onward, phase: onward ? "reading" : "idle", arrived: performance.now() };
  });
}

async function next(stop: AbortSignal): Promise<void> {
  reading.value = { ...reading.value, phase: "reading", problem: null };
  show(await readAfter({ rows: rows.value, groups: groups.value, reading: reading.value }, stop));
}

/** Read one page more. */
export async function readMore(): Promise<void> {
  if (reading.value.phase !== "idle" || reading.value.ended || reading.value.problem) return;
  try {
    await next(begin(() => void readAgain()));
  } catch (thrown) {
    failed(thrown);
  }
}

/** Ask again for a page that did not come. */
function readAgain(): Promise<void> {
  reading.value = { ...reading.value, problem: null };
  return readMore();
}

/** Read on, page after page, until the end or until `stopReading`. */
export async function readOn(): Promise<void> {
  if (reading.value.ended) return;
  const stop = begin(() => void readOn());
  reading.value = { ...reading.value, onward: true, phase: "reading", problem: null };
  try {
    while (reading.value.onward && !reading.value.ended && !stop.aborted) await next(stop);
  } catch (thrown) {
    failed(thrown);
  }
}

export function stopReading(): void {
  giving?.abort();
  reading.value = { ...reading.value, onward: false, phase: "idle" };
}

/**
 * Read what is shown again, as it is now: as many rows as there were, up to a few thousand, and in no more requests: what a
 * filter found once may be gone, and nobody agreed to look for it to the end of the table. What is there stays until then.
 */
export async function reload(): Promise<void> {
  const asked = question.value;
  if (!asked || reading.value.phase === "asking") return;
  const stop = begin(() => void reload());
  const wanted = Math.min(rows.value.length, RELOAD_ROWS_MAX);
  const requests = Math.max(1, reading.value.requests);
  reading.value = { ...reading.value, onward: false, phase: "reading" };
  try {
    const plan = statement.value ? null : await call("POST /browse/plan", asked, { signal: stop });
    let read: Read = { rows: [], groups: [], reading: { ...NOTHING, plan } };
    do read = await readAfter(read, stop);
    while (read.rows.length < wanted && !read.reading.ended && read.reading.requests < requests);
    show(read);
  } catch (thrown) {
    failed(thrown);
  }
}

/** Follow the URL while the page is there: another question is asked anew, another item alone is not. Returns the end of it. */
export function followQuestion(): () => void {
  let asked = "";
  return effect(() => {
    const now = JSON.stringify([question.value, statement.value]);
    if (now === asked) return;
    asked = now;
    // What is read and written below must not make this effect depend on it.
    queueMicrotask(() => {
      clearSelection();
      void start();
    });
  });
}

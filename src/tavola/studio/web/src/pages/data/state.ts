// State: the query in the URL, the rows read so far, the selection and the open item.
import { batch, computed, effect, signal } from "@preact/signals";
import { call, problemOf, wasAborted } from "../../app/api";
import { asOf } from "../../app/as_of";
import { go, route } from "../../app/router";
import { currentTable } from "../../app/session";
import type { QueryCondition, PlannedQuery, ItemQuery, Item, Problem } from "../../generated/api";
import { type Group, joinGroups, ungrouped } from "./groups";
import { hasKey, keyId, keyOf, accessKey } from "./keys";
import { type Row, rowsOf } from "./rows";

const PAGE_ROWS = 1_000;
const FIRST_ROWS = 400; // of the first page after the studio was opened: enough for a screen, and sooner there
let first = true;
const RELOAD_ROWS_MAX = 5_000;

/** The progress of reading. */
export interface Reading {
  /** `confirming`: it is a Scan of more than 1 MB that the user has not confirmed. */
  readonly phase: "idle" | "planning" | "confirming" | "reading";
  /** Loads page after page until the end or until it is stopped. */
  readonly loadingAll: boolean;
  readonly scanned: number;
  readonly units: number;
  readonly total: number;
  readonly requests: number;
  readonly cursor: Item | string | null;
  /** Nothing is left to read. */
  readonly ended: boolean;
  readonly problem: Problem | null;
  readonly plan: PlannedQuery | null;
  /** When the last page arrived, to measure how long rendering takes. */
  readonly arrived: number;
}

const NOT_READ: Reading = {
  phase: "idle",
  loadingAll: false,
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
export const reading = signal<Reading>(NOT_READ);

/** The keys of selected rows by their text; see `keyId`. */
export const selection = signal<ReadonlyMap<string, Item>>(new Map());

/** The index whose tab is hovered over, whose items are highlighted; null for none. */
export const hoveredIndex = signal<string | null>(null);

/** The query in the URL; null without a table. */
export const currentQuery = computed<ItemQuery | null>(() => {
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

/** The PartiQL statement in the URL; "" if it has conditions. */
export const statement = computed(() => route.value.params["sql"] ?? "");

/** Return the conditions in a parameter of the URL; invalid text has none. */
export function parseConditions(text: string): readonly QueryCondition[] {
  if (!text) return [];
  try {
    const list = JSON.parse(text) as unknown;
    if (!Array.isArray(list)) return [];
    return list
      .filter(
        (each): each is [string, QueryCondition["operator"], ...QueryCondition["values"][]] =>
          Array.isArray(each) && typeof each[0] === "string",
      )
      .map(([attribute, operator, ...values]) => ({ attribute, operator, values }) as unknown as QueryCondition);
  } catch {
    return [];
  }
}

/** Return conditions as a parameter of the URL. */
export function writeConditions(conditions: readonly QueryCondition[]): string {
  return conditions.length
    ? JSON.stringify(conditions.map((each) => [each.attribute, each.operator, ...(each.values ?? [])]))
    : "";
}

/** What is open beside the grid: nothing, a new item, or the item with a key. */
export const opened = computed<{ kind: "none" } | { kind: "new" } | { kind: "item"; key: Item }>(() => {
  const item = route.value.params["item"] ?? "";
  if (!item) return { kind: "none" };
  if (item === "new") return { kind: "new" };
  try {
    return { kind: "item", key: JSON.parse(item) as Item };
  } catch {
    return { kind: "none" };
  }
});

/** Open the item with a key; null closes it, "new" opens an empty one. */
export function openItem(key: Item | "new" | null): void {
  go({ params: { item: key === null ? null : key === "new" ? "new" : JSON.stringify(key) } });
}

/** Select or deselect rows. */
export function select(chosen: readonly Row[], on: boolean): void {
  const table = currentTable.value;
  if (!table) return;
  const next = new Map(selection.value);
  for (const row of chosen) {
    if (!hasKey(table, row.item)) continue;
    const id = keyId(table, row.item);
    if (on) next.set(id, keyOf(table, row.item));
    else next.delete(id);
  }
  selection.value = next;
}

export function clearSelection(): void {
  if (selection.value.size) selection.value = new Map();
}

let controller: AbortController | null = null;

/** Repeats the step that failed, for instance the missing page, so that nothing already read is lost. */
export let retry: () => void = () => undefined;

function beginRead(again: () => void): AbortSignal {
  controller?.abort();
  controller = new AbortController();
  retry = again;
  return controller.signal;
}

function showProblem(thrown: unknown): void {
  if (!wasAborted(thrown))
    reading.value = { ...reading.value, phase: "idle", loadingAll: false, problem: problemOf(thrown) };
}

/** Run the query in the URL from the start: the plan, then the first page, or a confirmation if the Scan is large. */
export async function start(options: { confirmed?: boolean } = {}): Promise<void> {
  const query = currentQuery.value;
  const stop = beginRead(() => void start(options));
  rows.value = [];
  groups.value = [];
  reading.value = { ...NOT_READ, phase: query ? "planning" : "idle" };
  if (!query) return;
  try {
    if (statement.value) {
      const plan = await call("POST /browse/statement-plan", statementRequest(query, statement.value), {
        signal: stop,
      });
      reading.value = {
        ...reading.value,
        plan,
        ...(plan.needs_confirmation && !options.confirmed ? { phase: "confirming" as const } : {}),
      };
      if (reading.value.phase !== "confirming") await readNext(stop);
      return;
    }
    const planning = call("POST /browse/plan", query, { signal: stop }).then((plan) => {
      reading.value = { ...reading.value, plan };
      return plan;
    });
    // Without conditions one page is read, at most 1 MB, so it need not wait for the plan; a filter may read the whole
    // table for its first match.
    const needsPlan = (query.conditions ?? []).length > 0;
    if (needsPlan && (await planning).needs_confirmation && !options.confirmed) {
      reading.value = { ...reading.value, phase: "confirming" };
      return;
    }
    await Promise.all([planning, readNext(stop)]);
  } catch (thrown) {
    showProblem(thrown);
  }
}

/** Return the request for the plan of a statement. */
export function statementRequest(query: ItemQuery, text: string) {
  return { table: query.table, statement: text, consistent: query.consistent ?? false, as_of: query.as_of ?? null };
}

/** What was read so far. Pages are added to it; `show` publishes it to the signals. */
interface Read {
  readonly rows: readonly Row[];
  readonly groups: readonly Group[];
  readonly reading: Reading;
}

/** Read the next page and return it together with what was read before. */
async function readAfter(before: Read, stop: AbortSignal): Promise<Read> {
  const query = currentQuery.value;
  if (!query) return before;
  const { cursor, scanned, units, requests } = before.reading;
  if (statement.value) {
    const page = await call(
      "POST /browse/statement",
      {
        table: query.table,
        statement: statement.value,
        next_token: cursor as string | null,
        limit: PAGE_ROWS,
        consistent: query.consistent ?? false,
        as_of: query.as_of ?? null,
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
    { question: query, cursor: cursor as Item | null, limit },
    { signal: stop },
  );
  const all = [...before.rows, ...rowsOf(page)];
  const table = currentTable.value;
  const hash = table ? accessKey(table, page.index ?? "").hash.map((each) => each.name) : [];
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
    const loadingAll = reading.value.loadingAll && !read.reading.ended;
    const plan = read.reading.plan ?? reading.value.plan; // it may have arrived while the page was read
    reading.value = {
      ...read.reading,
      plan,
      loadingAll,
      phase: loadingAll ? "reading" : "idle",
      arrived: performance.now(),
    };
  });
}

async function readNext(stop: AbortSignal): Promise<void> {
  reading.value = { ...reading.value, phase: "reading", problem: null };
  show(await readAfter({ rows: rows.value, groups: groups.value, reading: reading.value }, stop));
}

/** Read the next page. */
export async function readMore(): Promise<void> {
  if (reading.value.phase !== "idle" || reading.value.ended || reading.value.problem) return;
  try {
    await readNext(beginRead(() => void readAgain()));
  } catch (thrown) {
    showProblem(thrown);
  }
}

/** Read the page that failed again. */
function readAgain(): Promise<void> {
  reading.value = { ...reading.value, problem: null };
  return readMore();
}

/** Read page after page until the end or `stopReading`. */
export async function readAll(): Promise<void> {
  if (reading.value.ended) return;
  const stop = beginRead(() => void readAll());
  reading.value = { ...reading.value, loadingAll: true, phase: "reading", problem: null };
  try {
    while (reading.value.loadingAll && !reading.value.ended && !stop.aborted) await readNext(stop);
  } catch (thrown) {
    showProblem(thrown);
  }
}

export function stopReading(): void {
  controller?.abort();
  reading.value = { ...reading.value, loadingAll: false, phase: "idle" };
}

/**
 * Read the shown rows again: as many as there were, up to a few thousand, in no more requests than before, since what a filter
 * matched may be gone and the user did not confirm a search to the end of the table. The old rows stay until then.
 */
export async function reload(): Promise<void> {
  const query = currentQuery.value;
  if (!query || reading.value.phase === "confirming") return;
  const stop = beginRead(() => void reload());
  const rowsWanted = Math.min(rows.value.length, RELOAD_ROWS_MAX);
  const requests = Math.max(1, reading.value.requests);
  reading.value = { ...reading.value, loadingAll: false, phase: "reading" };
  try {
    const plan = statement.value ? null : await call("POST /browse/plan", query, { signal: stop });
    let read: Read = { rows: [], groups: [], reading: { ...NOT_READ, plan } };
    do read = await readAfter(read, stop);
    while (read.rows.length < rowsWanted && !read.reading.ended && read.reading.requests < requests);
    show(read);
  } catch (thrown) {
    showProblem(thrown);
  }
}

/** Run the query whenever the URL changes it, but not for another open item. Return a function that stops this. */
export function followQuery(): () => void {
  let last = "";
  return effect(() => {
    const now = JSON.stringify([currentQuery.value, statement.value]);
    if (now === last) return;
    last = now;
    // In a microtask, so that the effect does not depend on the signals that this reads and writes.
    queueMicrotask(() => {
      clearSelection();
      void start();
    });
  });
}

// Session: the endpoint, the designs and the tables; loaded once, and again when tables change.
import { computed, effect, signal } from "@preact/signals";
import type { Problem, StudioSession, TableSummary } from "../generated/api";
import { setColourNumbers } from "../parts/display";
import { call, problemOf } from "./api";
import { asOf } from "./as_of";
import { route } from "./router";

export const session = signal<StudioSession | null>(null);
export const sessionProblem = signal<Problem | null>(null);

/** Load the session again. */
export async function refreshSession(): Promise<void> {
  try {
    session.value = await call("GET /session", { table: route.value.table });
    sessionProblem.value = null;
  } catch (thrown) {
    sessionProblem.value = problemOf(thrown);
  }
}

/** The table in the URL, else the one to start with: the largest of the first design. */
export const currentTable = computed<TableSummary | null>(() => {
  const tables = session.value?.tables ?? [];
  const named = route.value.table;
  if (named) return tables.find((table) => table.name === named) ?? null;
  return tables.find((table) => table.name === session.value?.first) ?? tables[0] ?? null;
});

/** Reload once if the URL names a table that is not listed: it is new, or the list is partial. */
let searchedFor = "";
effect(() => {
  const named = route.value.table;
  if (!named || named === searchedFor || session.value === null || currentTable.value !== null) return;
  searchedFor = named;
  void refreshSession();
});

/** Whether items can be changed: not in read-only mode, and not at an earlier point in time. */
export const canEdit = computed(() => !(session.value?.read_only ?? true) && asOf.value === "");

/** Number the entities' colours by their order in the design; the current table's design comes first where names repeat. */
effect(() => {
  const tables = session.value?.tables ?? [];
  const own = currentTable.value;
  const numbers = new Map<string, number>();
  const counts = new Map<string, number>();
  for (const table of [...tables.filter((each) => own && each.design === own.design), ...tables]) {
    for (const entity of table.entities) {
      if (numbers.has(entity)) continue;
      const number = counts.get(table.design ?? "") ?? 0;
      counts.set(table.design ?? "", number + 1);
      numbers.set(entity, number);
    }
  }
  setColourNumbers(numbers);
});

// Session: what the studio is and which tables there are; asked once, and again when somebody changes tables.
import { computed, effect, signal } from "@preact/signals";
import type { Problem, Session, TableSummary } from "../generated/api";
import { orderColours } from "../parts/figures";
import { call, problemOf } from "./api";
import { asOf } from "./as_of";
import { route } from "./router";

export const session = signal<Session | null>(null);
export const sessionProblem = signal<Problem | null>(null);

/** Ask again what there is. */
export async function refreshSession(): Promise<void> {
  try {
    session.value = await call("GET /session", { table: route.value.table });
    sessionProblem.value = null;
  } catch (thrown) {
    sessionProblem.value = problemOf(thrown);
  }
}

/** The table that the URL names; else the one to begin with: the largest of the first design. */
export const currentTable = computed<TableSummary | null>(() => {
  const tables = session.value?.tables ?? [];
  const named = route.value.table;
  if (named) return tables.find((table) => table.name === named) ?? null;
  return tables.find((table) => table.name === session.value?.first) ?? tables[0] ?? null;
});

/** Ask again, once, where the URL names a table that was not told of: it is new, or one of more than are listed. */
let lookedFor = "";
effect(() => {
  const named = route.value.table;
  if (!named || named === lookedFor || session.value === null || currentTable.value !== null) return;
  lookedFor = named;
  void refreshSession();
});

/** Whether something may be changed: not in read-only mode, and not in the past. */
export const mayChange = computed(() => !(session.value?.read_only ?? true) && asOf.value === "");

/** Entities have colours by their order in the design, those of the open table's design before others of the same name. */
effect(() => {
  const told = session.value?.tables ?? [];
  const own = currentTable.value;
  const places = new Map<string, number>();
  const counts = new Map<string, number>();
  for (const table of [...told.filter((each) => own && each.design === own.design), ...told]) {
    for (const entity of table.entities) {
      if (places.has(entity)) continue;
      const place = counts.get(table.design ?? "") ?? 0;
      counts.set(table.design ?? "", place + 1);
      places.set(entity, place);
    }
  }
  orderColours(places);
});

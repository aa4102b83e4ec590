// Filters: the time window and filters that the tabs of the page share, kept in the URL.
import { go, route } from "../../app/router";

export const WINDOWS = [
  { value: "60", label: "1 min", long: "minute" },
  { value: "600", label: "10 min", long: "10 minutes" },
  { value: "3600", label: "1 h", long: "hour" },
  { value: "21600", label: "6 h", long: "6 hours" },
] as const;

export const TARGETS_SHOWN = 4; // the busiest tables and indexes, which have a chart
export const TARGETS_MAX = 12;

export interface Filters {
  readonly window_s: number;
  readonly table: string;
  readonly operation: string;
}

export function useFilters(): Filters {
  const { w = "600", t = "", op = "" } = route.value.params;
  const known = WINDOWS.some((each) => each.value === w) ? w : "600";
  return { window_s: Number(known), table: t, operation: op };
}

export function setFilter(change: { w?: string; t?: string; op?: string }): void {
  go({ params: { ...change, ...(change.w === "600" ? { w: null } : {}) } });
}

/** Return a window as part of a sentence. */
export function windowText(seconds: number): string {
  return `the last ${WINDOWS.find((each) => each.value === String(seconds))?.long ?? `${seconds} seconds`}`;
}

/** Return whether a name stands for all that are not counted separately. */
export function isOthers(name: string): boolean {
  return name === "(others)";
}

/** Return the name of a table or index. */
export function targetName(table: string, index: string | null | undefined): string {
  return index ? `${table} / ${index}` : table;
}

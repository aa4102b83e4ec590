// Asked: the window and the filters that every tab of operations shares, kept in the URL.
import { go, route } from "../../app/router";

export const WINDOWS = [
  { value: "60", label: "1 m", long: "minute" },
  { value: "600", label: "10 m", long: "10 minutes" },
  { value: "3600", label: "1 h", long: "hour" },
  { value: "21600", label: "6 h", long: "6 hours" },
] as const;

export const PLACES = 4; // tables and indexes that are charted, the busiest
export const PLACES_MAX = 12; // where all are asked for

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

/** Return a window as a sentence calls it. */
export function windowText(seconds: number): string {
  return `the last ${WINDOWS.find((each) => each.value === String(seconds))?.long ?? `${seconds} seconds`}`;
}

/** Return a moment as a clock shows it. */
export function clock(epochS: number): string {
  return new Date(epochS * 1000).toLocaleTimeString("en-GB");
}

/** Tell whether a name stands for all that are not told apart. */
export function isOthers(name: string): boolean {
  return name === "(others)";
}

/** Return a table with its index, as one name. */
export function placeName(table: string, index: string | null | undefined): string {
  return index ? `${table} / ${index}` : table;
}

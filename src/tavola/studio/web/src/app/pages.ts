// Pages: the list of pages, each in a module that is loaded when it is first shown.
import type { ComponentType } from "preact";

export interface PageEntry {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly keys: string;
  /** An SVG path on a grid of 20 by 20. */
  readonly icon: string;
  /** Whether the page shows one table. The URL keeps the table on every page. */
  readonly ofTable: boolean;
  readonly load: () => Promise<{ default: ComponentType }>;
}

const modules = import.meta.glob<{ default: ComponentType }>("../pages/*/index.tsx");

function page(name: string, title: string, about: string, keys: string, icon: string, ofTable: boolean): PageEntry[] {
  const load = modules[`../pages/${name}/index.tsx`];
  return load ? [{ name, title, about, keys, icon, ofTable, load }] : [];
}

export const PAGES: readonly PageEntry[] = [
  ...page("data", "Data", "Item collections, indexes, editing", "g d", "M3 4h14v12H3zM3 8h14M8 8v8", true),
  ...page(
    "patterns",
    "Access patterns",
    "Run the design's access patterns",
    "g a",
    "M4 5h12M4 10h8M4 15h5M14 12l3 3-3 3",
    true,
  ),
  ...page(
    "design",
    "Design",
    "Entities, keys, lint findings, solver",
    "g e",
    "M4 3h5v4H4zM11 13h5v4h-5zM6.500 7v3h7v3",
    true,
  ),
  ...page("heat", "Heat map", "Traffic by key over time", "g h", "M3 16h3v-4H3zM8.500 16h3V8h-3zM14 16h3V3h-3z", true),
  ...page(
    "cost",
    "Cost",
    "Monthly cost estimate",
    "g c",
    "M10 3v14M13.500 6.500C13 5.300 11.700 4.700 10 4.700c-2 0-3.400 1-3.400 2.600 0 3.600 7 1.700 7 5.300 0 1.700-1.500 2.700-3.600 2.700-2 0-3.300-.800-3.700-2.200",
    false,
  ),
  ...page(
    "time",
    "History",
    "Live changes, point in time, restore",
    "g t",
    "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6v4l3 2",
    true,
  ),
  ...page(
    "operations",
    "Operations",
    "Requests, latency, capacity, access log",
    "g o",
    "M3 11h3l2-6 4 11 2-5h3",
    false,
  ),
];

/** Whether a page reads items, so that it can show an earlier point in time. */
export function supportsAsOf(name: string): boolean {
  return !["cost", "operations", "design"].includes(name);
}

/** Whether a page is empty while the tables cannot be reached. */
export function needsTables(name: string): boolean {
  return ["data", "heat", "time"].includes(name);
}

export function pageNamed(name: string): PageEntry | undefined {
  return PAGES.find((each) => each.name === name);
}

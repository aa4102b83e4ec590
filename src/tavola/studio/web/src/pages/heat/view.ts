// View: the visible part of a grid, zooming, and its parameters in the URL.
import type { Grid } from "./grid";

/** Rows from `top` up to `bottom`, columns from `left` up to `right`. */
export interface View {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

export interface CellPlace {
  readonly row: number;
  readonly column: number;
}

export function wholeView(grid: Grid): View {
  return { top: 0, bottom: grid.rows.length, left: 0, right: grid.columns };
}

export function isWhole(grid: Grid, view: View): boolean {
  return view.top === 0 && view.left === 0 && view.bottom === grid.rows.length && view.right === grid.columns;
}

/** Return the view in the URL: rows by label and columns by time, since both may have moved. */
export function viewOf(grid: Grid, params: Readonly<Record<string, string>>): View {
  const whole = wholeView(grid);
  const first = params["first"];
  const last = params["last"];
  const top = first ? grid.rows.findIndex((row) => row.label === first) : -1;
  const bottom = last ? grid.rows.findIndex((row) => row.label === last) : -1;
  const rows = top >= 0 && bottom >= top ? { top, bottom: bottom + 1 } : { top: whole.top, bottom: whole.bottom };
  const from = Number(params["from"] ?? Number.NaN);
  const to = Number(params["to"] ?? Number.NaN);
  if (!Number.isFinite(from) || !Number.isFinite(to)) return { ...whole, ...rows };
  const left = clamp(Math.floor((from - grid.fromS) / grid.columnS), 0, Math.max(0, grid.columns - 1));
  const right = clamp(Math.ceil((to - grid.fromS) / grid.columnS), left + 1, Math.max(left + 1, grid.columns));
  return { ...rows, left, right };
}

/** Return the first and last key of a view if it contains ranges of keys, which can be loaded in finer rows. */
export function keysOf(grid: Grid, view: View): string | null {
  let [top, bottom] = [view.top, view.bottom];
  while (top < bottom && !grid.firstKeys[top]) top++;
  while (bottom > top && !grid.lastKeys[bottom - 1]) bottom--;
  if (!grid.rows.slice(top, bottom).some((row) => row.kind === "range")) return null;
  return `${grid.firstKeys[top]}-${grid.lastKeys[bottom - 1]}`;
}

/** Return the parameters of a view; null for an axis that is not zoomed. */
export function viewParams(grid: Grid, view: View): Record<string, string | null> {
  const allRows = view.top === 0 && view.bottom === grid.rows.length;
  const allColumns = view.left === 0 && view.right === grid.columns;
  return {
    first: allRows ? null : (grid.rows[view.top]?.label ?? null),
    last: allRows ? null : (grid.rows[view.bottom - 1]?.label ?? null),
    from: allColumns ? null : String(grid.fromS + view.left * grid.columnS),
    to: allColumns ? null : String(grid.fromS + view.right * grid.columnS),
  };
}

/** Return the view between two cells, both included. */
export function between(a: CellPlace, b: CellPlace): View {
  return {
    top: Math.min(a.row, b.row),
    bottom: Math.max(a.row, b.row) + 1,
    left: Math.min(a.column, b.column),
    right: Math.max(a.column, b.column) + 1,
  };
}

/** Return a view scaled around a cell, within the grid. */
export function zoomView(grid: Grid, view: View, around: CellPlace, factor: number): View {
  const [top, bottom] = scaleRange(view.top, view.bottom, around.row, factor, grid.rows.length);
  const [left, right] = scaleRange(view.left, view.right, around.column, factor, grid.columns);
  return { top, bottom, left, right };
}

function scaleRange(from: number, to: number, around: number, factor: number, most: number): [number, number] {
  const size = clamp(Math.round((to - from) * factor), 1, most);
  const share = to > from ? (around + 0.5 - from) / (to - from) : 0.5;
  const start = clamp(Math.round(around + 0.5 - share * size), 0, most - size);
  return [start, start + size];
}

/** Return a view moved so that it contains a cell. */
export function viewContaining(grid: Grid, view: View, cell: CellPlace): View {
  const [top, bottom] = moveRange(view.top, view.bottom, cell.row, grid.rows.length);
  const [left, right] = moveRange(view.left, view.right, cell.column, grid.columns);
  return { top, bottom, left, right };
}

function moveRange(from: number, to: number, at: number, most: number): [number, number] {
  const shift = at < from ? at - from : at >= to ? at - to + 1 : 0;
  const start = clamp(from + shift, 0, Math.max(0, most - (to - from)));
  return [start, start + (to - from)];
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), Math.max(low, high));
}

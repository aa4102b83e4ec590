// Grid: the numbers of a heat map, rows of keys by columns of time, and how new columns are appended.
import type { KeyHeatMap, HeatLayer } from "../../generated/api";

export interface RowInfo {
  readonly label: string;
  readonly kind: "key" | "range" | "rest" | "none" | "hash";
  readonly keys: number;
}

export interface Totals {
  readonly operations: readonly number[];
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  readonly throttles: readonly number[];
}

export interface Grid {
  readonly rows: readonly RowInfo[];
  readonly columns: number;
  readonly columnS: number;
  /** When the first column starts, in epoch seconds; for a simulation, seconds since its start. */
  readonly fromS: number;
  /** Row by row; multiplied by `scale` it is the metric. */
  readonly cells: Uint32Array | Float32Array;
  readonly throttled: Uint32Array | Float32Array;
  readonly scale: number;
  readonly most: number;
  /** The smallest positive cell; infinite if there is none. */
  readonly least: number;
  readonly totals: Totals;
  /** The first and last key of each row, if some rows are ranges, to request a part of the map. */
  readonly firstKeys: readonly string[];
  readonly lastKeys: readonly string[];
}

const NO_TOTALS: Totals = { operations: [], reads: [], writes: [], throttles: [] };

export const NO_GRID: Grid = {
  rows: [],
  columns: 0,
  columnS: 1,
  fromS: 0,
  cells: new Uint32Array(0),
  throttled: new Uint32Array(0),
  scale: 1,
  most: 0,
  least: Number.POSITIVE_INFINITY,
  totals: NO_TOTALS,
  firstKeys: [],
  lastKeys: [],
};

/** Return the numbers of a layer, decompressed and as 32 bits. */
export async function unpackLayer(layer: HeatLayer): Promise<Uint32Array> {
  const packed = Uint8Array.from(atob(layer.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  if (layer.bits === 32) return new Uint32Array(bytes);
  return Uint32Array.from(layer.bits === 16 ? new Uint16Array(bytes) : new Uint8Array(bytes));
}

function infoOf(answer: KeyHeatMap): RowInfo[] {
  return answer.labels.map((label, at) => ({
    label,
    kind: answer.source === "log" && answer.kinds[at] === "key" ? "hash" : (answer.kinds[at] ?? "key"),
    keys: answer.keys[at] ?? 0,
  }));
}

/** Return the grid of a complete response, or the current grid with the columns and rows of a partial one. */
export async function updateGrid(grid: Grid, answer: KeyHeatMap): Promise<Grid> {
  const [cells, throttled] = await Promise.all([unpackLayer(answer.cells), unpackLayer(answer.throttled)]);
  if (answer.whole) {
    return {
      rows: infoOf(answer),
      columns: answer.columns,
      columnS: answer.column_s,
      fromS: answer.from_s,
      cells,
      throttled,
      scale: answer.cells.scale,
      ...rangeOf(cells),
      totals: answer.totals,
      firstKeys: answer.first_keys,
      lastKeys: answer.last_keys,
    };
  }
  return appendColumns(grid, answer, cells, throttled);
}

function appendColumns(grid: Grid, answer: KeyHeatMap, cells: Uint32Array, throttled: Uint32Array): Grid {
  const newRows = infoOf(answer);
  const newRange = rangeOf(cells);
  const places = new Map(answer.places.map((place, at) => [place, at]));
  const rows: RowInfo[] = [];
  const before: number[] = []; // the old index of each row; -1 if it is new
  let oldRow = 0;
  for (let at = 0; at < answer.rows; at++) {
    const fresh = places.get(at);
    const row = fresh === undefined ? grid.rows[oldRow] : newRows[fresh];
    if (!row) break;
    rows.push(row);
    before.push(fresh === undefined ? oldRow++ : -1);
  }
  const firstNew = Math.max(0, Math.round((answer.from_s - grid.fromS) / grid.columnS));
  const kept = Math.min(grid.columns, firstNew); // columns that were sent again replace the old ones
  const columns = firstNew + answer.columns;
  const wanted = Math.max(grid.columns, answer.columns);
  const shift = Math.max(0, columns - wanted);
  return {
    ...grid,
    rows,
    columns: columns - shift,
    fromS: grid.fromS + shift * grid.columnS,
    cells: mergeColumns(grid.cells, grid.columns, cells, answer.columns, { before, kept, firstNew, columns, shift }),
    throttled: mergeColumns(grid.throttled, grid.columns, throttled, answer.columns, {
      before,
      kept,
      firstNew,
      columns,
      shift,
    }),
    most: Math.max(grid.most, newRange.most),
    least: Math.min(grid.least, newRange.least),
    totals: {
      operations: mergeTotals(grid.totals.operations, answer.totals.operations, kept, firstNew, shift),
      reads: mergeTotals(grid.totals.reads, answer.totals.reads, kept, firstNew, shift),
      writes: mergeTotals(grid.totals.writes, answer.totals.writes, kept, firstNew, shift),
      throttles: mergeTotals(grid.totals.throttles, answer.totals.throttles, kept, firstNew, shift),
    },
  };
}

interface Merge {
  readonly before: readonly number[];
  readonly kept: number;
  readonly firstNew: number;
  readonly columns: number;
  readonly shift: number;
}

function mergeColumns(
  old: Uint32Array | Float32Array,
  oldWidth: number,
  added: Uint32Array,
  addedWidth: number,
  merge: Merge,
): Uint32Array {
  const width = merge.columns - merge.shift;
  const merged = new Uint32Array(merge.before.length * width);
  merge.before.forEach((was, row) => {
    const to = row * width;
    if (was >= 0 && merge.kept > merge.shift) {
      merged.set(old.subarray(was * oldWidth + merge.shift, was * oldWidth + merge.kept), to);
    }
    const skipped = Math.max(0, merge.shift - merge.firstNew);
    merged.set(
      added.subarray(row * addedWidth + skipped, (row + 1) * addedWidth),
      to + merge.firstNew + skipped - merge.shift,
    );
  });
  return merged;
}

function mergeTotals(
  old: readonly number[],
  added: readonly number[],
  kept: number,
  firstNew: number,
  shift: number,
): number[] {
  const gap = new Array<number>(Math.max(0, firstNew - kept)).fill(0);
  return [...old.slice(0, kept), ...gap, ...added].slice(shift);
}

/** Return the largest cell and the smallest positive one. */
export function rangeOf(cells: Uint32Array | Float32Array): { most: number; least: number } {
  let most = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at < cells.length; at++) {
    const value = cells[at] as number;
    if (value > most) most = value;
    if (value > 0 && value < least) least = value;
  }
  return { most, least };
}

/** Return the metric of a cell. */
export function amount(grid: Grid, row: number, column: number): number {
  return (grid.cells[row * grid.columns + column] ?? 0) * grid.scale;
}

export interface RowSum {
  readonly row: number;
  readonly total: number;
  readonly share: number;
  readonly peak: number;
  readonly peakColumn: number;
  readonly throttled: number;
}

/** Return the total of each row between two columns, largest first. */
export function rowSums(grid: Grid, from: number, to: number): RowSum[] {
  const found: RowSum[] = [];
  let all = 0;
  for (let row = 0; row < grid.rows.length; row++) {
    let total = 0;
    let throttled = 0;
    let peak = 0;
    let peakColumn = from;
    for (let column = from; column < to; column++) {
      const at = row * grid.columns + column;
      const value = (grid.cells[at] as number) * grid.scale;
      total += value;
      throttled += grid.throttled[at] as number;
      if (value > peak) {
        peak = value;
        peakColumn = column;
      }
    }
    all += total;
    found.push({ row, total, share: 0, peak, peakColumn, throttled });
  }
  return found
    .filter((each) => each.total > 0 || each.throttled > 0)
    .map((each) => ({ ...each, share: all ? each.total / all : 0 }))
    .sort((a, b) => b.total - a.total || b.throttled - a.throttled || a.row - b.row);
}

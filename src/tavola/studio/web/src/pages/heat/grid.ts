// Grid: a heat map's numbers in the browser: rows of keys, columns of time, and how new columns join those that are there.
import type { HeatMap, HeatLayer } from "../../generated/api";

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
  /** When the first column begins, in seconds since 1970; of a simulation, since it began. */
  readonly fromS: number;
  /** Row by row; times `scale` it is the metric. */
  readonly cells: Uint32Array | Float32Array;
  readonly refused: Uint32Array | Float32Array;
  readonly scale: number;
  readonly most: number;
  /** The least that is more than nothing; infinite where there is nothing. */
  readonly least: number;
  readonly totals: Totals;
  /** The keys that each row begins and ends with, where some rows are ranges; so a part of it can be asked for. */
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
  refused: new Uint32Array(0),
  scale: 1,
  most: 0,
  least: Number.POSITIVE_INFINITY,
  totals: NO_TOTALS,
  firstKeys: [],
  lastKeys: [],
};

/** Return the numbers of a layer, whatever width they travelled in. */
export async function unpacked(layer: HeatLayer): Promise<Uint32Array> {
  const packed = Uint8Array.from(atob(layer.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = await new Response(stream).arrayBuffer();
  if (layer.bits === 32) return new Uint32Array(bytes);
  return Uint32Array.from(layer.bits === 16 ? new Uint16Array(bytes) : new Uint8Array(bytes));
}

function infoOf(answer: HeatMap): RowInfo[] {
  return answer.labels.map((label, at) => ({
    label,
    kind: answer.source === "log" && answer.kinds[at] === "key" ? "hash" : (answer.kinds[at] ?? "key"),
    keys: answer.keys[at] ?? 0,
  }));
}

/** Return the grid of a whole answer, or the one that is there with the columns and rows that came. */
export async function joined(grid: Grid, answer: HeatMap): Promise<Grid> {
  const [cells, refused] = await Promise.all([unpacked(answer.cells), unpacked(answer.throttled)]);
  if (answer.whole) {
    return {
      rows: infoOf(answer),
      columns: answer.columns,
      columnS: answer.column_s,
      fromS: answer.from_s,
      cells,
      refused,
      scale: answer.cells.scale,
      ...rangeOf(cells),
      totals: answer.totals,
      firstKeys: answer.first_keys,
      lastKeys: answer.last_keys,
    };
  }
  return appended(grid, answer, cells, refused);
}

function appended(grid: Grid, answer: HeatMap, cells: Uint32Array, refused: Uint32Array): Grid {
  const told = infoOf(answer);
  const come = rangeOf(cells);
  const places = new Map(answer.places.map((place, at) => [place, at]));
  const rows: RowInfo[] = [];
  const before: number[] = []; // the row that each was until now; -1 where it is new
  let old = 0;
  for (let at = 0; at < answer.rows; at++) {
    const fresh = places.get(at);
    const row = fresh === undefined ? grid.rows[old] : told[fresh];
    if (!row) break;
    rows.push(row);
    before.push(fresh === undefined ? old++ : -1);
  }
  const gone = Math.max(0, Math.round((answer.from_s - grid.fromS) / grid.columnS));
  const kept = Math.min(grid.columns, gone); // what came again is newer
  const columns = gone + answer.columns;
  const wanted = Math.max(grid.columns, answer.columns);
  const shift = Math.max(0, columns - wanted);
  return {
    ...grid,
    rows,
    columns: columns - shift,
    fromS: grid.fromS + shift * grid.columnS,
    cells: together(grid.cells, grid.columns, cells, answer.columns, { before, kept, gone, columns, shift }),
    refused: together(grid.refused, grid.columns, refused, answer.columns, { before, kept, gone, columns, shift }),
    most: Math.max(grid.most, come.most),
    least: Math.min(grid.least, come.least),
    totals: {
      operations: longer(grid.totals.operations, answer.totals.operations, kept, gone, shift),
      reads: longer(grid.totals.reads, answer.totals.reads, kept, gone, shift),
      writes: longer(grid.totals.writes, answer.totals.writes, kept, gone, shift),
      throttles: longer(grid.totals.throttles, answer.totals.throttles, kept, gone, shift),
    },
  };
}

interface Joint {
  readonly before: readonly number[];
  readonly kept: number;
  readonly gone: number;
  readonly columns: number;
  readonly shift: number;
}

function together(
  old: Uint32Array | Float32Array,
  oldWidth: number,
  come: Uint32Array,
  comeWidth: number,
  joint: Joint,
): Uint32Array {
  const width = joint.columns - joint.shift;
  const found = new Uint32Array(joint.before.length * width);
  joint.before.forEach((was, row) => {
    const to = row * width;
    if (was >= 0 && joint.kept > joint.shift) {
      found.set(old.subarray(was * oldWidth + joint.shift, was * oldWidth + joint.kept), to);
    }
    const skipped = Math.max(0, joint.shift - joint.gone);
    found.set(come.subarray(row * comeWidth + skipped, (row + 1) * comeWidth), to + joint.gone + skipped - joint.shift);
  });
  return found;
}

function longer(old: readonly number[], come: readonly number[], kept: number, gone: number, shift: number): number[] {
  const gap = new Array<number>(Math.max(0, gone - kept)).fill(0);
  return [...old.slice(0, kept), ...gap, ...come].slice(shift);
}

/** Return the most that any cell has, and the least of those that have something. */
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
  readonly refused: number;
}

/** Return what each row has between two columns, the heaviest first. */
export function rowSums(grid: Grid, from: number, to: number): RowSum[] {
  const found: RowSum[] = [];
  let all = 0;
  for (let row = 0; row < grid.rows.length; row++) {
    let total = 0;
    let refused = 0;
    let peak = 0;
    let peakColumn = from;
    for (let column = from; column < to; column++) {
      const at = row * grid.columns + column;
      const value = (grid.cells[at] as number) * grid.scale;
      total += value;
      refused += grid.refused[at] as number;
      if (value > peak) {
        peak = value;
        peakColumn = column;
      }
    }
    all += total;
    found.push({ row, total, share: 0, peak, peakColumn, refused });
  }
  return found
    .filter((each) => each.total > 0 || each.refused > 0)
    .map((each) => ({ ...each, share: all ? each.total / all : 0 }))
    .sort((a, b) => b.total - a.total || b.refused - a.refused || a.row - b.row);
}

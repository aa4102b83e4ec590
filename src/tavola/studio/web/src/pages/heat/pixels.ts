// Pixels: renders a grid. Where there are more cells than pixels, a pixel shows the hottest of its cells, so that the bright
// line of one key does not vanish between two others.
import { scalePosition, type Scale } from "./colours";
import type { Grid } from "./grid";
import type { View } from "./view";

/** Return the smallest amount that the scale distinguishes from nothing. */
export function leastVisible(grid: Grid): number {
  return (grid.most > 0 ? Math.max(grid.least, grid.most / 1000) : 1) * grid.scale;
}

const TABLE_MAX = 65_535;

/** Return the pixels of the view, at most `width` by `height`. */
export function renderPixels(grid: Grid, view: View, scale: Scale, width: number, height: number): ImageData {
  const rows = view.bottom - view.top;
  const columns = view.right - view.left;
  const high = Math.max(1, Math.min(rows, Math.floor(height)));
  const wide = Math.max(1, Math.min(columns, Math.floor(width)));
  const image = new ImageData(wide, high);
  const out = new Uint32Array(image.data.buffer);
  out.fill(scale.heat[0] as number);
  if (rows <= 0 || columns <= 0) return image;
  const hottest = high === rows && wide === columns ? null : new Float32Array(wide * high).fill(-1);
  const levels = levelsOf(grid);
  const xs = Uint32Array.from({ length: columns }, (_, at) => Math.floor((at * wide) / columns));
  const { cells, throttled } = grid;
  for (let row = view.top; row < view.bottom; row++) {
    const line = Math.floor(((row - view.top) * high) / rows) * wide;
    const from = row * grid.columns + view.left;
    for (let column = 0; column < columns; column++) {
      const value = cells[from + column] as number;
      const lost = throttled[from + column] as number;
      if (value === 0 && lost === 0) continue;
      const at = line + (xs[column] as number);
      if (hottest) {
        const weight = lost > 0 ? 1e12 + lost : value;
        if (weight <= (hottest[at] as number)) continue;
        hottest[at] = weight;
      }
      out[at] =
        lost > 0
          ? (scale.red[Math.min(255, Math.round((255 * lost) / Math.max(lost, value + lost)))] as number)
          : (scale.heat[levels(value)] as number);
    }
  }
  return image;
}

/** Return a function from a cell to its level on the scale, 0 to 255. */
function levelsOf(grid: Grid): (value: number) => number {
  const most = grid.most * grid.scale;
  const least = leastVisible(grid);
  const level = (value: number) => Math.round(255 * scalePosition(value * grid.scale, most, least));
  if (!(grid.cells instanceof Uint32Array) || grid.most > TABLE_MAX) return level;
  const table = Uint8Array.from({ length: grid.most + 1 }, (_, value) => level(value));
  return (value) => table[value] as number;
}

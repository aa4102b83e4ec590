// Painting: a grid as pixels. Where there are more cells than pixels, a pixel has the hottest of its cells: a bright line of
// one key must not vanish between two others.
import { place, type Scale } from "./colours";
import type { Grid } from "./grid";
import type { View } from "./view";

/** Return the least amount that is told from nothing on the scale. */
export function leastOf(grid: Grid): number {
  return (grid.most > 0 ? Math.max(grid.least, grid.most / 1000) : 1) * grid.scale;
}

const TABLE_MAX = 65_535;

/** Return the pixels of what is in view, at most so many wide and high. */
export function pixels(grid: Grid, view: View, scale: Scale, width: number, height: number): ImageData {
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
  const { cells, refused } = grid;
  for (let row = view.top; row < view.bottom; row++) {
    const line = Math.floor(((row - view.top) * high) / rows) * wide;
    const from = row * grid.columns + view.left;
    for (let column = 0; column < columns; column++) {
      const value = cells[from + column] as number;
      const lost = refused[from + column] as number;
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

/** Return a way from a number of the grid to its place on the scale, 0 to 255. */
function levelsOf(grid: Grid): (value: number) => number {
  const most = grid.most * grid.scale;
  const least = leastOf(grid);
  const level = (value: number) => Math.round(255 * place(value * grid.scale, most, least));
  if (!(grid.cells instanceof Uint32Array) || grid.most > TABLE_MAX) return level;
  const table = Uint8Array.from({ length: grid.most + 1 }, (_, value) => level(value));
  return (value) => table[value] as number;
}

// Lines: what stands in the grid from top to bottom, as numbers: a row by its place, a group's head by −1 − its place.
import type { Group } from "./groups";

/** Return the lines of groups; rows of one that is folded are left out. Flat: there are no heads. */
export function linesOf(groups: readonly Group[], folded: ReadonlySet<number>, flat: boolean): Int32Array {
  let count = 0;
  for (const group of groups) count += flat ? group.count : 1 + (folded.has(group.first) ? 0 : group.count);
  const lines = new Int32Array(count);
  let at = 0;
  for (const [number, group] of groups.entries()) {
    if (!flat) {
      lines[at] = -1 - number;
      at += 1;
      if (folded.has(group.first)) continue;
    }
    for (let row = group.first; row < group.first + group.count; row += 1) {
      lines[at] = row;
      at += 1;
    }
  }
  return lines;
}

/** Return the group that a row is in, by halving. */
export function groupOf(groups: readonly Group[], row: number): number {
  let low = 0;
  let high = groups.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((groups[middle]?.first ?? 0) <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}

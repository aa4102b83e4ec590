// Lines: the lines of the grid from top to bottom, as numbers: a row by its index, the head of a group by −1 − its index.
import type { Group } from "./groups";

/** Return the lines of groups; collapsed groups have only their head, and a flat grid has no heads. */
export function linesOf(groups: readonly Group[], collapsed: ReadonlySet<number>, flat: boolean): Int32Array {
  let count = 0;
  for (const group of groups) count += flat ? group.count : 1 + (collapsed.has(group.first) ? 0 : group.count);
  const lines = new Int32Array(count);
  let at = 0;
  for (const [number, group] of groups.entries()) {
    if (!flat) {
      lines[at] = -1 - number;
      at += 1;
      if (collapsed.has(group.first)) continue;
    }
    for (let row = group.first; row < group.first + group.count; row += 1) {
      lines[at] = row;
      at += 1;
    }
  }
  return lines;
}

/** Return the group that contains a row, by binary search. */
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

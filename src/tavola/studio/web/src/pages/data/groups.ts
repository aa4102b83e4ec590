// Groups: rows with the same partition key. A group that continues on the next page is joined.
import type { RowPage } from "../../generated/api";
import { attributeOf } from "./keys";
import type { Row } from "./rows";

export interface Group {
  readonly first: number;
  readonly count: number;
  readonly bytes: number;
  /** Read units to read it in one Query, eventually consistent. */
  readonly units: number;
  /** All items with this key are loaded, so the numbers are exact. */
  readonly whole: boolean;
  /** No page so far left out items of it; more may follow. */
  readonly sound: boolean;
}

const UNIT_BYTES = 4096;

/** Return the read units for this many bytes, eventually consistent. */
export function unitsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / UNIT_BYTES)) / 2;
}

/** Return the groups so far with those of the next page, whose first row is at `offset`; `hash` names the partition key. */
export function joinGroups(
  before: readonly Group[],
  page: RowPage,
  rows: readonly Row[],
  offset: number,
  hash: readonly string[],
): readonly Group[] {
  const joined = [...before];
  const last = joined.at(-1);
  const firstOfPage = page.groups[0];
  const ended = page.cursor === null;
  const continues =
    last !== undefined &&
    firstOfPage !== undefined &&
    sameKey(rows[last.first], rows[offset + firstOfPage.first], hash);
  if (continues) joined.pop();
  else if (last) {
    // Items filtered out at the start of this page may belong to the last group, which is whole only if nothing was filtered out.
    const sound = last.sound && page.complete;
    joined[joined.length - 1] = { ...last, sound, whole: sound && (firstOfPage !== undefined || ended) };
  }
  for (const [at, group] of page.groups.entries()) {
    const from = at === 0 && continues ? last : undefined;
    const bytes = group.bytes + (from?.bytes ?? 0);
    const sound = page.complete && (from?.sound ?? true);
    joined.push({
      first: from?.first ?? offset + group.first,
      count: group.count + (from?.count ?? 0),
      bytes,
      units: unitsOf(bytes),
      sound,
      whole: sound && (at < page.groups.length - 1 || ended),
    });
  }
  return joined;
}

function sameKey(one: Row | undefined, other: Row | undefined, hash: readonly string[]): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    hash.every((name) => JSON.stringify(attributeOf(one.item, name)) === JSON.stringify(attributeOf(other.item, name)))
  );
}

/** Return rows without key order as one group with unknown totals. */
export function ungrouped(rows: readonly Row[]): readonly Group[] {
  return rows.length ? [{ first: 0, count: rows.length, bytes: 0, units: 0, whole: false, sound: false }] : [];
}

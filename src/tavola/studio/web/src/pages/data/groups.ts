// Groups: rows with one partition key stand together; groups of pages are joined where one goes on in the next.
import type { RowPage } from "../../generated/api";
import { held } from "./keys";
import type { Row } from "./rows";

export interface Group {
  readonly first: number;
  readonly count: number;
  readonly bytes: number;
  /** Read units of reading it at once, not consistently. */
  readonly units: number;
  /** Everything with this key is here, so the numbers are exact. */
  readonly whole: boolean;
  /** Nothing was left out of it on any page so far; it may still go on. */
  readonly sound: boolean;
}

const UNIT_BYTES = 4096;

/** Return the read units of so many bytes, not read consistently. */
export function unitsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / UNIT_BYTES)) / 2;
}

/** Return the groups so far with those of a page whose first row is at `offset`; `hash` names the partition key. */
export function joinGroups(
  before: readonly Group[],
  page: RowPage,
  rows: readonly Row[],
  offset: number,
  hash: readonly string[],
): readonly Group[] {
  const joined = [...before];
  const last = joined.at(-1);
  const begins = page.groups[0];
  const ended = page.cursor === null;
  const goesOn =
    last !== undefined && begins !== undefined && sameKey(rows[last.first], rows[offset + begins.first], hash);
  if (goesOn) joined.pop();
  else if (last) {
    // What a page leaves out at its beginning may be the last group's; so that is whole only where nothing ever was.
    const sound = last.sound && page.complete;
    joined[joined.length - 1] = { ...last, sound, whole: sound && (begins !== undefined || ended) };
  }
  for (const [at, group] of page.groups.entries()) {
    const from = at === 0 && goesOn ? last : undefined;
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
    hash.every((name) => JSON.stringify(held(one.item, name)) === JSON.stringify(held(other.item, name)))
  );
}

/** Return rows that stand in no order of keys as one group, of which nothing is told. */
export function ungrouped(rows: readonly Row[]): readonly Group[] {
  return rows.length ? [{ first: 0, count: rows.length, bytes: 0, units: 0, whole: false, sound: false }] : [];
}

import { describe, expect, it } from "vitest";
import type { RowPage } from "../../generated/api";
import { type Group, joinGroups, unitsOf } from "./groups";
import { groupOf, linesOf } from "./lines";
import type { Row } from "./rows";

const row = (key: string) => ({ item: { pk: { S: key } } }) as unknown as Row;
const page = (groups: [number, number, number][], more: Partial<RowPage> = {}) =>
  ({
    groups: groups.map(([first, count, bytes]) => ({ first, count, bytes })),
    cursor: null,
    complete: true,
    ...more,
  }) as unknown as RowPage;

describe("groups", () => {
  it("continue on the next page", () => {
    const rows = ["a", "a", "b", "b", "c"].map(row);
    const first = joinGroups([], page([[0, 2, 100], [2, 1, 50]], { cursor: {} }), rows, 0, ["pk"]); // prettier-ignore
    const both = joinGroups(first, page([[0, 1, 50], [1, 1, 20]]), rows, 3, ["pk"]); // prettier-ignore

    expect(both.map(({ first: start, count, bytes }) => [start, count, bytes])).toEqual([
      [0, 2, 100],
      [2, 2, 100],
      [4, 1, 20],
    ]);
    expect(both.every((each) => each.whole)).toBe(true);
  });
  it("are not whole if a filter left out items", () => {
    const groups = joinGroups([], page([[0, 1, 10]], { complete: false }), [row("a")], 0, ["pk"]);
    expect(groups.map((each) => each.whole)).toEqual([false]);
  });
  it("cost half a unit per 4 KB, eventually consistent", () => {
    expect([1, 4096, 4097, 40_960].map(unitsOf)).toEqual([0.5, 0.5, 1, 5]);
  });
});

describe("lines", () => {
  const groups = [0, 2, 5].map((first) => ({ first, count: first === 5 ? 1 : first === 2 ? 3 : 2 }) as Group);

  it("have a head for each group, and no rows of a collapsed one", () => {
    expect([...linesOf(groups, new Set([2]), false)]).toEqual([-1, 0, 1, -2, -3, 5]);
    expect([...linesOf(groups, new Set(), true)]).toEqual([0, 1, 2, 3, 4, 5]);
  });
  it("know the group of a row", () => {
    expect([0, 1, 2, 4, 5].map((each) => groupOf(groups, each))).toEqual([0, 0, 1, 1, 2]);
  });
});

// Keys: which attributes are a table's or an index's key, and items told apart by theirs.
import type { AttributeValue, IndexSummary, Item, TableKeyAttribute, TableSummary } from "../../generated/api";

/** A way into a table: its own key, or an index. */
export interface Way {
  /** "" is the table itself. */
  readonly index: string;
  readonly hash: readonly TableKeyAttribute[];
  readonly range: readonly TableKeyAttribute[];
  readonly summary: IndexSummary | null;
}

function halves(keys: readonly TableKeyAttribute[]): Pick<Way, "hash" | "range"> {
  return { hash: keys.filter((each) => each.role === "HASH"), range: keys.filter((each) => each.role === "RANGE") };
}

/** Return the way through an index, or the table's own; an index that is not there is the table. */
export function wayOf(table: TableSummary, index: string): Way {
  const found = table.indexes.find((each) => each.name === index) ?? null;
  return { index: found?.name ?? "", summary: found, ...halves(found?.keys ?? table.keys) };
}

/** Return an attribute of an item; none of the names that every object has, such as `constructor`, unless it is the item's. */
export function held(item: Item, name: string): AttributeValue | undefined {
  return Object.hasOwn(item, name) ? item[name] : undefined;
}

/** Return some attributes of an item, as far as it has them. */
export function partOf(item: Item, names: readonly TableKeyAttribute[]): Item {
  return Object.fromEntries(
    names.filter(({ name }) => Object.hasOwn(item, name)).map(({ name }) => [name, item[name] as AttributeValue]),
  );
}

/** Return the table's key of an item, or of an entry of an index: that has it too. */
export function keyOf(table: TableSummary, item: Item): Item {
  return partOf(item, table.keys);
}

/** Tell whether an item has its whole key: what a statement gives may be without, and is no item that could be opened. */
export function isKeyed(table: TableSummary, item: Item): boolean {
  return table.keys.every(({ name }) => Object.hasOwn(item, name));
}

/** Return a key as text: one for one item, with its attributes in the table's order. */
export function keyId(table: TableSummary, item: Item): string {
  return JSON.stringify(keyOf(table, item));
}

/** Return the attributes that entries of an index have at most; null: all of the item's. */
export function projectedBy(table: TableSummary, index: IndexSummary): ReadonlySet<string> | null {
  if (index.projection === "ALL") return null;
  return new Set([...table.keys, ...index.keys].map((each) => each.name).concat(index.included));
}

/** Return the type of each key attribute, of the table and of its indexes. */
export function keyTypes(table: TableSummary): ReadonlyMap<string, "S" | "N" | "B"> {
  const all = [...table.keys, ...table.indexes.flatMap((each) => each.keys)];
  return new Map(all.map((each) => [each.name, each.type]));
}

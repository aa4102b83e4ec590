// Keys: the key attributes of a table or index, and the keys of items.
import type { AttributeValue, IndexSummary, Item, TableKeyAttribute, TableSummary } from "../../generated/api";

/** The key that items are read by: the table's own or an index's. */
export interface AccessKey {
  /** "" is the table itself. */
  readonly index: string;
  readonly hash: readonly TableKeyAttribute[];
  readonly range: readonly TableKeyAttribute[];
  readonly summary: IndexSummary | null;
}

function splitKeys(keys: readonly TableKeyAttribute[]): Pick<AccessKey, "hash" | "range"> {
  return { hash: keys.filter((each) => each.role === "HASH"), range: keys.filter((each) => each.role === "RANGE") };
}

/** Return the key of an index; the table's own if there is no such index. */
export function accessKey(table: TableSummary, index: string): AccessKey {
  const found = table.indexes.find((each) => each.name === index) ?? null;
  return { index: found?.name ?? "", summary: found, ...splitKeys(found?.keys ?? table.keys) };
}

/** Return an attribute of an item, but not inherited names such as `constructor`. */
export function attributeOf(item: Item, name: string): AttributeValue | undefined {
  return Object.hasOwn(item, name) ? item[name] : undefined;
}

/** Return those of some attributes that the item has. */
export function partOf(item: Item, names: readonly TableKeyAttribute[]): Item {
  return Object.fromEntries(
    names.filter(({ name }) => Object.hasOwn(item, name)).map(({ name }) => [name, item[name] as AttributeValue]),
  );
}

/** Return the primary key of an item or of an index entry. */
export function keyOf(table: TableSummary, item: Item): Item {
  return partOf(item, table.keys);
}

/** Return whether an item has its whole primary key; the result of a statement may lack it, and then cannot be opened. */
export function hasKey(table: TableSummary, item: Item): boolean {
  return table.keys.every(({ name }) => Object.hasOwn(item, name));
}

/** Return the primary key as text that identifies the item. */
export function keyId(table: TableSummary, item: Item): string {
  return JSON.stringify(keyOf(table, item));
}

/** Return the attributes that an index projects; null for all. */
export function projectedBy(table: TableSummary, index: IndexSummary): ReadonlySet<string> | null {
  if (index.projection === "ALL") return null;
  return new Set([...table.keys, ...index.keys].map((each) => each.name).concat(index.included));
}

/** Return the type of each key attribute, of the table and of its indexes. */
export function keyTypes(table: TableSummary): ReadonlyMap<string, "S" | "N" | "B"> {
  const all = [...table.keys, ...table.indexes.flatMap((each) => each.keys)];
  return new Map(all.map((each) => [each.name, each.type]));
}

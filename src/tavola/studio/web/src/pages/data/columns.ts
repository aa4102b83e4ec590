// Columns: the attributes that the grid shows, chosen by the user or taken from the rows, and their widths.
import { keySources, sourceFields, templateText } from "../../entity_keys";
import type { TableDetail, TableSummary } from "../../generated/api";
import { valueText } from "../../parts";
import { attributeOf, type AccessKey } from "./keys";
import type { Row } from "./rows";

export interface Column {
  readonly name: string;
  /** Part of the key of the table or index that is shown. */
  readonly key: boolean;
  readonly width: number;
  readonly title: string;
  /** The index whose item collections its values identify: "" is the table, null is none. */
  readonly collectionIndex: string | null;
}

const DEFAULT_COLUMNS = 8;
const SAMPLE = 200;
const ATTRIBUTES_PER_ITEM = 300; // the first of an item with thousands are enough
const LETTER_PX = 7.9;

/** Return the attributes of rows, the most informative of each entity in turn; index keys and internal attributes last. */
export function attributesOf(rows: readonly Row[], table: TableSummary, detail: TableDetail | null): string[] {
  const own = new Set(table.keys.map((each) => each.name));
  const byEntity = new Map<string, Map<string, number>>();
  for (const row of rows.slice(0, SAMPLE)) {
    const entity = row.entity.entity ?? "";
    const counts = byEntity.get(entity) ?? new Map<string, number>();
    for (const name of Object.keys(row.item).slice(0, ATTRIBUTES_PER_ITEM)) {
      if (!own.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    byEntity.set(entity, counts);
  }
  const late = new Set([
    ...table.indexes.flatMap((each) => each.keys.map((key) => key.name)),
    detail?.tag ?? "_entity",
    "_version",
  ]);
  const queues = [...byEntity].map(([entity, counts]) => rankAttributes(entity, counts, late, detail));
  const names = new Set<string>();
  const longest = Math.max(0, ...queues.map((each) => each.length));
  for (let at = 0; at < longest; at += 1) {
    for (const queue of queues) {
      const name = queue[at];
      if (name !== undefined) names.add(name);
    }
  }
  return [...names];
}

/** Return an entity's attributes: its fields in order, then the fields that its key already shows, then the rest. */
function rankAttributes(
  entity: string,
  counts: ReadonlyMap<string, number>,
  late: ReadonlySet<string>,
  detail: TableDetail | null,
): string[] {
  const design = detail?.entities.find((each) => each.name === entity);
  const fields = design?.fields.map((each) => each.attribute) ?? [];
  const own = design?.key;
  const inKey = new Set([...(own?.hash ?? []), ...(own?.range ?? [])].flatMap(sourceFields));
  const shownInKey = new Set(
    (design?.fields ?? []).filter((each) => inKey.has(each.name)).map((each) => each.attribute),
  );
  const order = (name: string) => {
    const at = fields.indexOf(name);
    if (at < 0 && (late.has(name) || name.startsWith("_"))) return 3_000;
    return (shownInKey.has(name) ? 2_000 : 0) + (at < 0 ? 1_000 : at);
  };
  return [...counts.keys()].sort(
    (one, other) => order(one) - order(other) || (counts.get(other) ?? 0) - (counts.get(one) ?? 0),
  );
}

/** Return the columns of a grid: the sort key and, in an index, the table's key; then the attributes. */
export function columnsOf(
  access: AccessKey,
  rows: readonly Row[],
  table: TableSummary,
  detail: TableDetail | null,
  chosen: readonly string[] | null,
  flat: boolean,
): readonly Column[] {
  const keys = [...(flat ? access.hash : []), ...access.range, ...(access.index ? table.keys : [])].map(
    (each) => each.name,
  );
  const names = [...new Set(keys)];
  const attributes = (chosen ?? attributesOf(rows, table, detail).slice(0, DEFAULT_COLUMNS)).filter(
    (name) => !names.includes(name),
  );
  const collectionIndexes = new Map<string, string>();
  for (const index of table.indexes) {
    const hash = index.keys.filter((each) => each.role === "HASH");
    const only = hash[0];
    if (hash.length === 1 && only && !collectionIndexes.has(only.name)) collectionIndexes.set(only.name, index.name);
  }
  const sample = rows.slice(0, SAMPLE);
  return [
    ...names.map((name) => ({
      name,
      key: true,
      width: widthOf(name, sample, 340),
      title: titleOf(name, detail),
      collectionIndex: table.keys[0]?.name === name && table.keys.length > 1 ? "" : null,
    })),
    ...attributes.map((name) => ({
      name,
      key: false,
      width: widthOf(name, sample, 260),
      title: titleOf(name, detail),
      collectionIndex: collectionIndexes.get(name) ?? null,
    })),
  ];
}

function widthOf(name: string, rows: readonly Row[], most: number): number {
  let letters = name.length + 1;
  for (const row of rows) {
    const value = attributeOf(row.item, name);
    if (value !== undefined) letters = Math.max(letters, valueText(value, 48).length);
  }
  return Math.round(Math.min(most, Math.max(72, letters * LETTER_PX + 20)));
}

/** Return a tooltip for an attribute: the fields of the design that are stored in it. */
function titleOf(name: string, detail: TableDetail | null): string {
  const fields = (detail?.entities ?? []).flatMap((entity) => {
    const field = entity.fields.find((each) => each.attribute === name);
    if (field) return [`${entity.name}.${field.name}: ${field.type}`];
    const part = keySources(entity).find((each) => each.attribute === name);
    return part ? [`${entity.name}: ${templateText(part)}`] : [];
  });
  return [name, ...new Set(fields)].slice(0, 12).join("\n");
}

/** Return the type of an attribute in the first row that has it. */
export function seenType(rows: readonly Row[], name: string): string | null {
  for (const row of rows.slice(0, SAMPLE)) {
    const value = attributeOf(row.item, name);
    if (value !== undefined) return Object.keys(value)[0] ?? null;
  }
  return null;
}

// Columns: which attributes the grid shows, and how wide: those asked for, or those that most rows have.
import type { TableDetail, TableSummary } from "../../generated/api";
import { shown } from "../../parts";
import { held, type Way } from "./keys";
import type { Row } from "./rows";

export interface Column {
  readonly name: string;
  /** A key of what is shown: its parts are told apart. */
  readonly key: boolean;
  readonly width: number;
  readonly title: string;
  /** The index whose collections its values name; null: none, "": the table's own. */
  readonly leads: string | null;
}

const AUTO = 8;
const SAMPLE = 200;
const ATTRIBUTES_PER_ITEM = 300; // of an item with thousands, the first tell enough
const LETTER = 7.9;

/** Return the attributes of rows: of each entity in turn what its items are about, then what keys and housekeeping hold. */
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
  const queues = [...byEntity].map(([entity, counts]) => queueOf(entity, counts, late, detail));
  const told = new Set<string>();
  const longest = Math.max(0, ...queues.map((each) => each.length));
  for (let at = 0; at < longest; at += 1) {
    for (const queue of queues) {
      const name = queue[at];
      if (name !== undefined) told.add(name);
    }
  }
  return [...told];
}

/** Return an entity's attributes: its fields in their order, those that its key says already after them, then the rest. */
function queueOf(
  entity: string,
  counts: ReadonlyMap<string, number>,
  late: ReadonlySet<string>,
  detail: TableDetail | null,
): string[] {
  const design = detail?.entities.find((each) => each.name === entity);
  const fields = design?.fields.map((each) => each.attribute) ?? [];
  const own = design?.keys.find((key) => key.index === null);
  const inKey = new Set([...(own?.hash ?? []), ...(own?.range ?? [])].flatMap((part) => part.fields));
  const said = new Set((design?.fields ?? []).filter((each) => inKey.has(each.name)).map((each) => each.attribute));
  const order = (name: string) => {
    const at = fields.indexOf(name);
    if (at < 0 && (late.has(name) || name.startsWith("_"))) return 3_000;
    return (said.has(name) ? 2_000 : 0) + (at < 0 ? 1_000 : at);
  };
  return [...counts.keys()].sort(
    (one, other) => order(one) - order(other) || (counts.get(other) ?? 0) - (counts.get(one) ?? 0),
  );
}

/** Return the columns of a grid: the sort key and, in an index, the table's key; then the attributes. */
export function columnsOf(
  way: Way,
  rows: readonly Row[],
  table: TableSummary,
  detail: TableDetail | null,
  chosen: readonly string[] | null,
  flat: boolean,
): readonly Column[] {
  const keys = [...(flat ? way.hash : []), ...way.range, ...(way.index ? table.keys : [])].map((each) => each.name);
  const names = [...new Set(keys)];
  const attributes = (chosen ?? attributesOf(rows, table, detail).slice(0, AUTO)).filter(
    (name) => !names.includes(name),
  );
  const leads = new Map<string, string>();
  for (const index of table.indexes) {
    const hash = index.keys.filter((each) => each.role === "HASH");
    const only = hash[0];
    if (hash.length === 1 && only && !leads.has(only.name)) leads.set(only.name, index.name);
  }
  const sample = rows.slice(0, SAMPLE);
  return [
    ...names.map((name) => ({
      name,
      key: true,
      width: widthOf(name, sample, 340),
      title: titleOf(name, detail),
      leads: table.keys[0]?.name === name && table.keys.length > 1 ? "" : null,
    })),
    ...attributes.map((name) => ({
      name,
      key: false,
      width: widthOf(name, sample, 260),
      title: titleOf(name, detail),
      leads: leads.get(name) ?? null,
    })),
  ];
}

function widthOf(name: string, rows: readonly Row[], most: number): number {
  let letters = name.length + 1;
  for (const row of rows) {
    const value = held(row.item, name);
    if (value !== undefined) letters = Math.max(letters, shown(value, 48).length);
  }
  return Math.round(Math.min(most, Math.max(72, letters * LETTER + 20)));
}

/** Return what an attribute is, by the design: the fields that are stored as it. */
function titleOf(name: string, detail: TableDetail | null): string {
  const told = (detail?.entities ?? []).flatMap((entity) => {
    const field = entity.fields.find((each) => each.attribute === name);
    if (field) return [`${entity.name}.${field.name}: ${field.type}`];
    const part = entity.keys.flatMap((key) => [...key.hash, ...key.range]).find((each) => each.attribute === name);
    return part ? [`${entity.name}: ${part.template}`] : [];
  });
  return [name, ...new Set(told)].slice(0, 12).join("\n");
}

/** Return the type that an attribute has in the first row that has it. */
export function seenType(rows: readonly Row[], name: string): string | null {
  for (const row of rows.slice(0, SAMPLE)) {
    const value = held(row.item, name);
    if (value !== undefined) return Object.keys(value)[0] ?? null;
  }
  return null;
}

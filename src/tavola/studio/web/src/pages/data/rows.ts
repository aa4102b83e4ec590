// Rows: items as the grid shows them. A page holds what many rows share once; keys are split when they are rendered.
import type { Item, KeyPiece, KeyTextShape, RecognisedItem, ItemRow as ServerRow } from "../../generated/api";
import { attributeOf } from "./keys";

export interface Row {
  readonly item: Item;
  readonly entity: RecognisedItem;
  readonly keys: ServerRow["keys"];
  readonly shapes: readonly KeyTextShape[];
  /** The positions of the indexes that contain the item; null if unknown. */
  readonly indexes: readonly number[] | null;
}

const UNKNOWN: RecognisedItem = { entity: null, kind: "unknown", note: "" };

/** Return the rows of a page. */
export function rowsOf(page: {
  readonly rows: readonly ServerRow[];
  readonly entities: readonly RecognisedItem[];
  readonly shapes: readonly KeyTextShape[];
}): Row[] {
  const { entities, shapes } = page;
  return page.rows.map(({ item, entity, keys, indexes }) => ({
    item,
    entity: entities[entity] ?? UNKNOWN,
    keys,
    shapes,
    indexes,
  }));
}

/** Return a key attribute of a row split by its template; literals have no value. Null if it is not a string. */
export function piecesOf(row: Row, name: string): readonly KeyPiece[] | null {
  const cut = row.keys.find((each) => row.shapes[each[0] ?? -1]?.attribute === name);
  const shape = cut && row.shapes[cut[0] ?? -1];
  const text = attributeOf(row.item, name)?.["S"] as string | undefined;
  if (!cut || !shape || text === undefined) return null;
  const pieces: KeyPiece[] = [];
  const tail = shape.literals[shape.fields.length] ?? "";
  let at = 0;
  for (const [number, { name: field, values }] of shape.fields.entries()) {
    const literal = shape.literals[number] ?? "";
    if (literal) pieces.push({ text: literal, field: null, value: null });
    at += literal.length;
    const end = number === shape.fields.length - 1 ? text.length - tail.length : at + (cut[number + 1] ?? 0);
    const written = text.slice(at, end);
    pieces.push({
      text: written,
      field,
      value: Object.hasOwn(values, written) ? (values[written] ?? written) : written,
    });
    at = end;
  }
  if (tail) pieces.push({ text: tail, field: null, value: null });
  return pieces;
}

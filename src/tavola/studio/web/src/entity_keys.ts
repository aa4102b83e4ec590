// Entity keys: the keys of a design's entities, and the templates they are computed from.
import type { EntityDesign, KeyDesign, SourceDesign } from "./generated/api";

/** Return the keys of an entity, the table's own first. */
export function keysOf(entity: EntityDesign): readonly KeyDesign[] {
  return entity.key ? [entity.key, ...entity.keys] : entity.keys;
}

/** Return the key attributes of an entity, in the table and in indexes. */
export function keySources(entity: EntityDesign): readonly SourceDesign[] {
  return keysOf(entity).flatMap(({ hash, range }) => [...hash, ...range]);
}

const SHARD = "__shard__"; // the field of the shard number in a template

/** Return the template of a key attribute; one that is a field itself is `{field}`. */
export function templateText(source: SourceDesign): string {
  return templateParts(source)
    .map(({ text, field }) => (field === null ? text : `{${text}}`))
    .join("");
}

/** Return the literals and fields of a key attribute's template. */
export function templateParts({ template, field, attribute }: SourceDesign): readonly TemplatePart[] {
  if (!template) return [{ text: field ?? attribute, field: field ?? attribute }];
  return template.segments.map((each) => {
    if (typeof each === "string") return { text: each, field: null };
    if (each.field === SHARD) return { text: "shard", field: "shard" };
    return { text: each.spec ? `${each.field}:${each.spec}` : each.field, field: each.field };
  });
}

/** Return the fields that a key attribute is computed from. */
export function sourceFields(source: SourceDesign): readonly string[] {
  return templateParts(source).flatMap(({ field }) => field ?? []);
}

interface TemplatePart {
  readonly text: string;
  readonly field: string | null;
}

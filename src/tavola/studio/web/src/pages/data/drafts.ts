// Drafts: conditions while they are typed, as texts; and as the values that DynamoDB is asked with.
import type { AttributeValue, QueryCondition } from "../../generated/api";
import { type Tag, TAGS } from "../../parts";

export type Operator = QueryCondition["operator"];

export interface Draft {
  readonly id: number;
  readonly attribute: string;
  readonly operator: Operator;
  readonly texts: readonly string[];
  /** Null: as the key, the design or the rows have it. */
  readonly tag: Tag | null;
}

export const OPERATORS: readonly (readonly [Operator, string])[] = [
  ["=", "="],
  ["<>", "≠"],
  ["<", "<"],
  ["<=", "≤"],
  [">", ">"],
  [">=", "≥"],
  ["between", "between"],
  ["begins_with", "begins with"],
  ["contains", "contains"],
  ["not_contains", "does not contain"],
  ["in", "is one of"],
  ["exists", "exists"],
  ["not_exists", "does not exist"],
  ["type", "is of type"],
  ["size =", "size ="],
  ["size <>", "size ≠"],
  ["size <", "size <"],
  ["size <=", "size ≤"],
  ["size >", "size >"],
  ["size >=", "size ≥"],
];

/** The types that a value can be typed in. */
export const TYPED: readonly Tag[] = ["S", "N", "B", "BOOL", "NULL"];

let ids = 0;

export function emptyDraft(attribute = ""): Draft {
  ids += 1;
  return { id: ids, attribute, operator: "=", texts: [""], tag: null };
}

/** Return how many values an operator takes; -1: one or more. */
export function arity(operator: Operator): number {
  if (operator === "exists" || operator === "not_exists") return 0;
  if (operator === "between") return 2;
  return operator === "in" ? -1 : 1;
}

/** Return a draft with another operator, its texts kept as far as it takes them. */
export function withOperator(draft: Draft, operator: Operator): Draft {
  const count = arity(operator);
  const texts =
    count < 0
      ? draft.texts.length
        ? draft.texts
        : [""]
      : Array.from({ length: count }, (_, at) => draft.texts[at] ?? "");
  return {
    ...draft,
    operator,
    texts: operator === "type" && !(TAGS as readonly string[]).includes(texts[0] ?? "") ? ["S"] : texts,
  };
}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Return a text as a value of a type, or what is wrong with it. */
export function valueOf(text: string, tag: Tag): AttributeValue | string {
  switch (tag) {
    case "N":
      return NUMBER.test(text.trim()) ? { N: text.trim() } : "Give a number";
    case "B":
      return text && BASE64.test(text) ? { B: text } : "Give bytes in base64";
    case "BOOL":
      return { BOOL: text === "true" };
    case "NULL":
      return { NULL: true };
    default:
      return { S: text };
  }
}

/** Return a draft as a condition, or what is wrong with it; null: it asks nothing yet. */
export function conditionOf(draft: Draft, tag: Tag, isKey: boolean): QueryCondition | string | null {
  const attribute = draft.attribute.trim();
  if (!attribute) return draft.texts.some(Boolean) ? "Name an attribute" : null;
  const { operator } = draft;
  const values: AttributeValue[] = [];
  for (const text of draft.texts) {
    if (isKey && tag === "S" && text === "" && operator !== "type") return "A key is never empty";
    const value = operator.startsWith("size ")
      ? valueOf(text, "N")
      : operator === "type"
        ? { S: text }
        : valueOf(text, tag);
    if (typeof value === "string") return value;
    values.push(value);
  }
  return { attribute, operator, values };
}

/** Return conditions of the URL as drafts. */
export function draftsOf(conditions: readonly QueryCondition[]): Draft[] {
  return conditions.map((each) => {
    const values = each.values ?? [];
    const tag = (Object.keys(values[0] ?? {})[0] ?? "S") as Tag;
    const texts = values.map((value) => {
      const [of, held] = Object.entries(value)[0] ?? ["S", ""];
      return of === "NULL" ? "" : String(held);
    });
    const told = each.operator === "type" || each.operator.startsWith("size ") ? null : tag;
    return {
      ...emptyDraft(each.attribute),
      operator: each.operator,
      texts: texts.length || arity(each.operator) === 0 ? texts : [""],
      tag: told,
    };
  });
}

/** Return a name as a condition spells it: one with a dot, a bracket or a quote in it stands in quotes. */
export function pathOf(name: string): string {
  return /[.["]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

// ConditionDrafts: conditions while they are typed, as text, and their conversion to attribute values.
import type { AttributeValue, QueryCondition } from "../../generated/api";
import { type Tag, TAGS } from "../../parts/values";

export type Operator = QueryCondition["operator"];

export interface Draft {
  readonly id: number;
  readonly attribute: string;
  readonly operator: Operator;
  readonly texts: readonly string[];
  /** Null: the type of the key, of the design or of the rows. */
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
  ["type", "has type"],
  ["size =", "size ="],
  ["size <>", "size ≠"],
  ["size <", "size <"],
  ["size <=", "size ≤"],
  ["size >", "size >"],
  ["size >=", "size ≥"],
];

/** The types of values that can be typed in a condition. */
export const VALUE_TAGS: readonly Tag[] = ["S", "N", "B", "BOOL", "NULL"];

let ids = 0;

export function emptyDraft(attribute = ""): Draft {
  ids += 1;
  return { id: ids, attribute, operator: "=", texts: [""], tag: null };
}

/** Return the number of values an operator takes; -1 for one or more. */
export function arity(operator: Operator): number {
  if (operator === "exists" || operator === "not_exists") return 0;
  if (operator === "between") return 2;
  return operator === "in" ? -1 : 1;
}

/** Return a draft with another operator, keeping as many values as that takes. */
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
      return NUMBER.test(text.trim()) ? { N: text.trim() } : "Enter a number";
    case "B":
      return text && BASE64.test(text) ? { B: text } : "Enter base64";
    case "BOOL":
      return { BOOL: text === "true" };
    case "NULL":
      return { NULL: true };
    default:
      return { S: text };
  }
}

/** Return a draft as a condition, or what is wrong with it; null if it is still empty. */
export function conditionOf(draft: Draft, tag: Tag, isKey: boolean): QueryCondition | string | null {
  const attribute = draft.attribute.trim();
  if (!attribute) return draft.texts.some(Boolean) ? "Enter an attribute name" : null;
  const { operator } = draft;
  const values: AttributeValue[] = [];
  for (const text of draft.texts) {
    if (isKey && tag === "S" && text === "" && operator !== "type") return "A key value can't be empty";
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

/** Return the conditions in the URL as drafts. */
export function draftsOf(conditions: readonly QueryCondition[]): Draft[] {
  return conditions.map((each) => {
    const values = each.values ?? [];
    const tag = (Object.keys(values[0] ?? {})[0] ?? "S") as Tag;
    const texts = values.map((value) => {
      const [type, content] = Object.entries(value)[0] ?? ["S", ""];
      return type === "NULL" ? "" : String(content);
    });
    const ownTag = each.operator === "type" || each.operator.startsWith("size ") ? null : tag;
    return {
      ...emptyDraft(each.attribute),
      operator: each.operator,
      texts: texts.length || arity(each.operator) === 0 ? texts : [""],
      tag: ownTag,
    };
  });
}

/** Return an attribute name as a path: in quotes if it contains a dot, a bracket or a quote. */
export function pathOf(name: string): string {
  return /[.["]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

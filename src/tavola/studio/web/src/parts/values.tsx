// Values: attribute values as text. A DynamoDB number is never converted to a JavaScript number.
import type { AttributeValue } from "../generated/api";

export type Tag = "S" | "N" | "B" | "BOOL" | "NULL" | "L" | "M" | "SS" | "NS" | "BS";
export const TAGS: readonly Tag[] = ["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"];
export const TAG_NAMES: Readonly<Record<Tag, string>> = {
  S: "string",
  N: "number",
  B: "binary",
  BOOL: "boolean",
  NULL: "null",
  L: "list",
  M: "map",
  SS: "string set",
  NS: "number set",
  BS: "binary set",
};

/** The types to choose from in a form. */
export const TAG_OPTIONS = TAGS.map((tag) => ({ value: tag as string, label: `${tag} · ${TAG_NAMES[tag]}` }));

/** Return the type of an attribute value and its content. */
export function splitValue(value: AttributeValue): [Tag, unknown] {
  const [tag, content] = Object.entries(value)[0] ?? ["NULL", true];
  return [tag as Tag, content];
}

/** Return the number of bytes that base64 text encodes. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return Math.max(0, (text.length / 4) * 3 - padding);
}

const LENGTH_MAX = 160;

/** Return an attribute value as one short line. */
export function valueText(value: AttributeValue, most = LENGTH_MAX): string {
  const [tag, content] = splitValue(value);
  switch (tag) {
    case "S":
      return cut(content as string, most);
    case "N":
      return content as string;
    case "B":
      return `${base64Bytes(content as string).toLocaleString("en")} bytes`;
    case "BOOL":
      return content ? "true" : "false";
    case "NULL":
      return "null";
    case "L": {
      const list = content as AttributeValue[];
      return cut(
        `[${list
          .slice(0, 12)
          .map((each) => valueText(each, 40))
          .join(", ")}${list.length > 12 ? ", …" : ""}]`,
        most,
      );
    }
    case "M": {
      const map = Object.entries(content as Record<string, AttributeValue>);
      const members = map.slice(0, 8).map(([name, each]) => `${cut(name, 30)}: ${valueText(each, 40)}`);
      return cut(`{${members.join(", ")}${map.length > 8 ? ", …" : ""}}`, most);
    }
    case "SS":
    case "NS": {
      const set = content as string[];
      return cut(`{${set.slice(0, 12).join(", ")}${set.length > 12 ? ", …" : ""}}`, most);
    }
    case "BS":
      return `${(content as string[]).length} binaries`;
  }
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

const UNITS: readonly [number, string][] = [
  [1, "seconds"],
  [1e3, "milliseconds"],
  [1e6, "microseconds"],
  [1e9, "nanoseconds"],
];
const EARLIEST_S = 946_684_800; // the year 2000: smaller numbers are counts
const LATEST_S = 4_102_444_800; // the year 2100

/** Return the time that a number may represent, for a tooltip; "" if it is out of range. */
export function epochText(text: string): string {
  if (!/^\d{9,20}(\.\d+)?$/.test(text)) return "";
  const number = Number(text); // for the tooltip only: the value itself stays text
  for (const [factor, unit] of UNITS) {
    const seconds = number / factor;
    if (seconds >= EARLIEST_S && seconds < LATEST_S) {
      return `${new Date(seconds * 1000).toISOString().replace(".000Z", "Z")} (as epoch ${unit})`;
    }
  }
  return "";
}

/** One value on one line; a number that may be a time has a tooltip. */
export function Value({ value, type }: { value: AttributeValue | undefined; type?: boolean }) {
  if (value === undefined) return <span class="value absent">–</span>;
  const [tag, content] = splitValue(value);
  const time = tag === "N" ? epochText(content as string) : "";
  return (
    <span class={`value ${tag}`} title={time || undefined}>
      {type ? <span class="type">{tag}</span> : null}
      {valueText(value)}
    </span>
  );
}

export interface KeyPart {
  /** A literal of the key template, or the text of a field's value. */
  readonly text: string;
  readonly field?: string | null;
}

/** A key split by its template: literals are grey, field values are not. */
export function KeyParts({ parts }: { parts: readonly KeyPart[] }) {
  return (
    <span class="key-parts">
      {parts.map((part, at) => (
        <span key={at} class={part.field ? "field-value" : "literal"} title={part.field ?? undefined}>
          {part.text}
        </span>
      ))}
    </span>
  );
}

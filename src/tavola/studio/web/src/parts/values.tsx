// Values: attribute values as they are read, never as JavaScript numbers, and never as markup.
import type { AttributeValue } from "../generated/api";

export type Tag = "S" | "N" | "B" | "BOOL" | "NULL" | "L" | "M" | "SS" | "NS" | "BS";
export const TAGS: readonly Tag[] = ["S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"];
export const TAG_NAMES: Readonly<Record<Tag, string>> = {
  S: "text",
  N: "number",
  B: "binary",
  BOOL: "true or false",
  NULL: "null",
  L: "list",
  M: "map",
  SS: "set of texts",
  NS: "set of numbers",
  BS: "set of binaries",
};

/** Return a value's type and what it holds. */
export function taken(value: AttributeValue): [Tag, unknown] {
  const [tag, held] = Object.entries(value)[0] ?? ["NULL", true];
  return [tag as Tag, held];
}

/** Return how many bytes base64 text stands for. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return Math.max(0, (text.length / 4) * 3 - padding);
}

const SHOWN = 160;

/** Return a value in one short line. */
export function shown(value: AttributeValue, most = SHOWN): string {
  const [tag, held] = taken(value);
  switch (tag) {
    case "S":
      return cut(held as string, most);
    case "N":
      return held as string;
    case "B":
      return `${base64Bytes(held as string).toLocaleString("en")} bytes`;
    case "BOOL":
      return held ? "true" : "false";
    case "NULL":
      return "null";
    case "L": {
      const list = held as AttributeValue[];
      return cut(
        `[${list
          .slice(0, 12)
          .map((each) => shown(each, 40))
          .join(", ")}${list.length > 12 ? ", …" : ""}]`,
        most,
      );
    }
    case "M": {
      const map = Object.entries(held as Record<string, AttributeValue>);
      const told = map.slice(0, 8).map(([name, each]) => `${cut(name, 30)}: ${shown(each, 40)}`);
      return cut(`{${told.join(", ")}${map.length > 8 ? ", …" : ""}}`, most);
    }
    case "SS":
    case "NS": {
      const set = held as string[];
      return cut(`{${set.slice(0, 12).join(", ")}${set.length > 12 ? ", …" : ""}}`, most);
    }
    case "BS":
      return `${(held as string[]).length} binaries`;
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
const EARLIEST_S = 946_684_800; // the year 2000: what is smaller is a count
const LATEST_S = 4_102_444_800; // the year 2100

/** Return the time that a number may stand for, in words; "" where it stands for none. */
export function epochText(text: string): string {
  if (!/^\d{9,20}(\.\d+)?$/.test(text)) return "";
  const number = Number(text); // for a tooltip alone: the value itself stays text
  for (const [factor, unit] of UNITS) {
    const seconds = number / factor;
    if (seconds >= EARLIEST_S && seconds < LATEST_S) {
      return `${new Date(seconds * 1000).toISOString().replace(".000Z", "Z")} if it counts ${unit}`;
    }
  }
  return "";
}

/** One value, in a line; a number that may be a time says which when pointed at. */
export function Value({ value, type }: { value: AttributeValue | undefined; type?: boolean }) {
  if (value === undefined) return <span class="value absent">–</span>;
  const [tag, held] = taken(value);
  const time = tag === "N" ? epochText(held as string) : "";
  return (
    <span class={`value ${tag}`} title={time || undefined}>
      {type ? <span class="type">{tag}</span> : null}
      {shown(value)}
    </span>
  );
}

export interface KeyPart {
  /** Text of the template, or what a field's value is written as. */
  readonly text: string;
  readonly field?: string | null;
}

/** A key taken apart: what the template says is grey, what the item says is not. */
export function KeyParts({ parts }: { parts: readonly KeyPart[] }) {
  return (
    <span class="key-parts">
      {parts.map((part, at) => (
        <span key={at} class={part.field ? "given" : "literal"} title={part.field ?? undefined}>
          {part.text}
        </span>
      ))}
    </span>
  );
}

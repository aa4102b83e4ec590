// Spellings: an item as text in two spellings, plain JSON and DynamoDB JSON, each read back to the very same item.
import type { AttributeValue, Item } from "../../../generated/api";
import { TAGS, type Tag, taken } from "../../../parts";
import { type Json, parseExact } from "./exact_json";

export type Spelling = "plain" | "dynamodb";

/** What JSON has no word for stands in an object with one member; so the studio's files have it too. */
const WORDS = ["$binary", "$strings", "$numbers", "$binaries", "$map"];
const INDENT = "  ";

/** A text that is JSON and no item. */
export class SpellingMistake extends Error {}

/** Return an item as text, with line breaks. */
export function writeItem(item: Item, spelling: Spelling): string {
  const write = spelling === "plain" ? plain : dynamodb;
  return object(
    Object.entries(item).map(([name, value]) => [name, write(value, 1)] as const),
    0,
  );
}

/** Return the item that a text spells; throw a JsonMistake or SpellingMistake where it spells none. */
export function readItem(text: string, spelling: Spelling): Item {
  const found = parseExact(text);
  if (found.kind !== "object") throw new SpellingMistake("An item is an object: { … }");
  const read = spelling === "plain" ? fromPlain : fromDynamodb;
  return Object.fromEntries(found.members.map(([name, each]) => [name, read(each, name)]));
}

/** Return one value as DynamoDB JSON in a line. */
export function writeValue(value: AttributeValue): string {
  return JSON.stringify(value);
}

/** Return the value that a text spells as DynamoDB JSON. */
export function readValue(text: string): AttributeValue {
  return fromDynamodb(parseExact(text), "the value");
}

function object(members: readonly (readonly [string, string])[], depth: number): string {
  if (!members.length) return "{}";
  const inner = INDENT.repeat(depth + 1);
  return `{\n${members.map(([name, text]) => `${inner}${JSON.stringify(name)}: ${text}`).join(",\n")}\n${INDENT.repeat(depth)}}`;
}

function list(members: readonly string[], depth: number): string {
  if (!members.length) return "[]";
  const short = members.join(", ");
  if (short.length < 80 && !short.includes("\n")) return `[${short}]`;
  const inner = INDENT.repeat(depth + 1);
  return `[\n${members.map((text) => inner + text).join(",\n")}\n${INDENT.repeat(depth)}]`;
}

function plain(value: AttributeValue, depth: number): string {
  const [tag, held] = taken(value);
  switch (tag) {
    case "S":
      return JSON.stringify(held);
    case "N":
      return held as string;
    case "BOOL":
      return held ? "true" : "false";
    case "NULL":
      return "null";
    case "L":
      return list(
        (held as AttributeValue[]).map((each) => plain(each, depth + 1)),
        depth,
      );
    case "M": {
      const members = Object.entries(held as Item);
      const text = object(
        members.map(([name, each]) => [name, plain(each, depth + 1)] as const),
        depth,
      );
      return members.length === 1 && WORDS.includes(members[0]?.[0] ?? "") ? `{"$map": ${text}}` : text;
    }
    case "B":
      return `{"$binary": ${JSON.stringify(held)}}`;
    case "SS":
      return `{"$strings": ${list(
        (held as string[]).map((each) => JSON.stringify(each)),
        depth,
      )}}`;
    case "NS":
      return `{"$numbers": ${list(held as string[], depth)}}`;
    case "BS":
      return `{"$binaries": ${list(
        (held as string[]).map((each) => JSON.stringify(each)),
        depth,
      )}}`;
  }
}

function dynamodb(value: AttributeValue, depth: number): string {
  const [tag, held] = taken(value);
  if (tag === "M")
    return `{"M": ${object(
      Object.entries(held as Item).map(([name, each]) => [name, dynamodb(each, depth + 1)] as const),
      depth,
    )}}`;
  if (tag === "L")
    return `{"L": ${list(
      (held as AttributeValue[]).map((each) => dynamodb(each, depth + 1)),
      depth,
    )}}`;
  return `{${JSON.stringify(tag)}: ${
    Array.isArray(held)
      ? list(
          held.map((each) => JSON.stringify(each)),
          depth,
        )
      : JSON.stringify(held)
  }}`;
}

function fromPlain(found: Json, place: string): AttributeValue {
  switch (found.kind) {
    case "text":
      return { S: found.text };
    case "number":
      return { N: found.text };
    case "truth":
      return { BOOL: found.truth };
    case "null":
      return { NULL: true };
    case "list":
      return { L: found.members.map((each, at) => fromPlain(each, `${place}[${at}]`)) };
    case "object": {
      const only = found.members.length === 1 ? found.members[0] : undefined;
      if (only && WORDS.includes(only[0])) return worded(only[0], only[1], place);
      return { M: map(found, place, fromPlain) };
    }
  }
}

function map(found: Json, place: string, read: (each: Json, place: string) => AttributeValue): Item {
  if (found.kind !== "object") throw new SpellingMistake(`${place}: a map is an object: { … }`);
  return Object.fromEntries(found.members.map(([name, each]) => [name, read(each, `${place}.${name}`)]));
}

function worded(word: string, found: Json, place: string): AttributeValue {
  if (word === "$map") return { M: map(found, place, fromPlain) };
  if (word === "$binary") return { B: text(found, `${place}: $binary is followed by base64 text`) };
  const kind = word === "$numbers" ? "number" : "text";
  const told = `${place}: ${word} is followed by a list of ${kind === "number" ? "numbers" : "texts"}`;
  const members = texts(found, kind, told);
  return word === "$strings" ? { SS: members } : word === "$numbers" ? { NS: members } : { BS: members };
}

function text(found: Json, told: string): string {
  if (found.kind !== "text") throw new SpellingMistake(told);
  return found.text;
}

function texts(found: Json, kind: "text" | "number", told: string): string[] {
  if (found.kind !== "list") throw new SpellingMistake(told);
  return found.members.map((each) => {
    if (each.kind !== kind) throw new SpellingMistake(told);
    return each.text;
  });
}

function fromDynamodb(found: Json, place: string): AttributeValue {
  const only = found.kind === "object" && found.members.length === 1 ? found.members[0] : undefined;
  if (!only || !(TAGS as readonly string[]).includes(only[0])) {
    throw new SpellingMistake(`${place}: a value is an object with its type, such as {"S": "text"}`);
  }
  const [name, held] = only;
  const tag = name as Tag;
  switch (tag) {
    case "S":
    case "N":
    case "B":
      return { [tag]: text(held, `${place}: ${tag} holds a text in quotes`) };
    case "BOOL":
    case "NULL":
      if (held.kind !== "truth") throw new SpellingMistake(`${place}: ${tag} holds true or false`);
      return { [tag]: held.truth };
    case "SS":
    case "NS":
    case "BS":
      return { [tag]: texts(held, "text", `${place}: ${tag} holds a list of texts in quotes`) };
    case "L":
      if (held.kind !== "list") throw new SpellingMistake(`${place}: L holds a list of values`);
      return { L: held.members.map((each, at) => fromDynamodb(each, `${place}[${at}]`)) };
    case "M":
      return { M: map(held, place, fromDynamodb) };
  }
}

// ItemJson: an item as text, in plain JSON or DynamoDB JSON; both read back to exactly the same item.
import type { AttributeValue, Item } from "../../../generated/api";
import { TAGS, type Tag, splitValue } from "../../../parts/values";
import { type Json, parseExact } from "./exact_json";

export type JsonFormat = "plain" | "dynamodb";

/** Types that JSON lacks are objects with one of these members, as in exported files. */
const WRAPPERS = ["$binary", "$strings", "$numbers", "$binaries", "$map"];
const INDENT = "  ";

/** JSON that is not an item. */
export class ItemFormatError extends Error {}

/** Return an item as text, with line breaks. */
export function writeItem(item: Item, format: JsonFormat): string {
  const write = format === "plain" ? plain : dynamodb;
  return object(
    Object.entries(item).map(([name, value]) => [name, write(value, 1)] as const),
    0,
  );
}

/** Parse the text of an item; throw a JsonSyntaxError or ItemFormatError if it is invalid. */
export function readItem(text: string, format: JsonFormat): Item {
  const found = parseExact(text);
  if (found.kind !== "object") throw new ItemFormatError("An item must be an object: { … }");
  const read = format === "plain" ? fromPlain : fromDynamodb;
  return Object.fromEntries(found.members.map(([name, each]) => [name, read(each, name)]));
}

/** Parse one value in DynamoDB JSON. */
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
  const [tag, content] = splitValue(value);
  switch (tag) {
    case "S":
      return JSON.stringify(content);
    case "N":
      return content as string;
    case "BOOL":
      return content ? "true" : "false";
    case "NULL":
      return "null";
    case "L":
      return list(
        (content as AttributeValue[]).map((each) => plain(each, depth + 1)),
        depth,
      );
    case "M": {
      const members = Object.entries(content as Item);
      const text = object(
        members.map(([name, each]) => [name, plain(each, depth + 1)] as const),
        depth,
      );
      return members.length === 1 && WRAPPERS.includes(members[0]?.[0] ?? "") ? `{"$map": ${text}}` : text;
    }
    case "B":
      return `{"$binary": ${JSON.stringify(content)}}`;
    case "SS":
      return `{"$strings": ${list(
        (content as string[]).map((each) => JSON.stringify(each)),
        depth,
      )}}`;
    case "NS":
      return `{"$numbers": ${list(content as string[], depth)}}`;
    case "BS":
      return `{"$binaries": ${list(
        (content as string[]).map((each) => JSON.stringify(each)),
        depth,
      )}}`;
  }
}

function dynamodb(value: AttributeValue, depth: number): string {
  const [tag, content] = splitValue(value);
  if (tag === "M")
    return `{"M": ${object(
      Object.entries(content as Item).map(([name, each]) => [name, dynamodb(each, depth + 1)] as const),
      depth,
    )}}`;
  if (tag === "L")
    return `{"L": ${list(
      (content as AttributeValue[]).map((each) => dynamodb(each, depth + 1)),
      depth,
    )}}`;
  return `{${JSON.stringify(tag)}: ${
    Array.isArray(content)
      ? list(
          content.map((each) => JSON.stringify(each)),
          depth,
        )
      : JSON.stringify(content)
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
      if (only && WRAPPERS.includes(only[0])) return parseWrapped(only[0], only[1], place);
      return { M: map(found, place, fromPlain) };
    }
  }
}

function map(found: Json, place: string, read: (each: Json, place: string) => AttributeValue): Item {
  if (found.kind !== "object") throw new ItemFormatError(`${place}: a map must be an object: { … }`);
  return Object.fromEntries(found.members.map(([name, each]) => [name, read(each, `${place}.${name}`)]));
}

function parseWrapped(word: string, found: Json, place: string): AttributeValue {
  if (word === "$map") return { M: map(found, place, fromPlain) };
  if (word === "$binary") return { B: text(found, `${place}: $binary takes a base64 string`) };
  const kind = word === "$numbers" ? "number" : "text";
  const message = `${place}: ${word} takes a list of ${kind === "number" ? "numbers" : "strings"}`;
  const members = texts(found, kind, message);
  return word === "$strings" ? { SS: members } : word === "$numbers" ? { NS: members } : { BS: members };
}

function text(found: Json, message: string): string {
  if (found.kind !== "text") throw new ItemFormatError(message);
  return found.text;
}

function texts(found: Json, kind: "text" | "number", message: string): string[] {
  if (found.kind !== "list") throw new ItemFormatError(message);
  return found.members.map((each) => {
    if (each.kind !== kind) throw new ItemFormatError(message);
    return each.text;
  });
}

function fromDynamodb(found: Json, place: string): AttributeValue {
  const only = found.kind === "object" && found.members.length === 1 ? found.members[0] : undefined;
  if (!only || !(TAGS as readonly string[]).includes(only[0])) {
    throw new ItemFormatError(`${place}: a value must be an object with its type, such as {"S": "text"}`);
  }
  const [name, content] = only;
  const tag = name as Tag;
  switch (tag) {
    case "S":
    case "N":
    case "B":
      return { [tag]: text(content, `${place}: ${tag} takes a string in quotes`) };
    case "BOOL":
    case "NULL":
      if (content.kind !== "truth") throw new ItemFormatError(`${place}: ${tag} takes true or false`);
      return { [tag]: content.truth };
    case "SS":
    case "NS":
    case "BS":
      return { [tag]: texts(content, "text", `${place}: ${tag} takes a list of strings in quotes`) };
    case "L":
      if (content.kind !== "list") throw new ItemFormatError(`${place}: L takes a list of values`);
      return { L: content.members.map((each, at) => fromDynamodb(each, `${place}[${at}]`)) };
    case "M":
      return { M: map(content, place, fromDynamodb) };
  }
}

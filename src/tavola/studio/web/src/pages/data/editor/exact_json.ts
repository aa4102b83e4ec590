// ExactJson: a JSON parser that keeps every number as text and reports errors by line and column.

export type Json =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "truth"; readonly truth: boolean }
  | { readonly kind: "null" }
  | { readonly kind: "list"; readonly members: readonly Json[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [string, Json])[] };

/** A syntax error and its position. */
export class JsonSyntaxError extends Error {
  readonly line: number;
  readonly column: number;
  constructor(message: string, text: string, at: number) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    super(message);
    this.line = line;
    this.column = at - before.lastIndexOf("\n");
  }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\r\n]*/y;
// eslint-disable-next-line no-control-regex -- JSON forbids raw control characters in strings
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};
const DEPTH_MAX = 200; // DynamoDB allows 32; deeper text could exhaust the stack

/** Parse JSON text; throw a JsonSyntaxError if it is invalid. */
export function parseExact(text: string): Json {
  let at = 0;

  const fail = (message: string, place = at): never => {
    throw new JsonSyntaxError(message, text, place);
  };
  const space = () => {
    SPACE.lastIndex = at;
    SPACE.test(text);
    at = SPACE.lastIndex;
  };
  const word = (expected: string, result: Json): Json => {
    if (!text.startsWith(expected, at)) fail(`Expected a value, found ${nextText()}`);
    at += expected.length;
    return result;
  };
  const nextText = () => (at >= text.length ? "the end of the text" : `“${text.slice(at, at + 12).split("\n")[0]}”`);

  const parseString = (): string => {
    const start = at;
    at += 1;
    const pieces: string[] = [];
    for (;;) {
      PLAIN.lastIndex = at;
      PLAIN.test(text);
      pieces.push(text.slice(at, PLAIN.lastIndex));
      at = PLAIN.lastIndex;
      const sign = text[at];
      if (sign === undefined) fail("Unterminated string", start);
      if (sign === '"') {
        at += 1;
        return pieces.join("");
      }
      if (sign !== "\\") fail("Escape line breaks and control characters in strings, for example as \\n");
      const escape = text[at + 1] ?? "";
      if (escape === "u") {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) fail("\\u must be followed by four hexadecimal digits");
        pieces.push(String.fromCharCode(parseInt(digits, 16)));
        at += 6;
      } else {
        const character = ESCAPES[escape];
        if (character === undefined) fail(`Unknown escape \\${escape}`);
        pieces.push(character ?? "");
        at += 2;
      }
    }
  };

  const value = (depth: number): Json => {
    if (depth > DEPTH_MAX) fail("Nested too deeply");
    space();
    const sign = text[at];
    if (sign === '"') return { kind: "text", text: parseString() };
    if (sign === "{") return object(depth);
    if (sign === "[") return list(depth);
    if (sign === "t") return word("true", { kind: "truth", truth: true });
    if (sign === "f") return word("false", { kind: "truth", truth: false });
    if (sign === "n") return word("null", { kind: "null" });
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text)) fail(`Expected a value, found ${nextText()}`);
    const number = text.slice(at, NUMBER.lastIndex);
    at = NUMBER.lastIndex;
    return { kind: "number", text: number };
  };

  const list = (depth: number): Json => {
    const members: Json[] = [];
    at += 1;
    space();
    if (text[at] === "]") {
      at += 1;
      return { kind: "list", members };
    }
    for (;;) {
      members.push(value(depth + 1));
      space();
      if (text[at] === "]") break;
      if (text[at] !== ",") fail(`Expected a comma or ], found ${nextText()}`);
      at += 1;
    }
    at += 1;
    return { kind: "list", members };
  };

  const object = (depth: number): Json => {
    const members: [string, Json][] = [];
    const seen = new Set<string>();
    at += 1;
    space();
    if (text[at] === "}") {
      at += 1;
      return { kind: "object", members };
    }
    for (;;) {
      space();
      const place = at;
      if (text[at] !== '"') fail(`Expected a name in quotes, found ${nextText()}`);
      const name = parseString();
      if (seen.has(name)) fail(`Duplicate name “${name}”`, place);
      seen.add(name);
      space();
      if (text[at] !== ":") fail(`Expected a colon, found ${nextText()}`);
      at += 1;
      members.push([name, value(depth + 1)]);
      space();
      if (text[at] === "}") break;
      if (text[at] !== ",") fail(`Expected a comma or }, found ${nextText()}`);
      at += 1;
    }
    at += 1;
    return { kind: "object", members };
  };

  const result = value(0);
  space();
  if (at < text.length) fail(`Unexpected ${nextText()} after the end`);
  return result;
}

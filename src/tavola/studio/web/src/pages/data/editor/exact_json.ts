// ExactJson: JSON read with every number as the text it was written in, and every mistake at its line and column.

export type Json =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "truth"; readonly truth: boolean }
  | { readonly kind: "null" }
  | { readonly kind: "list"; readonly members: readonly Json[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [string, Json])[] };

/** A mistake in a text, and where it is. */
export class JsonMistake extends Error {
  readonly line: number;
  readonly column: number;
  constructor(told: string, text: string, at: number) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    super(told);
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
const DEPTH_MAX = 200; // DynamoDB takes 32; a text made to exhaust the stack is refused before it does

/** Return what a text says; throw a JsonMistake where it is no JSON. */
export function parseExact(text: string): Json {
  let at = 0;

  const fail = (told: string, place = at): never => {
    throw new JsonMistake(told, text, place);
  };
  const space = () => {
    SPACE.lastIndex = at;
    SPACE.test(text);
    at = SPACE.lastIndex;
  };
  const word = (wanted: string, made: Json): Json => {
    if (!text.startsWith(wanted, at)) fail(`${shownAt()} stands where a value should`);
    at += wanted.length;
    return made;
  };
  const shownAt = () => (at >= text.length ? "The end" : `“${text.slice(at, at + 12).split("\n")[0]}”`);

  const quoted = (): string => {
    const start = at;
    at += 1;
    const pieces: string[] = [];
    for (;;) {
      PLAIN.lastIndex = at;
      PLAIN.test(text);
      pieces.push(text.slice(at, PLAIN.lastIndex));
      at = PLAIN.lastIndex;
      const sign = text[at];
      if (sign === undefined) fail("A text is opened and never closed", start);
      if (sign === '"') {
        at += 1;
        return pieces.join("");
      }
      if (sign !== "\\") fail("A line break or control character in a text is written as an escape, such as \\n");
      const escape = text[at + 1] ?? "";
      if (escape === "u") {
        const digits = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) fail("\\u is followed by four hexadecimal digits");
        pieces.push(String.fromCharCode(parseInt(digits, 16)));
        at += 6;
      } else {
        const meant = ESCAPES[escape];
        if (meant === undefined) fail(`There is no escape \\${escape}`);
        pieces.push(meant ?? "");
        at += 2;
      }
    }
  };

  const value = (depth: number): Json => {
    if (depth > DEPTH_MAX) fail("It is nested too deep");
    space();
    const sign = text[at];
    if (sign === '"') return { kind: "text", text: quoted() };
    if (sign === "{") return object(depth);
    if (sign === "[") return list(depth);
    if (sign === "t") return word("true", { kind: "truth", truth: true });
    if (sign === "f") return word("false", { kind: "truth", truth: false });
    if (sign === "n") return word("null", { kind: "null" });
    NUMBER.lastIndex = at;
    if (!NUMBER.test(text)) fail(`${shownAt()} stands where a value should`);
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
      if (text[at] !== ",") fail(`${shownAt()} stands where a comma or ] should`);
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
      if (text[at] !== '"') fail(`${shownAt()} stands where a name in quotes should`);
      const name = quoted();
      if (seen.has(name)) fail(`“${name}” stands there twice`, place);
      seen.add(name);
      space();
      if (text[at] !== ":") fail(`${shownAt()} stands where a colon should`);
      at += 1;
      members.push([name, value(depth + 1)]);
      space();
      if (text[at] === "}") break;
      if (text[at] !== ",") fail(`${shownAt()} stands where a comma or } should`);
      at += 1;
    }
    at += 1;
    return { kind: "object", members };
  };

  const found = value(0);
  space();
  if (at < text.length) fail(`${shownAt()} stands behind the end`);
  return found;
}

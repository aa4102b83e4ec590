import { describe, expect, it } from "vitest";
import { JsonSyntaxError, parseExact } from "./exact_json";
import { ItemFormatError, readItem, writeItem } from "./item_json";

const ITEM = {
  text: { S: 'a "quoted"\nline' },
  number: { N: "12345678901234567890123456789012345678" },
  binary: { B: "AAEC" },
  flag: { BOOL: true },
  nothing: { NULL: true },
  list: { L: [{ N: "1.10" }, { M: {} }] },
  map: { M: { $binary: { S: "not a wrapper" } } },
  strings: { SS: ["a", "b"] },
  numbers: { NS: ["1", "2.50"] },
};

describe("an item as JSON", () => {
  it.each(["plain", "dynamodb"] as const)("reads back equal from %s JSON", (format) => {
    expect(readItem(writeItem(ITEM, format), format)).toEqual(ITEM);
  });
  it("keeps every digit of a number", () => {
    expect(readItem('{"n": 0.10}', "plain")).toEqual({ n: { N: "0.10" } });
  });
  it("rejects JSON that is not an item", () => {
    expect(() => readItem("[]", "plain")).toThrow(ItemFormatError);
    expect(() => readItem('{"a": {"X": "1"}}', "dynamodb")).toThrow(/a value must be an object with its type/);
    expect(() => readItem('{"a": {"$numbers": ["1"]}}', "plain")).toThrow(/takes a list of numbers/);
  });
});

describe("syntax errors", () => {
  const failure = (text: string): JsonSyntaxError => {
    try {
      parseExact(text);
    } catch (thrown) {
      if (thrown instanceof JsonSyntaxError) return thrown;
    }
    throw new Error(`${text} was accepted`);
  };

  it("have a line and a column", () => {
    const error = failure('{\n  "a": tru\n}');
    expect([error.line, error.column]).toEqual([2, 8]);
    expect(error.message).toBe("Expected a value, found “tru”");
  });
  it.each([
    ['{"a": 1, "a": 2}', "Duplicate name “a”"],
    ['{"a" 1}', "Expected a colon, found “1}”"],
    ["[1 2]", "Expected a comma or ], found “2]”"],
    ['"open', "Unterminated string"],
    ['"\\x"', "Unknown escape \\x"],
    ["1 1", "Unexpected “1” after the end"],
    ["", "Expected a value, found the end of the text"],
    ["[".repeat(300), "Nested too deeply"],
  ])("%s", (text, message) => {
    expect(failure(text).message).toBe(message);
  });
});

import { describe, expect, it } from "vitest";
import { conditionOf, draftsOf, emptyDraft, pathOf, withOperator } from "./condition_drafts";

const draft = (attribute: string, text: string) => ({ ...emptyDraft(attribute), texts: [text] });

describe("conditions", () => {
  it("become typed values", () => {
    expect(conditionOf(draft("total", " 12.50 "), "N", false)).toEqual({
      attribute: "total",
      operator: "=",
      values: [{ N: "12.50" }],
    });
  });
  it("say what is wrong", () => {
    expect(conditionOf(draft("total", "many"), "N", false)).toBe("Enter a number");
    expect(conditionOf(draft("PK", ""), "S", true)).toBe("A key value can't be empty");
    expect(conditionOf(draft("", "x"), "S", false)).toBe("Enter an attribute name");
    expect(conditionOf(draft("data", "???"), "B", false)).toBe("Enter base64");
  });
  it("are nothing while they are empty", () => {
    expect(conditionOf(draft("", ""), "S", false)).toBeNull();
  });
  it("keep as many values as the operator takes", () => {
    const between = withOperator(draft("total", "1"), "between");
    expect(between.texts).toEqual(["1", ""]);
    expect(withOperator(between, "exists").texts).toEqual([]);
    expect(withOperator(between, "type").texts).toEqual(["S"]);
  });
  it("survive the way through the URL", () => {
    const condition = { attribute: "total", operator: "between" as const, values: [{ N: "1" }, { N: "2" }] };
    const [restored] = draftsOf([condition]);
    expect(restored && conditionOf(restored, "N", false)).toEqual(condition);
  });
  it("quote names with special characters", () => {
    expect(["plain", "a.b", 'say "hi"'].map(pathOf)).toEqual(["plain", '"a.b"', '"say ""hi"""']);
  });
});

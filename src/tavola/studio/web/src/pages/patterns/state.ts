// State: the form of an access pattern. The URL holds the pattern and the values of the last run, so that a link runs the same.
import { go, route } from "../../app/router";
import type { DesignedPattern, EnteredValue, RunPatternRequest } from "../../generated/api";

/** The value entered for one parameter. */
export interface Entry {
  readonly value: string;
  readonly operator: string;
  readonly until: string;
}

/** The form while it is being filled in. */
export interface Draft {
  readonly entries: Readonly<Record<string, Entry>>;
  readonly newestFirst: boolean;
  readonly limit: string;
  readonly consistent: boolean;
}

const EMPTY: Entry = { value: "", operator: "=", until: "" };

type Params = Readonly<Record<string, string>>;

/** Return the form with the values in the URL, or its initial values. */
export function draftOf(pattern: DesignedPattern, params: Params): Draft {
  const entries: Record<string, Entry> = {};
  for (const parameter of pattern.parameters) {
    entries[parameter.name] = {
      value: params[`p.${parameter.name}`] ?? "",
      operator: params[`o.${parameter.name}`] ?? parameter.operators[0] ?? "=",
      until: params[`u.${parameter.name}`] ?? "",
    };
  }
  const ran = params["run"] === "yes";
  return {
    entries,
    newestFirst: ran ? params["desc"] === "yes" : pattern.descending,
    limit: ran ? (params["limit"] ?? "") : pattern.limit === null ? "" : String(pattern.limit),
    consistent: ran ? params["strong"] === "yes" : pattern.consistent,
  };
}

/** Return an entry of a draft. */
export function entryOf(draft: Draft, name: string): Entry {
  return draft.entries[name] ?? EMPTY;
}

/** Return a draft with one entry changed. */
export function withEntry(draft: Draft, name: string, change: Partial<Entry>): Draft {
  return { ...draft, entries: { ...draft.entries, [name]: { ...entryOf(draft, name), ...change } } };
}

/** Return the request that runs a draft. */
export function runRequest(pattern: DesignedPattern, draft: Draft, asOf: string): RunPatternRequest {
  const values: EnteredValue[] = [];
  for (const parameter of pattern.parameters) {
    const entry = entryOf(draft, parameter.name);
    if (entry.value !== "")
      values.push({
        name: parameter.name,
        value: entry.value,
        operator: entry.operator,
        until: entry.operator === "between" ? entry.until : "",
      });
  }
  const limit = Math.floor(Number(draft.limit));
  return {
    pattern: pattern.id,
    values,
    newest_first: pattern.ordered && draft.newestFirst,
    limit: draft.limit !== "" && limit > 0 ? limit : null,
    consistent: pattern.consistency && draft.consistent,
    as_of: asOf || null,
  };
}

/** Write the draft to the URL, which runs it. */
export function commit(pattern: DesignedPattern, draft: Draft): void {
  const params: Record<string, string | null> = {
    ...clearedParams(),
    pattern: pattern.id,
    run: "yes",
    desc: pattern.ordered && draft.newestFirst ? "yes" : null,
    limit: draft.limit || null,
    strong: pattern.consistency && draft.consistent ? "yes" : null,
  };
  for (const parameter of pattern.parameters) {
    const entry = entryOf(draft, parameter.name);
    if (entry.value === "") continue;
    params[`p.${parameter.name}`] = entry.value;
    if (entry.operator !== parameter.operators[0]) params[`o.${parameter.name}`] = entry.operator;
    if (entry.operator === "between") params[`u.${parameter.name}`] = entry.until;
  }
  go({ params });
}

/** Select another pattern, without the values of this one. */
export function choose(id: string): void {
  go({ params: { ...clearedParams(), view: null, pattern: id } });
}

/** Return the parameters that remove the values of this pattern from the URL. */
export function clearedParams(): Record<string, null> {
  const names = Object.keys(route.value.params).filter((name) =>
    /^([pou]\.|run$|desc$|limit$|strong$|pattern$)/.test(name),
  );
  return Object.fromEntries(names.map((name) => [name, null]));
}

/** Return which value is missing to run a draft; "" if none. */
export function missingValue(pattern: DesignedPattern, draft: Draft): string {
  for (const parameter of pattern.parameters) {
    const entry = entryOf(draft, parameter.name);
    if (parameter.required && entry.value === "") return `${parameter.name} is required`;
    if (entry.value !== "" && entry.operator === "between" && entry.until === "")
      return `${parameter.name} needs an upper bound`;
  }
  return "";
}

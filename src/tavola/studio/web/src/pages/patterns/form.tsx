// Form: the parameters of an access pattern, prefilled from an item of the table so that it can be run at once.
import { useEffect, useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { asOf } from "../../app/as_of";
import { useCommands } from "../../app/commands";
import { route } from "../../app/router";
import type { DesignedPattern, PatternParameter } from "../../generated/api";
import { Badge, Button, Checkbox, Chip, plainOptions, Segmented, Select, TextInput } from "../../parts";
import { commit, type Draft, draftOf, entryOf, missingValue, withEntry } from "./state";

const HINTS: Readonly<Partial<Record<PatternParameter["kind"], string>>> = {
  datetime: "2026-08-01T12:00:00Z",
  uuid: "1b4e28ba-2fa1-4d2b-883f-0016d3cca427",
  bytes: "base64",
};
const NAMES: Readonly<Record<string, string>> = { begins_with: "begins with", in: "one of" };

interface PatternFormProps {
  pattern: DesignedPattern;
  running: boolean;
  rerun: () => void;
}

export function PatternForm({ pattern, running, rerun }: PatternFormProps) {
  const params = route.value.params;
  const shape = Object.entries(params)
    .filter(([name]) => /^([pou]\.|run|desc|limit|strong)/.test(name))
    .map(String)
    .join("&");
  const [draft, setDraft] = useState<Draft>(() => draftOf(pattern, params));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const needsExample = pattern.runnable && pattern.parameters.some((each) => each.required);
  const example = useQuery(
    "GET /patterns/example",
    needsExample ? { pattern: pattern.id, as_of: asOf.value || null } : null,
  );
  const values = example.data?.pattern === pattern.id ? example.data.values : {};
  useEffect(() => {
    setDraft(fillIn(pattern, draftOf(pattern, route.value.params), params["run"] === "yes" ? {} : values, new Set()));
    setTouched(new Set());
  }, [pattern.id, shape]);
  const fresh = touched.size === 0 && params["run"] !== "yes";
  useEffect(() => {
    if (params["run"] !== "yes") setDraft((before) => fillIn(pattern, before, values, touched));
  }, [example.data, pattern.id]);
  const change = (next: Draft, name = "") => {
    setTouched(new Set([...touched, name]));
    setDraft(next);
  };
  const missing = missingValue(pattern, draft);
  const run = () => {
    if (missing) return;
    const before = location.search;
    commit(pattern, draft);
    if (location.search === before) rerun();
  };
  useCommands(
    pattern.runnable
      ? [
          {
            id: "patterns-run",
            title: "Run the pattern",
            keys: "mod+enter",
            group: "Access patterns",
            always: true,
            run,
          },
        ]
      : [],
  );
  return (
    <form
      class="stack"
      aria-label={`Run ${pattern.title}`}
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      {pattern.parameters.length ? (
        <div class="patterns-fields">
          {pattern.parameters.map((each) => (
            <Parameter
              key={each.name}
              parameter={each}
              draft={draft}
              example={values[each.name] ?? ""}
              onChange={change}
            />
          ))}
        </div>
      ) : (
        <p class="muted">This pattern has no parameters.</p>
      )}
      {pattern.operation === "Query" || pattern.operation === "Scan" || pattern.consistency ? (
        <div class="patterns-options">
          {pattern.ordered ? (
            <Segmented
              label="Order"
              options={[
                { value: "up", label: "Ascending" },
                { value: "down", label: "Descending" },
              ]}
              value={draft.newestFirst ? "down" : "up"}
              onChange={(value) => change({ ...draft, newestFirst: value === "down" })}
            />
          ) : null}
          {pattern.operation === "Query" || pattern.operation === "Scan" ? (
            <TextInput
              label="Limit"
              type="number"
              min={1}
              class="patterns-limit"
              value={draft.limit}
              placeholder="all"
              onInput={(limit) => change({ ...draft, limit })}
            />
          ) : null}
          {pattern.consistency ? (
            <Checkbox
              label="Consistent read"
              checked={draft.consistent}
              onChange={(consistent) => change({ ...draft, consistent })}
            />
          ) : (
            <span class="small muted">Global index reads are eventually consistent.</span>
          )}
        </div>
      ) : null}
      <div class="row">
        <Button kind="primary" type="submit" disabled={missing !== ""} title="Ctrl Enter">
          {running ? "Running…" : "Run"}
        </Button>
        <span class="small muted" role="status">
          {missing || (fresh && example.data?.pattern === pattern.id ? example.data.note : "")}
          {example.problem ? ` No example: ${example.problem.title.toLowerCase()}.` : ""}
        </span>
      </div>
    </form>
  );
}

/** Return a draft with an example in every required field that is empty and that the user did not clear. */
function fillIn(
  pattern: DesignedPattern,
  draft: Draft,
  values: Readonly<Record<string, string>>,
  touched: ReadonlySet<string>,
): Draft {
  return pattern.parameters.reduce((before, each) => {
    const value = values[each.name];
    return each.required && value && !touched.has(each.name) && entryOf(before, each.name).value === ""
      ? withEntry(before, each.name, { value })
      : before;
  }, draft);
}

interface ParameterProps {
  parameter: PatternParameter;
  draft: Draft;
  example: string;
  onChange: (draft: Draft, name: string) => void;
}

function Parameter({ parameter, draft, example, onChange }: ParameterProps) {
  const entry = entryOf(draft, parameter.name);
  const set = (change: Partial<typeof entry>) => onChange(withEntry(draft, parameter.name, change), parameter.name);
  if (parameter.constant.length) {
    const constant = parameter.constant.join(", ");
    return (
      <div class="field">
        <span class="patterns-label">{parameter.name}</span>
        <span class="mono">
          {`${NAMES[parameter.operators[0] ?? "="] ?? parameter.operators[0]} ${constant}`.trim()}
        </span>
        <span class="hint">constant</span>
      </div>
    );
  }
  const hint =
    parameter.role === "filter" ? "filter: items it excludes are still read and billed" : parameter.description;
  const between = entry.operator === "between";
  return (
    <div class={`patterns-parameter ${parameter.role}`}>
      {parameter.operators.length > 1 ? (
        <Select
          label={`Operator for ${parameter.name}`}
          hideLabel
          value={entry.operator}
          options={parameter.operators.map((each) => ({ value: each, label: NAMES[each] ?? each }))}
          onChange={(operator) => set({ operator })}
        />
      ) : null}
      <Input
        parameter={parameter}
        label={parameter.name}
        value={entry.value}
        example={example}
        hint={hint}
        onInput={(value) => set({ value })}
      />
      {between ? (
        <Input
          parameter={parameter}
          label={`${parameter.name}, to`}
          value={entry.until}
          example=""
          hint=""
          onInput={(until) => set({ until })}
        />
      ) : null}
    </div>
  );
}

interface InputProps {
  parameter: PatternParameter;
  label: string;
  value: string;
  example: string;
  hint: string;
  onInput: (value: string) => void;
}

function Input({ parameter, label, value, example, hint, onInput }: InputProps) {
  const many = parameter.operators[0] === "in";
  const choices = parameter.kind === "bool" ? ["true", "false"] : parameter.choices;
  const more = hint ? { hint } : {};
  if (choices.length && !many) {
    return (
      <Select
        label={label}
        value={value}
        options={[{ value: "", label: parameter.required ? "Select…" : "Any" }, ...plainOptions(choices)]}
        onChange={onInput}
        {...more}
      />
    );
  }
  const day = parameter.kind === "date" && !many;
  return (
    <TextInput
      label={label}
      type={day ? "date" : "text"}
      mono
      value={value}
      required={parameter.required}
      inputMode={parameter.kind === "int" ? "numeric" : parameter.kind === "decimal" ? "decimal" : "text"}
      placeholder={parameter.required ? (HINTS[parameter.kind] ?? "") : example ? `any, such as ${example}` : "any"}
      onInput={onInput}
      {...(many ? { hint: "comma-separated" } : more)}
    />
  );
}

/** The entities, operation, key and index of a pattern. */
export function PatternHead({ pattern }: { pattern: DesignedPattern }) {
  return (
    <div class="stack tight">
      <div class="row tight">
        {pattern.entities.map((name) => (
          <Chip key={name} name={name} />
        ))}
        <Badge>{pattern.operation || "no operation"}</Badge>
        {pattern.shards > 1 ? <Badge>{pattern.shards} shards</Badge> : null}
        <code class="muted">{pattern.place}</code>
      </div>
      {pattern.key.length ? (
        <p class="mono patterns-key">
          {pattern.index ? <strong>{pattern.index}: </strong> : null}
          {pattern.key.join("  ·  ")}
        </p>
      ) : null}
    </div>
  );
}

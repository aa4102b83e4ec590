// Form: a pattern's parameters, filled in from an item of the table so that it can be run at once.
import { useEffect, useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { asOf } from "../../app/as_of";
import { useCommands } from "../../app/commands";
import { route } from "../../app/router";
import type { DesignedPattern, PatternParameter } from "../../generated/api";
import { Badge, Button, Checkbox, Chip, type Option, Segmented, Select, TextInput } from "../../parts";
import { commit, type Draft, draftOf, entryOf, lacking, withEntry } from "./state";

const HINTS: Readonly<Partial<Record<PatternParameter["kind"], string>>> = {
  datetime: "2026-08-01T12:00:00Z",
  uuid: "1b4e28ba-2fa1-4d2b-883f-0016d3cca427",
  bytes: "base64",
};
const NAMES: Readonly<Record<string, string>> = { begins_with: "begins with", in: "one of" };

export function PatternForm({
  pattern,
  running,
  again,
}: {
  pattern: DesignedPattern;
  running: boolean;
  again: () => void;
}) {
  const params = route.value.params;
  const shape = Object.entries(params)
    .filter(([name]) => /^([pou]\.|run|desc|limit|strong)/.test(name))
    .map(String)
    .join("&");
  const [draft, setDraft] = useState<Draft>(() => draftOf(pattern, params));
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const wants = pattern.runnable && pattern.parameters.some((each) => each.required);
  const example = useAsk("GET /patterns/example", wants ? { pattern: pattern.id, as_of: asOf.value || null } : null);
  const values = example.data?.pattern === pattern.id ? example.data.values : {};
  useEffect(() => {
    setDraft(filled(pattern, draftOf(pattern, route.value.params), params["run"] === "yes" ? {} : values, new Set()));
    setTouched(new Set());
  }, [pattern.id, shape]);
  const fresh = touched.size === 0 && params["run"] !== "yes";
  useEffect(() => {
    if (params["run"] !== "yes") setDraft((before) => filled(pattern, before, values, touched));
  }, [example.data, pattern.id]);
  const change = (next: Draft, name = "") => {
    setTouched(new Set([...touched, name]));
    setDraft(next);
  };
  const missing = lacking(pattern, draft);
  const run = () => {
    if (missing) return;
    const before = location.search;
    commit(pattern, draft);
    if (location.search === before) again();
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
        <p class="muted">It is asked without a value.</p>
      )}
      {pattern.operation === "Query" || pattern.operation === "Scan" || pattern.consistency ? (
        <div class="patterns-options">
          {pattern.ordered ? (
            <Segmented
              label="Order"
              options={[
                { value: "up", label: "First to last" },
                { value: "down", label: "Last to first" },
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
            <span class="small muted">A global index is read eventually.</span>
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

/** Return a draft with an example in every field that must be given, is still empty and was not emptied by hand. */
function filled(
  pattern: DesignedPattern,
  draft: Draft,
  values: Readonly<Record<string, string>>,
  touched: ReadonlySet<string>,
): Draft {
  return pattern.parameters.reduce((before, each) => {
    const told = values[each.name];
    return each.required && told && !touched.has(each.name) && entryOf(before, each.name).value === ""
      ? withEntry(before, each.name, { value: told })
      : before;
  }, draft);
}

function Parameter({
  parameter,
  draft,
  example,
  onChange,
}: {
  parameter: PatternParameter;
  draft: Draft;
  example: string;
  onChange: (draft: Draft, name: string) => void;
}) {
  const entry = entryOf(draft, parameter.name);
  const set = (change: Partial<typeof entry>) => onChange(withEntry(draft, parameter.name, change), parameter.name);
  if (parameter.constant.length) {
    const told = parameter.constant.join(", ");
    return (
      <div class="field">
        <span class="patterns-label">{parameter.name}</span>
        <span class="mono">{`${NAMES[parameter.operators[0] ?? "="] ?? parameter.operators[0]} ${told}`.trim()}</span>
        <span class="hint">always so</span>
      </div>
    );
  }
  const hint =
    parameter.role === "filter" ? "a filter: what it leaves out is read and paid for" : parameter.description;
  const between = entry.operator === "between";
  return (
    <div class={`patterns-parameter ${parameter.role}`}>
      {parameter.operators.length > 1 ? (
        <Select
          label={`How ${parameter.name} is compared`}
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

function Input({
  parameter,
  label,
  value,
  example,
  hint,
  onInput,
}: {
  parameter: PatternParameter;
  label: string;
  value: string;
  example: string;
  hint: string;
  onInput: (value: string) => void;
}) {
  const many = parameter.operators[0] === "in";
  const choices = parameter.kind === "bool" ? ["true", "false"] : parameter.choices;
  const more = hint ? { hint } : {};
  if (choices.length && !many) {
    const options: Option[] = choices.map((each) => ({ value: each, label: each }));
    return (
      <Select
        label={label}
        value={value}
        options={[{ value: "", label: parameter.required ? "choose…" : "any" }, ...options]}
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
      {...(many ? { hint: "several, with commas" } : more)}
    />
  );
}

/** What a pattern is: its key, its index and what the design says of its traffic. */
export function PatternHead({ pattern }: { pattern: DesignedPattern }) {
  return (
    <div class="stack tight">
      <div class="row tight">
        {pattern.entities.map((name) => (
          <Chip key={name} name={name} />
        ))}
        <Badge>{pattern.operation || "nothing asks it"}</Badge>
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

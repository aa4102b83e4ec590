// Rules: what each rule of the linter says, on a sheet of its own, and the list of all of them.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { go } from "../../app/router";
import type { RulePage } from "../../generated/api";
import { Badge, Dialog, ProblemNotice, Spinner, TextInput } from "../../parts";
import { Prose } from "./prose";
import { TONES } from "./state";

export function RuleSheet({ name, onClose }: { name: string; onClose: () => void }) {
  const asked = useAsk("GET /design/rules", {});
  const rule = asked.data?.rules.find((each) => each.name === name);
  return (
    <Dialog title={name} onClose={onClose}>
      {asked.problem ? <ProblemNotice problem={asked.problem} again={asked.again} /> : null}
      {!asked.data && !asked.problem ? <Spinner /> : null}
      {asked.data && !rule ? <p>There is no rule of this name.</p> : null}
      {rule ? <RuleText rule={rule} /> : null}
    </Dialog>
  );
}

function RuleText({ rule }: { rule: RulePage }) {
  return (
    <div class="stack">
      <p class="row">
        <Badge tone={TONES[rule.severity]}>{rule.severity}</Badge>
        <strong>{rule.title}</strong>
      </p>
      {(["why", "example", "instead"] as const).map((part) => (
        <section key={part} class="stack tight">
          <h3>{part.charAt(0).toUpperCase() + part.slice(1)}</h3>
          <Prose text={rule[part]} />
        </section>
      ))}
      <p class="muted small">
        {rule.mechanical
          ? "Its remedy is shown as a difference of the design where one does it."
          : "Its remedy takes a person; no change of the design alone does it."}{" "}
        The same on the command line: <code>tavola explain {rule.name}</code>
      </p>
    </div>
  );
}

/** A rule's name, which opens its page. */
export function RuleLink({ name }: { name: string }) {
  return (
    <button
      type="button"
      class="design-rule-link mono"
      aria-label={`Rule ${name}`}
      onClick={() => go({ params: { rule: name } })}
    >
      {name}
    </button>
  );
}

export function AllRules() {
  const asked = useAsk("GET /design/rules", {});
  const [text, setText] = useState("");
  if (asked.problem) return <ProblemNotice problem={asked.problem} again={asked.again} />;
  if (!asked.data) return <Spinner />;
  const wanted = text.trim().toLowerCase();
  const found = asked.data.rules.filter(
    (each) => !wanted || `${each.name} ${each.title} ${each.why}`.toLowerCase().includes(wanted),
  );
  return (
    <div class="stack">
      <TextInput
        label="Find a rule"
        value={text}
        onInput={setText}
        placeholder="partition, ttl, projection…"
        hint={`${found.length} of ${asked.data.rules.length} rules`}
      />
      <ul class="design-rules">
        {found.map((rule) => (
          <li key={rule.name}>
            <button type="button" class="design-rule-link mono" onClick={() => go({ params: { rule: rule.name } })}>
              {rule.name}
            </button>
            <Badge tone={TONES[rule.severity]}>{rule.severity}</Badge>
            <span class="muted small">{rule.title}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

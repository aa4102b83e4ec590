// Rules: the page of each lint rule, and the list of all rules.
import { useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { go } from "../../app/router";
import type { RulePage } from "../../generated/api";
import { Badge, Dialog, ProblemNotice, Prose, Spinner, TextInput } from "../../parts";
import { TONES } from "./state";

export function RuleSheet({ name, onClose }: { name: string; onClose: () => void }) {
  const query = useQuery("GET /design/rules", {});
  const rule = query.data?.rules.find((each) => each.name === name);
  return (
    <Dialog title={name} onClose={onClose}>
      <ProblemNotice problem={query.problem} retry={query.retry} />
      {!query.data && !query.problem ? <Spinner /> : null}
      {query.data && !rule ? <p>Rule not found.</p> : null}
      {rule ? <RuleText rule={rule} /> : null}
    </Dialog>
  );
}

const SECTIONS = { why: "Why it matters", example: "Example", instead: "What to do instead" } as const;

function RuleText({ rule }: { rule: RulePage }) {
  return (
    <div class="stack">
      <p class="row">
        <Badge tone={TONES[rule.severity]}>{rule.severity}</Badge>
        <strong>{rule.title}</strong>
      </p>
      {(["why", "example", "instead"] as const).map((part) => (
        <section key={part} class="stack tight">
          <h3>{SECTIONS[part]}</h3>
          <Prose text={rule[part]} />
        </section>
      ))}
      <p class="muted small">
        {rule.mechanical
          ? "Where a change to the design fixes it, the fix is shown as a diff."
          : "This needs a manual change; changing the design alone does not fix it."}{" "}
        On the command line: <code>tavola explain {rule.name}</code>
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
  const query = useQuery("GET /design/rules", {});
  const [text, setText] = useState("");
  if (query.problem) return <ProblemNotice problem={query.problem} retry={query.retry} />;
  if (!query.data) return <Spinner />;
  const search = text.trim().toLowerCase();
  const matching = query.data.rules.filter(
    (each) => !search || `${each.name} ${each.title} ${each.why}`.toLowerCase().includes(search),
  );
  return (
    <div class="stack">
      <TextInput
        label="Find rules"
        value={text}
        onInput={setText}
        placeholder="partition, ttl, projection…"
        hint={`${matching.length} of ${query.data.rules.length} rules`}
      />
      <ul class="design-rules">
        {matching.map((rule) => (
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

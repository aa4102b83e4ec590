// Finding: one defect with its reason, and its remedy as a difference where the design alone can be changed.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { go } from "../../app/router";
import type { LintFinding, Remedy } from "../../generated/api";
import { Badge, Button, DiffView, download, ProblemNotice, Segmented, Spinner } from "../../parts";
import { dollars, Prose, sentence } from "./prose";
import { type About, bring, counted, TONES } from "./state";

interface RowProps {
  finding: LintFinding;
  about: About;
  production: boolean;
  open: boolean;
  onOpen: (open: boolean) => void;
}

export function FindingRow({ finding, about, production, open, onOpen }: RowProps) {
  return (
    <article class={`design-finding ${finding.severity}`}>
      <div class="row apart">
        <span class="row tight">
          <Badge tone={TONES[finding.severity]}>{finding.severity}</Badge>
          <strong>{finding.place}</strong>
        </span>
        <button
          type="button"
          class="design-rule-link mono"
          onClick={() => go({ params: { rule: finding.rule } })}
          aria-label={`Rule ${finding.rule}`}
        >
          {finding.rule}
        </button>
      </div>
      <Prose text={sentence(finding.message)} />
      <div class="design-do">
        <span aria-hidden="true">→ </span>
        <Prose text={sentence(finding.remedy, true)} />
      </div>
      {finding.file ? (
        <p class="muted small mono">
          {finding.file}:{finding.line}
        </p>
      ) : null}
      <div>
        <Button small aria-expanded={open} onClick={() => onOpen(!open)}>
          {open ? "Hide the remedy" : "Show the remedy"}
        </Button>
      </div>
      {open ? <RemedyView finding={finding} about={about} production={production} /> : null}
    </article>
  );
}

function RemedyView({ finding, about, production }: { finding: LintFinding; about: About; production: boolean }) {
  const asked = useAsk("POST /design/remedy", { finding: finding.id, ...about, production });
  if (asked.problem) return <ProblemNotice problem={asked.problem} again={asked.again} />;
  if (!asked.data) return <Spinner label="Looking for a remedy" />;
  return asked.data.summary ? <Mechanical remedy={asked.data} /> : <ByAPerson remedy={asked.data} />;
}

function Mechanical({ remedy }: { remedy: Remedy }) {
  const [form, setForm] = useState("document");
  const lines = form === "python" ? remedy.python : remedy.lines;
  return (
    <div class="stack design-remedy">
      <Prose text={sentence(remedy.summary)} />
      {remedy.python.length ? (
        <div>
          <Segmented
            label="Difference of"
            value={form}
            onChange={setForm}
            options={[
              { value: "document", label: "Document" },
              { value: "python", label: "Python" },
            ]}
          />
        </div>
      ) : null}
      <DiffView lines={lines} label={`The remedy of ${remedy.rule.name} as a difference`} />
      <Effects remedy={remedy} />
      <div class="row">
        <Button
          kind="primary"
          onClick={() =>
            bring({ title: `the design with the remedy of ${remedy.rule.name}`, document: remedy.document, notes: [] })
          }
        >
          Look at the altered design
        </Button>
        <Button onClick={() => download("design.json", remedy.document, "application/json")}>
          Download design.json
        </Button>
      </div>
      <Why remedy={remedy} />
    </div>
  );
}

/** What the rules and the prices say of the altered design. */
function Effects({ remedy }: { remedy: Remedy }) {
  const { month_before: before, month_after: after } = remedy;
  return (
    <ul class="design-effects small">
      <li>
        Ends {remedy.gone.length === 1 ? "this finding" : `${remedy.gone.length} findings`}
        {remedy.new.length
          ? `, and brings ${counted(remedy.new)}: ${[...new Set(remedy.new.map((each) => each.rule))].join(", ")}`
          : ", and brings no other"}
        .
      </li>
      {before !== null && after !== null ? (
        <li>
          {dollars(before) === dollars(after)
            ? `A month costs ${dollars(before)} as before`
            : `A month costs ${dollars(after)} instead of ${dollars(before)}`}{" "}
          <span class="muted">({remedy.prices})</span>.
        </li>
      ) : null}
    </ul>
  );
}

function ByAPerson({ remedy }: { remedy: Remedy }) {
  return (
    <div class="stack design-remedy">
      <p class="muted">This takes a person: no change of the design alone ends it.</p>
      <h4>Instead</h4>
      <Prose text={remedy.rule.instead} />
      <h4>Example</h4>
      <Prose text={remedy.rule.example} />
      <Why remedy={remedy} />
    </div>
  );
}

function Why({ remedy }: { remedy: Remedy }) {
  return (
    <details class="design-why">
      <summary>Why it matters</summary>
      <Prose text={remedy.rule.why} />
    </details>
  );
}

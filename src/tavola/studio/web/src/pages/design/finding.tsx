// Finding: one lint finding, and its fix as a diff if changing the design can fix it.
import { useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { go } from "../../app/router";
import type { LocatedFinding, Remedy } from "../../generated/api";
import { Badge, Button, DiffView, download, Prose, Segmented, Loaded } from "../../parts";
import { countBySeverity, type DesignSource, openDesign, TONES } from "./state";
import { formatMoney, toSentence } from "../../format";

interface RowProps {
  finding: LocatedFinding;
  source: DesignSource;
  production: boolean;
  open: boolean;
  onOpen: (open: boolean) => void;
}

export function FindingRow({ finding: located, source, production, open, onOpen }: RowProps) {
  const { finding, location } = located;
  return (
    <article class={`design-finding ${finding.severity}`}>
      <div class="row apart">
        <span class="row tight">
          <Badge tone={TONES[finding.severity]}>{finding.severity}</Badge>
          <strong>{finding.place.name}</strong>
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
      <Prose text={toSentence(finding.message)} />
      <div class="design-do">
        <span aria-hidden="true">→ </span>
        <Prose text={toSentence(finding.remedy, true)} />
      </div>
      {location ? (
        <p class="muted small mono">
          {location.file}:{location.line}
        </p>
      ) : null}
      <div>
        <Button small aria-expanded={open} onClick={() => onOpen(!open)}>
          {open ? "Hide fix" : "Show fix"}
        </Button>
      </div>
      {open ? <RemedyView finding={located} source={source} production={production} /> : null}
    </article>
  );
}

interface RemedyViewProps {
  finding: LocatedFinding;
  source: DesignSource;
  production: boolean;
}

function RemedyView({ finding, source, production }: RemedyViewProps) {
  const remedy = useQuery("POST /design/remedy", { finding: finding.id, ...source, production });
  return (
    <Loaded query={remedy}>
      {(data) => (data.summary ? <AutomaticFix remedy={data} /> : <ManualFix remedy={data} />)}
    </Loaded>
  );
}

function AutomaticFix({ remedy }: { remedy: Remedy }) {
  const [form, setForm] = useState("document");
  const lines = form === "python" ? remedy.python : remedy.lines;
  return (
    <div class="stack design-remedy">
      <Prose text={toSentence(remedy.summary)} />
      {remedy.python.length ? (
        <div>
          <Segmented
            label="Diff of"
            value={form}
            onChange={setForm}
            options={[
              { value: "document", label: "Document" },
              { value: "python", label: "Python" },
            ]}
          />
        </div>
      ) : null}
      <DiffView lines={lines} label={`Fix for ${remedy.rule.name} as a diff`} />
      <Effects remedy={remedy} />
      <div class="row">
        <Button
          kind="primary"
          onClick={() =>
            openDesign({
              title: `the design with the fix for ${remedy.rule.name}`,
              document: remedy.document,
              notes: [],
            })
          }
        >
          Open modified design
        </Button>
        <Button onClick={() => download("design.json", remedy.document, "application/json")}>
          Download design.json
        </Button>
      </div>
      <Why remedy={remedy} />
    </div>
  );
}

/** The findings and the cost of the modified design. */
function Effects({ remedy }: { remedy: Remedy }) {
  const { month_before: before, month_after: after } = remedy;
  return (
    <ul class="design-effects small">
      <li>
        Resolves {remedy.resolved.length === 1 ? "this finding" : `${remedy.resolved.length} findings`}
        {remedy.introduced.length
          ? ` and introduces ${countBySeverity(remedy.introduced)}: ${[...new Set(remedy.introduced.map((each) => each.finding.rule))].join(", ")}`
          : " and introduces no others"}
        .
      </li>
      {before !== null && after !== null ? (
        <li>
          {formatMoney(before) === formatMoney(after)
            ? `Monthly cost stays at ${formatMoney(before)}`
            : `Monthly cost changes from ${formatMoney(before)} to ${formatMoney(after)}`}{" "}
          <span class="muted">({remedy.prices})</span>.
        </li>
      ) : null}
    </ul>
  );
}

function ManualFix({ remedy }: { remedy: Remedy }) {
  return (
    <div class="stack design-remedy">
      <p class="muted">This needs a manual change; changing the design alone does not fix it.</p>
      <h4>What to do instead</h4>
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

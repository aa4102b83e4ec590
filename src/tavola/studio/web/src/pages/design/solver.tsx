// Solver: the cheapest keys and indexes that serve every access pattern, with reasons, compared with the current design.
import { useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { useParam } from "../../app/router";
import type { SolveRequest, Alternative, Choice, SolverProposal } from "../../generated/api";
import {
  DataTable,
  numeric,
  Badge,
  Button,
  Code,
  DiffView,
  download,
  Notice,
  Panel,
  ProblemNotice,
  Segmented,
  Spinner,
  Stat,
  Stats,
} from "../../parts";
import { type DesignSource, openDesign } from "./state";
import { formatNumber, formatMoney } from "../../format";

const STYLES = [
  { value: "auto", label: "Fewest indexes" },
  { value: "native", label: "Native attributes" },
  { value: "overloaded", label: "Key templates" },
];

export function Solver({ source }: { source: DesignSource }) {
  const [styleParam, setStyle] = useParam("style", "auto");
  const style = STYLES.some((each) => each.value === styleParam) ? styleParam : "auto";
  const query = useQuery("POST /design/solve", { ...source, style: style as NonNullable<SolveRequest["style"]> });
  return (
    <div class="stack">
      <div class="row apart">
        <p class="muted grow">
          The solver ignores the current keys and finds the cheapest ones that serve every access pattern and write.
        </p>
        <Segmented label="Index key style" value={style} onChange={setStyle} options={STYLES} />
      </div>
      <ProblemNotice problem={query.loading ? null : query.problem} retry={query.retry} />
      {query.loading ? <Spinner label="Solving" /> : null}
      {query.data && !query.problem && !query.loading ? <Proposal proposal={query.data} /> : null}
    </div>
  );
}

function Proposal({ proposal }: { proposal: SolverProposal }) {
  const [form, setForm] = useState("difference");
  const { month, total, total_before: before } = proposal;
  const cheaper = before !== null && isLess(total, before);
  const targets = [...new Set(proposal.choices.map((each) => each.place))];
  return (
    <>
      <Panel
        title="Proposed design"
        actions={
          <>
            <Button
              small
              onClick={() => openDesign({ title: "the solver's proposal", document: proposal.text, notes: [] })}
            >
              {" "}
              Open proposal{" "}
            </Button>
            <Button small onClick={() => download("design.json", proposal.text, "application/json")}>
              {" "}
              Download design.json{" "}
            </Button>
            <Button small onClick={() => download("model.py", proposal.python)}>
              {" "}
              Download model.py{" "}
            </Button>
          </>
        }
      >
        <Stats>
          <Stat label="Current monthly cost" value={before === null ? "no keys yet" : formatMoney(before)} />
          <Stat
            label="Proposed monthly cost"
            value={formatMoney(total)}
            tone={cheaper ? "good" : undefined}
            beside={
              before === null
                ? ""
                : cheaper
                  ? "cheaper"
                  : formatMoney(before) === formatMoney(total)
                    ? "no change"
                    : "more expensive"
            }
          />
          <Stat label="Tables" value={formatNumber(proposal.tables)} beside={`currently ${proposal.tables_before}`} />
          <Stat
            label="Indexes"
            value={formatNumber(proposal.indexes)}
            beside={`currently ${proposal.indexes_before}`}
          />
        </Stats>
        {proposal.difference ? <p class="design-after">{proposal.difference}</p> : null}
        <p class="muted small design-after">
          {month.hours} hours per month, {month.book} prices.
          {proposal.needs_without_route.length
            ? ` The current cost excludes ${proposal.needs_without_route.join(", ")}, for lack of a declared route.`
            : ""}
        </p>
      </Panel>
      <div class="design-proposal">
        {targets.map((place) => (
          <Target
            key={place}
            place={place}
            choices={proposal.choices.filter((each) => each.place === place)}
            scenarios={proposal.scenarios}
          />
        ))}
      </div>
      {proposal.alternatives.length ? (
        <Panel title="Alternative designs">
          <Alternatives ways={proposal.alternatives} />
        </Panel>
      ) : null}
      {proposal.findings.length ? (
        <Panel title="Lint findings in the proposal">
          <ul class="design-list">
            {proposal.findings.map((each, at) => (
              <li key={at}>
                <span>
                  {each.severity} · <span class="mono">{each.rule}</span> · {each.place.name}
                </span>
                <span class="muted small">{each.message}</span>
              </li>
            ))}
          </ul>
        </Panel>
      ) : null}
      {proposal.notes.length ? (
        <Notice title="Notes">
          <ul class="stack tight">
            {proposal.notes.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
      <Panel
        title="Source"
        actions={
          <Segmented
            label="Source format"
            value={form}
            onChange={setForm}
            options={[
              { value: "difference", label: "Diff" },
              { value: "python", label: "Python" },
              { value: "document", label: "Document" },
            ]}
          />
        }
      >
        {form === "difference" ? (
          <DiffView lines={proposal.lines} label="Diff from the current design to the proposal" />
        ) : (
          <Code
            text={form === "python" ? proposal.python : proposal.text}
            label={form === "python" ? "model.py" : "design.json"}
          />
        )}
      </Panel>
    </>
  );
}

interface TargetProps {
  place: string;
  choices: readonly Choice[];
  scenarios: SolverProposal["scenarios"];
}

function Target({ place, choices, scenarios }: TargetProps) {
  return (
    <Panel title={place}>
      <div class="stack">
        {choices.map((choice, at) => (
          <div key={at} class="stack tight">
            <div class="row apart">
              <span class="row tight">
                <Badge>{choice.pattern}</Badge>
                <span class="muted small">{scenarios[choice.pattern]}</span>
              </span>
              {choice.amount === null ? null : <span class="num">{formatMoney(choice.amount)} per month</span>}
            </div>
            <p>{choice.sentence}</p>
            {choice.alternatives.length ? (
              <details class="design-why">
                <summary>
                  {choice.alternatives.length === 1
                    ? "1 alternative considered"
                    : `${choice.alternatives.length} alternatives considered`}
                </summary>
                <Alternatives ways={choice.alternatives} />
              </details>
            ) : null}
          </div>
        ))}
      </div>
    </Panel>
  );
}

function Alternatives({ ways }: { ways: readonly Alternative[] }) {
  return (
    <DataTable label="Alternatives" columns={["Alternative", numeric("Total per month"), "Reason rejected"]}>
      <tbody>
        {ways.map((each, at) => (
          <tr key={at}>
            <td>{each.what}</td>
            <td class="num">{formatMoney(each.amount)}</td>
            <td class="muted">{each.why}</td>
          </tr>
        ))}
      </tbody>
    </DataTable>
  );
}

/** Return whether one amount is less than another. */
function isLess(one: string, other: string): boolean {
  return Number(one) < Number(other);
}

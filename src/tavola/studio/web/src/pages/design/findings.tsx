// Findings: everything the rules found in the design, narrowed by severity, rule and table; and every rule there is.
import { useState } from "preact/hooks";
import { useParam } from "../../app/router";
import type { LintReport } from "../../generated/api";
import { Empty, Panel, Segmented, Select } from "../../parts";
import { FindingRow } from "./finding";
import { AllRules, RuleLink } from "./rules";
import { type About, SEVERITIES } from "./state";

export function Findings({
  report,
  about,
  production,
  tables,
}: {
  report: LintReport;
  about: About;
  production: boolean;
  tables: readonly string[];
}) {
  const [severity, setSeverity] = useParam("severity", "all");
  const [rule, setRule] = useParam("only", "all");
  const [table, setTable] = useParam("of", "all");
  const [open, setOpen] = useParam("finding");
  const [every, setEvery] = useState(false);
  const rules = [...new Set(report.findings.map((each) => each.rule))].sort();
  const found = report.findings.filter(
    (each) =>
      (severity === "all" || each.severity === severity) &&
      (rule === "all" || each.rule === rule) &&
      (table === "all" || each.table === table),
  );
  return (
    <div class="stack">
      <div class="row design-filters">
        <Segmented
          label="Severity"
          value={severity}
          onChange={setSeverity}
          options={[
            { value: "all", label: `All ${report.findings.length}` },
            ...SEVERITIES.map((each) => ({
              value: each,
              label: `${each === "advice" ? "Advice" : `${each.charAt(0).toUpperCase()}${each.slice(1)}s`} ${report.counts[each]}`,
            })),
          ]}
        />
        {rules.length > 1 ? (
          <Select
            label="Rule"
            hideLabel
            value={rule}
            onChange={setRule}
            options={[{ value: "all", label: "Every rule" }, ...rules.map((each) => ({ value: each, label: each }))]}
          />
        ) : null}
        {tables.length > 1 ? (
          <Select
            label="Table"
            hideLabel
            value={table}
            onChange={setTable}
            options={[{ value: "all", label: "Every table" }, ...tables.map((each) => ({ value: each, label: each }))]}
          />
        ) : null}
      </div>
      {report.findings.length === 0 ? (
        <Empty title="Nothing found">
          Every rule looked at the design and has nothing to say
          {report.ignored.length
            ? `; ${report.ignored.length === 1 ? "one finding is" : `${report.ignored.length} findings are`} let stand, with ${report.ignored.length === 1 ? "its reason" : "their reasons"} below`
            : ""}
          .
        </Empty>
      ) : found.length === 0 ? (
        <Empty title="Nothing found by these filters" />
      ) : (
        <div class="stack" role="list" aria-label="Findings">
          {found.map((each) => (
            <div key={each.id} role="listitem">
              <FindingRow
                finding={each}
                about={about}
                production={production}
                open={open === each.id}
                onOpen={(now) => setOpen(now ? each.id : "")}
              />
            </div>
          ))}
        </div>
      )}
      {report.ignored.length ? (
        <Panel title={`Let stand, with a reason (${report.ignored.length})`}>
          <ul class="design-list">
            {report.ignored.map((each) => (
              <li key={each.id}>
                <span>
                  <RuleLink name={each.rule} /> at {each.place}
                </span>
                <span class="muted small">{each.reason}</span>
              </li>
            ))}
          </ul>
        </Panel>
      ) : null}
      <details class="panel design-all" open={every} onToggle={(event) => setEvery(event.currentTarget.open)}>
        <summary>Every rule there is</summary>
        <div class="body">{every ? <AllRules /> : null}</div>
      </details>
    </div>
  );
}

// Findings: the lint findings of the design, filtered by severity, rule and table; and the list of all rules.
import { useState } from "preact/hooks";
import { useParam } from "../../app/router";
import type { DesignFindings } from "../../generated/api";
import { Empty, Panel, Segmented, Select, plainOptions } from "../../parts";
import { FindingRow } from "./finding";
import { AllRules, RuleLink } from "./rules";
import { type DesignSource, SEVERITIES } from "./state";
import { toSentence } from "../../format";

interface FindingsProps {
  report: DesignFindings;
  source: DesignSource;
  production: boolean;
  tables: readonly string[];
}

export function Findings({ report, source, production, tables }: FindingsProps) {
  const [severity, setSeverity] = useParam("severity", "all");
  const [rule, setRule] = useParam("only", "all");
  const [table, setTable] = useParam("of", "all");
  const [open, setOpen] = useParam("finding");
  const [rulesOpen, setRulesOpen] = useState(false);
  const rules = [...new Set(report.findings.map((each) => each.finding.rule))].sort();
  const matching = report.findings.filter(
    ({ finding }) =>
      (severity === "all" || finding.severity === severity) &&
      (rule === "all" || finding.rule === rule) &&
      (table === "all" || finding.place.table === table),
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
            options={[{ value: "all", label: "All rules" }, ...plainOptions(rules)]}
          />
        ) : null}
        {tables.length > 1 ? (
          <Select
            label="Table"
            hideLabel
            value={table}
            onChange={setTable}
            options={[{ value: "all", label: "All tables" }, ...plainOptions(tables)]}
          />
        ) : null}
      </div>
      {report.findings.length === 0 ? (
        <Empty title="No findings">
          The design passes every rule
          {report.ignored.length
            ? `; ${report.ignored.length === 1 ? "1 finding is" : `${report.ignored.length} findings are`} suppressed, see below`
            : ""}
          .
        </Empty>
      ) : matching.length === 0 ? (
        <Empty title="No findings match these filters" />
      ) : (
        <div class="stack" role="list" aria-label="Findings">
          {matching.map((each) => (
            <div key={each.id} role="listitem">
              <FindingRow
                finding={each}
                source={source}
                production={production}
                open={open === each.id}
                onOpen={(now) => setOpen(now ? each.id : "")}
              />
            </div>
          ))}
        </div>
      )}
      {report.ignored.length ? (
        <Panel title={`Suppressed (${report.ignored.length})`}>
          <ul class="design-list">
            {report.ignored.map((each) => (
              <li key={each.id}>
                <span>
                  <RuleLink name={each.finding.rule} /> at {each.finding.place.name}
                </span>
                <span class="muted small">{toSentence(each.reason)}</span>
              </li>
            ))}
          </ul>
        </Panel>
      ) : null}
      <details class="panel design-all" open={rulesOpen} onToggle={(event) => setRulesOpen(event.currentTarget.open)}>
        <summary>Rule reference</summary>
        <div class="body">{rulesOpen ? <AllRules /> : null}</div>
      </details>
    </div>
  );
}

// Drift: how the deployed table differs from the design.
import { useQuery } from "../../app/queries";
import { MissingTable } from "../../app/missing_table";
import { session } from "../../app/session";
import type { DesignChange } from "../../generated/api";
import { Badge, Notice, Panel, ProblemNotice } from "../../parts";
import type { DesignSource } from "./state";

const EFFECTS: Record<string, "good" | "warn" | "bad" | undefined> = {
  create: "good",
  replace: "bad",
  remove: "bad",
  rebuild: "warn",
  rewrite: "warn",
};

export function DriftPanel({ source, table }: { source: DesignSource; table: string }) {
  const query = useQuery("POST /design/drift", { ...source, table });
  const drift = query.data?.tables.find((each) => each.table === table);
  const problem = query.problem ?? drift?.problem;
  if (problem) return <ProblemNotice problem={problem} retry={query.retry} />;
  const comparison = drift?.comparison;
  if (!drift || !comparison) return null;
  const missing = session.value?.tables.find((each) => each.name === table && each.status === "MISSING");
  if (!comparison.exists)
    return missing ? (
      <MissingTable table={missing} />
    ) : (
      <Notice title="Table not created yet">The design declares {table}, but the table does not exist yet.</Notice>
    );
  return (
    <>
      {comparison.changes.length ? (
        <Panel title={`Differences from the design (${comparison.changes.length})`}>
          <ul class="design-list">
            {comparison.changes.map((each, at) => (
              <DriftRow key={at} change={each} work={drift.work[at]} />
            ))}
          </ul>
        </Panel>
      ) : (
        <p class="muted small">
          The deployed table matches the design{comparison.notes.length ? ", as far as it could be checked" : ""}.
        </p>
      )}
      {comparison.notes.map((each) => (
        <p key={each} class="muted small">
          {each}.
        </p>
      ))}
    </>
  );
}

function DriftRow({ change, work }: { change: DesignChange; work: string | undefined }) {
  return (
    <li>
      <span class="row tight">
        <Badge tone={EFFECTS[change.effect]}>{change.effect}</Badge> {change.what}
      </span>
      {work || change.warnings.length ? (
        <span class="muted small">{[work, ...change.warnings].filter(Boolean).join(". ")}</span>
      ) : null}
    </li>
  );
}

// Drift: what the table that stands has otherwise than the design says.
import { useAsk } from "../../app/asking";
import { MissingTable } from "../../app/missing_table";
import { session } from "../../app/session";
import type { DriftChange } from "../../generated/api";
import { Badge, Notice, Panel, ProblemNotice } from "../../parts";
import type { About } from "./state";

const EFFECTS: Record<string, "good" | "warn" | "bad" | undefined> = {
  create: "good",
  replace: "bad",
  remove: "bad",
  rebuild: "warn",
  rewrite: "warn",
};

export function DriftPanel({ about, table }: { about: About; table: string }) {
  const asked = useAsk("POST /design/drift", { ...about, table });
  const found = asked.data?.tables.find((each) => each.table === table);
  const problem = asked.problem ?? found?.problem;
  if (problem) return <ProblemNotice problem={problem} again={asked.again} />;
  if (!found) return null;
  const missing = session.value?.tables.find((each) => each.name === table && each.status === "MISSING");
  if (!found.exists)
    return missing ? (
      <MissingTable table={missing} />
    ) : (
      <Notice title="The table is not there">The design declares {table}, and nobody has made it yet.</Notice>
    );
  return (
    <>
      {found.changes.length ? (
        <Panel title={`Stands otherwise (${found.changes.length})`}>
          <ul class="design-list">
            {found.changes.map((each, at) => (
              <DriftRow key={at} change={each} />
            ))}
          </ul>
        </Panel>
      ) : (
        <p class="muted small">
          The table that stands is as the design says{found.notes.length ? ", as far as it was looked at" : ""}.
        </p>
      )}
      {found.notes.map((each) => (
        <p key={each} class="muted small">
          {each}.
        </p>
      ))}
    </>
  );
}

function DriftRow({ change }: { change: DriftChange }) {
  return (
    <li>
      <span class="row tight">
        <Badge tone={EFFECTS[change.effect]}>{change.effect}</Badge> {change.what}
      </span>
      {change.work || change.warnings.length ? (
        <span class="muted small">{[change.work, ...change.warnings].filter(Boolean).join(". ")}</span>
      ) : null}
    </li>
  );
}

// MissingTable: a table that the design declares and nobody has made: the button that makes it, or the command that does.
import { useState } from "preact/hooks";
import type { Problem, TableSummary } from "../generated/api";
import { Button, Code, Empty, ProblemNotice } from "../parts";
import { call, problemOf } from "./api";
import { mayChange, refreshSession } from "./session";

export function MissingTable({ table, whole }: { table: TableSummary; whole?: boolean }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    try {
      await call("POST /tables/make", { table: table.name });
      await refreshSession();
    } catch (thrown) {
      setProblem(problemOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  const held = (table.command ?? "").includes(" --store ");
  return (
    <>
      {problem ? <ProblemNotice problem={problem} /> : null}
      <Empty
        whole={whole ?? false}
        title="The table is not there"
        actions={
          mayChange.value ? (
            <Button kind="primary" disabled={busy} onClick={make}>
              {busy ? "Making it…" : "Make it from the design"}
            </Button>
          ) : null
        }
      >
        {table.design || "The design"} declares {table.name}; nobody has made it here yet.
        {table.command ? ` This command makes it${held ? ", once the studio has let go of the file" : ""}:` : ""}
      </Empty>
      {table.command ? <Code text={table.command} label="The command that makes it" /> : null}
    </>
  );
}

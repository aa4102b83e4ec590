// NoTables: what is shown where there is nothing to look at yet, and the way to something.
import { useState } from "preact/hooks";
import type { Problem } from "../generated/api";
import { Button, Empty, ProblemNotice } from "../parts";
import { call, problemOf } from "./api";
import { go } from "./router";
import { refreshSession, session } from "./session";

export function NoTables() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    try {
      const made = await call("POST /samples", {});
      await refreshSession();
      go({ page: "data", table: made.table });
    } catch (thrown) {
      setProblem(problemOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  const may = session.value && !session.value.read_only;
  return (
    <div class="page">
      {problem ? <ProblemNotice problem={problem} /> : null}
      <Empty
        whole
        title="There is no table here yet"
        actions={
          may ? (
            <Button kind="primary" disabled={busy} onClick={make}>
              {busy ? "Making it…" : "Make a sample table"}
            </Button>
          ) : null
        }
      >
        {session.value?.where.text} in {session.value?.where.region} has no table. Make one with your program or with{" "}
        <code>tavola deploy</code>
        {may ? ", or begin with a small sample of customers and orders." : "."}
      </Empty>
    </div>
  );
}

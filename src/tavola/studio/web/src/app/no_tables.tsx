// NoTables: the empty state of an endpoint without tables.
import { Button, Empty, ProblemNotice } from "../parts";
import { call } from "./api";
import { useAction } from "./queries";
import { go } from "./router";
import { refreshSession, session } from "./session";

export function NoTables() {
  const creation = useAction();
  const create = () =>
    creation.run(async () => {
      const sample = await call("POST /samples", {});
      await refreshSession();
      go({ page: "data", table: sample.table });
    });
  const canCreate = session.value && !session.value.read_only;
  return (
    <div class="page">
      <ProblemNotice problem={creation.problem} />
      <Empty
        whole
        title="No tables yet"
        actions={
          canCreate ? (
            <Button kind="primary" disabled={creation.busy} onClick={create}>
              {creation.busy ? "Creating…" : "Create sample table"}
            </Button>
          ) : null
        }
      >
        {session.value?.where.text} in {session.value?.where.region} has no tables. Create one from your program or with{" "}
        <code>tavola deploy</code>
        {canCreate ? ", or start with a small sample of customers and orders." : "."}
      </Empty>
    </div>
  );
}

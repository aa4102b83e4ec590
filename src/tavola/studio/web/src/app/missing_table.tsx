// MissingTable: a table that the design declares and that does not exist yet: how to create it.
import type { TableSummary } from "../generated/api";
import { Button, Code, Empty, ProblemNotice } from "../parts";
import { call } from "./api";
import { useAction } from "./queries";
import { canEdit, refreshSession } from "./session";

export function MissingTable({ table }: { table: TableSummary }) {
  const creation = useAction();
  const create = () =>
    creation.run(async () => {
      await call("POST /tables/create", { table: table.name });
      await refreshSession();
    });
  const needsStop = (table.command ?? "").includes(" --store ");
  return (
    <>
      <ProblemNotice problem={creation.problem} />
      <Empty
        title="Table not created yet"
        actions={
          canEdit.value ? (
            <Button kind="primary" disabled={creation.busy} onClick={create}>
              {creation.busy ? "Creating…" : "Create from design"}
            </Button>
          ) : null
        }
      >
        {table.design || "The design"} declares {table.name}, but the table does not exist here yet.
        {table.command
          ? ` This command creates it${needsStop ? " after you stop the studio, which has the file open" : ""}:`
          : ""}
      </Empty>
      {table.command ? <Code text={table.command} label="Command that creates the table" /> : null}
    </>
  );
}

// EnableRecovery: shown for a table without point-in-time recovery, with a button that turns it on.
import { call } from "../../app/api";
import { session } from "../../app/session";
import { Button, Notice, ProblemNotice } from "../../parts";
import { useAction } from "../../app/queries";

export function EnableRecovery({ table, onEnabled }: { table: string; onEnabled: () => void }) {
  const action = useAction();
  const readOnly = session.value?.read_only ?? true;
  const turnOn = async () => {
    if (await action.run(async () => void (await call("POST /past", { table })))) onEnabled();
  };
  return (
    <div class="stack">
      <Notice
        tone="info"
        title={`Point-in-time recovery is off for ${table}`}
        actions={
          <Button kind="primary" disabled={action.busy || readOnly} onClick={() => void turnOn()}>
            Turn on point-in-time recovery
          </Button>
        }
      >
        Point-in-time recovery keeps every version of the table for up to 35 days. While it is on, you can view any page
        as of an earlier time, see the history of items and restore the table.
        {readOnly ? " The studio is in read-only mode." : ""}
      </Notice>
      <ProblemNotice problem={action.problem} />
    </div>
  );
}

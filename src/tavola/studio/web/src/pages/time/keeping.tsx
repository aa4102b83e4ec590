// Keeping: a table whose past is not kept, and the way to have it kept.
import { useSignal } from "@preact/signals";
import { call, problemOf } from "../../app/api";
import { session } from "../../app/session";
import { Button, Notice, ProblemNotice } from "../../parts";
import type { Problem } from "../../generated/api";

export function KeepPast({ table, kept }: { table: string; kept: () => void }) {
  const problem = useSignal<Problem | null>(null);
  const working = useSignal(false);
  const readOnly = session.value?.read_only ?? true;
  const turnOn = async () => {
    working.value = true;
    try {
      await call("POST /past", { table });
      kept();
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    working.value = false;
  };
  return (
    <div class="stack">
      <Notice
        tone="info"
        title={`Nothing of ${table}'s past is kept`}
        actions={
          <Button kind="primary" disabled={working.value || readOnly} onClick={() => void turnOn()}>
            Keep its past
          </Button>
        }
      >
        Point-in-time recovery keeps every state of the table for up to 35 days. From the moment it is on, any page can
        be looked at as of any moment, items have a history, and the table can be restored.
        {readOnly ? " The studio is read-only here." : ""}
      </Notice>
      {problem.value ? <ProblemNotice problem={problem.value} /> : null}
    </div>
  );
}

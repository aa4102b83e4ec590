// PointInTime: the time slider, and links to the pages that show the data as of then.
import { asOf } from "../../app/as_of";
import { href } from "../../app/router";
import { Panel } from "../../parts";
import { TimeSlider } from "./slider";
import { formatDateTime, parseIso } from "../../format";

export function PointInTime({ table }: { table: string }) {
  const at = parseIso(asOf.value);
  const time = at ? formatDateTime(at) : "";
  return (
    <div class="stack">
      <Panel title={`View ${table} at a point in time`}>
        <TimeSlider table={table} />
      </Panel>
      <div class="time-ways">
        <a class="panel" href={href({ page: "data", table })}>
          <strong>{time ? `Data at ${time}` : "Data"}</strong>
          <span class="muted small">Tables, indexes and items as of that time, read-only.</span>
        </a>
        <a class="panel" href={href({ page: "patterns", table })}>
          <strong>{time ? `Access patterns at ${time}` : "Access patterns"}</strong>
          <span class="muted small">Run the access patterns as of that time.</span>
        </a>
        <a class="panel" href={href({ page: "time", table, params: { tab: "restore" } })}>
          <strong>{time ? `Restore to ${time}` : "Restore"}</strong>
          <span class="muted small">Create a new table with the data of that time.</span>
        </a>
      </div>
    </div>
  );
}

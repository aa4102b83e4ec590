// Past: the slider, and where to look with it.
import { asOf } from "../../app/as_of";
import { href } from "../../app/router";
import { Panel } from "../../parts";
import { TimeSlider } from "./slider";
import { momentText, msOf } from "../../app/times";

export function Past({ table }: { table: string }) {
  const at = msOf(asOf.value);
  const moment = at ? momentText(at) : "";
  return (
    <div class="stack">
      <Panel title={`Look at ${table} as it was`}>
        <TimeSlider table={table} />
      </Panel>
      <div class="time-ways">
        <a class="panel" href={href({ page: "data", table })}>
          <strong>{moment ? `The data at ${moment}` : "The data"}</strong>
          <span class="muted small">Every table, index and item as it stood; nothing can be edited there.</span>
        </a>
        <a class="panel" href={href({ page: "patterns", table })}>
          <strong>{moment ? `Access patterns at ${moment}` : "Access patterns"}</strong>
          <span class="muted small">Ask the design's questions of that moment.</span>
        </a>
        <a class="panel" href={href({ page: "time", table, params: { tab: "restore" } })}>
          <strong>{moment ? `Restore to ${moment}` : "Restore"}</strong>
          <span class="muted small">A new table, equal to what this one was.</span>
        </a>
      </div>
    </div>
  );
}

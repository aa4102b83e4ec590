// Troubles: the last calls that were throttled, met another transaction, or whose condition did not hold.
import { useState } from "preact/hooks";
import type { FailedCallRow } from "../../generated/api";
import { Button, Code, Drawer, Panel } from "../../parts";
import { clock, useFilters } from "./asked";
import { useLive } from "./live";

const SHOWN = 8;

export function Troubles({ paused, counted }: { paused: boolean; counted: number }) {
  const filters = useFilters();
  const live = useLive("GET /operations/troubles", filters, 3000, paused || counted === 0);
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<FailedCallRow | null>(null);
  const rows = live.data?.rows ?? [];
  if (!counted || !rows.length) return null;
  return (
    <Panel title="Throttles, conflicts and failed conditions" flush>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Throttles, conflicts and failed conditions">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Operation</th>
              <th scope="col">Table</th>
              <th scope="col">What came</th>
              <th scope="col">
                <span class="hidden-text">Request</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {(all ? rows : rows.slice(0, SHOWN)).map((row, at) => (
              <tr key={`${row.at_s} ${at}`}>
                <td class="nowrap">{clock(row.at_s)}</td>
                <td>{row.operation}</td>
                <td>{row.tables.join(", ") || "–"}</td>
                <td>
                  {row.code}
                  {row.reasons.length ? <span class="muted"> [{row.reasons.join(", ")}]</span> : null}
                </td>
                <td>
                  <Button small kind="quiet" onClick={() => setOpen(row)}>
                    Request
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > SHOWN ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(!all)}>
            {all ? "Show the last few" : `Show the last ${rows.length}`}
          </button>
        </p>
      ) : null}
      {open ? (
        <Drawer title={`${open.operation}: ${open.code}`} onClose={() => setOpen(null)}>
          <div class="stack">
            <p class="muted">
              {clock(open.at_s)}, {open.tables.join(", ")}. Values that were to be written are not shown.
            </p>
            <Code text={JSON.stringify(open.request, null, 2)} label="Request" />
          </div>
        </Drawer>
      ) : null}
    </Panel>
  );
}

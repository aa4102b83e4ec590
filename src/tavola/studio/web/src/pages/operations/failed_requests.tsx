// FailedRequests: the latest requests that were throttled, conflicted with a transaction or failed their condition.
import { useState } from "preact/hooks";
import type { FailedCallRow } from "../../generated/api";
import { DataTable, hidden, Button, Code, Drawer, Panel } from "../../parts";
import { useFilters } from "./filters";
import { useQuery } from "../../app/queries";
import { formatTime } from "../../format";

const ROWS_SHOWN = 8;

export function FailedRequests({ paused, count }: { paused: boolean; count: number }) {
  const filters = useFilters();
  const live = useQuery("GET /operations/failed-calls", filters, { everyMs: 3000, paused: paused || count === 0 });
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<FailedCallRow | null>(null);
  const rows = live.data?.rows ?? [];
  if (!count || !rows.length) return null;
  return (
    <Panel title="Throttled requests, conflicts and failed conditions" flush>
      <DataTable
        label="Throttled requests, conflicts and failed conditions"
        columns={["When", "Operation", "Table", "Error", hidden("Request")]}
      >
        <tbody>
          {(all ? rows : rows.slice(0, ROWS_SHOWN)).map((row, at) => (
            <tr key={`${row.at_s} ${at}`}>
              <td class="nowrap">{formatTime(row.at_s * 1000)}</td>
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
      </DataTable>
      {rows.length > ROWS_SHOWN ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(!all)}>
            {all ? "Show fewer" : `Show the last ${rows.length}`}
          </button>
        </p>
      ) : null}
      {open ? (
        <Drawer title={`${open.operation}: ${open.code}`} onClose={() => setOpen(null)}>
          <div class="stack">
            <p class="muted">
              {formatTime(open.at_s * 1000)}, {open.tables.join(", ")}. Written values are not shown.
            </p>
            <Code text={JSON.stringify(open.request, null, 2)} label="Request" />
          </div>
        </Drawer>
      ) : null}
    </Panel>
  );
}

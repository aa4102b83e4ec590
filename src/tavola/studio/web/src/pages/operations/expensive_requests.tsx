// ExpensiveRequests: the requests that consumed the most capacity or took longest, why, and a replay.
import { useEffect, useState } from "preact/hooks";
import { call } from "../../app/api";
import { useParam } from "../../app/router";
import type { ExpensiveRequestRow, ReplayResult, ConsumedUnits } from "../../generated/api";
import { Badge, Bars, Button, Code, Empty, Panel, ProblemNotice, Segmented, Spinner } from "../../parts";
import { targetName, useFilters, windowText } from "./filters";
import { formatAgo, formatLatency, formatNumber, formatCount, formatTime } from "../../format";
import { useQuery, useAction } from "../../app/queries";

const BY = [
  { value: "units", label: "Units" },
  { value: "time", label: "Latency" },
];

export function ExpensiveRequests({ paused }: { paused: boolean }) {
  const filters = useFilters();
  const [by, setBy] = useParam("by", "units");
  const [opened, setOpened] = useParam("open");
  const open = /^\d+$/.test(opened) ? Number(opened) : null;
  const request = { ...filters, by: by === "time" ? ("time" as const) : ("units" as const) };
  const [hasOpen, setHasOpen] = useState(false);
  // While a request is open the list does not update, so that it does not move.
  const live = useQuery("GET /operations/expensive-requests", request, { everyMs: 3000, paused: paused || hasOpen });
  const requests = live.data?.requests ?? [];
  const isOpenListed = requests.some((each) => each.number === open);
  useEffect(() => setHasOpen(isOpenListed), [isOpenListed]);
  const most = Math.max(...requests.map((each) => (by === "time" ? each.took_ms : each.units)), 0) || 1;
  return (
    <Panel
      title="Most expensive requests"
      flush
      actions={<Segmented label="Sort by" options={BY} value={by} onChange={setBy} />}
    >
      <ProblemNotice problem={live.problem} retry={live.retry} />
      {live.data === null && !live.problem ? <Spinner /> : null}
      {live.data && !requests.length ? (
        <Empty title="No requests">No requests in {windowText(filters.window_s)}.</Empty>
      ) : (
        <ul class="operations-expensive">
          {requests.map((each) => (
            <Row
              key={each.number}
              row={each}
              by={by}
              most={most}
              open={open === each.number}
              toggle={() => setOpened(open === each.number ? "" : String(each.number), true)}
            />
          ))}
        </ul>
      )}
      <p class="operations-more small muted">
        The most expensive request of each shape, kept in memory for six hours. Writes show their key and expressions,
        not their values.
      </p>
    </Panel>
  );
}

interface RowProps {
  row: ExpensiveRequestRow;
  by: string;
  most: number;
  open: boolean;
  toggle: () => void;
}

function Row({ row, by, most, open, toggle }: RowProps) {
  const id = `request-${row.number}`;
  const index = row.consumed.find((each) => each.index && each.reads > 0)?.index;
  const cost = by === "time" ? row.took_ms : row.units;
  return (
    <li>
      <button type="button" class="operations-expensive-row" aria-expanded={open} aria-controls={id} onClick={toggle}>
        <span class="operations-cost num">
          {by === "time" ? formatLatency(row.took_ms) : `${formatNumber(row.units)} units`}
        </span>
        <span class="operations-meter" aria-hidden="true">
          <span style={{ width: `${((cost / most) * 100).toFixed(1)}%` }} />
        </span>
        <span class="operations-what">
          <strong>{row.operation}</strong>{" "}
          <span class="muted">{index ? targetName(row.tables.join(", "), index) : row.tables.join(", ")}</span>
        </span>
        <span class="operations-beside num muted">
          {by === "time" ? `${formatNumber(row.units)} units` : formatLatency(row.took_ms)}
        </span>
        <span class="operations-when muted">{formatAgo(row.at_s * 1000)}</span>
        {row.fault ? <Badge tone="warn">{row.fault}</Badge> : null}
      </button>
      {open ? (
        <div id={id} class="operations-expensive-more stack">
          <Details row={row} />
        </div>
      ) : null}
    </li>
  );
}

function Details({ row }: { row: ExpensiveRequestRow }) {
  const [result, setResult] = useState<ReplayResult | null>(null);
  const action = useAction();
  const replay = () =>
    action.run(async () => {
      setResult(null);
      setResult(await call("POST /operations/replay", { operation: row.operation, request: row.request }));
    });
  return (
    <>
      {row.why.length ? (
        <div class="stack tight">
          <h3>Why it is expensive</h3>
          <ul class="operations-why">
            {row.why.map((why) => (
              <li key={why}>{why}</li>
            ))}
          </ul>
        </div>
      ) : null}
      <div class="operations-both">
        <div class="stack tight">
          <h3>Units by table and index</h3>
          {row.consumed.length ? (
            <Units consumed={row.consumed} caption={`Units of ${row.operation} at ${formatTime(row.at_s * 1000)}`} />
          ) : (
            <p class="muted">No units consumed.</p>
          )}
          <p class="small muted">
            At {formatTime(row.at_s * 1000)}, in {formatLatency(row.took_ms)}
            {row.operation === "Scan" ? "" : `, ${formatCount(row.items, "item or partition", "items or partitions")}`}.
          </p>
          <div class="row">
            <Button
              kind="primary"
              disabled={!row.replayable || action.busy}
              onClick={replay}
              title={row.replayable ? undefined : "Only reads can be replayed"}
            >
              Run again
            </Button>
            {row.replayable ? null : (
              <span class="small muted">
                {"omitted" in row.request ? "Too large to keep." : "Writes can't be replayed."}
              </span>
            )}
            {action.busy ? <Spinner label="Running" /> : null}
          </div>
          <ProblemNotice problem={action.problem ?? result?.problem} />
          {result && !result.problem ? <ReplayComparison result={result} row={row} /> : null}
        </div>
        <div class="stack tight">
          <h3>Request</h3>
          <Code text={JSON.stringify(row.request, null, 2)} label={`Request of ${row.operation}`} />
        </div>
      </div>
    </>
  );
}

function Units({ consumed, caption }: { consumed: readonly ConsumedUnits[]; caption: string }) {
  const bars = consumed.map((each) => ({
    id: targetName(each.table, each.index),
    value: each.reads + each.writes,
    text: [
      each.reads ? `${formatNumber(each.reads)} read` : "",
      each.writes ? `${formatNumber(each.writes)} written` : "",
    ]
      .filter(Boolean)
      .join(", "),
  }));
  return <Bars bars={bars} caption={caption} />;
}

function ReplayComparison({ result, row }: { result: ReplayResult; row: ExpensiveRequestRow }) {
  const units = result.reads + result.writes;
  const itemsText =
    result.count !== null && result.scanned
      ? `${formatNumber(result.scanned)} read, ${formatNumber(result.count ?? 0)} returned`
      : `${formatNumber(result.count ?? 0)} returned`;
  return (
    <div class="operations-again" role="status">
      <table class="plain">
        <caption class="hidden-text">The request then and now</caption>
        <thead>
          <tr>
            <td />
            <th scope="col" class="num">
              Then
            </th>
            <th scope="col" class="num">
              Now
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Units</th>
            <td class="num nowrap">{formatNumber(row.units)}</td>
            <td class="num">{formatNumber(units)}</td>
          </tr>
          <tr>
            <th scope="row">Time</th>
            <td class="num nowrap">{formatLatency(row.took_ms)}</td>
            <td class="num">{formatLatency(result.took_ms)}</td>
          </tr>
          <tr>
            <th scope="row">Items</th>
            <td />
            <td class="num">
              {itemsText}
              {result.more ? ", more available" : ""}
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}

// Overview: the totals of a window, over time and by operation.
import { useMemo, useState } from "preact/hooks";
import { call } from "../../app/api";
import type { OperationRow, OperationsSummary, OperationTotals } from "../../generated/api";
import {
  Badge,
  Button,
  Empty,
  Panel,
  ProblemNotice,
  type Series,
  Stat,
  Stats,
  TimeChart,
  DataTable,
  numeric,
} from "../../parts";
import { isOthers, setFilter, useFilters, windowText } from "./filters";
import { Capacity } from "./capacity";
import { timeSeries } from "./time_series";
import { FailedRequests } from "./failed_requests";
import { formatLatency, formatNumber, formatPercent } from "../../format";
import { useAction } from "../../app/queries";

const ROWS_SHOWN = 12;
const METADATA_CALLS = /^(Describe|List)/;
const STREAM_READS = /^(GetRecords|GetShardIterator|DescribeStream)$/;

interface OverviewProps {
  summary: OperationsSummary;
  paused: boolean;
  reload: () => void;
}

export function Overview({ summary, paused, reload }: OverviewProps) {
  const filters = useFilters();
  const narrowed = filters.table !== "" || filters.operation !== "";
  if (!narrowed && summary.rows.every((row) => METADATA_CALLS.test(row.operation)))
    return <NoTraffic summary={summary} reload={reload} />;
  return (
    <>
      <Tiles totals={summary.totals} seconds={summary.window_s} streamReads={countStreamReads(summary.rows)} />
      {narrowed && summary.totals.requests === 0 ? (
        <Empty
          title="No matching requests"
          actions={<Button onClick={() => setFilter({ t: "", op: "" })}>Clear filters</Button>}
        >
          No requests match these filters in {windowText(summary.window_s)}.
        </Empty>
      ) : (
        <>
          <div class="operations-charts">
            <Requests summary={summary} />
            <Latency summary={summary} />
          </div>
          <Capacity summary={summary} />
          <Rows summary={summary} />
          <FailedRequests
            paused={paused}
            count={summary.totals.throttles + summary.totals.conditions + summary.totals.conflicts}
          />
        </>
      )}
    </>
  );
}

function NoTraffic({ summary, reload }: { summary: OperationsSummary; reload: () => void }) {
  const action = useAction();
  const read = async () => {
    if (await action.run(async () => void (await call("POST /operations/sample", {})))) reload();
  };
  return (
    <>
      <Empty
        title="No traffic yet"
        actions={
          <Button kind="primary" disabled={action.busy} onClick={read}>
            Run sample reads
          </Button>
        }
      >
        No items were read or written in {windowText(summary.window_s)}. Use these tables from a program, or run sample
        reads here: a page of each table, some items and some item collections.
      </Empty>
      <ProblemNotice problem={action.problem} />
    </>
  );
}

/** How many requests read streams: workers send them all the time, also while nobody uses the tables. */
function countStreamReads(rows: readonly OperationRow[]): number {
  return rows.reduce((sum, row) => sum + (STREAM_READS.test(row.operation) ? row.totals.requests : 0), 0);
}

function Tiles({ totals, seconds, streamReads }: { totals: OperationTotals; seconds: number; streamReads: number }) {
  const codes = Object.entries(totals.codes);
  const other = otherErrors(totals);
  return (
    <Panel>
      <Stats>
        <Stat
          label="Requests / s"
          value={formatNumber(totals.per_second)}
          beside={`${formatNumber(totals.requests)} in ${windowText(seconds)}${streamReads ? `, ${formatNumber(streamReads)} of them by stream workers` : ""}`}
        />
        <Stat label="p50" value={formatLatency(totals.p50_ms)} beside={`p90 ${formatLatency(totals.p90_ms)}`} />
        <Stat label="p99" value={formatLatency(totals.p99_ms)} beside={`p99.9 ${formatLatency(totals.p999_ms)}`} />
        <Stat
          label="Slowest"
          value={formatLatency(totals.requests ? totals.slowest_ms : null)}
          beside={`mean ${formatLatency(totals.mean_ms)}`}
        />
        <Stat
          label="Other errors"
          value={formatNumber(other)}
          beside={shareText(other, totals.requests)}
          tone={other ? "warn" : undefined}
        />
        <Stat
          label="Throttled requests"
          value={formatNumber(totals.throttles)}
          beside={shareText(totals.throttles, totals.requests)}
          tone={totals.throttles ? "bad" : undefined}
        />
        <Stat
          label="Failed conditions"
          value={formatNumber(totals.conditions)}
          beside={shareText(totals.conditions, totals.requests)}
        />
        <Stat
          label="Conflicts"
          value={formatNumber(totals.conflicts)}
          beside={shareText(totals.conflicts, totals.requests)}
          tone={totals.conflicts ? "warn" : undefined}
        />
      </Stats>
      {codes.length ? (
        <div class="row tight operations-codes" aria-label="Errors by code">
          {codes.map(([code, count]) => (
            <Badge key={code}>
              {code} × {formatNumber(count)}
            </Badge>
          ))}
        </div>
      ) : null}
    </Panel>
  );
}

/** Return the errors that no other tile counts. A failed condition may be a lock at work, and is counted separately. */
function otherErrors(totals: OperationTotals): number {
  return Math.max(0, totals.faults - totals.throttles - totals.conditions - totals.conflicts);
}

function shareText(part: number, whole: number): string {
  return whole ? `${formatPercent(part / whole)} of requests` : "no requests";
}

function Requests({ summary }: { summary: OperationsSummary }) {
  const { times, series, describe } = useMemo(() => {
    const at = timeSeries(summary);
    const requests = at.rate(summary.series.requests);
    const lines: Series[] = [
      { label: "requests / s", values: requests, colour: "var(--accent)", fill: true },
      { label: "errors / s", values: at.rate(summary.series.faults), colour: "var(--warn)" },
      { label: "throttled / s", values: at.rate(summary.series.throttles), colour: "var(--bad)" },
    ];
    const most = Math.max(0, ...requests.map((value) => value ?? 0));
    return {
      times: at.times,
      series: lines,
      describe: `Requests per second over ${windowText(summary.window_s)}: now ${formatNumber(requests.at(-1) ?? 0)}, peak ${formatNumber(most)}, ${formatNumber(summary.totals.requests)} total, ${formatNumber(summary.totals.faults)} errors, ${formatNumber(summary.totals.throttles)} throttled.`,
    };
  }, [summary]);
  return (
    <Panel title="Requests">
      <TimeChart x={times} series={series} describe={describe} format={formatNumber} />
    </Panel>
  );
}

function Latency({ summary }: { summary: OperationsSummary }) {
  const { times, series } = useMemo(() => {
    const at = timeSeries(summary);
    const lines: Series[] = [
      { label: "p50", values: at.seen(summary.series.p50_ms), colour: "var(--chip-2)" },
      { label: "p90", values: at.seen(summary.series.p90_ms), colour: "var(--chip-0)" },
      { label: "p99", values: at.seen(summary.series.p99_ms), colour: "var(--chip-1)" },
      { label: "p99.9", values: at.seen(summary.series.p999_ms), colour: "var(--chip-4)", dashed: true },
    ];
    return { times: at.times, series: lines };
  }, [summary]);
  const { p50_ms, p90_ms, p99_ms, p999_ms } = summary.totals;
  return (
    <Panel title="Latency">
      <TimeChart
        x={times}
        series={series}
        format={formatLatency}
        describe={`Latency over ${windowText(summary.window_s)}: p50 ${formatLatency(p50_ms)}, p90 ${formatLatency(p90_ms)}, p99 ${formatLatency(p99_ms)}, p99.9 ${formatLatency(p999_ms)}.`}
      />
    </Panel>
  );
}

const COLUMNS = [
  "Operation",
  "Table",
  ...["Requests", "p50", "p99", "Slowest", "Other errors", "Throttled", "Failed conditions", "Conflicts"].map(numeric),
  ...["Read units", "Write units"].map(numeric),
];

function Rows({ summary }: { summary: OperationsSummary }) {
  const [all, setAll] = useState(false);
  const rows = all ? summary.rows : summary.rows.slice(0, ROWS_SHOWN);
  return (
    <Panel title="By operation" flush>
      <DataTable label="By operation" columns={COLUMNS} class="operations-rows">
        <tbody>
          {rows.map(({ operation, tables, totals }) => (
            <tr key={`${operation} ${tables.join(",")}`}>
              <th scope="row">
                {operation.startsWith("(") ? (
                  isOthers(operation) ? (
                    "All others"
                  ) : (
                    "Unknown operations"
                  )
                ) : (
                  <button
                    type="button"
                    class="operations-link"
                    title={`Show only ${operation}`}
                    onClick={() => setFilter({ op: operation })}
                  >
                    {operation}
                  </button>
                )}
              </th>
              <td class="operations-tables cut" title={tables.join(", ")}>
                {tables.length
                  ? tables.map((table, at) => (
                      <span key={table}>
                        {at ? ", " : ""}
                        <button
                          type="button"
                          class="operations-link"
                          title={`Show only ${table}`}
                          onClick={() => setFilter({ t: table })}
                        >
                          {table}
                        </button>
                      </span>
                    ))
                  : "–"}
              </td>
              <td class="num">{formatNumber(totals.requests)}</td>
              <td class="num">{formatLatency(totals.p50_ms)}</td>
              <td class="num">{formatLatency(totals.p99_ms)}</td>
              <td class="num">{formatLatency(totals.slowest_ms)}</td>
              <td class={`num ${otherErrors(totals) ? "warn" : "muted"}`}>{formatNumber(otherErrors(totals))}</td>
              <td class={`num ${totals.throttles ? "bad" : "muted"}`}>{formatNumber(totals.throttles)}</td>
              <td class={`num ${totals.conditions ? "" : "muted"}`}>{formatNumber(totals.conditions)}</td>
              <td class={`num ${totals.conflicts ? "warn" : "muted"}`}>{formatNumber(totals.conflicts)}</td>
              <td class="num">{formatNumber(totals.reads)}</td>
              <td class="num">{formatNumber(totals.writes)}</td>
            </tr>
          ))}
        </tbody>
      </DataTable>
      {summary.rows.length > ROWS_SHOWN ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(!all)}>
            {all ? "Show only the busiest" : `Show all ${summary.rows.length}`}
          </button>
        </p>
      ) : null}
    </Panel>
  );
}

// Overview: the numbers of a window at a glance, over time, and by operation.
import { useMemo, useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import type { OperationsSummary, OperationTotals, Problem } from "../../generated/api";
import { Badge, Button, Empty, ms, num, Panel, ProblemNotice, type Series, Stat, Stats, TimeChart } from "../../parts";
import { isOthers, setFilter, useFilters, windowText } from "./asked";
import { Capacity } from "./capacity";
import { steps } from "./steps";
import { Troubles } from "./troubles";

const ROWS = 12;
const QUIET = /^(Describe|List)/;

export function Overview({ told, paused, again }: { told: OperationsSummary; paused: boolean; again: () => void }) {
  const filters = useFilters();
  const narrowed = filters.table !== "" || filters.operation !== "";
  if (!narrowed && told.rows.every((row) => QUIET.test(row.operation))) return <NoTraffic told={told} again={again} />;
  return (
    <>
      <Tiles totals={told.totals} seconds={told.window_s} />
      {narrowed && told.totals.requests === 0 ? (
        <Empty
          title="Nothing like that was asked"
          actions={<Button onClick={() => setFilter({ t: "", op: "" })}>Show everything</Button>}
        >
          In {windowText(told.window_s)} there was no such call.
        </Empty>
      ) : (
        <>
          <div class="operations-charts">
            <Requests told={told} />
            <Latency told={told} />
          </div>
          <Capacity told={told} />
          <Rows told={told} />
          <Troubles paused={paused} counted={told.totals.throttles + told.totals.conditions + told.totals.conflicts} />
        </>
      )}
    </>
  );
}

function NoTraffic({ told, again }: { told: OperationsSummary; again: () => void }) {
  const [state, setState] = useState<{ busy: boolean; problem: Problem | null }>({ busy: false, problem: null });
  const read = async () => {
    setState({ busy: true, problem: null });
    try {
      await call("POST /operations/sample", {});
      setState({ busy: false, problem: null });
      again();
    } catch (thrown) {
      setState({ busy: false, problem: problemOf(thrown) });
    }
  };
  return (
    <>
      <Empty
        title="No traffic yet"
        actions={
          <Button kind="primary" disabled={state.busy} onClick={read}>
            Run a few reads
          </Button>
        }
      >
        In {windowText(told.window_s)} nobody read or wrote an item. Use a program with these tables, or run a few
        harmless reads from here: a page of each table, some items, some collections.
      </Empty>
      {state.problem ? <ProblemNotice problem={state.problem} /> : null}
    </>
  );
}

function Tiles({ totals, seconds }: { totals: OperationTotals; seconds: number }) {
  const took = (value: number | null | undefined) => (value === null || value === undefined ? "–" : ms(value));
  const codes = Object.entries(totals.codes);
  const other = otherFaults(totals);
  return (
    <Panel>
      <Stats>
        <Stat
          label="Requests / s"
          value={num(totals.per_second)}
          beside={`${num(totals.requests)} in ${windowText(seconds)}`}
        />
        <Stat label="p50" value={took(totals.p50_ms)} beside={`p90 ${took(totals.p90_ms)}`} />
        <Stat label="p99" value={took(totals.p99_ms)} beside={`p99.9 ${took(totals.p999_ms)}`} />
        <Stat
          label="Slowest"
          value={took(totals.requests ? totals.slowest_ms : null)}
          beside={`mean ${took(totals.mean_ms)}`}
        />
        <Stat
          label="Other faults"
          value={num(other)}
          beside={share(other, totals.requests)}
          {...(other ? { tone: "warn" as const } : {})}
        />
        <Stat
          label="Throttles"
          value={num(totals.throttles)}
          beside={share(totals.throttles, totals.requests)}
          {...(totals.throttles ? { tone: "bad" as const } : {})}
        />
        <Stat
          label="Failed conditions"
          value={num(totals.conditions)}
          beside={share(totals.conditions, totals.requests)}
        />
        <Stat
          label="Conflicts"
          value={num(totals.conflicts)}
          beside={share(totals.conflicts, totals.requests)}
          {...(totals.conflicts ? { tone: "warn" as const } : {})}
        />
      </Stats>
      {codes.length ? (
        <div class="row tight operations-codes" aria-label="Faults by code">
          {codes.map(([code, count]) => (
            <Badge key={code}>
              {code} × {num(count)}
            </Badge>
          ))}
        </div>
      ) : null}
    </Panel>
  );
}

/** Return the faults that no other tile counts: a failed condition may be a lock at work, and is told by itself. */
function otherFaults(totals: OperationTotals): number {
  return Math.max(0, totals.faults - totals.throttles - totals.conditions - totals.conflicts);
}

function share(part: number, whole: number): string {
  return whole ? `${num((part / whole) * 100)} % of requests` : "none asked";
}

function Requests({ told }: { told: OperationsSummary }) {
  const { times, series, describe } = useMemo(() => {
    const at = steps(told);
    const requests = at.rate(told.series.requests);
    const lines: Series[] = [
      { label: "requests / s", values: requests, colour: "var(--accent)", fill: true },
      { label: "faults / s", values: at.rate(told.series.faults), colour: "var(--warn)" },
      { label: "throttles / s", values: at.rate(told.series.throttles), colour: "var(--bad)" },
    ];
    const most = Math.max(0, ...requests.map((value) => value ?? 0));
    return {
      times: at.times,
      series: lines,
      describe: `Requests in a second over ${windowText(told.window_s)}: now ${num(requests.at(-1) ?? 0)}, at most ${num(most)}, ${num(told.totals.requests)} in all, ${num(told.totals.faults)} faults, ${num(told.totals.throttles)} throttles.`,
    };
  }, [told]);
  return (
    <Panel title="Requests">
      <TimeChart x={times} series={series} describe={describe} format={num} />
    </Panel>
  );
}

function Latency({ told }: { told: OperationsSummary }) {
  const { times, series } = useMemo(() => {
    const at = steps(told);
    const lines: Series[] = [
      { label: "p50", values: at.seen(told.series.p50_ms), colour: "var(--chip-2)" },
      { label: "p90", values: at.seen(told.series.p90_ms), colour: "var(--chip-0)" },
      { label: "p99", values: at.seen(told.series.p99_ms), colour: "var(--chip-1)" },
      { label: "p99.9", values: at.seen(told.series.p999_ms), colour: "var(--chip-4)", dashed: true },
    ];
    return { times: at.times, series: lines };
  }, [told]);
  const { p50_ms, p90_ms, p99_ms, p999_ms } = told.totals;
  const told_of = (value: number | null | undefined) => (value === null || value === undefined ? "unknown" : ms(value));
  return (
    <Panel title="Latency">
      <TimeChart
        x={times}
        series={series}
        format={ms}
        describe={`Latency over ${windowText(told.window_s)}: half of the calls within ${told_of(p50_ms)}, nine in ten within ${told_of(p90_ms)}, 99 % within ${told_of(p99_ms)}, 99.9 % within ${told_of(p999_ms)}.`}
      />
    </Panel>
  );
}

function Rows({ told }: { told: OperationsSummary }) {
  const [all, setAll] = useState(false);
  const rows = all ? told.rows : told.rows.slice(0, ROWS);
  return (
    <Panel title="By operation" flush>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="By operation">
        <table class="plain operations-rows">
          <thead>
            <tr>
              <th scope="col">Operation</th>
              <th scope="col">Table</th>
              {[
                "Requests",
                "p50",
                "p99",
                "Slowest",
                "Other faults",
                "Throttles",
                "Conditions",
                "Conflicts",
                "Reads",
                "Writes",
              ].map((name) => (
                <th scope="col" class="num" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
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
                      title={`Show ${operation} alone`}
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
                            title={`Show ${table} alone`}
                            onClick={() => setFilter({ t: table })}
                          >
                            {table}
                          </button>
                        </span>
                      ))
                    : "–"}
                </td>
                <td class="num">{num(totals.requests)}</td>
                <td class="num">{ms(totals.p50_ms ?? 0)}</td>
                <td class="num">{ms(totals.p99_ms ?? 0)}</td>
                <td class="num">{ms(totals.slowest_ms)}</td>
                <td class={`num ${otherFaults(totals) ? "warn" : "muted"}`}>{num(otherFaults(totals))}</td>
                <td class={`num ${totals.throttles ? "bad" : "muted"}`}>{num(totals.throttles)}</td>
                <td class={`num ${totals.conditions ? "" : "muted"}`}>{num(totals.conditions)}</td>
                <td class={`num ${totals.conflicts ? "warn" : "muted"}`}>{num(totals.conflicts)}</td>
                <td class="num">{num(totals.reads)}</td>
                <td class="num">{num(totals.writes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {told.rows.length > ROWS ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(!all)}>
            {all ? "Show the most asked alone" : `Show all ${told.rows.length}`}
          </button>
        </p>
      ) : null}
    </Panel>
  );
}

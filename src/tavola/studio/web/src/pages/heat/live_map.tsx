// LiveMap: a table's or index's heat as it was seen: live, paused, or from the access log.
import { useState } from "preact/hooks";
import { useCommands } from "../../app/commands";
import { go, route } from "../../app/router";
import type { HeatMap, TableSummary } from "../../generated/api";
import { Button, Empty, Notice, num, Panel, ProblemNotice, Spinner } from "../../parts";
import { CellPanel, type OpenCell } from "./cell_panel";
import { Findings } from "./findings";
import { amount, type Grid } from "./grid";
import { HeatCanvas, labelWidth } from "./heat_canvas";
import { Hottest } from "./hottest";
import { Legend } from "./legend";
import { type Metric, useLive } from "./live";
import { leastOf } from "./painting";
import { RowsTable } from "./rows_table";
import { Strip } from "./strip";
import { type CellPlace, isWhole, keysOf, type View, viewOf, viewParams, wholeView } from "./view";
import { lengthText, METRIC_WORDS, momentOf } from "./words";

export interface LiveMapProps {
  table: TableSummary;
  index: string | null;
  metric: Metric;
  source: "live" | "paused" | "log";
  seconds: number;
  asTable: boolean;
}

export function LiveMap({ table, index, metric, source, seconds, asTable }: LiveMapProps) {
  const params = route.value.params;
  const since = source === "paused" ? Number(params["since"] ?? Number.NaN) : Number.NaN;
  const until = source === "paused" ? Number(params["until"] ?? Number.NaN) : Number.NaN;
  const fixed = Number.isFinite(since) && Number.isFinite(until);
  const found = useLive(
    {
      table: table.name,
      index,
      metric,
      seconds,
      from: fixed ? since : null,
      to: fixed ? until : null,
      log: source === "log",
      keys: params["keys"] ?? null,
    },
    source === "live",
  );
  const [open, setOpen] = useState<OpenCell | null>(null);
  const { grid, answer } = found;
  const view = viewOf(grid, params);
  const end = grid.fromS + grid.columns * grid.columnS;

  const pause = (more: Record<string, string | null> = {}) => {
    const window = source === "live" ? { source: "paused", since: String(grid.fromS), until: String(end) } : {};
    go({ params: { ...window, ...more } });
  };
  const onView = (to: View) => {
    const keys = to.top > 0 || to.bottom < grid.rows.length ? keysOf(grid, to) : null;
    if (isWhole(grid, to)) pause({ ...viewParams(grid, to), keys: null });
    else if (keys) pause({ ...viewParams(grid, to), first: null, last: null, keys });
    else pause(viewParams(grid, to));
  };
  const resume = () => go({ params: { source: null, since: null, until: null, from: null, to: null } });
  useCommands([
    source === "live"
      ? { id: "heat-pause", title: "Heat: pause", keys: "p", group: "Heat", run: () => pause() }
      : { id: "heat-resume", title: "Heat: go on live", keys: "p", group: "Heat", run: resume },
    { id: "heat-all", title: "Heat: show all", group: "Heat", run: () => onView(wholeView(grid)) },
  ]);

  const timeOf = (column: number) => momentOf(grid.fromS + column * grid.columnS, grid.columns * grid.columnS);
  const tell = (cell: CellPlace) => told(grid, cell, metric, timeOf);
  const openCell = (cell: CellPlace) => {
    if (!answer) return;
    const fromS = grid.fromS + cell.column * grid.columnS;
    setOpen({
      table: table.name,
      index,
      layout: answer.layout,
      row: cell.row,
      label: grid.rows[cell.row]?.label ?? "",
      fromS,
      toS: fromS + grid.columnS,
      metric,
    });
  };

  if (found.problem && !answer) return <ProblemNotice problem={found.problem} />;
  if (!answer) return <Spinner label="Reading the heat" />;
  const place = index ?? table.name;
  return (
    <>
      {found.problem ? <ProblemNotice problem={found.problem} /> : null}
      {found.findings.length ? (
        <Findings findings={found.findings} />
      ) : (
        <p class="heat-reading muted">Reading what it means …</p>
      )}
      {answer.note ? <Notice>{answer.note}</Notice> : null}
      <div class="heat-columns">
        <Panel
          title={
            <>
              {METRIC_WORDS[metric].name}{" "}
              <span class="muted">of {params["keys"] ? `some keys of ${place}` : place}</span>
            </>
          }
          actions={
            <>
              {isWhole(grid, view) && !params["keys"] ? null : (
                <Button small onClick={() => onView(wholeView(grid))}>
                  Show all
                </Button>
              )}
              {source === "live" ? (
                <Button small onClick={() => pause()}>
                  Pause
                </Button>
              ) : source === "paused" ? (
                <Button small kind="primary" onClick={resume}>
                  Go on live
                </Button>
              ) : null}
            </>
          }
        >
          {grid.rows.length === 0 ? (
            <Empty title="Nothing was asked yet">
              {source === "log"
                ? "The access log has nothing of this table in that time."
                : "Ask something of it: on the data page, by an application, or on the command line. It shows here within a second."}
            </Empty>
          ) : asTable ? (
            <RowsTable grid={grid} view={view} amount={METRIC_WORDS[metric].amount} timeOf={timeOf} rate={false} />
          ) : (
            <div style={{ "--labels": `${labelWidth(grid)}px` }}>
              <HeatCanvas
                grid={grid}
                view={view}
                label={`${METRIC_WORDS[metric].name} of ${place}`}
                timeOf={timeOf}
                tell={tell}
                onView={onView}
                onOpen={openCell}
              />
              <Legend
                most={grid.most * grid.scale}
                least={leastOf(grid)}
                unit={`${METRIC_WORDS[metric].amount} in ${lengthText(grid.columnS)}`}
                throttled={grid.refused.some((each) => each > 0)}
              />
              <Consumed grid={grid} view={view} answer={answer} live={source === "live"} />
            </div>
          )}
        </Panel>
        {found.hottest ? <Hottest found={found.hottest} table={table.name} index={index} /> : null}
      </div>
      {open ? <CellPanel cell={open} onClose={() => setOpen(null)} /> : null}
    </>
  );
}

function told(grid: Grid, cell: CellPlace, metric: Metric, timeOf: (column: number) => string): string {
  const row = grid.rows[cell.row];
  const lost = grid.refused[cell.row * grid.columns + cell.column] ?? 0;
  const keys = row && row.keys > 1 ? ` (${num(row.keys)} keys)` : "";
  const refused = lost && metric !== "throttles" ? `, ${num(lost)} throttled` : "";
  return `${row?.label ?? ""}${keys} · ${timeOf(cell.column)} · ${num(amount(grid, cell.row, cell.column))} ${METRIC_WORDS[metric].amount}${refused}`;
}

/** What was consumed a second, against what the table or index may consume. */
function Consumed({ grid, view, answer, live }: { grid: Grid; view: View; answer: HeatMap; live: boolean }) {
  // The column that is not over yet would look as if the traffic had stopped.
  const whole = live && grid.columns > 1 ? grid.columns - 1 : grid.columns;
  const rate = (values: readonly number[]) => values.slice(0, whole).map((value) => value / grid.columnS);
  const { limits } = answer;
  const lines = [
    { label: "reads", values: rate(grid.totals.reads), tone: "reads" as const },
    { label: "writes", values: rate(grid.totals.writes), tone: "writes" as const },
    ...(grid.totals.throttles.some((value) => value > 0)
      ? [{ label: "throttled", values: rate(grid.totals.throttles), tone: "bad" as const, area: true }]
      : []),
  ];
  const told = [
    ...(limits.reads === null
      ? []
      : [
          {
            value: limits.reads,
            title: `${num(limits.reads)} RCU ${limits.mode === "provisioned" ? "provisioned" : "at most"}`,
          },
        ]),
    ...(limits.writes === null
      ? []
      : [
          {
            value: limits.writes,
            title: `${num(limits.writes)} WCU ${limits.mode === "provisioned" ? "provisioned" : "at most"}`,
          },
        ]),
    {
      value: limits.partition_writes,
      title: `a partition: ${num(limits.partition_writes)} WCU, ${num(limits.partition_reads)} RCU`,
    },
  ];
  return (
    <Strip
      lines={lines}
      limits={told}
      view={view}
      unit="units/s"
      label="Consumed units a second, over the same time as the map"
    />
  );
}

// LiveMap: the observed heat of a table or index: live, paused, or from the access log.
import { useState } from "preact/hooks";
import { useCommands } from "../../app/commands";
import { go, route } from "../../app/router";
import type { KeyHeatMap, TableSummary } from "../../generated/api";
import { Button, Empty, Notice, Panel, ProblemNotice, Spinner } from "../../parts";
import { CellPanel, type OpenCell } from "./cell_panel";
import { Findings } from "./findings";
import { amount, type Grid } from "./grid";
import { HeatCanvas, labelWidth } from "./heat_canvas";
import { Hottest } from "./hottest";
import { Legend } from "./legend";
import { type Metric, useLiveHeat } from "./live_heat";
import { leastVisible } from "./pixels";
import { RowsTable } from "./rows_table";
import { Strip } from "./strip";
import { type CellPlace, isWhole, keysOf, type View, viewOf, viewParams, wholeView } from "./view";
import { METRIC_LABELS, columnTimeText } from "./labels";
import { formatNumber, formatSeconds } from "../../format";

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
  const heat = useLiveHeat(
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
  const { grid, answer } = heat;
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
      ? { id: "heat-pause", title: "Heat map: pause", keys: "p", group: "Heat map", run: () => pause() }
      : { id: "heat-resume", title: "Heat map: resume live traffic", keys: "p", group: "Heat map", run: resume },
    { id: "heat-all", title: "Heat map: show all", group: "Heat map", run: () => onView(wholeView(grid)) },
  ]);

  const timeOf = (column: number) => columnTimeText(grid.fromS + column * grid.columnS, grid.columns * grid.columnS);
  const describe = (cell: CellPlace) => describeCell(grid, cell, metric, timeOf);
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

  if (heat.problem && !answer) return <ProblemNotice problem={heat.problem} />;
  if (!answer) return <Spinner label="Loading the heat map" />;
  const place = index ?? table.name;
  return (
    <>
      <ProblemNotice problem={heat.problem} />
      {heat.findings.length ? <Findings findings={heat.findings} /> : <p class="heat-reading muted">Analyzing…</p>}
      {answer.note ? <Notice>{answer.note}</Notice> : null}
      <div class="heat-columns">
        <Panel
          title={
            <>
              {METRIC_LABELS[metric].name}{" "}
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
                  Resume
                </Button>
              ) : null}
            </>
          }
        >
          {grid.rows.length === 0 ? (
            <Empty title={source === "log" ? "No requests found" : "No requests yet"}>
              {source === "log"
                ? "The access log has no requests for this table in this period."
                : "Requests to this table or index appear here within a second."}
            </Empty>
          ) : asTable ? (
            <RowsTable grid={grid} view={view} amount={METRIC_LABELS[metric].amount} timeOf={timeOf} rate={false} />
          ) : (
            <div style={{ "--labels": `${labelWidth(grid)}px` }}>
              <HeatCanvas
                grid={grid}
                view={view}
                label={`${METRIC_LABELS[metric].name} of ${place}`}
                timeOf={timeOf}
                describeCell={describe}
                onView={onView}
                onOpen={openCell}
              />
              <Legend
                most={grid.most * grid.scale}
                least={leastVisible(grid)}
                unit={`${METRIC_LABELS[metric].amount} per ${grid.columnS === 1 ? "second" : formatSeconds(grid.columnS)}`}
                throttled={grid.throttled.some((each) => each > 0)}
              />
              <Consumed grid={grid} view={view} answer={answer} live={source === "live"} />
            </div>
          )}
        </Panel>
        {heat.hottest ? <Hottest hottest={heat.hottest} table={table.name} index={index} /> : null}
      </div>
      {open ? <CellPanel cell={open} onClose={() => setOpen(null)} /> : null}
    </>
  );
}

function describeCell(grid: Grid, cell: CellPlace, metric: Metric, timeOf: (column: number) => string): string {
  const row = grid.rows[cell.row];
  const lost = grid.throttled[cell.row * grid.columns + cell.column] ?? 0;
  const keys = row && row.keys > 1 ? ` (${formatNumber(row.keys)} keys)` : "";
  const throttled = lost && metric !== "throttles" ? `, ${formatNumber(lost)} throttled` : "";
  return `${row?.label ?? ""}${keys} · ${timeOf(cell.column)} · ${formatNumber(amount(grid, cell.row, cell.column))} ${METRIC_LABELS[metric].amount}${throttled}`;
}

/** Consumed units per second, and the limits of the table or index. */
function Consumed({ grid, view, answer, live }: { grid: Grid; view: View; answer: KeyHeatMap; live: boolean }) {
  // The current column is incomplete, and would look as if the traffic had stopped.
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
  const capacity = (value: number | null, unit: string) =>
    value === null
      ? []
      : [
          {
            value,
            title: `${formatNumber(value)} ${unit} ${limits.mode === "provisioned" ? "provisioned" : "maximum"}`,
          },
        ];
  const shownLimits = [
    ...capacity(limits.reads, "read units/s"),
    ...capacity(limits.writes, "write units/s"),
    {
      value: limits.partition_writes,
      title: `partition limit: ${formatNumber(limits.partition_writes)} write units/s, ${formatNumber(limits.partition_reads)} read units/s`,
    },
  ];
  return (
    <Strip
      lines={lines}
      limits={shownLimits}
      view={view}
      unit="units/s"
      label="Consumed units per second over the period of the map"
    />
  );
}

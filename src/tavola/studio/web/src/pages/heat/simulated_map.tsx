// SimulatedMap: the heat of the traffic that the design declares, with partition splits and throttling.
import { useEffect, useMemo, useState } from "preact/hooks";
import { go, route } from "../../app/router";
import type { SimulationRequest, TableSummary } from "../../generated/api";
import { Button, Empty, Panel, ProblemNotice, Spinner, Stat, Stats } from "../../parts";
import { Findings } from "./findings";
import { amount, NO_GRID } from "./grid";
import { HeatCanvas, labelWidth } from "./heat_canvas";
import { SimulatedHottest } from "./hottest";
import { SimulatedCell } from "./simulated_cell";
import { Legend } from "./legend";
import type { Metric } from "./live_heat";
import { leastVisible } from "./pixels";
import { RowsTable } from "./rows_table";
import { ScenarioForm, scenarioOf } from "./scenario";
import { simulatedGrid, useSimulation } from "./simulation";
import { Strip } from "./strip";
import { type CellPlace, isWhole, type View, viewOf, viewParams, wholeView } from "./view";
import { simulatedTimeText } from "./labels";
import { formatNumber, formatPercent, formatSeconds, formatCount } from "../../format";

const ZOOM_OFF = { first: null, last: null, from: null, to: null };

interface SimulatedMapProps {
  table: TableSummary;
  index: string | null;
  metric: Metric;
  asTable: boolean;
}

export function SimulatedMap({ table, index, metric, asTable }: SimulatedMapProps) {
  const params = route.value.params;
  const run = useSimulation();
  const request = JSON.stringify({ ...scenarioOf(params).request, table: table.name });
  useEffect(() => run.run(JSON.parse(request) as SimulationRequest), [request]);
  const access = metric === "reads" ? "read" : "write";
  const isShown = (each: { table: string; index: string | null }) => each.table === table.name && each.index === index;
  const maps = run.result?.heat_maps.filter(isShown) ?? [];
  const map = maps.find((each) => each.access === access) ?? maps[0] ?? null;
  const place = run.result?.places.find((each) => isShown(each) && each.access === map?.access) ?? null;
  const grid = useMemo(() => (map ? simulatedGrid(map) : NO_GRID), [map]);
  const view = viewOf(grid, params);
  const onView = (to: View) => go({ params: viewParams(grid, to) });
  const timeOf = (column: number) => simulatedTimeText(column * grid.columnS, map?.begins_at_s ?? 0);
  const [open, setOpen] = useState<CellPlace | null>(null);
  const describeCell = ({ row, column }: CellPlace) => {
    const lost = grid.throttled[row * grid.columns + column] ?? 0;
    const value = amount(grid, row, column);
    const throttled = lost ? `, ${formatPercent(lost / value)} throttled` : "";
    return `${grid.rows[row]?.label ?? ""} · ${timeOf(column)} · ${formatNumber(value, 1)} ${map?.access} units/s${throttled}`;
  };
  return (
    <>
      <ScenarioForm
        params={params}
        running={run.running}
        progress={run.progress}
        onRun={(changes) => go({ params: { ...changes, ...ZOOM_OFF } })}
        onStop={run.stop}
      />
      <ProblemNotice problem={run.problem} />
      {run.running ? (
        <p class="row muted" role="status">
          <Spinner label="Simulating" />
          {run.progress && run.progress.of > 0 && run.progress.done < run.progress.of
            ? `${formatNumber(Math.round(run.progress.done / 360) / 10)} of ${formatNumber(Math.round(run.progress.of / 360) / 10)} hours simulated`
            : run.progress?.done
              ? "Finding the number of shards for hot keys"
              : "Simulating"}
        </p>
      ) : null}
      {run.result && !map ? (
        <Empty title="No traffic declared">
          The design declares no traffic that reads or writes {index ?? table.name}.
        </Empty>
      ) : null}
      {run.result && map && place ? (
        <>
          <Findings
            findings={[
              {
                kind: place.throttled > 0.0005 ? "throttled" : "even",
                name: place.throttled > 0.0005 ? "Throttled" : "No throttling",
                access: null,
                sentence: `${map.access === "read" ? "Reads" : "Writes"} of ${place.name}: ${place.diagnosis.replace(/^(No|Almost)\b/, (word) => word.toLowerCase())}`,
              },
            ]}
          />
          <div class="heat-columns">
            <Panel
              title={
                <>
                  Simulated {map.access}s <span class="muted">of {place.name}</span>
                </>
              }
              actions={
                isWhole(grid, view) ? null : (
                  <Button small onClick={() => onView(wholeView(grid))}>
                    Show all
                  </Button>
                )
              }
            >
              {asTable ? (
                <RowsTable grid={grid} view={view} amount={`${map.access} units`} timeOf={timeOf} rate />
              ) : (
                <div style={{ "--labels": `${labelWidth(grid)}px` }}>
                  <HeatCanvas
                    grid={grid}
                    view={view}
                    label={`Simulated ${map.access}s of ${place.name}`}
                    cuts={map.cuts}
                    timeOf={timeOf}
                    describeCell={describeCell}
                    onView={onView}
                    onOpen={setOpen}
                  />
                  <Legend
                    most={grid.most}
                    least={leastVisible(grid)}
                    unit={`${map.access} units/s, average over ${formatSeconds(map.column_s)}`}
                    throttled={grid.throttled.some((each) => each > 0)}
                  />
                  <Strip
                    lines={[
                      {
                        label: "requested",
                        values: map.access === "read" ? grid.totals.reads : grid.totals.writes,
                        tone: map.access === "read" ? "reads" : "writes",
                      },
                      { label: "throttled", values: grid.totals.throttles, tone: "bad", area: true },
                    ]}
                    marks={map.cuts.map(([atS, at, reason]) => ({
                      at: atS / map.column_s,
                      kind: reason === "heat" ? ("heat" as const) : ("growth" as const),
                      title: `${simulatedTimeText(atS, map.begins_at_s)}: partition split at ${formatPercent(at)} of the hash space (${reason === "heat" ? "heat" : "growth"})`,
                    }))}
                    limits={[{ value: place.units, title: `${formatNumber(place.units, 0)} units/s ${place.mode}` }]}
                    view={view}
                    unit="units/s"
                    label="Requested and throttled units per second, and partition splits, over the period of the map"
                  />
                </div>
              )}
              <Splits cuts={map.cuts} beginsAtS={map.begins_at_s} />
            </Panel>
            <div class="stack">
              <SimulatedHottest place={place} />
              <Panel title="Simulation run">
                <Stats>
                  <Stat label="Requests" value={formatNumber(run.result.requests, 0)} />
                  <Stat
                    label="Throttled"
                    value={formatPercent(run.result.throttled)}
                    tone={run.result.throttled > 0.0005 ? "bad" : undefined}
                  />
                  <Stat label="Partitions" value={`${place.partitions[0]} → ${place.partitions[1]}`} />
                  <Stat label="Mean" value={`${formatNumber(place.mean, 1)}/s`} />
                  <Stat label="Peak" value={`${formatNumber(place.peak, 0)}/s`} />
                </Stats>
                {run.result.assumptions.length ? (
                  <details class="small">
                    <summary>Assumptions</summary>
                    <ul>
                      {run.result.assumptions.map((each) => (
                        <li key={each}>{each}</li>
                      ))}
                    </ul>
                  </details>
                ) : null}
              </Panel>
            </div>
          </div>
          {open && open.row < grid.rows.length && open.column < grid.columns ? (
            <SimulatedCell map={map} grid={grid} cell={open} timeOf={timeOf} onClose={() => setOpen(null)} />
          ) : null}
        </>
      ) : null}
    </>
  );
}

/** The list of partition splits. */
function Splits({ cuts, beginsAtS }: { cuts: readonly (readonly [number, number, string])[]; beginsAtS: number }) {
  if (!cuts.length) return <p class="small muted">No partition splits.</p>;
  return (
    <details class="small heat-splits">
      <summary>{formatCount(cuts.length, "partition split")}</summary>
      <ol>
        {cuts.map(([atS, at, reason], number) => (
          <li key={number}>
            {simulatedTimeText(atS, beginsAtS)}, at {formatPercent(at)} of the hash space (
            {reason === "heat" ? "heat" : "growth"})
          </li>
        ))}
      </ol>
    </details>
  );
}

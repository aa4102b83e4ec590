// SimulatedMap: the heat that a design's declared traffic would make, with the splits of partitions and what they throttle.
import { useEffect, useMemo, useState } from "preact/hooks";
import { go, route } from "../../app/router";
import type { SimulationRequest, TableSummary } from "../../generated/api";
import { Button, Empty, num, Panel, ProblemNotice, Spinner, Stat, Stats } from "../../parts";
import { Findings } from "./findings";
import { amount, NO_GRID } from "./grid";
import { HeatCanvas, labelWidth } from "./heat_canvas";
import { SimulatedHottest } from "./hottest";
import { SimulatedCell } from "./simulated_cell";
import { Legend } from "./legend";
import type { Metric } from "./live";
import { leastOf } from "./painting";
import { RowsTable } from "./rows_table";
import { ScenarioForm, scenarioOf } from "./scenario";
import { simulatedGrid, useSimulation } from "./simulation";
import { Strip } from "./strip";
import { type CellPlace, isWhole, type View, viewOf, viewParams, wholeView } from "./view";
import { lengthText, percent, simulatedMoment } from "./words";

const ZOOM_OFF = { first: null, last: null, from: null, to: null };

export function SimulatedMap({
  table,
  index,
  metric,
  asTable,
}: {
  table: TableSummary;
  index: string | null;
  metric: Metric;
  asTable: boolean;
}) {
  const params = route.value.params;
  const run = useSimulation();
  const asks = JSON.stringify({ ...scenarioOf(params).asks, table: table.name });
  useEffect(() => run.run(JSON.parse(asks) as SimulationRequest), [asks]);
  const access = metric === "reads" ? "read" : "write";
  const of = (each: { table: string; index: string | null }) => each.table === table.name && each.index === index;
  const maps = run.found?.heat_maps.filter(of) ?? [];
  const map = maps.find((each) => each.access === access) ?? maps[0] ?? null;
  const place = run.found?.places.find((each) => of(each) && each.access === map?.access) ?? null;
  const grid = useMemo(() => (map ? simulatedGrid(map) : NO_GRID), [map]);
  const view = viewOf(grid, params);
  const onView = (to: View) => go({ params: viewParams(grid, to) });
  const timeOf = (column: number) => simulatedMoment(column * grid.columnS, map?.begins_at_s ?? 0);
  const [open, setOpen] = useState<CellPlace | null>(null);
  const tell = ({ row, column }: CellPlace) => {
    const lost = grid.refused[row * grid.columns + column] ?? 0;
    const value = amount(grid, row, column);
    const refused = lost ? `, ${percent(lost / value)} throttled` : "";
    return `${grid.rows[row]?.label ?? ""} · ${timeOf(column)} · ${num(Math.round(value * 10) / 10)} ${map?.access} units/s${refused}`;
  };
  return (
    <>
      <ScenarioForm
        params={params}
        running={run.running}
        progress={run.progress}
        onRun={(told) => go({ params: { ...told, ...ZOOM_OFF } })}
        onEnd={run.end}
      />
      {run.problem ? <ProblemNotice problem={run.problem} /> : null}
      {run.running ? (
        <p class="row muted" role="status">
          <Spinner label="Simulating" />
          {run.progress && run.progress.of > 0 && run.progress.done < run.progress.of
            ? `${num(Math.round(run.progress.done / 360) / 10)} of ${num(Math.round(run.progress.of / 360) / 10)} hours are simulated`
            : run.progress?.done
              ? "Finding how many shards hot keys need"
              : "Simulating"}
        </p>
      ) : null}
      {run.found && !map ? (
        <Empty title="Nothing is asked of it">
          The design declares no traffic that reads or writes {index ?? table.name}.
        </Empty>
      ) : null}
      {run.found && map && place ? (
        <>
          <Findings
            findings={[
              {
                kind: place.throttled > 0.0005 ? "throttled" : "even",
                name: place.throttled > 0.0005 ? "Throttled" : "Well borne",
                access: null,
                sentence: `${map.access === "read" ? "Reads" : "Writes"} of ${place.name}: ${place.diagnosis}`,
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
                    tell={tell}
                    onView={onView}
                    onOpen={setOpen}
                  />
                  <Legend
                    most={grid.most}
                    least={leastOf(grid)}
                    unit={`${map.access} units/s, the mean of ${lengthText(map.column_s)}`}
                    throttled={grid.refused.some((each) => each > 0)}
                  />
                  <Strip
                    lines={[
                      {
                        label: "asked",
                        values: map.access === "read" ? grid.totals.reads : grid.totals.writes,
                        tone: map.access === "read" ? "reads" : "writes",
                      },
                      { label: "throttled", values: grid.totals.throttles, tone: "bad", area: true },
                    ]}
                    marks={map.cuts.map(([atS, at, reason]) => ({
                      at: atS / map.column_s,
                      kind: reason === "heat" ? ("heat" as const) : ("growth" as const),
                      title: `${simulatedMoment(atS, map.begins_at_s)}: the partition at ${percent(at)} of the hash became two, ${reason === "heat" ? "for heat" : "as the table grew"}`,
                    }))}
                    limits={[{ value: place.units, title: `${num(Math.round(place.units))} units/s ${place.mode}` }]}
                    view={view}
                    unit="units/s"
                    label="Asked and throttled units a second, and splits of partitions, over the same time as the map"
                  />
                </div>
              )}
              <Splits cuts={map.cuts} beginsAtS={map.begins_at_s} />
            </Panel>
            <div class="stack">
              <SimulatedHottest place={place} />
              <Panel title="The run">
                <Stats>
                  <Stat label="Requests" value={num(Math.round(run.found.requests))} />
                  <Stat
                    label="Throttled"
                    value={percent(run.found.throttled)}
                    {...(run.found.throttled > 0.0005 ? { tone: "bad" as const } : {})}
                  />
                  <Stat label="Partitions" value={`${place.partitions[0]} → ${place.partitions[1]}`} />
                  <Stat label="Mean" value={`${num(Math.round(place.mean * 10) / 10)}/s`} />
                  <Stat label="Peak" value={`${num(Math.round(place.peak))}/s`} />
                </Stats>
                {run.found.assumptions.length ? (
                  <details class="small">
                    <summary>Assumed</summary>
                    <ul>
                      {run.found.assumptions.map((each) => (
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

/** The simulator's own record of partitions that became two. */
function Splits({ cuts, beginsAtS }: { cuts: readonly (readonly [number, number, string])[]; beginsAtS: number }) {
  if (!cuts.length) return <p class="small muted">No partition was split.</p>;
  return (
    <details class="small heat-splits">
      <summary>
        {cuts.length} {cuts.length === 1 ? "split" : "splits"} of partitions
      </summary>
      <ol>
        {cuts.map(([atS, at, reason], number) => (
          <li key={number}>
            {simulatedMoment(atS, beginsAtS)}, at {percent(at)} of the hash,{" "}
            {reason === "heat" ? "for heat" : "for growth"}
          </li>
        ))}
      </ol>
    </details>
  );
}

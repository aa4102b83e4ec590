// Heat map: the traffic of a table or index by key over time, observed or simulated.
import { useCommands } from "../../app/commands";
import { go, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import { Empty, Segmented, Select } from "../../parts";
import type { TableSummary } from "../../generated/api";
import type { Metric } from "./live_heat";
import { LiveMap } from "./live_map";
import { SimulatedMap } from "./simulated_map";
import { METRIC_LABELS } from "./labels";
import "./page.css";

type Source = "live" | "paused" | "simulator" | "log";

const SPANS = [
  { value: "60", label: "1 minute" },
  { value: "300", label: "5 minutes" },
  { value: "600", label: "10 minutes" },
  { value: "3600", label: "1 hour" },
  { value: "28800", label: "8 hours" },
];
const METRICS: readonly Metric[] = ["operations", "reads", "writes", "throttles"];
const ZOOM_OFF = { first: null, last: null, from: null, to: null, keys: null };

export default function HeatPage() {
  const table = currentTable.value;
  if (!table) {
    return (
      <div class="page">
        <Empty whole title="No table selected">
          Select a table on the left.
        </Empty>
      </div>
    );
  }
  return <TableHeat key={table.name} table={table} />;
}

function TableHeat({ table }: { table: TableSummary }) {
  const missing = table.status === "MISSING";
  const [sourceParam] = useParam("source", missing ? "simulator" : "live");
  const source: Source =
    sourceParam === "paused" || sourceParam === "simulator" || sourceParam === "log" ? sourceParam : "live";
  const [index] = useParam("index");
  const [metric] = useParam("metric", source === "simulator" ? "writes" : "operations");
  const [span] = useParam("span", "600");
  const [view, setView] = useParam("look", "map");
  const chosen = METRICS.find((each) => each === metric) ?? "operations";
  const indexName = table.indexes.find((each) => each.name === index)?.name ?? null;
  const setSource = (to: string) =>
    go({ params: { source: to === "live" ? null : to, since: null, until: null, ...ZOOM_OFF } });
  const setMetric = (to: string) => go({ params: { metric: to === "operations" ? null : to } });
  useCommands([
    { id: "heat-live", title: "Heat map: live traffic", group: "Heat map", run: () => setSource("live") },
    { id: "heat-simulator", title: "Heat map: simulator", group: "Heat map", run: () => setSource("simulator") },
    {
      id: "heat-look",
      title: view === "table" ? "Heat map: show as map" : "Heat map: show as table",
      keys: "v",
      group: "Heat map",
      run: () => setView(view === "table" ? "map" : "table"),
    },
    ...METRICS.map((each, at) => ({
      id: `heat-${each}`,
      title: `Heat map: ${METRIC_LABELS[each].name.toLowerCase()}`,
      keys: String(at + 1),
      group: "Heat map",
      run: () => setMetric(each),
    })),
  ]);
  const sources = [
    { value: "live", label: source === "paused" ? "Paused" : "Live", disabled: missing },
    { value: "simulator", label: "Simulator", disabled: !session.value?.designed },
    ...(session.value?.log ? [{ value: "log", label: "Access log", disabled: missing }] : []),
  ];
  const metrics = METRICS.filter((each) => source !== "simulator" || each === "reads" || each === "writes").map(
    (each) => ({ value: each, label: METRIC_LABELS[each].name }),
  );
  const shown = source === "simulator" && chosen !== "reads" ? "writes" : chosen;
  return (
    <div class="page heat-page">
      <div class="page-head">
        <h1>
          {" "}
          Heat map <span class="muted">· {table.name}</span>
        </h1>
        <div class="heat-controls">
          <Segmented
            label="Source"
            options={sources}
            value={source === "paused" ? "live" : source}
            onChange={setSource}
          />
          <Select
            label="Table or index"
            hideLabel
            value={indexName ?? ""}
            options={[
              { value: "", label: "Table" },
              ...table.indexes.map((each) => ({
                value: each.name,
                label: each.label && each.label !== each.name ? `${each.label} (${each.name})` : each.name,
              })),
            ]}
            onChange={(to) => go({ params: { index: to, ...ZOOM_OFF } })}
          />
          <Segmented label="Metric" options={metrics} value={shown} onChange={setMetric} />
          {source === "live" ? (
            <Select
              label="Time range"
              hideLabel
              value={span}
              options={SPANS}
              onChange={(to) => go({ params: { span: to === "600" ? null : to, ...ZOOM_OFF } })}
            />
          ) : null}
          <Segmented
            label="View"
            options={[
              { value: "map", label: "Map" },
              { value: "table", label: "Table" },
            ]}
            value={view}
            onChange={setView}
          />
        </div>
      </div>
      {source === "simulator" ? (
        <SimulatedMap table={table} index={indexName} metric={shown} asTable={view === "table"} />
      ) : (
        <LiveMap
          key={`${source === "log" ? "log" : "seen"} ${indexName ?? ""}`}
          table={table}
          index={indexName}
          metric={chosen}
          source={source}
          seconds={Number(span) || 600}
          asTable={view === "table"}
        />
      )}
    </div>
  );
}

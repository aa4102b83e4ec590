// Heat: which keys of a table or index are asked for, over time: as it is, or as the simulator says it will be.
import { useCommands } from "../../app/commands";
import { go, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import { Empty, Segmented, Select } from "../../parts";
import type { TableSummary } from "../../generated/api";
import type { Metric } from "./live";
import { LiveMap } from "./live_map";
import { SimulatedMap } from "./simulated_map";
import { METRIC_WORDS } from "./words";
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
        <Empty whole title="No table">
          Choose a table at the left.
        </Empty>
      </div>
    );
  }
  return <OfTable key={table.name} table={table} />;
}

function OfTable({ table }: { table: TableSummary }) {
  const missing = table.status === "MISSING";
  const [told] = useParam("source", missing ? "simulator" : "live");
  const source: Source = told === "paused" || told === "simulator" || told === "log" ? told : "live";
  const [index] = useParam("index");
  const [metric] = useParam("metric", source === "simulator" ? "writes" : "operations");
  const [span] = useParam("span", "600");
  const [look, setLook] = useParam("look", "map");
  const chosen = METRICS.find((each) => each === metric) ?? "operations";
  const named = table.indexes.find((each) => each.name === index)?.name ?? null;
  const setSource = (to: string) =>
    go({ params: { source: to === "live" ? null : to, since: null, until: null, ...ZOOM_OFF } });
  const setMetric = (to: string) => go({ params: { metric: to === "operations" ? null : to } });
  useCommands([
    { id: "heat-live", title: "Heat: live", group: "Heat", run: () => setSource("live") },
    { id: "heat-simulator", title: "Heat: simulator", group: "Heat", run: () => setSource("simulator") },
    {
      id: "heat-look",
      title: look === "table" ? "Heat: as a map" : "Heat: as a table",
      keys: "v",
      group: "Heat",
      run: () => setLook(look === "table" ? "map" : "table"),
    },
    ...METRICS.map((each, at) => ({
      id: `heat-${each}`,
      title: `Heat: ${METRIC_WORDS[each].name.toLowerCase()}`,
      keys: String(at + 1),
      group: "Heat",
      run: () => setMetric(each),
    })),
  ]);
  const sources = [
    { value: "live", label: source === "paused" ? "Paused" : "Live", disabled: missing },
    { value: "simulator", label: "Simulator", disabled: !session.value?.designed },
    ...(session.value?.log ? [{ value: "log", label: "Access log", disabled: missing }] : []),
  ];
  const metrics = METRICS.filter((each) => source !== "simulator" || each === "reads" || each === "writes").map(
    (each) => ({ value: each, label: METRIC_WORDS[each].name }),
  );
  const shown = source === "simulator" && chosen !== "reads" ? "writes" : chosen;
  return (
    <div class="page heat-page">
      <div class="page-head">
        <h1>
          Heat <span class="muted">· {table.name}</span>
        </h1>
        <div class="heat-controls">
          <Segmented
            label="Where the heat comes from"
            options={sources}
            value={source === "paused" ? "live" : source}
            onChange={setSource}
          />
          <Select
            label="Table or index"
            hideLabel
            value={named ?? ""}
            options={[
              { value: "", label: "The table" },
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
              label="How far back"
              hideLabel
              value={span}
              options={SPANS}
              onChange={(to) => go({ params: { span: to === "600" ? null : to, ...ZOOM_OFF } })}
            />
          ) : null}
          <Segmented
            label="Look"
            options={[
              { value: "map", label: "Map" },
              { value: "table", label: "Table" },
            ]}
            value={look}
            onChange={setLook}
          />
        </div>
      </div>
      {source === "simulator" ? (
        <SimulatedMap table={table} index={named} metric={shown} asTable={look === "table"} />
      ) : (
        <LiveMap
          key={`${source === "log" ? "log" : "seen"} ${named ?? ""}`}
          table={table}
          index={named}
          metric={chosen}
          source={source}
          seconds={Number(span) || 600}
          asTable={look === "table"}
        />
      )}
    </div>
  );
}

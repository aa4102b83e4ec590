// Capacity: consumed units per second of tables and indexes, and their limits.
import { useQuery } from "../../app/queries";
import { useParam } from "../../app/router";
import type { OperationsSummary, TargetLimit, TargetUse } from "../../generated/api";
import { Badge, Checkbox, Panel, Segmented, type Series, TimeChart } from "../../parts";
import { isOthers, TARGETS_SHOWN, targetName, windowText } from "./filters";
import { timeSeries } from "./time_series";
import { formatNumber, formatPercent } from "../../format";

const NEAR_SHARE = 0.1; // of a limit, from which on its line is drawn by default

const KINDS = {
  provisioned: "provisioned",
  maximum: "the configured maximum",
  warm: "warm throughput, which can grow",
} as const;

export function Capacity({ summary }: { summary: OperationsSummary }) {
  const [side, setSide] = useParam("units", "both");
  const [all, setAll] = useParam("places", "");
  const [drawn, setDrawn] = useParam("limit", "");
  const tables = [...new Set(summary.places.map((use) => use.table))].filter((name) => !isOthers(name)).sort();
  const limits = useQuery("GET /operations/limits", tables.length ? { tables: tables.join(",") } : null);
  if (!summary.places.length) return null;
  const shown = all ? summary.places : summary.places.slice(0, TARGETS_SHOWN);
  const limitOf = (use: TargetUse) =>
    limits.data?.places.find((each) => each.table === use.table && (each.index ?? null) === (use.index ?? null));
  return (
    <Panel
      title="Consumed and provisioned capacity"
      actions={
        <>
          <Checkbox label="Show all limits" checked={drawn === "all"} onChange={(on) => setDrawn(on ? "all" : "")} />
          <Segmented
            label="Units"
            options={[
              { value: "both", label: "Both" },
              { value: "reads", label: "Reads" },
              { value: "writes", label: "Writes" },
            ]}
            value={side}
            onChange={setSide}
          />
        </>
      }
    >
      <div class="operations-places">
        {shown.map((use) => (
          <TargetChart
            key={targetName(use.table, use.index)}
            summary={summary}
            use={use}
            limit={limitOf(use)}
            side={side}
            drawn={drawn === "all"}
          />
        ))}
      </div>
      {summary.places.length > TARGETS_SHOWN ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(all ? "" : "all")}>
            {all ? "Show only the busiest" : `Show all ${summary.places.length} tables and indexes`}
          </button>
        </p>
      ) : null}
    </Panel>
  );
}

interface TargetChartProps {
  summary: OperationsSummary;
  use: TargetUse;
  limit: TargetLimit | undefined;
  side: string;
  drawn: boolean;
}

function TargetChart({ summary, use, limit, side, drawn }: TargetChartProps) {
  const series = timeSeries(summary);
  const sides = [
    {
      name: "reads",
      label: "read units / s",
      values: use.read_units,
      peak: use.peak_reads,
      most: limit?.reads,
      colour: "var(--chip-0)",
      sum: use.reads,
    },
    {
      name: "writes",
      label: "write units / s",
      values: use.write_units,
      peak: use.peak_writes,
      most: limit?.writes,
      colour: "var(--chip-3)",
      sum: use.writes,
    },
  ].filter((each) => (side === "both" ? each.sum > 0 : each.name === side));
  const lines: Series[] = sides.flatMap((each) => {
    const line: Series = { label: each.label, values: series.seen(each.values), colour: each.colour, fill: true };
    const near = each.most !== undefined && (drawn || each.peak >= each.most * NEAR_SHARE);
    return near
      ? [
          line,
          {
            label: `${each.name} limit`,
            values: series.times.map(() => each.most ?? null),
            colour: "var(--bad)",
            dashed: true,
          },
        ]
      : [line];
  });
  const over = sides.some((each) => each.most !== undefined && each.most > 0 && each.peak > each.most);
  const sentences = sides.map(
    (each) =>
      `${each.name}: peak ${formatNumber(each.peak)}/s${each.most === undefined ? "" : ` of ${formatNumber(each.most)} (${formatPercent(each.peak / (each.most || 1))})`}, ${formatNumber(each.sum)} total`,
  );
  return (
    <div class="operations-place stack tight">
      <div class="row apart">
        <h3 class="cut" title={targetName(use.table, use.index)}>
          {isOthers(use.table) ? "All other tables and indexes" : targetName(use.table, use.index)}
        </h3>
        {over ? <Badge tone="bad">over limit</Badge> : null}
      </div>
      <TimeChart
        x={series.times}
        series={lines}
        height={130}
        format={formatNumber}
        describe={`${targetName(use.table, use.index)} over ${windowText(summary.window_s)}: ${sentences.join("; ")}.`}
      />
      <p class="small muted">
        {sentences.join("; ")}
        {limit ? `; the limit is ${KINDS[limit.kind]}` : ""}.
      </p>
    </div>
  );
}

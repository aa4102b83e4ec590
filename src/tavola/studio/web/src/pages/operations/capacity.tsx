// Capacity: what tables and indexes consume in a second, against what they are provisioned for.
import { useAsk } from "../../app/asking";
import { useParam } from "../../app/router";
import type { OperationsSummary, TargetLimit, TargetUse } from "../../generated/api";
import { Badge, Checkbox, num, Panel, Segmented, type Series, TimeChart } from "../../parts";
import { isOthers, PLACES, placeName, windowText } from "./asked";
import { steps } from "./steps";

const NEAR = 0.1; // of a limit: from there on its line is drawn without being asked for

const KINDS = { provisioned: "provisioned", maximum: "the maximum that was set", warm: "warm, and can grow" } as const;

export function Capacity({ told }: { told: OperationsSummary }) {
  const [side, setSide] = useParam("units", "both");
  const [all, setAll] = useParam("places", "");
  const [drawn, setDrawn] = useParam("limit", "");
  const tables = [...new Set(told.places.map((use) => use.table))].filter((name) => !isOthers(name)).sort();
  const limits = useAsk("GET /operations/limits", tables.length ? { tables: tables.join(",") } : null);
  if (!told.places.length) return null;
  const shown = all ? told.places : told.places.slice(0, PLACES);
  const limitOf = (use: TargetUse) =>
    limits.data?.places.find((each) => each.table === use.table && (each.index ?? null) === (use.index ?? null));
  return (
    <Panel
      title="Consumed against provisioned"
      actions={
        <>
          <Checkbox label="Draw every limit" checked={drawn === "all"} onChange={(on) => setDrawn(on ? "all" : "")} />
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
          <Place
            key={placeName(use.table, use.index)}
            told={told}
            use={use}
            limit={limitOf(use)}
            side={side}
            drawn={drawn === "all"}
          />
        ))}
      </div>
      {told.places.length > PLACES ? (
        <p class="operations-more">
          <button type="button" class="operations-link" onClick={() => setAll(all ? "" : "all")}>
            {all ? "Show the busiest alone" : `Show all ${told.places.length} tables and indexes`}
          </button>
        </p>
      ) : null}
    </Panel>
  );
}

function Place({
  told,
  use,
  limit,
  side,
  drawn,
}: {
  told: OperationsSummary;
  use: TargetUse;
  limit: TargetLimit | undefined;
  side: string;
  drawn: boolean;
}) {
  const at = steps(told);
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
    const line: Series = { label: each.label, values: at.seen(each.values), colour: each.colour, fill: true };
    const near = each.most !== undefined && (drawn || each.peak >= each.most * NEAR);
    return near
      ? [
          line,
          {
            label: `${each.name} limit`,
            values: at.times.map(() => each.most ?? null),
            colour: "var(--bad)",
            dashed: true,
          },
        ]
      : [line];
  });
  const over = sides.some((each) => each.most !== undefined && each.most > 0 && each.peak > each.most);
  const told_of = sides.map(
    (each) =>
      `${each.name}: at most ${num(each.peak)} in a second${each.most === undefined ? "" : ` of ${num(each.most)} (${num((each.peak / (each.most || 1)) * 100)} %)`}, ${num(each.sum)} in all`,
  );
  return (
    <div class="operations-place stack tight">
      <div class="row apart">
        <h3 class="cut" title={placeName(use.table, use.index)}>
          {isOthers(use.table) ? "All other tables and indexes" : placeName(use.table, use.index)}
        </h3>
        {over ? <Badge tone="bad">above its limit</Badge> : null}
      </div>
      <TimeChart
        x={at.times}
        series={lines}
        height={130}
        format={num}
        describe={`${placeName(use.table, use.index)} over ${windowText(told.window_s)}: ${told_of.join("; ")}.`}
      />
      <p class="small muted">
        {told_of.join("; ")}
        {limit ? `; the limit is ${KINDS[limit.kind]}` : ""}.
      </p>
    </div>
  );
}

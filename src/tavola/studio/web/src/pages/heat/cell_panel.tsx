// CellPanel: the keys and operations behind one cell of the map.
import { useAsk } from "../../app/asking";
import type { HotKeyRow } from "../../generated/api";
import { Drawer, num, ProblemNotice, Spinner, Stat, Stats } from "../../parts";
import { dataLink } from "./hottest";
import type { Metric } from "./live";
import { momentOf, percent } from "./words";

export interface OpenCell {
  readonly table: string;
  readonly index: string | null;
  readonly layout: string;
  readonly row: number;
  readonly label: string;
  readonly fromS: number;
  readonly toS: number;
  readonly metric: Metric;
}

function Keys({ rows, cell, caption }: { rows: readonly HotKeyRow[]; cell: OpenCell; caption: string }) {
  return (
    <table class="heat-table">
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Key</th>
          <th scope="col" class="num">
            Operations
          </th>
          <th scope="col" class="num">
            Reads
          </th>
          <th scope="col" class="num">
            Writes
          </th>
          <th scope="col" class="num">
            Throttled
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.label}>
            <th scope="row">
              {row.key ? <a href={dataLink(cell.table, cell.index, row.key)}>{row.label}</a> : row.label}
            </th>
            <td class="num">{num(row.operations)}</td>
            <td class="num">{num(row.reads)}</td>
            <td class="num">{num(row.writes)}</td>
            <td class={`num ${row.throttles ? "heat-refused" : ""}`}>{num(row.throttles)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function CellPanel({ cell, onClose }: { cell: OpenCell; onClose: () => void }) {
  const { data, problem, loading } = useAsk("GET /heat/cell", {
    table: cell.table,
    index: cell.index,
    layout: cell.layout,
    row: cell.row,
    from_s: cell.fromS,
    to_s: cell.toS,
    metric: cell.metric,
  });
  return (
    <Drawer title={cell.label} onClose={onClose}>
      <div class="stack">
        <p class="muted">
          {momentOf(data?.from_s ?? cell.fromS, 0)} to {momentOf(data?.to_s ?? cell.toS, 0)}
          {data && data.to_s - data.from_s > cell.toS - cell.fromS
            ? `: seconds so long ago are kept together, so this is more than the cell had`
            : ""}
        </p>
        {problem ? <ProblemNotice problem={problem} /> : null}
        {loading && !data ? <Spinner /> : null}
        {data ? (
          <>
            <Stats>
              <Stat label="Operations" value={num(data.operations)} />
              <Stat label="Read units" value={num(data.reads)} />
              <Stat label="Write units" value={num(data.writes)} />
              <Stat
                label="Throttled"
                value={num(data.throttles)}
                {...(data.throttles ? { tone: "bad" as const } : {})}
              />
            </Stats>
            {data.by_operation.length ? (
              <p>{data.by_operation.map((each) => `${each.operation} ${num(each.amount)}`).join(", ")}</p>
            ) : (
              <p class="muted">Nothing was asked of it then.</p>
            )}
            {data.keys.length ? (
              <Keys
                rows={data.keys}
                cell={cell}
                caption={data.keys.length === 1 ? "Partition key" : "Partition keys"}
              />
            ) : null}
            {data.more ? <p class="muted">and {num(data.more)} more</p> : null}
            {data.items.length ? <Keys rows={data.items} cell={cell} caption="Whole keys" /> : null}
            {data.keys.length === 1 && data.keys[0] && data.keys[0].share < 1 && data.kind === "range" ? (
              <p class="muted">{percent(data.keys[0].share)} of what this row had</p>
            ) : null}
          </>
        ) : null}
      </div>
    </Drawer>
  );
}

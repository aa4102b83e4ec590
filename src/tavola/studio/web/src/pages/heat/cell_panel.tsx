// CellPanel: the keys and operations of one cell of the map.
import { useQuery } from "../../app/queries";
import type { HotKeyRow } from "../../generated/api";
import { TableHead, numeric, Drawer, ProblemNotice, Spinner, Stat, Stats } from "../../parts";
import { dataLink } from "./hottest";
import type { Metric } from "./live_heat";
import { columnTimeText } from "./labels";
import { formatNumber, formatPercent } from "../../format";

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
      <TableHead columns={["Key", numeric("Operations"), numeric("Reads"), numeric("Writes"), numeric("Throttled")]} />
      <tbody>
        {rows.map((row) => (
          <tr key={row.label}>
            <th scope="row">
              {row.key ? <a href={dataLink(cell.table, cell.index, row.key)}>{row.label}</a> : row.label}
            </th>
            <td class="num">{formatNumber(row.operations)}</td>
            <td class="num">{formatNumber(row.reads)}</td>
            <td class="num">{formatNumber(row.writes)}</td>
            <td class={`num ${row.throttles ? "heat-throttled" : ""}`}>{formatNumber(row.throttles)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function CellPanel({ cell, onClose }: { cell: OpenCell; onClose: () => void }) {
  const { data, problem, loading } = useQuery("GET /heat/cell", {
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
          {columnTimeText(data?.from_s ?? cell.fromS, 0)} to {columnTimeText(data?.to_s ?? cell.toS, 0)}
          {data && data.to_s - data.from_s > cell.toS - cell.fromS
            ? `: older data is stored at a coarser resolution, so this covers more time than the cell`
            : ""}
        </p>
        <ProblemNotice problem={problem} />
        {loading && !data ? <Spinner /> : null}
        {data ? (
          <>
            <Stats>
              <Stat label="Operations" value={formatNumber(data.operations)} />
              <Stat label="Read units" value={formatNumber(data.reads)} />
              <Stat label="Write units" value={formatNumber(data.writes)} />
              <Stat label="Throttled" value={formatNumber(data.throttles)} tone={data.throttles ? "bad" : undefined} />
            </Stats>
            {data.by_operation.length ? (
              <p>{data.by_operation.map((each) => `${each.operation} ${formatNumber(each.amount)}`).join(", ")}</p>
            ) : (
              <p class="muted">No requests in this period.</p>
            )}
            {data.keys.length ? (
              <Keys
                rows={data.keys}
                cell={cell}
                caption={data.keys.length === 1 ? "Partition key" : "Partition keys"}
              />
            ) : null}
            {data.more ? <p class="muted">and {formatNumber(data.more)} more</p> : null}
            {data.items.length ? <Keys rows={data.items} cell={cell} caption="Primary keys" /> : null}
            {data.keys.length === 1 && data.keys[0] && data.keys[0].share < 1 && data.kind === "range" ? (
              <p class="muted">{formatPercent(data.keys[0].share)} of this row's traffic</p>
            ) : null}
          </>
        ) : null}
      </div>
    </Drawer>
  );
}

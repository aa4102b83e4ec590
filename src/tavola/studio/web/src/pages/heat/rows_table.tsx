// RowsTable: the hottest rows of the map as a table.

import { type Grid, rowSums } from "./grid";

import type { View } from "./view";
import { formatNumber, formatPercent } from "../../format";

import { numeric, TableHead } from "../../parts";

const ROWS_SHOWN = 50;

interface RowsTableProps {
  grid: Grid;
  view: View;
  amount: string;
  timeOf: (column: number) => string;
  rate: boolean;
}

export function RowsTable({ grid, view, amount, timeOf, rate }: RowsTableProps) {
  const rows = rowSums(grid, view.left, view.right).filter((each) => each.row >= view.top && each.row < view.bottom);
  const columns = Math.max(1, view.right - view.left);
  const total = (value: number) => formatNumber(Math.round((rate ? value / columns : value) * 100) / 100);
  return (
    <div class="heat-scroll" role="region" aria-label="Hottest rows" tabIndex={0}>
      <table class="heat-table">
        <caption class="hidden-text">Hottest rows of the map, hottest first</caption>
        <TableHead
          columns={[
            "Key",
            numeric(rate ? `${amount} per second` : amount),
            numeric("Share"),
            numeric("Peak"),
            "Peak time",
            numeric("Throttled"),
          ]}
        />
        <tbody>
          {rows.slice(0, ROWS_SHOWN).map((each) => (
            <tr key={each.row}>
              <th scope="row">{grid.rows[each.row]?.label}</th>
              <td class="num">{total(each.total)}</td>
              <td class="num">{formatPercent(each.share)}</td>
              <td class="num">{formatNumber(each.peak)}</td>
              <td>{timeOf(each.peakColumn)}</td>
              <td class={`num ${each.throttled ? "heat-throttled" : ""}`}>{total(each.throttled)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS_SHOWN ? (
        <p class="muted small">{formatNumber(rows.length - ROWS_SHOWN)} more rows are not listed.</p>
      ) : null}
      {rows.length ? null : <p class="muted">No requests in this period.</p>}
    </div>
  );
}

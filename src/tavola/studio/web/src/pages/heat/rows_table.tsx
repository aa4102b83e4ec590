// RowsTable: the map as a table: its hottest rows, for whoever reads rather than looks.
import { num } from "../../parts";
import { type Grid, rowSums } from "./grid";
import { percent } from "./words";
import type { View } from "./view";

const ROWS = 50;

export function RowsTable({
  grid,
  view,
  amount,
  timeOf,
  rate,
}: {
  grid: Grid;
  view: View;
  amount: string;
  timeOf: (column: number) => string;
  rate: boolean;
}) {
  const rows = rowSums(grid, view.left, view.right).filter((each) => each.row >= view.top && each.row < view.bottom);
  const columns = Math.max(1, view.right - view.left);
  const total = (value: number) => num(Math.round((rate ? value / columns : value) * 100) / 100);
  return (
    <div class="heat-scroll" role="region" aria-label="The hottest rows" tabIndex={0}>
      <table class="heat-table">
        <caption class="hidden-text">The hottest rows of the map, the hottest first</caption>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" class="num">
              {rate ? `${amount} a second` : amount}
            </th>
            <th scope="col" class="num">
              Share
            </th>
            <th scope="col" class="num">
              Busiest
            </th>
            <th scope="col">At</th>
            <th scope="col" class="num">
              Throttled
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map((each) => (
            <tr key={each.row}>
              <th scope="row">{grid.rows[each.row]?.label}</th>
              <td class="num">{total(each.total)}</td>
              <td class="num">{percent(each.share)}</td>
              <td class="num">{num(Math.round(each.peak * 100) / 100)}</td>
              <td>{timeOf(each.peakColumn)}</td>
              <td class={`num ${each.refused ? "heat-refused" : ""}`}>{total(each.refused)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > ROWS ? <p class="muted small">{num(rows.length - ROWS)} cooler rows are not listed.</p> : null}
      {rows.length ? null : <p class="muted">Nothing was asked in this time.</p>}
    </div>
  );
}

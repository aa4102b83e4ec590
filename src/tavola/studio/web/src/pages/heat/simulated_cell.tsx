// SimulatedCell: the details of one cell of a simulated map: a range of the hash space in a period.
import { TableHead, numeric, Drawer, Stat, Stats } from "../../parts";
import { amount, type Grid } from "./grid";
import { hashText, type SimulatedMap } from "./simulation";
import type { CellPlace } from "./view";
import { formatNumber, formatPercent } from "../../format";

interface SimulatedCellProps {
  map: SimulatedMap;
  grid: Grid;
  cell: CellPlace;
  timeOf: (column: number) => string;
  onClose: () => void;
}

export function SimulatedCell({ map, grid, cell, timeOf, onClose }: SimulatedCellProps) {
  const value = amount(grid, cell.row, cell.column);
  const lost = grid.throttled[cell.row * grid.columns + cell.column] ?? 0;
  const [from, to] = [cell.row / grid.rows.length, (cell.row + 1) / grid.rows.length];
  const keys = map.keys.filter((key) => key.position >= from && key.position < to);
  const splits = map.cuts.filter(
    ([atS, place]) => place >= from && place < to && atS <= (cell.column + 1) * grid.columnS,
  ).length;
  const tenth = (units: number) => formatNumber(units, 1);
  return (
    <Drawer title={`Simulated ${hashText(from, to)}`} onClose={onClose}>
      <div class="stack">
        <p class="muted">
          {timeOf(cell.column)} to {timeOf(cell.column + 1)}
        </p>
        <Stats>
          <Stat label={`${map.access === "read" ? "Read" : "Write"} units per second`} value={tenth(value)} />
          <Stat
            label="Throttled"
            value={lost ? `${tenth(lost)} (${formatPercent(lost / value)})` : "none"}
            tone={lost ? "bad" : undefined}
          />
          <Stat label="Splits so far" value={formatNumber(splits)} />
        </Stats>
        {keys.length ? (
          <table class="heat-table">
            <caption>Busy keys in this range, over the whole run</caption>
            <TableHead columns={["Key", numeric("Mean/s"), numeric("Peak/s"), numeric("Throttled")]} />
            <tbody>
              {keys.map((key) => (
                <tr key={key.name}>
                  <th scope="row">{key.name}</th>
                  <td class="num">{tenth(key.mean)}</td>
                  <td class="num">{tenth(key.peak)}</td>
                  <td class={`num ${key.throttled > 0.0005 ? "heat-throttled" : ""}`}>
                    {formatPercent(key.throttled)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p>No hot key here; the traffic is spread over many keys.</p>
        )}
        <p class="small muted">
          The simulator models ranges of the hash space and the busiest keys. It does not simulate single requests, so
          there is no request list.
        </p>
      </div>
    </Drawer>
  );
}

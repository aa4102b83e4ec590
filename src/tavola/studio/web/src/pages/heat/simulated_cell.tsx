// SimulatedCell: what the simulator knows of one cell of its map: a stretch of the hash in a stretch of time.
import { Drawer, num, Stat, Stats } from "../../parts";
import { amount, type Grid } from "./grid";
import { hashText, type SimulatedMap } from "./simulation";
import type { CellPlace } from "./view";
import { percent } from "./words";

export function SimulatedCell({
  map,
  grid,
  cell,
  timeOf,
  onClose,
}: {
  map: SimulatedMap;
  grid: Grid;
  cell: CellPlace;
  timeOf: (column: number) => string;
  onClose: () => void;
}) {
  const value = amount(grid, cell.row, cell.column);
  const lost = grid.refused[cell.row * grid.columns + cell.column] ?? 0;
  const [from, to] = [cell.row / grid.rows.length, (cell.row + 1) / grid.rows.length];
  const keys = map.keys.filter((key) => key.position >= from && key.position < to);
  const splits = map.cuts.filter(
    ([atS, place]) => place >= from && place < to && atS <= (cell.column + 1) * grid.columnS,
  ).length;
  const tenth = (units: number) => num(Math.round(units * 10) / 10);
  return (
    <Drawer title={`Simulated ${hashText(from, to)}`} onClose={onClose}>
      <div class="stack">
        <p class="muted">
          {timeOf(cell.column)} to {timeOf(cell.column + 1)}
        </p>
        <Stats>
          <Stat label={`${map.access === "read" ? "Read" : "Write"} units a second`} value={tenth(value)} />
          <Stat
            label="Throttled of them"
            value={lost ? `${tenth(lost)} (${percent(lost / value)})` : "none"}
            {...(lost ? { tone: "bad" as const } : {})}
          />
          <Stat label="Splits here by then" value={num(splits)} />
        </Stats>
        {keys.length ? (
          <table class="heat-table">
            <caption>Busy keys that lie here, over the whole run</caption>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col" class="num">
                  Mean/s
                </th>
                <th scope="col" class="num">
                  Peak/s
                </th>
                <th scope="col" class="num">
                  Throttled
                </th>
              </tr>
            </thead>
            <tbody>
              {keys.map((key) => (
                <tr key={key.name}>
                  <th scope="row">{key.name}</th>
                  <td class="num">{tenth(key.mean)}</td>
                  <td class="num">{tenth(key.peak)}</td>
                  <td class={`num ${key.throttled > 0.0005 ? "heat-refused" : ""}`}>{percent(key.throttled)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p>No single key stands out here: what is asked is spread over many keys.</p>
        )}
        <p class="small muted">
          The simulator reckons with stretches of the hash and with the busiest keys; it makes no other keys and no
          single requests, so there is no list of them.
        </p>
      </div>
    </Drawer>
  );
}

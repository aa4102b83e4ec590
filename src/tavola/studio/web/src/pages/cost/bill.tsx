// Bill: the monthly cost by pricing option, access pattern and line item, and possible savings.
import { useState } from "preact/hooks";
import { href } from "../../app/router";
import { Badge, DataTable, numeric, Panel, ShowAll, TableHead } from "../../parts";
import type { BillLine, CostDocument, PatternBill } from "./document";
import { set } from "./state";
import { addAmounts, formatMoney, formatNumber } from "../../format";

const OPEN_PLACES = 8; // tables and indexes up to which all line items are open at first
const SAVINGS_SHOWN = 10;
const ADDED_INDEX = /\/more-\d+$/;
const PATTERNS_SHOWN = 12;

const COLOURS: Readonly<Record<string, string>> = {
  reads: "var(--chip-0)",
  writes: "var(--chip-3)",
  transactions: "var(--chip-4)",
  "key changes": "var(--chip-7)",
  "replicated writes": "var(--chip-1)",
  storage: "var(--chip-5)",
  recovery: "var(--chip-2)",
  backups: "var(--chip-2)",
  streams: "var(--chip-6)",
};

/** The pricing options as cards, the cheapest marked. */
export function PricingOptions({ month }: { month: CostDocument }) {
  const known = month.ways.filter((each) => each.total !== null).map((each) => Number(each.total));
  const least = Math.min(...known);
  const most = Math.max(...known, Number(month.total));
  return (
    <Panel title="Pricing options" actions={<span class="small muted">assumes that capacity follows traffic</span>}>
      <ul class="cost-ways">
        {month.ways.map((way) => {
          const best = way.total !== null && Number(way.total) === least && most > 0;
          return (
            <li key={way.name} class={best ? "best" : ""} data-way={way.name}>
              <span class="cost-way-name">{way.name}</span>
              <strong class="num">{way.total === null ? "unknown" : formatMoney(way.total)}</strong>
              {way.total === null ? (
                <span class="small muted">{way.reason}</span>
              ) : (
                <span class="cost-bar" aria-hidden="true">
                  <span style={{ width: `${((Number(way.total) / (most || 1)) * 100).toFixed(2)}%` }} />
                </span>
              )}
              {best ? <Badge tone="good">cheapest</Badge> : null}
            </li>
          );
        })}
      </ul>
      <p class="cost-advice">{month.recommendation}</p>
      {month.break_even.length ? (
        <ul class="cost-list small">
          {month.break_even.map((each) => (
            <li key={each.name}>{each.sentence}</li>
          ))}
        </ul>
      ) : null}
    </Panel>
  );
}

interface RatedPattern {
  readonly bill: PatternBill;
  readonly id: string;
  readonly before: PatternBill | undefined;
}

interface ByPatternProps {
  month: CostDocument;
  declared: CostDocument;
  ids: readonly string[];
}

/** What each access pattern costs, with an editable rate. */
export function ByPattern({ month, declared, ids }: ByPatternProps) {
  const [all, setAll] = useState(false);
  const rows: RatedPattern[] = month.access_patterns.map((bill, at) => ({
    bill,
    id: ids[at] ?? "",
    before: declared.access_patterns[at],
  }));
  rows.sort((one, other) => Number(other.bill.amount) - Number(one.bill.amount));
  const shown = all ? rows : rows.slice(0, PATTERNS_SHOWN);
  const most = Number(rows[0]?.bill.amount ?? 0) || 1;
  return (
    <Panel title="Cost by access pattern" actions={<span class="small muted">requests only</span>} flush>
      <DataTable label="Cost by access pattern" class="cost-patterns">
        <thead>
          <tr>
            <th scope="col">Access pattern</th>
            <th scope="col">Per second</th>
            <th scope="col" class="num">
              Units per request
            </th>
            <td aria-hidden="true" />
            <th scope="col" class="num">
              Per month
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((each) => (
            <PatternRow key={each.id || each.bill.title} row={each} most={most} />
          ))}
        </tbody>
      </DataTable>
      <ShowAll total={rows.length} shown={shown.length} onShow={() => setAll(true)} />
    </Panel>
  );
}

function PatternRow({ row, most }: { row: RatedPattern; most: number }) {
  const { bill, id, before } = row;
  const table = id.split("/")[0] ?? "";
  const changed = before !== undefined && before.amount !== bill.amount;
  return (
    <tr data-pattern={id}>
      <th scope="row">
        {id ? <a href={href({ page: "patterns", table, params: { pattern: id } })}>{bill.title}</a> : bill.title}
        <span class="small muted cost-place">{bill.place}</span>
      </th>
      <td>
        {id ? (
          <input
            class="input cost-rate"
            type="number"
            min={0}
            step="any"
            value={bill.per_second === null ? "" : String(bill.per_second)}
            placeholder="none"
            aria-label={`${bill.title}, requests per second`}
            onChange={(event) => set({ [`r.${id}`]: event.currentTarget.value || null })}
          />
        ) : null}
      </td>
      <td class="num">{bill.units ? formatNumber(bill.units) : "–"}</td>
      <td class="cost-bar-cell" aria-hidden="true">
        <span
          class={`cost-fill ${bill.kind}`}
          style={{ width: `${((Number(bill.amount) / most) * 100).toFixed(2)}%` }}
        />
      </td>
      <td class="num">
        {formatMoney(bill.amount)}
        {changed ? <span class="small muted cost-place">was {formatMoney(before.amount)}</span> : null}
      </td>
    </tr>
  );
}

/** Every line item, by table and index. */
export function ByLine({ month }: { month: CostDocument }) {
  const places = new Map<string, BillLine[]>();
  for (const line of month.lines) {
    const place = line.table ? (line.index ? `${line.table} / ${line.index}` : line.table) : "All tables";
    places.set(place, [...(places.get(place) ?? []), line]);
  }
  const sum = (lines: readonly BillLine[]) => lines.reduce((all, each) => all + Math.max(0, Number(each.amount)), 0);
  const most = Math.max(...[...places.values()].map(sum), 0) || 1;
  const kinds = [...new Set(month.lines.map((each) => each.what))].filter((each) => COLOURS[each]);
  const [chosen, setChosen] = useState<Readonly<Record<string, boolean>>>({});
  const isOpen = (place: string) => chosen[place] ?? places.size <= OPEN_PLACES;
  return (
    <Panel title="Cost by table and index" flush>
      <ul class="cost-legend small" aria-hidden="true">
        {kinds.map((each) => (
          <li key={each}>
            <span class="cost-swatch" style={{ background: COLOURS[each] }} />
            {each}
          </li>
        ))}
      </ul>
      <DataTable label="Cost by line item" class="cost-lines">
        <TableHead columns={["Line item", numeric("Quantity"), "Unit", numeric("Per month")]} />
        {[...places.entries()].map(([place, lines]) => (
          <tbody key={place}>
            <tr class="cost-place-row">
              <th scope="rowgroup" colSpan={4}>
                <button
                  type="button"
                  class="cost-toggle"
                  aria-expanded={isOpen(place)}
                  onClick={() => setChosen({ ...chosen, [place]: !isOpen(place) })}
                >
                  <span aria-hidden="true">{isOpen(place) ? "▾" : "▸"}</span>
                  <span class="cost-place-name">{place}</span>
                  <span class="num">{formatMoney(lines.map((each) => each.amount).reduce(addAmounts))}</span>
                </button>
                <svg class="cost-stack" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
                  {stackBars(lines, most).map((each) => (
                    <rect
                      key={each.what}
                      x={each.from}
                      y="0"
                      width={each.width}
                      height="10"
                      style={{ fill: COLOURS[each.what] ?? "var(--muted)" }}
                    />
                  ))}
                </svg>
              </th>
            </tr>
            {(isOpen(place) ? lines : []).map((line) => (
              <tr key={`${line.what}${line.unit}`}>
                <td class="cost-what">{line.what}</td>
                <td class="num">{formatNumber(Number(line.quantity))}</td>
                <td class="muted">{line.unit}</td>
                <td class="num">{formatMoney(line.amount)}</td>
              </tr>
            ))}
          </tbody>
        ))}
        <tfoot>
          <tr>
            <th scope="row" colSpan={3}>
              {" "}
              Total{" "}
            </th>
            <td class="num">
              <strong>{formatMoney(month.total)}</strong>
            </td>
          </tr>
        </tfoot>
      </DataTable>
    </Panel>
  );
}

function stackBars(lines: readonly BillLine[], most: number): { what: string; from: number; width: number }[] {
  let from = 0;
  return lines
    .filter((each) => Number(each.amount) > 0)
    .map((each) => {
      const width = (Number(each.amount) / most) * 1000;
      const bar = { what: each.what, from, width };
      from += width;
      return bar;
    });
}

/** Changes that would lower the cost, each on its own. */
export function Savings({ month }: { month: CostDocument }) {
  const [all, setAll] = useState(false);
  // An index that the slider added is of course unused.
  const savings = month.savings.filter((each) => !(each.change === "unused index" && ADDED_INDEX.test(each.place)));
  const shown = all ? savings : savings.slice(0, SAVINGS_SHOWN);
  return (
    <Panel title="Possible savings">
      {savings.length ? (
        <ol class="cost-savings">
          {shown.map((each) => (
            <li key={each.change + each.place}>
              <strong class="num good">{formatMoney(each.amount)}</strong>
              <span>
                <span class="cost-saving">{each.change}</span> <code>{each.place}</code>
                <span class="small muted cost-place">{each.sentence}</span>
              </span>
            </li>
          ))}
        </ol>
      ) : (
        <p class="muted">No savings found.</p>
      )}
      <ShowAll total={savings.length} shown={shown.length} onShow={() => setAll(true)} />
    </Panel>
  );
}

// Bill: a month by way of paying, by access pattern, by line, and what would make it cheaper.
import { useState } from "preact/hooks";
import { href } from "../../app/router";
import { Badge, Button, num, Panel } from "../../parts";
import type { BillLine, CostDocument, PatternBill } from "./document";
import { cents, plus, set } from "./state";

const PLACES = 8; // whose lines are open at first
const SAVINGS = 10;
const ADDED = /\/more-\d+$/;
const BARS = 12; // patterns shown until somebody asks for all

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

/** The ways of paying as cards, the cheapest marked. */
export function Ways({ month }: { month: CostDocument }) {
  const known = month.ways.filter((each) => each.total !== null).map((each) => Number(each.total));
  const least = Math.min(...known);
  const most = Math.max(...known, Number(month.total));
  return (
    <Panel title="Ways of paying" actions={<span class="small muted">units follow the traffic</span>}>
      <ul class="cost-ways">
        {month.ways.map((way) => {
          const best = way.total !== null && Number(way.total) === least && most > 0;
          return (
            <li key={way.name} class={best ? "best" : ""} data-way={way.name}>
              <span class="cost-way-name">{way.name}</span>
              <strong class="num">{way.total === null ? "not known" : cents(way.total)}</strong>
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

interface Rated {
  readonly bill: PatternBill;
  readonly id: string;
  readonly before: PatternBill | undefined;
}

/** What each access pattern costs, with the rate that can be set. */
export function ByPattern({
  month,
  declared,
  ids,
}: {
  month: CostDocument;
  declared: CostDocument;
  ids: readonly string[];
}) {
  const [all, setAll] = useState(false);
  const rows: Rated[] = month.access_patterns.map((bill, at) => ({
    bill,
    id: ids[at] ?? "",
    before: declared.access_patterns[at],
  }));
  rows.sort((one, other) => Number(other.bill.amount) - Number(one.bill.amount));
  const shown = all ? rows : rows.slice(0, BARS);
  const most = Number(rows[0]?.bill.amount ?? 0) || 1;
  return (
    <Panel title="By access pattern" actions={<span class="small muted">requests alone</span>} flush>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="The bill by access pattern">
        <table class="plain cost-patterns">
          <thead>
            <tr>
              <th scope="col">access pattern</th>
              <th scope="col">a second</th>
              <th scope="col" class="num">
                units each
              </th>
              <td aria-hidden="true" />
              <th scope="col" class="num">
                a month
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((each) => (
              <PatternRow key={each.id || each.bill.title} row={each} most={most} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown.length ? (
        <div class="cost-more">
          <Button small onClick={() => setAll(true)}>
            Show all {rows.length}
          </Button>
        </div>
      ) : null}
    </Panel>
  );
}

function PatternRow({ row, most }: { row: Rated; most: number }) {
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
            aria-label={`${bill.title}, requests a second`}
            onChange={(event) => set({ [`r.${id}`]: event.currentTarget.value || null })}
          />
        ) : null}
      </td>
      <td class="num">{bill.units ? num(bill.units) : "–"}</td>
      <td class="cost-bar-cell" aria-hidden="true">
        <span
          class={`cost-fill ${bill.kind}`}
          style={{ width: `${((Number(bill.amount) / most) * 100).toFixed(2)}%` }}
        />
      </td>
      <td class="num">
        {cents(bill.amount)}
        {changed ? <span class="small muted cost-place">was {cents(before.amount)}</span> : null}
      </td>
    </tr>
  );
}

/** Every line of the bill, by table and index. */
export function ByLine({ month }: { month: CostDocument }) {
  const places = new Map<string, BillLine[]>();
  for (const line of month.lines) {
    const place = line.table ? (line.index ? `${line.table} / ${line.index}` : line.table) : "everything";
    places.set(place, [...(places.get(place) ?? []), line]);
  }
  const sum = (lines: readonly BillLine[]) => lines.reduce((all, each) => all + Math.max(0, Number(each.amount)), 0);
  const most = Math.max(...[...places.values()].map(sum), 0) || 1;
  const kinds = [...new Set(month.lines.map((each) => each.what))].filter((each) => COLOURS[each]);
  const [chosen, setChosen] = useState<Readonly<Record<string, boolean>>>({});
  const isOpen = (place: string) => chosen[place] ?? places.size <= PLACES;
  return (
    <Panel title="By table and index" flush>
      <ul class="cost-legend small" aria-hidden="true">
        {kinds.map((each) => (
          <li key={each}>
            <span class="cost-swatch" style={{ background: COLOURS[each] }} />
            {each}
          </li>
        ))}
      </ul>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="The bill by line">
        <table class="plain cost-lines">
          <thead>
            <tr>
              <th scope="col">line</th>
              <th scope="col" class="num">
                quantity
              </th>
              <th scope="col">unit</th>
              <th scope="col" class="num">
                a month
              </th>
            </tr>
          </thead>
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
                    <span class="num">{cents(lines.map((each) => each.amount).reduce(plus))}</span>
                  </button>
                  <svg class="cost-stack" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
                    {stacked(lines, most).map((each) => (
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
                  <td class="num">{num(Number(line.quantity))}</td>
                  <td class="muted">{line.unit}</td>
                  <td class="num">{cents(line.amount)}</td>
                </tr>
              ))}
            </tbody>
          ))}
          <tfoot>
            <tr>
              <th scope="row" colSpan={3}>
                total
              </th>
              <td class="num">
                <strong>{cents(month.total)}</strong>
              </td>
            </tr>
          </tfoot>
        </table>
      </div>
    </Panel>
  );
}

function stacked(lines: readonly BillLine[], most: number): { what: string; from: number; width: number }[] {
  let from = 0;
  return lines
    .filter((each) => Number(each.amount) > 0)
    .map((each) => {
      const width = (Number(each.amount) / most) * 1000;
      const told = { what: each.what, from, width };
      from += width;
      return told;
    });
}

/** What would make the month cheaper, each by itself. */
export function Savings({ month }: { month: CostDocument }) {
  const [all, setAll] = useState(false);
  // That an index which was added by a slider is asked by nobody is what the slider says.
  const found = month.savings.filter((each) => !(each.change === "unused index" && ADDED.test(each.place)));
  const shown = all ? found : found.slice(0, SAVINGS);
  return (
    <Panel title="What would change it, each by itself">
      {found.length ? (
        <ol class="cost-savings">
          {shown.map((each) => (
            <li key={each.change + each.place}>
              <strong class="num good">{cents(each.amount)}</strong>
              <span>
                <span class="cost-saving">{each.change}</span> <code>{each.place}</code>
                <span class="small muted cost-place">{each.sentence}</span>
              </span>
            </li>
          ))}
          {found.length > shown.length ? (
            <li>
              <span />
              <span>
                <Button small onClick={() => setAll(true)}>
                  Show all {found.length}
                </Button>
              </span>
            </li>
          ) : null}
        </ol>
      ) : (
        <p class="muted">Nothing that is looked for here saves a cent.</p>
      )}
    </Panel>
  );
}

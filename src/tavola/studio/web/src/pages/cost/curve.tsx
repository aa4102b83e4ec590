// Curve: the cost of each pricing option against the traffic, both axes logarithmic, with the break-even points.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { CostCurves, PricedCurves } from "../../generated/api";
import { Panel } from "../../parts";
import { formatAxisMoney, formatNumber } from "../../format";

const HEIGHT = 300;
const LEFT = 62;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 40;
const COLOURS = [
  "var(--chip-0)",
  "var(--chip-2)",
  "var(--chip-3)",
  "var(--chip-5)",
  "var(--chip-1)",
  "var(--chip-4)",
] as const;
const DASHES = ["", "6 3", "", "6 3", "2 3", "8 3 2 3"] as const;

function powersOfTen(low: number, high: number): number[] {
  const marks: number[] = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.floor(Math.log10(high) + 1e-9); power += 1)
    marks.push(10 ** power);
  return marks;
}

export function Curve({ priced }: { priced: PricedCurves }) {
  const curves = priced.curves;
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  useLayoutEffect(() => {
    const element = holder.current;
    if (!element) return;
    const measure = () => setWidth(Math.max(280, element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const own = curves.per_second || 1;
  const rates = curves.factors.map((each) => each * own);
  const totals = curves.lines.flatMap((line) => line.totals.map(Number)).filter((each) => each > 0);
  const low = Math.min(...totals);
  const high = Math.max(...totals);
  const first = rates[0] ?? 0.01;
  const last = rates.at(-1) ?? 100;
  const across = (rate: number) => LEFT + (Math.log(rate / first) / Math.log(last / first)) * (width - LEFT - RIGHT);
  const up = (total: number) =>
    HEIGHT - BOTTOM - (Math.log(Math.max(total, low) / low) / (Math.log(high / low) || 1)) * (HEIGHT - TOP - BOTTOM);
  const sentences = curves.meetings.map(
    (each) =>
      `Above about ${formatNumber(each.factor * own)} requests per second, “${each.cheaper_above}” is cheaper than “${each.cheaper_below}”`,
  );
  return (
    <Panel title="Break-even" actions={<span class="small muted">{priced.book} prices</span>}>
      <div class="stack">
        <div ref={holder} class="cost-curve">
          {totals.length ? (
            <svg
              width={width}
              height={HEIGHT}
              role="img"
              aria-label={`Monthly cost from ${formatNumber(first)} to ${formatNumber(last)} requests per second, one line for each pricing option. ${sentences.join(". ")}`}
            >
              {powersOfTen(low, high).map((each) => (
                <g key={each}>
                  <line x1={LEFT} x2={width - RIGHT} y1={up(each)} y2={up(each)} class="cost-grid" />
                  <text x={LEFT - 6} y={up(each) + 4} class="cost-tick end">
                    {formatAxisMoney(each)}
                  </text>
                </g>
              ))}
              {powersOfTen(first, last).map((each) => (
                <g key={each}>
                  <line x1={across(each)} x2={across(each)} y1={TOP} y2={HEIGHT - BOTTOM} class="cost-grid" />
                  <text x={across(each)} y={HEIGHT - BOTTOM + 16} class="cost-tick middle">
                    {formatNumber(each)}
                  </text>
                </g>
              ))}
              <text x={(LEFT + width) / 2} y={HEIGHT - 4} class="cost-tick middle">
                {" "}
                Requests per second{" "}
              </text>
              <line x1={across(own)} x2={across(own)} y1={TOP} y2={HEIGHT - BOTTOM} class="cost-own" />
              {curves.lines.map((line, at) => (
                <polyline
                  key={line.name}
                  points={line.totals
                    .map(
                      (total, place) => `${across(rates[place] ?? first).toFixed(1)},${up(Number(total)).toFixed(1)}`,
                    )
                    .join(" ")}
                  style={{ stroke: COLOURS[at % COLOURS.length], strokeDasharray: DASHES[at % DASHES.length] }}
                  class="cost-line"
                />
              ))}
              {curves.meetings.map((each) => {
                const base = curves.lines.find(
                  (line) => line.name === each.cheaper_below || line.name === each.cheaper_above,
                );
                const place = across(each.factor * own);
                return base ? (
                  <circle
                    key={each.cheaper_above + each.cheaper_below}
                    cx={place}
                    cy={up(interpolate(curves, base.totals.map(Number), each.factor))}
                    r="4"
                    class="cost-meeting"
                  />
                ) : null;
              })}
            </svg>
          ) : (
            <p class="muted">No access pattern declares a rate, so there is nothing to plot.</p>
          )}
        </div>
        <ul class="cost-legend small">
          {curves.lines.map((line, at) => (
            <li key={line.name}>
              <svg width="26" height="8" aria-hidden="true">
                <line
                  x1="0"
                  x2="26"
                  y1="4"
                  y2="4"
                  style={{ stroke: COLOURS[at % COLOURS.length], strokeDasharray: DASHES[at % DASHES.length] }}
                  class="cost-line"
                />
              </svg>
              {line.name}
            </li>
          ))}
          <li>
            <svg width="26" height="8" aria-hidden="true">
              <line x1="13" x2="13" y1="0" y2="8" class="cost-own" />
            </svg>
            This design: {formatNumber(curves.per_second)}/s
          </li>
        </ul>
        {sentences.length ? (
          <ul class="cost-list small">
            {sentences.map((each) => (
              <li key={each}>{each}.</li>
            ))}
          </ul>
        ) : totals.length ? (
          <p class="small muted">No option becomes cheaper than on-demand between 1/100 and 100 times this traffic.</p>
        ) : null}
      </div>
    </Panel>
  );
}

/** Return the cost at a factor between two points of a line. */
function interpolate(curves: CostCurves, totals: readonly number[], factor: number): number {
  const at = curves.factors.findIndex((each) => each >= factor);
  if (at <= 0) return totals[0] ?? 0;
  const [low, high] = [curves.factors[at - 1] ?? 1, curves.factors[at] ?? 1];
  const share = Math.log(factor / low) / Math.log(high / low);
  return Math.exp(Math.log(totals[at - 1] || 1e-6) * (1 - share) + Math.log(totals[at] || 1e-6) * share);
}

// Strip: the chart below the map over the same period: consumed units, limits, throttling and partition splits.

import type { View } from "./view";
import { formatNumber, formatCount } from "../../format";

export interface Line {
  readonly label: string;
  readonly values: readonly number[];
  readonly tone: "reads" | "writes" | "bad";
  readonly area?: boolean;
}

export interface Mark {
  /** In columns, with a fraction. */
  readonly at: number;
  readonly title: string;
  readonly kind: "heat" | "growth";
}

const WIDE = 1000;
const HIGH = 70;

interface StripProps {
  lines: readonly Line[];
  marks?: readonly Mark[];
  limits?: readonly { value: number; title: string }[];
  view: View;
  unit: string;
  label: string;
}

/** Lines over the columns in view; a limit is drawn only if it is near the values. */
export function Strip({ lines, marks = [], limits = [], view, unit, label }: StripProps) {
  const columns = Math.max(1, view.right - view.left);
  const shown = lines.map((line) => ({ ...line, values: line.values.slice(view.left, view.right) }));
  const peak = Math.max(...shown.flatMap((line) => line.values), 0);
  const near = limits.filter((limit) => limit.value <= peak * 4);
  const most = Math.max(peak, ...near.map((limit) => limit.value), 1e-9) * 1.08;
  const y = (value: number) => HIGH - (value / most) * HIGH;
  const path = (values: readonly number[]) =>
    values
      .map(
        (value, at) =>
          `${at ? "L" : "M"}${((at / columns) * WIDE).toFixed(1)},${y(value).toFixed(1)}h${(WIDE / columns).toFixed(1)}`,
      )
      .join("");
  return (
    <figure class="heat-strip">
      <div class="heat-strip-scale" aria-hidden="true">
        <span>{formatNumber(peak)}</span>
        <span>{unit}</span>
      </div>
      <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {shown.map((line) => (
          <g key={line.label} class={`tone-${line.tone}`}>
            {line.area ? <path class="area" d={`${path(line.values)}V${HIGH}H0Z`} /> : null}
            <path class="line" d={path(line.values)} />
          </g>
        ))}
        {near.map((limit) => (
          <line key={limit.title} class="limit" x1="0" x2={WIDE} y1={y(limit.value)} y2={y(limit.value)}>
            <title>{limit.title}</title>
          </line>
        ))}
        {marks
          .filter((mark) => mark.at >= view.left && mark.at <= view.right)
          .map((mark, at) => {
            const x = ((mark.at - view.left) / columns) * WIDE;
            return (
              <line key={at} class={`mark ${mark.kind}`} x1={x} x2={x} y1="0" y2={HIGH}>
                <title>{mark.title}</title>
              </line>
            );
          })}
      </svg>
      <figcaption class="heat-strip-legend small">
        {shown.map((line) => (
          <span key={line.label} class={`tone-${line.tone}`}>
            <i aria-hidden="true" />
            {line.label}, peak {formatNumber(Math.round(Math.max(...line.values, 0) * 100) / 100)}
          </span>
        ))}
        {limits.map((limit) => (
          <span key={limit.title} class="tone-limit">
            <i aria-hidden="true" />
            {limit.title}
          </span>
        ))}
        {marks.length ? (
          <span class="tone-mark">
            <i aria-hidden="true" />
            {formatCount(marks.length, "partition split")}
          </span>
        ) : null}
      </figcaption>
    </figure>
  );
}

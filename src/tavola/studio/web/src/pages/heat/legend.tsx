// Legend: the colour scale.
import { dark } from "../../app/theme";

import { gradient, scalePosition } from "./colours";
import { formatNumber } from "../../format";

interface LegendProps {
  most: number;
  least: number;
  unit: string;
  throttled: boolean;
}

export function Legend({ most, least, unit, throttled }: LegendProps) {
  const steps = [
    least,
    ...[1, 10, 100, 1_000, 10_000, 100_000].filter((each) => each > least * 3 && each < most / 2),
    most,
  ].filter((each, at, all) => all.indexOf(each) === at && each > 0);
  const shown = most > 0 ? steps : [];
  return (
    <div class="heat-legend small">
      <div
        class="heat-scale"
        role="img"
        aria-label={
          most > 0
            ? `Color scale from ${formatNumber(least)} to ${formatNumber(most)} ${unit}, logarithmic`
            : "No traffic"
        }
      >
        <div style={{ background: gradient(dark.value) }} />
        <span class="heat-steps" aria-hidden="true">
          {shown.map((each, at) => (
            <span
              key={each}
              class={at === shown.length - 1 ? "last" : ""}
              style={{ left: `${(scalePosition(each, most, least) * 100).toFixed(1)}%` }}
            >
              {formatNumber(each)}
            </span>
          ))}
        </span>
      </div>
      <span class="muted">{unit}</span>
      {throttled ? (
        <span class="heat-red">
          <i aria-hidden="true" /> throttled
        </span>
      ) : null}
    </div>
  );
}

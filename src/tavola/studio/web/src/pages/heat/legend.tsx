// Legend: what the colours stand for.
import { dark } from "../../app/theme";
import { num } from "../../parts";
import { gradient, place } from "./colours";

export function Legend({
  most,
  least,
  unit,
  throttled,
}: {
  most: number;
  least: number;
  unit: string;
  throttled: boolean;
}) {
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
          most > 0 ? `Colours from ${num(least)} to ${num(most)} ${unit}, by the logarithm` : "Nothing was asked"
        }
      >
        <div style={{ background: gradient(dark.value) }} />
        <span class="heat-steps" aria-hidden="true">
          {shown.map((each, at) => (
            <span
              key={each}
              class={at === shown.length - 1 ? "last" : ""}
              style={{ left: `${(place(each, most, least) * 100).toFixed(1)}%` }}
            >
              {num(Math.round(each * 100) / 100)}
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

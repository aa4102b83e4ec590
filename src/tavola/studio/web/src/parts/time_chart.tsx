// TimeChart: lines over time (or over any number), drawn by uPlot, which is loaded when the first chart is.
import type uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { dark } from "../app/theme";

export interface Series {
  label: string;
  /** One value for each x; null is a gap. */
  values: readonly (number | null)[];
  /** A CSS colour or `var(--…)`. */
  colour: string;
  dashed?: boolean;
  fill?: boolean;
}

function resolved(colour: string, of: Element): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  return name ? getComputedStyle(of).getPropertyValue(name).trim() : colour;
}

const two = (value: number) => String(value).padStart(2, "0");

/** Return a moment as an axis tells it, 24 hours a day: to the second, the minute or the day, as far apart as its marks are. */
function clock(epochS: number, apartS: number): string {
  const at = new Date(epochS * 1000);
  if (apartS >= 86_400) return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return apartS >= 60 ? minutes : `${minutes}:${two(at.getSeconds())}`;
}

/** Lines over x. `describe` is what a screen reader hears in place of the picture. */
export function TimeChart({
  x,
  series,
  describe,
  height = 180,
  time = true,
  format = (value: number) => String(Math.round(value * 100) / 100),
  logX = false,
}: {
  x: readonly number[];
  series: readonly Series[];
  describe: string;
  height?: number;
  /** x is seconds since 1970; else any number. */
  time?: boolean;
  format?: (value: number) => string;
  logX?: boolean;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [[...x], ...series.map((each) => [...each.values])] as uPlot.AlignedData;
  const shape = JSON.stringify([
    series.map(({ label, colour, dashed, fill }) => [label, colour, dashed, fill]),
    height,
    time,
    logX,
  ]);
  const theme = dark.value;
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    let gone = false;
    let watching: ResizeObserver | null = null;
    void import("./uplot").then(({ UPlot }) => {
      if (gone) return;
      const axis = resolved("var(--muted)", element);
      const grid = { stroke: resolved("var(--line)", element), width: 1 };
      const axes = [
        {
          stroke: axis,
          grid,
          ticks: grid,
          ...(time
            ? {
                values: (_: uPlot, all: number[], _axis: number, _space: number, apart: number) =>
                  all.map((each) => clock(each, apart)),
              }
            : {}),
        },
        { stroke: axis, grid, ticks: grid, size: 62, values: (_: uPlot, all: number[]) => all.map(format) },
      ];
      chart.current = new UPlot(
        {
          width: element.clientWidth || 300,
          height,
          scales: { x: { time, ...(logX ? { distr: 3 as const } : {}) } },
          axes,
          cursor: { y: false },
          series: [
            time
              ? { value: (_: uPlot, at: number | null) => (at === null || at === undefined ? "–" : clock(at, 1)) }
              : {},
            ...series.map((each) => {
              const stroke = resolved(each.colour, element);
              return {
                label: each.label,
                stroke,
                width: 1.5,
                points: { show: false },
                ...(each.dashed ? { dash: [6, 4] } : {}),
                ...(each.fill ? { fill: `color-mix(in srgb, ${stroke} 16%, transparent)` } : {}),
                value: (_: uPlot, value: number | null) =>
                  value === null || value === undefined ? "–" : format(value),
              };
            }),
          ],
        },
        data.current,
        element,
      );
      watching = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }));
      watching.observe(element);
    });
    return () => {
      gone = true;
      watching?.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [shape, theme]);
  useEffect(() => {
    chart.current?.setData(data.current);
  }, [x, series]);
  return (
    <figure class="chart">
      <div ref={holder} aria-hidden="true" style={{ minHeight: `${height}px` }} />
      <figcaption class="hidden-text">{describe}</figcaption>
    </figure>
  );
}

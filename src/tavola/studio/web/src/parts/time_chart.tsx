// TimeChart: lines over time, drawn by uPlot, which is loaded with the first chart.
import type uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";
import { dark } from "../app/theme";
import { formatAxisTime, formatNumber } from "../format";

export interface Series {
  label: string;
  /** One value for each x; null is a gap. */
  values: readonly (number | null)[];
  /** A CSS colour or `var(--…)`. */
  colour: string;
  dashed?: boolean;
  fill?: boolean;
}

function resolveColour(colour: string, of: Element): string {
  const name = /^var\((--[\w-]+)\)$/.exec(colour)?.[1];
  return name ? getComputedStyle(of).getPropertyValue(name).trim() : colour;
}

interface TimeChartProps {
  x: readonly number[];
  series: readonly Series[];
  describe: string;
  height?: number;
  format?: (value: number) => string;
}

/** Lines over x, in epoch seconds. `describe` is the text for screen readers. */
export function TimeChart({ x, series, describe, height = 180, format = formatNumber }: TimeChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [[...x], ...series.map((each) => [...each.values])] as uPlot.AlignedData;
  const shape = JSON.stringify([
    series.map(({ label, colour, dashed, fill }) => [label, colour, dashed, fill]),
    height,
  ]);
  const theme = dark.value;
  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    let unmounted = false;
    let observer: ResizeObserver | null = null;
    void import("./uplot").then(({ UPlot }) => {
      if (unmounted) return;
      const axis = resolveColour("var(--muted)", element);
      const grid = { stroke: resolveColour("var(--line)", element), width: 1 };
      const axes = [
        {
          stroke: axis,
          grid,
          ticks: grid,
          values: (_: uPlot, all: number[], _axis: number, _space: number, apart: number) =>
            all.map((each) => formatAxisTime(each, apart)),
        },
        {
          stroke: axis,
          grid,
          ticks: grid,
          size: 62,
          values: (_: uPlot, all: number[]) => all.map((each) => format(each)),
        },
      ];
      chart.current = new UPlot(
        {
          width: element.clientWidth || 300,
          height,
          scales: { x: { time: true } },
          axes,
          cursor: { y: false },
          series: [
            { value: (_: uPlot, at: number | null) => (at === null || at === undefined ? "–" : formatAxisTime(at, 1)) },
            ...series.map((each) => {
              const stroke = resolveColour(each.colour, element);
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
      observer = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }));
      observer.observe(element);
    });
    return () => {
      unmounted = true;
      observer?.disconnect();
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

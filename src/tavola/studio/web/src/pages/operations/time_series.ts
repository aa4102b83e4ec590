// TimeSeries: the counts of a window, prepared for a chart.
import type { OperationsSummary } from "../../generated/api";

export interface TimeSeries {
  readonly times: number[];
  /** Counts per second. */
  readonly rate: (values: readonly number[]) => (number | null)[];
  readonly seen: <T>(values: readonly T[]) => (T | null)[];
}

/** Return the series of a window. The current second is left out, since it is incomplete; time before the start is a gap. */
export function timeSeries(summary: OperationsSummary): TimeSeries {
  const length = summary.step_s === 1 ? summary.series.times.length - 1 : summary.series.times.length;
  const times = summary.series.times.slice(0, length) as number[];
  const isSeen = (time: number) => time + summary.step_s > summary.since_s;
  // The current step, and the one in which observation started, are incomplete.
  const seconds = (time: number) =>
    Math.max(1, Math.min(time + summary.step_s, summary.now_s) - Math.max(time, summary.since_s));
  return {
    times,
    rate: (values) => times.map((time, at) => (isSeen(time) ? (values[at] ?? 0) / seconds(time) : null)),
    seen: (values) => times.map((time, at) => (isSeen(time) ? (values[at] ?? null) : null)),
  };
}

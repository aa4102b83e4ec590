// Steps: a window's counts as a chart draws them.
import type { OperationsSummary } from "../../generated/api";

export interface Steps {
  readonly times: number[];
  /** Counts as so many in a second. */
  readonly rate: (values: readonly number[]) => (number | null)[];
  readonly seen: <T>(values: readonly T[]) => (T | null)[];
}

/** Return a window's steps: the running second is left out, since it is not over, and what nobody saw is a gap. */
export function steps(told: OperationsSummary): Steps {
  const length = told.step_s === 1 ? told.series.times.length - 1 : told.series.times.length;
  const times = told.series.times.slice(0, length) as number[];
  const isSeen = (time: number) => time + told.step_s > told.since_s;
  // Of the step that runs, and of that in which the watch began, a part was seen.
  const seconds = (time: number) =>
    Math.max(1, Math.min(time + told.step_s, told.now_s) - Math.max(time, told.since_s));
  return {
    times,
    rate: (values) => times.map((time, at) => (isSeen(time) ? (values[at] ?? 0) / seconds(time) : null)),
    seen: (values) => times.map((time, at) => (isSeen(time) ? (values[at] ?? null) : null)),
  };
}

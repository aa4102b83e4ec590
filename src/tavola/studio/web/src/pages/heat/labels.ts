// Labels: the names of metrics and the times of the heat map.

import type { Metric } from "./live_heat";
import { formatDay, formatTime } from "../../format";

export const METRIC_LABELS: Readonly<Record<Metric, { readonly name: string; readonly amount: string }>> = {
  operations: { name: "Operations", amount: "operations" },
  reads: { name: "Reads", amount: "read units" },
  writes: { name: "Writes", amount: "write units" },
  throttles: { name: "Throttled", amount: "throttled requests" },
};

/** Return the time of a column, with the day if the map covers more than one. */
export function columnTimeText(second: number, spanS: number): string {
  const ms = second * 1000;
  return spanS > 86_400 ? `${formatDay(ms)} ${formatTime(ms)}` : formatTime(ms);
}

/** Return a time of a simulated day. */
export function simulatedTimeText(second: number, beginsAtS: number): string {
  const whole = Math.round(beginsAtS + second);
  const day = Math.floor(whole / 86_400);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = `${two(Math.floor(whole / 3600) % 24)}:${two(Math.floor(whole / 60) % 60)}`;
  return day > 0 ? `day ${day + 1}, ${clock}` : clock;
}

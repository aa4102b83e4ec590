// Words: metrics, shares and times as the heat page says them.
import { clockText, dayText } from "../../app/times";
import type { Metric } from "./live";

export const METRIC_WORDS: Readonly<Record<Metric, { readonly name: string; readonly amount: string }>> = {
  operations: { name: "Operations", amount: "operations" },
  reads: { name: "Reads", amount: "read units" },
  writes: { name: "Writes", amount: "write units" },
  throttles: { name: "Throttles", amount: "throttled requests" },
};

export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.05) return "<0.1 %";
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** Return a moment of the map: the time of day, with the day where the map goes over more than one. */
export function momentOf(second: number, spanS: number): string {
  const ms = second * 1000;
  return spanS > 86_400 ? `${dayText(ms)} ${clockText(ms)}` : clockText(ms);
}

/** Return a moment of a simulated day. */
export function simulatedMoment(second: number, beginsAtS: number): string {
  const whole = Math.round(beginsAtS + second);
  const day = Math.floor(whole / 86_400);
  const two = (value: number) => String(value).padStart(2, "0");
  const clock = `${two(Math.floor(whole / 3600) % 24)}:${two(Math.floor(whole / 60) % 60)}`;
  return day > 0 ? `day ${day + 1}, ${clock}` : clock;
}

/** Return a length of time. */
export function lengthText(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds % 60 === 0) return `${seconds / 60} min`;
  return `${seconds} s`;
}

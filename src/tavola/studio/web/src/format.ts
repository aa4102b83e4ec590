// Format: how every page writes numbers, sizes, money, durations and times. Nothing else turns a number into text.

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const COMPACT_DOLLARS = new Intl.NumberFormat("en", {
  style: "currency",
  currency: "USD",
  notation: "compact",
  maximumSignificantDigits: 3,
});

/** Return a number with grouped digits: 12,345.67. `digits` rounds it first. Not for DynamoDB's numbers, which stay text. */
export function formatNumber(value: number, digits?: number): string {
  if (!Number.isFinite(value)) return "–";
  const rounded = digits === undefined ? value : Math.round(value * 10 ** digits) / 10 ** digits;
  return Math.abs(rounded) > 0 && Math.abs(rounded) < 1 ? SMALL.format(rounded) : GROUPED.format(rounded);
}

/** Return a size; 1 KB is 1,024 bytes, as DynamoDB counts. */
export function formatBytes(value: number): string {
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  let size = value;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${formatNumber(size)} ${units[unit]}`;
}

/** Return a number with its noun: 1 item, 2 items. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}

/** Return a share of 0 to 1 as a percentage. */
export function formatPercent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.05) return "<0.1%";
  if (value >= 99.5 && value < 100) return ">99%";
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)}%`;
}

function threeDigits(value: number): string {
  return formatNumber(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

/** Return a latency that is given in milliseconds. */
export function formatLatency(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 1000) return `${threeDigits(ms / 1000)} s`;
  return ms >= 1 || ms === 0 ? `${threeDigits(ms)} ms` : `${threeDigits(ms * 1000)} µs`;
}

/** Return a length of time in its largest whole unit: 90 s, 5 min, 2 h. */
export function formatSeconds(seconds: number): string {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`;
  if (seconds % 60 === 0) return `${seconds / 60} min`;
  return `${seconds} s`;
}

// Money. The server sends amounts as decimal text with ten digits; sums are exact, in units of 10⁻¹⁰ dollars.

const AMOUNT_DIGITS = 10;
const CENT = 10n ** BigInt(AMOUNT_DIGITS - 2);

function parseAmount(text: string): bigint {
  const plain = /e/i.test(text) ? Number(text).toFixed(AMOUNT_DIGITS) : text; // Python writes tiny amounts as 0E-10
  const [whole = "0", fraction = ""] = plain.replace(/^[-+]/, "").split(".");
  const amount = BigInt((whole || "0") + fraction.slice(0, AMOUNT_DIGITS).padEnd(AMOUNT_DIGITS, "0"));
  return plain.startsWith("-") ? -amount : amount;
}

function writeAmount(amount: bigint): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(AMOUNT_DIGITS + 1, "0");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -AMOUNT_DIGITS)}.${digits.slice(-AMOUNT_DIGITS)}`;
}

/** Return the exact sum of two amounts. */
export function addAmounts(one: string, other: string): string {
  return writeAmount(parseAmount(one) + parseAmount(other));
}

/** Return the exact difference of two amounts. */
export function subtractAmounts(one: string, other: string): string {
  return writeAmount(parseAmount(one) - parseAmount(other));
}

/** Return dollars to the cent, halves to even as on the command line; what rounds to nothing and is not is "< $0.01". */
export function formatMoney(text: string): string {
  const amount = parseAmount(text);
  const exact = amount < 0n ? -amount : amount;
  const rest = exact % CENT;
  let cents = exact / CENT;
  if (rest * 2n > CENT || (rest * 2n === CENT && cents % 2n === 1n)) cents += 1n;
  if (cents === 0n && exact > 0n) return amount < 0n ? "> −$0.01" : "< $0.01";
  const digits = cents.toString().padStart(3, "0");
  return `${amount < 0n ? "−" : ""}$${digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",")}.${digits.slice(-2)}`;
}

/** Return a range of amounts, or one amount where both ends read the same. */
export function formatMoneyRange(low: string, high: string): string {
  const [from, to] = [formatMoney(low), formatMoney(high)];
  return from === to ? from : `${from}–${to}`;
}

/** Return dollars in few characters, for the marks of an axis: $1.2K. */
export function formatAxisMoney(value: number): string {
  return COMPACT_DOLLARS.format(value);
}

// Times. Pages show this browser's time zone; in the URL and to the server times are ISO 8601 in UTC.

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const UNIT_MS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, min: 6e4, h: 3.6e6, d: 8.64e7 };
const DAY_MS = 8.64e7;

/** Return the time of day: 14:02:31. */
export function formatTime(ms: number): string {
  return CLOCK.format(ms);
}

/** Return the day: 16 Nov 2026. */
export function formatDay(ms: number): string {
  return DAY.format(ms);
}

/** Return a point in time: the time of day, after the day unless that is today. */
export function formatDateTime(ms: number, nowMs: number = Date.now()): string {
  const day = formatDay(ms);
  return day === formatDay(nowMs) ? formatTime(ms) : `${day}, ${formatTime(ms)}`;
}

/** Return a point in time to the millisecond, where two in one second must be distinguished. */
export function formatExactDateTime(ms: number, nowMs: number = Date.now()): string {
  return `${formatDateTime(ms, nowMs)}.${String(Math.floor(ms) % 1000).padStart(3, "0")}`;
}

/** Return the label of a time axis whose marks are `stepS` apart: to the second, the minute or the day. */
export function formatAxisTime(epochS: number, stepS: number): string {
  if (stepS >= 86_400) return formatDay(epochS * 1000);
  const time = formatTime(epochS * 1000);
  return stepS >= 60 ? time.slice(0, 5) : time;
}

/** Return how long ago a time was. */
export function formatAgo(ms: number, nowMs: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - ms) / 1000));
  if (seconds < 60) return `${formatCount(seconds, "second")} ago`;
  if (seconds < 5400) return `${formatCount(Math.round(seconds / 60), "minute")} ago`;
  if (seconds < 129_600) return `${formatCount(Math.round(seconds / 3600), "hour")} ago`;
  return `${formatCount(Math.round(seconds / 86_400), "day")} ago`;
}

export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Return a time that the server or the URL wrote, in ms; 0 if it is not one. Without a zone it is UTC; a number is epoch seconds. */
export function parseIso(text: string | null): number {
  if (!text) return 0;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1000);
  const zoned = /^\d{4}-\d{2}-\d{2}[T ]/.test(text) && !/(Z|[+-]\d{2}:?\d{2})$/i.test(text) ? `${text}Z` : text;
  const ms = Date.parse(zoned.replace(" ", "T"));
  return Number.isNaN(ms) ? 0 : ms;
}

/** Return a time as a person types it, in ms: "10m" (ago), a time of day, a date and time, or ISO 8601; null if it is none of these. */
export function parseTypedTime(typed: string, nowMs: number = Date.now()): number | null {
  const text = typed.trim();
  const ago = /^-?\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)(?:\s+ago)?$/.exec(text);
  if (ago) return nowMs - Number(ago[1]) * (UNIT_MS[ago[2] ?? "s"] ?? 1e3);
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/.exec(text);
  if (time && Number(time[1]) < 24 && Number(time[2]) < 60 && Number(time[3] ?? 0) < 60) {
    const day = new Date(nowMs);
    day.setHours(Number(time[1]), Number(time[2]), 0, 0);
    const ms = day.getTime() + Number(time[3] ?? 0) * 1000;
    return ms > nowMs ? ms - DAY_MS : ms; // 23:50 typed after midnight is yesterday's
  }
  if (!/^\d{4}-\d{2}-\d{2}/.test(text)) return null;
  const ms = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(ms) ? null : ms;
}

/** Return how many ms the server's clock is ahead, by a response that has just arrived: "10m ago" is by the server's clock. */
export function serverClockAhead(response: { readonly now: string } | null): number {
  return response ? parseIso(response.now) - Date.now() : 0;
}

// Sentences. The server sends some clauses without a capital letter and a period.

const STARTS = new Set(
  "a all an and as at each every for in invalid it its key keys names neither no nothing of one some the there two unknown what where".split(
    " ",
  ),
);

/** Return a clause as a sentence. A clause that begins with a name keeps its first letter. */
export function toSentence(text: string, imperative = false): string {
  const first = /^[a-z]+(?=\s)/.exec(text)?.[0] ?? "";
  const startsWithName = imperative ? !first : !STARTS.has(first);
  return `${startsWithName ? text : text.charAt(0).toUpperCase() + text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

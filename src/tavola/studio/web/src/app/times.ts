// Times: moments as people write and read them; in the URL and to the server they are ISO 8601 in UTC.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const UNITS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, min: 6e4, h: 3.6e6, d: 8.64e7 };

/** Return the time of day, in this browser's zone. */
export function clockText(ms: number): string {
  return CLOCK.format(ms);
}

export function dayText(ms: number): string {
  return DAY.format(ms);
}

/** Return a moment: the time alone where it is today, with the day before it otherwise. */
export function momentText(ms: number, nowMs: number = Date.now()): string {
  const day = dayText(ms);
  return day === dayText(nowMs) ? clockText(ms) : `${day}, ${clockText(ms)}`;
}

/** Return a moment to the millisecond, where the second alone would not tell it from another. */
export function exactText(ms: number, nowMs: number = Date.now()): string {
  return `${momentText(ms, nowMs)}.${String(Math.floor(ms) % 1000).padStart(3, "0")}`;
}

/** Return a moment as the server takes it. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** Return a moment that was read as text, in ms; 0 where it is none. As the server does: without a zone it is UTC, a number is epoch seconds. */
export function msOf(text: string | null): number {
  if (!text) return 0;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.round(Number(text) * 1000);
  const zoned = /^\d{4}-\d{2}-\d{2}[T ]/.test(text) && !/(Z|[+-]\d{2}:?\d{2})$/i.test(text) ? `${text}Z` : text;
  const found = Date.parse(zoned.replace(" ", "T"));
  return Number.isNaN(found) ? 0 : found;
}

/** Return how long ago a moment was, in words. */
export function agoText(ms: number, nowMs: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - ms) / 1000));
  const told = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"} ago`;
  if (seconds < 60) return told(seconds, "second");
  if (seconds < 5400) return told(Math.round(seconds / 60), "minute");
  if (seconds < 129_600) return told(Math.round(seconds / 3600), "hour");
  return told(Math.round(seconds / 86_400), "day");
}

/** Return the moment that somebody typed: "10m" ago, a time of today, a day and a time, or ISO 8601; null: none of these. */
export function parseMoment(typed: string, nowMs: number = Date.now()): number | null {
  const text = typed.trim();
  const ago = /^-?\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d)(?:\s+ago)?$/.exec(text);
  if (ago) return nowMs - Number(ago[1]) * (UNITS[ago[2] ?? "s"] ?? 1e3);
  const today = /^(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?$/.exec(text);
  if (today && Number(today[1]) < 24 && Number(today[2]) < 60 && Number(today[3] ?? 0) < 60) {
    const day = new Date(nowMs);
    day.setHours(Number(today[1]), Number(today[2]), 0, 0);
    const found = day.getTime() + Number(today[3] ?? 0) * 1000;
    return found > nowMs ? found - 8.64e7 : found; // 23:50 typed after midnight is yesterday's
  }
  if (!/^\d{4}-\d{2}-\d{2}/.test(text)) return null;
  const found = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(found) ? null : found;
}

/** Return how far the server's clock is ahead of this one, in ms, by an answer that has just come; "10m ago" is by its clock. */
export function serverAhead(answer: { readonly now: string } | null): number {
  return answer ? msOf(answer.now) - Date.now() : 0;
}

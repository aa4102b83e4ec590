// Figures: numbers, bars and the frames they stand in.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

const GROUPED = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const SMALL = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** Return a number of ours (not of DynamoDB's) for people: 12,345.67. */
export function num(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return Math.abs(value) > 0 && Math.abs(value) < 1 ? SMALL.format(value) : GROUPED.format(value);
}

/** Return bytes for people; KB is 1,024, as DynamoDB counts. */
export function bytes(value: number): string {
  if (value < 1024) return `${num(value)} B`;
  if (value < 1024 ** 2) return `${num(value / 1024)} KB`;
  if (value < 1024 ** 3) return `${num(value / 1024 ** 2)} MB`;
  return `${num(value / 1024 ** 3)} GB`;
}

/** Return a number with its word: 1 item, 2 items. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${num(count)} ${count === 1 ? one : many}`;
}

/** Return dollars for people; the server sends them as text, so no cent is lost. */
export function money(text: string): string {
  const sign = text.startsWith("-") ? "−" : "";
  const [whole = "0", rest = ""] = text.replace(/^[-+]/, "").split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${sign}$${grouped}${rest ? `.${rest}` : ""}`;
}

const STEP_OF_AMOUNTS = 10_000_000_000n;

/** Return an amount, which the server sends with ten digits, to the cent; halves go to the even one, as on the command line. */
export function cents(text: string): string {
  const plain = /e/i.test(text) ? Number(text).toFixed(10) : text; // Python writes what is next to nothing as 0E-10
  const negative = plain.startsWith("-");
  const [whole = "0", rest = ""] = plain.replace(/^[-+]/, "").split(".");
  const exact = BigInt(whole || "0") * STEP_OF_AMOUNTS + BigInt(rest.slice(0, 10).padEnd(10, "0"));
  const unit = STEP_OF_AMOUNTS / 100n;
  let count = exact / unit;
  const left = exact % unit;
  if (left * 2n > unit || (left * 2n === unit && count % 2n === 1n)) count += 1n;
  const told = count.toString().padStart(3, "0");
  const sign = negative && count > 0n ? "−" : "";
  return `${sign}$${told.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ",")}.${told.slice(-2)}`;
}

/** Return milliseconds for people. */
export function ms(value: number): string {
  if (value >= 1000) return `${num(value / 1000)} s`;
  return value >= 1 ? `${num(value)} ms` : `${num(value * 1000)} µs`;
}

/** Return how long ago a moment was. */
export function ago(epochMs: number, nowMs: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((nowMs - epochMs) / 1000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}

const COLOURS = 8;
const places = signal<ReadonlyMap<string, number>>(new Map());

/** Hand out the colours: each name has that of its place, so that neighbours differ while there are colours for all. */
export function orderColours(next: ReadonlyMap<string, number>): void {
  const before = places.peek();
  if (next.size === before.size && [...next].every(([name, place]) => before.get(name) === place)) return;
  places.value = next;
}

/** Return the colour of a name: by its place in the design, else by its letters; the same one everywhere. */
export function colourOf(name: string): string {
  const place = places.value.get(name);
  if (place !== undefined) return `var(--chip-${place % COLOURS})`;
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return `var(--chip-${hash % COLOURS})`;
}

/** An entity's name with its colour; dashed where it is only a guess. */
export function Chip({ name, guess, title }: { name: string; guess?: boolean; title?: string }) {
  return (
    <span
      class={`chip ${guess ? "guess" : ""}`}
      style={{ "--chip": colourOf(name) }}
      title={title ?? (guess ? `${name}: a guess by the key` : undefined)}
    >
      {name}
    </span>
  );
}

/** A word that says how something stands. */
export function Badge({ tone, children }: { tone?: "good" | "warn" | "bad"; children: ComponentChildren }) {
  return <span class={`chip plain ${tone ?? ""}`}>{children}</span>;
}

export function Stat({
  label,
  value,
  beside,
  tone,
}: {
  label: string;
  value: ComponentChildren;
  beside?: ComponentChildren;
  tone?: "good" | "warn" | "bad";
}) {
  return (
    <div class="stat">
      <span class="label">{label}</span>
      <span class={`number ${tone ?? ""}`}>{value}</span>
      {beside ? <span class="beside">{beside}</span> : null}
    </div>
  );
}

export function Stats({ children }: { children: ComponentChildren }) {
  return <div class="stats">{children}</div>;
}

export interface Bar {
  label: ComponentChildren;
  value: number;
  shown: string;
  colour?: string;
  id?: string;
}

/** Bars with their numbers: a table, so that it can be read aloud. */
export function Bars({ bars, caption }: { bars: readonly Bar[]; caption: string }) {
  const most = Math.max(...bars.map((each) => each.value), 0) || 1;
  return (
    <table class="bars">
      <caption class="hidden-text">{caption}</caption>
      <tbody>
        {bars.map((each, at) => (
          <tr key={each.id ?? at}>
            <th scope="row">{each.label}</th>
            <td class="bar" aria-hidden="true">
              <div
                style={{
                  width: `${((each.value / most) * 100).toFixed(2)}%`,
                  ...(each.colour ? { background: each.colour } : {}),
                }}
              />
            </td>
            <td class="num">{each.shown}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Panel({
  title,
  actions,
  children,
  flush,
  id,
}: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  flush?: boolean;
  id?: string;
}) {
  return (
    <section class="panel" id={id}>
      {title || actions ? (
        <header>
          <h2>{title}</h2>
          {actions ? <div class="row">{actions}</div> : null}
        </header>
      ) : null}
      <div class={`body ${flush ? "flush" : ""}`}>{children}</div>
    </section>
  );
}

/** A narrow column beside a wide one; on a phone, one above the other. */
export function Split({ side, children }: { side: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="split">
      <div class="stack">{side}</div>
      <div class="stack">{children}</div>
    </div>
  );
}

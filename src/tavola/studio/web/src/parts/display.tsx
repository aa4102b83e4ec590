// Display: chips, figures, tables and the panels that hold them.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { Button } from "./controls";

const COLOURS = 8;
const colourNumbers = signal<ReadonlyMap<string, number>>(new Map());

/** Set the colour number of each entity, so that neighbours differ while there are colours for all. */
export function setColourNumbers(next: ReadonlyMap<string, number>): void {
  const before = colourNumbers.peek();
  if (next.size === before.size && [...next].every(([name, number]) => before.get(name) === number)) return;
  colourNumbers.value = next;
}

/** Return the colour of an entity, the same one everywhere: by its position in the design, else by a hash of its name. */
export function colourOf(name: string): string {
  const number = colourNumbers.value.get(name);
  if (number !== undefined) return `var(--chip-${number % COLOURS})`;
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return `var(--chip-${hash % COLOURS})`;
}

/** An entity's name in its colour; dashed if the entity is inferred. */
export function Chip({ name, guess, title }: { name: string; guess?: boolean; title?: string }) {
  return (
    <span
      class={`chip ${guess ? "guess" : ""}`}
      style={{ "--chip": colourOf(name) }}
      title={title ?? (guess ? `${name} (inferred from the key)` : undefined)}
    >
      {name}
    </span>
  );
}

export type Tone = "good" | "warn" | "bad" | undefined;

/** A word that states a status. */
export function Badge({ tone, children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`chip plain ${tone ?? ""}`}>{children}</span>;
}

interface StatProps {
  label: string;
  value: ComponentChildren;
  beside?: ComponentChildren;
  tone?: Tone;
}

export function Stat({ label, value, beside, tone }: StatProps) {
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
  id: string;
  value: number;
  text: string;
}

/** Labelled bars with their numbers, as a table that screen readers can read. */
export function Bars({ bars, caption }: { bars: readonly Bar[]; caption: string }) {
  const most = Math.max(...bars.map((each) => each.value), 0) || 1;
  return (
    <table class="bars">
      <caption class="hidden-text">{caption}</caption>
      <tbody>
        {bars.map((each) => (
          <tr key={each.id}>
            <th scope="row">{each.id}</th>
            <td class="bar" aria-hidden="true">
              <div style={{ width: `${((each.value / most) * 100).toFixed(2)}%` }} />
            </td>
            <td class="num">{each.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PanelProps {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  flush?: boolean;
}

export function Panel({ title, actions, children, flush }: PanelProps) {
  return (
    <section class="panel">
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

/** A column of a table: its heading; `numeric` aligns it right, `hidden` leaves it to screen readers. */
export type Column = string | { label: string; numeric?: boolean; hidden?: boolean };

export const numeric = (label: string): Column => ({ label, numeric: true });
export const hidden = (label: string): Column => ({ label, hidden: true });

export function TableHead({ columns }: { columns: readonly Column[] }) {
  return (
    <thead>
      <tr>
        {columns.map((each) => {
          const column = typeof each === "string" ? { label: each } : each;
          return (
            <th key={column.label} scope="col" class={column.numeric ? "num" : undefined}>
              {column.hidden ? <span class="hidden-text">{column.label}</span> : column.label}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

interface DataTableProps {
  /** Names the region for screen readers. */
  label: string;
  columns?: readonly Column[];
  class?: string;
  /** The bodies of the table, and its head where `columns` is not enough. */
  children: ComponentChildren;
}

/** A table that scrolls sideways on a narrow page. */
export function DataTable({ label, columns, class: more, children }: DataTableProps) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table class={`plain ${more ?? ""}`}>
        {columns ? <TableHead columns={columns} /> : null}
        {children}
      </table>
    </div>
  );
}

/** A button below a shortened list that shows the rest; nothing if the list is complete. */
export function ShowAll({ total, shown, onShow }: { total: number; shown: number; onShow: () => void }) {
  if (total <= shown) return null;
  return (
    <div class="show-all">
      <Button small onClick={onShow}>
        Show all {total}
      </Button>
    </div>
  );
}

/** An icon drawn with lines on a grid of 20 by 20. */
export function Icon({ path, size = 16 }: { path: string; size?: number }) {
  return (
    <svg class="line-icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

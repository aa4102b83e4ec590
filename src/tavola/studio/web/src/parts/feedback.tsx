// Feedback: notices, problems, empty states, progress; and text to copy or download.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../generated/api";
import { toSentence } from "../format";
import { Button } from "./controls";
import type { Tone } from "./display";
import { Prose } from "./prose";

interface NoticeProps {
  tone?: "info" | "warning" | "error" | "good";
  title?: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}

export function Notice({ tone = "info", title, children, actions }: NoticeProps) {
  return (
    <div class={`notice ${tone}`} role={tone === "error" ? "alert" : "status"}>
      <div class="grow stack tight">
        {title ? <strong>{title}</strong> : null}
        {children ? <div>{children}</div> : null}
      </div>
      {actions}
    </div>
  );
}

/** What failed, why, what to do, and the code to search for; nothing if there is no problem. */
export function ProblemNotice({ problem, retry }: { problem: Problem | null | undefined; retry?: () => void }) {
  if (!problem) return null;
  const button = retry ? (
    <Button small onClick={retry}>
      Try again
    </Button>
  ) : null;
  return (
    <Notice tone="error" title={problem.title} actions={button}>
      <Prose text={toSentence(problem.detail)} />
      {problem.remedy ? <Prose text={problem.remedy} /> : null}
      <p class="small muted">
        <code>{problem.code}</code>
      </p>
    </Notice>
  );
}

interface EmptyProps {
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
  /** It is the whole page, so its title is the page's heading. */
  whole?: boolean;
}

/** An empty state. */
export function Empty({ title, children, actions, whole }: EmptyProps) {
  return (
    <div class="empty">
      {whole ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children ? <p>{children}</p> : null}
      {actions ? <div class="row">{actions}</div> : null}
    </div>
  );
}

export function Spinner({ label = "Loading" }: { label?: string }) {
  return (
    <span role="status">
      <span class="spinner" aria-hidden="true" />
      <span class="hidden-text">{label}</span>
    </span>
  );
}

interface QueryLike<T> {
  readonly data: T | null;
  readonly problem: Problem | null;
  readonly retry: () => void;
}

/** The result of a query once it is there; until then a spinner, or its problem. */
export function Loaded<T>({ query, children }: { query: QueryLike<T>; children: (data: T) => ComponentChildren }) {
  if (query.problem) return <ProblemNotice problem={query.problem} retry={query.retry} />;
  return <>{query.data === null ? <Spinner /> : children(query.data)}</>;
}

export function Progress({ label, value, max, tone }: { label: string; value: number; max: number; tone?: Tone }) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <div
      class={`progress ${tone ?? ""}`}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={max}
      aria-valuenow={Math.min(value, max)}
    >
      <div style={{ width: `${(share * 100).toFixed(2)}%` }} />
    </div>
  );
}

/** Copy text to the clipboard; return whether it worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // browsers forbid it, for instance while the page has no focus
  }
}

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [result, setResult] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const done = await copyText(typeof text === "string" ? text : text());
    setResult(done ? "Copied" : "Blocked by the browser");
    timer.current = setTimeout(() => setResult(""), 1600);
  };
  return (
    <span class="copy">
      <Button small onClick={copy}>
        {result || label}
      </Button>
      <span class="hidden-text" role="status">
        {result}
      </span>
    </span>
  );
}

/** Code with a copy button. */
export function Code({ text, label }: { text: string; label?: string }) {
  return (
    <div class="code">
      <Copy text={text} />
      <pre tabIndex={0} role="group" aria-label={label ?? "Code"}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

/** A line diff. */
export function DiffView({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  const classes = { "+": "plus", "-": "minus", " ": "unchanged" } as const;
  const words = { "+": "added ", "-": "removed ", " ": "" } as const;
  return (
    <div class="diff" role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, at) => (
        <div key={at} class={classes[line.sign]}>
          <span aria-hidden="true">{line.sign}</span>
          <span>
            <span class="hidden-text">{words[line.sign]}</span>
            {line.text}
          </span>
        </div>
      ))}
    </div>
  );
}

/** Download text as a file. */
export function download(name: string, text: string | Blob, type = "text/plain"): void {
  const blob = typeof text === "string" ? new Blob([text], { type }) : text;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// Telling: notices, problems, empty places, progress, and text that people take with them.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../generated/api";
import { Button } from "./controls";

type Tone = "info" | "warning" | "error" | "good";

export function Notice({
  tone = "info",
  title,
  children,
  actions,
}: {
  tone?: Tone;
  title?: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
}) {
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

/** A problem as a person reads it: what, why, what to do, and the code to look for. */
export function ProblemNotice({ problem, again }: { problem: Problem; again?: () => void }) {
  return (
    <Notice
      tone="error"
      title={problem.title}
      actions={
        again ? (
          <Button small onClick={again}>
            Try again
          </Button>
        ) : null
      }
    >
      <p>{problem.detail}</p>
      {problem.remedy ? <p>{problem.remedy}</p> : null}
      <p class="small muted">
        <code>{problem.code}</code>
      </p>
    </Notice>
  );
}

/** What is said where there is nothing; `whole`: it is all of the page, so its title is the page's. */
export function Empty({
  title,
  children,
  actions,
  whole,
}: {
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
  whole?: boolean;
}) {
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

export function Progress({
  label,
  value,
  max,
  tone,
}: {
  label: string;
  value: number;
  max: number;
  tone?: "warn" | "bad";
}) {
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

/** Put a text on the clipboard; tell whether that worked. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // the browser forbids it, as it does where the page has no focus
  }
}

export function Copy({ text, label = "Copy" }: { text: string | (() => string); label?: string }) {
  const [told, setTold] = useState("");
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    const done = await copyText(typeof text === "string" ? text : text());
    setTold(done ? "Copied" : "The browser forbids it");
    timer.current = setTimeout(() => setTold(""), 1600);
  };
  return (
    <span class="copy">
      <Button small onClick={copy}>
        {told || label}
      </Button>
      <span class="hidden-text" role="status">
        {told}
      </span>
    </span>
  );
}

/** Text in fixed letters, with a button that copies it. */
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

/** Lines that come and go. */
export function DiffView({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  const name = { "+": "plus", "-": "minus", " ": "far" } as const;
  const read = { "+": "added ", "-": "removed ", " ": "" } as const;
  return (
    <div class="diff" role="region" aria-label={label} tabIndex={0}>
      {lines.map((line, at) => (
        <div key={at} class={name[line.sign]}>
          <span aria-hidden="true">{line.sign}</span>
          <span>
            <span class="hidden-text">{read[line.sign]}</span>
            {line.text}
          </span>
        </div>
      ))}
    </div>
  );
}

/** Let a browser keep text as a file. */
export function download(name: string, text: string | Blob, type = "text/plain"): void {
  const blob = typeof text === "string" ? new Blob([text], { type }) : text;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

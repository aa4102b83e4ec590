// State: which design is looked at: one of the studio's own, or one that was imported or altered and lives in this page alone.
import { signal } from "@preact/signals";
import type { LintFinding } from "../../generated/api";
import { go } from "../../app/router";

/** A design that no file of the studio's has: its document travels along with every question. */
export interface Brought {
  readonly title: string;
  readonly document: string;
  readonly notes: readonly { readonly place: string; readonly message: string }[];
}

export const brought = signal<Brought | null>(null);

/** Look at a design that was brought, from its first table on. */
export function bring(design: Brought): void {
  brought.value = design;
  go({ params: { shown: null, node: null, finding: null, rule: null } });
}

/** Look at the studio's own again. */
export function leave(): void {
  brought.value = null;
  go({ params: { shown: null, node: null, finding: null } });
}

/** What every question about the design says of it. */
export interface About {
  readonly design: string | null;
  readonly document: string | null;
}

export type SeverityName = LintFinding["severity"];

export const SEVERITIES: readonly SeverityName[] = ["error", "warning", "advice"];
export const TONES = { error: "bad", warning: "warn", advice: undefined } as const;

/** Return the worst severity of some findings. */
export function worst(findings: readonly LintFinding[]): SeverityName | null {
  return SEVERITIES.find((each) => findings.some((finding) => finding.severity === each)) ?? null;
}

/** Return how many there are, in words: "2 errors, 1 warning". */
export function counted(findings: readonly LintFinding[]): string {
  const many = (severity: SeverityName) => findings.filter((each) => each.severity === severity).length;
  const words = {
    error: ["error", "errors"],
    warning: ["warning", "warnings"],
    advice: ["piece of advice", "pieces of advice"],
  } as const;
  return SEVERITIES.filter((each) => many(each))
    .map((each) => `${many(each)} ${words[each][many(each) === 1 ? 0 : 1]}`)
    .join(", ");
}

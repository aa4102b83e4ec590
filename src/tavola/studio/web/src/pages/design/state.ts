// State: the design on the page: one of the studio's own, or one that was imported or modified and exists only in this page.
import { signal } from "@preact/signals";
import type { Finding, LocatedFinding } from "../../generated/api";
import { formatCount } from "../../format";
import { go } from "../../app/router";

/** A design that only this page has; its document is part of every request. */
export interface OpenedDesign {
  readonly title: string;
  readonly document: string;
  readonly notes: readonly { readonly place: string; readonly message: string }[];
}

export const openedDesign = signal<OpenedDesign | null>(null);

/** Show an imported or modified design, starting with its first table. */
export function openDesign(design: OpenedDesign): void {
  openedDesign.value = design;
  go({ params: { shown: null, node: null, finding: null, rule: null } });
}

/** Return to the studio's own design. */
export function closeDesign(): void {
  openedDesign.value = null;
  go({ params: { shown: null, node: null, finding: null } });
}

/** Identifies the design in a request. */
export interface DesignSource {
  readonly design: string | null;
  readonly document: string | null;
}

export type SeverityName = Finding["severity"];

export const SEVERITIES: readonly SeverityName[] = ["error", "warning", "advice"];
export const TONES = { error: "bad", warning: "warn", advice: undefined } as const;

/** Return the worst severity of some findings. */
export function worst(findings: readonly LocatedFinding[]): SeverityName | null {
  return SEVERITIES.find((each) => findings.some((finding) => finding.finding.severity === each)) ?? null;
}

/** Return the number of findings by severity: "2 errors, 1 warning". */
export function countBySeverity(findings: readonly LocatedFinding[]): string {
  const many = (severity: SeverityName) => findings.filter((each) => each.finding.severity === severity).length;
  const words = { error: "error", warning: "warning", advice: "advice finding" } as const;
  return SEVERITIES.filter((each) => many(each))
    .map((each) => formatCount(many(each), words[each]))
    .join(", ");
}

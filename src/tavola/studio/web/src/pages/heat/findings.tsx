// Findings: the diagnosis of the map in sentences, most urgent first.
import type { HeatFinding } from "../../generated/api";

const TONES: Readonly<Record<string, string>> = {
  throttled: "bad",
  "hot-key": "warn",
  "moving-key": "warn",
  "scan-heavy": "warn",
  burst: "info",
  skewed: "info",
  sequential: "info",
  even: "good",
  few: "info",
  idle: "info",
};
const FAR_FACTOR = 10; // a key this far below the limit of its partition is no reason to warn
const NAMES: Readonly<Record<string, string>> = {
  throttled: "Throttled",
  "hot-key": "Hot key",
  "moving-key": "Moving hot key",
  "scan-heavy": "Scans",
  burst: "Bursts",
  skewed: "Skewed",
  sequential: "Sequential keys",
  even: "Even load",
  few: "Little traffic",
  idle: "Idle",
};

interface FindingsProps {
  findings: readonly (Pick<HeatFinding, "kind" | "sentence" | "access"> & { name?: string; factor?: number | null })[];
}

export function Findings({ findings }: FindingsProps) {
  return (
    <ul class="heat-findings" aria-label="Diagnosis">
      {findings.map((each) => (
        <li key={`${each.kind} ${each.access ?? ""}`} class={`tone-${toneOf(each.kind, each.factor)}`}>
          <span class="heat-kind">{each.name ?? NAMES[each.kind] ?? each.kind}</span>
          <span>{each.sentence}</span>
        </li>
      ))}
    </ul>
  );
}

function toneOf(kind: string, factor: number | null | undefined): string {
  const tone = TONES[kind] ?? "info";
  return tone === "warn" && factor && factor > FAR_FACTOR ? "info" : tone;
}

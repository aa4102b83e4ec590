// QueryPlan: how a query will run, why, and what it will consume, shown before it runs.
import type { PlannedQuery, KeySuggestion, Problem, ReadEstimate } from "../../generated/api";
import { Badge, Button } from "../../parts";
import { formatMoneyRange, formatNumber, toSentence } from "../../format";

interface QueryPlanProps {
  plan: PlannedQuery | null;
  loading: boolean;
  problem: Problem | null;
  incomplete: boolean;
  onSuggestion?: (suggestion: KeySuggestion) => void;
}

export function QueryPlan({ plan, loading, problem, incomplete, onSuggestion }: QueryPlanProps) {
  if (incomplete) return <p class="data-plan small muted">Complete the conditions to see the query plan.</p>;
  if (problem) {
    return (
      <p class="data-plan small bad" role="status">
        {problem.title}. {toSentence(problem.detail)} {problem.remedy}
      </p>
    );
  }
  if (!plan) return <p class="data-plan small muted">…</p>;
  return (
    <div
      class="data-plan small"
      role="status"
      aria-busy={loading}
      data-operation={plan.operation}
      data-index={plan.index ?? ""}
    >
      <Badge tone={plan.operation === "Scan" ? "warn" : "good"}>{plan.operation}</Badge>{" "}
      <span class="data-sentence">{plan.sentence.replace(/^(GetItem:|Query|Scan) /, "")}</span>{" "}
      <span class="muted">{plan.why}</span>{" "}
      <span
        class="data-estimate nowrap"
        title={`${plan.estimate.reason}\nCost of one million reads like this, each to its end, on-demand, at ${plan.estimate.priced} prices.`}
      >
        {unitsText(plan.estimate)} · {formatMoneyRange(plan.estimate.dollars_low, plan.estimate.dollars_high)} per
        million {plan.operation === "Scan" ? "scans" : plan.operation === "Query" ? "queries" : "reads"}
      </span>
      <span class="muted"> {plan.estimate.reason}</span>
      {onSuggestion && plan.suggestions?.length ? (
        <div class="row wrap data-offers">
          {plan.suggestions.map((suggestion) => (
            <Button
              key={suggestion.text}
              small
              disabled={loading}
              onClick={() => onSuggestion(suggestion)}
              title="Run a Query on this key instead of the Scan"
            >
              {suggestion.text}
            </Button>
          ))}
        </div>
      ) : null}
      {plan.notes.map((note) => (
        <div key={note} class="warn">
          {note}
        </div>
      ))}
    </div>
  );
}

/** Return the read units of an estimate: one number or a range. */
export function unitsText({ units_low: low, units_high: high }: ReadEstimate): string {
  return low === high ? `${formatNumber(low)} read units` : `${formatNumber(low)}–${formatNumber(high)} read units`;
}

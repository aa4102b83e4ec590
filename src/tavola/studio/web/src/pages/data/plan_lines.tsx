// PlanLines: how a question will be answered, why, and what that will take; said before it runs.
import type { PlannedQuery, KeySuggestion, Problem, ReadEstimate } from "../../generated/api";
import { Badge, Button, money, num } from "../../parts";

const TITLES = { GetItem: "Get", Query: "Query", Scan: "Scan" } as const;

export function PlanLines({
  plan,
  loading,
  problem,
  wrong,
  onOffer,
}: {
  plan: PlannedQuery | null;
  loading: boolean;
  problem: Problem | null;
  wrong: boolean;
  onOffer?: (offer: KeySuggestion) => void;
}) {
  if (wrong) return <p class="data-plan small muted">Complete the conditions to see how they will be answered.</p>;
  if (problem) {
    return (
      <p class="data-plan small bad" role="status">
        {problem.title}. {problem.detail} {problem.remedy}
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
      <Badge tone={plan.operation === "Scan" ? "warn" : "good"}>{TITLES[plan.operation]}</Badge>{" "}
      <span class="data-sentence">{plan.sentence}</span> <span class="muted">{plan.why}</span>{" "}
      <span
        class="data-estimate nowrap"
        title={`${plan.estimate.reason}\nDollars of a million requests like this, on demand, at the prices of ${plan.estimate.priced}.`}
      >
        {unitsText(plan.estimate)} · {dollarsText(plan.estimate)} per million
      </span>
      <span class="muted"> {plan.estimate.reason}</span>
      {onOffer && plan.offers?.length ? (
        <div class="row wrap data-offers">
          {plan.offers.map((offer) => (
            <Button
              key={offer.text}
              small
              disabled={loading}
              onClick={() => onOffer(offer)}
              title="A Query by this key instead of the Scan"
            >
              {offer.text}
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

/** Return an estimate's units: one number, or from the least to the most. */
export function unitsText({ units_low: low, units_high: high }: ReadEstimate): string {
  return low === high ? `${num(low)} read units` : `${num(low)}–${num(high)} read units`;
}

function dollarsText({ dollars_low: low, dollars_high: high }: ReadEstimate): string {
  return low === high ? rounded(low) : `${rounded(low)}–${rounded(high)}`;
}

/** Return dollars to the cent; below a cent as they are. */
function rounded(text: string): string {
  const value = Number(text); // money of an estimate, no number of DynamoDB's
  return value > 0 && value < 0.01 ? money(text) : money(value.toFixed(2));
}

// State: the sliders and assumptions of the cost page. The URL holds each that differs from its default, so that a link shows the same cost.
import { go } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { CalculationRequest, CostRequest, CostAssumptions, Sliders } from "../../generated/api";

type Params = Readonly<Record<string, string>>;

function numberOr(text: string | undefined, standard: number): number {
  if (text === undefined || text.trim() === "") return standard;
  const value = Number(text);
  return Number.isFinite(value) ? value : standard;
}

function numbersWithPrefix(params: Params, prefix: string): Record<string, number> {
  const numbers: Record<string, number> = {};
  for (const [name, text] of Object.entries(params)) {
    if (name.startsWith(prefix) && text !== "" && Number.isFinite(Number(text)))
      numbers[name.slice(prefix.length)] = Number(text);
  }
  return numbers;
}

/** Return the factors in the URL that scale the design's numbers. */
export function slidersOf(params: Params): Sliders {
  const cons = params["cons"];
  const tx = params["tx"];
  return {
    reads: numberOr(params["reads"], 1),
    writes: numberOr(params["writes"], 1),
    item_bytes: numberOr(params["size"], 1),
    items: numberOr(params["items"], 1),
    indexes: Math.round(numberOr(params["idx"], 0)),
    peak: params["peak"] ? numberOr(params["peak"], 1) : null,
    consistency: cons === "eventual" || cons === "strong" ? cons : "declared",
    transactions: tx === "none" || tx === "all" ? tx : "declared",
    rates: numbersWithPrefix(params, "r."),
  };
}

/** Return the assumptions in the URL. */
export function assumptionsOf(params: Params): CostAssumptions {
  const mode = params["mode"];
  return {
    region: params["prices"] ? null : params["region"] || null,
    date: params["prices"] ? null : params["date"] || null,
    prices: params["prices"] || null,
    mode: mode === "on-demand" || mode === "provisioned" ? mode : null,
    table_class:
      params["class"] === "STANDARD" || params["class"] === "STANDARD_INFREQUENT_ACCESS" ? params["class"] : null,
    target: Math.round(numberOr(params["target"], 70)),
    hours_per_day: Math.round(numberOr(params["hours"], 24)),
    free_tier: params["free"] === "yes",
    backups: Math.round(numberOr(params["backups"], 0)),
    stream_polls: numberOr(params["polls"], 0),
    sparse_share: numberOr(params["sparse"], 0.1),
    storage_gb: numbersWithPrefix(params, "gb."),
  };
}

/** The value of the URL for all designs. */
export const ALL = "*";

/** Return the design to price: the one in the URL, else the current table's if there are several; "" is all. */
export function designOf(params: Params): string {
  const named = params["design"] ?? "";
  if (named || params["table"]) return named === ALL ? "" : named;
  return (session.value?.designs.length ?? 0) > 1 ? (currentTable.value?.design ?? "") : "";
}

/** Return the request for the cost that the URL describes. */
export function costRequest(params: Params): CostRequest {
  const table = params["table"] ?? "";
  return {
    design: designOf(params) || null,
    tables: table ? [table] : [],
    assumptions: assumptionsOf(params),
    sliders: slidersOf(params),
  };
}

/** Return the request for the calculation that the URL describes. */
export function calculationRequest(params: Params): CalculationRequest {
  const assumptions = assumptionsOf(params);
  return {
    reads: numberOr(params["k.reads"], 100),
    writes: numberOr(params["k.writes"], 20),
    item_kb: numberOr(params["k.kb"], 1),
    storage_gb: numberOr(params["k.gb"], 10),
    indexes: Math.round(numberOr(params["k.indexes"], 0)),
    eventual: params["k.eventual"] === "yes",
    hours_per_day: assumptions.hours_per_day ?? 24,
    region: assumptions.region ?? null,
    date: assumptions.date ?? null,
    prices: assumptions.prices ?? null,
    table_class: assumptions.table_class ?? null,
    target: assumptions.target ?? 70,
    free_tier: assumptions.free_tier ?? false,
    backups: assumptions.backups ?? 0,
  };
}

/** Set parameters without an entry in the browser's history, since dragging a slider sets many. */
export function set(params: Readonly<Record<string, string | null>>): void {
  go({ params }, { replace: true });
}

/** Reset every slider to the design's value. */
export function reset(params: Params): void {
  const names = Object.keys(params).filter((name) => /^(reads|writes|size|items|idx|peak|cons|tx)$|^r\./.test(name));
  go({ params: Object.fromEntries(names.map((name) => [name, null])) });
}

// State: the sliders and assumptions of a month. The URL holds each that is not at rest, so a link shows the same sum.
import { go } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { CalculationRequest, CostRequest, CostAssumptions, Sliders } from "../../generated/api";

type Params = Readonly<Record<string, string>>;

function number(text: string | undefined, standard: number): number {
  if (text === undefined || text.trim() === "") return standard;
  const told = Number(text);
  return Number.isFinite(told) ? told : standard;
}

function prefixed(params: Params, prefix: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [name, text] of Object.entries(params)) {
    if (name.startsWith(prefix) && text !== "" && Number.isFinite(Number(text)))
      found[name.slice(prefix.length)] = Number(text);
  }
  return found;
}

/** Return the factors that the URL turns the design's numbers by. */
export function slidersOf(params: Params): Sliders {
  const cons = params["cons"];
  const tx = params["tx"];
  return {
    reads: number(params["reads"], 1),
    writes: number(params["writes"], 1),
    item_bytes: number(params["size"], 1),
    items: number(params["items"], 1),
    indexes: Math.round(number(params["idx"], 0)),
    peak: params["peak"] ? number(params["peak"], 1) : null,
    consistency: cons === "eventual" || cons === "strong" ? cons : "declared",
    transactions: tx === "none" || tx === "all" ? tx : "declared",
    rates: prefixed(params, "r."),
  };
}

/** Return what a month is computed with beside the design, as the URL says it. */
export function assumptionsOf(params: Params): CostAssumptions {
  const mode = params["mode"];
  return {
    region: params["prices"] ? null : params["region"] || null,
    date: params["prices"] ? null : params["date"] || null,
    prices: params["prices"] || null,
    mode: mode === "on-demand" || mode === "provisioned" ? mode : null,
    table_class:
      params["class"] === "STANDARD" || params["class"] === "STANDARD_INFREQUENT_ACCESS" ? params["class"] : null,
    target: Math.round(number(params["target"], 70)),
    hours_per_day: Math.round(number(params["hours"], 24)),
    free_tier: params["free"] === "yes",
    backups: Math.round(number(params["backups"], 0)),
    stream_polls: number(params["polls"], 0),
    sparse_share: number(params["sparse"], 0.1),
    storage_gb: prefixed(params, "gb."),
  };
}

/** What stands for every design in the URL. */
export const ALL = "*";

/** Return the design that is looked at: the one that the URL names, else the current table's where there are several; "" is all. */
export function designOf(params: Params): string {
  const named = params["design"] ?? "";
  if (named || params["table"]) return named === ALL ? "" : named;
  return (session.value?.designs.length ?? 0) > 1 ? (currentTable.value?.design ?? "") : "";
}

/** Return the question that the URL asks. */
export function askedCost(params: Params): CostRequest {
  const table = params["table"] ?? "";
  return {
    design: designOf(params) || null,
    tables: table ? [table] : [],
    assumptions: assumptionsOf(params),
    sliders: slidersOf(params),
  };
}

/** Return the calculation that the URL asks for. */
export function askedCalculation(params: Params): CalculationRequest {
  const told = assumptionsOf(params);
  return {
    reads: number(params["k.reads"], 100),
    writes: number(params["k.writes"], 20),
    item_kb: number(params["k.kb"], 1),
    storage_gb: number(params["k.gb"], 10),
    indexes: Math.round(number(params["k.indexes"], 0)),
    eventual: params["k.eventual"] === "yes",
    hours_per_day: told.hours_per_day ?? 24,
    region: told.region ?? null,
    date: told.date ?? null,
    prices: told.prices ?? null,
    table_class: told.table_class ?? null,
    target: told.target ?? 70,
    free_tier: told.free_tier ?? false,
    backups: told.backups ?? 0,
  };
}

/** Set parameters; while a slider is dragged, going back should not stop at each step. */
export function set(params: Readonly<Record<string, string | null>>): void {
  go({ params }, { replace: true });
}

/** Take every slider back to where the design has it. */
export function reset(params: Params): void {
  const names = Object.keys(params).filter((name) => /^(reads|writes|size|items|idx|peak|cons|tx)$|^r\./.test(name));
  go({ params: Object.fromEntries(names.map((name) => [name, null])) });
}

const STEP = 10_000_000_000n;

export { cents } from "../../parts";

/** Return the difference of two amounts as text, exactly. */
export function less(one: string, other: string): string {
  const told = scaled(one) - scaled(other);
  const digits = (told < 0n ? -told : told).toString().padStart(11, "0");
  return `${told < 0n ? "-" : ""}${digits.slice(0, -10)}.${digits.slice(-10)}`;
}

/** Return the sum of two amounts as text, exactly. */
export function plus(one: string, other: string): string {
  return less(one, other.startsWith("-") ? other.slice(1) : `-${other}`);
}

function scaled(text: string): bigint {
  const [whole = "0", rest = ""] = text.replace(/^[-+]/, "").split(".");
  const exact = BigInt(whole || "0") * STEP + BigInt(rest.slice(0, 10).padEnd(10, "0"));
  return text.startsWith("-") ? -exact : exact;
}

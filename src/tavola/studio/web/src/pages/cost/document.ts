// Document: the parts of `tavola cost --json` that the page reads.

interface PriceBook {
  readonly title: string;
  readonly region: string;
  readonly date: string;
}

export interface BillLine {
  readonly table: string;
  readonly index: string | null;
  readonly what: string;
  readonly quantity: string;
  readonly unit: string;
  readonly amount: string;
}

export interface PatternBill {
  readonly kind: "read" | "write";
  readonly place: string;
  readonly title: string;
  readonly per_second: number | null;
  readonly units: number;
  readonly amount: string;
}

export interface CostDocument {
  readonly tables: readonly string[];
  readonly book: PriceBook;
  readonly currency: string;
  readonly hours: number;
  readonly total: string;
  readonly lines: readonly BillLine[];
  readonly access_patterns: readonly PatternBill[];
  readonly ways: readonly { readonly name: string; readonly total: string | null; readonly reason: string }[];
  readonly break_even: readonly { readonly name: string; readonly sentence: string }[];
  readonly savings: readonly Readonly<Record<"change" | "place" | "sentence" | "amount", string>>[];
  readonly recommendation: string;
  readonly notes: readonly string[];
}

export interface CalculationDocument {
  readonly book: PriceBook;
  readonly hours: number;
  readonly units: Readonly<Record<"read" | "write" | "read_capacity" | "write_capacity", number>>;
  readonly ways: readonly ({ readonly total: string | null } & Readonly<
    Record<"name" | "reads" | "writes" | "storage" | "other", string>
  >)[];
  readonly recommendation: string;
  readonly notes: readonly string[];
}

/** Return the API's untyped document as a cost estimate. */
export function costDocument(document: unknown): CostDocument {
  return document as CostDocument;
}

/** Return the API's untyped document as a calculation. */
export function calculationDocument(document: unknown): CalculationDocument {
  return document as CalculationDocument;
}

// Document: the shape of what `tavola cost --json` prints; the page reads it as the command line does.

export interface CostBook {
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

export interface PayWay {
  readonly name: string;
  readonly mode: string;
  readonly table_class: string;
  readonly reserved: string | null;
  readonly total: string | null;
  readonly reason: string;
}

export interface CostDocument {
  readonly tables: readonly string[];
  readonly book: CostBook;
  readonly currency: string;
  readonly hours: number;
  readonly total: string;
  readonly lines: readonly BillLine[];
  readonly access_patterns: readonly PatternBill[];
  readonly ways: readonly PayWay[];
  readonly break_even: readonly { readonly name: string; readonly sentence: string }[];
  readonly savings: readonly {
    readonly change: string;
    readonly place: string;
    readonly sentence: string;
    readonly amount: string;
  }[];
  readonly recommendation: string;
  readonly notes: readonly string[];
}

export interface CalculationDocument {
  readonly book: CostBook;
  readonly hours: number;
  readonly units: {
    readonly read: number;
    readonly write: number;
    readonly read_capacity: number;
    readonly write_capacity: number;
  };
  readonly ways: readonly {
    readonly name: string;
    readonly reads: string;
    readonly writes: string;
    readonly storage: string;
    readonly other: string;
    readonly total: string | null;
  }[];
  readonly recommended: string | null;
  readonly recommendation: string;
  readonly differences: readonly {
    readonly sentence: string;
    readonly on_demand: string;
    readonly provisioned: string;
  }[];
  readonly notes: readonly string[];
}

/** Return a document of the API as what it is. */
export function costDocument(told: unknown): CostDocument {
  return told as CostDocument;
}

/** Return a calculation of the API as what it is. */
export function calculationDocument(told: unknown): CalculationDocument {
  return told as CalculationDocument;
}

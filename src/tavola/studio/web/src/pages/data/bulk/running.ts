// Running: a bulk edit, slice after slice: looked at, then done; it can be stopped between two slices.
import { signal } from "@preact/signals";
import { call, problemOf, wasAborted } from "../../../app/api";
import type { BulkAction, SkippedItem, BulkRow, ItemSelection, Problem, SliceCursor } from "../../../generated/api";

/** What a bulk edit has come to so far. */
export interface Tally {
  readonly phase: "idle" | "looking" | "looked" | "running" | "stopping" | "done" | "stopped";
  readonly matched: number;
  readonly changing: number;
  readonly written: number;
  readonly same: number;
  readonly left: readonly SkippedItem[];
  readonly units: number;
  readonly dollars: string;
  readonly priced: string;
  readonly onDemand: boolean;
  readonly rows: readonly BulkRow[];
  readonly problem: Problem | null;
}

const NOTHING: Tally = {
  phase: "idle",
  matched: 0,
  changing: 0,
  written: 0,
  same: 0,
  left: [],
  units: 0,
  dollars: "0",
  priced: "",
  onDemand: true,
  rows: [],
  problem: null,
};
const ROWS_MAX = 12;

/** One bulk edit under way. */
export class BulkRun {
  readonly tally = signal<Tally>(NOTHING);
  private giving: AbortController | null = null;

  reset(): void {
    this.giving?.abort();
    this.tally.value = NOTHING;
  }

  /** Stop looking at once; stop writing after the slice that is under way, so that what it does is told. */
  stop(): void {
    const phase = this.tally.value.phase;
    if (phase === "running") this.tally.value = { ...this.tally.value, phase: "stopping" };
    if (phase !== "looking") return;
    this.giving?.abort();
    this.tally.value = { ...this.tally.value, phase: "stopped" };
  }

  /** Look at everything that would be changed. */
  async look(selection: ItemSelection, action: BulkAction): Promise<void> {
    await this.each("looking", "looked", async (cursor, signal) => {
      const told = await call("POST /bulk/preview", { selection, action, cursor }, { signal });
      const now = this.tally.value;
      this.tally.value = {
        ...now,
        matched: now.matched + told.matched,
        changing: now.changing + told.changing,
        same: now.same + told.same,
        left: [...now.left, ...told.left],
        units: now.units + told.units,
        dollars: added(now.dollars, told.dollars),
        priced: told.priced,
        onDemand: told.on_demand,
        rows: [...now.rows, ...told.rows].slice(0, ROWS_MAX),
      };
      return told.cursor;
    });
  }

  /** Do it. What was looked at stays as the measure of how far it has come. */
  async run(selection: ItemSelection, action: BulkAction): Promise<void> {
    const expected = this.tally.value.changing;
    const rows = this.tally.value.rows;
    this.tally.value = { ...NOTHING, changing: expected, rows };
    await this.each("running", "done", async (cursor, signal) => {
      const told = await call("POST /bulk/run", { selection, action, cursor }, { signal });
      const now = this.tally.value;
      this.tally.value = {
        ...now,
        matched: now.matched + told.matched,
        written: now.written + told.written,
        same: now.same + told.same,
        left: [...now.left, ...told.left],
        units: now.units + told.units,
      };
      return told.cursor;
    });
  }

  private async each(
    during: "looking" | "running",
    after: "looked" | "done",
    slice: (cursor: SliceCursor | null, signal: AbortSignal) => Promise<SliceCursor | null>,
  ): Promise<void> {
    this.giving?.abort();
    const giving = new AbortController();
    this.giving = giving;
    this.tally.value = { ...(during === "looking" ? NOTHING : this.tally.value), phase: during };
    try {
      let cursor: SliceCursor | null = null;
      do cursor = await slice(cursor, giving.signal);
      while (cursor && !giving.signal.aborted && this.tally.value.phase === during);
      if (!giving.signal.aborted) this.tally.value = { ...this.tally.value, phase: cursor ? "stopped" : after };
    } catch (thrown) {
      if (!wasAborted(thrown)) this.tally.value = { ...this.tally.value, phase: "stopped", problem: problemOf(thrown) };
    }
  }
}

/** Return the sum of two amounts of money, digit by digit: a sum of floats would be off by a cent some day. */
export function added(one: string, other: string): string {
  const places = Math.max(fraction(one), fraction(other));
  const sum = whole(one, places) + whole(other, places);
  const digits = sum.toString().padStart(places + 1, "0");
  return places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
}

function plainly(text: string): string {
  const [base = "0", power] = text.toUpperCase().split("E");
  if (power === undefined) return base;
  const [front = "0", back = ""] = base.split(".");
  const shift = Number(power); // an exponent of money is small
  if (shift >= 0) return `${front}${back.padEnd(shift, "0").slice(0, shift)}.${back.slice(shift) || "0"}`;
  return `0.${"0".repeat(-shift - front.length)}${front}${back}`;
}

function fraction(text: string): number {
  return plainly(text).split(".")[1]?.length ?? 0;
}

function whole(text: string, places: number): bigint {
  const [front = "0", back = ""] = plainly(text).split(".");
  return BigInt(front + back.padEnd(places, "0"));
}

// BulkRun: a bulk edit, slice by slice: previewed, then written; it can be stopped between two slices.
import { signal } from "@preact/signals";
import { call, problemOf, wasAborted } from "../../../app/api";
import { addAmounts } from "../../../format";
import type { BulkAction, SkippedItem, BulkRow, ItemSelection, Problem, SliceCursor } from "../../../generated/api";

/** The result of a bulk edit so far. */
export interface Tally {
  readonly phase: "idle" | "previewing" | "previewed" | "running" | "stopping" | "done" | "stopped";
  readonly matched: number;
  readonly changing: number;
  readonly written: number;
  readonly same: number;
  readonly skipped: readonly SkippedItem[];
  readonly units: number;
  readonly dollars: string;
  readonly priced: string;
  readonly onDemand: boolean;
  readonly rows: readonly BulkRow[];
  readonly problem: Problem | null;
}

const EMPTY: Tally = {
  phase: "idle",
  matched: 0,
  changing: 0,
  written: 0,
  same: 0,
  skipped: [],
  units: 0,
  dollars: "0",
  priced: "",
  onDemand: true,
  rows: [],
  problem: null,
};
const ROWS_MAX = 12;

/** One bulk edit. */
export class BulkRun {
  readonly tally = signal<Tally>(EMPTY);
  private controller: AbortController | null = null;

  reset(): void {
    this.controller?.abort();
    this.tally.value = EMPTY;
  }

  /** Stop a preview at once, and a write after the running slice, so that its result is known. */
  stop(): void {
    const phase = this.tally.value.phase;
    if (phase === "running") this.tally.value = { ...this.tally.value, phase: "stopping" };
    if (phase !== "previewing") return;
    this.controller?.abort();
    this.tally.value = { ...this.tally.value, phase: "stopped" };
  }

  /** Count everything that would change, and keep the first rows. */
  async preview(selection: ItemSelection, action: BulkAction): Promise<void> {
    await this.runSlices("previewing", "previewed", async (cursor, signal) => {
      const slice = await call("POST /bulk/preview", { selection, action, cursor }, { signal });
      const now = this.tally.value;
      this.tally.value = {
        ...now,
        matched: now.matched + slice.matched,
        changing: now.changing + slice.changing,
        same: now.same + slice.same,
        skipped: [...now.skipped, ...slice.skipped],
        units: now.units + slice.units,
        dollars: addAmounts(now.dollars, slice.dollars),
        priced: slice.priced,
        onDemand: slice.on_demand,
        rows: [...now.rows, ...slice.rows].slice(0, ROWS_MAX),
      };
      return slice.cursor;
    });
  }

  /** Write the changes. The number that the preview counted stays, to measure progress. */
  async run(selection: ItemSelection, action: BulkAction): Promise<void> {
    const expected = this.tally.value.changing;
    const rows = this.tally.value.rows;
    this.tally.value = { ...EMPTY, changing: expected, rows };
    await this.runSlices("running", "done", async (cursor, signal) => {
      const slice = await call("POST /bulk/run", { selection, action, cursor }, { signal });
      const now = this.tally.value;
      this.tally.value = {
        ...now,
        matched: now.matched + slice.matched,
        written: now.written + slice.written,
        same: now.same + slice.same,
        skipped: [...now.skipped, ...slice.skipped],
        units: now.units + slice.units,
      };
      return slice.cursor;
    });
  }

  private async runSlices(
    during: "previewing" | "running",
    after: "previewed" | "done",
    runSlice: (cursor: SliceCursor | null, signal: AbortSignal) => Promise<SliceCursor | null>,
  ): Promise<void> {
    this.controller?.abort();
    const controller = new AbortController();
    this.controller = controller;
    this.tally.value = { ...(during === "previewing" ? EMPTY : this.tally.value), phase: during };
    try {
      let cursor: SliceCursor | null = null;
      do cursor = await runSlice(cursor, controller.signal);
      while (cursor && !controller.signal.aborted && this.tally.value.phase === during);
      if (!controller.signal.aborted) this.tally.value = { ...this.tally.value, phase: cursor ? "stopped" : after };
    } catch (thrown) {
      if (!wasAborted(thrown)) this.tally.value = { ...this.tally.value, phase: "stopped", problem: problemOf(thrown) };
    }
  }
}

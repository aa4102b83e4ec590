// Feed: the live changes of a table in a bounded list, over a connection that resumes where it broke.
import { signal } from "@preact/signals";
import { apiUrl, call, problemOf } from "../../app/api";
import type { ChangesRequest, StreamGap, Problem, StreamChange } from "../../generated/api";
import { ChangeBuffer } from "./change_buffer";

export type FeedState = "connecting" | "live" | "lost" | "over" | "refused" | "closed";

const BACKOFF_MS = [300, 1_000, 2_000, 5_000];
const MEASURES_MAX = 500;
const RATE_S = 60;
const HIDDEN_MS = 20_000;

type FeedFilters = Pick<ChangesRequest, "table" | "events" | "entities" | "prefix" | "after" | "since">;

/** The live changes of one table, newest last. It renders at most once per frame. */
export class Feed {
  readonly state = signal<FeedState>("connecting");
  readonly problem = signal<Problem | null>(null);
  readonly gaps = signal<readonly StreamGap[]>([]);
  readonly paused = signal(false);
  /** Incremented when there is something to show. */
  readonly version = signal(0);
  private readonly shownRows = new ChangeBuffer();
  private readonly heldRows = new ChangeBuffer();
  /** Changes received in total; dropped because the list is full; dropped while paused. */
  total = 0;
  dropped = 0;
  missed = 0;
  connections = 0;
  private readonly seconds = new Map<number, number>();
  private source: EventSource | null = null;
  private position: string;
  private tries = 0;
  private timer = 0;
  private frame = 0;
  private arrived = 0;
  private round = 0;
  private hiddenTimer = 0;
  private suspended = false;

  constructor(
    private filters: FeedFilters,
    start: string,
  ) {
    this.position = start;
    document.addEventListener("visibilitychange", this.onVisibility);
    void this.begin();
  }

  /** Close the connection while the tab is hidden and resume later: a browser has only six per server for all tabs. */
  private readonly onVisibility = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) this.hiddenTimer = setTimeout(() => this.suspend(), HIDDEN_MS);
    else if (this.suspended) this.reopen();
  };

  private suspend(): void {
    if (this.state.value !== "live") return;
    this.suspended = true;
    this.state.value = "connecting";
    this.round += 1;
    this.disconnect();
  }

  /** The changes that are shown. */
  get rows(): readonly StreamChange[] {
    return this.shownRows.changes;
  }

  /** The changes held back while paused. */
  get held(): readonly StreamChange[] {
    return this.heldRows.changes;
  }

  /** Change the filters: shown changes that do not match are removed, and no change in between is lost. */
  narrow(filters: FeedFilters): void {
    this.filters = { ...filters, after: this.filters.after ?? "" };
    this.shownRows.narrow((row) => matches(row, filters));
    this.heldRows.narrow((row) => matches(row, filters));
    this.reopen();
    this.show();
  }

  /** Start again: at the beginning of the stream, now, or after a change. */
  restart(start: "latest" | "start", after = ""): void {
    this.filters = { ...this.filters, after };
    this.shownRows.narrow(() => false);
    this.heldRows.narrow(() => false);
    this.total = this.dropped = this.missed = 0;
    this.gaps.value = [];
    this.position = start;
    this.reopen();
    this.show();
  }

  /** Hold new changes back, or show all that were held back. */
  pause(paused: boolean): void {
    this.paused.value = paused;
    if (!paused) this.dropped += this.shownRows.take(this.heldRows);
    this.show();
  }

  close(): void {
    this.state.value = "closed";
    this.round += 1;
    this.disconnect();
    clearTimeout(this.hiddenTimer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    cancelAnimationFrame(this.frame);
  }

  /** Drop the connection and reconnect. */
  drop(): void {
    this.disconnect();
    this.reconnectLater();
  }

  /** Return the number of changes in each of the last seconds, newest last. */
  rates(): number[] {
    const now = Math.floor(Date.now() / 1000);
    return Array.from({ length: RATE_S }, (_, at) => this.seconds.get(now - RATE_S + 1 + at) ?? 0);
  }

  /** Record that the received changes were rendered, to measure the delay. */
  shown(): void {
    if (!this.arrived) return;
    performance.measure("tavola:stream", { start: this.arrived, end: performance.now() });
    this.arrived = 0;
    if (performance.getEntriesByName("tavola:stream").length > MEASURES_MAX) performance.clearMeasures("tavola:stream");
  }

  private reopen(): void {
    this.suspended = false;
    this.tries = 0;
    this.disconnect();
    void this.begin();
  }

  /** Check that there is a stream before opening one: an EventSource does not say why it was rejected. */
  private async begin(): Promise<void> {
    this.state.value = "connecting";
    const round = (this.round += 1);
    const problem = await this.streamProblem();
    if (round !== this.round) return; // a newer attempt started, or the page was left
    this.problem.value = problem;
    if (problem === null) this.open();
    else if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) this.state.value = "refused";
    else this.reconnectLater();
  }

  private async streamProblem(): Promise<Problem | null> {
    const { table, events, after, since } = this.filters;
    try {
      return (await call("GET /changes/stream", { table, events, after, since })).problem ?? null;
    } catch (thrown) {
      return problemOf(thrown);
    }
  }

  private open(): void {
    this.connections += 1;
    const source = new EventSource(apiUrl("GET /changes", { ...this.filters, position: this.position }));
    this.source = source;
    const on = (event: string, take: (data: string) => void) =>
      source.addEventListener(event, (message) => {
        if (this.source !== source) return;
        take((message as MessageEvent<string>).data);
        // The position moves only after its changes are in the list.
        const id = (message as MessageEvent<string>).lastEventId;
        if (id) this.position = id;
      });
    on("hello", () => {
      this.tries = 0;
      this.problem.value = null;
      this.state.value = "live";
    });
    on("position", () => undefined);
    on("changes", (data) => this.take((JSON.parse(data) as { changes: StreamChange[] }).changes, data.length));
    on("gap", (data) => {
      this.gaps.value = [...this.gaps.value, JSON.parse(data) as StreamGap].slice(-20);
    });
    on("problem", (data) => {
      this.problem.value = JSON.parse(data) as Problem;
      this.disconnect();
      this.reconnectLater();
    });
    on("over", () => {
      this.disconnect();
      this.state.value = "over";
    });
    source.onerror = () => {
      if (this.source !== source) return;
      this.disconnect();
      this.reconnectLater();
    };
  }

  private reconnectLater(): void {
    if (this.state.value === "closed") return;
    this.state.value = "lost";
    const wait = BACKOFF_MS[Math.min(this.tries, BACKOFF_MS.length - 1)] ?? 5_000;
    this.tries += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.begin(), wait);
  }

  private disconnect(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private take(changes: readonly StreamChange[], text: number): void {
    if (!this.arrived) this.arrived = performance.now();
    this.total += changes.length;
    const now = Math.floor(Date.now() / 1000);
    this.seconds.set(now, (this.seconds.get(now) ?? 0) + changes.length);
    if (this.seconds.size > RATE_S * 2) {
      for (const second of this.seconds.keys()) if (second < now - RATE_S) this.seconds.delete(second);
    }
    if (this.paused.value) this.missed += this.heldRows.add(changes, text);
    else this.dropped += this.shownRows.add(changes, text);
    this.show();
  }

  private show(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.version.value += 1;
    });
  }
}

/** Return whether a change passes the filters, as the server decides for new ones. */
function matches(row: StreamChange, filters: FeedFilters): boolean {
  const among = (list: string | undefined, name: string) => !list || list.split(",").includes(name);
  const prefix = filters.prefix ?? "";
  const keys = Object.values(row.keys).map((value) => String(Object.values(value)[0] ?? ""));
  return (
    among(filters.events, row.event) &&
    among(filters.entities, row.entity ?? "") &&
    (!prefix || keys.some((key) => key.startsWith(prefix)))
  );
}

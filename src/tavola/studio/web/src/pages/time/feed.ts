// Feed: a table's changes as they come, in a bounded list, over a connection that is taken up again where it broke.
import { signal } from "@preact/signals";
import { apiUrl, call, problemOf } from "../../app/api";
import type { ChangesRequest, StreamGap, Problem, StreamChange } from "../../generated/api";
import { Kept } from "./kept";

export type FeedState = "connecting" | "live" | "lost" | "over" | "refused" | "closed";

const BACKOFF_MS = [300, 1_000, 2_000, 5_000];
const MEASURES_MAX = 500;
const RATE_S = 60;
const UNSEEN_MS = 20_000;

type Asked = Pick<ChangesRequest, "table" | "events" | "entities" | "prefix" | "after" | "since">;

/** One table's live changes, the latest last. It renders at most once a frame, however many come. */
export class Feed {
  readonly state = signal<FeedState>("connecting");
  readonly problem = signal<Problem | null>(null);
  readonly gaps = signal<readonly StreamGap[]>([]);
  readonly paused = signal(false);
  /** Counted up when there is something to show. */
  readonly version = signal(0);
  private readonly shownRows = new Kept();
  private readonly heldRows = new Kept();
  /** Changes that came in all; those let go because the list is full; those that were held too long. */
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
  private unseen = 0;
  private resting = false;

  constructor(
    private asked: Asked,
    start: string,
  ) {
    this.position = start;
    document.addEventListener("visibilitychange", this.look);
    void this.begin();
  }

  /** Let the connection go while nobody looks, and go on from there: a browser has six to one server for all its tabs together. */
  private readonly look = (): void => {
    clearTimeout(this.unseen);
    if (document.hidden) this.unseen = setTimeout(() => this.rest(), UNSEEN_MS);
    else if (this.resting) this.reopen();
  };

  private rest(): void {
    if (this.state.value !== "live") return;
    this.resting = true;
    this.state.value = "connecting";
    this.round += 1;
    this.shut();
  }

  /** The changes that are shown, and those that wait while it is paused. */
  get rows(): readonly StreamChange[] {
    return this.shownRows.changes;
  }

  get held(): readonly StreamChange[] {
    return this.heldRows.changes;
  }

  /** Ask for other changes from here on; what is shown and not wanted goes, and nothing between is lost. */
  narrow(asked: Asked): void {
    this.asked = { ...asked, after: this.asked.after ?? "" };
    this.shownRows.narrow((row) => wanted(row, asked));
    this.heldRows.narrow((row) => wanted(row, asked));
    this.reopen();
    this.show();
  }

  /** Begin anew: at the start of what the stream keeps, at now, or past a change. */
  restart(start: "latest" | "start", after = ""): void {
    this.asked = { ...this.asked, after };
    this.shownRows.narrow(() => false);
    this.heldRows.narrow(() => false);
    this.total = this.dropped = this.missed = 0;
    this.gaps.value = [];
    this.position = start;
    this.reopen();
    this.show();
  }

  /** Stop showing what comes, which goes on being held; or show all of it. */
  pause(paused: boolean): void {
    this.paused.value = paused;
    if (!paused) this.dropped += this.shownRows.take(this.heldRows);
    this.show();
  }

  close(): void {
    this.state.value = "closed";
    this.round += 1;
    this.shut();
    clearTimeout(this.unseen);
    document.removeEventListener("visibilitychange", this.look);
    cancelAnimationFrame(this.frame);
  }

  /** Break the connection as a network does; it is taken up again. For whoever wants to see that. */
  drop(): void {
    this.shut();
    this.lost();
  }

  /** Return how many changes came in each of the last seconds, the latest last. */
  rates(): number[] {
    const now = Math.floor(Date.now() / 1000);
    return Array.from({ length: RATE_S }, (_, at) => this.seconds.get(now - RATE_S + 1 + at) ?? 0);
  }

  /** Note that what came has been shown. */
  shown(): void {
    if (!this.arrived) return;
    performance.measure("tavola:stream", { start: this.arrived, end: performance.now() });
    this.arrived = 0;
    if (performance.getEntriesByName("tavola:stream").length > MEASURES_MAX) performance.clearMeasures("tavola:stream");
  }

  private reopen(): void {
    this.resting = false;
    this.tries = 0;
    this.shut();
    void this.begin();
  }

  /** Look whether there is a stream before one is opened: a browser tells nothing of why it was refused. */
  private async begin(): Promise<void> {
    this.state.value = "connecting";
    const round = (this.round += 1);
    const problem = await this.refusal();
    if (round !== this.round) return; // another began meanwhile, or the page is gone
    this.problem.value = problem;
    if (problem === null) this.open();
    else if (problem.status >= 400 && problem.status < 500 && problem.status !== 429) this.state.value = "refused";
    else this.lost();
  }

  private async refusal(): Promise<Problem | null> {
    const { table, events, after, since } = this.asked;
    try {
      return (await call("GET /changes/stream", { table, events, after, since })).problem ?? null;
    } catch (thrown) {
      return problemOf(thrown);
    }
  }

  private open(): void {
    this.connections += 1;
    const source = new EventSource(apiUrl("GET /changes", { ...this.asked, position: this.position }));
    this.source = source;
    const on = (event: string, take: (data: string) => void) =>
      source.addEventListener(event, (message) => {
        if (this.source !== source) return;
        take((message as MessageEvent<string>).data);
        // The place is moved when what it covers is in the list, and not before.
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
      this.shut();
      this.lost();
    });
    on("over", () => {
      this.shut();
      this.state.value = "over";
    });
    source.onerror = () => {
      if (this.source !== source) return;
      this.shut();
      this.lost();
    };
  }

  private lost(): void {
    if (this.state.value === "closed") return;
    this.state.value = "lost";
    const wait = BACKOFF_MS[Math.min(this.tries, BACKOFF_MS.length - 1)] ?? 5_000;
    this.tries += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.begin(), wait);
  }

  private shut(): void {
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

/** Tell whether a change passes the filters, as the server decides it for those to come. */
function wanted(row: StreamChange, asked: Asked): boolean {
  const among = (list: string | undefined, name: string) => !list || list.split(",").includes(name);
  const prefix = asked.prefix ?? "";
  const keys = Object.values(row.keys).map((value) => String(Object.values(value)[0] ?? ""));
  return (
    among(asked.events, row.event) &&
    among(asked.entities, row.entity ?? "") &&
    (!prefix || keys.some((key) => key.startsWith(prefix)))
  );
}

// Kept: changes by their time, no more than a page can hold; the oldest are let go.
import type { StreamChange } from "../../generated/api";

const COUNT_MAX = 5_000;
const TEXT_MAX = 32 * 1024 * 1024; // characters, as they came: a change of a 400 KB item has both of its images
const SLACK = 1.25; // beyond the bound before anything goes, so that the list is not moved for each change

export class Kept {
  changes: StreamChange[] = [];
  private readonly sizes = new WeakMap<StreamChange, number>();
  private text = 0;

  /** Add changes that came together in so much text; return how many had to go for them. */
  add(changes: readonly StreamChange[], text: number): number {
    for (const change of changes) this.sizes.set(change, text / changes.length);
    return this.join(changes);
  }

  /** Take over all that another has; return how many had to go. */
  take(other: Kept): number {
    for (const change of other.changes) this.sizes.set(change, other.sizeOf(change));
    const changes = other.changes;
    other.keep([]);
    return this.join(changes);
  }

  /** Let go of what is not wanted. */
  narrow(wanted: (change: StreamChange) => boolean): void {
    this.keep(this.changes.filter(wanted));
  }

  private sizeOf(change: StreamChange): number {
    return this.sizes.get(change) ?? 0;
  }

  private join(changes: readonly StreamChange[]): number {
    let last = this.changes[this.changes.length - 1];
    let early = false;
    for (const change of changes) {
      early ||= last !== undefined && inTime(last, change) > 0;
      this.changes.push(change);
      this.text += this.sizeOf(change);
      last = change;
    }
    // Shards are read one after another, and a replay has all of the first before any of the second.
    if (early) this.changes.sort(inTime);
    return this.trim();
  }

  private trim(): number {
    const count = this.changes.length;
    if (count <= COUNT_MAX * SLACK && this.text <= TEXT_MAX * SLACK) return 0;
    let kept = 0;
    let text = 0;
    for (const change of this.changes.slice(-COUNT_MAX).reverse()) {
      text += this.sizeOf(change);
      if (kept && text > TEXT_MAX) break; // the latest one stays, whatever its size
      kept += 1;
    }
    this.keep(this.changes.slice(-kept));
    return count - kept;
  }

  private keep(changes: StreamChange[]): void {
    this.changes = changes;
    this.text = changes.reduce((sum, change) => sum + this.sizeOf(change), 0);
  }
}

/** Compare two changes by their time, and in the same second by their number. */
function inTime(one: StreamChange, other: StreamChange): number {
  if (one.at !== other.at) return one.at - other.at;
  const [mine, theirs] = [one.sequence.replace(/^0+/, ""), other.sequence.replace(/^0+/, "")];
  return mine.length - theirs.length || (mine < theirs ? -1 : mine > theirs ? 1 : 0);
}

// ChangeBuffer: changes in order of time, bounded in number and size; the oldest are dropped.
import type { StreamChange } from "../../generated/api";

const COUNT_MAX = 5_000;
const TEXT_MAX = 32 * 1024 * 1024; // characters as received: a change of a 400 KB item has both images
const SLACK = 1.25; // tolerated excess, so that not every change moves the list

export class ChangeBuffer {
  changes: StreamChange[] = [];
  private readonly sizes = new WeakMap<StreamChange, number>();
  private text = 0;

  /** Add changes that were received together in `text` characters; return how many were dropped. */
  add(changes: readonly StreamChange[], text: number): number {
    for (const change of changes) this.sizes.set(change, text / changes.length);
    return this.join(changes);
  }

  /** Take all changes of another buffer; return how many were dropped. */
  take(other: ChangeBuffer): number {
    for (const change of other.changes) this.sizes.set(change, other.sizeOf(change));
    const changes = other.changes;
    other.setChanges([]);
    return this.join(changes);
  }

  /** Drop changes that do not match. */
  narrow(wanted: (change: StreamChange) => boolean): void {
    this.setChanges(this.changes.filter(wanted));
  }

  private sizeOf(change: StreamChange): number {
    return this.sizes.get(change) ?? 0;
  }

  private join(changes: readonly StreamChange[]): number {
    let last = this.changes[this.changes.length - 1];
    let outOfOrder = false;
    for (const change of changes) {
      outOfOrder ||= last !== undefined && compareChanges(last, change) > 0;
      this.changes.push(change);
      this.text += this.sizeOf(change);
      last = change;
    }
    // Shards are read one after another: a replay delivers all of the first before any of the second.
    if (outOfOrder) this.changes.sort(compareChanges);
    return this.trim();
  }

  private trim(): number {
    const count = this.changes.length;
    if (count <= COUNT_MAX * SLACK && this.text <= TEXT_MAX * SLACK) return 0;
    let kept = 0;
    let text = 0;
    for (const change of this.changes.slice(-COUNT_MAX).reverse()) {
      text += this.sizeOf(change);
      if (kept && text > TEXT_MAX) break; // the newest always stays
      kept += 1;
    }
    this.setChanges(this.changes.slice(-kept));
    return count - kept;
  }

  private setChanges(changes: StreamChange[]): void {
    this.changes = changes;
    this.text = changes.reduce((sum, change) => sum + this.sizeOf(change), 0);
  }
}

/** Compare changes by time, and within a second by sequence number. */
function compareChanges(one: StreamChange, other: StreamChange): number {
  if (one.at !== other.at) return one.at - other.at;
  const [mine, theirs] = [one.sequence.replace(/^0+/, ""), other.sequence.replace(/^0+/, "")];
  return mine.length - theirs.length || (mine < theirs ? -1 : mine > theirs ? 1 : 0);
}

// Conflict: the item changed since it was opened: the stored changes, the user's changes, and how to continue.
import type { Item, ItemDifference, WriteOutcome } from "../../../generated/api";
import { Button, Notice, Value } from "../../../parts";

interface ConflictProps {
  outcome: WriteOutcome;
  onUseStored: () => void;
  onApplyMine: () => void;
  onKeepEditing: () => void;
}

export function Conflict({ outcome, onUseStored, onApplyMine, onKeepEditing }: ConflictProps) {
  const isDeleted = outcome.current === null;
  const exists = outcome.outcome === "exists";
  const title = exists
    ? "An item with this key already exists"
    : isDeleted
      ? "The item was deleted since you opened it"
      : "The item changed since you opened it";
  return (
    <div class="stack data-conflict">
      <Notice tone="warning" title={title}>
        {exists
          ? "Nothing was written. Open the existing item, or use a different key."
          : "Nothing was written. Compare the stored changes with yours."}
      </Notice>
      {exists ? null : (
        <div class="data-conflict-sides">
          <Side
            title="Stored"
            differences={outcome.theirs ?? []}
            none={isDeleted ? "The item was deleted." : "No differences."}
          />
          <Side title="Yours" differences={outcome.mine ?? []} none="No changes." />
        </div>
      )}
      <div class="row wrap">
        <Button onClick={onKeepEditing}>Keep editing</Button>
        {isDeleted ? null : (
          <Button onClick={onUseStored}>{exists ? "Open existing item" : "Use stored version"}</Button>
        )}
        {exists ? null : (
          <Button kind="primary" onClick={onApplyMine}>
            {isDeleted ? "Create again" : "Apply my changes"}
          </Button>
        )}
      </div>
    </div>
  );
}

function Side({ title, differences, none }: { title: string; differences: readonly ItemDifference[]; none: string }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {differences.length ? (
        <table class="plain">
          <tbody>
            {differences.map((each) => (
              <tr key={each.path}>
                <th scope="row" class="mono">
                  {each.path}
                </th>
                <td>
                  {each.omitted ? (
                    "a long value"
                  ) : (
                    <>
                      <Value value={each.before ?? undefined} /> → <Value value={each.after ?? undefined} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="muted">{none}</p>
      )}
    </section>
  );
}

/** Return the stored item with my changes applied. */
export function rebase(before: Item | null, mine: Item, stored: Item): Item {
  const was = before ?? {};
  const entries = new Map(Object.entries(stored));
  for (const name of new Set([...Object.keys(was), ...Object.keys(mine)])) {
    // hasOwn, since an attribute may be named like an inherited property.
    const value = Object.hasOwn(mine, name) ? mine[name] : undefined;
    if (JSON.stringify(Object.hasOwn(was, name) ? was[name] : undefined) === JSON.stringify(value)) continue;
    if (value === undefined) entries.delete(name);
    else entries.set(name, value);
  }
  return Object.fromEntries(entries);
}

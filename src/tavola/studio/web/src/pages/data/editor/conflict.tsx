// Conflict: somebody wrote first: what they changed, what I would have, and the ways on.
import type { Item, ItemDifference, WriteOutcome } from "../../../generated/api";
import { Button, Notice, Value } from "../../../parts";

interface ConflictProps {
  done: WriteOutcome;
  onTheirs: () => void;
  onMine: () => void;
  onBack: () => void;
}

export function Conflict({ done, onTheirs, onMine, onBack }: ConflictProps) {
  const gone = done.current === null;
  const exists = done.outcome === "exists";
  const title = exists
    ? "An item with this key is there already"
    : gone
      ? "Somebody deleted it meanwhile"
      : "Somebody changed it meanwhile";
  return (
    <div class="stack data-conflict">
      <Notice tone="warning" title={title}>
        {exists
          ? "Nothing was written. Open what is there, or give yours another key."
          : "Nothing was written. Here is what they made of it, and what you would have."}
      </Notice>
      {exists ? null : (
        <div class="data-conflict-sides">
          <Side
            title="Theirs"
            differences={done.theirs ?? []}
            none={gone ? "The item is gone." : "Nothing that is still otherwise."}
          />
          <Side title="Yours" differences={done.mine ?? []} none="Nothing." />
        </div>
      )}
      <div class="row wrap">
        <Button onClick={onBack}>Keep editing</Button>
        {gone ? null : <Button onClick={onTheirs}>{exists ? "Open what is there" : "Take theirs"}</Button>}
        {exists ? null : (
          <Button kind="primary" onClick={onMine}>
            {gone ? "Make it anew" : "Put yours on top of theirs"}
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

/** Return what stands with my changes on top: attributes that I did not touch are theirs. */
export function rebased(before: Item | null, mine: Item, stands: Item): Item {
  const was = before ?? {};
  const entries = new Map(Object.entries(stands));
  for (const name of new Set([...Object.keys(was), ...Object.keys(mine)])) {
    // Own members alone: an attribute may be called as something that every object has.
    const value = Object.hasOwn(mine, name) ? mine[name] : undefined;
    if (JSON.stringify(Object.hasOwn(was, name) ? was[name] : undefined) === JSON.stringify(value)) continue;
    if (value === undefined) entries.delete(name);
    else entries.set(name, value);
  }
  return Object.fromEntries(entries);
}

// Gauge: what the item weighs on the way to 400 KB, what writing it takes, index by index, and which keys follow.
import type { IndexWrite, ItemMeasures } from "../../../generated/api";
import { bytes, num, Progress, Value } from "../../../parts";

const WARN = 0.8;

const EFFECTS: Readonly<Record<IndexWrite["effect"], string>> = {
  enters: "enters",
  leaves: "leaves",
  moves: "moves in",
  updated: "changes in",
  untouched: "untouched in",
  absent: "not in",
};

export function Gauge({ measured, stale, writing }: { measured: ItemMeasures; stale: boolean; writing: boolean }) {
  const share = measured.bytes / measured.bytes_max;
  const over = measured.bytes > measured.bytes_max;
  const touched = measured.indexes.filter((each) => each.effect !== "untouched" && each.effect !== "absent");
  return (
    <div class={`data-editor-gauge ${stale ? "stale" : ""}`} aria-live="polite">
      <Progress
        label="Size of the item"
        value={measured.bytes}
        max={measured.bytes_max}
        {...(over ? { tone: "bad" as const } : share > WARN ? { tone: "warn" as const } : {})}
      />
      <div class="row wrap small">
        <span data-bytes={measured.bytes} class={over ? "data-editor-over" : ""}>
          <strong>{num(measured.bytes)}</strong> bytes of {bytes(measured.bytes_max)} (
          {(share * 100).toFixed(share < 0.1 ? 2 : 0)} %)
        </span>
        {writing && !measured.units ? <span class="muted">not to be written as it is</span> : null}
        {writing && measured.units ? (
          <span data-units={measured.units}>
            <strong>{num(measured.units)}</strong> WCU to write{measured.transactional ? ", in a transaction" : ""}:{" "}
            {num(measured.table_units)} on the table
          </span>
        ) : null}
        {writing
          ? touched.map((each) => (
              <span key={each.index} class={`data-editor-index ${each.effect}`} title={told(each)}>
                {EFFECTS[each.effect]} <span class="mono">{each.index}</span>
                {each.units ? `: ${num(each.units)}` : ""}
              </span>
            ))
          : null}
        {writing && measured.units ? <Rest indexes={measured.indexes} effect="untouched" word="untouched in" /> : null}
        {writing && measured.units ? <Rest indexes={measured.indexes} effect="absent" word="not in" /> : null}
      </div>
      {writing && measured.moves ? (
        <p class="small data-editor-moves">
          Its key changes: the item is deleted where it is and put where the new key says, in one transaction.
        </p>
      ) : null}
      {writing && measured.keys.length ? (
        <details class="small" open={measured.keys.length <= 3}>
          <summary>
            {measured.keys.length === 1 ? "One attribute follows" : `${measured.keys.length} attributes follow`} from
            what you typed
          </summary>
          <ul class="data-editor-follows">
            {measured.keys.map((each) => (
              <li key={each.attribute}>
                <span class="mono">{each.attribute}</span>: <Value value={each.before ?? undefined} /> →{" "}
                <Value value={each.after ?? undefined} />
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </div>
  );
}

/** The indexes that a write leaves alone: their number, and their names when pointed at. */
function Rest({
  indexes,
  effect,
  word,
}: {
  indexes: readonly IndexWrite[];
  effect: IndexWrite["effect"];
  word: string;
}) {
  const all = indexes.filter((each) => each.effect === effect);
  if (!all.length) return null;
  return (
    <span class="data-editor-index" title={all.map((each) => each.index).join(", ")}>
      {word} {all.length === 1 ? <span class="mono">{all[0]?.index}</span> : `${all.length} indexes`}
    </span>
  );
}

function told(each: IndexWrite): string {
  const sizes = [each.bytes_before, each.bytes_after].map((size) => (size === null ? "none" : bytes(size)));
  return `Its entry there: ${sizes[0]} before, ${sizes[1]} after`;
}

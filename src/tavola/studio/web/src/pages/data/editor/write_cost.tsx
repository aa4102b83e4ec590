// WriteCost: the size of the item, the capacity to write it to the table and each index, and the computed keys that change.
import type { IndexWrite, ItemMeasures } from "../../../generated/api";
import { Progress, Value } from "../../../parts";
import { formatBytes, formatNumber, formatPercent } from "../../../format";

const WARN_SHARE = 0.8;

const EFFECTS: Readonly<Record<IndexWrite["effect"], string>> = {
  enters: "added to",
  leaves: "removed from",
  moves: "moves in",
  updated: "updated in",
  untouched: "unchanged in",
  absent: "not in",
};

export function WriteCost({ measured, stale, writing }: { measured: ItemMeasures; stale: boolean; writing: boolean }) {
  const share = measured.bytes / measured.bytes_max;
  const over = measured.bytes > measured.bytes_max;
  const affected = measured.indexes.filter((each) => each.effect !== "untouched" && each.effect !== "absent");
  return (
    <div class={`data-editor-gauge ${stale ? "stale" : ""}`} aria-live="polite">
      <Progress
        label="Item size"
        value={measured.bytes}
        max={measured.bytes_max}
        tone={over ? "bad" : share > WARN_SHARE ? "warn" : undefined}
      />
      <div class="row wrap small">
        <span data-bytes={measured.bytes} class={over ? "data-editor-over" : ""}>
          <strong>{formatNumber(measured.bytes)}</strong> bytes of {formatBytes(measured.bytes_max)} (
          {formatPercent(share)})
        </span>
        {writing && !measured.units ? <span class="muted">can't be saved yet</span> : null}
        {writing && measured.units ? (
          <span data-units={measured.units}>
            <strong>{formatNumber(measured.units)}</strong> write unit{measured.units === 1 ? "" : "s"}
            {measured.transactional ? ", in a transaction" : ""}: {formatNumber(measured.table_units)} on the table
          </span>
        ) : null}
        {writing
          ? affected.map((each) => (
              <span key={each.index} class={`data-editor-index ${each.effect}`} title={entrySizes(each)}>
                {EFFECTS[each.effect]} <span class="mono">{each.index}</span>
                {each.units ? `: ${formatNumber(each.units)}` : ""}
              </span>
            ))
          : null}
        {writing && measured.units ? (
          <OtherIndexes indexes={measured.indexes} effect="untouched" word="unchanged in" />
        ) : null}
        {writing && measured.units ? <OtherIndexes indexes={measured.indexes} effect="absent" word="not in" /> : null}
      </div>
      {writing && measured.moves ? (
        <p class="small data-editor-moves">
          The key changes: the item is deleted and written under the new key in one transaction.
        </p>
      ) : null}
      {writing && measured.keys.length ? (
        <details class="small" open={measured.keys.length <= 3}>
          <summary>
            {measured.keys.length === 1
              ? "1 computed attribute changes"
              : `${measured.keys.length} computed attributes change`}
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

interface OtherIndexesProps {
  indexes: readonly IndexWrite[];
  effect: IndexWrite["effect"];
  word: string;
}

/** The indexes that a write leaves alone: their number, with their names as a tooltip. */
function OtherIndexes({ indexes, effect, word }: OtherIndexesProps) {
  const all = indexes.filter((each) => each.effect === effect);
  if (!all.length) return null;
  return (
    <span class="data-editor-index" title={all.map((each) => each.index).join(", ")}>
      {word} {all.length === 1 ? <span class="mono">{all[0]?.index}</span> : `${all.length} indexes`}
    </span>
  );
}

function entrySizes(each: IndexWrite): string {
  const sizes = [each.bytes_before, each.bytes_after].map((size) => (size === null ? "none" : formatBytes(size)));
  return `Index entry: ${sizes[0]} before, ${sizes[1]} after`;
}

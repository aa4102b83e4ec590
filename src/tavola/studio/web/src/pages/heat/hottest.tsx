// Hottest: the keys that had most, with their share and what may be missing; each leads to its items.
import { href } from "../../app/router";
import type { HotKeyRow, HottestKeys, HotItem, Item } from "../../generated/api";
import { num, Panel } from "../../parts";
import type { SimulatedPlace } from "./simulation";
import { METRIC_WORDS, percent } from "./words";

/** Return the link to a key's items on the data page. */
export function dataLink(table: string, index: string | null, key: Item): string {
  const conditions = Object.entries(key).map(([name, value]) => [name, "=", value]);
  return href({ page: "data", table, params: { index, q: JSON.stringify(conditions) } });
}

function KeyList({
  rows,
  table,
  index,
  metric,
}: {
  rows: readonly HotKeyRow[];
  table: string;
  index: string | null;
  metric: HottestKeys["metric"];
}) {
  return (
    <ol class="heat-keys">
      {rows.map((row) => (
        <li key={row.label}>
          <span class="heat-bar" aria-hidden="true" style={{ width: `${Math.max(1, row.share * 100).toFixed(1)}%` }} />
          <span class="heat-key">
            {row.key ? <a href={dataLink(table, index, row.key)}>{row.label}</a> : row.label}
          </span>
          <span
            class="num"
            title={row.error ? `at most ${num(row.error)} more: it was not counted in every second` : "counted exactly"}
          >
            {num(row.count)}
            {row.error ? "+" : ""}
          </span>
          <span class="num muted">{percent(row.share)}</span>
          {row.throttles && metric !== "throttles" ? (
            <span class="heat-refused">{num(row.throttles)} throttled</span>
          ) : null}
        </li>
      ))}
    </ol>
  );
}

/** Return the values of a key's attributes as one line of text. */
function keyText(key: Item): string {
  return Object.values(key).flatMap(Object.values).map(String).join(" ");
}

function InsightList({
  title,
  keys,
  table,
  index,
}: {
  title: string;
  keys: readonly HotItem[];
  table: string;
  index: string | null;
}) {
  if (!keys.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <ol class="heat-keys">
        {keys.slice(0, 5).map((each) => (
          <li key={keyText(each.key)}>
            <span class="heat-key">
              <a href={dataLink(table, index, each.key)}>{keyText(each.key)}</a>
            </span>
            <span class="num">{num(each.count)}</span>
            <span class="num muted">{each.error ? `−${num(each.error)}` : ""}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

export function Hottest({ found, table, index }: { found: HottestKeys; table: string; index: string | null }) {
  const insights = found.insights;
  return (
    <Panel title="Hottest keys">
      <div class="stack">
        <p class="small muted">
          {num(found.total)} {METRIC_WORDS[found.metric].amount} in this time
        </p>
        {found.partitions.length ? (
          <KeyList rows={found.partitions} table={table} index={index} metric={found.metric} />
        ) : (
          <p class="muted">No key had any.</p>
        )}
        {found.items.length ? (
          <details>
            <summary>By whole key</summary>
            <KeyList rows={found.items} table={table} index={index} metric={found.metric} />
          </details>
        ) : null}
        {insights ? (
          <details>
            <summary>Contributor Insights of the engine</summary>
            <InsightList title="Accessed" keys={insights.accessed ?? []} table={table} index={index} />
            <InsightList title="Throttled" keys={insights.throttled ?? []} table={table} index={index} />
          </details>
        ) : null}
      </div>
    </Panel>
  );
}

/** The busiest keys of a simulated place, and the shards that hot ones need. */
export function SimulatedHottest({ place }: { place: SimulatedPlace }) {
  const most = Math.max(...place.busiest.map((key) => key.peak), 1e-9);
  return (
    <Panel title="Busiest keys">
      <div class="stack">
        {place.busiest.length ? (
          <ol class="heat-keys">
            {place.busiest.map((key) => (
              <li key={key.name}>
                <span
                  class="heat-bar"
                  aria-hidden="true"
                  style={{ width: `${((key.peak / most) * 100).toFixed(1)}%` }}
                />
                <span class="heat-key">{key.name}</span>
                <span class="num" title="units a second at its busiest">
                  {num(Math.round(key.peak))}/s
                </span>
                <span class="num muted" title="units a second on average">
                  {num(Math.round(key.mean * 10) / 10)}
                </span>
                {key.throttled > 0.0005 ? <span class="heat-refused">{percent(key.throttled)} throttled</span> : null}
              </li>
            ))}
          </ol>
        ) : (
          <p class="muted">No key stands out.</p>
        )}
        {place.shards.length ? (
          <>
            <h3>Shards</h3>
            <ul class="small">
              {place.shards.map((each) => (
                <li key={each.keys}>
                  <code>{each.keys}</code>: {each.now} now,{" "}
                  {each.needed === null ? "no number is enough" : `${each.needed} needed`}
                </li>
              ))}
            </ul>
          </>
        ) : null}
      </div>
    </Panel>
  );
}

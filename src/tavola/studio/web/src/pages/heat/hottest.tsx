// Hottest: the busiest keys with their share; each links to its items.
import { href } from "../../app/router";
import type { HotKeyRow, HottestKeys, HotItem, Item } from "../../generated/api";
import { Panel } from "../../parts";

import type { SimulatedTarget } from "./simulation";
import { METRIC_LABELS } from "./labels";
import { formatNumber, formatPercent } from "../../format";

/** Return the link to a key's items on the data page. */
export function dataLink(table: string, index: string | null, key: Item): string {
  const conditions = Object.entries(key).map(([name, value]) => [name, "=", value]);
  return href({ page: "data", table, params: { index, q: JSON.stringify(conditions) } });
}

interface KeyListProps {
  rows: readonly HotKeyRow[];
  table: string;
  index: string | null;
  metric: HottestKeys["metric"];
}

function KeyList({ rows, table, index, metric }: KeyListProps) {
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
            title={row.error ? `up to ${formatNumber(row.error)} more: not counted in every second` : "exact count"}
          >
            {formatNumber(row.count)}
            {row.error ? "+" : ""}
          </span>
          <span class="num muted">{formatPercent(row.share)}</span>
          {row.throttles && metric !== "throttles" ? (
            <span class="heat-throttled">{formatNumber(row.throttles)} throttled</span>
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

interface InsightListProps {
  title: string;
  keys: readonly HotItem[];
  table: string;
  index: string | null;
}

function InsightList({ title, keys, table, index }: InsightListProps) {
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
            <span class="num">{formatNumber(each.count)}</span>
            <span class="num muted">{each.error ? `−${formatNumber(each.error)}` : ""}</span>
          </li>
        ))}
      </ol>
    </>
  );
}

export function Hottest({ hottest, table, index }: { hottest: HottestKeys; table: string; index: string | null }) {
  const insights = hottest.insights;
  return (
    <Panel title="Hottest keys">
      <div class="stack">
        <p class="small muted">
          {formatNumber(hottest.total)} {METRIC_LABELS[hottest.metric].amount} in this period
        </p>
        {hottest.partitions.length ? (
          <KeyList rows={hottest.partitions} table={table} index={index} metric={hottest.metric} />
        ) : (
          <p class="muted">No traffic on any key.</p>
        )}
        {hottest.items.length ? (
          <details>
            <summary>By primary key</summary>
            <KeyList rows={hottest.items} table={table} index={index} metric={hottest.metric} />
          </details>
        ) : null}
        {insights ? (
          <details>
            <summary>Contributor Insights</summary>
            <InsightList title="Accessed" keys={insights.accessed ?? []} table={table} index={index} />
            <InsightList title="Throttled" keys={insights.throttled ?? []} table={table} index={index} />
          </details>
        ) : null}
      </div>
    </Panel>
  );
}

/** The busiest keys of a simulated table or index, and the shards that hot keys need. */
export function SimulatedHottest({ place }: { place: SimulatedTarget }) {
  const most = Math.max(...place.busiest.map((key) => key.peak), 1e-9);
  return (
    <Panel title="Busiest keys">
      <div class="stack">
        {place.busiest.length ? <p class="muted">Peak and mean, in units per second</p> : null}
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
                <span class="num" title="peak units per second">
                  {formatNumber(key.peak, 0)}/s
                </span>
                <span class="num muted" title="average units per second">
                  {formatNumber(key.mean, 1)}
                </span>
                {key.throttled > 0.0005 ? (
                  <span class="heat-throttled">{formatPercent(key.throttled)} throttled</span>
                ) : null}
              </li>
            ))}
          </ol>
        ) : (
          <p class="muted">No hot keys.</p>
        )}
        {place.shards.length ? (
          <>
            <h3>Shards</h3>
            <ul class="small">
              {place.shards.map((each) => (
                <li key={each.keys}>
                  <code>{each.keys}</code>: {each.now} now,{" "}
                  {each.needed === null ? "no shard count is enough" : `${each.needed} needed`}
                </li>
              ))}
            </ul>
          </>
        ) : null}
      </div>
    </Panel>
  );
}

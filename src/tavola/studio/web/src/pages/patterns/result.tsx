// Result: the items, consumed capacity and cost of a run; the totals first, then the requests, then the items.
import { useState } from "preact/hooks";
import { href } from "../../app/router";
import type {
  AttributeValue,
  DesignedPattern,
  Item,
  PatternForecast,
  PatternRun,
  ConsumedUnits,
  RunItem,
  RunRequest,
} from "../../generated/api";
import {
  TableHead,
  numeric,
  Badge,
  Chip,
  Code,
  Empty,
  Panel,
  Segmented,
  ShowAll,
  Stat,
  Stats,
  Value,
} from "../../parts";
import { formatBytes, formatCount, formatLatency, formatMoney, formatNumber } from "../../format";

const ROWS_SHOWN = 50;
const ATTRIBUTES_SHOWN = 6; // beside the keys

function units(value: number): string {
  return formatCount(value, "unit");
}

/** Return the result of a run in a few words, for screen readers. */
export function summary(run: PatternRun): string {
  return `${formatCount(run.returned, "item")}, ${units(run.read_units + run.write_units)}`;
}

export function Result({ pattern, run }: { pattern: DesignedPattern; run: PatternRun }) {
  return (
    <div class="stack patterns-result" data-testid="pattern-result">
      <Panel title="Result" actions={<span class="small muted">on-demand, {run.book} prices</span>}>
        <div class="stack">
          <Stats>
            <Stat
              label="Items"
              value={formatNumber(run.returned)}
              beside={
                run.read === run.returned
                  ? run.more
                    ? "more may exist"
                    : "all matching items"
                  : `of ${formatNumber(run.read)} read`
              }
            />
            <Stat
              label="API calls"
              value={formatNumber(run.calls)}
              beside={formatCount(run.requests.length, "request")}
            />
            <Stat
              label={run.write_units ? "Units" : "Read units"}
              value={formatNumber(run.read_units + run.write_units)}
              beside={
                run.forecast.units.length
                  ? `estimated ${formatNumber(run.forecast.read + run.forecast.write)}`
                  : "no estimate"
              }
            />
            <Stat
              label="Read amplification"
              value={run.waste === null ? "–" : `${formatNumber(run.waste)}×`}
              beside="items read ÷ returned"
              tone={run.waste !== null && run.waste > 2 ? "warn" : undefined}
            />
            <Stat
              label="Cost per million"
              value={run.usd_per_million === null ? "unknown" : formatMoney(run.usd_per_million)}
              beside={
                run.forecast.usd_per_million === null || !run.forecast.units.length
                  ? ""
                  : `estimated ${formatMoney(run.forecast.usd_per_million)}`
              }
            />
            <Stat label="Latency" value={formatLatency(run.latency_ms)} beside="all calls" />
          </Stats>
          <UnitBars consumed={run.units} estimated={run.forecast.units.length ? run.forecast.units : null} />
          <ul class="patterns-why">
            {run.why.map((each, at) => (
              <li key={at}>{each}</li>
            ))}
          </ul>
          {run.notes.map((each, at) => (
            <p key={at} class="small muted">
              {each}
            </p>
          ))}
          <MonthLine forecast={run.forecast} />
        </div>
      </Panel>
      <Requests requests={run.requests} />
      <Rows pattern={pattern} items={run.items} />
      <CodePanel run={run} />
    </div>
  );
}

/** The monthly cost at the declared rate. */
function MonthLine({ forecast }: { forecast: PatternForecast }) {
  if (forecast.usd_per_month === null || forecast.per_second === null) return null;
  return (
    <p class="small muted">
      At the declared rate of {formatNumber(forecast.per_second)} per second it costs{" "}
      {formatMoney(forecast.usd_per_month)} per month (see <a href={href({ page: "cost", params: {} })}>Cost</a>).
    </p>
  );
}

interface UnitBarsProps {
  consumed: readonly ConsumedUnits[];
  estimated: readonly ConsumedUnits[] | null;
}

/** The units of each table and index as bars: consumed and, if given, estimated. */
function UnitBars({ consumed, estimated }: UnitBarsProps) {
  const name = (each: ConsumedUnits) => `${each.table}/${each.index ?? ""}`;
  const places = new Map<string, { label: string; consumed: number; estimated: number }>();
  for (const [list, word] of [
    [consumed, "consumed"],
    [estimated ?? [], "estimated"],
  ] as const) {
    for (const each of list) {
      const place = places.get(name(each)) ?? { label: each.index ?? each.table, consumed: 0, estimated: 0 };
      place[word] += each.reads + each.writes;
      places.set(name(each), place);
    }
  }
  const most = Math.max(...[...places.values()].flatMap((each) => [each.consumed, each.estimated]), 0.5);
  const width = (value: number) => ({ width: `${((value / most) * 100).toFixed(2)}%` });
  return (
    <table class="patterns-units">
      <caption class="hidden-text">Units by table and index</caption>
      <thead>
        <tr>
          <th scope="col">Table or index</th>
          <td aria-hidden="true" />
          <th scope="col" class="num">
            {estimated ? "Consumed" : "Units"}
          </th>
          {estimated ? (
            <th scope="col" class="num">
              {" "}
              Estimated{" "}
            </th>
          ) : null}
        </tr>
      </thead>
      <tbody>
        {[...places.entries()].map(([id, each]) => (
          <tr key={id}>
            <th scope="row">{each.label}</th>
            <td class="bar" aria-hidden="true">
              <div style={width(each.consumed)} />
              {estimated ? <div class="estimated" style={width(each.estimated)} /> : null}
            </td>
            <td class="num">{formatNumber(each.consumed)}</td>
            {estimated ? <td class="num muted">{formatNumber(each.estimated)}</td> : null}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Requests({ requests }: { requests: readonly RunRequest[] }) {
  return (
    <Panel title={`Requests (${requests.length})`} flush>
      {requests.length ? (
        <ol class="patterns-requests">
          {requests.map((each, at) => (
            <li key={at}>
              <Request request={each} />
            </li>
          ))}
        </ol>
      ) : (
        <Empty title="No requests" />
      )}
    </Panel>
  );
}

function unitsOf(call: RunRequest["calls"][number]): number {
  return call.units.reduce((sum, each) => sum + each.reads + each.writes, 0);
}

function Request({ request }: { request: RunRequest }) {
  const consumed = request.calls.reduce((sum, call) => sum + unitsOf(call), 0);
  const returned = request.calls.reduce((sum, call) => sum + call.returned, 0);
  const read = request.calls.reduce((sum, call) => sum + call.read, 0);
  return (
    <details>
      <summary>
        <span class="row tight">
          <Badge>{request.operation}</Badge>
          <span class="patterns-on">{request.index ?? request.table}</span>
          <span class="small muted num">
            {formatNumber(returned)} of {formatNumber(read)} read · {units(consumed)} ·{" "}
            {formatCount(request.calls.length, "call")}
          </span>
          {request.more ? <Badge>more available</Badge> : null}
        </span>
        {request.condition ? <code class="patterns-condition">{request.condition}</code> : null}
        {request.filter ? (
          <code class="patterns-condition">
            <span class="warn">filter</span> {request.filter}
          </code>
        ) : null}
      </summary>
      <div class="patterns-request-body stack">
        {request.calls.length > 1 ? (
          <table class="plain">
            <caption class="hidden-text">Calls</caption>
            <TableHead columns={["Call", numeric("Returned"), numeric("Read"), numeric("Units"), numeric("Latency")]} />
            <tbody>
              {request.calls.map((call, at) => (
                <tr key={at}>
                  <td>{at + 1}</td>
                  <td class="num">{formatNumber(call.returned)}</td>
                  <td class="num">{formatNumber(call.read)}</td>
                  <td class="num">{formatNumber(unitsOf(call))}</td>
                  <td class="num">{formatLatency(call.latency_ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : null}
        <Code text={JSON.stringify(request.body, null, 2)} label="Request" />
      </div>
    </details>
  );
}

function Rows({ pattern, items }: { pattern: DesignedPattern; items: readonly RunItem[] }) {
  const [all, setAll] = useState(false);
  if (!items.length) {
    return (
      <Panel title="Items">
        <Empty title="No items found">
          No items have this key. Try other values, or leave out part of the sort key.
        </Empty>
      </Panel>
    );
  }
  const keys = Object.keys(items[0]?.key ?? {});
  const counts = new Map<string, number>();
  for (const { item } of items)
    for (const name of Object.keys(item)) if (!keys.includes(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
  // Attributes that most items have come first; index key attributes repeat other attributes and are left out.
  const columns = [...counts.entries()]
    .filter(([name]) => !/^(GSI|LSI)\d*(PK|SK)/i.test(name))
    .sort((one, other) => other[1] - one[1])
    .slice(0, ATTRIBUTES_SHOWN)
    .map(([name]) => name);
  const shown = all ? items : items.slice(0, ROWS_SHOWN);
  return (
    <Panel title={`Items (${items.length})`} flush>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Items">
        <table class="plain patterns-rows">
          <thead>
            <tr>
              <th scope="col">Entity</th>
              {[...keys, ...columns].map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ item, key, entity }, at) => (
              <tr key={at}>
                <td>{entity ? <Chip name={entity} /> : <span class="muted">unknown</span>}</td>
                {keys.map((name, place) => (
                  <td key={name}>
                    {place === 0 ? (
                      <ItemLink table={pattern.table} item={key} value={item[name]} />
                    ) : (
                      <Value value={item[name]} />
                    )}
                  </td>
                ))}
                {columns.map((name) => (
                  <td key={name}>
                    <Value value={item[name]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <ShowAll total={items.length} shown={shown.length} onShow={() => setAll(true)} />
    </Panel>
  );
}

function ItemLink({ table, item, value }: { table: string; item: Item; value: AttributeValue | undefined }) {
  return (
    <a href={href({ page: "data", table, params: { item: JSON.stringify(item) } })} title="Open in Data">
      <Value value={value} />
    </a>
  );
}

function CodePanel({ run }: { run: PatternRun }) {
  const ways: readonly { value: string; label: string; text: string | null }[] = [
    { value: "tavola", label: "Tavola", text: run.code.tavola },
    { value: "boto3", label: "boto3", text: run.code.boto3 },
    { value: "cli", label: "AWS CLI", text: run.code.cli },
  ];
  const [chosen, setChosen] = useState(run.code.tavola === null ? "boto3" : "tavola");
  const text = ways.find((each) => each.value === chosen)?.text ?? null;
  return (
    <Panel title="Code" actions={<Segmented label="Language" options={ways} value={chosen} onChange={setChosen} />}>
      {text === null ? (
        <p class="muted">
          No Tavola client code: the design was loaded from a document, or the pattern is a declared need.
        </p>
      ) : (
        <Code text={text} label={`Code for ${chosen}`} />
      )}
    </Panel>
  );
}

/** The estimated capacity and cost of a pattern, before it is run or where it cannot be. */
export function Estimate({ pattern, forecast }: { pattern: DesignedPattern; forecast: PatternForecast }) {
  const write = pattern.kind === "write";
  if (!forecast.units.length) {
    return (
      <Panel title="Estimated cost">
        <p class="muted" data-testid="pattern-forecast">
          No estimate: the design declares no route for this need, so it has no units or cost yet.
        </p>
      </Panel>
    );
  }
  return (
    <Panel title="Estimated cost" actions={<span class="small muted">on-demand, {forecast.book} prices</span>}>
      <div class="stack" data-testid="pattern-forecast">
        <Stats>
          {forecast.write ? (
            <Stat label="Write units" value={formatNumber(forecast.write)} beside="per request" />
          ) : null}
          {forecast.read || !forecast.write ? (
            <Stat
              label="Read units"
              value={formatNumber(forecast.read)}
              beside={write ? "to read the item first" : "per request"}
            />
          ) : null}
          <Stat
            label="Cost per million"
            value={forecast.usd_per_million === null ? "unknown" : formatMoney(forecast.usd_per_million)}
          />
          <Stat
            label="Declared items"
            value={forecast.items === null ? "–" : formatCount(forecast.items, "item")}
            beside={forecast.item_bytes === null ? "no size declared" : `${formatBytes(forecast.item_bytes)} each`}
          />
        </Stats>
        {forecast.units.length ? <UnitBars consumed={forecast.units} estimated={null} /> : null}
        <MonthLine forecast={forecast} />
      </div>
    </Panel>
  );
}

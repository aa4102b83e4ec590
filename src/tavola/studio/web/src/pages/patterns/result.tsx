// Result: what a run gave, took and cost; the numbers first, then the requests, then the rows.
import { useState } from "preact/hooks";
import { href } from "../../app/router";
import type {
  AttributeValue,
  DesignedPattern,
  Item,
  PatternForecast,
  PatternRun,
  TargetUnits,
  RunItem,
  RunRequest,
} from "../../generated/api";
import {
  Badge,
  Button,
  cents,
  Chip,
  Code,
  Empty,
  money,
  ms,
  num,
  Panel,
  Segmented,
  Stat,
  Stats,
  Value,
} from "../../parts";

const ROWS = 50; // shown until somebody asks for all
const COLUMNS = 6; // attributes beside the keys

/** Return dollars with cents at least; a run costs parts of them, which stay. */
function dollars(text: string): string {
  const [whole = "0", rest = ""] = text.split(".");
  return money(`${whole}.${rest.padEnd(2, "0")}`);
}

function units(value: number): string {
  return `${num(value)} unit${value === 1 ? "" : "s"}`;
}

/** Return what a run came to in a few words, for who does not see it. */
export function summary(run: PatternRun): string {
  return `${num(run.returned)} item${run.returned === 1 ? "" : "s"}, ${units(run.read_units + run.write_units)}`;
}

export function Result({ pattern, run }: { pattern: DesignedPattern; run: PatternRun }) {
  return (
    <div class="stack patterns-result" data-testid="pattern-result">
      <Panel
        title="What it took"
        actions={<span class="small muted">money at the prices of {run.book}, on demand</span>}
      >
        <div class="stack">
          <Stats>
            <Stat
              label="items"
              value={num(run.returned)}
              beside={
                run.read === run.returned
                  ? run.more
                    ? "perhaps more are there"
                    : "all there are"
                  : `of ${num(run.read)} read`
              }
            />
            <Stat
              label="calls"
              value={num(run.calls)}
              beside={`${run.requests.length} request${run.requests.length === 1 ? "" : "s"}`}
            />
            <Stat
              label={run.write_units ? "units" : "read units"}
              value={num(run.read_units + run.write_units)}
              beside={
                run.forecast.units.length
                  ? `foretold ${num(run.forecast.read + run.forecast.write)}`
                  : "nothing foretold"
              }
            />
            <Stat
              label="waste"
              value={run.waste === null ? "–" : `${num(run.waste)} ×`}
              beside="read ÷ returned"
              {...(run.waste !== null && run.waste > 2 ? { tone: "warn" as const } : {})}
            />
            <Stat
              label="per million"
              value={run.usd_per_million === null ? "not known" : dollars(run.usd_per_million)}
              beside={
                run.forecast.usd_per_million === null || !run.forecast.units.length
                  ? ""
                  : `foretold ${dollars(run.forecast.usd_per_million)}`
              }
            />
            <Stat label="latency" value={ms(run.latency_ms)} beside="all calls together" />
          </Stats>
          <UnitBars took={run.units} foretold={run.forecast.units.length ? run.forecast.units : null} />
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

/** What `tavola cost` says of the pattern. */
function MonthLine({ forecast }: { forecast: PatternForecast }) {
  if (forecast.usd_per_month === null || forecast.per_second === null) return null;
  return (
    <p class="small muted">
      Asked {num(forecast.per_second)} times a second, as declared, it costs {cents(forecast.usd_per_month)} a month by{" "}
      <a href={href({ page: "cost", params: {} })}>tavola cost</a>.
    </p>
  );
}

/** The units of each place as bars: what was taken, and beside it what the design foretells. */
function UnitBars({ took, foretold }: { took: readonly TargetUnits[]; foretold: readonly TargetUnits[] | null }) {
  const name = (each: TargetUnits) => `${each.table}/${each.index ?? ""}`;
  const places = new Map<string, { label: string; took: number; foretold: number }>();
  for (const [list, word] of [
    [took, "took"],
    [foretold ?? [], "foretold"],
  ] as const) {
    for (const each of list) {
      const place = places.get(name(each)) ?? { label: each.index ?? each.table, took: 0, foretold: 0 };
      place[word] += each.read + each.write;
      places.set(name(each), place);
    }
  }
  const most = Math.max(...[...places.values()].flatMap((each) => [each.took, each.foretold]), 0.5);
  const width = (value: number) => ({ width: `${((value / most) * 100).toFixed(2)}%` });
  return (
    <table class="patterns-units">
      <caption class="hidden-text">Units at each place</caption>
      <thead>
        <tr>
          <th scope="col">place</th>
          <td aria-hidden="true" />
          <th scope="col" class="num">
            {foretold ? "took" : "units"}
          </th>
          {foretold ? (
            <th scope="col" class="num">
              foretold
            </th>
          ) : null}
        </tr>
      </thead>
      <tbody>
        {[...places.entries()].map(([id, each]) => (
          <tr key={id}>
            <th scope="row">{each.label}</th>
            <td class="bar" aria-hidden="true">
              <div style={width(each.took)} />
              {foretold ? <div class="foretold" style={width(each.foretold)} /> : null}
            </td>
            <td class="num">{num(each.took)}</td>
            {foretold ? <td class="num muted">{num(each.foretold)}</td> : null}
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
        <Empty title="No request was made" />
      )}
    </Panel>
  );
}

function Request({ request }: { request: RunRequest }) {
  const taken = request.calls.reduce(
    (sum, call) => sum + call.units.reduce((all, each) => all + each.read + each.write, 0),
    0,
  );
  const returned = request.calls.reduce((sum, call) => sum + call.returned, 0);
  const read = request.calls.reduce((sum, call) => sum + call.read, 0);
  return (
    <details>
      <summary>
        <span class="row tight">
          <Badge>{request.operation}</Badge>
          <span class="patterns-on">{request.index ?? request.table}</span>
          <span class="small muted num">
            {num(returned)} of {num(read)} read · {units(taken)} ·{" "}
            {request.calls.length === 1 ? "1 call" : `${request.calls.length} calls`}
          </span>
          {request.more ? <Badge>more there</Badge> : null}
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
            <thead>
              <tr>
                <th scope="col">call</th>
                <th scope="col" class="num">
                  returned
                </th>
                <th scope="col" class="num">
                  read
                </th>
                <th scope="col" class="num">
                  units
                </th>
                <th scope="col" class="num">
                  latency
                </th>
              </tr>
            </thead>
            <tbody>
              {request.calls.map((call, at) => (
                <tr key={at}>
                  <td>{at + 1}</td>
                  <td class="num">{num(call.returned)}</td>
                  <td class="num">{num(call.read)}</td>
                  <td class="num">{num(call.units.reduce((sum, each) => sum + each.read + each.write, 0))}</td>
                  <td class="num">{ms(call.latency_ms)}</td>
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
        <Empty title="Nothing came back">
          The key was asked and nothing stands there. Try other values, or leave a sort part out.
        </Empty>
      </Panel>
    );
  }
  const keys = Object.keys(items[0]?.key ?? {});
  const counted = new Map<string, number>();
  for (const { item } of items)
    for (const name of Object.keys(item)) if (!keys.includes(name)) counted.set(name, (counted.get(name) ?? 0) + 1);
  // What every row has comes first, and attributes that only make keys of indexes say nothing new.
  const columns = [...counted.entries()]
    .filter(([name]) => !/^(GSI|LSI)\d*(PK|SK)/i.test(name))
    .sort((one, other) => other[1] - one[1])
    .slice(0, COLUMNS)
    .map(([name]) => name);
  const shown = all ? items : items.slice(0, ROWS);
  return (
    <Panel title={`Items (${items.length})`} flush>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Items">
        <table class="plain patterns-rows">
          <thead>
            <tr>
              <th scope="col">entity</th>
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
      {items.length > shown.length ? (
        <div class="patterns-more">
          <Button small onClick={() => setAll(true)}>
            Show all {items.length}
          </Button>
        </div>
      ) : null}
    </Panel>
  );
}

function ItemLink({ table, item, value }: { table: string; item: Item; value: AttributeValue | undefined }) {
  return (
    <a href={href({ page: "data", table, params: { item: JSON.stringify(item) } })} title="Open it in the data">
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
    <Panel title="As code" actions={<Segmented label="Language" options={ways} value={chosen} onChange={setChosen} />}>
      {text === null ? (
        <p class="muted">The design is a document or the pattern a need, so there is no class to name.</p>
      ) : (
        <Code text={text} label={`The run as ${chosen}`} />
      )}
    </Panel>
  );
}

/** What a pattern takes by the design's numbers, for what is not run, and before it is. */
export function Forecast({ pattern, forecast }: { pattern: DesignedPattern; forecast: PatternForecast }) {
  const write = pattern.kind === "write";
  if (!forecast.units.length) {
    return (
      <Panel title="What the design foretells">
        <p class="muted" data-testid="pattern-forecast">
          Nothing: the design does not say how this need is asked today (its route), so it has no units and no cost yet.
        </p>
      </Panel>
    );
  }
  return (
    <Panel
      title="What the design foretells"
      actions={<span class="small muted">at the prices of {forecast.book}, on demand</span>}
    >
      <div class="stack" data-testid="pattern-forecast">
        <Stats>
          {forecast.write ? <Stat label="write units" value={num(forecast.write)} beside="each time" /> : null}
          {forecast.read || !forecast.write ? (
            <Stat
              label="read units"
              value={num(forecast.read)}
              beside={write ? "to know the item first" : "each time"}
            />
          ) : null}
          <Stat
            label="per million"
            value={forecast.usd_per_million === null ? "not known" : dollars(forecast.usd_per_million)}
          />
          <Stat
            label="declared"
            value={forecast.items === null ? "–" : `${num(forecast.items)} item${forecast.items === 1 ? "" : "s"}`}
            beside={forecast.item_bytes === null ? "no size said" : `of ${num(forecast.item_bytes)} B`}
          />
        </Stats>
        {forecast.units.length ? <UnitBars took={forecast.units} foretold={null} /> : null}
        <MonthLine forecast={forecast} />
      </div>
    </Panel>
  );
}

// Dearest: the requests that consumed most or took longest, why, and once more at a press.
import { useEffect, useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { useParam } from "../../app/router";
import type { ExpensiveRequestRow, Problem, ReplayResult, CapacityUnits } from "../../generated/api";
import { ago, Badge, Bars, Button, Code, Empty, ms, num, Panel, ProblemNotice, Segmented, Spinner } from "../../parts";
import { clock, placeName, useFilters, windowText } from "./asked";
import { useLive } from "./live";

const BY = [
  { value: "units", label: "By units" },
  { value: "time", label: "By time" },
];

export function Dearest({ paused }: { paused: boolean }) {
  const filters = useFilters();
  const [by, setBy] = useParam("by", "units");
  const [opened, setOpened] = useParam("open");
  const open = /^\d+$/.test(opened) ? Number(opened) : null;
  const asks = { ...filters, by: by === "time" ? ("time" as const) : ("units" as const) };
  const [standing, setStanding] = useState(false);
  // While one is open the list stands still: nobody reads a page that moves.
  const live = useLive("GET /operations/dearest", asks, 3000, paused || standing);
  const requests = live.data?.requests ?? [];
  const found = requests.some((each) => each.number === open);
  useEffect(() => setStanding(found), [found]);
  const most = Math.max(...requests.map((each) => (by === "time" ? each.took_ms : each.units)), 0) || 1;
  return (
    <Panel
      title="Dearest requests"
      flush
      actions={<Segmented label="Dearest" options={BY} value={by} onChange={setBy} />}
    >
      {live.problem ? <ProblemNotice problem={live.problem} again={live.again} /> : null}
      {live.data === null && !live.problem ? <Spinner /> : null}
      {live.data && !requests.length ? (
        <Empty title="Nothing was asked">In {windowText(filters.window_s)} there was no such request.</Empty>
      ) : (
        <ul class="operations-dear">
          {requests.map((each) => (
            <Row
              key={each.number}
              dear={each}
              by={by}
              most={most}
              open={open === each.number}
              toggle={() => setOpened(open === each.number ? "" : String(each.number), true)}
            />
          ))}
        </ul>
      )}
      <p class="operations-more small muted">
        One of each form, the dearest. Kept in memory alone, for six hours; of writes the key and the expressions, no
        values.
      </p>
    </Panel>
  );
}

function Row({
  dear,
  by,
  most,
  open,
  toggle,
}: {
  dear: ExpensiveRequestRow;
  by: string;
  most: number;
  open: boolean;
  toggle: () => void;
}) {
  const id = `dear-${dear.number}`;
  const index = dear.consumed.find((each) => each.index && each.reads > 0)?.index;
  const cost = by === "time" ? dear.took_ms : dear.units;
  return (
    <li>
      <button type="button" class="operations-dear-row" aria-expanded={open} aria-controls={id} onClick={toggle}>
        <span class="operations-cost num">{by === "time" ? ms(dear.took_ms) : `${num(dear.units)} units`}</span>
        <span class="operations-meter" aria-hidden="true">
          <span style={{ width: `${((cost / most) * 100).toFixed(1)}%` }} />
        </span>
        <span class="operations-what">
          <strong>{dear.operation}</strong>{" "}
          <span class="muted">{index ? placeName(dear.tables.join(", "), index) : dear.tables.join(", ")}</span>
        </span>
        <span class="operations-beside num muted">{by === "time" ? `${num(dear.units)} units` : ms(dear.took_ms)}</span>
        <span class="operations-when muted">{ago(dear.at_s * 1000)}</span>
        {dear.fault ? <Badge tone="warn">{dear.fault}</Badge> : null}
      </button>
      {open ? (
        <div id={id} class="operations-dear-more stack">
          <Details dear={dear} />
        </div>
      ) : null}
    </li>
  );
}

function Details({ dear }: { dear: ExpensiveRequestRow }) {
  const [state, setState] = useState<{ busy: boolean; found: ReplayResult | null; problem: Problem | null }>({
    busy: false,
    found: null,
    problem: null,
  });
  const replay = async () => {
    setState({ busy: true, found: null, problem: null });
    try {
      const found = await call("POST /operations/replay", { operation: dear.operation, request: dear.request });
      setState({ busy: false, found, problem: found.problem ?? null });
    } catch (thrown) {
      setState({ busy: false, found: null, problem: problemOf(thrown) });
    }
  };
  return (
    <>
      {dear.why.length ? (
        <div class="stack tight">
          <h3>Why it is dear</h3>
          <ul class="operations-why">
            {dear.why.map((why) => (
              <li key={why}>{why}</li>
            ))}
          </ul>
        </div>
      ) : null}
      <div class="operations-both">
        <div class="stack tight">
          <h3>Units by place</h3>
          {dear.consumed.length ? (
            <Units consumed={dear.consumed} caption={`Units of ${dear.operation} at ${clock(dear.at_s)}`} />
          ) : (
            <p class="muted">It consumed none.</p>
          )}
          <p class="small muted">
            At {clock(dear.at_s)}, in {ms(dear.took_ms)}
            {dear.operation === "Scan"
              ? ""
              : `, of ${num(dear.items)} ${dear.items === 1 ? "item or partition" : "items or partitions"}`}
            .
          </p>
          <div class="row">
            <Button
              kind="primary"
              disabled={!dear.replayable || state.busy}
              onClick={replay}
              title={dear.replayable ? undefined : "Only reads are made again"}
            >
              Run it again
            </Button>
            {dear.replayable ? null : (
              <span class="small muted">
                {"omitted" in dear.request ? "Too long to be kept." : "It writes, and is not made again."}
              </span>
            )}
            {state.busy ? <Spinner label="Running" /> : null}
          </div>
          {state.problem ? <ProblemNotice problem={state.problem} /> : null}
          {state.found && !state.found.problem ? <Again found={state.found} dear={dear} /> : null}
        </div>
        <div class="stack tight">
          <h3>Request</h3>
          <Code text={JSON.stringify(dear.request, null, 2)} label={`Request of ${dear.operation}`} />
        </div>
      </div>
    </>
  );
}

function Units({ consumed, caption }: { consumed: readonly CapacityUnits[]; caption: string }) {
  const bars = consumed.map((each) => ({
    id: placeName(each.table, each.index),
    label: placeName(each.table, each.index),
    value: each.reads + each.writes,
    shown: [each.reads ? `${num(each.reads)} read` : "", each.writes ? `${num(each.writes)} written` : ""]
      .filter(Boolean)
      .join(", "),
  }));
  return <Bars bars={bars} caption={caption} />;
}

function Again({ found, dear }: { found: ReplayResult; dear: ExpensiveRequestRow }) {
  const units = found.reads + found.writes;
  const waste =
    found.count !== null && found.scanned
      ? `${num(found.scanned)} read, ${num(found.count ?? 0)} given`
      : `${num(found.count ?? 0)} given`;
  return (
    <div class="operations-again" role="status">
      <table class="plain">
        <caption class="hidden-text">The request then and now</caption>
        <thead>
          <tr>
            <td />
            <th scope="col" class="num">
              Then
            </th>
            <th scope="col" class="num">
              Now
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">Units</th>
            <td class="num nowrap">{num(dear.units)}</td>
            <td class="num">{num(units)}</td>
          </tr>
          <tr>
            <th scope="row">Time</th>
            <td class="num nowrap">{ms(dear.took_ms)}</td>
            <td class="num">{ms(found.took_ms)}</td>
          </tr>
          <tr>
            <th scope="row">Items</th>
            <td />
            <td class="num">
              {waste}
              {found.more ? ", and there is more" : ""}
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}

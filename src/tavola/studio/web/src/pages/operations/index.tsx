// Operations: requests, latency, capacity and the dearest requests live; the access log; who may do what.
import { useState } from "preact/hooks";
import { useCommands } from "../../app/commands";
import { useParam } from "../../app/router";
import { session } from "../../app/session";
import { Button, Empty, Notice, num, ProblemNotice, Segmented, Select, Spinner, Tabs } from "../../parts";
import type { OperationsSummary } from "../../generated/api";
import { PLACES, PLACES_MAX, setFilter, useFilters, WINDOWS } from "./asked";
import { Dearest } from "./dearest";
import { Explain } from "./explain";
import { type Lively, useLive } from "./live";
import { Log } from "./log";
import { Overview } from "./overview";
import "./page.css";

const TABS = [
  { value: "overview", label: "Overview" },
  { value: "dearest", label: "Dearest requests" },
  { value: "log", label: "Access log" },
  { value: "iam", label: "IAM explain" },
];

export default function OperationsPage() {
  const [tab, setTab] = useParam("tab", "overview");
  useCommands(
    TABS.map((each) => ({
      id: `operations-${each.value}`,
      title: `Operations: ${each.label}`,
      group: "Operations",
      run: () => setTab(each.value),
    })),
  );
  return (
    <div class="page operations-page">
      <div class="page-head">
        <h1>Operations</h1>
      </div>
      <Tabs label="Operations" tabs={TABS} value={tab} onChange={setTab} panel="operations-panel" />
      <div
        id="operations-panel"
        role="tabpanel"
        aria-label={TABS.find((each) => each.value === tab)?.label ?? "Overview"}
        class="stack"
      >
        {tab === "log" ? <Log /> : tab === "iam" ? <Explain /> : <Watched tab={tab} />}
      </div>
    </div>
  );
}

function Watched({ tab }: { tab: string }) {
  const filters = useFilters();
  const [paused, setPaused] = useState(false);
  const [all] = useParam("places", "");
  // What is not shown is not asked for: the other tab needs the choice of filters alone.
  const asks = { ...filters, places: tab === "dearest" ? 0 : all ? PLACES_MAX : PLACES };
  const live = useLive("GET /operations", asks, tab === "dearest" ? 5000 : everyMs(filters.window_s), paused);
  const next = () => {
    const at = WINDOWS.findIndex((each) => each.value === String(filters.window_s));
    setFilter({ w: WINDOWS[(at + 1) % WINDOWS.length]?.value ?? "600" });
  };
  useCommands([
    {
      id: "operations-pause",
      title: paused ? "Go on" : "Pause",
      keys: "p",
      group: "Operations",
      run: () => setPaused(!paused),
    },
    { id: "operations-window", title: "The next window", keys: "w", group: "Operations", run: next },
  ]);
  if (live.problem?.code === "watch-missing") {
    return (
      <Empty title={live.problem.title}>
        {live.problem.detail} {live.problem.remedy}
      </Empty>
    );
  }
  return (
    <>
      <Bar live={live} paused={paused} onPause={() => setPaused(!paused)} />
      {live.problem ? <ProblemNotice problem={live.problem} again={live.again} /> : null}
      {live.data?.seen === "studio" ? <OwnCalls /> : null}
      {live.data?.seen === "engine" ? (
        <p class="small muted">
          The studio's own calls are not counted{live.data.left_out ? ` (${num(live.data.left_out)} until now)` : ""}.
        </p>
      ) : null}
      {live.data?.others && tab !== "dearest" ? (
        <Others told={live.data} narrowed={filters.table !== "" || filters.operation !== ""} />
      ) : null}
      {live.data === null ? (
        live.problem ? null : (
          <Spinner />
        )
      ) : tab === "dearest" ? (
        <Dearest paused={paused} />
      ) : (
        <Overview told={live.data} paused={paused} again={live.again} />
      )}
    </>
  );
}

function Bar({ live, paused, onPause }: { live: Lively<OperationsSummary>; paused: boolean; onPause: () => void }) {
  const filters = useFilters();
  const tables = named(live.data?.tables ?? [], filters.table);
  const operations = named(live.data?.operations ?? [], filters.operation);
  return (
    <div class="row operations-bar">
      <Segmented label="Window" options={WINDOWS} value={String(filters.window_s)} onChange={(w) => setFilter({ w })} />
      <Select
        label="Table"
        hideLabel
        value={filters.table}
        options={[{ value: "", label: "All tables" }, ...tables]}
        onChange={(t) => setFilter({ t })}
      />
      <Select
        label="Operation"
        hideLabel
        value={filters.operation}
        options={[{ value: "", label: "All operations" }, ...operations]}
        onChange={(op) => setFilter({ op })}
      />
      {filters.table || filters.operation ? (
        <Button kind="quiet" onClick={() => setFilter({ t: "", op: "" })}>
          Clear
        </Button>
      ) : null}
      <span class="grow" />
      <span class="row tight small muted" role="status">
        <span class={`operations-pulse ${paused || live.problem ? "" : "on"}`} aria-hidden="true" />
        {live.problem ? "lost" : paused ? "paused" : "live"}
      </span>
      <Button onClick={onPause} aria-pressed={paused} title="P">
        {paused ? "Go on" : "Pause"}
      </Button>
    </div>
  );
}

/** Return how often to ask: a step of a long window lasts longer. */
function everyMs(windowS: number): number {
  return windowS > 3600 ? 15_000 : windowS > 600 ? 5000 : 1000;
}

function Others({ told, narrowed }: { told: OperationsSummary; narrowed: boolean }) {
  return (
    <Notice title={`${num(told.others)} calls are counted in sum alone`}>
      There were more kinds of calls at a time than are told apart. The sums of all tables and operations are whole;
      {narrowed
        ? " with these filters some calls may be missing."
        : " a single table or operation may be told too low, and what it lacks is among the others."}
    </Notice>
  );
}

function named(seen: readonly string[], chosen: string) {
  const names = chosen && !seen.includes(chosen) ? [...seen, chosen] : seen;
  return names.map((name) => ({ value: name, label: name }));
}

function OwnCalls() {
  const where = session.value?.where.text ?? "another process";
  return (
    <Notice title="Only the studio's own calls are seen">
      The tables are at {where}, and nobody can look into another process. To see every call, let the server and the
      studio be one: <code>tavola serve FILE --studio</code>.
    </Notice>
  );
}

// Operations: live requests, latency and capacity; expensive requests; the access log; access checks.
import { useState } from "preact/hooks";
import { useCommands } from "../../app/commands";
import { useParam } from "../../app/router";
import { session } from "../../app/session";
import { Button, Empty, Notice, ProblemNotice, Segmented, Select, Spinner, Tabs, plainOptions } from "../../parts";
import type { OperationsSummary } from "../../generated/api";
import { TARGETS_SHOWN, TARGETS_MAX, setFilter, useFilters, WINDOWS } from "./filters";
import { ExpensiveRequests } from "./expensive_requests";
import { Explain } from "./explain";
import { Log } from "./log";
import { Overview } from "./overview";
import "./page.css";
import { formatNumber } from "../../format";
import { useQuery, type Query } from "../../app/queries";

const TABS = [
  { value: "overview", label: "Overview" },
  { value: "expensive", label: "Expensive requests" },
  { value: "log", label: "Access log" },
  { value: "iam", label: "Access check" },
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
        {tab === "log" ? <Log /> : tab === "iam" ? <Explain /> : <LiveTabs tab={tab} />}
      </div>
    </div>
  );
}

function LiveTabs({ tab }: { tab: string }) {
  const filters = useFilters();
  const [paused, setPaused] = useState(false);
  const [all] = useParam("places", "");
  // The tab of expensive requests needs only the choices of the filters.
  const request = { ...filters, places: tab === "expensive" ? 0 : all ? TARGETS_MAX : TARGETS_SHOWN };
  const live = useQuery("GET /operations", request, {
    everyMs: tab === "expensive" ? 5000 : refreshMs(filters.window_s),
    paused: paused,
  });
  const next = () => {
    const at = WINDOWS.findIndex((each) => each.value === String(filters.window_s));
    setFilter({ w: WINDOWS[(at + 1) % WINDOWS.length]?.value ?? "600" });
  };
  useCommands([
    {
      id: "operations-pause",
      title: paused ? "Resume" : "Pause",
      keys: "p",
      group: "Operations",
      run: () => setPaused(!paused),
    },
    { id: "operations-window", title: "Next time window", keys: "w", group: "Operations", run: next },
  ]);
  if (live.problem?.code === "monitor-missing") {
    return (
      <Empty title={live.problem.title}>
        {live.problem.detail} {live.problem.remedy}
      </Empty>
    );
  }
  return (
    <>
      <Bar live={live} paused={paused} onPause={() => setPaused(!paused)} />
      <ProblemNotice problem={live.problem} retry={live.retry} />
      {live.data?.seen === "studio" ? <OwnCalls /> : null}
      {live.data?.seen === "engine" ? (
        <p class="small muted">
          The studio's own requests are not counted
          {live.data.own_calls ? ` (${formatNumber(live.data.own_calls)} so far)` : ""}.
        </p>
      ) : null}
      {live.data?.others && tab !== "expensive" ? (
        <Others summary={live.data} narrowed={filters.table !== "" || filters.operation !== ""} />
      ) : null}
      {live.data === null ? (
        live.problem ? null : (
          <Spinner />
        )
      ) : tab === "expensive" ? (
        <ExpensiveRequests paused={paused} />
      ) : (
        <Overview summary={live.data} paused={paused} reload={live.retry} />
      )}
    </>
  );
}

function Bar({ live, paused, onPause }: { live: Query<OperationsSummary>; paused: boolean; onPause: () => void }) {
  const filters = useFilters();
  const tables = optionsWith(live.data?.tables ?? [], filters.table);
  const operations = optionsWith(live.data?.operations ?? [], filters.operation);
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
        {live.problem ? "disconnected" : paused ? "paused" : "live"}
      </span>
      <Button onClick={onPause} aria-pressed={paused} title="P">
        {paused ? "Resume" : "Pause"}
      </Button>
    </div>
  );
}

/** Return the refresh interval: long windows change slowly. */
function refreshMs(windowS: number): number {
  return windowS > 3600 ? 15_000 : windowS > 600 ? 5000 : 1000;
}

function Others({ summary, narrowed }: { summary: OperationsSummary; narrowed: boolean }) {
  return (
    <Notice title={`${formatNumber(summary.others)} requests are counted only in the totals`}>
      There were more tables and operations than are counted separately. The totals are complete, but
      {narrowed
        ? " with these filters some requests may be missing."
        : " single tables or operations may be undercounted; the rest is under “All others”."}
    </Notice>
  );
}

function optionsWith(seen: readonly string[], chosen: string) {
  const names = chosen && !seen.includes(chosen) ? [...seen, chosen] : seen;
  return plainOptions(names);
}

function OwnCalls() {
  const where = session.value?.where.text ?? "another process";
  return (
    <Notice title="Only the studio's own requests are shown">
      The tables are at {where}, and the studio can't observe another process. To see every request, run server and
      studio together: <code>tavola serve FILE --studio</code>.
    </Notice>
  );
}

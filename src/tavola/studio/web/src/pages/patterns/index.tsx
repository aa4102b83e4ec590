// Patterns: runs the access patterns of the design, shows what each consumes, and which index serves which pattern.
import { useEffect, useRef } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { useQuery } from "../../app/queries";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { DesignedPattern } from "../../generated/api";
import { Empty, Notice, Panel, ProblemNotice, Spinner, Split, Tabs } from "../../parts";
import { PatternForm, PatternHead } from "./form";
import { PatternList } from "./list";
import { Matrix } from "./matrix";
import { Estimate, Result, summary } from "./result";
import { choose, draftOf, runRequest } from "./state";
import "./page.css";

const VIEWS = [
  { value: "run", label: "Run" },
  { value: "coverage", label: "Coverage" },
] as const;

export default function PatternsPage() {
  const table = currentTable.value?.name ?? route.value.table;
  const [viewParam, setView] = useParam("view", "run");
  const view = VIEWS.find((each) => each.value === viewParam)?.value ?? "run";
  const designed = session.value?.designed ?? false;
  const listed = useQuery("GET /patterns", designed ? { table: null } : null);
  const [chosen] = useParam("pattern");
  useCommands([
    {
      id: "patterns-coverage",
      title: "Show index coverage",
      keys: "c",
      group: "Access patterns",
      run: () => setView("coverage"),
    },
    {
      id: "patterns-view-run",
      title: "Run an access pattern",
      keys: "a",
      group: "Access patterns",
      run: () => setView("run"),
    },
  ]);
  if (!designed) {
    return (
      <div class="page">
        <Empty whole title="No design loaded">
          Access patterns come from a design. Start the studio with the module that declares it:{" "}
          <code>tavola studio shop.model</code>
        </Empty>
      </div>
    );
  }
  const all = listed.data?.patterns ?? [];
  const here = all.filter((each) => each.table === table || each.table === "");
  const pattern =
    all.find((each) => each.id === chosen) ??
    (chosen ? undefined : (here.find((each) => each.kind === "query") ?? here[0]));
  return (
    <div class="page patterns-page">
      <div class="page-head">
        <h1>
          Access patterns <span class="muted">· {table}</span>
        </h1>
        <Tabs
          label="View"
          tabs={VIEWS}
          value={view}
          onChange={(value) => go({ params: { view: value === "run" ? null : value } })}
          panel="patterns-panel"
        />
      </div>
      <ProblemNotice problem={listed.problem} retry={listed.retry} />
      <div id="patterns-panel" role="tabpanel" aria-label={view === "coverage" ? "Coverage" : "Run"}>
        {view === "coverage" ? (
          <Matrix table={table} />
        ) : !listed.data ? (
          listed.loading ? (
            <Spinner />
          ) : null
        ) : here.length ? (
          <Split side={<PatternList patterns={here} chosen={pattern?.id ?? ""} />}>
            {pattern ? <PatternView key={pattern.id} pattern={pattern} /> : <UnknownPattern id={chosen} />}
          </Split>
        ) : (
          <Empty title="Table not in the design">
            The design declares no entities in {table}, so it has no access patterns. Browse the table on the Data page.
          </Empty>
        )}
      </div>
    </div>
  );
}

function UnknownPattern({ id }: { id: string }) {
  return (
    <Empty
      title="Access pattern not found"
      actions={
        <button type="button" class="button" onClick={() => choose("")}>
          Show the first pattern
        </button>
      }
    >
      The design has no access pattern {id}. It may have been renamed.
    </Empty>
  );
}

function PatternView({ pattern }: { pattern: DesignedPattern }) {
  const params = route.value.params;
  const isRun = pattern.runnable && params["run"] === "yes";
  const run = useQuery("POST /patterns/run", isRun ? runRequest(pattern, draftOf(pattern, params), asOf.value) : null);
  const estimate = useQuery("GET /patterns/forecast", isRun ? null : { pattern: pattern.id, as_of: null });
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On a phone the list is above: scroll the selected pattern into view.
    if (params["pattern"] && matchMedia("(max-width: 900px)").matches)
      heading.current?.scrollIntoView({ block: "start" });
  }, [pattern.id]);
  return (
    <>
      <Panel
        title={
          <span class="patterns-title" ref={heading}>
            {pattern.title}
          </span>
        }
      >
        <div class="stack">
          <PatternHead pattern={pattern} />
          {pattern.description ? <p class="muted">{pattern.description}</p> : null}
          {pattern.runnable ? (
            <PatternForm pattern={pattern} running={run.loading} rerun={run.retry} />
          ) : (
            <Notice tone={pattern.kind === "write" ? "info" : "warning"}>{pattern.reason}</Notice>
          )}
        </div>
      </Panel>
      <p class="hidden-text" role="status">
        {isRun && run.data && !run.loading && !run.problem ? summary(run.data) : ""}
      </p>
      <ProblemNotice problem={run.problem} />
      <ProblemNotice problem={isRun ? null : estimate.problem} retry={estimate.retry} />
      {run.data && !run.problem && isRun ? (
        <div aria-busy={run.loading}>
          <Result pattern={pattern} run={run.data} />
        </div>
      ) : isRun || !estimate.data ? null : (
        <Estimate pattern={pattern} forecast={estimate.data} />
      )}
      {isRun && run.loading && !run.data ? <Spinner label="Running" /> : null}
    </>
  );
}

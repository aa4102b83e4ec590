// Patterns: ask what the design answers, see what it takes, and which index serves which pattern.
import { useEffect, useRef } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { useAsk } from "../../app/asking";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { DesignedPattern } from "../../generated/api";
import { Empty, Notice, Panel, ProblemNotice, Spinner, Split, Tabs } from "../../parts";
import { PatternForm, PatternHead } from "./form";
import { PatternList } from "./list";
import { Matrix } from "./matrix";
import { Forecast, Result, summary } from "./result";
import { asked, choose, draftOf } from "./state";
import "./page.css";

const VIEWS = [
  { value: "ask", label: "Ask" },
  { value: "coverage", label: "Coverage" },
] as const;

export default function PatternsPage() {
  const table = currentTable.value?.name ?? route.value.table;
  const [asks, setView] = useParam("view", "ask");
  const view = VIEWS.find((each) => each.value === asks)?.value ?? "ask"; // whatever else a link says
  const designed = session.value?.designed ?? false;
  const listed = useAsk("GET /patterns", designed ? { table: null } : null);
  const [chosen] = useParam("pattern");
  useCommands([
    {
      id: "patterns-coverage",
      title: "Show which index serves which pattern",
      keys: "c",
      group: "Access patterns",
      run: () => setView("coverage"),
    },
    { id: "patterns-ask", title: "Ask a pattern", keys: "a", group: "Access patterns", run: () => setView("ask") },
  ]);
  if (!designed) {
    return (
      <div class="page">
        <Empty whole title="There is no design">
          Access patterns come from a design. Start the studio with the module that declares it: tavola studio
          shop.model
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
          onChange={(value) => go({ params: { view: value === "ask" ? null : value } })}
          panel="patterns-panel"
        />
      </div>
      {listed.problem ? <ProblemNotice problem={listed.problem} again={listed.again} /> : null}
      <div id="patterns-panel" role="tabpanel" aria-label={view === "coverage" ? "Coverage" : "Ask"}>
        {view === "coverage" ? (
          <Matrix table={table} />
        ) : !listed.data ? (
          listed.loading ? (
            <Spinner />
          ) : null
        ) : here.length ? (
          <Split side={<PatternList patterns={here} chosen={pattern?.id ?? ""} />}>
            {pattern ? <Asking key={pattern.id} pattern={pattern} /> : <Unknown id={chosen} />}
          </Split>
        ) : (
          <Empty title="The design says nothing of this table">
            It declares no entity that lives in {table}, so there is nothing to ask by name. Browse it instead.
          </Empty>
        )}
      </div>
    </div>
  );
}

function Unknown({ id }: { id: string }) {
  return (
    <Empty
      title="There is no such access pattern"
      actions={
        <button type="button" class="button" onClick={() => choose("")}>
          Show the first
        </button>
      }
    >
      The address names {id}, which the design does not have. It may have been renamed since the link was made.
    </Empty>
  );
}

function Asking({ pattern }: { pattern: DesignedPattern }) {
  const params = route.value.params;
  const runs = pattern.runnable && params["run"] === "yes";
  const ran = useAsk("POST /patterns/run", runs ? asked(pattern, draftOf(pattern, params), asOf.value) : null);
  const foretold = useAsk("GET /patterns/forecast", runs ? null : { pattern: pattern.id, as_of: null });
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On a phone the list stands above: what was chosen comes into view.
    if (params["pattern"] && matchMedia("(max-width: 900px)").matches)
      heading.current?.scrollIntoView({ block: "start" });
  }, [pattern.id]);
  return (
    <>
      <Panel title={<span ref={heading}>{pattern.title}</span>}>
        <div class="stack">
          <PatternHead pattern={pattern} />
          {pattern.description ? <p class="muted">{pattern.description}</p> : null}
          {pattern.runnable ? (
            <PatternForm pattern={pattern} running={ran.loading} again={ran.again} />
          ) : (
            <Notice tone={pattern.kind === "write" ? "info" : "warning"}>{pattern.reason}</Notice>
          )}
        </div>
      </Panel>
      <p class="hidden-text" role="status">
        {runs && ran.data && !ran.loading && !ran.problem ? summary(ran.data) : ""}
      </p>
      {ran.problem ? <ProblemNotice problem={ran.problem} /> : null}
      {!runs && foretold.problem ? <ProblemNotice problem={foretold.problem} again={foretold.again} /> : null}
      {ran.data && !ran.problem && runs ? (
        <div aria-busy={ran.loading}>
          <Result pattern={pattern} run={ran.data} />
        </div>
      ) : runs || !foretold.data ? null : (
        <Forecast pattern={pattern} forecast={foretold.data} />
      )}
      {runs && ran.loading && !ran.data ? <Spinner label="Running" /> : null}
    </>
  );
}

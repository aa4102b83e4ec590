// Cost: a month of the design, its numbers turned by sliders, under each way of paying; or of rates alone.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { call, problemOf } from "../../app/api";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { session } from "../../app/session";
import type { MonthlyCost, CostOptions, Problem } from "../../generated/api";
import {
  Button,
  bytes,
  Code,
  download,
  num,
  Panel,
  ProblemNotice,
  Select,
  Spinner,
  Split,
  Stat,
  Stats,
  Tabs,
} from "../../parts";
import { ByLine, ByPattern, Savings, Ways } from "./bill";
import { Calculator } from "./calculator";
import { Curve } from "./curve";
import { costDocument } from "./document";
import { Assumptions, Sliders } from "./sliders";
import { ALL, askedCost, cents, designOf, less, plus, reset } from "./state";
import "./page.css";

export default function CostPage() {
  const designed = session.value?.designed ?? false;
  const [asks] = useParam("view");
  const view = designed && asks !== "calculator" ? "design" : "calculator"; // whatever else a link says
  const options = useAsk("GET /cost/options", {});
  const params = route.value.params;
  useCommands([
    {
      id: "cost-reset",
      title: "Sliders as the design declares",
      keys: "0",
      group: "Cost",
      run: () => reset(route.value.params),
    },
    {
      id: "cost-calculator",
      title: "Cost of rates alone",
      group: "Cost",
      run: () => go({ params: { view: "calculator" } }),
    },
  ]);
  const tabs = [
    { value: "design", label: "This design" },
    { value: "calculator", label: "Calculator" },
  ];
  return (
    <div class="page cost-page">
      <div class="page-head">
        <h1>Cost</h1>
        {designed ? (
          <Tabs
            label="View"
            tabs={tabs}
            value={view}
            onChange={(value) => go({ params: { view: value === "design" ? null : value } })}
            panel="cost-panel"
          />
        ) : null}
      </div>
      {options.problem ? <ProblemNotice problem={options.problem} again={options.again} /> : null}
      <div
        id="cost-panel"
        role={designed ? "tabpanel" : undefined}
        aria-label={view === "calculator" ? "Calculator" : "This design"}
      >
        {options.data ? (
          view === "calculator" ? (
            <Calculator params={params} options={options.data} />
          ) : (
            <DesignCost options={options.data} />
          )
        ) : options.loading ? (
          <Spinner />
        ) : null}
      </div>
    </div>
  );
}

function DesignCost({ options }: { options: CostOptions }) {
  const params = route.value.params;
  const asks = askedCost(params);
  const named = designOf(params);
  const chosen = named ? `design:${named}` : (params["table"] ?? ALL);
  const asked = useAsk("POST /cost", asks, { delay: 120 });
  const curves = useAsk("POST /cost/curve", asks, { delay: 250 });
  const vectors = useAsk("GET /cost/vectors", {});
  const answer = asked.data;
  const month = answer ? costDocument(answer.altered) : null;
  const declared = answer ? costDocument(answer.declared) : null;
  return (
    <>
      {month ? (
        <p class="cost-sticky" aria-hidden="true">
          <strong>{cents(month.total)}</strong>
          <span class="small muted">
            {answer?.is_unchanged ? "as declared" : `declared ${declared ? cents(declared.total) : ""}`}
          </span>
        </p>
      ) : null}
      <Split
        side={
          <>
            <Panel title="Tables">
              <Select
                label="Which tables"
                hideLabel
                value={chosen}
                options={[
                  {
                    value: ALL,
                    label: options.tables.length === 1 ? "the one table" : `all ${options.tables.length} tables`,
                  },
                  ...options.designs.map((each) => ({ value: `design:${each}`, label: each })),
                  ...options.tables.map((each) => ({ value: each, label: each })),
                ]}
                onChange={(value) =>
                  go({
                    params: value.startsWith("design:")
                      ? { design: value.slice(7), table: null }
                      : value === ALL
                        ? { design: options.designs.length ? ALL : null, table: null }
                        : { design: null, table: value },
                  })
                }
              />
            </Panel>
            <Sliders params={params} turned={answer ? !answer.is_unchanged : false} />
            <Assumptions params={params} options={options} design />
          </>
        }
      >
        {asked.problem ? <ProblemNotice problem={asked.problem} again={asked.again} /> : null}
        {answer && month && declared ? (
          <>
            <Head answer={answer} loading={asked.loading} />
            <Ways month={month} />
            {curves.data ? <Curve priced={curves.data} /> : null}
            <ByPattern month={month} declared={declared} ids={answer.ids} />
            <ByLine month={month} />
            <Savings month={month} />
            {vectors.data?.indexes.length ? (
              <Panel
                title="Vector indexes"
                actions={<span class="small muted">no price book has a price for them yet</span>}
                flush
              >
                <div class="scroll-x" tabIndex={0} role="region" aria-label="Vector indexes">
                  <table class="plain">
                    <thead>
                      <tr>
                        <th scope="col">index</th>
                        <th scope="col" class="num">
                          dimensions
                        </th>
                        <th scope="col" class="num">
                          items
                        </th>
                        <th scope="col" class="num">
                          vectors
                        </th>
                        <th scope="col" class="num">
                          whole index
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {vectors.data.indexes.map((each) => (
                        <tr key={each.table + each.index}>
                          <th scope="row">
                            {each.table} / {each.index}
                          </th>
                          <td class="num">{num(each.dimensions)}</td>
                          <td class="num">{num(each.items)}</td>
                          <td class="num">{bytes(each.vector_bytes)}</td>
                          <td class="num">{bytes(each.bytes)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              </Panel>
            ) : null}
            <Taken answer={answer} />
          </>
        ) : asked.loading ? (
          <Spinner />
        ) : null}
      </Split>
    </>
  );
}

/** The sum, what it was, and the prices it is at; these are always said. */
function Head({ answer, loading }: { answer: MonthlyCost; loading: boolean }) {
  const month = costDocument(answer.altered);
  const declared = costDocument(answer.declared);
  const more = less(month.total, declared.total);
  const requests = month.access_patterns.map((each) => each.amount).reduce(plus, "0");
  const share = Number(month.total) > 0 ? Number(requests) / Number(month.total) : 0;
  const rest = less(month.total, requests);
  const saving = useSaving();
  return (
    <Panel
      title={`${month.tables.length === 1 ? month.tables[0] : `${month.tables.length} tables`}, a month`}
      actions={
        <>
          <Button small onClick={() => saving.save("POST /cost/csv")}>
            CSV
          </Button>
          <Button small onClick={() => saving.save("POST /cost/design")}>
            Design as a document
          </Button>
        </>
      }
    >
      <div class="stack" aria-busy={loading}>
        {saving.problem ? <ProblemNotice problem={saving.problem} /> : null}
        <p class="hidden-text" role="status">
          {`${cents(month.total)} a month${answer.is_unchanged ? "" : `, declared ${cents(declared.total)}`}`}
        </p>
        <Stats>
          <Stat
            label="total"
            value={<span data-testid="cost-total">{cents(month.total)}</span>}
            beside={answer.is_unchanged ? "as declared" : `declared ${cents(declared.total)}`}
          />
          {answer.is_unchanged ? null : (
            <Stat
              label="difference"
              value={more.startsWith("-") ? cents(more) : `+${cents(more)}`}
              tone={more.startsWith("-") ? "good" : "warn"}
              beside="against the declared design"
            />
          )}
          <Stat label="requests" value={cents(requests)} beside={`${Math.round(share * 100)} % of it`} />
          <Stat label="what stands there" value={cents(rest)} beside="storage, recovery, backups, credits" />
        </Stats>
        <p class="small muted" data-testid="cost-book">
          Prices of {month.book.region}, {month.book.date}; a month of {month.hours} hours, in {month.currency}.
        </p>
      </div>
    </Panel>
  );
}

/** What was taken for granted, and the command line that prints the same. */
function Taken({ answer }: { answer: MonthlyCost }) {
  const month = costDocument(answer.altered);
  const saving = useSaving();
  return (
    <>
      <Panel title="Taken for this">
        <ul class="cost-list small">
          {month.notes.map((each) => (
            <li key={each}>{each}</li>
          ))}
        </ul>
      </Panel>
      <Panel title="The command that prints it">
        <div class="stack">
          {answer.command ? (
            <Code text={answer.command} label="Command line" />
          ) : (
            <p class="muted">
              Designs side by side may call entities alike, and these do: no one command prints them together. Choose
              one of the designs, or one table.
            </p>
          )}
          {saving.problem ? <ProblemNotice problem={saving.problem} /> : null}
          {answer.saved ? (
            <p class="small muted">
              The command is about the design as it stands here:{" "}
              <Button small onClick={() => saving.save("POST /cost/design")}>
                save altered.json
              </Button>{" "}
              first.
            </p>
          ) : null}
        </div>
      </Panel>
    </>
  );
}

/** Save a file of this month; what keeps it from being made is told. */
function useSaving() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = (endpoint: "POST /cost/csv" | "POST /cost/design") => {
    call(endpoint, askedCost(route.value.params)).then(
      (file) => {
        setProblem(null);
        download(file.name, file.text, file.name.endsWith(".csv") ? "text/csv" : "application/json");
      },
      (thrown: unknown) => setProblem(problemOf(thrown)),
    );
  };
  return { problem, save };
}

// Cost: the monthly cost of the design, which sliders change, under each pricing option; or of request rates alone.
import { useAction, useQuery } from "../../app/queries";
import { call } from "../../app/api";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { session } from "../../app/session";
import type { MonthlyCost, CostOptions } from "../../generated/api";
import {
  Button,
  Code,
  DataTable,
  download,
  numeric,
  Panel,
  ProblemNotice,
  Select,
  Spinner,
  Split,
  Stat,
  Stats,
  Tabs,
} from "../../parts";
import { ByLine, ByPattern, PricingOptions, Savings } from "./bill";
import { Calculator } from "./calculator";
import { Curve } from "./curve";
import { costDocument } from "./document";
import { Assumptions, Sliders } from "./sliders";
import { ALL, costRequest, designOf, reset } from "./state";
import "./page.css";
import { addAmounts, formatBytes, formatMoney, formatNumber, subtractAmounts, formatPercent } from "../../format";

export default function CostPage() {
  const designed = session.value?.designed ?? false;
  const [viewParam] = useParam("view");
  const view = designed && viewParam !== "calculator" ? "design" : "calculator";
  const options = useQuery("GET /cost/options", {});
  const params = route.value.params;
  useCommands([
    {
      id: "cost-reset",
      title: "Reset to the design's values",
      keys: "0",
      group: "Cost",
      run: () => reset(route.value.params),
    },
    {
      id: "cost-calculator",
      title: "Open the cost calculator",
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
      <ProblemNotice problem={options.problem} retry={options.retry} />
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
  const request = costRequest(params);
  const design = designOf(params);
  const chosen = design ? `design:${design}` : (params["table"] ?? ALL);
  const query = useQuery("POST /cost", request, { delayMs: 120 });
  const curves = useQuery("POST /cost/curve", request, { delayMs: 250 });
  const vectors = useQuery("GET /cost/vectors", {});
  const answer = query.data;
  const month = answer ? costDocument(answer.altered) : null;
  const declared = answer ? costDocument(answer.declared) : null;
  return (
    <>
      {month ? (
        <p class="cost-sticky" aria-hidden="true">
          <strong>{formatMoney(month.total)}</strong>
          <span class="small muted">
            {answer?.is_unchanged ? "as declared" : `declared ${declared ? formatMoney(declared.total) : ""}`}
          </span>
        </p>
      ) : null}
      <Split
        side={
          <>
            <Panel title="Tables">
              <Select
                label="Tables to price"
                hideLabel
                value={chosen}
                options={[
                  {
                    value: ALL,
                    label: options.tables.length === 1 ? "1 table" : `All ${options.tables.length} tables`,
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
            <Sliders params={params} changed={answer ? !answer.is_unchanged : false} />
            <Assumptions params={params} options={options} design />
          </>
        }
      >
        <ProblemNotice problem={query.problem} retry={query.retry} />
        {answer && month && declared ? (
          <>
            <Head answer={answer} loading={query.loading} />
            <PricingOptions month={month} />
            {curves.data ? <Curve priced={curves.data} /> : null}
            <ByPattern month={month} declared={declared} ids={answer.ids} />
            <ByLine month={month} />
            <Savings month={month} />
            {vectors.data?.indexes.length ? (
              <Panel title="Vector indexes" actions={<span class="small muted">not in any price list yet</span>} flush>
                <DataTable
                  label="Vector indexes"
                  columns={["Index", ...["Dimensions", "Items", "Vector size", "Index size"].map(numeric)]}
                >
                  <tbody>
                    {vectors.data.indexes.map((each) => (
                      <tr key={each.table + each.index}>
                        <th scope="row">
                          {each.table} / {each.index}
                        </th>
                        <td class="num">{formatNumber(each.dimensions)}</td>
                        <td class="num">{formatNumber(each.items)}</td>
                        <td class="num">{formatBytes(each.vector_bytes)}</td>
                        <td class="num">{formatBytes(each.bytes)}</td>
                      </tr>
                    ))}
                  </tbody>
                </DataTable>
              </Panel>
            ) : null}
            <NotesAndCommand answer={answer} />
          </>
        ) : query.loading ? (
          <Spinner />
        ) : null}
      </Split>
    </>
  );
}

/** The total, the declared total, and the price list. */
function Head({ answer, loading }: { answer: MonthlyCost; loading: boolean }) {
  const month = costDocument(answer.altered);
  const declared = costDocument(answer.declared);
  const difference = subtractAmounts(month.total, declared.total);
  const requests = month.access_patterns.map((each) => each.amount).reduce(addAmounts, "0");
  const share = Number(month.total) > 0 ? Number(requests) / Number(month.total) : 0;
  const rest = subtractAmounts(month.total, requests);
  const file = useDownload();
  return (
    <Panel
      title={`${month.tables.length === 1 ? month.tables[0] : `${month.tables.length} tables`}: monthly cost`}
      actions={
        <>
          <Button small onClick={() => file.save("POST /cost/csv")}>
            {" "}
            Download CSV{" "}
          </Button>
          <Button small onClick={() => file.save("POST /cost/design")}>
            Download design.json
          </Button>
        </>
      }
    >
      <div class="stack" aria-busy={loading}>
        <ProblemNotice problem={file.problem} />
        <p class="hidden-text" role="status">
          {`${formatMoney(month.total)} per month${answer.is_unchanged ? "" : `, declared ${formatMoney(declared.total)}`}`}
        </p>
        <Stats>
          <Stat
            label="Total"
            value={<span data-testid="cost-total">{formatMoney(month.total)}</span>}
            beside={answer.is_unchanged ? "as declared" : `declared ${formatMoney(declared.total)}`}
          />
          {answer.is_unchanged ? null : (
            <Stat
              label="Difference"
              value={difference.startsWith("-") ? formatMoney(difference) : `+${formatMoney(difference)}`}
              tone={difference.startsWith("-") ? "good" : "warn"}
              beside="compared with the declared design"
            />
          )}
          <Stat label="Requests" value={formatMoney(requests)} beside={`${formatPercent(share)} of the total`} />
          <Stat label="Storage and other" value={formatMoney(rest)} beside="storage, recovery, backups, credits" />
        </Stats>
        <p class="small muted" data-testid="cost-book">
          {month.book.region} prices of {month.book.date}, {month.hours} hours per month, in {month.currency}.
        </p>
      </div>
    </Panel>
  );
}

/** The assumptions that were made, and the command line that prints the same. */
const FIELD_NAMES: readonly (readonly [string, string])[] = [
  ["--sparse-share", "“Share of items in sparse indexes”"],
  ["--stream-polls", "“Stream polls per second”"],
  ["--free-tier", "“Apply the free tier”"],
  ["--prices", "“Price list”"],
];

/** A note of the report, with the fields of this page in place of the command's options. */
function nameFields(note: string): string {
  return FIELD_NAMES.reduce((text, [option, field]) => text.replaceAll(option, field), note);
}

function NotesAndCommand({ answer }: { answer: MonthlyCost }) {
  const month = costDocument(answer.altered);
  const file = useDownload();
  return (
    <>
      <Panel title="Notes">
        <ul class="cost-list small">
          {month.notes.map((each) => (
            <li key={each}>{nameFields(each)}</li>
          ))}
        </ul>
      </Panel>
      <Panel title="Command line">
        <div class="stack">
          {answer.command ? (
            <Code text={answer.command} label="Command line" />
          ) : (
            <p class="muted">
              These designs use the same entity names, so no single command can price them together. Choose one design
              or one table.
            </p>
          )}
          <ProblemNotice problem={file.problem} />
          {answer.saved ? (
            <p class="small muted">
              The command prices the modified design. First{" "}
              <Button small onClick={() => file.save("POST /cost/design")}>
                download modified.json{" "}
              </Button>
              .
            </p>
          ) : null}
        </div>
      </Panel>
    </>
  );
}

/** Download a file of this cost estimate. */
function useDownload() {
  const action = useAction();
  const save = (endpoint: "POST /cost/csv" | "POST /cost/design") =>
    void action.run(async () => {
      const file = await call(endpoint, costRequest(route.value.params));
      download(file.name, file.text, file.name.endsWith(".csv") ? "text/csv" : "application/json");
    });
  return { problem: action.problem, save };
}

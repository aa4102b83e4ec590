// Calculator: capacity and cost from request rates alone, without a design.
import { useQuery } from "../../app/queries";
import { formatMoney, formatNumber } from "../../format";
import type { CostOptions } from "../../generated/api";
import { Checkbox, Code, DataTable, numeric, Panel, ProblemNotice, Split, Stat, Stats } from "../../parts";
import { calculationDocument } from "./document";
import { Assumptions, SliderList, type SliderSpec } from "./sliders";
import { calculationRequest, set } from "./state";

type Params = Readonly<Record<string, string>>;

const WORKLOAD: readonly SliderSpec[] = [
  { name: "k.reads", label: "Reads per second", min: 0, max: 100_000, standard: 100, decades: true, unit: "/s" },
  { name: "k.writes", label: "Writes per second", min: 0, max: 100_000, standard: 20, decades: true, unit: "/s" },
  { name: "k.kb", label: "Item size", min: 0.01, max: 400, standard: 1, decades: true, unit: "KB" },
  { name: "k.gb", label: "Storage", min: 0, max: 10_000, standard: 10, decades: true, unit: "GB" },
  { name: "k.indexes", label: "Global indexes (all attributes)", min: 0, max: 20, standard: 0 },
];
const COLUMNS = ["Pricing option", ...["Reads", "Writes", "Storage", "Other", "Per month"].map(numeric)];

export function Calculator({ params, options }: { params: Params; options: CostOptions }) {
  const request = calculationRequest(params);
  const query = useQuery("POST /cost/calculate", request, { delayMs: 120 });
  const result = query.data ? calculationDocument(query.data.document) : null;
  const totals = result?.ways.flatMap((each) => (each.total === null ? [] : [Number(each.total)])) ?? [];
  const least = Math.min(...totals);
  return (
    <Split
      side={
        <>
          <Panel title="Workload">
            <div class="stack">
              <SliderList
                specs={WORKLOAD}
                values={{
                  "k.reads": request.reads,
                  "k.writes": request.writes,
                  "k.kb": request.item_kb,
                  "k.gb": request.storage_gb,
                  "k.indexes": request.indexes,
                }}
              />
              <Checkbox
                label="Eventually consistent reads"
                checked={request.eventual ?? false}
                onChange={(checked) => set({ "k.eventual": checked ? "yes" : null })}
              />
            </div>
          </Panel>
          <Assumptions params={params} options={options} design={false} />
        </>
      }
    >
      <ProblemNotice problem={query.problem} />
      {result ? (
        <>
          <Panel
            title="Monthly cost"
            actions={
              <span class="small muted">
                {result.book.title} prices, {result.hours} hours
              </span>
            }
          >
            <div class="stack">
              <Stats>
                <Stat label="Units per read" value={formatNumber(result.units.read)} />
                <Stat label="Units per write" value={formatNumber(result.units.write)} />
                <Stat
                  label="Read capacity"
                  value={formatNumber(result.units.read_capacity)}
                  beside="units per second"
                />
                <Stat
                  label="Write capacity"
                  value={formatNumber(result.units.write_capacity)}
                  beside="units per second"
                />
              </Stats>
              <DataTable label="Pricing options" columns={COLUMNS}>
                <tbody>
                  {result.ways.map((way) => (
                    <tr key={way.name} class={way.total !== null && Number(way.total) === least ? "cost-best" : ""}>
                      <th scope="row">{way.name}</th>
                      {[way.reads, way.writes, way.storage, way.other].map((amount, at) => (
                        <td key={at} class="num">
                          {formatMoney(amount)}
                        </td>
                      ))}
                      <td class="num">
                        <strong>{way.total === null ? "unknown" : formatMoney(way.total)}</strong>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </DataTable>
              <p>{result.recommendation}</p>
              {result.notes.map((each) => (
                <p key={each} class="small muted">
                  {each}
                </p>
              ))}
            </div>
          </Panel>
          <Panel title="Command line">
            <Code text={query.data?.command ?? ""} label="Command line" />
          </Panel>
        </>
      ) : null}
    </Split>
  );
}

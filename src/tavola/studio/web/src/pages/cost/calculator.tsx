// Calculator: capacity and money from rates alone, for who has no design yet.
import { useAsk } from "../../app/asking";
import type { CostOptions } from "../../generated/api";
import { Checkbox, Code, num, Panel, ProblemNotice, Split, Stat, Stats } from "../../parts";
import { calculationDocument } from "./document";
import { Assumptions, Slider } from "./sliders";
import { askedCalculation, cents, set } from "./state";

type Params = Readonly<Record<string, string>>;

export function Calculator({ params, options }: { params: Params; options: CostOptions }) {
  const asks = askedCalculation(params);
  const asked = useAsk("POST /cost/calculate", asks, { delay: 120 });
  const one = (name: string) => (value: number | null) => set({ [`k.${name}`]: value === null ? null : String(value) });
  const told = asked.data ? calculationDocument(asked.data.document) : null;
  const known = told?.ways.flatMap((each) => (each.total === null ? [] : [Number(each.total)])) ?? [];
  const least = Math.min(...known);
  return (
    <Split
      side={
        <>
          <Panel title="What is asked of the table">
            <div class="stack">
              <Slider
                label="Reads a second"
                value={asks.reads ?? 0}
                min={0}
                max={100_000}
                standard={100}
                decades
                unit="/s"
                onChange={one("reads")}
              />
              <Slider
                label="Writes a second"
                value={asks.writes ?? 0}
                min={0}
                max={100_000}
                standard={20}
                decades
                unit="/s"
                onChange={one("writes")}
              />
              <Slider
                label="Item size"
                value={asks.item_kb ?? 1}
                min={0.01}
                max={400}
                standard={1}
                decades
                unit="KB"
                onChange={one("kb")}
              />
              <Slider
                label="Storage"
                value={asks.storage_gb ?? 0}
                min={0}
                max={10_000}
                standard={10}
                decades
                unit="GB"
                onChange={one("gb")}
              />
              <Slider
                label="Indexes of whole items"
                value={asks.indexes ?? 0}
                min={0}
                max={20}
                standard={0}
                onChange={one("indexes")}
              />
              <Checkbox
                label="Read eventually, for half the units"
                checked={asks.eventual ?? false}
                onChange={(checked) => set({ "k.eventual": checked ? "yes" : null })}
              />
            </div>
          </Panel>
          <Assumptions params={params} options={options} design={false} />
        </>
      }
    >
      {asked.problem ? <ProblemNotice problem={asked.problem} /> : null}
      {told ? (
        <>
          <Panel
            title="A month"
            actions={
              <span class="small muted">
                prices of {told.book.title}, {told.hours} hours
              </span>
            }
          >
            <div class="stack">
              <Stats>
                <Stat label="a read takes" value={num(told.units.read)} beside="units" />
                <Stat label="a write takes" value={num(told.units.write)} beside="units" />
                <Stat label="read capacity" value={num(told.units.read_capacity)} beside="units a second" />
                <Stat label="write capacity" value={num(told.units.write_capacity)} beside="units a second" />
              </Stats>
              <div class="scroll-x" tabIndex={0} role="region" aria-label="Ways of paying">
                <table class="plain">
                  <thead>
                    <tr>
                      <th scope="col">way of paying</th>
                      <th scope="col" class="num">
                        reads
                      </th>
                      <th scope="col" class="num">
                        writes
                      </th>
                      <th scope="col" class="num">
                        storage
                      </th>
                      <th scope="col" class="num">
                        other
                      </th>
                      <th scope="col" class="num">
                        a month
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {told.ways.map((way) => (
                      <tr key={way.name} class={way.total !== null && Number(way.total) === least ? "cost-best" : ""}>
                        <th scope="row">{way.name}</th>
                        <td class="num">{cents(way.reads)}</td>
                        <td class="num">{cents(way.writes)}</td>
                        <td class="num">{cents(way.storage)}</td>
                        <td class="num">{cents(way.other)}</td>
                        <td class="num">
                          <strong>{way.total === null ? "not known" : cents(way.total)}</strong>
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              <p>{told.recommendation}</p>
              {told.notes.map((each) => (
                <p key={each} class="small muted">
                  {each}
                </p>
              ))}
            </div>
          </Panel>
          <Panel title="The command that prints it">
            <Code text={asked.data?.command ?? ""} label="Command line" />
          </Panel>
        </>
      ) : null}
    </Split>
  );
}

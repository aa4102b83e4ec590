// Sliders: the workload and the assumptions of a cost estimate. Each slider is a range and a number field for the same parameter of the URL.
import { useId } from "preact/hooks";
import type { CostOptions } from "../../generated/api";
import { Button, Checkbox, Panel, plainOptions, Segmented, Select, TextInput } from "../../parts";
import { assumptionsOf, reset, set, slidersOf } from "./state";

type Params = Readonly<Record<string, string>>;

export interface SliderSpec {
  /** The parameter of the URL that holds the number. */
  readonly name: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  /** The value without the parameter. */
  readonly standard: number;
  readonly step?: number;
  /** A logarithmic range: as far from 1 to 10 as from 10 to 100. */
  readonly decades?: boolean;
  readonly unit?: string;
}

const LOG_MIN = 1e-3; // a logarithmic range cannot start at 0
const TYPED_MAX = 1e6;

function Slider({ spec, value, hint }: { spec: SliderSpec; value: number; hint?: string }) {
  const { label, min, max, standard, decades, unit = "" } = spec;
  const id = useId();
  const floor = decades ? Math.max(min, LOG_MIN) : min;
  const position = (number: number) => (decades ? Math.log10(Math.max(number, floor)) : number);
  const [low, high] = [position(min), position(max)];
  const shown = String(Number(value.toPrecision(4)));
  const change = (to: number) => set({ [spec.name]: Math.abs(to - standard) < 1e-9 ? null : String(to) });
  const drag = (at: number) => {
    if (!decades) change(at);
    else if (at <= low) change(min);
    else change(Math.abs(at) < 0.02 ? 1 : Number((10 ** at).toPrecision(3))); // snaps to 1
  };
  const type = (text: string) => {
    if (text !== "" && Number.isFinite(Number(text)))
      change(Math.max(min, Math.min(Number(text), decades ? TYPED_MAX : max)));
  };
  return (
    <div class="cost-slider">
      <label for={`${id}-range`}>{label}</label>
      <input
        id={`${id}-range`}
        type="range"
        min={low}
        max={high}
        step={decades ? 0.01 : (spec.step ?? 1)}
        value={Math.min(Math.max(position(value), low), high)}
        aria-valuetext={`${shown} ${unit}`.trim()}
        onInput={(event) => drag(Number(event.currentTarget.value))}
      />
      <span class="cost-number">
        <input
          class="input"
          type="number"
          min={min}
          step="any"
          value={shown}
          aria-label={`${label}, as a number`}
          onChange={(event) => type(event.currentTarget.value)}
        />
        <span class="small muted">{unit}</span>
      </span>
      {hint ? <span class="hint small muted">{hint}</span> : null}
    </div>
  );
}

interface SliderListProps {
  specs: readonly SliderSpec[];
  values: Readonly<Record<string, number | null | undefined>>;
  hints?: Readonly<Record<string, string>>;
}

/** Sliders in a row; `hints` is by parameter. */
export function SliderList({ specs, values, hints = {} }: SliderListProps) {
  return (
    <>
      {specs.map((spec) => (
        <Slider
          key={spec.name}
          spec={spec}
          value={values[spec.name] ?? Math.max(spec.standard, spec.min)}
          hint={hints[spec.name] ?? ""}
        />
      ))}
    </>
  );
}

const factor = (name: string, label: string, min = 0): SliderSpec => ({
  name,
  label,
  min,
  max: 100,
  standard: 1,
  decades: true,
  unit: "×",
});
const WORKLOAD: readonly SliderSpec[] = [
  factor("reads", "Reads"),
  factor("writes", "Writes"),
  factor("size", "Item size", 0.01),
  factor("items", "Items stored"),
  { name: "idx", label: "Additional indexes", min: 0, max: 20, standard: 0 },
  { ...factor("peak", "Peak-to-average ratio", 1), standard: 0 }, // 1 is a ratio of its own: 0 stands for the declared ones
];

interface ChoiceProps {
  label: string;
  name: string;
  value: string;
  options: readonly string[];
}

function Choice({ label, name, value, options }: ChoiceProps) {
  return (
    <div class="cost-choice">
      <span class="cost-label">{label}</span>
      <Segmented
        label={label}
        value={value}
        options={[
          { value: "declared", label: "As declared" },
          ...options.map((each) => ({ value: each, label: each.charAt(0).toUpperCase() + each.slice(1) })),
        ]}
        onChange={(to) => set({ [name]: to === "declared" ? null : to })}
      />
    </div>
  );
}

export function Sliders({ params, changed }: { params: Params; changed: boolean }) {
  const sliders = slidersOf(params);
  const resetButton = (
    <Button small onClick={() => reset(params)}>
      Reset
    </Button>
  );
  return (
    <Panel title="What if" actions={changed ? resetButton : null}>
      <div class="stack">
        <SliderList
          specs={WORKLOAD}
          values={{
            reads: sliders.reads,
            writes: sliders.writes,
            size: sliders.item_bytes,
            items: sliders.items,
            idx: sliders.indexes,
            peak: sliders.peak,
          }}
          hints={{
            ...(sliders.indexes ? { idx: "global, all attributes, on each table" } : {}),
            ...(sliders.peak === null ? { peak: "as each pattern declares it" } : {}),
          }}
        />
        {sliders.peak === null ? null : (
          <Button small kind="quiet" onClick={() => set({ peak: null })}>
            Use declared peaks
          </Button>
        )}
        <Choice
          label="Read consistency"
          name="cons"
          value={sliders.consistency ?? "declared"}
          options={["eventual", "strong"]}
        />
        <Choice label="Transactions" name="tx" value={sliders.transactions ?? "declared"} options={["none", "all"]} />
      </div>
    </Panel>
  );
}

const ASSUMPTIONS: readonly SliderSpec[] = [
  { name: "hours", label: "Hours per day", min: 1, max: 24, standard: 24, unit: "h" },
  { name: "target", label: "Target utilization", min: 20, max: 90, standard: 70, unit: "%" },
  { name: "backups", label: "Backups", min: 0, max: 30, standard: 0 },
];
const DESIGN_ASSUMPTIONS: readonly SliderSpec[] = [
  { name: "sparse", label: "Share of items in sparse indexes", min: 0, max: 1, step: 0.01, standard: 0.1 },
  { name: "polls", label: "Stream polls per second", min: 0, max: 100, standard: 0, unit: "/s" },
];

/** The price list and everything else that the cost depends on; `design`: also what only a design has. */
export function Assumptions({ params, options, design }: { params: Params; options: CostOptions; design: boolean }) {
  const assumptions = assumptionsOf(params);
  const region = assumptions.region ?? options.region;
  const regional = options.books.filter((each) => each.label === null);
  const labelled = options.books.filter((each) => each.label !== null);
  const regions = [...new Set(regional.map((each) => each.region))];
  const dates = regional
    .filter((each) => each.region === region)
    .map((each) => each.date)
    .reverse();
  return (
    <Panel title="Assumptions">
      <div class="stack">
        <div class="cost-pair">
          <Select
            label="Price list"
            value={assumptions.prices ? `label:${assumptions.prices}` : region}
            options={[
              ...plainOptions(regions),
              ...labelled.map((each) => ({ value: `label:${each.label}`, label: `${each.label} document` })),
            ]}
            onChange={(value) =>
              value.startsWith("label:")
                ? set({ prices: value.slice(6), region: null, date: null })
                : set({ prices: null, date: null, region: value === options.region ? null : value })
            }
          />
          {assumptions.prices ? null : (
            <Select
              label="As of"
              value={assumptions.date ?? ""}
              options={[{ value: "", label: "Latest" }, ...plainOptions(dates)]}
              onChange={(value) => set({ date: value || null })}
            />
          )}
        </div>
        <div class={design ? "cost-pair" : ""}>
          {design ? (
            <Select
              label="Capacity mode"
              value={assumptions.mode ?? ""}
              options={[
                { value: "", label: "As declared" },
                { value: "on-demand", label: "On-demand" },
                { value: "provisioned", label: "Provisioned" },
              ]}
              onChange={(value) => set({ mode: value || null })}
            />
          ) : null}
          <Select
            label="Table class"
            value={assumptions.table_class ?? ""}
            options={[
              { value: "", label: design ? "As declared" : "Default" },
              { value: "STANDARD", label: "Standard" },
              { value: "STANDARD_INFREQUENT_ACCESS", label: "Standard-IA" },
            ]}
            onChange={(value) => set({ class: value || null })}
          />
        </div>
        <SliderList
          specs={design ? [...ASSUMPTIONS, ...DESIGN_ASSUMPTIONS] : ASSUMPTIONS}
          values={{
            hours: assumptions.hours_per_day,
            target: assumptions.target,
            backups: assumptions.backups,
            sparse: assumptions.sparse_share,
            polls: assumptions.stream_polls,
          }}
        />
        {design ? <Storage params={params} tables={options.tables} /> : null}
        <Checkbox
          label="Apply the free tier"
          checked={assumptions.free_tier ?? false}
          onChange={(checked) => set({ free: checked ? "yes" : null })}
        />
      </div>
    </Panel>
  );
}

/** The measured size of tables, where it is known. */
function Storage({ params, tables }: { params: Params; tables: readonly string[] }) {
  const count = Object.keys(assumptionsOf(params).storage_gb ?? {}).length;
  const chosen = params["table"];
  return (
    <details class="cost-storage">
      <summary>Measured storage (GB){count ? `, ${count} set` : ""}</summary>
      <div class="stack">
        {tables
          .filter((each) => !chosen || each === chosen)
          .map((each) => (
            <TextInput
              key={each}
              label={each}
              type="number"
              min={0}
              value={params[`gb.${each}`] ?? ""}
              placeholder="estimated from the item count"
              onInput={(value) => set({ [`gb.${each}`]: value || null })}
            />
          ))}
      </div>
    </details>
  );
}

// Sliders: the numbers of the design, turned by hand; each is a range and a number that say the same.
import { useId } from "preact/hooks";
import type { CostOptions } from "../../generated/api";
import { Button, Checkbox, Panel, Segmented, Select, TextInput } from "../../parts";
import { assumptionsOf, reset, set, slidersOf } from "./state";

type Params = Readonly<Record<string, string>>;

function spelled(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** A number on a range. `decades` makes the range logarithmic: as far from 1 to 10 as from 10 to 100. */
export function Slider({
  label,
  hint,
  value,
  min,
  max,
  step,
  standard,
  decades,
  unit,
  onChange,
}: {
  label: string;
  hint?: string;
  value: number;
  min: number;
  max: number;
  step?: number;
  standard: number;
  decades?: boolean;
  unit?: string;
  onChange: (value: number | null) => void;
}) {
  const id = useId();
  const floor = decades ? Math.max(min, 1e-3) : min;
  const at = decades ? Math.log10(Math.max(value, floor)) : value;
  const low = decades ? Math.log10(floor) : min;
  const high = decades ? Math.log10(max) : max;
  const tell = (told: number) => onChange(Math.abs(told - standard) < 1e-9 ? null : told);
  const drag = (text: string) => {
    const told = Number(text);
    if (!decades) tell(told);
    else if (told <= low)
      tell(min); // a range of powers has no nought: its end is that
    else tell(Math.abs(told) < 0.02 ? 1 : Number((10 ** told).toPrecision(3)));
  };
  const type = (text: string) => {
    const told = Number(text);
    if (text !== "" && Number.isFinite(told)) tell(Math.max(min, Math.min(told, decades ? 1e6 : max)));
  };
  return (
    <div class="cost-slider">
      <label for={`${id}-range`}>{label}</label>
      <input
        id={`${id}-range`}
        type="range"
        min={low}
        max={high}
        step={decades ? 0.01 : (step ?? 1)}
        value={Math.min(Math.max(at, low), high)}
        aria-valuetext={`${spelled(value)} ${unit ?? ""}`.trim()}
        onInput={(event) => drag(event.currentTarget.value)}
      />
      <span class="cost-number">
        <input
          class="input"
          type="number"
          min={min}
          step="any"
          value={spelled(value)}
          aria-label={`${label}, as a number`}
          onChange={(event) => type(event.currentTarget.value)}
        />
        <span class="small muted">{unit}</span>
      </span>
      {hint ? <span class="hint small muted">{hint}</span> : null}
    </div>
  );
}

export function Sliders({ params, turned }: { params: Params; turned: boolean }) {
  const told = slidersOf(params);
  const one = (name: string) => (value: number | null) => set({ [name]: value === null ? null : String(value) });
  return (
    <Panel
      title="Numbers"
      actions={
        turned ? (
          <Button small onClick={() => reset(params)}>
            As declared
          </Button>
        ) : null
      }
    >
      <div class="stack">
        <Slider
          label="Reads"
          value={told.reads ?? 1}
          min={0}
          max={100}
          standard={1}
          decades
          unit="×"
          onChange={one("reads")}
        />
        <Slider
          label="Writes"
          value={told.writes ?? 1}
          min={0}
          max={100}
          standard={1}
          decades
          unit="×"
          onChange={one("writes")}
        />
        <Slider
          label="Item size"
          value={told.item_bytes ?? 1}
          min={0.01}
          max={100}
          standard={1}
          decades
          unit="×"
          onChange={one("size")}
        />
        <Slider
          label="Items stored"
          value={told.items ?? 1}
          min={0}
          max={100}
          standard={1}
          decades
          unit="×"
          onChange={one("items")}
        />
        <Slider
          label="More indexes"
          value={told.indexes ?? 0}
          min={0}
          max={20}
          standard={0}
          hint={told.indexes ? "global, of whole items, on each table" : ""}
          onChange={one("idx")}
        />
        <Slider
          label="Peak to average"
          value={told.peak ?? 1}
          min={1}
          max={100}
          standard={0}
          decades
          unit="×"
          hint={told.peak === null ? "as each pattern declares" : ""}
          onChange={one("peak")}
        />
        {told.peak === null ? null : (
          <Button small kind="quiet" onClick={() => set({ peak: null })}>
            Peaks as declared
          </Button>
        )}
        <div class="cost-choice">
          <span class="cost-label">Reads are</span>
          <Segmented
            label="Consistency"
            value={told.consistency ?? "declared"}
            options={[
              { value: "declared", label: "as declared" },
              { value: "eventual", label: "eventual" },
              { value: "strong", label: "strong" },
            ]}
            onChange={(value) => set({ cons: value === "declared" ? null : value })}
          />
        </div>
        <div class="cost-choice">
          <span class="cost-label">Transactions</span>
          <Segmented
            label="Transactions"
            value={told.transactions ?? "declared"}
            options={[
              { value: "declared", label: "as declared" },
              { value: "none", label: "none" },
              { value: "all", label: "all" },
            ]}
            onChange={(value) => set({ tx: value === "declared" ? null : value })}
          />
        </div>
      </div>
    </Panel>
  );
}

export function Assumptions({ params, options, design }: { params: Params; options: CostOptions; design: boolean }) {
  const told = assumptionsOf(params);
  const regions = [...new Set(options.books.filter((each) => each.label === null).map((each) => each.region))];
  const region = told.region ?? options.region;
  const dates = options.books
    .filter((each) => each.label === null && each.region === region)
    .map((each) => each.date)
    .reverse();
  const labels = options.books.filter((each) => each.label !== null);
  const one = (name: string) => (value: number | null) => set({ [name]: value === null ? null : String(value) });
  return (
    <Panel title="Assumptions">
      <div class="stack">
        <div class="cost-pair">
          <Select
            label="Prices of"
            value={told.prices ? `label:${told.prices}` : region}
            options={[
              ...regions.map((each) => ({ value: each, label: each })),
              ...labels.map((each) => ({ value: `label:${each.label}`, label: `as the ${each.label} document` })),
            ]}
            onChange={(value) =>
              value.startsWith("label:")
                ? set({ prices: value.slice(6), region: null, date: null })
                : set({ prices: null, date: null, region: value === options.region ? null : value })
            }
          />
          {told.prices ? null : (
            <Select
              label="As of"
              value={told.date ?? ""}
              options={[{ value: "", label: "newest" }, ...dates.map((each) => ({ value: each, label: each }))]}
              onChange={(value) => set({ date: value || null })}
            />
          )}
        </div>
        {design ? (
          <div class="cost-pair">
            <Select
              label="Paid"
              value={told.mode ?? ""}
              options={[
                { value: "", label: "as each declares" },
                { value: "on-demand", label: "on demand" },
                { value: "provisioned", label: "provisioned" },
              ]}
              onChange={(value) => set({ mode: value || null })}
            />
            <TableClass value={told.table_class ?? ""} standard="as each declares" />
          </div>
        ) : (
          <TableClass value={told.table_class ?? ""} standard="as by default" />
        )}
        <Slider
          label="Hours a day"
          value={told.hours_per_day ?? 24}
          min={1}
          max={24}
          standard={24}
          unit="h"
          onChange={one("hours")}
        />
        <Slider
          label="Target utilisation"
          value={told.target ?? 70}
          min={20}
          max={90}
          standard={70}
          unit="%"
          onChange={one("target")}
        />
        <Slider
          label="Backups kept"
          value={told.backups ?? 0}
          min={0}
          max={30}
          standard={0}
          onChange={one("backups")}
        />
        {design ? (
          <>
            <Slider
              label="Share in sparse indexes"
              value={told.sparse_share ?? 0.1}
              min={0}
              max={1}
              step={0.01}
              standard={0.1}
              onChange={one("sparse")}
            />
            <Slider
              label="Stream polls a second"
              value={told.stream_polls ?? 0}
              min={0}
              max={100}
              standard={0}
              unit="/s"
              onChange={one("polls")}
            />
            <Storage params={params} tables={options.tables} />
          </>
        ) : null}
        <Checkbox
          label="Take off the free tier"
          checked={told.free_tier ?? false}
          onChange={(checked) => set({ free: checked ? "yes" : null })}
        />
      </div>
    </Panel>
  );
}

function TableClass({ value, standard }: { value: string; standard: string }) {
  return (
    <Select
      label="Table class"
      value={value}
      options={[
        { value: "", label: standard },
        { value: "STANDARD", label: "Standard" },
        { value: "STANDARD_INFREQUENT_ACCESS", label: "Standard-IA" },
      ]}
      onChange={(told) => set({ class: told || null })}
    />
  );
}

/** What tables hold, where somebody measured it. */
function Storage({ params, tables }: { params: Params; tables: readonly string[] }) {
  const held = assumptionsOf(params).storage_gb ?? {};
  const chosen = params["table"];
  return (
    <details class="cost-storage">
      <summary>Measured storage, GB{Object.keys(held).length ? ` (${Object.keys(held).length} given)` : ""}</summary>
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
              placeholder="by the number of items"
              onInput={(value) => set({ [`gb.${each}`]: value || null })}
            />
          ))}
      </div>
    </details>
  );
}

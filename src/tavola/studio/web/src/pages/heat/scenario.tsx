// Scenario: the parameters of a simulation, kept in the URL.
import { useState } from "preact/hooks";
import type { SimulationRequest, SimulatedBurst, SimulationProgress } from "../../generated/api";
import { Button, Progress, Select, TextInput } from "../../parts";

const MODES = [
  { value: "declared", label: "As declared" },
  { value: "on-demand", label: "On-demand" },
  { value: "provisioned", label: "Provisioned" },
];
const BURST = /^(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)(s|m|h)(?:@(\d+(?:\.\d+)?))?$/;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

type Params = Readonly<Record<string, string>>;

const STANDARD = { hours: "6", factor: "1", skew: "0.8", burst: "", seed: "0", mode: "declared" } as const;
type Field = keyof typeof STANDARD;

/** Parse a burst as `tavola simulate --burst` takes it: 5x60s@2 is five times the traffic for a minute, twice an hour. */
function parseBurst(text: string): SimulatedBurst | null {
  const found = BURST.exec(text.trim());
  if (!found) return null;
  return {
    factor: Number(found[1]),
    seconds: Number(found[2]) * (SECONDS[found[3] ?? "s"] ?? 1),
    per_hour: Number(found[4] ?? 1),
  };
}

function field(params: Params, name: Field): string {
  return params[name] ?? STANDARD[name];
}

/** Return the request in the URL, and the errors of its fields. */
export function scenarioOf(params: Params): { request: SimulationRequest; errors: Partial<Record<Field, string>> } {
  const errors: Partial<Record<Field, string>> = {};
  const number = (name: Field, low: number, high: number): number => {
    const value = Number(field(params, name));
    if (field(params, name).trim() !== "" && value >= low && value <= high) return value;
    errors[name] = `Enter ${low} to ${high}`;
    return Number(STANDARD[name]);
  };
  const burst = field(params, "burst").trim();
  const parsed = burst ? parseBurst(burst) : null;
  if (burst && !parsed) errors.burst = "For example 5x60s@2";
  const mode = field(params, "mode");
  const request: SimulationRequest = {
    hours: number("hours", 0.1, 168),
    rate_factor: number("factor", 0.001, 100_000),
    skew: number("skew", 0, 10),
    seed: Math.floor(number("seed", 0, 1e9)),
    bursts: parsed ? [parsed] : [],
    mode: mode === "on-demand" || mode === "provisioned" ? mode : "declared",
  };
  return { request, errors };
}

interface ScenarioFormProps {
  params: Params;
  running: boolean;
  progress: SimulationProgress | null;
  onRun: (params: Record<string, string | null>) => void;
  onStop: () => void;
}

export function ScenarioForm({ params, running, progress, onRun, onStop }: ScenarioFormProps) {
  const [typed, setTyped] = useState<Partial<Record<Field, string>>>({});
  const value = (name: Field) => typed[name] ?? field(params, name);
  const { errors } = scenarioOf({ ...params, ...typed });
  const input = (name: Field, label: string, hint: string) => (
    <TextInput
      label={label}
      value={value(name)}
      hint={hint}
      error={errors[name] ?? null}
      inputMode={name === "burst" ? "text" : "decimal"}
      onInput={(text) => setTyped({ ...typed, [name]: text })}
    />
  );
  const submit = (event: Event) => {
    event.preventDefault();
    if (Object.keys(errors).length) return;
    const changes = Object.fromEntries(
      (Object.keys(STANDARD) as Field[]).map((name) => [
        name,
        value(name).trim() === STANDARD[name] ? null : value(name).trim(),
      ]),
    );
    setTyped({});
    onRun(changes);
  };
  return (
    <form class="heat-scenario" onSubmit={submit}>
      {input("hours", "Hours", "around the peak")}
      {input("factor", "Rate factor", "multiplies every rate")}
      {input("skew", "Skew", "0 is uniform, 1 is Zipf")}
      {input("burst", "Burst", "5x60s@2: 5× for 60 s, twice an hour")}
      {input("seed", "Seed", "same seed, same result")}
      <Select
        label="Capacity"
        value={value("mode")}
        options={MODES}
        onChange={(mode) => setTyped({ ...typed, mode })}
      />
      <div class="heat-run">
        {running ? (
          <>
            <Progress label="Simulating" value={progress?.done ?? 0} max={progress?.of ?? 1} />
            <Button onClick={onStop}>Stop</Button>
          </>
        ) : (
          <Button kind="primary" type="submit" disabled={Object.keys(errors).length > 0}>
            Simulate
          </Button>
        )}
      </div>
    </form>
  );
}

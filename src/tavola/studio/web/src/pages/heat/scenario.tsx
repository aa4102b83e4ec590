// Scenario: under which circumstances the simulator runs: a form whose answers are the URL's.
import { useState } from "preact/hooks";
import type { SimulationRequest, SimulatedBurst, SimulationProgress } from "../../generated/api";
import { Button, Progress, Select, TextInput } from "../../parts";

const MODES = [
  { value: "declared", label: "As declared" },
  { value: "on-demand", label: "On demand" },
  { value: "provisioned", label: "Provisioned" },
];
const BURST = /^(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)(s|m|h)(?:@(\d+(?:\.\d+)?))?$/;
const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

type Params = Readonly<Record<string, string>>;

const STANDARD = { hours: "6", factor: "1", skew: "0.8", burst: "", seed: "0", mode: "declared" } as const;
type Field = keyof typeof STANDARD;

/** Return a burst as `tavola simulate --burst` writes it: 5x60s@2 is five times the traffic for a minute, twice an hour. */
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

/** Return the question of the URL, and what is wrong with each field of it. */
export function scenarioOf(params: Params): { asks: SimulationRequest; wrong: Partial<Record<Field, string>> } {
  const wrong: Partial<Record<Field, string>> = {};
  const number = (name: Field, low: number, high: number): number => {
    const value = Number(field(params, name));
    if (field(params, name).trim() !== "" && value >= low && value <= high) return value;
    wrong[name] = `${low} to ${high}`;
    return Number(STANDARD[name]);
  };
  const burst = field(params, "burst").trim();
  const parsed = burst ? parseBurst(burst) : null;
  if (burst && !parsed) wrong.burst = "for instance 5x60s@2";
  const mode = field(params, "mode");
  const asks: SimulationRequest = {
    hours: number("hours", 0.1, 168),
    rate_factor: number("factor", 0.001, 100_000),
    skew: number("skew", 0, 10),
    seed: Math.floor(number("seed", 0, 1e9)),
    bursts: parsed ? [parsed] : [],
    mode: mode === "on-demand" || mode === "provisioned" ? mode : "declared",
  };
  return { asks, wrong };
}

export function ScenarioForm({
  params,
  running,
  progress,
  onRun,
  onEnd,
}: {
  params: Params;
  running: boolean;
  progress: SimulationProgress | null;
  onRun: (params: Record<string, string | null>) => void;
  onEnd: () => void;
}) {
  const [typed, setTyped] = useState<Partial<Record<Field, string>>>({});
  const value = (name: Field) => typed[name] ?? field(params, name);
  const { wrong } = scenarioOf({ ...params, ...typed });
  const input = (name: Field, label: string, hint: string) => (
    <TextInput
      label={label}
      value={value(name)}
      hint={hint}
      wrong={wrong[name] ?? null}
      inputMode={name === "burst" ? "text" : "decimal"}
      onInput={(text) => setTyped({ ...typed, [name]: text })}
    />
  );
  const submit = (event: Event) => {
    event.preventDefault();
    if (Object.keys(wrong).length) return;
    const told = Object.fromEntries(
      (Object.keys(STANDARD) as Field[]).map((name) => [
        name,
        value(name).trim() === STANDARD[name] ? null : value(name).trim(),
      ]),
    );
    setTyped({});
    onRun(told);
  };
  return (
    <form class="heat-scenario" onSubmit={submit}>
      {input("hours", "Hours", "around the busiest")}
      {input("factor", "Rate factor", "times every rate")}
      {input("skew", "Skew", "0 is even, 1 Zipf's")}
      {input("burst", "Burst", "5x60s@2: 5×, 60 s, 2 an hour")}
      {input("seed", "Seed", "what chance is made of")}
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
            <Button onClick={onEnd}>Stop</Button>
          </>
        ) : (
          <Button kind="primary" type="submit" disabled={Object.keys(wrong).length > 0}>
            Simulate
          </Button>
        )}
      </div>
    </form>
  );
}

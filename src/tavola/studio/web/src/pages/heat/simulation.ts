// Simulation: the parts of `tavola simulate --json` that the page reads, its maps as grids, and a run with its progress.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, problemOf, wasAborted } from "../../app/api";
import type { SimulationRequest, Problem, SimulationProgress } from "../../generated/api";
import { type Grid, rangeOf, type RowInfo } from "./grid";
import { formatNumber } from "../../format";

export interface SimulatedKey {
  readonly name: string;
  readonly mean: number;
  readonly peak: number;
  readonly throttled: number;
  readonly position: number;
}

export interface ShardsNeeded {
  readonly keys: string;
  readonly now: number;
  readonly needed: number | null;
  readonly throttled: number;
}

export interface SimulatedTarget {
  readonly name: string;
  readonly table: string;
  readonly index: string | null;
  readonly access: "read" | "write";
  readonly mode: string;
  readonly units: number;
  readonly mean: number;
  readonly peak: number;
  readonly throttled: number;
  readonly partitions: readonly [number, number];
  readonly splits: number;
  readonly busiest: readonly SimulatedKey[];
  readonly diagnosis: string;
  readonly shards: readonly ShardsNeeded[];
}

export interface SimulatedMap {
  readonly name: string;
  readonly table: string;
  readonly index: string | null;
  readonly access: "read" | "write";
  readonly column_s: number;
  readonly begins_at_s: number;
  readonly heat: readonly (readonly number[])[];
  readonly throttled: readonly (readonly number[])[];
  /** Partition splits: when, where and why. */
  readonly cuts: readonly (readonly [number, number, string])[];
  readonly keys: readonly SimulatedKey[];
}

export interface Simulation {
  readonly begins_at_s: number;
  readonly requests: number;
  readonly throttled: number;
  readonly places: readonly SimulatedTarget[];
  readonly heat_maps: readonly SimulatedMap[];
  readonly assumptions: readonly string[];
}

/** Return the name of a range of the hash space. */
export function hashText(from: number, to: number): string {
  return `hash ${formatNumber(from * 100, 1)}–${formatNumber(to * 100, 1)}%`;
}

/** Return the grid of a simulated map, in units per second. */
export function simulatedGrid(map: SimulatedMap): Grid {
  const rows: RowInfo[] = map.heat.map((_, row) => {
    const [from, to] = [row / map.heat.length, (row + 1) / map.heat.length];
    const named = map.keys.filter((key) => key.position >= from && key.position < to).map((key) => key.name);
    const hash = hashText(from, to);
    return { label: named.length ? `${named.join(", ")} (${hash})` : hash, kind: "range", keys: 0 };
  });
  const columns = map.heat[0]?.length ?? 0;
  const cells = new Float32Array(rows.length * columns);
  const throttled = new Float32Array(rows.length * columns);
  map.heat.forEach((row, at) => cells.set(row, at * columns));
  map.throttled.forEach((row, at) => {
    row.forEach((share, column) => {
      throttled[at * columns + column] = share > 0.0005 ? share * (cells[at * columns + column] as number) : 0;
    });
  });
  const requested = Array.from({ length: columns }, (_, column) =>
    map.heat.reduce((sum, row) => sum + (row[column] ?? 0), 0),
  );
  const lost = Array.from({ length: columns }, (_, column) =>
    rows.reduce((sum, _row, at) => sum + (throttled[at * columns + column] as number), 0),
  );
  const none = requested.map(() => 0);
  const totals = {
    operations: none,
    reads: map.access === "read" ? requested : none,
    writes: map.access === "write" ? requested : none,
    throttles: lost,
  };
  return {
    rows,
    columns,
    columnS: map.column_s,
    fromS: 0,
    cells,
    throttled,
    scale: 1,
    ...rangeOf(cells),
    totals,
    firstKeys: [],
    lastKeys: [],
  };
}

export interface SimulationRun {
  readonly result: Simulation | null;
  readonly problem: Problem | null;
  readonly running: boolean;
  readonly progress: SimulationProgress | null;
  readonly run: (request: SimulationRequest) => void;
  readonly stop: () => void;
}

const PROGRESS_MS = 400;

/** Run simulations one at a time: a new one, or leaving the page, ends the running one. */
export function useSimulation(): SimulationRun {
  const [state, setState] = useState<Omit<SimulationRun, "run" | "stop">>({
    result: null,
    problem: null,
    running: false,
    progress: null,
  });
  const current = useRef<{ name: string; controller: AbortController; timer: number } | null>(null);
  const abort = () => {
    const running = current.current;
    current.current = null;
    if (!running) return;
    clearInterval(running.timer);
    running.controller.abort();
    void call("POST /heat/simulate/end", { run: running.name }).catch(() => undefined); // it would end by itself, too
  };
  useEffect(() => abort, []);
  const run = (request: SimulationRequest) => {
    abort();
    const name = `page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
    const controller = new AbortController();
    const timer = window.setInterval(() => {
      call("GET /heat/simulate/progress", { run: name }, { signal: controller.signal }).then(
        (progress) => setState((before) => ({ ...before, progress })),
        () => undefined, // the simulation's own response reports the problem
      );
    }, PROGRESS_MS);
    current.current = { name, controller, timer };
    setState((before) => ({ ...before, running: true, problem: null, progress: null }));
    call("POST /heat/simulate", { ...request, run: name }, { signal: controller.signal })
      .then((document) =>
        setState({ result: document as unknown as Simulation, problem: null, running: false, progress: null }),
      )
      .catch((thrown: unknown) => {
        if (!wasAborted(thrown))
          setState((before) => ({ ...before, problem: problemOf(thrown), running: false, progress: null }));
      })
      .finally(() => {
        clearInterval(timer);
        if (current.current?.name === name) current.current = null;
      });
  };
  const stop = () => {
    abort();
    setState((before) => ({ ...before, running: false, progress: null }));
  };
  return { ...state, run, stop };
}

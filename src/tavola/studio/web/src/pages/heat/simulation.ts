// Simulation: the document of `tavola simulate --json` as the page reads it, its maps as grids, and a run with its progress.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, problemOf, wasAborted } from "../../app/api";
import type { SimulationRequest, Document, Problem, SimulationProgress } from "../../generated/api";
import { type Grid, rangeOf, type RowInfo } from "./grid";

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

export interface SimulatedPlace {
  readonly name: string;
  readonly table: string;
  readonly index: string | null;
  readonly access: "read" | "write";
  readonly mode: string;
  readonly units: number;
  readonly mean: number;
  readonly peak: number;
  readonly throttled: number;
  readonly by_partitions: number;
  readonly by_whole: number;
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
  readonly bounds: readonly number[];
  /** When, where and why one partition became two. */
  readonly cuts: readonly (readonly [number, number, string])[];
  readonly keys: readonly SimulatedKey[];
}

export interface Simulation {
  readonly seed: number;
  readonly seconds: number;
  readonly began: string;
  readonly begins_at_s: number;
  readonly requests: number;
  readonly throttled: number;
  readonly wait_p99_s: number;
  readonly places: readonly SimulatedPlace[];
  readonly heat_maps: readonly SimulatedMap[];
  readonly assumptions: readonly string[];
  readonly without_rates: readonly string[];
  readonly times: readonly number[];
  readonly asked: readonly number[];
  readonly refused: readonly number[];
}

/** Return a document as what it is; the server made it of its own types. */
function read(document: Document): Simulation {
  return document as unknown as Simulation;
}

/** Return the name of a stretch of the hash, from one share of it to another. */
export function hashText(from: number, to: number): string {
  return `keys of hash ${Math.round(from * 1000) / 10}–${Math.round(to * 1000) / 10} %`;
}

/** Return the grid of a simulated map: units a second; what was refused of them is in `refused`. */
export function simulatedGrid(map: SimulatedMap): Grid {
  const rows: RowInfo[] = map.heat.map((_, row) => {
    const [from, to] = [row / map.heat.length, (row + 1) / map.heat.length];
    const named = map.keys.filter((key) => key.position >= from && key.position < to).map((key) => key.name);
    const hash = hashText(from, to);
    return { label: named.length ? `${named.join(", ")} (${hash})` : hash, kind: "range", keys: 0 };
  });
  const columns = map.heat[0]?.length ?? 0;
  const cells = new Float32Array(rows.length * columns);
  const refused = new Float32Array(rows.length * columns);
  map.heat.forEach((row, at) => cells.set(row, at * columns));
  map.throttled.forEach((row, at) => {
    row.forEach((share, column) => {
      refused[at * columns + column] = share > 0.0005 ? share * (cells[at * columns + column] as number) : 0;
    });
  });
  const asked = Array.from({ length: columns }, (_, column) =>
    map.heat.reduce((sum, row) => sum + (row[column] ?? 0), 0),
  );
  const lost = Array.from({ length: columns }, (_, column) =>
    rows.reduce((sum, _row, at) => sum + (refused[at * columns + column] as number), 0),
  );
  const none = asked.map(() => 0);
  const totals = {
    operations: none,
    reads: map.access === "read" ? asked : none,
    writes: map.access === "write" ? asked : none,
    throttles: lost,
  };
  return {
    rows,
    columns,
    columnS: map.column_s,
    fromS: 0,
    cells,
    refused,
    scale: 1,
    ...rangeOf(cells),
    totals,
    firstKeys: [],
    lastKeys: [],
  };
}

export interface SimulationRun {
  readonly found: Simulation | null;
  readonly problem: Problem | null;
  readonly running: boolean;
  readonly progress: SimulationProgress | null;
  readonly run: (asks: SimulationRequest) => void;
  readonly end: () => void;
}

const PROGRESS_MS = 400;

/** Run simulations one after the other: the newest counts, and whoever leaves ends it. */
export function useSimulation(): SimulationRun {
  const [state, setState] = useState<Omit<SimulationRun, "run" | "end">>({
    found: null,
    problem: null,
    running: false,
    progress: null,
  });
  const current = useRef<{ name: string; giving: AbortController; timer: number } | null>(null);
  const stop = () => {
    const standing = current.current;
    current.current = null;
    if (!standing) return;
    clearInterval(standing.timer);
    standing.giving.abort();
    void call("POST /heat/simulate/end", { run: standing.name }).catch(() => undefined); // it ends by itself in any case
  };
  useEffect(() => stop, []);
  const run = (asks: SimulationRequest) => {
    stop();
    const name = `page-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
    const giving = new AbortController();
    const timer = window.setInterval(() => {
      call("GET /heat/simulate/progress", { run: name }, { signal: giving.signal }).then(
        (progress) => setState((before) => ({ ...before, progress })),
        () => undefined, // the answer itself says what is wrong
      );
    }, PROGRESS_MS);
    current.current = { name, giving, timer };
    setState((before) => ({ ...before, running: true, problem: null, progress: null }));
    call("POST /heat/simulate", { ...asks, run: name }, { signal: giving.signal })
      .then((document) => setState({ found: read(document), problem: null, running: false, progress: null }))
      .catch((thrown: unknown) => {
        if (!wasAborted(thrown))
          setState((before) => ({ ...before, problem: problemOf(thrown), running: false, progress: null }));
      })
      .finally(() => {
        clearInterval(timer);
        if (current.current?.name === name) current.current = null;
      });
  };
  const end = () => {
    stop();
    setState((before) => ({ ...before, running: false, progress: null }));
  };
  return { ...state, run, end };
}

// LiveHeat: the map of live traffic: loaded completely once, then only the new columns.
import { useEffect, useState } from "preact/hooks";
import { call, problemOf, wasAborted } from "../../app/api";
import type { KeyHeatMap, HeatFinding, HottestKeys, Problem } from "../../generated/api";
import { type Grid, NO_GRID, updateGrid } from "./grid";

export type Metric = "operations" | "reads" | "writes" | "throttles";

export interface LiveRequest {
  readonly table: string;
  readonly index: string | null;
  readonly metric: Metric;
  readonly seconds: number;
  /** A fixed period, which is loaded only once. */
  readonly from: number | null;
  readonly to: number | null;
  readonly log: boolean;
  /** The first and last key of the part in view, as a response names them; null for all. */
  readonly keys: string | null;
}

export interface LiveHeat {
  readonly grid: Grid;
  /** The last response, for what is beside the cells. */
  readonly answer: KeyHeatMap | null;
  readonly findings: readonly HeatFinding[];
  readonly hottest: HottestKeys | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
}

const EMPTY: LiveHeat = { grid: NO_GRID, answer: null, findings: [], hottest: null, problem: null, loading: true };
const DIAGNOSE_EVERY = 5; // requests, after which the diagnosis and the hottest keys are loaded again
const RELOAD_EVERY = 120; // requests, after which all is loaded again, so that cold keys disappear

/** Load a map, and while `live` each new column. */
export function useLiveHeat(request: LiveRequest | null, live: boolean): LiveHeat {
  const [state, setState] = useState<LiveHeat>(EMPTY);
  const shape = request === null ? null : JSON.stringify(request);
  useEffect(() => {
    if (shape === null) return;
    const wanted = JSON.parse(shape) as LiveRequest;
    const controller = new AbortController();
    let timer = 0;
    let round = 0;
    let last: KeyHeatMap | null = null;
    let grid = NO_GRID;
    setState((before) => ({ ...before, loading: true }));
    const load = async () => {
      const whole = last === null || round % RELOAD_EVERY === 0;
      const diagnose = whole || round % DIAGNOSE_EVERY === 0;
      const [first = null, end = null] = wanted.keys?.split("-") ?? [];
      const place = {
        table: wanted.table,
        index: wanted.index,
        metric: wanted.metric,
        seconds: wanted.seconds,
        from_s: wanted.from,
        to_s: wanted.to,
        log: wanted.log,
      };
      const more =
        whole || last === null ? {} : { layout: last.layout, since_s: grid.fromS + (grid.columns - 1) * grid.columnS };
      const answer = await call(
        "GET /heat",
        { ...place, ...more, first, last: end, diagnose: false },
        { signal: controller.signal },
      );
      grid = await updateGrid(grid, answer);
      last = answer;
      round += 1;
      if (controller.signal.aborted) return;
      setState((before) => ({ ...before, grid, answer, problem: null, loading: false }));
      // The map first: the diagnosis takes longer.
      if (!diagnose) return;
      const hottest = await call("GET /heat/hottest", { ...place, count: 12 }, { signal: controller.signal });
      if (!controller.signal.aborted) setState((before) => ({ ...before, findings: hottest.diagnosis, hottest }));
    };
    const step = () => {
      // A hidden tab sends no requests.
      const loaded = document.hidden && last !== null ? Promise.resolve() : load();
      loaded
        .catch((thrown: unknown) => {
          if (!wasAborted(thrown)) setState((before) => ({ ...before, problem: problemOf(thrown), loading: false }));
        })
        .finally(() => {
          if (live && !controller.signal.aborted)
            timer = window.setTimeout(step, Math.max(1000, (grid.columnS * 1000) / 2));
        });
    };
    step();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [shape, live]);
  return state;
}

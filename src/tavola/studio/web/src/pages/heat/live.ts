// Live: the map of a table as it is now: asked for whole once, then only the columns that are new.
import { useEffect, useState } from "preact/hooks";
import { call, problemOf, wasAborted } from "../../app/api";
import type { HeatMap, HeatFinding, HottestKeys, Problem } from "../../generated/api";
import { type Grid, joined, NO_GRID } from "./grid";

export type Metric = "operations" | "reads" | "writes" | "throttles";

export interface LiveQuestion {
  readonly table: string;
  readonly index: string | null;
  readonly metric: Metric;
  readonly seconds: number;
  /** A fixed time; then nothing is asked again. */
  readonly from: number | null;
  readonly to: number | null;
  readonly log: boolean;
  /** The first and the last key of the part that is looked at, as an answer names them; null: all. */
  readonly keys: string | null;
}

export interface LiveHeat {
  readonly grid: Grid;
  /** The last answer, for what is beside the cells. */
  readonly answer: HeatMap | null;
  readonly findings: readonly HeatFinding[];
  readonly hottest: HottestKeys | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
}

const NOTHING: LiveHeat = { grid: NO_GRID, answer: null, findings: [], hottest: null, problem: null, loading: true };
const TELL_EVERY = 5; // columns, after which the diagnosis and the hottest keys are asked again
const WHOLE_EVERY = 120; // after which the rows are laid out anew: keys that went cold leave

/** Ask for a map, and while `live` for each new column. */
export function useLive(question: LiveQuestion | null, live: boolean): LiveHeat {
  const [state, setState] = useState<LiveHeat>(NOTHING);
  const shape = question === null ? null : JSON.stringify(question);
  useEffect(() => {
    if (shape === null) return;
    const asked = JSON.parse(shape) as LiveQuestion;
    const giving = new AbortController();
    let timer = 0;
    let round = 0;
    let last: HeatMap | null = null;
    let grid = NO_GRID;
    setState((before) => ({ ...before, loading: true }));
    const ask = async () => {
      const whole = last === null || round % WHOLE_EVERY === 0;
      const tell = whole || round % TELL_EVERY === 0;
      const [first = null, end = null] = asked.keys?.split("-") ?? [];
      const place = {
        table: asked.table,
        index: asked.index,
        metric: asked.metric,
        seconds: asked.seconds,
        from_s: asked.from,
        to_s: asked.to,
        log: asked.log,
      };
      const more =
        whole || last === null ? {} : { layout: last.layout, since_s: grid.fromS + (grid.columns - 1) * grid.columnS };
      const answer = await call(
        "GET /heat",
        { ...place, ...more, first, last: end, diagnose: false },
        { signal: giving.signal },
      );
      grid = await joined(grid, answer);
      last = answer;
      round += 1;
      if (giving.signal.aborted) return;
      setState((before) => ({ ...before, grid, answer, problem: null, loading: false }));
      // The picture first: what it means takes longer to find.
      if (!tell) return;
      const hottest = await call("GET /heat/hottest", { ...place, count: 12 }, { signal: giving.signal });
      if (!giving.signal.aborted) setState((before) => ({ ...before, findings: hottest.diagnosis, hottest }));
    };
    const step = () => {
      // A page that nobody looks at asks nothing.
      const asking = document.hidden && last !== null ? Promise.resolve() : ask();
      asking
        .catch((thrown: unknown) => {
          if (!wasAborted(thrown)) setState((before) => ({ ...before, problem: problemOf(thrown), loading: false }));
        })
        .finally(() => {
          if (live && !giving.signal.aborted)
            timer = window.setTimeout(step, Math.max(1000, (grid.columnS * 1000) / 2));
        });
    };
    step();
    return () => {
      clearTimeout(timer);
      giving.abort();
    };
  }, [shape, live]);
  return state;
}

// Live: a question that is asked again and again while somebody looks, and stops while they do not.
import { useEffect, useRef, useState } from "preact/hooks";
import { type Asks, call, type EndpointName, type Gives, problemOf, wasAborted } from "../../app/api";
import type { Problem } from "../../generated/api";

export interface Lively<T> {
  readonly data: T | null;
  readonly problem: Problem | null;
  /** What `data` answers is what is asked now, and not what was asked before. */
  readonly current: boolean;
  readonly again: () => void;
}

/** Ask now and every so many ms; paused, or in a tab that nobody sees, what is there stays. */
export function useLive<E extends EndpointName>(
  endpoint: E,
  asks: Asks<E>,
  every: number,
  paused: boolean,
): Lively<Gives<E>> {
  const shape = JSON.stringify(asks);
  const [state, setState] = useState<{ data: Gives<E> | null; problem: Problem | null; shape: string }>({
    data: null,
    problem: null,
    shape: "",
  });
  const [round, setRound] = useState(0);
  const asked = useRef("");
  useEffect(() => {
    const giving = new AbortController();
    let timer = 0;
    const ask = async () => {
      if (document.hidden && asked.current === shape) {
        timer = setTimeout(ask, every);
        return;
      }
      try {
        const data = await call(endpoint, JSON.parse(shape) as Asks<E>, { signal: giving.signal });
        asked.current = shape;
        setState({ data, problem: null, shape });
      } catch (thrown) {
        if (wasAborted(thrown)) return;
        setState((before) => ({ ...before, problem: problemOf(thrown) }));
      }
      if (!paused) timer = setTimeout(ask, every);
    };
    if (!paused || asked.current !== shape || round > 0) void ask();
    return () => {
      clearTimeout(timer);
      giving.abort();
    };
  }, [endpoint, shape, every, paused, round]);
  return {
    data: state.data,
    problem: state.problem,
    current: state.shape === shape,
    again: () => setRound((before) => before + 1),
  };
}

// Asking: a question as a part of a page: its answer, its problem, and whether it is under way.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../generated/api";
import { type Asks, call, type EndpointName, type Gives, problemOf, wasAborted } from "./api";

export interface Asked<T> {
  /** The last answer; it stays while the next is under way, so nothing flickers. */
  readonly data: T | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
  readonly again: () => void;
}

/** Ask a question, and ask it anew when it changes; null asks nothing. `delay` waits in ms for the typing to stop. */
export function useAsk<E extends EndpointName>(
  endpoint: E,
  asks: Asks<E> | null,
  options: { delay?: number } = {},
): Asked<Gives<E>> {
  const [state, setState] = useState<{ data: Gives<E> | null; problem: Problem | null; loading: boolean }>({
    data: null,
    problem: null,
    loading: asks !== null,
  });
  const [round, setRound] = useState(0);
  const shape = asks === null ? null : JSON.stringify(asks);
  const first = useRef(true);
  useEffect(() => {
    if (shape === null) {
      setState({ data: null, problem: null, loading: false });
      return;
    }
    const giving = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    const wait = first.current ? 0 : (options.delay ?? 0);
    first.current = false;
    const timer = setTimeout(() => {
      call(endpoint, JSON.parse(shape) as Asks<E>, { signal: giving.signal }).then(
        (data) => setState({ data, problem: null, loading: false }),
        (thrown: unknown) => {
          if (!wasAborted(thrown)) setState((before) => ({ ...before, problem: problemOf(thrown), loading: false }));
        },
      );
    }, wait);
    return () => {
      clearTimeout(timer);
      giving.abort();
    };
  }, [endpoint, shape, round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, again };
}

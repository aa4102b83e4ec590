// Queries: requests to the API as part of a component: the response, the problem, and whether one is running.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../generated/api";
import { call, type EndpointName, problemOf, type RequestOf, type ResponseOf, wasAborted } from "./api";

export interface Query<T> {
  /** The last response; it stays while the next request runs, so that nothing flickers. */
  readonly data: T | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
  /** Whether `data` is the response to the current request, not to the one before. */
  readonly current: boolean;
  readonly retry: () => void;
}

interface QueryOptions {
  /** Wait this long after a change of the request, while the user types. The first request is sent at once. */
  delayMs?: number;
  /** Send the request again after this time, unless the tab is hidden. */
  everyMs?: number;
  /** Stop sending it again; a changed request is still sent once. */
  paused?: boolean;
}

/** Send a request, and again when it changes; null sends nothing. */
export function useQuery<E extends EndpointName>(
  endpoint: E,
  request: RequestOf<E> | null,
  { delayMs = 0, everyMs = 0, paused = false }: QueryOptions = {},
): Query<ResponseOf<E>> {
  const body = request === null ? null : JSON.stringify(request);
  const [state, setState] = useState<{
    data: ResponseOf<E> | null;
    problem: Problem | null;
    loading: boolean;
    body: string | null;
  }>({ data: null, problem: null, loading: body !== null, body: null });
  const [round, setRound] = useState(0);
  const answered = useRef("");
  const isFirst = useRef(true);
  useEffect(() => {
    if (body === null) {
      setState({ data: null, problem: null, loading: false, body: null });
      return;
    }
    const id = `${body} ${round}`;
    if (paused && answered.current === id) return;
    const controller = new AbortController();
    let timer = 0;
    const again = () => {
      if (everyMs && !paused) timer = setTimeout(send, everyMs);
    };
    const send = async () => {
      if (document.hidden && answered.current === id) return again();
      try {
        const data = await call(endpoint, JSON.parse(body) as RequestOf<E>, { signal: controller.signal });
        answered.current = id;
        setState({ data, problem: null, loading: false, body });
      } catch (thrown) {
        if (wasAborted(thrown)) return;
        const problem = problemOf(thrown);
        setState((before) => ({ ...before, problem, loading: false }));
        if (problem.status === 401 || problem.status === 403) return; // a refusal does not change by itself
      }
      again();
    };
    setState((before) => ({ ...before, loading: true }));
    timer = setTimeout(send, isFirst.current ? 0 : delayMs);
    isFirst.current = false;
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [endpoint, body, round, everyMs, paused]);
  const retry = useCallback(() => setRound((before) => before + 1), []);
  return {
    data: state.data,
    problem: state.problem,
    loading: state.loading,
    current: state.body === body,
    retry,
  };
}

export interface Action {
  readonly busy: boolean;
  readonly problem: Problem | null;
  /** Run `act`, and keep what it throws as the problem; return whether it succeeded. */
  readonly run: (act: () => Promise<void>) => Promise<boolean>;
  readonly fail: (problem: Problem | null) => void;
}

/** Something a button does: whether it is running, and the problem it ended with. */
export function useAction(): Action {
  const [state, setState] = useState<{ busy: boolean; problem: Problem | null }>({ busy: false, problem: null });
  const run = async (act: () => Promise<void>) => {
    setState({ busy: true, problem: null });
    try {
      await act();
      setState({ busy: false, problem: null });
      return true;
    } catch (thrown) {
      setState({ busy: false, problem: problemOf(thrown) });
      return false;
    }
  };
  return { ...state, run, fail: (problem) => setState({ busy: false, problem }) };
}

// API: requests to the server, typed by the types generated from Python; every failure is a Problem.
import type { Endpoints, Problem } from "../generated/api";
import { adoptPerson, endPerson, type Person, signsIn } from "./person";
import { renewToken, token, url } from "./server";

export type EndpointName = keyof Endpoints;
export type RequestOf<E extends EndpointName> = Endpoints[E]["request"];
export type ResponseOf<E extends EndpointName> = Endpoints[E]["response"];

/** A failed request. */
export class ApiProblem extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(`${problem.title}: ${problem.detail}`);
    this.problem = problem;
  }
}

/** Return the problem that something thrown describes. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof ApiProblem) return thrown.problem;
  return {
    code: "page-failed",
    title: "Something went wrong on this page",
    detail: thrown instanceof Error ? thrown.message : String(thrown),
    remedy: "Reload the page. No data was changed.",
    status: 0,
  };
}

/** Return whether the page itself cancelled the request. */
export function wasAborted(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

/** Return parameters as a query string, without the empty ones. */
export function queryString(parameters: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text ? `?${text}` : "";
}

/** Return the URL of a request that the browser itself sends: a download, an event stream. */
export function apiUrl<E extends EndpointName>(endpoint: E, request: RequestOf<E>): string {
  const path = endpoint.slice(endpoint.indexOf(" ") + 1);
  return url(`/api${path}`) + queryString(request as object);
}

/** Send a request and return the raw response; throw an ApiProblem if it fails. */
export async function send<E extends EndpointName>(
  endpoint: E,
  request: RequestOf<E>,
  options: { signal?: AbortSignal } = {},
): Promise<Response> {
  const tokenBefore = token();
  try {
    return await sendOnce(endpoint, request, tokenBefore, options);
  } catch (thrown) {
    // A restarted server has another token, and rejects the request before doing anything.
    if (!(thrown instanceof ApiProblem) || thrown.problem.code !== "token-refused") throw thrown;
    const renewed = tokenBefore !== token() || (await renew().catch(() => false));
    if (!renewed) throw thrown;
    return await sendOnce(endpoint, request, token(), options);
  }
}

/** Fetch the token again; return whether it changed. After sign-in it is that of the session, which another tab may have opened. */
async function renew(): Promise<boolean> {
  if (!signsIn) return renewToken();
  const before = token();
  adoptPerson((await (await sendToStudio(url("/api/sign-in"), { cache: "no-store" })).json()) as Person);
  return token() !== before;
}

async function sendOnce<E extends EndpointName>(
  endpoint: E,
  request: RequestOf<E>,
  token: string,
  options: { signal?: AbortSignal },
): Promise<Response> {
  const [method, path] = endpoint.split(" ") as [string, string];
  const init: RequestInit = { method, signal: options.signal ?? null };
  let target = url(`/api${path}`);
  if (method === "GET") {
    target += queryString(request as object);
  } else {
    init.headers = { "Content-Type": "application/json", "X-Tavola-Token": token };
    init.body = JSON.stringify(request);
  }
  return sendToStudio(target, init);
}

/** Send a request to the studio's server; throw an ApiProblem if it fails. Without a session the sign-in page opens. */
export async function sendToStudio(target: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(target, { ...init, credentials: "same-origin" });
  } catch (thrown) {
    if (wasAborted(thrown)) throw thrown;
    throw new ApiProblem({
      code: "studio-lost",
      title: "Can't reach the studio server",
      detail: "The server stopped, or the connection was lost.",
      remedy: "Start `tavola studio` again. This page then reconnects, and your input is kept.",
      status: 0,
    });
  }
  if (!response.ok) {
    const problem = await responseProblem(response);
    if (problem.code === "sign-in-required") endPerson(true);
    throw new ApiProblem(problem);
  }
  return response;
}

/** Send a request and return the decoded response. */
export async function call<E extends EndpointName>(
  endpoint: E,
  request: RequestOf<E>,
  options: { signal?: AbortSignal } = {},
): Promise<ResponseOf<E>> {
  const response = await send(endpoint, request, options);
  return (await response.json()) as ResponseOf<E>;
}

async function responseProblem(response: Response): Promise<Problem> {
  try {
    const body = (await response.json()) as { problem?: Problem };
    if (body.problem) return body.problem;
  } catch {
    // Not JSON: a proxy responded, and its text does not help the user.
  }
  return {
    code: `http-${response.status}`,
    title: "The server rejected the request",
    detail: `The response was ${response.status} ${response.statusText}`.trim() + ".",
    remedy: response.status === 403 ? "Reload the page; the server may have restarted." : "Try again.",
    status: response.status,
  };
}

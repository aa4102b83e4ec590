// API: every question to the server, typed whole by what Python says, and every refusal in one shape.
import type { Endpoints, Problem } from "../generated/api";
import { renewToken, token, url } from "./place";

export type EndpointName = keyof Endpoints;
export type Asks<E extends EndpointName> = Endpoints[E]["request"];
export type Gives<E extends EndpointName> = Endpoints[E]["response"];

/** A refusal, or what kept the answer from coming. */
export class ApiProblem extends Error {
  readonly problem: Problem;
  constructor(problem: Problem) {
    super(`${problem.title}: ${problem.detail}`);
    this.problem = problem;
  }
}

/** Return the problem in whatever was thrown. */
export function problemOf(thrown: unknown): Problem {
  if (thrown instanceof ApiProblem) return thrown.problem;
  return {
    code: "page-failed",
    title: "The page made a mistake",
    detail: thrown instanceof Error ? thrown.message : String(thrown),
    remedy: "Reload the page; nothing was changed by this.",
    status: 0,
  };
}

/** Tell whether a question was given up by the page itself. */
export function wasAborted(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}

/** Return a question's parameters as a query string, leaving out what is not given. */
export function query(asks: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(asks)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `?${text}` : "";
}

/** Return the URL of a question that a browser asks by itself: a download, a stream. */
export function apiUrl<E extends EndpointName>(endpoint: E, asks: Asks<E>): string {
  const path = endpoint.slice(endpoint.indexOf(" ") + 1);
  return url(`/api${path}`) + query(asks as object);
}

/** Ask the server, and return its raw answer; throw an ApiProblem where it refuses or cannot be reached. */
export async function ask<E extends EndpointName>(
  endpoint: E,
  asks: Asks<E>,
  options: { signal?: AbortSignal } = {},
): Promise<Response> {
  const used = token();
  try {
    return await askOnce(endpoint, asks, used, options);
  } catch (thrown) {
    // A server that was started again knows another token, and refused before it did anything.
    if (!(thrown instanceof ApiProblem) || thrown.problem.code !== "token-refused") throw thrown;
    const renewed = used !== token() || (await renewToken().catch(() => false));
    if (!renewed) throw thrown;
    return await askOnce(endpoint, asks, token(), options);
  }
}

async function askOnce<E extends EndpointName>(
  endpoint: E,
  asks: Asks<E>,
  token: string,
  options: { signal?: AbortSignal },
): Promise<Response> {
  const [method, path] = endpoint.split(" ") as [string, string];
  const request: RequestInit = { method, signal: options.signal ?? null, credentials: "same-origin" };
  let where = url(`/api${path}`);
  if (method === "GET") {
    where += query(asks as object);
  } else {
    request.headers = { "Content-Type": "application/json", "X-Tavola-Token": token };
    request.body = JSON.stringify(asks);
  }
  let response: Response;
  try {
    response = await fetch(where, request);
  } catch (thrown) {
    if (wasAborted(thrown)) throw thrown;
    throw new ApiProblem({
      code: "studio-lost",
      title: "The studio's server does not answer",
      detail: "It was stopped, or the connection to it is gone.",
      remedy: "Start `tavola studio` again; this page goes on where it was. What you typed is still here.",
      status: 0,
    });
  }
  if (!response.ok) throw new ApiProblem(await refusal(response));
  return response;
}

/** Ask the server a question, and return its answer. */
export async function call<E extends EndpointName>(
  endpoint: E,
  asks: Asks<E>,
  options: { signal?: AbortSignal } = {},
): Promise<Gives<E>> {
  const response = await ask(endpoint, asks, options);
  return (await response.json()) as Gives<E>;
}

async function refusal(response: Response): Promise<Problem> {
  try {
    const told = (await response.json()) as { problem?: Problem };
    if (told.problem) return told.problem;
  } catch {
    // No JSON: a proxy answered, and what it says is of no use to anybody here.
  }
  return {
    code: `http-${response.status}`,
    title: "The server refused",
    detail: `It answered ${response.status} ${response.statusText}`.trim() + ".",
    remedy: response.status === 403 ? "Reload the page: the server may have been started anew." : "Try again.",
    status: response.status,
  };
}

// Server: the path the studio is served under, and the token its pages send. The server writes both into meta tags.
export function metaContent(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="tavola-${name}"]`)?.content ?? "";
}

/** The base path, without a slash at its end: "" or "/studio". */
export const base = metaContent("base");

/** The token of the page itself, which sign-in needs. */
export const pageToken = metaContent("token");

/** The token that requests need: the page's, or after sign-in the session's. */
let currentToken = pageToken;
export const token = (): string => currentToken;

/** Set the token of a session. */
export function setToken(next: string): void {
  currentToken = next;
}

/** Fetch the token again, since a restarted server has a new one; return whether it changed. */
export async function renewToken(): Promise<boolean> {
  const before = currentToken;
  const page = await (await fetch(`${base}/`, { cache: "no-store", credentials: "same-origin" })).text();
  currentToken = /<meta name="tavola-token" content="([0-9a-f]+)">/.exec(page)?.[1] ?? currentToken;
  return currentToken !== before;
}

/** Return the URL of one of the studio's paths. */
export function url(path: string): string {
  return base + path;
}

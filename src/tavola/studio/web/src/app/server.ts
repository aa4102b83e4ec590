// Server: the path the studio is served under, and the token its pages send. The server writes both into meta tags.
function metaContent(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="tavola-${name}"]`)?.content ?? "";
}

/** The base path, without a slash at its end: "" or "/studio". */
export const base = metaContent("base");

/** The token of the running server. */
let currentToken = metaContent("token");
export const token = (): string => currentToken;

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

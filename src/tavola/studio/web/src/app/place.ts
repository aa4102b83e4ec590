// Place: where the studio is served, and the token that its own pages send along; told by the server in meta tags.
function told(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="tavola-${name}"]`)?.content ?? "";
}

/** The path that everything is below, without a slash at its end: "" or "/studio". */
export const base = told("base");

/** The token of the server that answers now. */
let known = told("token");
export const token = (): string => known;

/** Fetch the token anew, as a server that was started again has another; tell whether there is a new one. */
export async function renewToken(): Promise<boolean> {
  const before = known;
  const page = await (await fetch(`${base}/`, { cache: "no-store", credentials: "same-origin" })).text();
  known = /<meta name="tavola-token" content="([0-9a-f]+)">/.exec(page)?.[1] ?? known;
  return known !== before;
}

/** Return the URL of a path of ours, wherever the studio is served. */
export function url(path: string): string {
  return base + path;
}

// Router: the URL is the state. A view is `<base>/<page>/<table>?parameters`, and nothing else decides what is shown.
import { signal } from "@preact/signals";
import { base } from "./server";

export interface Route {
  readonly page: string;
  readonly table: string;
  readonly params: Readonly<Record<string, string>>;
}

/** A change of the route; a parameter that is null or "" is removed from the URL. */
export interface RouteChange {
  page?: string;
  table?: string;
  params?: Readonly<Record<string, string | null | undefined>>;
}

/** Parameters that stay when the page or table changes: the point in time. */
const LASTING = ["at"];

export const route = signal<Route>(parse(location.pathname, location.search));

addEventListener("popstate", () => {
  route.value = parse(location.pathname, location.search);
});

function parse(path: string, search: string): Route {
  const parts = path.slice(base.length).split("/").filter(Boolean).map(decodePart);
  return {
    page: parts[0] ?? "data",
    table: parts[1] ?? "",
    params: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a lone %: it names nothing, and the page says so
  }
}

/** Return the route after a change: another page or table starts without the parameters of this one. */
export function changeRoute(change: RouteChange, from: Route = route.value): Route {
  const page = change.page ?? from.page;
  const table = change.table ?? from.table;
  const same = page === from.page && table === from.table;
  const params: Record<string, string> = {};
  for (const [name, value] of Object.entries(from.params)) {
    if (same || LASTING.includes(name)) params[name] = value;
  }
  for (const [name, value] of Object.entries(change.params ?? {})) {
    if (value === null || value === undefined || value === "") delete params[name];
    else params[name] = value;
  }
  return { page, table, params };
}

/** Return the URL of a change, for links. */
export function href(change: RouteChange): string {
  return routeUrl(changeRoute(change));
}

function routeUrl(to: Route): string {
  const path = [to.page, to.table].filter(Boolean).map(encodeURIComponent).join("/");
  const search = new URLSearchParams(to.params).toString();
  return `${base}/${path}${search ? `?${search}` : ""}`;
}

/** Change the route; `replace` adds no entry to the browser's history, for changes while typing. */
export function go(change: RouteChange, options: { replace?: boolean } = {}): void {
  const to = changeRoute(change);
  const target = routeUrl(to);
  if (target === location.pathname + location.search) return;
  if (options.replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  route.value = to;
}

/** Return a parameter of the URL and its setter. */
export function useParam(name: string, standard = ""): [string, (value: string, replace?: boolean) => void] {
  const value = route.value.params[name] ?? standard;
  const set = (to: string, replace = false) => go({ params: { [name]: to === standard ? null : to } }, { replace });
  return [value, set];
}

/** Follow a link inside the studio without loading the page again; other links and new tabs are left to the browser. */
export function follow(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!`${link.pathname}/`.startsWith(`${base}/`) || link.pathname.startsWith(`${base}/api/`)) return;
  event.preventDefault();
  if (link.pathname + link.search === location.pathname + location.search) return;
  history.pushState(null, "", link.href);
  route.value = parse(link.pathname, link.search);
}

// Shell: the frame of every page: top bar, navigation, command palette and point-in-time banner.
import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { Badge, Button, Empty, Icon, IconButton, Menu, Notice, ProblemNotice, Spinner } from "../parts";
import icon from "../styles/icon.svg";
import { onKey, formatKeys, useCommands } from "./commands";
import { NoTables } from "./no_tables";
import { type PageEntry, needsTables, pageNamed, PAGES } from "./pages";
import { Palette, paletteOpen, ShortcutSheet, sheetOpen } from "./palette";
import { follow, go, href, route } from "./router";
import { PersonNote, signOut } from "./sign_in";
import { signsIn } from "./person";
import { currentTable, refreshSession, session, sessionProblem } from "./session";
import { PastBanner, TimeButton } from "./past_banner";
import { type Theme, theme } from "./theme";
import { Tour } from "./tour";
import { formatBytes, formatCount, formatNumber } from "../format";

export function Shell() {
  const [menu, setMenu] = useState(false);
  useEffect(() => {
    void refreshSession();
    addEventListener("keydown", onKey);
    addEventListener("click", follow);
    return () => {
      removeEventListener("keydown", onKey);
      removeEventListener("click", follow);
    };
  }, []);
  useEffect(() => setMenu(false), [route.value]);
  useCommands([
    {
      id: "palette",
      title: "Command palette…",
      keys: "mod+k",
      group: "General",
      always: true,
      run: () => (paletteOpen.value = true),
    },
    { id: "sheet", title: "Show keyboard shortcuts", keys: "?", group: "General", run: () => (sheetOpen.value = true) },
    ...PAGES.map((page) => ({
      id: `page-${page.name}`,
      title: `Go to ${page.title}`,
      keys: page.keys,
      group: "General",
      run: () => go({ page: page.name, table: tableName() }),
    })),
    {
      id: "refresh",
      title: "Refresh table list",
      group: "General",
      run: () => void refreshSession(),
    },
    ...(signsIn ? [{ id: "sign-out", title: "Sign out", group: "General", run: () => void signOut() }] : []),
    ...(["light", "dark", "system"] as const).map((name) => ({
      id: `theme-${name}`,
      title: name === "system" ? "Theme: match system" : `Theme: ${name}`,
      words: "theme mode appearance colors",
      group: "General",
      run: () => (theme.value = name),
    })),
  ]);
  const page = pageNamed(route.value.page);
  useEffect(() => {
    document.title = [page?.title ?? "Not found", page?.ofTable ? currentTable.value?.name : "", "Tavola Studio"]
      .filter(Boolean)
      .join(" · ");
  }, [page, currentTable.value]);
  return (
    <div class="shell">
      <Button class="skip" onClick={() => document.getElementById("page")?.focus()}>
        Skip to content
      </Button>
      <Bar menu={menu} toggle={() => setMenu(!menu)} />
      <Navigation open={menu} close={() => setMenu(false)} />
      <main class="shell-page" id="page" tabIndex={-1}>
        <PastBanner />
        {sessionProblem.value ? (
          <div class="page">
            <ProblemNotice problem={sessionProblem.value} retry={() => void refreshSession()} />
          </div>
        ) : null}
        {session.value?.problem ? (
          <div class="page">
            <ProblemNotice problem={session.value.problem} retry={() => void refreshSession()} />
          </div>
        ) : null}
        {session.value === null ? (
          sessionProblem.value ? null : (
            <div class="page">
              <Spinner />
            </div>
          )
        ) : session.value.problem &&
          needsTables(page?.name ?? "") &&
          (currentTable.value?.status ?? "UNKNOWN") === "UNKNOWN" ? null : page?.ofTable &&
          !session.value.tables.length &&
          !session.value.problem ? (
          <NoTables />
        ) : page ? (
          <PageHolder key={page.name} entry={page} />
        ) : (
          <div class="page">
            <Empty
              whole
              title="Page not found"
              actions={<a href={href({ page: "data", table: "", params: {} })}>Go to Data</a>}
            >
              The studio has no page named {JSON.stringify(route.value.page)}.
            </Empty>
          </div>
        )}
      </main>
      {paletteOpen.value ? <Palette /> : null}
      {sheetOpen.value ? <ShortcutSheet /> : null}
      <Tour />
    </div>
  );
}

/** The current table, which navigation keeps. */ function tableName(): string {
  return currentTable.value?.name ?? route.value.table;
}

const TAIL = 8; // letters at the end of a name that are always shown: related names often differ only there

/** A name that is shortened in the middle if it is too long. */
function Name({ text }: { text: string }) {
  if (text.length < 2 * TAIL) return <span class="cut">{text}</span>;
  return (
    <span class="cut-middle">
      <span class="cut">{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </span>
  );
}

function Bar({ menu, toggle }: { menu: boolean; toggle: () => void }) {
  const current = session.value;
  const chosen = theme.value;
  const themes: [Theme, string][] = [
    ["light", "Light"],
    ["dark", "Dark"],
    ["system", "System"],
  ];
  return (
    <header class="shell-bar">
      <IconButton
        class="shell-menu-button"
        kind="quiet"
        label={menu ? "Close menu" : "Open menu"}
        aria-expanded={menu}
        onClick={toggle}
      >
        ☰
      </IconButton>
      <a class="shell-name" aria-label="Tavola Studio" href={href({ page: "data", table: "" })}>
        <img src={icon} alt="" />
        <span>Tavola Studio</span>
      </a>
      {current ? (
        <span class="shell-where row tight">
          <Badge>
            <span class="cut" title={`${current.where.text}, ${current.where.region}`}>
              {current.where.text}
            </span>
          </Badge>
          {current.read_only ? <Badge tone="warn">read-only</Badge> : null}
        </span>
      ) : null}
      <Button class="shell-find" onClick={() => (paletteOpen.value = true)} aria-label="Command palette">
        <span>Search…</span>
        <kbd>{formatKeys("mod+k")}</kbd>
        <Icon path="M14.500 9a5.500 5.500 0 1 1-11 0 5.500 5.500 0 0 1 11 0M13.500 13.500l4 4" />
      </Button>
      <TimeButton />
      <Menu
        label="Theme"
        kind="quiet"
        icon={<span aria-hidden="true">◐</span>}
        items={themes.map(([value, label]) => ({
          label,
          beside: chosen === value ? "✓" : "",
          run: () => (theme.value = value),
        }))}
      />
    </header>
  );
}

function Navigation({ open, close }: { open: boolean; close: () => void }) {
  const here = route.value;
  const page = pageNamed(here.page);
  const tables = session.value?.tables ?? [];
  return (
    <nav
      class="shell-nav"
      aria-label="Studio"
      data-open={open ? "yes" : "no"}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        close();
        document.querySelector<HTMLElement>(".shell-menu-button")?.focus();
      }}
    >
      <ul>
        {PAGES.map((each) => (
          <li key={each.name}>
            <a
              href={href({ page: each.name, table: currentTable.value?.name ?? here.table })}
              aria-current={each.name === here.page ? "page" : undefined}
              title={each.about}
            >
              <Icon path={each.icon} size={18} />
              {each.title}
            </a>
          </li>
        ))}
      </ul>
      {tables.length ? (
        <div>
          <div class="label">Tables{session.value?.more_tables ? " (partial list; search by name)" : ""}</div>
          <ul>
            {tables.map((table) => (
              <li key={table.name}>
                <a
                  class="table-link"
                  href={href({ page: page?.ofTable || here.page === "cost" ? here.page : "data", table: table.name })}
                  aria-current={table.name === currentTable.value?.name ? "true" : undefined}
                  title={`${table.name}${table.design ? `, designed in ${table.design}` : ""}${table.status === "MISSING" ? ": declared in the design, not created yet" : table.status === "UNKNOWN" ? ": status unknown" : `: ${formatCount(table.items, "item")}, ${formatBytes(table.bytes)}`}`}
                >
                  <Name text={table.name} />
                  {table.status === "MISSING" ? (
                    <Badge tone="warn">missing</Badge>
                  ) : table.status === "UNKNOWN" ? null : (
                    <span class="muted small">{formatNumber(table.items)}</span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ) : null}
      {session.value ? <PersonNote isLocal={["memory", "file"].includes(session.value.where.kind)} /> : null}
    </nav>
  );
}

/** A page, loaded when it is first shown. An error in it is shown in its place, and the rest of the studio keeps working. */
function PageHolder({ entry }: { entry: PageEntry }) {
  const [Page, setPage] = useState<ComponentType | null>(null);
  const [loadFailed, setLoadFailed] = useState(false);
  const [error, reset] = useErrorBoundary();
  useEffect(() => {
    let unmounted = false;
    entry.load().then(
      (module) => unmounted || setPage(() => module.default),
      () => unmounted || setLoadFailed(true),
    );
    return () => {
      unmounted = true;
    };
  }, [entry]);
  if (loadFailed) {
    return (
      <div class="page">
        <Notice
          tone="error"
          title="Could not load the page"
          actions={<Button onClick={() => location.reload()}>Reload</Button>}
        >
          The studio server is not responding, or it restarted with a different version.
        </Notice>
      </div>
    );
  }
  if (error) {
    return (
      <div class="page">
        <Notice
          tone="error"
          title="Something went wrong on this page"
          actions={<Button onClick={reset}>Try again</Button>}
        >
          {error instanceof Error ? error.message : String(error)}
        </Notice>
      </div>
    );
  }
  return Page ? (
    <Page />
  ) : (
    <div class="page">
      <Spinner />
    </div>
  );
}

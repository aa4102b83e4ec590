// Shell: the frame of every page: where we are, the pages, the tables, the palette, and the moment that is looked at.
import type { ComponentType } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { bytes, Badge, counted, Button, Empty, IconButton, Menu, Notice, num, ProblemNotice, Spinner } from "../parts";
import icon from "../styles/icon.svg";
import { onKey, shownKeys, useCommands } from "./commands";
import { NoTables } from "./no_tables";
import { type PageEntry, needsTables, pageNamed, PAGES } from "./pages";
import { Palette, paletteOpen, ShortcutSheet, sheetOpen } from "./palette";
import { follow, go, href, route } from "./router";
import { currentTable, refreshSession, session, sessionProblem } from "./session";
import { PastBanner, TimeButton } from "./past_banner";
import { type Theme, theme } from "./theme";
import { Tour } from "./tour";

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
      title: "Go to or do…",
      keys: "mod+k",
      group: "Everywhere",
      always: true,
      run: () => (paletteOpen.value = true),
    },
    { id: "sheet", title: "Show the keys", keys: "?", group: "Everywhere", run: () => (sheetOpen.value = true) },
    ...PAGES.map((page) => ({
      id: `page-${page.name}`,
      title: `Go to ${page.title}`,
      keys: page.keys,
      group: "Everywhere",
      run: () => go({ page: page.name, table: here() }),
    })),
    {
      id: "refresh",
      title: "Look again which tables there are",
      group: "Everywhere",
      run: () => void refreshSession(),
    },
    ...(["light", "dark", "system"] as const).map((name) => ({
      id: `theme-${name}`,
      title: name === "system" ? "Theme: colours as the system has them" : `Theme: use ${name} colours`,
      words: "theme mode appearance colors",
      group: "Everywhere",
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
        Skip to the page
      </Button>
      <Bar menu={menu} toggle={() => setMenu(!menu)} />
      <Navigation open={menu} close={() => setMenu(false)} />
      <main class="shell-page" id="page" tabIndex={-1}>
        <PastBanner />
        {sessionProblem.value ? (
          <div class="page">
            <ProblemNotice problem={sessionProblem.value} again={() => void refreshSession()} />
          </div>
        ) : null}
        {session.value?.problem ? (
          <div class="page">
            <ProblemNotice problem={session.value.problem} again={() => void refreshSession()} />
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
              title="There is no such page"
              actions={<a href={href({ page: "data", table: "", params: {} })}>Look at the data</a>}
            >
              The address names {JSON.stringify(route.value.page)}, which the studio does not have.
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

/** The table that is looked at, which every page keeps. */
function here(): string {
  return currentTable.value?.name ?? route.value.table;
}

const TAIL = 8; // letters at the end of a name that are always shown: names of one family differ there

/** A name that is cut in its middle where it is too long. */
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
  const told = session.value;
  const chosen = theme.value;
  const themes: [Theme, string][] = [
    ["light", "Light"],
    ["dark", "Dark"],
    ["system", "As the system"],
  ];
  return (
    <header class="shell-bar">
      <IconButton
        class="shell-menu-button"
        kind="quiet"
        label={menu ? "Close the menu" : "Open the menu"}
        aria-expanded={menu}
        onClick={toggle}
      >
        ☰
      </IconButton>
      <a class="shell-name" aria-label="Tavola Studio" href={href({ page: "data", table: "" })}>
        <img src={icon} alt="" />
        <span>Tavola Studio</span>
      </a>
      {told ? (
        <span class="shell-where row tight">
          <Badge>
            <span class="cut" title={`${told.where.text}, ${told.where.region}`}>
              {told.where.text}
            </span>
          </Badge>
          {told.read_only ? <Badge tone="warn">read-only</Badge> : null}
        </span>
      ) : null}
      <Button class="shell-find" onClick={() => (paletteOpen.value = true)} aria-label="Go to or do">
        <span>Go to or do…</span>
        <kbd>{shownKeys("mod+k")}</kbd>
        <svg
          width="16"
          height="16"
          viewBox="0 0 20 20"
          fill="none"
          stroke="currentColor"
          stroke-width="1.800"
          aria-hidden="true"
        >
          <circle cx="9" cy="9" r="5.500" />
          <path d="m13.500 13.500 4 4" />
        </svg>
      </Button>
      <TimeButton />
      <Menu
        label="Colours"
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
              <svg
                width="18"
                height="18"
                viewBox="0 0 20 20"
                fill="none"
                stroke="currentColor"
                stroke-width="1.600"
                stroke-linejoin="round"
                stroke-linecap="round"
                aria-hidden="true"
              >
                <path d={each.icon} />
              </svg>
              {each.title}
            </a>
          </li>
        ))}
      </ul>
      {tables.length ? (
        <div>
          <div class="label">Tables{session.value?.more_tables ? " (not all; type a name above)" : ""}</div>
          <ul>
            {tables.map((table) => (
              <li key={table.name}>
                <a
                  class="table-link"
                  href={href({ page: page?.ofTable || here.page === "cost" ? here.page : "data", table: table.name })}
                  aria-current={table.name === currentTable.value?.name ? "true" : undefined}
                  title={`${table.name}${table.status === "MISSING" ? ": the design declares it; it is not there" : table.status === "UNKNOWN" ? ": nobody can tell" : `: ${counted(table.items, "item")}, ${bytes(table.bytes)}`}`}
                >
                  <Name text={table.name} />
                  {table.status === "MISSING" ? (
                    <Badge tone="warn">missing</Badge>
                  ) : table.status === "UNKNOWN" ? null : (
                    <span class="muted small">{num(table.items)}</span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </nav>
  );
}

/** A page, loaded when it is first shown; what it breaks on is told, and the rest of the studio stands. */
function PageHolder({ entry }: { entry: PageEntry }) {
  const [Page, setPage] = useState<ComponentType | null>(null);
  const [lost, setLost] = useState(false);
  const [error, reset] = useErrorBoundary();
  useEffect(() => {
    let gone = false;
    entry.load().then(
      (module) => gone || setPage(() => module.default),
      () => gone || setLost(true),
    );
    return () => {
      gone = true;
    };
  }, [entry]);
  if (lost) {
    return (
      <div class="page">
        <Notice
          tone="error"
          title="The page could not be loaded"
          actions={<Button onClick={() => location.reload()}>Reload</Button>}
        >
          The studio's server does not answer, or it was started anew with another version.
        </Notice>
      </div>
    );
  }
  if (error) {
    return (
      <div class="page">
        <Notice tone="error" title="The page made a mistake" actions={<Button onClick={reset}>Show it again</Button>}>
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

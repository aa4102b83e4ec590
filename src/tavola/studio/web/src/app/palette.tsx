// Palette: finds pages, tables, indexes and commands by typing. Ctrl-K or ⌘K opens it; ? lists the shortcuts.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Dialog } from "../parts";
import { type Command, commands, formatKeys } from "./commands";
import { PAGES } from "./pages";
import { go } from "./router";
import { currentTable, session } from "./session";

export const paletteOpen = signal(false);
export const sheetOpen = signal(false);

/** Return how well a text matches what was typed: higher is better, 0 is no match. */
export function match(text: string, typed: string): number {
  const where = text.toLowerCase();
  let at = 0;
  let score = 1;
  for (const letter of typed.toLowerCase().replace(/\s+/g, "")) {
    const found = where.indexOf(letter, at);
    if (found < 0) return 0;
    const begins = found === 0 || /[\s#_.\-/]/.test(where[found - 1] ?? "");
    score += (found === at ? 3 : 0) + (begins ? 4 : 0) - Math.min(found - at, 6) / 4;
    at = found + 1;
  }
  return Math.max(score, 0.01);
}

function destinations(): Command[] {
  const all: Command[] = [];
  for (const design of session.value?.designs ?? []) {
    const own = (session.value?.tables ?? []).filter((table) => table.design === design);
    const table =
      own.find((each) => each.name === currentTable.value?.name) ??
      own.find((each) => each.status !== "MISSING") ??
      own[0];
    if (!table) continue;
    for (const page of PAGES.filter((each) => ["data", "design", "cost"].includes(each.name))) {
      all.push({
        id: `design-${page.name}-${design}`,
        title: `${design} · ${page.title}`,
        group: "Designs",
        run: () => go({ page: page.name, table: table.name }),
      });
    }
  }
  for (const table of session.value?.tables ?? []) {
    for (const page of PAGES.filter((each) => each.ofTable)) {
      all.push({
        id: `go-${page.name}-${table.name}`,
        title: `${table.name} · ${page.title}`,
        words: [table.design, table.label].join(" "),
        group: "Tables",
        run: () => go({ page: page.name, table: table.name }),
      });
    }
    for (const index of table.indexes) {
      all.push({
        id: `index-${table.name}-${index.name}`,
        title: `${table.name} · ${index.name}${index.label === index.name ? "" : ` (${index.label})`}`,
        group: "Indexes",
        run: () => go({ page: "data", table: table.name, params: { index: index.name } }),
      });
    }
  }
  return all;
} /** Return a command that opens a table by its full name, for when the session does not list all tables. */
function unlisted(name: string): Command[] {
  const current = session.value;
  if (!current?.more_tables || !/^[\w.-]{3,255}$/.test(name) || current.tables.some((table) => table.name === name))
    return [];
  return [
    {
      id: "go-unlisted",
      title: `Open table ${name}`,
      group: "Tables",
      run: () => go({ page: "data", table: name }),
    },
  ];
}

const RESULTS_MAX = 60;

export function Palette() {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const all = useMemo(
    () => [...commands.value.filter((each) => each.id !== "palette"), ...destinations()],
    [commands.value, session.value],
  );
  const found = useMemo(() => {
    if (!typed.trim()) return all.slice(0, RESULTS_MAX);
    const matched = all
      .map((each) => ({
        each,
        score: Math.max(match(each.title, typed), each.words ? match(`${each.words} ${each.title}`, typed) - 1 : 0),
      }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, RESULTS_MAX)
      .map(({ each }) => each);
    return [...matched, ...unlisted(typed.trim())];
  }, [all, typed]);
  useEffect(() => setChosen(0), [typed]);
  useEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const close = () => {
    paletteOpen.value = false;
  };
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    setTimeout(command.run, 0); // after focus has returned to where it was
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") run(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Command palette" onClose={close}>
      <div class="stack">
        <input
          class="input"
          data-autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found[chosen] ? `palette-${chosen}` : undefined}
          aria-label="Search tables, pages and commands"
          placeholder="Search tables, pages and commands…"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={onKey}
        />
        <ul class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
          {found.map((each, at) => (
            <li
              key={each.id}
              id={`palette-${at}`}
              role="option"
              aria-selected={at === chosen}
              onMouseMove={() => setChosen(at)}
              onClick={() => run(each)}
            >
              <span class="cut">{each.title}</span>
              <span class="muted nowrap">{each.keys ? <kbd>{formatKeys(each.keys)}</kbd> : each.group}</span>
            </li>
          ))}
        </ul>
        {found.length === 0 ? <p class="muted">No matches</p> : null}
      </div>
    </Dialog>
  );
}

/** The list of keyboard shortcuts. */
export function ShortcutSheet() {
  const groups = new Map<string, Command[]>();
  for (const each of commands.value) {
    if (!each.keys) continue;
    const name = each.group ?? "This page";
    groups.set(name, [...(groups.get(name) ?? []), each]);
  }
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (sheetOpen.value = false)}>
      <div class="stack wide">
        {[...groups].map(([name, members]) => (
          <section key={name} class="stack tight">
            <h3>{name}</h3>
            <table class="plain">
              <tbody>
                {members.map((each) => (
                  <tr key={each.id}>
                    <td>{each.title}</td>
                    <td class="num">
                      <kbd>{formatKeys(each.keys ?? "")}</kbd>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </section>
        ))}
        <p class="muted small">
          Single-key shortcuts are off while you type in a field. Shortcuts with Ctrl or ⌘ always work.
        </p>
      </div>
    </Dialog>
  );
}

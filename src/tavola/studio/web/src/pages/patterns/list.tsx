// List: the access patterns of a table, searchable by title, entity, index and parameters.
import { useMemo, useRef, useState } from "preact/hooks";
import { useCommands } from "../../app/commands";
import type { DesignedPattern } from "../../generated/api";
import { Badge, Chip, Empty, Panel, TextInput } from "../../parts";
import { choose } from "./state";
import { formatNumber } from "../../format";

const GROUPS: readonly [DesignedPattern["kind"], string][] = [
  ["query", "Queries"],
  ["collection", "Collections"],
  ["key", "By key"],
  ["need", "Declared needs"],
  ["write", "Writes"],
];

/** Return whether a pattern contains all search words. */
function matches(pattern: DesignedPattern, words: readonly string[]): boolean {
  const text = [
    pattern.title,
    pattern.place,
    pattern.index ?? "",
    pattern.operation,
    ...pattern.entities,
    ...pattern.parameters.map((each) => each.name),
  ]
    .join(" ")
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

export function PatternList({ patterns, chosen }: { patterns: readonly DesignedPattern[]; chosen: string }) {
  const [search, setSearch] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = useMemo(() => patterns.filter((each) => matches(each, words)), [patterns, search]);
  useCommands([
    {
      id: "patterns-search",
      title: "Find access patterns",
      keys: "/",
      group: "Access patterns",
      run: () => input.current?.focus(),
    },
  ]);
  const move = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("a") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all.length) return;
    event.preventDefault();
    if (to < 0) input.current?.focus();
    else all[Math.min(to, all.length - 1)]?.focus();
  };
  return (
    <Panel flush>
      <div class="patterns-list" onKeyDown={move}>
        <div class="patterns-search">
          <TextInput
            label="Find patterns"
            type="search"
            value={search}
            onInput={setSearch}
            placeholder="title, entity, index…"
            inputRef={input}
            hideLabel
          />
          <span class="small muted" role="status">
            {found.length === patterns.length ? `${patterns.length} patterns` : `${found.length} of ${patterns.length}`}
          </span>
        </div>
        <div class="patterns-scroll" ref={list}>
          {GROUPS.map(([kind, title]) => {
            const here = found.filter((each) => each.kind === kind);
            return here.length ? (
              <section key={kind} aria-label={title}>
                <h2 class="patterns-group">{title}</h2>
                <ul>
                  {here.map((each) => (
                    <li key={each.id}>
                      <Entry pattern={each} current={each.id === chosen} />
                    </li>
                  ))}
                </ul>
              </section>
            ) : null;
          })}
          {found.length ? null : <Empty title="No matches">Try fewer words.</Empty>}
        </div>
      </div>
    </Panel>
  );
}

function Entry({ pattern, current }: { pattern: DesignedPattern; current: boolean }) {
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    choose(pattern.id);
  };
  const query = new URLSearchParams({ pattern: pattern.id }).toString();
  return (
    <a href={`?${query}`} class="patterns-entry" aria-current={current ? "true" : undefined} onClick={open}>
      <span class="patterns-title">{pattern.title}</span>
      <span class="row tight small muted">
        {pattern.entities.slice(0, 2).map((name) => (
          <Chip key={name} name={name} />
        ))}
        {pattern.entities.length > 2 ? (
          <span class="nowrap" title={pattern.entities.slice(2).join(", ")}>
            +{pattern.entities.length - 2}
          </span>
        ) : null}
        {pattern.index ? <span class="cut">{pattern.index}</span> : null}
        {pattern.per_second === null ? null : <span class="nowrap">{formatNumber(pattern.per_second)}/s</span>}
        {pattern.kind === "need" && !pattern.runnable ? <Badge tone="bad">no matching key</Badge> : null}
      </span>
    </a>
  );
}

// Live: a table's changes as they come, newest first; one of them in full beside the list.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { useCommands } from "../../app/commands";
import { go, href, route, useParam } from "../../app/router";
import { refreshSession, session } from "../../app/session";
import {
  Badge,
  Button,
  Chip,
  Copy,
  Empty,
  Notice,
  num,
  ProblemNotice,
  Segmented,
  Select,
  TextInput,
  type VirtualHandle,
  VirtualRows,
} from "../../parts";
import type { StreamChange, TableSummary } from "../../generated/api";
import { call, problemOf } from "../../app/api";
import { briefly, Differences, ReadKey, WholeItem } from "./differences";
import { Feed, type FeedState } from "./feed";
import { keyText } from "./keys";
import { clockText, momentText } from "../../app/times";

const ROW = 34;
const TALL = 52; // on a narrow page a row has two lines
const narrow = matchMedia("(max-width: 900px)");
const SAID: Readonly<Record<FeedState, string>> = {
  connecting: "connecting",
  live: "live",
  lost: "connection lost, trying again",
  over: "the stream was switched off",
  refused: "refused",
  closed: "closed",
};
const MARK = { INSERT: "+", MODIFY: "~", REMOVE: "−" } as const;
const WORD = { INSERT: "inserted", MODIFY: "changed", REMOVE: "removed" } as const;

/** Keep one feed for a table while the page is there, whatever tab is shown. */
export function useFeed(table: string): Feed {
  const asked = filters(table);
  const feed = useMemo(() => begun(asked), [table]);
  const shape = JSON.stringify(asked);
  const known = useRef({ feed, shape });
  useEffect(() => {
    if (known.current.feed === feed && known.current.shape !== shape) feed.narrow(asked);
    known.current = { feed, shape };
  }, [shape, feed]);
  useEffect(() => () => feed.close(), [feed]);
  return feed;
}

/** Return a feed that begins where the URL says: at a change, at the start of what there is, or now. */
function begun(asked: ReturnType<typeof filters>): Feed {
  const { from = "", change = "" } = route.value.params;
  const first = /^\d+$/.test(from) ? from : /^\d+$/.test(change) && from !== "start" ? change : "";
  return new Feed(first ? { ...asked, after: before(first) } : asked, first || from === "start" ? "start" : "latest");
}

/** Return the number past which a change is the first. */
function before(sequence: string): string {
  const found = BigInt(sequence);
  return found > 0n ? (found - 1n).toString() : "";
}

function filters(table: string) {
  const { events = "", entities = "", prefix = "" } = route.value.params;
  return { table, events, entities, prefix };
}

export function Live({ table, feed }: { table: TableSummary; feed: Feed }) {
  const state = feed.state.value;
  if (state === "refused" && feed.problem.value?.code === "stream-off") return <Off table={table.name} feed={feed} />;
  return (
    <div class="time-live">
      <Controls table={table} feed={feed} />
      {feed.problem.value && state !== "live" ? (
        <ProblemNotice problem={feed.problem.value} again={() => feed.drop()} />
      ) : null}
      {feed.gaps.value.length ? (
        <Notice
          tone="warning"
          title="Some changes may be missing"
          actions={
            <Button small onClick={() => (feed.gaps.value = [])}>
              Understood
            </Button>
          }
        >
          {feed.gaps.value.map((gap) => (
            <p key={gap.shard + (gap.after ?? "")}>{gap.detail}</p>
          ))}
        </Notice>
      ) : null}
      <List feed={feed} table={table.name} />
    </div>
  );
}

function Controls({ table, feed }: { table: TableSummary; feed: Feed }) {
  const [events, setEvents] = useParam("events");
  const [entities, setEntities] = useParam("entities");
  const [prefix, setPrefix] = useParam("prefix");
  const paused = feed.paused.value;
  useCommands([
    {
      id: "stream-pause",
      title: paused ? "Go on with the stream" : "Pause the stream",
      keys: "p",
      group: "Time",
      run: () => feed.pause(!paused),
    },
  ]);
  const typed = useSignal(prefix);
  const timer = useRef(0);
  return (
    <div class="time-controls">
      <Segmented
        label="Events"
        options={[
          { value: "", label: "All" },
          { value: "INSERT", label: "Inserted" },
          { value: "MODIFY", label: "Changed" },
          { value: "REMOVE", label: "Removed" },
        ]}
        value={events}
        onChange={(value) => setEvents(value, true)}
      />
      {table.entities.length ? (
        <Select
          label="Entity"
          hideLabel
          value={entities}
          options={[
            { value: "", label: "Every entity" },
            ...table.entities.map((name) => ({ value: name, label: name })),
          ]}
          onChange={(value) => setEntities(value, true)}
        />
      ) : null}
      <TextInput
        label="Key begins with"
        hideLabel
        placeholder="Key begins with…"
        mono
        value={typed.value}
        onInput={(value) => {
          typed.value = value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => setPrefix(value, true), 300);
        }}
      />
      <span class="grow" />
      <Meter feed={feed} />
      <Button onClick={() => feed.pause(!paused)} aria-pressed={paused}>
        {paused ? "Continue" : "Pause"}
      </Button>
      <Button
        title="Everything that the stream still has: a day at most"
        onClick={() => {
          go({ params: { from: "start", change: null } }, { replace: true });
          feed.restart("start");
        }}
      >
        Replay all
      </Button>
    </div>
  );
}

/** How the connection stands, and how many changes come. */
function Meter({ feed }: { feed: Feed }) {
  const tick = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => (tick.value += 1), 1000);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  void feed.version.value;
  const state = feed.state.value;
  const rates = feed.rates();
  const last = rates.slice(-6, -1);
  const rate = last.reduce((sum, each) => sum + each, 0) / last.length;
  const most = Math.max(...rates, 1);
  return (
    <div class="time-meter">
      <svg
        viewBox="0 0 60 20"
        width="90"
        height="22"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Changes a second in the last minute, ${num(most)} at most`}
      >
        {rates.map((each, at) =>
          each ? <rect key={at} x={at} y={20 - (each / most) * 20} width="0.850" height={(each / most) * 20} /> : null,
        )}
      </svg>
      <span class="num">{num(Math.round(rate * 10) / 10)}/s</span>
      <span data-state={state} class="time-state" role="status">
        <Badge tone={state === "live" ? "good" : state === "connecting" ? "warn" : "bad"}>
          {feed.paused.value ? "paused" : SAID[state]}
        </Badge>
      </span>
    </div>
  );
}

function List({ feed, table }: { feed: Feed; table: string }) {
  void feed.version.value;
  const rows = feed.rows;
  const [chosen, choose] = useParam("change");
  const handle = useRef<VirtualHandle>(null);
  const height = useRowHeight();
  const before = useRef({ total: 0, feed });
  useLayoutEffect(() => {
    // Who has scrolled down reads on: what comes above moves nothing.
    const element = handle.current?.element();
    const came = before.current.feed === feed ? feed.total - feed.held.length - before.current.total : 0;
    before.current = { total: feed.total - feed.held.length, feed };
    if (element && element.scrollTop > 0 && came > 0) element.scrollTop += came * height;
    feed.shown();
  });
  const at = (place: number) => rows[rows.length - 1 - place];
  const found = chosen ? rows.findIndex((row) => row.sequence === chosen) : -1;
  const place = found < 0 ? -1 : rows.length - 1 - found;
  const selected = found < 0 ? null : (rows[found] ?? null);
  const move = (event: KeyboardEvent) => {
    const to = {
      ArrowDown: place + 1,
      ArrowUp: place - 1,
      Home: 0,
      End: rows.length - 1,
      PageDown: place + 10,
      PageUp: place - 10,
      Escape: -1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const row = event.key === "Escape" ? undefined : at(Math.max(0, Math.min(to, rows.length - 1)));
    choose(row?.sequence ?? "", true);
    if (row) handle.current?.reveal(Math.max(0, Math.min(to, rows.length - 1)));
  };
  return (
    <div class={`time-feed ${selected ? "chosen" : ""}`}>
      <section class="panel time-list">
        <div class="time-counts small muted">
          <span data-total={feed.total}>
            {num(feed.total)} {feed.total === 1 ? "change" : "changes"}
            {feed.dropped ? `, the last ${num(rows.length)} are here` : ""}
          </span>
          {feed.paused.value ? (
            <span>
              <strong>{num(feed.held.length + feed.missed)}</strong> wait
              {feed.missed ? `; the first ${num(feed.missed)} of them are no longer held` : ""}
            </span>
          ) : null}
        </div>
        {rows.length ? (
          <VirtualRows
            handle={handle}
            count={rows.length}
            rowHeight={height}
            class="time-rows"
            role="listbox"
            aria-label="Changes, newest first"
            tabIndex={0}
            aria-activedescendant={selected ? `change-${selected.sequence}` : undefined}
            onKeyDown={move}
            render={(row) => {
              const change = at(row);
              return change ? (
                <Row
                  key={change.shard + change.sequence}
                  height={height}
                  change={change}
                  chosen={change === selected}
                  choose={() => choose(change === selected ? "" : change.sequence, true)}
                />
              ) : null;
            }}
          />
        ) : (
          <Empty title={feed.state.value === "live" ? "Nothing has changed yet" : "No changes here"}>
            Whatever is written to {table} from now on appears here, with what it was before. "Replay all" shows what
            the stream still has.
          </Empty>
        )}
      </section>
      {selected ? <Detail change={selected} table={table} feed={feed} close={() => choose("", true)} /> : null}
    </div>
  );
}

function useRowHeight(): number {
  const tall = useSignal(narrow.matches);
  useEffect(() => {
    const look = () => (tall.value = narrow.matches);
    narrow.addEventListener("change", look);
    return () => narrow.removeEventListener("change", look);
  }, []);
  return tall.value ? TALL : ROW;
}

/** Return what a change did, in one line. */
function did(change: StreamChange): string {
  const { event, differences, total } = change;
  const image = change.new ?? change.old;
  if (event === "MODIFY")
    return differences.length
      ? briefly(differences, total)
      : change.old && change.new
        ? "written again, unchanged"
        : "changed; the stream does not tell what";
  const word = event === "INSERT" ? "new" : "removed";
  return image ? `${word}, ${num(Object.keys(image).length)} attributes` : `${word}; the stream tells its key alone`;
}

function Row({
  change,
  height,
  chosen,
  choose,
}: {
  change: StreamChange;
  height: number;
  chosen: boolean;
  choose: () => void;
}) {
  return (
    <div
      class="time-row"
      role="option"
      id={`change-${change.sequence}`}
      aria-selected={chosen}
      onClick={choose}
      style={{ height: `${height}px` }}
      data-sequence={change.sequence}
    >
      <span class="time-clock num">{clockText(change.at * 1000)}</span>
      <span class={`time-event ${change.event}`} title={WORD[change.event]}>
        <span aria-hidden="true">{MARK[change.event]}</span>
        <span class="hidden-text">{WORD[change.event]}</span>
      </span>
      <span class="time-who">{change.entity ? <Chip name={change.entity} /> : null}</span>
      <span class="cut">
        <ReadKey parts={change.parts} />
      </span>
      <span class="cut time-told mono small">{did(change)}</span>
      <span class="cut time-actor small muted">{change.actor ?? ""}</span>
    </div>
  );
}

function Detail({
  change,
  table,
  feed,
  close,
}: {
  change: StreamChange;
  table: string;
  feed: Feed;
  close: () => void;
}) {
  const whole = useSignal(false);
  const item = change.new ?? change.old;
  return (
    <section class="panel time-detail" aria-label="The change in full">
      <header>
        <h2 class="row tight">
          {change.entity ? <Chip name={change.entity} /> : null} {WORD[change.event]}
        </h2>
        <Button small kind="quiet" onClick={close} aria-label="Close the change">
          ✕
        </Button>
      </header>
      <div class="body stack">
        <div>
          <ReadKey parts={change.parts} />
          <p class="small muted">
            {momentText(change.at * 1000)}
            {change.actor ? ` by ${change.actor}` : ""} · sequence <span class="mono">{change.sequence}</span>
          </p>
        </div>
        {change.event === "MODIFY" ? (
          <Differences
            differences={change.differences}
            total={change.total}
            empty={
              change.old && change.new
                ? "It was written again, unchanged."
                : "The stream does not have both images, so nothing can be compared."
            }
          />
        ) : item ? (
          <WholeItem item={item} label="The item" />
        ) : (
          <p class="muted">The stream has no image of it.</p>
        )}
        {change.event === "MODIFY" && item ? (
          <div>
            <Button small onClick={() => (whole.value = !whole.value)} aria-expanded={whole.value}>
              {whole.value
                ? "Hide the whole item"
                : change.new
                  ? "The whole item after it"
                  : "The whole item before it"}
            </Button>
            {whole.value ? <WholeItem item={item} label="The whole item" /> : null}
          </div>
        ) : null}
        <div class="row">
          <a
            class="button small"
            href={href({ page: "time", params: { tab: "item", key: keyText(change.keys), change: null } })}
          >
            Its history
          </a>
          <Button
            small
            onClick={() => {
              go({ params: { from: change.sequence, change: null } }, { replace: true });
              feed.restart("start", before(change.sequence));
            }}
          >
            Replay from here
          </Button>
          <Copy
            label="Copy as JSON"
            text={() =>
              JSON.stringify({ table, ...change, differences: undefined, parts: undefined, total: undefined }, null, 2)
            }
          />
        </div>
      </div>
    </section>
  );
}

/** A table that does not tell its changes, and the way to have it tell them. */
function Off({ table, feed }: { table: string; feed: Feed }) {
  const working = useSignal(false);
  const turnOn = async () => {
    working.value = true;
    try {
      await call("POST /changes/stream", { table });
      await refreshSession();
      feed.problem.value = null;
      feed.restart("latest");
    } catch (thrown) {
      feed.problem.value = problemOf(thrown);
    }
    working.value = false;
  };
  const readOnly = session.value?.read_only ?? true;
  return (
    <Empty
      title="This table does not tell its changes"
      actions={
        <Button kind="primary" disabled={working.value || readOnly} onClick={() => void turnOn()}>
          Turn its stream on
        </Button>
      }
    >
      {table} has no stream, so nobody knows what is written to it. With one, every change from then on is told, with
      what the item was before.
      {readOnly ? " The studio is read-only here." : ""}
    </Empty>
  );
}

// Live: the live changes of a table, newest first, with the details of one beside the list.
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
  ProblemNotice,
  Segmented,
  Select,
  TextInput,
  type VirtualHandle,
  VirtualRows,
  plainOptions,
} from "../../parts";
import type { StreamChange, TableSummary } from "../../generated/api";
import { call, problemOf } from "../../app/api";
import { differencesText, Differences, ItemKey, WholeItem } from "./differences";
import { Feed, type FeedState } from "./feed";
import { keyText } from "./keys";
import { formatDateTime, formatNumber, formatTime, formatCount } from "../../format";

const ROW_PX = 34;
const TALL_ROW_PX = 52; // two lines per row on a narrow page
const narrow = matchMedia("(max-width: 900px)");
const STATE_TEXT: Readonly<Record<FeedState, string>> = {
  connecting: "connecting",
  live: "live",
  lost: "disconnected, retrying",
  over: "stream turned off",
  refused: "rejected",
  closed: "closed",
};
const MARK = { INSERT: "+", MODIFY: "~", REMOVE: "−" } as const;
const WORD = { INSERT: "inserted", MODIFY: "modified", REMOVE: "removed" } as const;

/** Keep one feed for a table while the page is open, on every tab. */
export function useFeed(table: string): Feed {
  const filters = currentFilters(table);
  const feed = useMemo(() => startFeed(filters), [table]);
  const shape = JSON.stringify(filters);
  const known = useRef({ feed, shape });
  useEffect(() => {
    if (known.current.feed === feed && known.current.shape !== shape) feed.narrow(filters);
    known.current = { feed, shape };
  }, [shape, feed]);
  useEffect(() => () => feed.close(), [feed]);
  return feed;
}

/** Return a feed that starts where the URL says: at a change, at the beginning of the stream, or now. */
function startFeed(filters: ReturnType<typeof currentFilters>): Feed {
  const { from = "", change = "" } = route.value.params;
  const first = /^\d+$/.test(from) ? from : /^\d+$/.test(change) && from !== "start" ? change : "";
  return new Feed(
    first ? { ...filters, after: sequenceBefore(first) } : filters,
    first || from === "start" ? "start" : "latest",
  );
}

/** Return the sequence number after which a change is the first. */
function sequenceBefore(sequence: string): string {
  const number = BigInt(sequence);
  return number > 0n ? (number - 1n).toString() : "";
}

function currentFilters(table: string) {
  const { events = "", entities = "", prefix = "" } = route.value.params;
  return { table, events, entities, prefix };
}

export function Live({ table, feed }: { table: TableSummary; feed: Feed }) {
  const state = feed.state.value;
  if (state === "refused" && feed.problem.value?.code === "stream-off")
    return <StreamOff table={table.name} feed={feed} />;
  return (
    <div class="time-live">
      <Controls table={table} feed={feed} />
      {feed.problem.value && state !== "live" ? (
        <ProblemNotice problem={feed.problem.value} retry={() => feed.drop()} />
      ) : null}
      {feed.gaps.value.length ? (
        <Notice
          tone="warning"
          title="Some changes may be missing"
          actions={
            <Button small onClick={() => (feed.gaps.value = [])}>
              {" "}
              Dismiss{" "}
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
      title: paused ? "Resume the stream" : "Pause the stream",
      keys: "p",
      group: "History",
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
          { value: "MODIFY", label: "Modified" },
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
          options={[{ value: "", label: "All entities" }, ...plainOptions(table.entities)]}
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
        {paused ? "Resume" : "Pause"}
      </Button>
      <Button
        title="Show everything the stream still has, up to 24 hours"
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

/** The state of the connection and the rate of changes. */
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
        aria-label={`Changes per second in the last minute, peak ${formatNumber(most)}`}
      >
        {rates.map((each, at) =>
          each ? <rect key={at} x={at} y={20 - (each / most) * 20} width="0.850" height={(each / most) * 20} /> : null,
        )}
      </svg>
      <span class="num">{formatNumber(Math.round(rate * 10) / 10)}/s</span>
      <span data-state={state} class="time-state" role="status">
        <Badge tone={state === "live" ? "good" : state === "connecting" ? "warn" : "bad"}>
          {feed.paused.value ? "paused" : STATE_TEXT[state]}
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
    // New changes above must not move the list while the user has scrolled down.
    const element = handle.current?.element();
    const arrived = before.current.feed === feed ? feed.total - feed.held.length - before.current.total : 0;
    before.current = { total: feed.total - feed.held.length, feed };
    if (element && element.scrollTop > 0 && arrived > 0) element.scrollTop += arrived * height;
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
            {formatCount(feed.total, "change")}
            {feed.dropped ? `, showing the latest ${formatNumber(rows.length)}` : ""}
          </span>
          {feed.paused.value ? (
            <span>
              <strong>{formatNumber(feed.held.length + feed.missed)}</strong> held back{" "}
              {feed.missed ? `; the oldest ${formatNumber(feed.missed)} were dropped` : ""}
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
          <Empty title={feed.state.value === "live" ? "No changes yet" : "No changes"}>
            Writes to {table} appear here with the previous values. “Replay all” shows what the stream still has.
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
    const update = () => (tall.value = narrow.matches);
    narrow.addEventListener("change", update);
    return () => narrow.removeEventListener("change", update);
  }, []);
  return tall.value ? TALL_ROW_PX : ROW_PX;
}

/** Return what a change did, as one line. */
function changeText(change: StreamChange): string {
  const { event, differences, total } = change;
  const image = change.new ?? change.old;
  if (event === "MODIFY")
    return differences.length
      ? differencesText(differences, total)
      : change.old && change.new
        ? "rewritten without changes"
        : "modified; the stream has no images";
  const word = event === "INSERT" ? "new" : "removed";
  return image
    ? `${word}, ${formatNumber(Object.keys(image).length)} attributes`
    : `${word}; the stream has only its key`;
}

interface RowProps {
  change: StreamChange;
  height: number;
  chosen: boolean;
  choose: () => void;
}

function Row({ change, height, chosen, choose }: RowProps) {
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
      <span class="time-clock num">{formatTime(change.at * 1000)}</span>
      <span class={`time-event ${change.event}`} title={WORD[change.event]}>
        <span aria-hidden="true">{MARK[change.event]}</span>
        <span class="hidden-text">{WORD[change.event]}</span>
      </span>
      <span class="time-entity">{change.entity ? <Chip name={change.entity} /> : null}</span>
      <span class="cut">
        <ItemKey parts={change.parts} />
      </span>
      <span class="cut time-change mono small">{changeText(change)}</span>
      <span class="cut time-actor small muted">{change.actor ?? ""}</span>
    </div>
  );
}

interface DetailProps {
  change: StreamChange;
  table: string;
  feed: Feed;
  close: () => void;
}

function Detail({ change, table, feed, close }: DetailProps) {
  const whole = useSignal(false);
  const item = change.new ?? change.old;
  return (
    <section class="panel time-detail" aria-label="Change details">
      <header>
        <h2 class="row tight">
          {change.entity ? <Chip name={change.entity} /> : null} {WORD[change.event]}
        </h2>
        <Button small kind="quiet" onClick={close} aria-label="Close details">
          ✕
        </Button>
      </header>
      <div class="body stack">
        <div>
          <ItemKey parts={change.parts} />
          <p class="small muted">
            {formatDateTime(change.at * 1000)}
            {change.actor ? ` by ${change.actor}` : ""} · sequence <span class="mono">{change.sequence}</span>
          </p>
        </div>
        {change.event === "MODIFY" ? (
          <Differences
            differences={change.differences}
            total={change.total}
            empty={
              change.old && change.new
                ? "Rewritten without changes."
                : "The stream does not have both images, so there is nothing to compare."
            }
          />
        ) : item ? (
          <WholeItem item={item} label="Item" />
        ) : (
          <p class="muted">The stream has no image of the item.</p>
        )}
        {change.event === "MODIFY" && item ? (
          <div>
            <Button small onClick={() => (whole.value = !whole.value)} aria-expanded={whole.value}>
              {whole.value
                ? "Hide full item"
                : change.new
                  ? "Show item after the change"
                  : "Show item before the change"}
            </Button>
            {whole.value ? <WholeItem item={item} label="Full item" /> : null}
          </div>
        ) : null}
        <div class="row">
          <a
            class="button small"
            href={href({ page: "time", params: { tab: "item", key: keyText(change.keys), change: null } })}
          >
            {" "}
            Item history{" "}
          </a>
          <Button
            small
            onClick={() => {
              go({ params: { from: change.sequence, change: null } }, { replace: true });
              feed.restart("start", sequenceBefore(change.sequence));
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

/** A table without a stream, with a button that turns it on. */
function StreamOff({ table, feed }: { table: string; feed: Feed }) {
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
      title="Streams are off for this table"
      actions={
        <Button kind="primary" disabled={working.value || readOnly} onClick={() => void turnOn()}>
          Turn on stream
        </Button>
      }
    >
      {table} has no stream. Turn it on to see every change from then on, with the old and new values.
      {readOnly ? " The studio is in read-only mode." : ""}
    </Empty>
  );
}

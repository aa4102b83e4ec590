// Slider: sets the point in time that pages show, within the recovery window of a table; usable from every page.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { asOf, setAsOf } from "../../app/as_of";
import { useQuery } from "../../app/queries";
import { Button, IconButton, Notice, ProblemNotice, Segmented, Spinner, TextInput } from "../../parts";
import type { PastWindow } from "../../generated/api";

import { EnableRecovery } from "./enable_recovery";
import "./slider.css";
import {
  formatDateTime,
  formatDay,
  formatNumber,
  formatTime,
  parseIso,
  parseTypedTime,
  serverClockAhead,
  toIso,
} from "../../format";

const RANGES: readonly [string, string, number][] = [
  ["15m", "15 min", 9e5],
  ["1h", "1 h", 3.6e6],
  ["6h", "6 h", 2.16e7],
  ["1d", "1 day", 8.64e7],
  ["7d", "7 days", 6.048e8],
  ["all", "All", Infinity],
];
const BUCKETS = 120;
const REFRESH_MS = 15_000;
const SETTLE_MS = 120; // between two updates while the thumb is dragged

/** The time slider of one table. */
export function TimeSlider({ table, focus = false }: { table: string; focus?: boolean }) {
  const range = useSignal("");
  const now = useSignal(Date.now());
  const recovery = useQuery("GET /past", { table, buckets: 0 });
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now();
      recovery.retry();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [table]);
  const earliest = parseIso(recovery.data?.earliest ?? null);
  const latest = parseIso(recovery.data?.latest ?? null);
  const chosen =
    range.value || shortestRange(latest - earliest, parseIso(asOf.value) ? latest - parseIso(asOf.value) : 0);
  const length = RANGES.find(([name]) => name === chosen)?.[2] ?? Infinity;
  const since = Math.max(earliest, latest - length);
  const ahead = useMemo(() => serverClockAhead(recovery.data), [recovery.data]);
  const changes = useQuery(
    "GET /past",
    recovery.data?.on && recovery.data.readable && earliest
      ? { table, since: toIso(since), until: toIso(latest), buckets: BUCKETS }
      : null,
  );
  if (recovery.problem) return <ProblemNotice problem={recovery.problem} retry={recovery.retry} />;
  if (!recovery.data) return <Spinner />;
  if (!recovery.data.on) return <EnableRecovery table={table} onEnabled={recovery.retry} />;
  if (!recovery.data.readable) {
    return (
      <Notice tone="info" title="This endpoint can restore, but not read, earlier data">
        Only Tavola's own engine can read data as of an earlier time. Use the Restore tab to restore into a new table
        and open that.
      </Notice>
    );
  }
  return (
    <div class="time-slider">
      <div class="row apart">
        <Segmented
          label="Time range"
          options={RANGES.filter(
            ([, , ms], at) => at === 0 || (RANGES[at - 1]?.[2] ?? 0) < latest - earliest || ms === Infinity,
          ).map(([value, label]) => ({ value, label }))}
          value={chosen}
          onChange={(value) => (range.value = value)}
        />
        <span class="small muted">
          available since {formatDateTime(earliest, now.value)}
          {recovery.data.days ? `, kept for ${recovery.data.days} days` : ""}
        </span>
      </div>
      <Track window={changes.data} since={since} latest={latest} focus={focus} />
      <TimeField earliest={earliest} ahead={ahead} />
    </div>
  );
}

/** Return the shortest range that contains a time, at least 15 minutes. */
function shortestRange(kept: number, back: number): string {
  const wanted = Math.min(kept, Math.max(back * 1.2, 9e5));
  return RANGES.find(([, , ms]) => ms >= wanted)?.[0] ?? "all";
}

interface TrackProps {
  window: PastWindow | null;
  since: number;
  latest: number;
  focus: boolean;
}

/** The track: the density of changes, marks, and the thumb. */
function Track({ window, since, latest, focus }: TrackProps) {
  const thumb = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (focus) thumb.current?.focus();
  }, []);
  const time = parseIso(asOf.value) || latest;
  const dragged = useSignal<number | null>(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const shown = dragged.value ?? time;
  const span = Math.max(1, latest - since);
  const set = (ms: number, settle = 0) => {
    const to = Math.min(latest, Math.max(since, ms));
    dragged.value = to;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      dragged.value = null;
      // The right end means now, also later on.
      setAsOf(to >= latest - 500 ? "" : toIso(to), true);
    }, settle);
  };
  const onKey = (event: KeyboardEvent) => {
    const unit = event.shiftKey ? 60_000 : 1000;
    const by = {
      ArrowLeft: -unit,
      ArrowDown: -unit,
      ArrowRight: unit,
      ArrowUp: unit,
      PageUp: 3.6e6,
      PageDown: -3.6e6,
      Home: -Infinity,
      End: Infinity,
    }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    set(shown + by, SETTLE_MS);
  };
  const density = window?.density ?? [];
  const most = Math.max(...density, 1);
  const stops = density.map((count, at) => (count ? since + (span * at) / density.length : 0)).filter(Boolean);
  const before = stops.findLast((each) => each < shown - 1);
  const next = stops.find((each) => each > shown + 1);
  const percent = ((shown - since) / span) * 100;
  return (
    <div class="stack tight">
      <div class="time-track">
        <svg viewBox={`0 0 ${Math.max(density.length, 1)} 40`} preserveAspectRatio="none" aria-hidden="true">
          {density.map((count, at) =>
            count ? (
              <rect
                key={at}
                x={at + 0.075}
                width="0.850"
                y={40 - Math.max(3, (Math.log1p(count) / Math.log1p(most)) * 40)}
                height={Math.max(3, (Math.log1p(count) / Math.log1p(most)) * 40)}
                class={since + (span * at) / density.length < shown ? "" : "later"}
              />
            ) : null,
          )}
        </svg>
        {(window?.marks ?? []).map((mark) => {
          const at = ((parseIso(mark.at) - since) / span) * 100;
          return at >= 0 && at <= 100 ? (
            <span
              key={mark.at}
              class="time-mark"
              style={{ left: `${at}%` }}
              title={`${mark.text}, ${formatDateTime(parseIso(mark.at))}`}
            />
          ) : null;
        })}
        <span class="time-needle" style={{ left: `${Math.max(0, Math.min(100, percent))}%` }} aria-hidden="true" />
        <input
          ref={thumb}
          type="range"
          aria-label="Point in time"
          aria-valuetext={shown >= latest - 500 ? "now" : `${formatDay(shown)}, ${formatTime(shown)}`}
          min={since}
          max={latest}
          step="any"
          value={shown}
          onKeyDown={onKey}
          onInput={(event) => set(Number(event.currentTarget.value), SETTLE_MS)}
        />
      </div>
      <div class="row apart time-under">
        <span class="small muted num">{formatDateTime(since)}</span>
        <span class="row tight">
          <IconButton
            small
            label="Previous change"
            disabled={before === undefined}
            onClick={() => before !== undefined && set(before - 1)}
          >
            «
          </IconButton>
          <IconButton small label="A minute earlier" onClick={() => set(shown - 60_000)}>
            −
          </IconButton>
          <strong class="num time-shown">{shown >= latest - 500 ? "now" : formatDateTime(shown)}</strong>
          <IconButton small label="A minute later" disabled={shown >= latest - 500} onClick={() => set(shown + 60_000)}>
            +
          </IconButton>
          <IconButton
            small
            label="Next change"
            disabled={next === undefined}
            onClick={() => next !== undefined && set(next + span / Math.max(1, density.length))}
          >
            »
          </IconButton>
        </span>
        <span class="small muted">now</span>
      </div>
      <p class="small muted">
        {density.length
          ? `${formatNumber(density.reduce((sum, each) => sum + each, 0))} changes in this range${window?.counted ? "" : " still in the stream"}. `
          : ""}
        Arrow keys move by a second, with Shift by a minute, Page Up and Page Down by an hour.
      </p>
    </div>
  );
}

/** A field for typing a time. */
function TimeField({ earliest, ahead }: { earliest: number; ahead: number }) {
  const text = useSignal("");
  const error = useSignal<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const now = Date.now() + ahead;
    const time = parseTypedTime(text.value, now);
    if (time === null) error.value = "Not a valid time. Try 10m, 14:02:31 or 2026-11-16 14:02:31";
    else if (time < earliest) error.value = `The earliest available time is ${formatDateTime(earliest)}`;
    else {
      error.value = null;
      setAsOf(time >= now ? "" : toIso(time));
    }
  };
  return (
    <form class="time-typed" onSubmit={submit}>
      <TextInput
        label="Go to time"
        placeholder="10m, 14:02:31, 2026-11-16 14:02"
        value={text.value}
        error={error.value}
        onInput={(value) => (text.value = value)}
        mono
      />
      <Button type="submit" disabled={!text.value.trim()}>
        {" "}
        Go{" "}
      </Button>
    </form>
  );
}

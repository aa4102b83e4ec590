// Slider: the moment that is looked at, moved along what is kept of a table's past; usable from every page.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { asOf, lookAt } from "../../app/as_of";
import { useAsk } from "../../app/asking";
import { Button, IconButton, Notice, num, ProblemNotice, Segmented, Spinner, TextInput } from "../../parts";
import type { PastWindow } from "../../generated/api";
import { clockText, dayText, iso, momentText, msOf, parseMoment, serverAhead } from "../../app/times";
import { KeepPast } from "./keeping";
import "./slider.css";

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
const SETTLE_MS = 120; // between two looks while the thumb is dragged

/** The slider over one table's past. */
export function TimeSlider({ table, focus = false }: { table: string; focus?: boolean }) {
  const range = useSignal("");
  const now = useSignal(Date.now());
  const whole = useAsk("GET /past", { table, buckets: 0 });
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now();
      whole.again();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [table]);
  const earliest = msOf(whole.data?.earliest ?? null);
  const latest = msOf(whole.data?.latest ?? null);
  const chosen = range.value || fitting(latest - earliest, msOf(asOf.value) ? latest - msOf(asOf.value) : 0);
  const length = RANGES.find(([name]) => name === chosen)?.[2] ?? Infinity;
  const since = Math.max(earliest, latest - length);
  const ahead = useMemo(() => serverAhead(whole.data), [whole.data]);
  const counted = useAsk(
    "GET /past",
    whole.data?.on && whole.data.readable && earliest
      ? { table, since: iso(since), until: iso(latest), buckets: BUCKETS }
      : null,
  );
  if (whole.problem) return <ProblemNotice problem={whole.problem} again={whole.again} />;
  if (!whole.data) return <Spinner />;
  if (!whole.data.on) return <KeepPast table={table} kept={whole.again} />;
  if (!whole.data.readable) {
    return (
      <Notice tone="info" title="This endpoint restores the past, and does not show it">
        Reads as of a moment are answered by Tavola's own engine alone. Restore the table to a new one under "Restore"
        and look at that.
      </Notice>
    );
  }
  return (
    <div class="time-slider">
      <div class="row apart">
        <Segmented
          label="How far back"
          options={RANGES.filter(
            ([, , ms], at) => at === 0 || (RANGES[at - 1]?.[2] ?? 0) < latest - earliest || ms === Infinity,
          ).map(([value, label]) => ({ value, label }))}
          value={chosen}
          onChange={(value) => (range.value = value)}
        />
        <span class="small muted">
          kept since {momentText(earliest, now.value)}
          {whole.data.days ? `, for ${whole.data.days} days` : ""}
        </span>
      </div>
      <Track window={counted.data} since={since} latest={latest} focus={focus} />
      <Typed earliest={earliest} ahead={ahead} />
    </div>
  );
}

/** Return the shortest range that shows a moment, and not less than the last quarter of an hour. */
function fitting(kept: number, back: number): string {
  const wanted = Math.min(kept, Math.max(back * 1.2, 9e5));
  return RANGES.find(([, , ms]) => ms >= wanted)?.[0] ?? "all";
}

/** The bar itself: what changed when, the moments worth a stop, and the thumb. */
function Track({
  window,
  since,
  latest,
  focus,
}: {
  window: PastWindow | null;
  since: number;
  latest: number;
  focus: boolean;
}) {
  const thumb = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (focus) thumb.current?.focus();
  }, []);
  const moment = msOf(asOf.value) || latest;
  const dragged = useSignal<number | null>(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const shown = dragged.value ?? moment;
  const span = Math.max(1, latest - since);
  const set = (ms: number, settle = 0) => {
    const to = Math.min(latest, Math.max(since, ms));
    dragged.value = to;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      dragged.value = null;
      // The right end is now, and stays now as time goes on.
      lookAt(to >= latest - 500 ? "" : iso(to), true);
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
          const at = ((msOf(mark.at) - since) / span) * 100;
          return at >= 0 && at <= 100 ? (
            <span
              key={mark.at}
              class="time-mark"
              style={{ left: `${at}%` }}
              title={`${mark.text}, ${momentText(msOf(mark.at))}`}
            />
          ) : null;
        })}
        <span class="time-needle" style={{ left: `${Math.max(0, Math.min(100, percent))}%` }} aria-hidden="true" />
        <input
          ref={thumb}
          type="range"
          aria-label="The moment that is looked at"
          aria-valuetext={shown >= latest - 500 ? "now" : `${dayText(shown)}, ${clockText(shown)}`}
          min={since}
          max={latest}
          step="any"
          value={shown}
          onKeyDown={onKey}
          onInput={(event) => set(Number(event.currentTarget.value), SETTLE_MS)}
        />
      </div>
      <div class="row apart time-under">
        <span class="small muted num">{momentText(since)}</span>
        <span class="row tight">
          <IconButton
            small
            label="Before the changes to the left"
            disabled={before === undefined}
            onClick={() => before !== undefined && set(before - 1)}
          >
            «
          </IconButton>
          <IconButton small label="A minute earlier" onClick={() => set(shown - 60_000)}>
            −
          </IconButton>
          <strong class="num time-shown">{shown >= latest - 500 ? "now" : momentText(shown)}</strong>
          <IconButton small label="A minute later" disabled={shown >= latest - 500} onClick={() => set(shown + 60_000)}>
            +
          </IconButton>
          <IconButton
            small
            label="To the next changes"
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
          ? `${num(density.reduce((sum, each) => sum + each, 0))} changes in this stretch${window?.counted ? "" : " that the stream still knows of"}. `
          : ""}
        Arrows move a second, with Shift a minute, Page Up and Down an hour.
      </p>
    </div>
  );
}

/** A time that is typed. */
function Typed({ earliest, ahead }: { earliest: number; ahead: number }) {
  const text = useSignal("");
  const wrong = useSignal<string | null>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const now = Date.now() + ahead;
    const found = parseMoment(text.value, now);
    if (found === null) wrong.value = "That is no time; try 10m, 14:02:31 or 2026-11-16 14:02:31";
    else if (found < earliest) wrong.value = `Nothing is kept before ${momentText(earliest)}`;
    else {
      wrong.value = null;
      lookAt(found >= now ? "" : iso(found));
    }
  };
  return (
    <form class="time-typed" onSubmit={submit}>
      <TextInput
        label="Go to a time"
        placeholder="10m, 14:02:31, 2026-11-16 14:02"
        value={text.value}
        wrong={wrong.value}
        onInput={(value) => (text.value = value)}
        mono
      />
      <Button type="submit" disabled={!text.value.trim()}>
        Look
      </Button>
    </form>
  );
}

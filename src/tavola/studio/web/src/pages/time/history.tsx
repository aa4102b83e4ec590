// History: the versions of one item, what changed and who changed it, and restoring a version.
import { useSignal } from "@preact/signals";
import { call, problemOf } from "../../app/api";
import { useQuery } from "../../app/queries";
import { go, href, useParam } from "../../app/router";
import { session } from "../../app/session";
import { Badge, Button, Chip, Confirm, Empty, Notice, ProblemNotice, Spinner, TextInput, Loaded } from "../../parts";
import type { ThenRequest, Item, KeptVersion, Problem, TableSummary, UndoRequest } from "../../generated/api";
import { Differences, ItemKey, WholeItem } from "./differences";
import { parseKey, keyText } from "./keys";
import { EnableRecovery } from "./enable_recovery";
import {
  formatCount,
  formatAgo,
  formatBytes,
  formatDateTime,
  formatExactDateTime,
  formatNumber,
  parseIso,
  toIso,
} from "../../format";

export function History({ table }: { table: TableSummary }) {
  const [text] = useParam("key");
  const key = parseKey(text);
  return (
    <div class="stack">
      <KeyForm table={table} chosen={key} />
      {key ? (
        <Versions key={text} table={table.name} item={key} />
      ) : (
        <Empty title="No item selected">
          Enter a key above, or choose “History” for an item in Data or “Item history” for a live change.
        </Empty>
      )}
    </div>
  );
}

/** A form for the key of the item. */
function KeyForm({ table, chosen }: { table: TableSummary; chosen: Item | null }) {
  const typed = useSignal<Record<string, string>>({});
  const shown = (name: string) => typed.value[name] ?? String(Object.values(chosen?.[name] ?? {})[0] ?? "");
  const submit = (event: Event) => {
    event.preventDefault();
    const key = Object.fromEntries(table.keys.map((part) => [part.name, { [part.type]: shown(part.name) }]));
    typed.value = {}; // from now on the URL holds the key, also when going back
    go({ params: { key: keyText(key) } });
  };
  return (
    <form class="time-choose" onSubmit={submit}>
      {table.keys.map((part) => (
        <TextInput
          key={part.name}
          label={`${part.name} (${part.role === "HASH" ? "partition key" : "sort key"})`}
          mono
          value={shown(part.name)}
          onInput={(value) => (typed.value = { ...typed.value, [part.name]: value })}
        />
      ))}
      <Button type="submit" kind="primary" disabled={table.keys.some((part) => !shown(part.name))}>
        Show history
      </Button>
    </form>
  );
}

function Versions({ table, item }: { table: string; item: Item }) {
  const query = useQuery("POST /past/history", { table, key: item });
  const restoring = useSignal<KeptVersion | null>(null);
  const undo = useSignal<UndoRequest | null>(null);
  const message = useSignal("");
  const problem = useSignal<Problem | null>(null);
  if (query.problem?.code === "past-off") return <EnableRecovery table={table} onEnabled={query.retry} />;
  if (query.problem) return <ProblemNotice problem={query.problem} retry={query.retry} />;
  if (!query.data) return <Spinner />;
  const history = query.data;
  const timeText = versionTimes(history.versions);
  const current = history.versions[0];
  const count = history.earlier + history.versions.filter((version) => version.item || version.since).length;
  const restore = async (version: KeptVersion) => {
    restoring.value = null;
    problem.value = null;
    try {
      const done = await call("POST /past/put-back", {
        table,
        key: item,
        at: timeIn(version),
        current: current?.item ?? null,
        gone: !current?.item,
      });
      undo.value = done.undo;
      const others = done.others.differences.map((each) => each.path).join(", ");
      message.value =
        done.outcome === "written"
          ? others
            ? `The item was restored, except ${others}: version numbers keep counting, and what was written since stays.`
            : "The item was restored."
          : done.outcome === "unchanged"
            ? "The item already has this value; nothing was written."
            : "The item changed in the meantime, so nothing was written. Check its current value and try again.";
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    query.retry();
  };
  const undoWrite = async (write: UndoRequest) => {
    undo.value = null;
    try {
      const { outcome } = await call("POST /items/undo", write);
      message.value =
        outcome === "written"
          ? "Undone: the item has its value from before the restore."
          : "The item changed in the meantime, so nothing was undone. Check its current value.";
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    query.retry();
  };
  return (
    <div class="stack">
      <div class="row">
        {history.entity ? <Chip name={history.entity} /> : null}
        <ItemKey parts={history.parts} />
        <span class="muted small">
          {formatCount(count, "version")}
          {history.earlier ? `, showing the latest ${formatNumber(history.versions.length)}` : ""}
          {history.source === "stream" ? "; from the stream, which keeps 24 hours" : ""}
          {history.complete ? "" : "; the stream has records that were not read"}
        </span>
      </div>
      <ProblemNotice problem={problem.value} />
      {message.value ? (
        <Notice
          tone={undo.value ? "good" : "info"}
          actions={
            undo.value ? (
              <Button small onClick={() => undo.value && void undoWrite(undo.value)}>
                Undo
              </Button>
            ) : null
          }
        >
          {message.value}
        </Notice>
      ) : null}
      <ol class="time-versions" aria-label="Versions, newest first">
        {history.versions.map((version, at) => (
          <Version
            key={version.since ?? "before"}
            version={version}
            time={version.since ? timeText(version.since) : "Before"}
            isCurrent={at === 0}
            dataHref={
              history.source === "recovery" && version.since
                ? href({ page: "data", table, params: { at: version.since, item: keyText(item) } })
                : ""
            }
            restore={history.source === "recovery" && at > 0 && version.item ? () => (restoring.value = version) : null}
            comparison={history.source === "recovery" && at > 0 ? { table, key: item, then: timeIn(version) } : null}
          />
        ))}
      </ol>
      {restoring.value ? (
        <Confirm
          title="Restore this version?"
          yes="Restore"
          onNo={() => (restoring.value = null)}
          onYes={() => restoring.value && void restore(restoring.value)}
        >
          <p>
            The item gets its value from{" "}
            {restoring.value.since ? timeText(restoring.value.since) : "when recovery was turned on"}.
          </p>
          <ChangesSince
            request={{ table, key: item, then: timeIn(restoring.value) }}
            place={restoring.value.since ? `at ${restoring.value.since}` : "before"}
          />
          <p class="muted">If the item changes before that, nothing is written. You can undo the restore.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

interface VersionProps {
  version: KeptVersion;
  /** When it was written, precise enough to differ from the others. */
  time: string;
  isCurrent: boolean;
  /** The URL of the data as of then; "" if it cannot be shown. */
  dataHref: string;
  restore: (() => void) | null;
  /** The request that compares it with the current item; null if it is current or cannot be compared. */
  comparison: ThenRequest | null;
}

function Version({ version, time, isCurrent, dataHref, restore, comparison }: VersionProps) {
  const comparing = useSignal(false);
  const open = useSignal(false);
  const since = version.since ? parseIso(version.since) : 0;
  const place = version.since ? `at ${version.since}` : "before"; // a unique label, also for two versions in one second
  const readOnly = session.value?.read_only ?? true;
  return (
    <li class={version.item || version.unknown ? "" : "gone"}>
      <div class="row apart">
        <div class="row tight">
          <strong class="num" title={version.since ?? undefined}>
            {time}
          </strong>
          {since ? <span class="muted small">{formatAgo(since)}</span> : null}
          {isCurrent ? <Badge tone={version.item ? "good" : "warn"}>current</Badge> : null}
          <span>{eventText(version)}</span>
          {version.actor && !version.expired ? <span>by {version.actor}</span> : null}
          {version.why ? <span class="muted">“{version.why}”</span> : null}
        </div>
        <div class="row tight">
          {version.item ? (
            <Button small onClick={() => (open.value = !open.value)} aria-expanded={open.value}>
              {open.value ? "Hide item" : `Show item (${formatBytes(version.bytes)})`}
            </Button>
          ) : null}
          {comparison ? (
            <Button small onClick={() => (comparing.value = !comparing.value)} aria-expanded={comparing.value}>
              Compare with current
            </Button>
          ) : null}
          {dataHref && !isCurrent ? (
            <a class="button small" href={dataHref}>
              View data at this time
            </a>
          ) : null}
          {restore ? (
            <Button small disabled={readOnly} onClick={restore}>
              {" "}
              Restore{" "}
            </Button>
          ) : null}
        </div>
      </div>
      {version.differences.length && version.item && !version.made ? (
        <Differences differences={version.differences} total={version.total} label={`What changed ${place}`} />
      ) : null}
      {comparing.value && comparison ? <ChangesSince request={comparison} place={place} /> : null}
      {open.value && version.item ? <WholeItem item={version.item} label={`The item ${place}`} /> : null}
    </li>
  );
}

/** The differences between a version and the current item. */
function ChangesSince({ request, place }: { request: ThenRequest; place: string }) {
  const query = useQuery("POST /past/then", request);
  return (
    <Loaded query={query}>
      {({ compared }) => (
        <section class="stack tight" aria-label={`Changes since ${place.replace(/^at /, "")}`}>
          <h2>Changes since then</h2>
          <Differences
            differences={compared.differences}
            total={compared.total}
            label={`Differences since ${place.replace(/^at /, "")}`}
            empty="No changes since then."
          />
        </section>
      )}
    </Loaded>
  );
}

/** Return a function that formats the times of versions, to the millisecond if two are in the same second. */
function versionTimes(versions: readonly KeptVersion[]): (since: string) => string {
  const second = (since: string) => Math.floor(parseIso(since) / 1000);
  const seen = new Map<number, number>();
  for (const { since } of versions) if (since) seen.set(second(since), (seen.get(second(since)) ?? 0) + 1);
  return (since) =>
    (seen.get(second(since)) ?? 0) > 1 ? formatExactDateTime(parseIso(since)) : formatDateTime(parseIso(since));
}

/** Return a time at which a version was current. */
function timeIn(version: KeptVersion): string {
  return version.since ?? toIso(parseIso(version.until) - 1);
}

/** Return what happened to the item. */
function eventText(version: KeptVersion): string {
  if (version.unknown) return "written; the stream has no image";
  if (version.item === null) return version.expired ? "deleted by TTL" : version.since ? "deleted" : "no item yet";
  if (version.since === null) return "value when recovery was turned on";
  if (version.made) return `created, ${formatNumber(version.total)} attributes`;
  if (!version.compared) return "written; previous value unknown";
  return version.total ? formatCount(version.total, "change") : "rewritten without changes";
}

// History: all that one item has been, what changed each time and who changed it; and the way back.
import { useSignal } from "@preact/signals";
import { call, problemOf } from "../../app/api";
import { useAsk } from "../../app/asking";
import { go, href, useParam } from "../../app/router";
import { session } from "../../app/session";
import {
  Badge,
  Button,
  bytes,
  Chip,
  Confirm,
  Empty,
  Notice,
  num,
  ProblemNotice,
  Spinner,
  TextInput,
} from "../../parts";
import type { ThenRequest, Item, KeptVersion, Problem, TableSummary, UndoRequest } from "../../generated/api";
import { Differences, ReadKey, WholeItem } from "./differences";
import { keyOf, keyText } from "./keys";
import { KeepPast } from "./keeping";
import { agoText, exactText, iso, momentText, msOf } from "../../app/times";

export function History({ table }: { table: TableSummary }) {
  const [text] = useParam("key");
  const key = keyOf(text);
  return (
    <div class="stack">
      <Choose table={table} chosen={key} />
      {key ? (
        <Versions key={text} table={table.name} item={key} />
      ) : (
        <Empty title="Which item?">
          Give its key above, or choose "History" at an item in Data or at a change in Live.
        </Empty>
      )}
    </div>
  );
}

/** The key of the item, typed part by part. */
function Choose({ table, chosen }: { table: TableSummary; chosen: Item | null }) {
  const typed = useSignal<Record<string, string>>({});
  const shown = (name: string) => typed.value[name] ?? String(Object.values(chosen?.[name] ?? {})[0] ?? "");
  const submit = (event: Event) => {
    event.preventDefault();
    const key = Object.fromEntries(table.keys.map((part) => [part.name, { [part.type]: shown(part.name) }]));
    typed.value = {}; // from here on the URL says what is shown, also when somebody goes back
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
        Show its history
      </Button>
    </form>
  );
}

function Versions({ table, item }: { table: string; item: Item }) {
  const told = useAsk("POST /past/history", { table, key: item });
  const putting = useSignal<KeptVersion | null>(null);
  const undo = useSignal<UndoRequest | null>(null);
  const said = useSignal("");
  const problem = useSignal<Problem | null>(null);
  if (told.problem?.code === "past-off") return <KeepPast table={table} kept={told.again} />;
  if (told.problem) return <ProblemNotice problem={told.problem} again={told.again} />;
  if (!told.data) return <Spinner />;
  const history = told.data;
  const shown = momentsOf(history.versions);
  const now = history.versions[0];
  const count = history.earlier + history.versions.filter((version) => version.item || version.since).length;
  const putBack = async (version: KeptVersion) => {
    putting.value = null;
    problem.value = null;
    try {
      const done = await call("POST /past/put-back", {
        table,
        key: item,
        at: momentIn(version),
        current: now?.item ?? null,
        gone: !now?.item,
      });
      undo.value = done.undo;
      const others = done.others.differences.map((each) => each.path).join(", ");
      said.value =
        done.outcome === "written"
          ? others
            ? `The item is again what it was, but for ${others}: a lock counts on, and what somebody else wrote meanwhile stays.`
            : "The item is again what it was."
          : done.outcome === "unchanged"
            ? "It is that already; nothing was written."
            : "Somebody changed it meanwhile; nothing was written. Look at what it is now, and decide anew.";
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    told.again();
  };
  const takeBack = async (write: UndoRequest) => {
    undo.value = null;
    try {
      const { outcome } = await call("POST /items/undo", write);
      said.value =
        outcome === "written"
          ? "Taken back: the item is what it was before you put it back."
          : "Somebody changed it meanwhile; nothing was taken back. Look at what it is now.";
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    told.again();
  };
  return (
    <div class="stack">
      <div class="row">
        {history.entity ? <Chip name={history.entity} /> : null}
        <ReadKey parts={history.parts} />
        <span class="muted small">
          {num(count)} {count === 1 ? "version" : "versions"}
          {history.earlier ? `, the last ${num(history.versions.length)} are shown` : ""}
          {history.source === "stream" ? "; from the stream, which keeps a day" : ""}
          {history.complete ? "" : "; the stream has more than was read"}
        </span>
      </div>
      {problem.value ? <ProblemNotice problem={problem.value} /> : null}
      {said.value ? (
        <Notice
          tone={undo.value ? "good" : "info"}
          actions={
            undo.value ? (
              <Button small onClick={() => undo.value && void takeBack(undo.value)}>
                Undo
              </Button>
            ) : null
          }
        >
          {said.value}
        </Notice>
      ) : null}
      <ol class="time-versions" aria-label="Versions, the latest first">
        {history.versions.map((version, at) => (
          <Version
            key={version.since ?? "before"}
            version={version}
            moment={version.since ? shown(version.since) : "Before"}
            stands={at === 0}
            then={
              history.source === "recovery" && version.since
                ? href({ page: "data", table, params: { at: version.since, item: keyText(item) } })
                : ""
            }
            putBack={history.source === "recovery" && at > 0 && version.item ? () => (putting.value = version) : null}
            beside={history.source === "recovery" && at > 0 ? { table, key: item, then: momentIn(version) } : null}
          />
        ))}
      </ol>
      {putting.value ? (
        <Confirm
          title="Put the item back?"
          yes="Put it back"
          onNo={() => (putting.value = null)}
          onYes={() => putting.value && void putBack(putting.value)}
        >
          <p>
            It becomes what it was {putting.value.since ? `at ${shown(putting.value.since)}` : "when keeping began"}.
          </p>
          <AgainstNow
            asked={{ table, key: item, then: momentIn(putting.value) }}
            place={putting.value.since ? `at ${putting.value.since}` : "before"}
          />
          <p class="muted">If somebody has changed it since you looked, nothing is written. You can undo it.</p>
        </Confirm>
      ) : null}
    </div>
  );
}

interface VersionProps {
  version: KeptVersion;
  /** When it began, as it is told apart from the others. */
  moment: string;
  stands: boolean;
  /** Where the data of that moment is; "" where nobody shows it. */
  then: string;
  putBack: (() => void) | null;
  /** What asks for it beside what stands; null where it stands itself, or nobody can tell. */
  beside: ThenRequest | null;
}

function Version({ version, moment, stands, then, putBack, beside }: VersionProps) {
  const compared = useSignal(false);
  const open = useSignal(false);
  const since = version.since ? msOf(version.since) : 0;
  const place = version.since ? `at ${version.since}` : "before"; // tells regions apart, also two of one second
  const readOnly = session.value?.read_only ?? true;
  return (
    <li class={version.item || version.unknown ? "" : "gone"}>
      <div class="row apart">
        <div class="row tight">
          <strong class="num" title={version.since ?? undefined}>
            {moment}
          </strong>
          {since ? <span class="muted small">{agoText(since)}</span> : null}
          {stands ? <Badge tone={version.item ? "good" : "warn"}>stands</Badge> : null}
          <span>{what(version)}</span>
          {version.actor && !version.expired ? <span>by {version.actor}</span> : null}
          {version.why ? <span class="muted">“{version.why}”</span> : null}
        </div>
        <div class="row tight">
          {version.item ? (
            <Button small onClick={() => (open.value = !open.value)} aria-expanded={open.value}>
              {open.value ? "Hide it" : `${stands ? "As it is" : "As it was"} (${bytes(version.bytes)})`}
            </Button>
          ) : null}
          {beside ? (
            <Button small onClick={() => (compared.value = !compared.value)} aria-expanded={compared.value}>
              Against now
            </Button>
          ) : null}
          {then && !stands ? (
            <a class="button small" href={then}>
              Look at this time
            </a>
          ) : null}
          {putBack ? (
            <Button small disabled={readOnly} onClick={putBack}>
              Put back
            </Button>
          ) : null}
        </div>
      </div>
      {version.differences.length && version.item && !version.made ? (
        <Differences differences={version.differences} total={version.total} label={`What changed ${place}`} />
      ) : null}
      {compared.value && beside ? <AgainstNow asked={beside} place={place} /> : null}
      {open.value && version.item ? <WholeItem item={version.item} label={`The item ${place}`} /> : null}
    </li>
  );
}

/** What has changed from a version to what stands. */
function AgainstNow({ asked, place }: { asked: ThenRequest; place: string }) {
  const told = useAsk("POST /past/then", asked);
  if (told.problem) return <ProblemNotice problem={told.problem} again={told.again} />;
  if (!told.data) return <Spinner />;
  return (
    <section class="stack tight" aria-label={`From ${place.replace(/^at /, "")} to now`}>
      <h2>From then to now</h2>
      <Differences
        differences={told.data.compared.differences}
        total={told.data.compared.total}
        label={`Differences from ${place.replace(/^at /, "")} to now`}
        empty="It is the same now."
      />
    </section>
  );
}

/** Return how moments of versions are told: by the millisecond where another is of the same second. */
function momentsOf(versions: readonly KeptVersion[]): (since: string) => string {
  const second = (since: string) => Math.floor(msOf(since) / 1000);
  const seen = new Map<number, number>();
  for (const { since } of versions) if (since) seen.set(second(since), (seen.get(second(since)) ?? 0) + 1);
  return (since) => ((seen.get(second(since)) ?? 0) > 1 ? exactText(msOf(since)) : momentText(msOf(since)));
}

/** Return a moment at which a version stood. */
function momentIn(version: KeptVersion): string {
  return version.since ?? iso(msOf(version.until) - 1);
}

/** Return what happened to the item, in words. */
function what(version: KeptVersion): string {
  if (version.unknown) return "written; the stream does not tell what";
  if (version.item === null)
    return version.expired ? "removed: its time to live was over" : version.since ? "removed" : "no item yet";
  if (version.since === null) return "what stood when keeping began";
  if (version.made) return `created, ${num(version.total)} attributes`;
  if (!version.compared) return "written; what it was before is not known";
  return version.total
    ? `${num(version.total)} ${version.total === 1 ? "difference" : "differences"}`
    : "written again, unchanged";
}

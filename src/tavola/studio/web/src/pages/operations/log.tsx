// Log: the records of the access log, the newest first, as many as one scrolls to.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, problemOf, wasAborted } from "../../app/api";
import { go, route } from "../../app/router";
import { session } from "../../app/session";
import type { LogRequest, LogRow, Problem } from "../../generated/api";
import {
  Button,
  Code,
  Drawer,
  Empty,
  ms,
  Notice,
  num,
  Panel,
  ProblemNotice,
  Select,
  Spinner,
  TextInput,
  VirtualRows,
} from "../../parts";

const PAGE = 200;
const SINCE = [
  { value: "", label: "Any time" },
  { value: "900", label: "Last 15 minutes" },
  { value: "3600", label: "Last hour" },
  { value: "21600", label: "Last 6 hours" },
  { value: "86400", label: "Last day" },
];
const DECISIONS = ["", "open", "allowed", "denied", "unauthenticated", "refused"].map((value) => ({
  value,
  label: value || "Any decision",
}));
const FAULTS = [
  { value: "", label: "Any answer" },
  { value: "none", label: "Answered" },
  { value: "any", label: "Failed" },
];

interface Held {
  readonly rows: readonly LogRow[];
  readonly more: boolean;
  readonly deep: boolean;
  readonly until: number | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
}

const NOTHING = { since: "", lop: "", lt: "", li: "", caller: "", dec: "", ans: "", hash: "", item: "" };
const NONE: Held = { rows: [], more: false, deep: false, until: null, problem: null, loading: true };

export function Log() {
  return session.value?.log ? <Records /> : <NoLog />;
}

function Records() {
  const {
    since = "",
    lop = "",
    lt = "",
    li = "",
    caller = "",
    dec = "",
    ans = "",
    hash = "",
    item = "",
    rec = "",
  } = route.value.params;
  const [round, setRound] = useState(0);
  const asks = useMemo(
    () => ({
      since,
      operation: lop,
      table: lt,
      index: li,
      caller,
      decision: dec,
      fault: ans,
      key: hash,
      item: isObject(item) ? item : "",
    }),
    [since, lop, lt, li, caller, dec, ans, hash, item],
  );
  const { held, further } = usePages(asks, round);
  const set = (change: Record<string, string>) => go({ params: { ...change, rec: null } }, { replace: true });
  const open = held.rows.find((each) => idOf(each) === rec);
  return (
    <>
      <div class="operations-filters">
        <Select label="Since" value={since} options={SINCE} onChange={(value) => set({ since: value })} />
        <TextInput label="Operation" value={lop} placeholder="GetItem" onInput={(value) => set({ lop: value })} />
        <TextInput label="Table" value={lt} list="operations-log-tables" onInput={(value) => set({ lt: value })} />
        <datalist id="operations-log-tables">
          {(session.value?.tables ?? []).map((each) => (
            <option key={each.name} value={each.name} />
          ))}
        </datalist>
        <TextInput label="Index" value={li} placeholder="that was read" onInput={(value) => set({ li: value })} />
        <TextInput
          label="Caller"
          value={caller}
          placeholder="a name, ARN or key"
          onInput={(value) => set({ caller: value })}
        />
        <Select label="Decision" value={dec} options={DECISIONS} onChange={(value) => set({ dec: value })} />
        <Select
          label="Answer"
          value={ans}
          options={answers(held.rows, ans)}
          onChange={(value) => set({ ans: value })}
        />
        <TextInput
          label="Item"
          mono
          value={item}
          placeholder={'{"pk": {"S": "…"}}'}
          wrong={item && !isObject(item) ? "No JSON yet" : null}
          title="A key in DynamoDB JSON, hash attribute first; alone, its whole partition"
          onInput={(value) => set({ item: value })}
        />
        <TextInput
          label="Hash of a key"
          mono
          value={hash}
          disabled={item !== ""}
          placeholder="as a record has it"
          onInput={(value) => set({ hash: value })}
        />
        <Button onClick={() => setRound(round + 1)}>Look again</Button>
        {Object.values(asks).some(Boolean) ? (
          <Button kind="quiet" onClick={() => set(NOTHING)}>
            Clear
          </Button>
        ) : null}
      </div>
      {held.problem ? <ProblemNotice problem={held.problem} again={() => setRound(round + 1)} /> : null}
      {held.deep ? (
        <Notice title="There is more, further back">
          These are the newest {num(held.rows.length)}. Narrow the time, or give a filter, to come to what is older.
        </Notice>
      ) : null}
      <Panel
        title="Access log"
        flush
        actions={
          <span class="small muted" role="status">
            {held.loading ? (
              <Spinner />
            ) : (
              `${num(held.rows.length)} ${held.more || held.deep ? "so far, newest first" : held.rows.length === 1 ? "record" : "records"}`
            )}
          </span>
        }
      >
        {!held.loading && !held.rows.length && !held.problem ? (
          <Empty title="No call is like that">Widen the time, or clear a filter.</Empty>
        ) : (
          <>
            <div class="operations-log-row head" aria-hidden="true">
              <span>Time</span>
              <span>Caller</span>
              <span>Operation</span>
              <span>Table</span>
              <span>Answer</span>
              <span>Decision</span>
              <span class="num">Took</span>
              <span class="num">Units</span>
            </div>
            <VirtualRows
              count={held.rows.length}
              rowHeight={32}
              height="min(60vh, 640px)"
              tabIndex={0}
              role="group"
              aria-label="Records of the access log"
              onNearEnd={further}
              render={(at) => (
                <Row
                  key={at}
                  row={held.rows[at]}
                  open={(row) => go({ params: { rec: idOf(row) } }, { replace: true })}
                />
              )}
            />
          </>
        )}
      </Panel>
      {open ? (
        <Drawer
          title={`${open.operation} at ${open.time}`}
          onClose={() => go({ params: { rec: null } }, { replace: true })}
        >
          <div class="stack">
            {keysOf(open).map((key) => (
              <p key={key} class="row">
                <code class="operations-arn grow">{key}</code>
                <Button small onClick={() => set({ ...NOTHING, hash: key })}>
                  Calls of this key
                </Button>
              </p>
            ))}
            <Code text={JSON.stringify(open.record, null, 2)} label="Record" />
          </div>
        </Drawer>
      ) : null}
    </>
  );
}

function NoLog() {
  return (
    <Empty title="No access log is kept">
      The server can write down every call: who, what, when, what was decided, what it consumed. Start it so:{" "}
      <code>tavola serve FILE --studio --access-log access.log</code>. A log that is there is read with{" "}
      <code>tavola studio --access-log access.log</code>.
    </Empty>
  );
}

function Row({ row, open }: { row: LogRow | undefined; open: (row: LogRow) => void }) {
  if (!row) return null;
  return (
    <button type="button" class="operations-log-row" onClick={() => open(row)} title="Show the record">
      <span class="nowrap">
        <span class="operations-day">{row.time.slice(0, 10)} </span>
        {row.time.slice(11, 19)}
      </span>
      <span class="cut">{row.caller || "–"}</span>
      <span class="cut">{row.operation}</span>
      <span class="cut">{row.places.join(", ") || "–"}</span>
      <span class={`cut ${row.answer === "ok" ? "muted" : "warn"}`} title={row.answer}>
        {row.answer}
      </span>
      <span
        class={`cut ${row.decision === "denied" || row.decision === "unauthenticated" ? "bad" : ""}`}
        title={row.decided_by || undefined}
      >
        {row.decision || "–"}
      </span>
      <span class="num">{row.took_ms === null || row.took_ms === undefined ? "–" : ms(row.took_ms)}</span>
      <span class="num">{num(row.reads + row.writes)}</span>
    </button>
  );
}

function idOf(row: LogRow): string {
  const id: unknown = row.record["eventID"];
  return typeof id === "string" ? id : `${row.time} ${row.operation}`;
}

/** Tell whether a text is an object in JSON; while it is typed it is not. */
function isObject(text: string): boolean {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null;
  } catch {
    return false;
  }
}

/** Return the answers to choose from: of all, and those that are among the records, whichever is chosen too. */
function answers(rows: readonly LogRow[], chosen: string) {
  const codes = new Set(rows.map((row) => row.record["errorCode"]).filter((code) => typeof code === "string"));
  if (chosen && !FAULTS.some((each) => each.value === chosen)) codes.add(chosen);
  return [...FAULTS, ...[...codes].sort().map((code) => ({ value: code, label: code }))];
}

const KEYS_SHOWN = 8;

/** Return the hashes of the keys that a record has, the first few. */
function keysOf(row: LogRow): string[] {
  const told = row.record["requestParameters"] as
    { keys?: unknown; tables?: readonly { keys?: unknown }[] } | null | undefined;
  const places = told?.tables ?? (told ? [told] : []);
  const keys = places.flatMap((place) => (Array.isArray(place.keys) ? (place.keys as unknown[]) : []));
  return [...new Set(keys.filter((key) => typeof key === "string"))].slice(0, KEYS_SHOWN);
}

interface Filters {
  readonly since: string;
  readonly operation: string;
  readonly table: string;
  readonly index: string;
  readonly caller: string;
  readonly decision: string;
  readonly fault: string;
  readonly key: string;
  readonly item: string;
}

/** Return the records that were asked for so far, and a way to ask for the next page. */
function usePages(filters: Filters, round: number): { held: Held; further: () => void } {
  const [held, setHeld] = useState<Held>(NONE);
  const asking = useRef<AbortController | null>(null); // what is under way; whatever is asked anew ends it
  const ask = (skip: number, until: number | null, giving: AbortController) =>
    call("GET /access/log", asked(filters, skip, until), { signal: giving.signal })
      .then((page) =>
        setHeld((before) => ({
          rows: skip ? [...before.rows, ...page.rows] : page.rows,
          more: page.more,
          deep: page.deep,
          until: page.until_s,
          problem: null,
          loading: false,
        })),
      )
      .catch((thrown: unknown) => {
        if (!wasAborted(thrown))
          setHeld((before) => ({ ...(skip ? before : NONE), problem: problemOf(thrown), loading: false }));
      })
      .finally(() => {
        if (asking.current === giving) asking.current = null;
      });
  useEffect(() => {
    const giving = new AbortController();
    asking.current = giving;
    setHeld((before) => ({ ...before, loading: true }));
    const timer = setTimeout(() => void ask(0, null, giving), 150); // a filter is typed letter by letter
    return () => {
      clearTimeout(timer);
      asking.current?.abort();
      asking.current = null;
    };
  }, [filters, round]);
  const further = () => {
    if (asking.current || !held.more) return;
    asking.current = new AbortController();
    void ask(held.rows.length, held.until, asking.current);
  };
  return { held, further };
}

function asked(filters: Filters, skip: number, until: number | null): LogRequest {
  const { since, ...rest } = filters;
  return {
    ...rest,
    limit: PAGE,
    skip,
    ...(since ? { since_s: Date.now() / 1000 - Number(since) } : {}),
    ...(until === null ? {} : { until_s: until }),
  };
}

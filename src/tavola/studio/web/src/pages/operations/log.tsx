// Log: the records of the access log, newest first, loaded while scrolling.
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
  Notice,
  Panel,
  ProblemNotice,
  Select,
  Spinner,
  TextInput,
  VirtualRows,
} from "../../parts";
import { formatDay, formatLatency, formatNumber, formatTime, parseIso } from "../../format";

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
const RESULTS = [
  { value: "", label: "Any result" },
  { value: "none", label: "Succeeded" },
  { value: "any", label: "Failed" },
];

interface LoadedRecords {
  readonly rows: readonly LogRow[];
  readonly more: boolean;
  readonly deep: boolean;
  readonly until: number | null;
  readonly problem: Problem | null;
  readonly loading: boolean;
}

const NO_FILTERS = { since: "", lop: "", lt: "", li: "", caller: "", dec: "", ans: "", hash: "", item: "" };
const NOT_LOADED: LoadedRecords = { rows: [], more: false, deep: false, until: null, problem: null, loading: true };

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
  const [refreshes, setRefreshes] = useState(0);
  const filters = useMemo(
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
  const { records, loadMore } = usePages(filters, refreshes);
  const set = (change: Record<string, string>) => go({ params: { ...change, rec: null } }, { replace: true });
  const open = records.rows.find((each) => idOf(each) === rec);
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
        <TextInput label="Index" value={li} placeholder="index name" onInput={(value) => set({ li: value })} />
        <TextInput
          label="Caller"
          value={caller}
          placeholder="name or ARN"
          title="User or role name, ARN, or access key"
          onInput={(value) => set({ caller: value })}
        />
        <Select label="Decision" value={dec} options={DECISIONS} onChange={(value) => set({ dec: value })} />
        <Select
          label="Result"
          value={ans}
          options={resultOptions(records.rows, ans)}
          onChange={(value) => set({ ans: value })}
        />
        <TextInput
          label="Item"
          mono
          value={item}
          placeholder={'{"pk": {"S": "…"}}'}
          error={item && !isObject(item) ? "Invalid JSON" : null}
          title="A key as DynamoDB JSON, partition key first; the partition key alone matches the whole item collection"
          onInput={(value) => set({ item: value })}
        />
        <TextInput
          label="Key hash"
          mono
          value={hash}
          disabled={item !== ""}
          placeholder="from a record"
          onInput={(value) => set({ hash: value })}
        />
        <Button onClick={() => setRefreshes(refreshes + 1)}>Refresh</Button>
        {Object.values(filters).some(Boolean) ? (
          <Button kind="quiet" onClick={() => set(NO_FILTERS)}>
            Clear
          </Button>
        ) : null}
      </div>
      <ProblemNotice problem={records.problem} retry={() => setRefreshes(refreshes + 1)} />
      {records.deep ? (
        <Notice title="Older records are not shown">
          These are the newest {formatNumber(records.rows.length)} records. Narrow the time range or add a filter to
          reach older ones.
        </Notice>
      ) : null}
      <Panel
        title="Access log"
        flush
        actions={
          <span class="small muted" role="status">
            {records.loading ? (
              <Spinner />
            ) : (
              `${formatNumber(records.rows.length)} ${records.more || records.deep ? "loaded, newest first" : records.rows.length === 1 ? "record" : "records"}`
            )}
          </span>
        }
      >
        {!records.loading && !records.rows.length && !records.problem ? (
          <Empty title="No matching records">Widen the time range or clear a filter.</Empty>
        ) : (
          <>
            <div class="operations-log-row head" aria-hidden="true">
              <span>Time</span>
              <span>Caller</span>
              <span>Operation</span>
              <span>Table</span>
              <span>Result</span>
              <span>Decision</span>
              <span class="num">Latency</span>
              <span class="num">Units</span>
            </div>
            <VirtualRows
              count={records.rows.length}
              rowHeight={32}
              height="min(60vh, 640px)"
              tabIndex={0}
              role="group"
              aria-label="Access log records"
              onNearEnd={loadMore}
              render={(at) => (
                <Row
                  key={at}
                  row={records.rows[at]}
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
                <Button small onClick={() => set({ ...NO_FILTERS, hash: key })}>
                  Show requests for this key
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
    <Empty title="The access log is off">
      The server can log every request: caller, operation, time, decision and consumed capacity. Start it with{" "}
      <code>tavola serve FILE --studio --access-log access.log</code>. To read an existing log, use{" "}
      <code>tavola studio --access-log access.log</code>.
    </Empty>
  );
}

function Row({ row, open }: { row: LogRow | undefined; open: (row: LogRow) => void }) {
  if (!row) return null;
  return (
    <button type="button" class="operations-log-row" onClick={() => open(row)} title="Show record">
      <span class="nowrap">
        <span class="operations-day">{formatDay(parseIso(row.time))}, </span>
        {formatTime(parseIso(row.time))}
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
      <span class="num">{row.took_ms === null || row.took_ms === undefined ? "–" : formatLatency(row.took_ms)}</span>
      <span class="num">{formatNumber(row.reads + row.writes)}</span>
    </button>
  );
}

function idOf(row: LogRow): string {
  const id: unknown = row.record["eventID"];
  return typeof id === "string" ? id : `${row.time} ${row.operation}`;
}

/** Return whether text is a JSON object. */
function isObject(text: string): boolean {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === "object" && read !== null;
  } catch {
    return false;
  }
}

/** Return the results to filter by: the general ones, the error codes in the records, and the selected one. */
function resultOptions(rows: readonly LogRow[], chosen: string) {
  const codes = new Set(rows.map((row) => row.record["errorCode"]).filter((code) => typeof code === "string"));
  if (chosen && !RESULTS.some((each) => each.value === chosen)) codes.add(chosen);
  return [...RESULTS, ...[...codes].sort().map((code) => ({ value: code, label: code }))];
}

const KEYS_SHOWN = 8;

/** Return the first key hashes of a record. */
function keysOf(row: LogRow): string[] {
  const parameters = row.record["requestParameters"] as
    { keys?: unknown; tables?: readonly { keys?: unknown }[] } | null | undefined;
  const places = parameters?.tables ?? (parameters ? [parameters] : []);
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

/** Return the records loaded so far, and a function that loads the next page. */
function usePages(filters: Filters, refreshes: number): { records: LoadedRecords; loadMore: () => void } {
  const [records, setRecords] = useState<LoadedRecords>(NOT_LOADED);
  const running = useRef<AbortController | null>(null); // the running request, which a new one aborts
  const load = (skip: number, until: number | null, controller: AbortController) =>
    call("GET /access/log", logRequest(filters, skip, until), { signal: controller.signal })
      .then((page) =>
        setRecords((before) => ({
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
          setRecords((before) => ({ ...(skip ? before : NOT_LOADED), problem: problemOf(thrown), loading: false }));
      })
      .finally(() => {
        if (running.current === controller) running.current = null;
      });
  useEffect(() => {
    const controller = new AbortController();
    running.current = controller;
    setRecords((before) => ({ ...before, loading: true }));
    const timer = setTimeout(() => void load(0, null, controller), 150); // wait while a filter is typed
    return () => {
      clearTimeout(timer);
      running.current?.abort();
      running.current = null;
    };
  }, [filters, refreshes]);
  const loadMore = () => {
    if (running.current || !records.more) return;
    running.current = new AbortController();
    void load(records.rows.length, records.until, running.current);
  };
  return { records, loadMore };
}

function logRequest(filters: Filters, skip: number, until: number | null): LogRequest {
  const { since, ...rest } = filters;
  return {
    ...rest,
    limit: PAGE,
    skip,
    ...(since ? { since_s: Date.now() / 1000 - Number(since) } : {}),
    ...(until === null ? {} : { until_s: until }),
  };
}

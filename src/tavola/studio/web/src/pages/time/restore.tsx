// Restore: a new table of what this one was, with its progress; and the backups that were made by hand.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { asOf } from "../../app/as_of";
import { useAsk } from "../../app/asking";
import { href, useParam } from "../../app/router";
import { refreshSession, session } from "../../app/session";
import {
  Badge,
  Button,
  bytes,
  Dialog,
  Empty,
  Notice,
  num,
  Panel,
  ProblemNotice,
  Progress,
  Segmented,
  Spinner,
  TextInput,
} from "../../parts";
import type { Problem, RestoreProgress, TableBackup } from "../../generated/api";
import { KeepPast } from "./keeping";
import { clockText, iso, momentText, msOf, parseMoment, serverAhead } from "../../app/times";

const LOOK_MS = 400;

/** What is to be restored: a moment of the table, or a backup. */
type Wanted = { kind: "moment" } | { kind: "backup"; backup: TableBackup };

export function Restore({ table }: { table: string }) {
  const past = useAsk("GET /past", { table, buckets: 0 });
  const backups = useAsk("GET /past/backups", { table });
  const wanted = useSignal<Wanted | null>(null);
  const [restoring, setRestoring] = useParam("restoring");
  const readOnly = session.value?.read_only ?? true;
  const earliest = msOf(past.data?.earliest ?? null);
  const ahead = useMemo(() => serverAhead(past.data), [past.data]);
  return (
    <div class="stack">
      {restoring ? <Restoring table={restoring} of={table} close={() => setRestoring("")} /> : null}
      <Panel title="To a moment">
        {past.problem ? (
          <ProblemNotice problem={past.problem} again={past.again} />
        ) : !past.data ? (
          <Spinner />
        ) : !past.data.on ? (
          <KeepPast table={table} kept={past.again} />
        ) : (
          <div class="time-offer">
            <p>
              Any moment since <strong>{momentText(earliest)}</strong>. The result is a new table; this one is not
              touched. Stream, time to live, tags and recovery are not taken over.
            </p>
            <Button kind="primary" disabled={readOnly} onClick={() => (wanted.value = { kind: "moment" })}>
              Restore to a moment…
            </Button>
          </div>
        )}
      </Panel>
      <Backups table={table} listed={backups} restore={(backup) => (wanted.value = { kind: "backup", backup })} />
      {wanted.value ? (
        <Choose
          table={table}
          wanted={wanted.value}
          earliest={earliest}
          ahead={ahead}
          close={() => (wanted.value = null)}
          begun={(name) => {
            wanted.value = null;
            setRestoring(name);
          }}
        />
      ) : null}
    </div>
  );
}

function Choose({
  table,
  wanted,
  earliest,
  ahead,
  close,
  begun,
}: {
  table: string;
  wanted: Wanted;
  earliest: number;
  ahead: number;
  close: () => void;
  begun: (name: string) => void;
}) {
  const moment = msOf(asOf.value);
  const name = useSignal(`${table}-restored`);
  const way = useSignal(moment ? "then" : "latest");
  const typed = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const working = useSignal(false);
  const found = way.value === "typed" ? parseMoment(typed.value, Date.now() + ahead) : null;
  const wrong =
    way.value === "typed" && typed.value && (found === null || found < earliest)
      ? found === null
        ? "That is no time; try 10m or 14:02:31"
        : `Nothing is kept before ${momentText(earliest)}`
      : null;
  const restore = async () => {
    working.value = true;
    problem.value = null;
    try {
      if (wanted.kind === "backup")
        await call("POST /past/backups/restore", { arn: wanted.backup.arn, to: name.value.trim() });
      else
        await call("POST /past/restore", {
          table,
          to: name.value.trim(),
          at: way.value === "then" ? asOf.value : found === null ? "" : iso(found),
        });
      begun(name.value.trim());
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    working.value = false;
  };
  const ways = [
    { value: "latest", label: "The latest" },
    ...(moment ? [{ value: "then", label: `${momentText(moment)}, as you see it` }] : []),
    { value: "typed", label: "Another…" },
  ];
  return (
    <Dialog
      title={wanted.kind === "backup" ? `Restore the backup ${wanted.backup.name}` : `Restore ${table} to a moment`}
      onClose={close}
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            kind="primary"
            disabled={
              working.value || !name.value.trim() || (way.value === "typed" && (found === null || wrong !== null))
            }
            onClick={() => void restore()}
          >
            Restore
          </Button>
        </>
      }
    >
      <div class="stack">
        {wanted.kind === "moment" ? (
          <>
            <Segmented label="Moment" options={ways} value={way.value} onChange={(value) => (way.value = value)} />
            {way.value === "typed" ? (
              <TextInput
                label="The moment"
                hint="10m ago, 14:02:31, 2026-11-16 14:02"
                mono
                value={typed.value}
                wrong={wrong}
                onInput={(value) => (typed.value = value)}
              />
            ) : null}
            {found !== null && !wrong ? <p class="muted small">That is {momentText(found)}.</p> : null}
          </>
        ) : (
          <p>
            As {wanted.backup.table} was on {momentText(msOf(wanted.backup.at))}.
          </p>
        )}
        <TextInput
          label="Name of the new table"
          mono
          value={name.value}
          onInput={(value) => (name.value = value)}
          data-autofocus
        />
        {problem.value ? <ProblemNotice problem={problem.value} /> : null}
      </div>
    </Dialog>
  );
}

/** How far a restore is; it goes on whether or not anybody looks. */
function Restoring({ table, of, close }: { table: string; of: string; close: () => void }) {
  const told = useSignal<RestoreProgress | null>(null);
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    let gone = false;
    let timer = 0;
    const look = async () => {
      try {
        told.value = await call("GET /past/restore", { table, of });
        problem.value = null;
      } catch (thrown) {
        problem.value = problemOf(thrown);
      }
      if (gone) return;
      if (told.value?.done) void refreshSession();
      else if (problem.value === null || problem.value.status === 0 || problem.value.status >= 500)
        timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [table, of]);
  if (problem.value) return <ProblemNotice problem={problem.value} />;
  const progress = told.value;
  if (!progress) return <Spinner />;
  if (progress.done) {
    return (
      <Notice
        tone="good"
        title={`${table} is there`}
        actions={
          <span class="row tight">
            <a class="button small" href={href({ page: "data", table, params: { at: null } })}>
              Look at it
            </a>
            <Button small kind="quiet" onClick={close}>
              Close
            </Button>
          </span>
        }
      >
        {num(progress.items)} items.
      </Notice>
    );
  }
  return (
    <Notice tone="info" title={`${table} is being restored`}>
      <div class="stack tight">
        <Progress
          label={`${table} is being restored`}
          value={progress.items}
          max={progress.of_items ?? Math.max(progress.items, 1)}
        />
        <span class="small">
          {num(progress.items)} items{progress.of_items === null ? "" : ` of about ${num(progress.of_items)}`}
          {progress.at ? `, as of ${momentText(msOf(progress.at))}` : ""}
        </span>
      </div>
    </Notice>
  );
}

function Backups({
  table,
  listed,
  restore,
}: {
  table: string;
  listed: ReturnType<typeof useAsk<"GET /past/backups">>;
  restore: (backup: TableBackup) => void;
}) {
  const problem = useSignal<Problem | null>(null);
  const readOnly = session.value?.read_only ?? true;
  const make = async () => {
    const now = new Date();
    try {
      await call("POST /past/backups", {
        table,
        name: `${table}-${now.toISOString().slice(0, 10)}-${clockText(now.getTime()).replaceAll(":", "")}`,
      });
      problem.value = null;
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    listed.again();
  };
  const backups = listed.data?.backups ?? [];
  return (
    <Panel
      title="Backups"
      flush={backups.length > 0}
      actions={
        <Button small disabled={readOnly} onClick={() => void make()}>
          Back up now
        </Button>
      }
    >
      {problem.value ? <ProblemNotice problem={problem.value} /> : null}
      {listed.problem ? (
        <ProblemNotice problem={listed.problem} again={listed.again} />
      ) : backups.length ? (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Backups">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Made</th>
                <th scope="col" class="num">
                  Size
                </th>
                <th scope="col">State</th>
                <th scope="col">
                  <span class="hidden-text">Do</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {backups.map((backup) => (
                <tr key={backup.arn}>
                  <td class="mono">{backup.name}</td>
                  <td class="nowrap">{momentText(msOf(backup.at))}</td>
                  <td class="num nowrap">{backup.bytes === null ? "–" : bytes(backup.bytes)}</td>
                  <td>
                    <Badge tone={backup.status === "AVAILABLE" ? "good" : "warn"}>{backup.status.toLowerCase()}</Badge>
                  </td>
                  <td class="num">
                    <Button small disabled={readOnly || backup.status !== "AVAILABLE"} onClick={() => restore(backup)}>
                      Restore…
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty title="No backups">A backup keeps the table as it is now until somebody deletes it.</Empty>
      )}
    </Panel>
  );
}

// Restore: restores the table to a point in time or from a backup, with progress; and lists the backups.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { asOf } from "../../app/as_of";
import { useQuery } from "../../app/queries";
import { href, useParam } from "../../app/router";
import { refreshSession, session } from "../../app/session";
import {
  DataTable,
  hidden,
  numeric,
  Badge,
  Button,
  Dialog,
  Empty,
  Notice,
  Panel,
  ProblemNotice,
  Progress,
  Segmented,
  Spinner,
  TextInput,
} from "../../parts";
import type { Problem, RestoreProgress, TableBackup } from "../../generated/api";
import { EnableRecovery } from "./enable_recovery";
import {
  formatBytes,
  formatDateTime,
  formatNumber,
  formatTime,
  parseIso,
  parseTypedTime,
  serverClockAhead,
  toIso,
} from "../../format";

const POLL_MS = 400;

/** What to restore: a point in time or a backup. */
type RestoreSource = { kind: "time" } | { kind: "backup"; backup: TableBackup };

export function Restore({ table }: { table: string }) {
  const past = useQuery("GET /past", { table, buckets: 0 });
  const backups = useQuery("GET /past/backups", { table });
  const source = useSignal<RestoreSource | null>(null);
  const [restoring, setRestoring] = useParam("restoring");
  const readOnly = session.value?.read_only ?? true;
  const earliest = parseIso(past.data?.earliest ?? null);
  const ahead = useMemo(() => serverClockAhead(past.data), [past.data]);
  return (
    <div class="stack">
      {restoring ? <RestoreStatus table={restoring} of={table} onClose={() => setRestoring("")} /> : null}
      <Panel title="Restore to a point in time">
        {past.problem ? (
          <ProblemNotice problem={past.problem} retry={past.retry} />
        ) : !past.data ? (
          <Spinner />
        ) : !past.data.on ? (
          <EnableRecovery table={table} onEnabled={past.retry} />
        ) : (
          <div class="time-offer">
            <p>
              You can restore to any time since <strong>{formatDateTime(earliest)}</strong>. The result is a new table;
              this table is not changed. Stream, TTL, tags and recovery settings are not copied.
            </p>
            <Button kind="primary" disabled={readOnly} onClick={() => (source.value = { kind: "time" })}>
              Choose restore point…
            </Button>
          </div>
        )}
      </Panel>
      <Backups table={table} listed={backups} restore={(backup) => (source.value = { kind: "backup", backup })} />
      {source.value ? (
        <RestoreDialog
          table={table}
          source={source.value}
          earliest={earliest}
          ahead={ahead}
          onClose={() => (source.value = null)}
          onStarted={(name) => {
            source.value = null;
            setRestoring(name);
          }}
        />
      ) : null}
    </div>
  );
}

interface RestoreDialogProps {
  table: string;
  source: RestoreSource;
  earliest: number;
  ahead: number;
  onClose: () => void;
  onStarted: (name: string) => void;
}

function RestoreDialog({ table, source, earliest, ahead, onClose, onStarted }: RestoreDialogProps) {
  const viewedTime = parseIso(asOf.value);
  const name = useSignal(`${table}-restored`);
  const choice = useSignal(viewedTime ? "viewed" : "latest");
  const typed = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const working = useSignal(false);
  const time = choice.value === "typed" ? parseTypedTime(typed.value, Date.now() + ahead) : null;
  const error =
    choice.value === "typed" && typed.value && (time === null || time < earliest)
      ? time === null
        ? "Not a valid time. Try 10m or 14:02:31"
        : `The earliest restorable time is ${formatDateTime(earliest)}`
      : null;
  const restore = async () => {
    working.value = true;
    problem.value = null;
    try {
      if (source.kind === "backup")
        await call("POST /past/backups/restore", { arn: source.backup.arn, to: name.value.trim() });
      else
        await call("POST /past/restore", {
          table,
          to: name.value.trim(),
          at: choice.value === "viewed" ? asOf.value : time === null ? "" : toIso(time),
        });
      onStarted(name.value.trim());
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    working.value = false;
  };
  const choices = [
    { value: "latest", label: "Latest" },
    ...(viewedTime ? [{ value: "viewed", label: `${formatDateTime(viewedTime)}, as viewed now` }] : []),
    { value: "typed", label: "Custom time" },
  ];
  return (
    <Dialog
      title={source.kind === "backup" ? `Restore backup ${source.backup.name}` : `Restore ${table}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={
              working.value || !name.value.trim() || (choice.value === "typed" && (time === null || error !== null))
            }
            onClick={() => void restore()}
          >
            Restore
          </Button>
        </>
      }
    >
      <div class="stack">
        {source.kind === "time" ? (
          <>
            <Segmented
              label="Restore point"
              options={choices}
              value={choice.value}
              onChange={(value) => (choice.value = value)}
            />
            {choice.value === "typed" ? (
              <TextInput
                label="Time"
                hint="10m ago, 14:02:31, 2026-11-16 14:02"
                mono
                value={typed.value}
                error={error}
                onInput={(value) => (typed.value = value)}
              />
            ) : null}
            {time !== null && !error ? <p class="muted small">Restores to {formatDateTime(time)}.</p> : null}
          </>
        ) : (
          <p>
            {source.backup.table} as of {formatDateTime(parseIso(source.backup.at))}.
          </p>
        )}
        <TextInput
          label="New table name"
          mono
          value={name.value}
          onInput={(value) => (name.value = value)}
          data-autofocus
        />
        <ProblemNotice problem={problem.value} />
      </div>
    </Dialog>
  );
}

/** The progress of a restore, which also runs without this page. */
function RestoreStatus({ table, of, onClose }: { table: string; of: string; onClose: () => void }) {
  const progressSignal = useSignal<RestoreProgress | null>(null);
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    let unmounted = false;
    let timer = 0;
    const poll = async () => {
      try {
        progressSignal.value = await call("GET /past/restore", { table, of });
        problem.value = null;
      } catch (thrown) {
        problem.value = problemOf(thrown);
      }
      if (unmounted) return;
      if (progressSignal.value?.done) void refreshSession();
      else if (problem.value === null || problem.value.status === 0 || problem.value.status >= 500)
        timer = setTimeout(() => void poll(), POLL_MS);
    };
    void poll();
    return () => {
      unmounted = true;
      clearTimeout(timer);
    };
  }, [table, of]);
  if (problem.value) return <ProblemNotice problem={problem.value} />;
  const progress = progressSignal.value;
  if (!progress) return <Spinner />;
  if (progress.done) {
    return (
      <Notice
        tone="good"
        title={`${table} was restored`}
        actions={
          <span class="row tight">
            <a class="button small" href={href({ page: "data", table, params: { at: null } })}>
              {" "}
              Open table{" "}
            </a>
            <Button small kind="quiet" onClick={onClose}>
              Close
            </Button>
          </span>
        }
      >
        {formatNumber(progress.items)} items.
      </Notice>
    );
  }
  return (
    <Notice tone="info" title={`Restoring ${table}`}>
      <div class="stack tight">
        <Progress
          label={`Restoring ${table}`}
          value={progress.items}
          max={progress.of_items ?? Math.max(progress.items, 1)}
        />
        <span class="small">
          {formatNumber(progress.items)} items
          {progress.of_items === null ? "" : ` of about ${formatNumber(progress.of_items)}`}
          {progress.at ? `, as of ${formatDateTime(parseIso(progress.at))}` : ""}
        </span>
      </div>
    </Notice>
  );
}

interface BackupsProps {
  table: string;
  listed: ReturnType<typeof useQuery<"GET /past/backups">>;
  restore: (backup: TableBackup) => void;
}

function Backups({ table, listed, restore }: BackupsProps) {
  const problem = useSignal<Problem | null>(null);
  const readOnly = session.value?.read_only ?? true;
  const make = async () => {
    const now = new Date();
    try {
      await call("POST /past/backups", {
        table,
        name: `${table}-${now.toISOString().slice(0, 10)}-${formatTime(now.getTime()).replaceAll(":", "")}`,
      });
      problem.value = null;
    } catch (thrown) {
      problem.value = problemOf(thrown);
    }
    listed.retry();
  };
  const backups = listed.data?.backups ?? [];
  return (
    <Panel
      title="Backups"
      flush={backups.length > 0}
      actions={
        <Button small disabled={readOnly} onClick={() => void make()}>
          Create backup
        </Button>
      }
    >
      <ProblemNotice problem={problem.value} />
      {listed.problem ? (
        <ProblemNotice problem={listed.problem} retry={listed.retry} />
      ) : backups.length ? (
        <DataTable label="Backups" columns={["Name", "Created", numeric("Size"), "Status", hidden("Actions")]}>
          <tbody>
            {backups.map((backup) => (
              <tr key={backup.arn}>
                <td class="mono">{backup.name}</td>
                <td class="nowrap">{formatDateTime(parseIso(backup.at))}</td>
                <td class="num nowrap">{backup.bytes === null ? "–" : formatBytes(backup.bytes)}</td>
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
        </DataTable>
      ) : (
        <Empty title="No backups">A backup keeps the table as it is now until you delete the backup.</Empty>
      )}
    </Panel>
  );
}

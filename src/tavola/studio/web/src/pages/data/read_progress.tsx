// ReadProgress: how many items were read, what that consumed, and how to load the rest. An incomplete list must never look complete.
import { useState } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { currentTable, session } from "../../app/session";
import { Button, Confirm, Progress, Spinner } from "../../parts";
import { type Reading, readAll, reading, rows, statement, stopReading } from "./state";
import { formatBytes, formatCount, formatNumber } from "../../format";

const MEGABYTE = 1024 * 1024;

function progressText(shown: number, now: Reading): string {
  const more = now.ended ? "" : ", more available";
  // DynamoDB does not return how many items a statement read.
  if (statement.value !== "") return `${formatNumber(shown)} found${more}`;
  const { scanned, total, ended } = now;
  if (ended && !scanned) return "0 items read";
  const filtered = scanned > shown ? `, ${formatNumber(shown)} found` : "";
  const of = ended
    ? `of ${formatNumber(scanned)} `
    : (now.plan?.operation ?? "Scan") !== "Scan"
      ? ""
      : `of ${totalText(Math.max(total, scanned))} `;
  return `${formatNumber(scanned)} ${of}read${filtered}${more}`;
}

/** Return the item count of the table: exact from an engine in this process, else an estimate. */
function totalText(items: number): string {
  const exact = asOf.value === "" && (session.value?.where.kind === "memory" || session.value?.where.kind === "file");
  return exact ? formatNumber(items) : `about ${formatNumber(items)}`;
}

export function ReadProgress() {
  const [confirming, setConfirming] = useState(false);
  const now = reading.value;
  const shown = rows.value.length;
  const busy = now.phase === "reading" || now.phase === "planning";
  const estimate = now.plan?.estimate;
  // A read unit covers 4 KB, or 8 KB if eventually consistent.
  const unit = now.plan?.consistent ? 4096 : 8192;
  // A statement that scans reads at most the whole table.
  const isStatement = statement.value !== "";
  const most =
    isStatement && now.plan?.operation !== "Scan" && now.plan
      ? 0
      : isStatement
        ? (currentTable.value?.bytes ?? 0)
        : now.plan?.operation === "Scan" && estimate
          ? estimate.bytes_high
          : 0;
  const left = Math.max(0, most - now.units * unit);
  const started = now.requests > 0;
  return (
    <div class="data-reading row" role="status" aria-label="Read progress">
      {started ? (
        <>
          <span class="data-read">{progressText(shown, now)}</span>
          <span class="muted">
            {formatNumber(now.units)} read units in {formatCount(now.requests, "request")}
          </span>
        </>
      ) : (
        <span class="muted">
          {now.phase === "confirming" ? "Nothing read yet" : busy ? "Reading…" : "No items read"}
        </span>
      )}
      {now.loadingAll ? (
        <>
          <span class="data-progress">
            <Progress label="Items read" value={now.scanned} max={Math.max(now.total, now.scanned)} />
          </span>
          <Button small onClick={stopReading}>
            Stop
          </Button>
        </>
      ) : started && !now.ended && !busy ? (
        <Button small onClick={() => (left > MEGABYTE ? setConfirming(true) : void readAll())}>
          Load all
        </Button>
      ) : busy ? (
        <Spinner label="Reading" />
      ) : null}
      {confirming ? (
        <Confirm
          title="Load all items?"
          yes={`Read about ${formatBytes(left)}`}
          onNo={() => setConfirming(false)}
          onYes={() => {
            setConfirming(false);
            void readAll();
          }}
        >
          {isStatement
            ? `Up to ${formatBytes(left)} have not been read yet. Loading them takes up to`
            : `${formatNumber(Math.max(0, now.total - now.scanned))} items, about ${formatBytes(left)}, have not been read yet. Loading them takes about`}{" "}
          {formatNumber(Math.ceil(left / unit))} read units; you can stop at any time.
        </Confirm>
      ) : null}
    </div>
  );
}

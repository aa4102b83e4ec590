// ReadingBar: how much of how much was read, what that took, and the way on. Never an incomplete list that looks complete.
import { useState } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { currentTable, session } from "../../app/session";
import { Button, bytes, Confirm, num, Progress, Spinner } from "../../parts";
import { type Reading, readOn, reading, rows, statement, stopReading } from "./state";

const MEGABYTE = 1024 * 1024;

function readText(shown: number, now: Reading): string {
  const more = now.ended ? "" : " – there is more";
  // DynamoDB does not tell how many items a statement read for what it found.
  if (statement.value !== "") return `${num(shown)} found${more}`;
  const { scanned, total, ended } = now;
  const filtered = scanned > shown ? `, ${num(shown)} found` : "";
  const of = ended
    ? `of ${num(scanned)} `
    : (now.plan?.operation ?? "Scan") !== "Scan"
      ? ""
      : `of ${counted(Math.max(total, scanned))} `;
  return `${num(scanned)} ${of}read${filtered}${more}`;
}

/** Return how many items there are: an engine of this process counts each, and others count now and then. */
function counted(items: number): string {
  const exact = asOf.value === "" && (session.value?.where.kind === "memory" || session.value?.where.kind === "file");
  return exact ? num(items) : `about ${num(items)}`;
}

export function ReadingBar() {
  const [asking, setAsking] = useState(false);
  const now = reading.value;
  const shown = rows.value.length;
  const busy = now.phase === "reading" || now.phase === "planning";
  const way = now.plan?.estimate;
  // A unit is 4 KB, half of one where the read is not consistent.
  const unit = now.plan?.consistent ? 4096 : 8192;
  // Of a statement that is a Scan, the most that it can read is the table.
  const said = statement.value !== "";
  const most =
    said && now.plan?.operation !== "Scan" && now.plan
      ? 0
      : said
        ? (currentTable.value?.bytes ?? 0)
        : now.plan?.operation === "Scan" && way
          ? way.bytes_high
          : 0;
  const left = Math.max(0, most - now.units * unit);
  const begun = now.requests > 0;
  return (
    <div class="data-reading row" role="status" aria-label="What was read">
      {begun ? (
        <>
          <span class="data-read">{readText(shown, now)}</span>
          <span class="muted">
            {num(now.units)} read units in {num(now.requests)} {now.requests === 1 ? "request" : "requests"}
          </span>
        </>
      ) : (
        <span class="muted">
          {now.phase === "asking" ? "Nothing was read yet" : busy ? "Reading…" : "Nothing was read"}
        </span>
      )}
      {now.onward ? (
        <>
          <span class="data-progress">
            <Progress label="How much was read" value={now.scanned} max={Math.max(now.total, now.scanned)} />
          </span>
          <Button small onClick={stopReading}>
            Stop
          </Button>
        </>
      ) : begun && !now.ended && !busy ? (
        <Button small onClick={() => (left > MEGABYTE ? setAsking(true) : void readOn())}>
          Read on to the end
        </Button>
      ) : busy ? (
        <Spinner label="Reading" />
      ) : null}
      {asking ? (
        <Confirm
          title="Read on to the end?"
          yes={`Read about ${bytes(left)}`}
          onNo={() => setAsking(false)}
          onYes={() => {
            setAsking(false);
            void readOn();
          }}
        >
          {said
            ? `Up to ${bytes(left)} are not read yet; that takes up to`
            : `${num(Math.max(0, now.total - now.scanned))} items, about ${bytes(left)}, are not read yet. That takes about`}{" "}
          {num(Math.ceil(left / unit))} read units; you can stop at any time.
        </Confirm>
      ) : null}
    </div>
  );
}

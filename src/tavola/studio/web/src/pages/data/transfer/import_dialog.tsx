// ImportDialog: imports a file or pasted text: checked first, then written piece by piece; failed records can be downloaded.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, problemOf, wasAborted } from "../../../app/api";
import type {
  ImportCheck,
  ImportColumn,
  ImportedPiece,
  ImportFailure,
  Problem,
  TableSummary,
} from "../../../generated/api";
import {
  Button,
  Dialog,
  download,
  Notice,
  ProblemNotice,
  Progress,
  Segmented,
  Select,
  Spinner,
  Stat,
  Stats,
  TextArea,
  Value,
  useButtonFocus,
  TAG_OPTIONS,
} from "../../../parts";
import { reload } from "../state";
import { FORMATS } from "./export_dialog";
import { type Choice, type Format, checkUpload, type UploadProgress, type Upload, writeUpload } from "./upload";
import { formatNumber, formatCount } from "../../../format";

const MODES = [
  { value: "refuse", label: "Skip and report" },
  { value: "skip", label: "Skip" },
  { value: "replace", label: "Replace" },
];
const FAILURES_SHOWN = 30;
const FAILURES_MAX = 10_000; // while checking; while writing, every failure is kept
const TYPES = [...TAG_OPTIONS, { value: "skip", label: "skip column" }];

interface Sums {
  readonly records: number;
  readonly ready: number;
  readonly existing: number;
  readonly written: number;
  readonly skipped: number;
  readonly units: number;
  readonly failures: readonly ImportFailure[];
}
const NO_SUMS: Sums = { records: 0, ready: 0, existing: 0, written: 0, skipped: 0, units: 0, failures: [] };
type Phase = "choosing" | "checking" | "checked" | "writing" | "stopping" | "written" | "stopped";
const TOO_MANY: Problem = {
  code: "failures-many",
  title: "This does not look like a file of items",
  detail: `More than ${formatNumber(FAILURES_MAX)} of its records can't be imported, so the check stopped.`,
  remedy: "Check the first errors, choose another format, or fix the file.",
  status: 0,
};

export function ImportDialog({ table, onClose }: { table: TableSummary; onClose: () => void }) {
  const [file, setFile] = useState<Blob | null>(null);
  const [name, setName] = useState("");
  const [pasted, setPasted] = useState("");
  const [form, setForm] = useState<Format>("auto");
  const [mode, setMode] = useState<Choice["mode"]>("refuse");
  const [columns, setColumns] = useState<readonly ImportColumn[]>([]);
  const [first, setFirst] = useState<ImportCheck | null>(null);
  const [phase, setPhase] = useState<Phase>("choosing");
  const [sums, setSums] = useState<Sums>(NO_SUMS);
  const [progress, setProgress] = useState<UploadProgress>({ done: 0, size: 1 });
  const [problem, setProblem] = useState<Problem | null>(null);
  const controller = useRef<AbortController | null>(null);
  const upload = useRef<Upload<ImportedPiece> | null>(null);
  const stopping = useRef(false);
  const foot = useButtonFocus(phase);
  useEffect(
    () => () => {
      controller.current?.abort();
      stopping.current = true;
    },
    [],
  );

  const showProblem = (thrown: unknown) => {
    if (wasAborted(thrown)) return;
    setProblem(problemOf(thrown));
    setPhase("stopped");
  };
  const check = async (source: Blob, format: Format, chosen: readonly ImportColumn[]) => {
    controller.current?.abort();
    controller.current = new AbortController();
    const { signal } = controller.current;
    upload.current = null;
    setProblem(null);
    setPhase("checking");
    setSums(NO_SUMS);
    setFirst(null);
    let sum = NO_SUMS;
    let seen: ImportCheck | null = null;
    const pieces = checkUpload(source, { table: table.name, form: format, columns: chosen, mode }, signal);
    try {
      while (!pieces.ended) {
        const { answer, progress: soFar } = await pieces.next();
        if (signal.aborted) return;
        if (!seen || (!seen.rows.length && answer.rows.length)) {
          seen = answer;
          setFirst(answer);
          setForm(answer.form);
          setColumns(answer.columns);
        }
        sum = {
          ...sum,
          records: sum.records + answer.records,
          ready: sum.ready + answer.ready,
          existing: sum.existing + answer.existing,
          failures: [...sum.failures, ...answer.failures],
        };
        setSums(sum);
        setProgress(soFar);
        if (sum.failures.length > FAILURES_MAX) throw new ApiProblem(TOO_MANY);
      }
      setPhase("checked");
    } catch (thrown) {
      showProblem(thrown);
    }
  };
  /** Write the file, or continue where writing stopped. */
  const write = async () => {
    if (!file) return;
    const isNew = upload.current === null;
    const pieces = (upload.current ??= writeUpload(file, { table: table.name, form, columns, mode }));
    stopping.current = false;
    setProblem(null);
    setPhase("writing");
    let sum = isNew ? NO_SUMS : sums;
    setSums(sum);
    try {
      while (!pieces.ended && !stopping.current) {
        const { answer, progress: soFar } = await pieces.next();
        sum = {
          ...sum,
          written: sum.written + answer.written,
          skipped: sum.skipped + answer.skipped,
          units: sum.units + answer.units,
          failures: [...sum.failures, ...answer.failures],
        };
        setSums(sum);
        setProgress(soFar);
      }
      setPhase(pieces.ended ? "written" : "stopped");
    } catch (thrown) {
      showProblem(thrown);
    }
    void reload();
  };
  const choose = (source: Blob, fileName: string) => {
    setFile(source);
    setName(fileName);
    // The extension of a CSV or TSV file says more than its first line.
    const extension = /\.(csv|tsv)$/i.exec(fileName)?.[1]?.toLowerCase();
    void check(source, extension === "csv" || extension === "tsv" ? extension : "auto", []);
  };
  const stop = () => {
    if (phase === "writing" || phase === "stopping") {
      stopping.current = true;
      setPhase("stopping");
      return;
    }
    controller.current?.abort();
    setPhase("stopped");
  };
  const retype = (at: number, type: string) => {
    const next = columns.map((each, place) =>
      place === at ? { ...each, type: type as ImportColumn["type"], typed: true } : each,
    );
    setColumns(next);
    if (file) void check(file, form, next);
  };
  const writing = phase === "writing" || phase === "stopping";
  const busy = phase === "checking" || writing;
  const isStopped = phase === "stopped" && upload.current !== null;
  const isOver = phase === "written" || isStopped;
  const willWrite = mode === "replace" ? sums.ready : sums.ready - sums.existing; // existing items stay as they are
  return (
    <Dialog
      wide
      title={`Import into ${table.name}`}
      onClose={() => {
        // A running write finishes its piece first, and its result is shown.
        if (writing) stop();
        else onClose();
      }}
      footer={
        <span ref={foot} class="row">
          {busy ? (
            <Button onClick={stop} data-autofocus aria-disabled={phase === "stopping"}>
              {phase === "stopping" ? "Stopping…" : "Stop"}
            </Button>
          ) : isOver ? (
            <>
              <Button {...(isStopped ? {} : { kind: "primary" as const })} onClick={onClose}>
                Close
              </Button>
              {isStopped ? (
                <Button kind="primary" onClick={() => void write()}>
                  {" "}
                  Continue{" "}
                </Button>
              ) : null}
            </>
          ) : (
            <>
              <Button onClick={onClose}>Cancel</Button>
              {phase === "choosing" ? (
                <Button
                  kind="primary"
                  disabled={!pasted.trim()}
                  onClick={() => choose(new Blob([pasted]), "pasted text")}
                >
                  {" "}
                  Preview{" "}
                </Button>
              ) : (
                <>
                  <Button onClick={() => setPhase("choosing")}>Choose another file</Button>
                  <Button kind="primary" disabled={!willWrite || phase !== "checked"} onClick={() => void write()}>
                    Import {formatCount(willWrite, "item")}
                  </Button>
                </>
              )}
            </>
          )}
        </span>
      }
    >
      <div class="stack">
        {phase === "choosing" ? (
          <div
            class="stack data-import-drop"
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              const dropped = event.dataTransfer?.files[0];
              if (dropped) choose(dropped, dropped.name);
            }}
          >
            <label class="field">
              <span>File (CSV, TSV, JSON or DynamoDB JSON, one item per line)</span>
              <input
                type="file"
                accept=".csv,.tsv,.txt,.json,.ndjson,.jsonl,text/csv,application/json"
                data-autofocus
                onChange={(event) => {
                  const chosen = event.currentTarget.files?.[0];
                  if (chosen) choose(chosen, chosen.name);
                }}
              />
            </label>
            <TextArea
              label="Or paste text"
              mono
              rows={8}
              value={pasted}
              onInput={setPasted}
              placeholder={"id:S,n:N\na,1"}
            />
          </div>
        ) : null}
        <ProblemNotice problem={problem} />
        {phase === "checking" && !first ? <Spinner label="Reading the file" /> : null}
        {first && phase !== "choosing" ? (
          <>
            {busy || isOver ? null : (
              <div class="row wrap">
                <Select
                  label={`Format of ${name}`}
                  value={form}
                  options={Object.entries(FORMATS).map(([value, each]) => ({ value, label: each.label }))}
                  onChange={(to) => file && void check(file, to as Format, [])}
                />
                <div class="field data-choices">
                  <span class="data-import-label">Existing items</span>
                  <Segmented
                    label="Existing items"
                    value={mode}
                    options={MODES}
                    onChange={(to) => setMode(to as Choice["mode"])}
                  />
                </div>
              </div>
            )}
            {busy ? <Progress label="Import progress" value={progress.done} max={progress.size} /> : null}
            <Stats>
              {writing || isOver ? (
                <>
                  <Stat label="Written" value={formatNumber(sums.written)} />
                  <Stat label="Skipped" value={formatNumber(sums.skipped)} />
                  <Stat
                    label="Failed"
                    value={formatNumber(sums.failures.length)}
                    tone={sums.failures.length ? "warn" : undefined}
                  />
                  <Stat label="Write units" value={formatNumber(sums.units)} />
                </>
              ) : (
                <>
                  <Stat label="Records" value={formatNumber(sums.records)} />
                  <Stat label="Ready to import" value={formatNumber(sums.ready)} />
                  <Stat label="Already exist" value={formatNumber(sums.existing)} />
                  <Stat
                    label="Invalid"
                    value={formatNumber(sums.failures.length)}
                    tone={sums.failures.length ? "bad" : undefined}
                  />
                </>
              )}
            </Stats>
            {isOver ? (
              <p role="status">
                {phase === "written" ? "Done." : "Stopped. The rest of the file was not imported."}{" "}
                {formatCount(sums.written, "item")} imported.
              </p>
            ) : null}
            {first.notes.map((note) => (
              <Notice key={note} tone="warning">
                {note}
              </Notice>
            ))}
            {phase === "checking" || phase === "checked" || (phase === "stopped" && !isStopped) ? (
              <Preview first={first} columns={columns} onType={retype} />
            ) : null}
            {sums.failures.length ? (
              <Failures
                failures={sums.failures}
                table={table.name}
                form={form}
                header={columns}
                done={isOver || writing}
              />
            ) : null}
          </>
        ) : null}
      </div>
    </Dialog>
  );
}

interface PreviewProps {
  first: ImportCheck;
  columns: readonly ImportColumn[];
  onType: (at: number, type: string) => void;
}

function Preview({ first, columns, onType }: PreviewProps) {
  const names = columns.length
    ? columns.filter((each) => each.type !== "rest").map((each) => each.attribute)
    : [...new Set(first.rows.flatMap((row) => Object.keys(row.item)))].slice(0, 40);
  return (
    <div class="data-scroll data-import-preview" tabIndex={0} role="region" aria-label="First records">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Line</th>
            {columns.length
              ? columns.map((each, at) =>
                  each.type === "rest" ? null : (
                    <th key={at} scope="col">
                      <span class="mono">{each.attribute || "(no name)"}</span>
                      <Select
                        hideLabel
                        label={`Type of ${each.attribute}`}
                        value={each.type}
                        options={TYPES}
                        onChange={(to) => onType(at, to)}
                      />
                    </th>
                  ),
                )
              : names.map((each) => (
                  <th key={each} scope="col" class="mono">
                    {each}
                  </th>
                ))}
          </tr>
        </thead>
        <tbody>
          {first.rows.map((row) => (
            <tr key={row.line} class={row.exists ? "data-import-existing" : ""}>
              <td>
                {formatNumber(row.line)}
                {row.exists ? <span class="small muted"> exists</span> : null}
              </td>
              {names.map((each, at) => (
                <td key={at}>
                  <Value value={row.item[each]} type={!columns.length} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface FailuresProps {
  failures: readonly ImportFailure[];
  table: string;
  form: Format;
  header: readonly ImportColumn[];
  done: boolean;
}

function Failures({ failures, table, form, header, done }: FailuresProps) {
  const saveFailures = () => {
    const separator = form === "tsv" ? "\t" : ",";
    const headerLine = header.length
      ? `${header.map((each) => `"${each.header.replace(/"/g, '""')}"`).join(separator)}\r\n`
      : "";
    download(
      `${table}-not-written.${form === "auto" ? "txt" : FORMATS[form].extension}`,
      headerLine + failures.map((each) => each.source.replace(/\r?\n?$/, "\n")).join(""),
    );
  };
  return (
    <Notice
      tone="warning"
      title={`${formatCount(failures.length, "record")} ${done ? "could not be written" : "cannot be written"}`}
      actions={
        <Button small onClick={saveFailures}>
          Download failed records
        </Button>
      }
    >
      <ul class="data-import-failures">
        {failures.slice(0, FAILURES_SHOWN).map((each, at) => (
          <li key={at}>
            <strong>Line {formatNumber(each.line)}:</strong> {each.reason}
          </li>
        ))}
      </ul>
      {failures.length > FAILURES_SHOWN ? <p>… and {formatNumber(failures.length - FAILURES_SHOWN)} more.</p> : null}
    </Notice>
  );
}

// ImportDialog: a file or pasted text into a table: looked at first, then written piece by piece; what fails is kept.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, problemOf, wasAborted } from "../../../app/api";
import type {
  ImportCheck,
  ImportColumn,
  ImportResult,
  ImportFailure,
  Problem,
  TableSummary,
} from "../../../generated/api";
import {
  Button,
  Dialog,
  download,
  Notice,
  num,
  ProblemNotice,
  Progress,
  Segmented,
  Select,
  Spinner,
  Stat,
  Stats,
  TAG_NAMES,
  TAGS,
  TextArea,
  Value,
} from "../../../parts";
import { reload } from "../state";
import { FORMS } from "./export_dialog";
import { useKeptFocus } from "./kept_focus";
import { type Choice, type Form, loading, looking, type Reach, type Sending } from "./pieces";

const MODES = [
  { value: "refuse", label: "Leave and report" },
  { value: "skip", label: "Skip silently" },
  { value: "replace", label: "Replace" },
];
const FAILURES_SHOWN = 30;
const FAILURES_MAX = 10_000; // of a file that is only looked at; of one that is written each is kept
const TYPES = [
  ...TAGS.map((tag) => ({ value: tag as string, label: `${tag} · ${TAG_NAMES[tag]}` })),
  { value: "skip", label: "leave it out" },
];

interface Sums {
  readonly records: number;
  readonly ready: number;
  readonly existing: number;
  readonly written: number;
  readonly skipped: number;
  readonly units: number;
  readonly failures: readonly ImportFailure[];
}
const NONE: Sums = { records: 0, ready: 0, existing: 0, written: 0, skipped: 0, units: 0, failures: [] };
type Phase = "choosing" | "checking" | "checked" | "writing" | "stopping" | "written" | "stopped";
const TOO_MANY: Problem = {
  code: "failures-many",
  title: "This does not seem to be a file of items",
  detail: `More than ${num(FAILURES_MAX)} of its records cannot be read or written, so it was looked at no further.`,
  remedy: "Look at the first of them, choose another form, or mend the file.",
  status: 0,
};

export function ImportDialog({ table, onClose }: { table: TableSummary; onClose: () => void }) {
  const [file, setFile] = useState<Blob | null>(null);
  const [name, setName] = useState("");
  const [pasted, setPasted] = useState("");
  const [form, setForm] = useState<Form>("auto");
  const [mode, setMode] = useState<Choice["mode"]>("refuse");
  const [columns, setColumns] = useState<readonly ImportColumn[]>([]);
  const [first, setFirst] = useState<ImportCheck | null>(null);
  const [phase, setPhase] = useState<Phase>("choosing");
  const [sums, setSums] = useState<Sums>(NONE);
  const [reach, setReach] = useState<Reach>({ done: 0, size: 1 });
  const [problem, setProblem] = useState<Problem | null>(null);
  const giving = useRef<AbortController | null>(null);
  const sending = useRef<Sending<ImportResult> | null>(null);
  const stopping = useRef(false);
  const foot = useKeptFocus(phase);
  useEffect(
    () => () => {
      giving.current?.abort();
      stopping.current = true;
    },
    [],
  );

  const failed = (thrown: unknown) => {
    if (wasAborted(thrown)) return;
    setProblem(problemOf(thrown));
    setPhase("stopped");
  };
  const look = async (source: Blob, wanted: Form, chosen: readonly ImportColumn[]) => {
    giving.current?.abort();
    giving.current = new AbortController();
    const { signal } = giving.current;
    sending.current = null;
    setProblem(null);
    setPhase("checking");
    setSums(NONE);
    setFirst(null);
    let sum = NONE;
    let seen: ImportCheck | null = null;
    const pieces = looking(source, { table: table.name, form: wanted, columns: chosen, mode }, signal);
    try {
      while (!pieces.ended) {
        const { answer, reach: far } = await pieces.next();
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
        setReach(far);
        if (sum.failures.length > FAILURES_MAX) throw new ApiProblem(TOO_MANY);
      }
      setPhase("checked");
    } catch (thrown) {
      failed(thrown);
    }
  };
  /** Write the file, or go on where the writing of it stopped. */
  const write = async () => {
    if (!file) return;
    const anew = sending.current === null;
    const pieces = (sending.current ??= loading(file, { table: table.name, form, columns, mode }));
    stopping.current = false;
    setProblem(null);
    setPhase("writing");
    let sum = anew ? NONE : sums;
    setSums(sum);
    try {
      while (!pieces.ended && !stopping.current) {
        const { answer, reach: far } = await pieces.next();
        sum = {
          ...sum,
          written: sum.written + answer.written,
          skipped: sum.skipped + answer.skipped,
          units: sum.units + answer.units,
          failures: [...sum.failures, ...answer.failures],
        };
        setSums(sum);
        setReach(far);
      }
      setPhase(pieces.ended ? "written" : "stopped");
    } catch (thrown) {
      failed(thrown);
    }
    void reload();
  };
  const choose = (source: Blob, told: string) => {
    setFile(source);
    setName(told);
    // The ending of a table's name says more than its first line can.
    const ending = /\.(csv|tsv)$/i.exec(told)?.[1]?.toLowerCase();
    void look(source, ending === "csv" || ending === "tsv" ? ending : "auto", []);
  };
  const stop = () => {
    if (phase === "writing" || phase === "stopping") {
      stopping.current = true;
      setPhase("stopping");
      return;
    }
    giving.current?.abort();
    setPhase("stopped");
  };
  const retype = (at: number, type: string) => {
    const next = columns.map((each, place) =>
      place === at ? { ...each, type: type as ImportColumn["type"], typed: true } : each,
    );
    setColumns(next);
    if (file) void look(file, form, next);
  };
  const writing = phase === "writing" || phase === "stopping";
  const busy = phase === "checking" || writing;
  const halted = phase === "stopped" && sending.current !== null;
  const over = phase === "written" || halted;
  const willWrite = mode === "replace" ? sums.ready : sums.ready - sums.existing; // the others are left as they stand
  return (
    <Dialog
      wide
      title={`Import into ${table.name}`}
      onClose={() => {
        // What is being written is told before the dialog goes.
        if (writing) stop();
        else onClose();
      }}
      footer={
        <span ref={foot} class="row">
          {busy ? (
            <Button onClick={stop} data-autofocus aria-disabled={phase === "stopping"}>
              {phase === "stopping" ? "Stopping…" : "Stop"}
            </Button>
          ) : over ? (
            <>
              <Button {...(halted ? {} : { kind: "primary" as const })} onClick={onClose}>
                Close
              </Button>
              {halted ? (
                <Button kind="primary" onClick={() => void write()}>
                  Go on
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
                  onClick={() => choose(new Blob([pasted]), "what was pasted")}
                >
                  Look at it
                </Button>
              ) : (
                <>
                  <Button onClick={() => setPhase("choosing")}>Another file</Button>
                  <Button kind="primary" disabled={!willWrite || phase !== "checked"} onClick={() => void write()}>
                    Import {willWrite === 1 ? "1 item" : `${num(willWrite)} items`}
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
              <span>A file: CSV, TSV, JSON, or DynamoDB JSON a line</span>
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
              label="Or paste it"
              mono
              rows={8}
              value={pasted}
              onInput={setPasted}
              placeholder={"id:S,n:N\na,1"}
            />
          </div>
        ) : null}
        {problem ? <ProblemNotice problem={problem} /> : null}
        {phase === "checking" && !first ? <Spinner label="Reading the file" /> : null}
        {first && phase !== "choosing" ? (
          <>
            {busy || over ? null : (
              <div class="row wrap">
                <Select
                  label={`Form of ${name}`}
                  value={form}
                  options={Object.entries(FORMS).map(([value, each]) => ({ value, label: each.label }))}
                  onChange={(to) => file && void look(file, to as Form, [])}
                />
                <div class="field data-choices">
                  <span class="data-import-label">Items that are there already</span>
                  <Segmented
                    label="Items that are there already"
                    value={mode}
                    options={MODES}
                    onChange={(to) => setMode(to as Choice["mode"])}
                  />
                </div>
              </div>
            )}
            {busy ? <Progress label="Read of the file" value={reach.done} max={reach.size} /> : null}
            <Stats>
              {writing || over ? (
                <>
                  <Stat label="written" value={num(sums.written)} />
                  <Stat label="skipped" value={num(sums.skipped)} />
                  <Stat
                    label="not written"
                    value={num(sums.failures.length)}
                    {...(sums.failures.length ? { tone: "warn" as const } : {})}
                  />
                  <Stat label="write units" value={num(sums.units)} />
                </>
              ) : (
                <>
                  <Stat label="records" value={num(sums.records)} />
                  <Stat label="can be written" value={num(sums.ready)} />
                  <Stat label="are there already" value={num(sums.existing)} />
                  <Stat
                    label="cannot be read or written"
                    value={num(sums.failures.length)}
                    {...(sums.failures.length ? { tone: "bad" as const } : {})}
                  />
                </>
              )}
            </Stats>
            {over ? (
              <p role="status">
                {phase === "written" ? "Done." : "Stopped: the rest of the file was not looked at."}{" "}
                {sums.written === 1 ? "1 item was written." : `${num(sums.written)} items were written.`}
              </p>
            ) : null}
            {first.notes.map((note) => (
              <Notice key={note} tone="warning">
                {note}
              </Notice>
            ))}
            {phase === "checking" || phase === "checked" || (phase === "stopped" && !halted) ? (
              <Preview first={first} columns={columns} onType={retype} />
            ) : null}
            {sums.failures.length ? (
              <Failures
                failures={sums.failures}
                table={table.name}
                form={form}
                header={columns}
                done={over || writing}
              />
            ) : null}
          </>
        ) : null}
      </div>
    </Dialog>
  );
}

function Preview({
  first,
  columns,
  onType,
}: {
  first: ImportCheck;
  columns: readonly ImportColumn[];
  onType: (at: number, type: string) => void;
}) {
  const names = columns.length
    ? columns.filter((each) => each.type !== "rest").map((each) => each.attribute)
    : [...new Set(first.rows.flatMap((row) => Object.keys(row.item)))].slice(0, 40);
  return (
    <div class="data-scroll data-import-preview" tabIndex={0} role="region" aria-label="The first records">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">line</th>
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
            <tr key={row.line} class={row.exists ? "data-import-there" : ""}>
              <td>
                {num(row.line)}
                {row.exists ? <span class="small muted"> there already</span> : null}
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

function Failures({
  failures,
  table,
  form,
  header,
  done,
}: {
  failures: readonly ImportFailure[];
  table: string;
  form: Form;
  header: readonly ImportColumn[];
  done: boolean;
}) {
  const keep = () => {
    const separator = form === "tsv" ? "\t" : ",";
    const heads = header.length
      ? `${header.map((each) => `"${each.header.replace(/"/g, '""')}"`).join(separator)}\r\n`
      : "";
    download(
      `${table}-not-written.${form === "auto" ? "txt" : FORMS[form].ending}`,
      heads + failures.map((each) => each.source.replace(/\r?\n?$/, "\n")).join(""),
    );
  };
  return (
    <Notice
      tone="warning"
      title={`${failures.length === 1 ? "1 record" : `${num(failures.length)} records`} ${done ? "could not be written" : "cannot be written"}`}
      actions={
        <Button small onClick={keep}>
          Keep them as a file
        </Button>
      }
    >
      <ul class="data-import-failures">
        {failures.slice(0, FAILURES_SHOWN).map((each, at) => (
          <li key={at}>
            <strong>Line {num(each.line)}:</strong> {each.reason}
          </li>
        ))}
      </ul>
      {failures.length > FAILURES_SHOWN ? <p>… and {num(failures.length - FAILURES_SHOWN)} more.</p> : null}
    </Notice>
  );
}

// ExportDialog: which items go into a file, and in which form; what a form does to values is said before.
import { useState } from "preact/hooks";
import { ApiProblem, apiUrl, ask, problemOf } from "../../../app/api";
import type { ItemQuery, ExportTableRequest, ItemSelection, Problem, TableSummary } from "../../../generated/api";
import { Button, Dialog, download, num, ProblemNotice, Segmented, Spinner } from "../../../parts";

type Form = ExportTableRequest["form"];
interface About {
  readonly label: string;
  readonly ending: string;
  readonly told: string;
}
export const FORMS: Readonly<Record<Form, About>> = {
  csv: {
    label: "CSV",
    ending: "csv",
    told: 'A column for each attribute, headed name:TYPE. Sets are JSON lists, lists and maps DynamoDB JSON, bytes base64. An empty cell is no attribute; an empty text is "". Imported here again, the table is the same; a spreadsheet may round long numbers, and runs a text that begins with =, +, - or @ as a formula: import such columns there as text.',
  },
  tsv: { label: "TSV", ending: "tsv", told: "As CSV, with tabs between the cells." },
  json: {
    label: "JSON",
    ending: "json",
    told: 'Plain JSON that is read back equal: numbers have all their digits (a program that reads them as floats keeps about 15), bytes and sets stand as {"$binary": …}, {"$strings": …}, {"$numbers": …}, {"$binaries": …}.',
  },
  "dynamodb-json": {
    label: "DynamoDB JSON",
    ending: "ndjson",
    told: "One item a line, every value with its type. Nothing can be lost.",
  },
  "dynamodb-export": {
    label: "AWS export",
    ending: "json",
    told: 'One {"Item": …} a line, as AWS exports a table to S3 and imports it. Nothing can be lost.',
  },
};

const CUT: Problem = {
  code: "export-cut",
  title: "The file was cut off",
  detail: "The server could not read the items to their end.",
  remedy: "Look whether the table answers, and export again. Nothing was changed.",
  status: 0,
};

interface ExportDialogProps {
  table: TableSummary;
  selection?: ItemSelection;
  question?: ItemQuery | null;
  onClose: () => void;
}

export function ExportDialog({ table, selection, question, onClose }: ExportDialogProps) {
  const asked = question && ((question.conditions ?? []).length > 0 || question.index) ? question : null;
  const [form, setForm] = useState<Form>("csv");
  const [what, setWhat] = useState(selection ? "selection" : asked ? "found" : "all");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const parameters: ExportTableRequest = {
    table: table.name,
    form,
    question: what === "found" && asked ? JSON.stringify(asked) : "",
    as_of: question?.as_of ?? selection?.as_of ?? null,
  };
  const name = `${table.name}.${FORMS[form].ending}`;
  const trying = async (act: () => Promise<void>) => {
    setBusy(true);
    setProblem(null);
    try {
      await act();
      onClose();
    } catch (thrown) {
      setProblem(problemOf(thrown));
    }
    setBusy(false);
  };
  const save = () =>
    trying(async () => {
      const answer = await ask("POST /export", { selection: selection ?? { table: table.name }, form });
      download(name, await answer.blob().catch(() => Promise.reject(new ApiProblem(CUT))));
    });
  // The browser writes a large file by itself, and shows nobody why it cannot: so it is asked here first whether it begins.
  const hand = () =>
    trying(async () => {
      const giving = new AbortController();
      await ask("GET /export", parameters, { signal: giving.signal });
      giving.abort();
      const link = document.createElement("a");
      link.href = apiUrl("GET /export", parameters);
      link.download = name;
      link.click();
    });
  const count = selection?.keys?.length ?? 0;
  return (
    <Dialog
      title={`Export from ${table.name}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {selection ? (
            <Button kind="primary" disabled={busy} onClick={() => void save()}>
              {busy ? <Spinner label="Exporting" /> : `Export ${count === 1 ? "1 item" : `${num(count)} items`}`}
            </Button>
          ) : (
            <Button kind="primary" disabled={busy} onClick={() => void hand()}>
              {busy ? <Spinner label="Exporting" /> : "Export"}
            </Button>
          )}
        </>
      }
    >
      <div class="stack">
        {selection ? null : (
          <div class="row data-choices">
            <Segmented
              label="Which items"
              value={what}
              onChange={setWhat}
              options={[
                { value: "all", label: `The whole table (about ${num(table.items)})` },
                ...(asked ? [{ value: "found", label: "What the question finds" }] : []),
              ]}
            />
          </div>
        )}
        <div class="row data-choices">
          <Segmented
            label="Form"
            value={form}
            onChange={(to) => setForm(to as Form)}
            options={Object.entries(FORMS).map(([value, each]) => ({ value, label: each.label }))}
          />
        </div>
        <p>{FORMS[form].told}</p>
        {problem ? <ProblemNotice problem={problem} /> : null}
      </div>
    </Dialog>
  );
}

// Importing: a design from a file of another tool, dropped or pasted, or from a table that stands.
import { useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { session } from "../../app/session";
import type { ImportedDesign, Problem } from "../../generated/api";
import { Button, Dialog, ProblemNotice, Select, Spinner, TextArea } from "../../parts";
import { bring } from "./state";

const BYTES_MAX = 8 * 1024 * 1024;

export function Importing({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [table, setTable] = useState("");
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const tables = (session.value?.tables ?? []).filter((each) => each.status !== "MISSING");
  const take = async (title: string, asks: () => Promise<ImportedDesign>) => {
    setBusy(true);
    setProblem(null);
    try {
      const found = await asks();
      bring({ title: `${title} (${found.format})`, document: found.document, notes: found.report });
      onClose();
    } catch (thrown) {
      setProblem(problemOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > BYTES_MAX) {
      setProblem({
        code: "file-too-large",
        title: "The file is too large",
        detail: `${file.name} has more than 8 MB, which no design has.`,
        remedy: "Choose the file of the design.",
        status: 0,
      });
      return;
    }
    setName(file.name);
    setText(await file.text());
    setProblem(null);
  };
  return (
    <Dialog
      title="Import a design"
      onClose={onClose}
      wide
      footer={
        <>
          {busy ? <Spinner label="Reading" /> : null}
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={busy || !text.trim()}
            onClick={() => void take(name || "pasted text", () => call("POST /design/import", { text, name }))}
          >
            Look at the design
          </Button>
        </>
      }
    >
      <div class="stack">
        <p class="muted">
          CloudFormation and SAM, Terraform, NoSQL Workbench models, OneTable schemas, describe-table's output, awslabs'
          schema.json, or a design document. It is read and shown, and kept nowhere.
        </p>
        {problem ? <ProblemNotice problem={problem} /> : null}
        <div
          class={`design-drop ${over ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={(event) => {
            event.preventDefault();
            setOver(false);
            void read(event.dataTransfer?.files[0]);
          }}
        >
          <label class="button">
            Choose a file
            <input
              type="file"
              class="hidden-text"
              accept=".json,.yaml,.yml,.template,.tf,.hcl"
              onChange={(event) => void read(event.currentTarget.files?.[0])}
            />
          </label>
          <span class="muted">{name || "or drop it here"}</span>
        </div>
        <TextArea label="Or paste its text" mono rows={10} value={text} onInput={setText} />
        {tables.length ? (
          <div class="row design-filters">
            <Select
              label="Or take a table that stands"
              value={table}
              onChange={setTable}
              options={[
                { value: "", label: "Choose a table" },
                ...tables.map((each) => ({ value: each.name, label: each.name })),
              ]}
            />
            <Button
              disabled={busy || !table}
              onClick={() => void take(table, () => call("GET /design/live", { table }))}
            >
              Describe it
            </Button>
          </div>
        ) : null}
      </div>
    </Dialog>
  );
}

/** A button that shows what can be told of a table that no design has. */
export function DescribeButton({ table }: { table: string }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const describe = async () => {
    try {
      const found = await call("GET /design/live", { table });
      bring({ title: `${table} (${found.format})`, document: found.document, notes: found.report });
    } catch (thrown) {
      setProblem(problemOf(thrown));
    }
  };
  return problem ? (
    <ProblemNotice problem={problem} again={() => void describe()} />
  ) : (
    <Button onClick={() => void describe()}>Show what stands</Button>
  );
}

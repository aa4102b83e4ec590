// ImportDialog: imports a design from a file of another tool, pasted text or a deployed table.
import { useState } from "preact/hooks";
import { call } from "../../app/api";
import { session } from "../../app/session";
import type { ImportedDesign } from "../../generated/api";
import { Button, Dialog, ProblemNotice, Select, Spinner, TextArea, plainOptions } from "../../parts";
import { openDesign } from "./state";
import { useAction } from "../../app/queries";

const BYTES_MAX = 8 * 1024 * 1024;

export function ImportDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [table, setTable] = useState("");
  const action = useAction();
  const [dragging, setDragging] = useState(false);
  const tables = (session.value?.tables ?? []).filter((each) => each.status !== "MISSING");
  const open = (title: string, load: () => Promise<ImportedDesign>) =>
    action.run(async () => {
      const design = await load();
      openDesign({ title: `${title} (${design.format})`, document: design.document, notes: design.report });
      onClose();
    });
  const read = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > BYTES_MAX) {
      action.fail({
        code: "file-too-large",
        title: "The file is too large",
        detail: `${file.name} is larger than 8 MB.`,
        remedy: "Choose a design file.",
        status: 0,
      });
      return;
    }
    setName(file.name);
    setText(await file.text());
    action.fail(null);
  };
  return (
    <Dialog
      title="Import a design"
      onClose={onClose}
      wide
      footer={
        <>
          {action.busy ? <Spinner label="Reading" /> : null}
          <Button onClick={onClose}>Cancel</Button>
          <Button
            kind="primary"
            disabled={action.busy || !text.trim()}
            onClick={() => void open(name || "pasted text", () => call("POST /design/import", { text, name }))}
          >
            Open design
          </Button>
        </>
      }
    >
      <div class="stack">
        <p class="muted">
          CloudFormation and SAM, Terraform, NoSQL Workbench models, OneTable schemas, describe-table output, awslabs
          schema.json, or a design document. The design is only shown here; it is not stored.
        </p>
        <ProblemNotice problem={action.problem} />
        <div
          class={`design-drop ${dragging ? "over" : ""}`}
          onDragOver={(event) => {
            event.preventDefault();
            setDragging(true);
          }}
          onDragLeave={() => setDragging(false)}
          onDrop={(event) => {
            event.preventDefault();
            setDragging(false);
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
        <TextArea label="Or paste text" mono rows={10} value={text} onInput={setText} />
        {tables.length ? (
          <div class="row design-filters">
            <Select
              label="Or use a deployed table"
              value={table}
              onChange={setTable}
              options={[{ value: "", label: "Choose a table" }, ...plainOptions(tables.map((each) => each.name))]}
            />
            <Button
              disabled={action.busy || !table}
              onClick={() => void open(table, () => call("GET /design/live", { table }))}
            >
              Open table
            </Button>
          </div>
        ) : null}
      </div>
    </Dialog>
  );
}

/** A button that shows the deployed settings of a table that no design describes. */
export function DescribeButton({ table }: { table: string }) {
  const action = useAction();
  const describe = () =>
    action.run(async () => {
      const design = await call("GET /design/live", { table });
      openDesign({ title: `${table} (${design.format})`, document: design.document, notes: design.report });
    });
  return action.problem ? (
    <ProblemNotice problem={action.problem} retry={() => void describe()} />
  ) : (
    <Button onClick={() => void describe()}>Show the live table</Button>
  );
}

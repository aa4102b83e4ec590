// ExportDialog: exports items to a file, and explains each format.
import { useState } from "preact/hooks";
import { ApiProblem, apiUrl, send } from "../../../app/api";
import { useAction } from "../../../app/queries";
import type { ItemQuery, ExportTableRequest, ItemSelection, Problem, TableSummary } from "../../../generated/api";
import { Button, Dialog, download, ProblemNotice, Segmented, Spinner } from "../../../parts";
import { formatCount, formatNumber } from "../../../format";

type Format = ExportTableRequest["form"];
interface FormatInfo {
  readonly label: string;
  readonly extension: string;
  readonly description: string;
}
export const FORMATS: Readonly<Record<Format, FormatInfo>> = {
  csv: {
    label: "CSV",
    extension: "csv",
    description:
      'One column per attribute, with the header name:TYPE. Sets are JSON lists, lists and maps are DynamoDB JSON, binary is base64. An empty cell means no attribute; an empty string is "". Importing the file again gives the same items. Spreadsheets may round long numbers and run text that begins with =, +, - or @ as a formula; import such columns as text.',
  },
  tsv: { label: "TSV", extension: "tsv", description: "Like CSV, with tabs between the cells." },
  json: {
    label: "JSON",
    extension: "json",
    description:
      'Plain JSON that imports without loss. Numbers keep all digits (programs that read floats keep about 15). Binary and sets are written as {"$binary": …}, {"$strings": …}, {"$numbers": …}, {"$binaries": …}.',
  },
  "dynamodb-json": {
    label: "DynamoDB JSON",
    extension: "ndjson",
    description: "One item per line, every value with its type. Lossless.",
  },
  "dynamodb-export": {
    label: "AWS export",
    extension: "json",
    description: 'One {"Item": …} per line, the format of DynamoDB export to S3 and import from S3. Lossless.',
  },
};

const INCOMPLETE: Problem = {
  code: "export-cut",
  title: "Export incomplete",
  detail: "The server could not read all items.",
  remedy: "Check that the table is available and export again. No data was changed.",
  status: 0,
};

interface ExportDialogProps {
  table: TableSummary;
  selection?: ItemSelection;
  query?: ItemQuery | null;
  onClose: () => void;
}

export function ExportDialog({ table, selection, query, onClose }: ExportDialogProps) {
  const narrowed = query && ((query.conditions ?? []).length > 0 || query.index) ? query : null;
  const [form, setForm] = useState<Format>("csv");
  const [what, setWhat] = useState(selection ? "selection" : narrowed ? "found" : "all");
  const action = useAction();
  const parameters: ExportTableRequest = {
    table: table.name,
    form,
    question: what === "found" && narrowed ? JSON.stringify(narrowed) : "",
    as_of: query?.as_of ?? selection?.as_of ?? null,
  };
  const name = `${table.name}.${FORMATS[form].extension}`;
  const exportFile = async (act: () => Promise<void>) => {
    if (await action.run(act)) onClose();
  };
  const save = () =>
    exportFile(async () => {
      const response = await send("POST /export", { selection: selection ?? { table: table.name }, form });
      download(name, await response.blob().catch(() => Promise.reject(new ApiProblem(INCOMPLETE))));
    });
  // The browser downloads a large file by itself and shows no reason if that fails, so a first request checks that it starts.
  const downloadDirectly = () =>
    exportFile(async () => {
      const controller = new AbortController();
      await send("GET /export", parameters, { signal: controller.signal });
      controller.abort();
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
            <Button kind="primary" disabled={action.busy} onClick={() => void save()}>
              {action.busy ? <Spinner label="Exporting" /> : `Export ${formatCount(count, "item")}`}
            </Button>
          ) : (
            <Button kind="primary" disabled={action.busy} onClick={() => void downloadDirectly()}>
              {action.busy ? <Spinner label="Exporting" /> : "Export"}
            </Button>
          )}
        </>
      }
    >
      <div class="stack">
        {selection ? null : (
          <div class="row data-choices">
            <Segmented
              label="Items"
              value={what}
              onChange={setWhat}
              options={[
                { value: "all", label: `Whole table (about ${formatNumber(table.items)} items)` },
                ...(narrowed ? [{ value: "found", label: "Matching items" }] : []),
              ]}
            />
          </div>
        )}
        <div class="row data-choices">
          <Segmented
            label="Format"
            value={form}
            onChange={(to) => setForm(to as Format)}
            options={Object.entries(FORMATS).map(([value, each]) => ({ value, label: each.label }))}
          />
        </div>
        <p>{FORMATS[form].description}</p>
        <ProblemNotice problem={action.problem} />
      </div>
    </Dialog>
  );
}

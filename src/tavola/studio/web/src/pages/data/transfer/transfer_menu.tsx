// TransferMenu: items into a table and out of it, and an edit of everything that the question finds.
import { useState } from "preact/hooks";
import { useCommands } from "../../../app/commands";
import { currentTable, mayChange } from "../../../app/session";
import { Menu } from "../../../parts";
import { BulkDialog } from "../bulk/bulk_dialog";
import { question, statement } from "../state";
import { ExportDialog } from "./export_dialog";
import { ImportDialog } from "./import_dialog";
import "./transfer.css";

type Doing = "import" | "export" | "edit" | null;

export function TransferMenu() {
  const table = currentTable.value;
  const [doing, setDoing] = useState<Doing>(null);
  const editable = mayChange.value;
  const asked = statement.value ? null : question.value;
  useCommands(
    table && table.status !== "MISSING"
      ? [
          {
            id: "export-items",
            title: "Export items to a file",
            keys: "x",
            group: "Data",
            run: () => setDoing("export"),
          },
          ...(editable
            ? [
                {
                  id: "import-items",
                  title: "Import items from a file",
                  keys: "m",
                  group: "Data",
                  run: () => setDoing("import" as const),
                },
                {
                  id: "edit-found",
                  title: "Edit everything that the question finds",
                  group: "Data",
                  run: () => setDoing("edit" as const),
                },
              ]
            : []),
        ]
      : [],
  );
  if (!table) return null;
  const close = () => setDoing(null);
  return (
    <>
      <Menu
        label="Import, export, edit all"
        small
        icon={<span aria-hidden="true">⇅</span>}
        items={[
          { label: "Import…", beside: "M", disabled: !editable, run: () => setDoing("import") },
          { label: "Export…", beside: "X", run: () => setDoing("export") },
          null,
          { label: "Edit all that is found…", disabled: !editable || !asked, run: () => setDoing("edit") },
        ]}
      />
      {doing === "import" ? <ImportDialog table={table} onClose={close} /> : null}
      {doing === "export" ? <ExportDialog table={table} question={asked} onClose={close} /> : null}
      {doing === "edit" && asked ? (
        <BulkDialog table={table} selection={{ table: table.name, question: asked }} first="set" onClose={close} />
      ) : null}
    </>
  );
}

// TransferMenu: import, export, and editing all matching items.
import { useState } from "preact/hooks";
import { useCommands } from "../../../app/commands";
import { currentTable, canEdit } from "../../../app/session";
import { Menu } from "../../../parts";
import { BulkDialog } from "../bulk/bulk_dialog";
import { currentQuery, statement } from "../state";
import { ExportDialog } from "./export_dialog";
import { ImportDialog } from "./import_dialog";
import "./transfer.css";

type OpenDialog = "import" | "export" | "edit" | null;

export function TransferMenu() {
  const table = currentTable.value;
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const editable = canEdit.value;
  const query = statement.value ? null : currentQuery.value;
  useCommands(
    table && table.status !== "MISSING"
      ? [
          {
            id: "export-items",
            title: "Export items to a file",
            keys: "x",
            group: "Data",
            run: () => setDialog("export"),
          },
          ...(editable
            ? [
                {
                  id: "import-items",
                  title: "Import items from a file",
                  keys: "m",
                  group: "Data",
                  run: () => setDialog("import" as const),
                },
                {
                  id: "edit-found",
                  title: "Edit all matching items",
                  group: "Data",
                  run: () => setDialog("edit" as const),
                },
              ]
            : []),
        ]
      : [],
  );
  if (!table) return null;
  const close = () => setDialog(null);
  return (
    <>
      <Menu
        label="Import, export, edit all"
        small
        icon={<span aria-hidden="true">⇅</span>}
        items={[
          { label: "Import…", beside: "M", disabled: !editable, run: () => setDialog("import") },
          { label: "Export…", beside: "X", run: () => setDialog("export") },
          null,
          { label: "Edit all matching items…", disabled: !editable || !query, run: () => setDialog("edit") },
        ]}
      />
      {dialog === "import" ? <ImportDialog table={table} onClose={close} /> : null}
      {dialog === "export" ? <ExportDialog table={table} query={query} onClose={close} /> : null}
      {dialog === "edit" && query ? (
        <BulkDialog
          table={table}
          selection={{ table: table.name, question: query }}
          initialKind="set"
          onClose={close}
        />
      ) : null}
    </>
  );
}

// BulkBar: the actions on the selected items.
import { useState } from "preact/hooks";
import { asOf } from "../../../app/as_of";
import { useCommands } from "../../../app/commands";
import { currentTable, canEdit } from "../../../app/session";
import type { BulkAction, ItemSelection } from "../../../generated/api";
import { Button } from "../../../parts";
import { clearSelection, selection } from "../state";
import { ExportDialog } from "../transfer/export_dialog";
import "./bulk.css";
import { BulkDialog } from "./bulk_dialog";
import { formatNumber } from "../../../format";

export function BulkBar() {
  const table = currentTable.value;
  const chosen = selection.value;
  const [action, setAction] = useState<BulkAction["kind"] | "export" | null>(null);
  const [frozen, setFrozen] = useState<ItemSelection | null>(null);
  const open = (kind: BulkAction["kind"] | "export") => {
    if (!table) return;
    // The dialog keeps the selection of the moment it was opened, whatever the grid loads meanwhile.
    setFrozen({ table: table.name, keys: [...selection.value.values()], as_of: asOf.value || null });
    setAction(kind);
  };
  const editable = canEdit.value;
  useCommands(
    chosen.size
      ? [
          ...(editable
            ? [
                {
                  id: "bulk-set",
                  title: "Set an attribute on the selected items",
                  keys: "b",
                  group: "Data",
                  run: () => open("set"),
                },
                { id: "bulk-delete", title: "Delete the selected items", group: "Data", run: () => open("delete") },
              ]
            : []),
          { id: "bulk-export", title: "Export the selected items", group: "Data", run: () => open("export") },
        ]
      : [],
  );
  if (!table) return null;
  return (
    <>
      {chosen.size ? (
        <div class="data-bulk-bar" role="region" aria-label="Selected items">
          <strong role="status">{formatNumber(chosen.size)} selected</strong>
          {editable ? (
            <>
              <Button small onClick={() => open("set")}>
                Set attribute…
              </Button>
              <Button small onClick={() => open("remove")}>
                Remove attribute…
              </Button>
              <Button small kind="danger" onClick={() => open("delete")}>
                Delete…
              </Button>
            </>
          ) : null}
          <Button small onClick={() => open("export")}>
            Export…
          </Button>
          <Button small kind="quiet" onClick={clearSelection}>
            {" "}
            Clear selection{" "}
          </Button>
        </div>
      ) : null}
      {action === "export" && frozen ? (
        <ExportDialog table={table} selection={frozen} onClose={() => setAction(null)} />
      ) : null}
      {action && action !== "export" && frozen ? (
        <BulkDialog table={table} selection={frozen} initialKind={action} onClose={() => setAction(null)} />
      ) : null}
    </>
  );
}

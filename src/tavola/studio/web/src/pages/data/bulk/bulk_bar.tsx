// BulkBar: what can be done with the rows that are selected.
import { useState } from "preact/hooks";
import { asOf } from "../../../app/as_of";
import { useCommands } from "../../../app/commands";
import { currentTable, mayChange } from "../../../app/session";
import type { BulkAction, ItemSelection } from "../../../generated/api";
import { Button, num } from "../../../parts";
import { clearSelection, selection } from "../state";
import { ExportDialog } from "../transfer/export_dialog";
import "./bulk.css";
import { BulkDialog } from "./bulk_dialog";

export function BulkBar() {
  const table = currentTable.value;
  const chosen = selection.value;
  const [doing, setDoing] = useState<BulkAction["kind"] | "export" | null>(null);
  const [frozen, setFrozen] = useState<ItemSelection | null>(null);
  const begin = (kind: BulkAction["kind"] | "export") => {
    if (!table) return;
    // The dialog is about what was selected when it was opened, whatever the grid reads meanwhile.
    setFrozen({ table: table.name, keys: [...selection.value.values()], as_of: asOf.value || null });
    setDoing(kind);
  };
  const editable = mayChange.value;
  useCommands(
    chosen.size
      ? [
          ...(editable
            ? [
                {
                  id: "bulk-set",
                  title: "Set an attribute of the selected items",
                  keys: "b",
                  group: "Data",
                  run: () => begin("set"),
                },
                { id: "bulk-delete", title: "Delete the selected items", group: "Data", run: () => begin("delete") },
              ]
            : []),
          { id: "bulk-export", title: "Export the selected items", group: "Data", run: () => begin("export") },
        ]
      : [],
  );
  if (!table) return null;
  return (
    <>
      {chosen.size ? (
        <div class="data-bulk-bar" role="region" aria-label="Selected items">
          <strong role="status">{num(chosen.size)} selected</strong>
          {editable ? (
            <>
              <Button small onClick={() => begin("set")}>
                Set an attribute…
              </Button>
              <Button small onClick={() => begin("remove")}>
                Remove an attribute…
              </Button>
              <Button small kind="danger" onClick={() => begin("delete")}>
                Delete…
              </Button>
            </>
          ) : null}
          <Button small onClick={() => begin("export")}>
            Export…
          </Button>
          <Button small kind="quiet" onClick={clearSelection}>
            Clear
          </Button>
        </div>
      ) : null}
      {doing === "export" && frozen ? (
        <ExportDialog table={table} selection={frozen} onClose={() => setDoing(null)} />
      ) : null}
      {doing && doing !== "export" && frozen ? (
        <BulkDialog table={table} selection={frozen} first={doing} onClose={() => setDoing(null)} />
      ) : null}
    </>
  );
}

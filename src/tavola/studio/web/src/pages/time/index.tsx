// History: the live changes of a table, its data at a point in time, the history of items, and restore.
import { useCommands } from "../../app/commands";
import { useParam } from "../../app/router";
import { currentTable } from "../../app/session";
import { Empty, Tabs } from "../../parts";
import type { TableSummary } from "../../generated/api";
import { History } from "./history";
import { Live, useFeed } from "./live";
import { PointInTime } from "./point_in_time";
import { Restore } from "./restore";
import "./page.css";

const TABS = [
  { value: "live", label: "Live changes" },
  { value: "past", label: "Point in time" },
  { value: "item", label: "Item history" },
  { value: "restore", label: "Restore" },
];

export default function TimePage() {
  const table = currentTable.value;
  if (!table || table.status === "MISSING") {
    return (
      <div class="page">
        <Empty whole title={table ? `${table.name} does not exist yet` : "No table selected"}>
          {table ? "The design declares it, but it has not been created." : "Select a table on the left."}
        </Empty>
      </div>
    );
  }
  return <TableHistory key={table.name} table={table} />;
}

function TableHistory({ table }: { table: TableSummary }) {
  const [tab, setTab] = useParam("tab", "live");
  const feed = useFeed(table.name);
  useCommands(
    TABS.map((each) => ({
      id: `time-${each.value}`,
      title: `History: ${each.label}`,
      group: "History",
      run: () => setTab(each.value),
    })),
  );
  return (
    <div class={`page time-page ${tab === "live" ? "fills" : ""}`}>
      <div class="page-head">
        <h1>
          {" "}
          History <span class="muted">· {table.name}</span>
        </h1>
      </div>
      <Tabs label="History" tabs={TABS} value={tab} onChange={setTab} panel="time-panel" />
      <div
        id="time-panel"
        role="tabpanel"
        aria-label={TABS.find((each) => each.value === tab)?.label ?? "Live changes"}
        class="time-panel"
      >
        {tab === "past" ? (
          <PointInTime table={table.name} />
        ) : tab === "item" ? (
          <History table={table} />
        ) : tab === "restore" ? (
          <Restore table={table.name} />
        ) : (
          <Live table={table} feed={feed} />
        )}
      </div>
    </div>
  );
}

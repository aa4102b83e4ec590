// Time: a table's changes as they come, its past, its items' histories, and the way back.
import { useCommands } from "../../app/commands";
import { useParam } from "../../app/router";
import { currentTable } from "../../app/session";
import { Empty, Tabs } from "../../parts";
import type { TableSummary } from "../../generated/api";
import { History } from "./history";
import { Live, useFeed } from "./live";
import { Past } from "./past";
import { Restore } from "./restore";
import "./page.css";

const TABS = [
  { value: "live", label: "Live" },
  { value: "past", label: "Past" },
  { value: "item", label: "Item history" },
  { value: "restore", label: "Restore" },
];

export default function TimePage() {
  const table = currentTable.value;
  if (!table || table.status === "MISSING") {
    return (
      <div class="page">
        <Empty whole title={table ? `${table.name} is not there` : "No table"}>
          {table ? "The design declares it, and nobody has made it." : "Choose a table at the left."}
        </Empty>
      </div>
    );
  }
  return <OfTable key={table.name} table={table} />;
}

function OfTable({ table }: { table: TableSummary }) {
  const [tab, setTab] = useParam("tab", "live");
  const feed = useFeed(table.name);
  useCommands(
    TABS.map((each) => ({
      id: `time-${each.value}`,
      title: `Time: ${each.label}`,
      group: "Time",
      run: () => setTab(each.value),
    })),
  );
  return (
    <div class={`page time-page ${tab === "live" ? "fills" : ""}`}>
      <div class="page-head">
        <h1>
          Time <span class="muted">· {table.name}</span>
        </h1>
      </div>
      <Tabs label="Time" tabs={TABS} value={tab} onChange={setTab} panel="time-panel" />
      <div
        id="time-panel"
        role="tabpanel"
        aria-label={TABS.find((each) => each.value === tab)?.label ?? "Live"}
        class="time-panel"
      >
        {tab === "past" ? (
          <Past table={table.name} />
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

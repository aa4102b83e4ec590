// Data: the items of a table by item collection, one tab per index, queried by conditions or PartiQL.
import "./page.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { useQuery } from "../../app/queries";
import { useCommands } from "../../app/commands";
import { go, route } from "../../app/router";
import { MissingTable } from "../../app/missing_table";
import { currentTable, canEdit, session } from "../../app/session";
import type { ItemQuery, IndexSummary, Item, TableKeyAttribute, TableDetail, TableSummary } from "../../generated/api";
import {
  Button,
  copyText,
  Empty,
  type MenuItem,
  Notice,
  ProblemNotice,
  Select,
  Spinner,
  TAG_NAMES,
  Tabs,
  plainOptions,
} from "../../parts";
import { BulkBar } from "./bulk/bulk_bar";
import { collectionHref, partitionOf } from "./cells";
import { ITEM_LANGUAGES, type ItemLanguage, ItemCodeDialog, type Language, QueryCodeDialog } from "./code_dialog";
import { attributesOf, columnsOf } from "./columns";
import { ColumnsMenu } from "./columns_menu";
import { ItemDrawer } from "./editor/item_drawer";
import { countMembers, Grid } from "./grid";
import { keyOf, accessKey } from "./keys";
import { unitsText } from "./query_plan";
import { QueryBar } from "./querybar";
import { ReadProgress } from "./read_progress";
import type { Row } from "./rows";
import { followQuery, openItem, hoveredIndex, reading, reload, rows, start, statement, retry } from "./state";
import { TransferMenu } from "./transfer/transfer_menu";
import { formatBytes, formatCount, formatNumber } from "../../format";

export default function DataPage() {
  useEffect(() => followQuery(), []);
  const table = currentTable.value;
  const detail = useQuery("GET /tables/describe", table && table.status !== "MISSING" ? { table: table.name } : null);
  if (!table) return <NoTable />;
  return (
    <div class="page data-page">
      <Head table={table} />
      {table.status === "MISSING" ? (
        <MissingTable table={table} />
      ) : table.problem ? (
        <ProblemNotice problem={table.problem} />
      ) : (
        <Browser key={table.name} table={table} detail={detail.data?.table.name === table.name ? detail.data : null} />
      )}
    </div>
  );
}

function NoTable() {
  const named = route.value.table;
  return (
    <div class="page">
      {named ? (
        <Empty whole title="Table not found">
          {named} does not exist at this endpoint. Choose another table.
        </Empty>
      ) : (
        <Empty whole title="No tables yet">
          Start the studio with a design and a store, or create a table with <code>tavola deploy</code>, then reload.
        </Empty>
      )}
    </div>
  );
}

function Head({ table }: { table: TableSummary }) {
  const tables = session.value?.tables ?? [];
  return (
    <header class="page-head data-page-head">
      <div class="row">
        <h1 class="hidden-text">{table.name}</h1>
        <Select
          label="Table"
          hideLabel
          class="data-table-picker"
          value={table.name}
          options={plainOptions(tables.map((each) => each.name))}
          onChange={(name) => go({ page: "data", table: name })}
        />
        <span class="muted small">
          {formatCount(table.items, "item")} · {formatBytes(table.bytes)} · {table.billing}
        </span>
      </div>
      <div class="row">
        {canEdit.value && table.status !== "MISSING" ? (
          <Button small onClick={() => openItem("new")}>
            New item
          </Button>
        ) : null}
        {table.status === "MISSING" ? null : (
          <>
            <Button small onClick={() => void reload()}>
              Reload
            </Button>
            <TransferMenu />
          </>
        )}
      </div>
    </header>
  );
}

function Browser({ table, detail }: { table: TableSummary; detail: TableDetail | null }) {
  const tab = route.value.params["index"] ?? "";
  const [code, setCode] = useState<{ query: ItemQuery; language: Language } | null>(null);
  const [itemCode, setItemCode] = useState<{ key: Item; language: ItemLanguage } | null>(null);
  const now = reading.value;
  // A query on the table may use an index; then the rows are that index's entries.
  const access = accessKey(table, now.plan && rows.value.length ? (now.plan.index ?? "") : tab);
  const flat = statement.value !== "" || (access.range.length === 0 && access.index === "");
  const chosen = parseNames(route.value.params["cols"] ?? "");
  const all = useMemo(() => attributesOf(rows.value, table, detail), [rows.value, table, detail]);
  // Widths come from the first page, so that columns do not jump while scrolling.
  const sample = rows.value.length ? rows.value[0] : null;
  const columns = useMemo(
    () => columnsOf(access, rows.value, table, detail, chosen, flat),
    [sample, access.index, table, detail, route.value.params["cols"], flat],
  );
  const tabs = [
    { value: "", label: "Table", title: keysText(table.keys) },
    ...table.indexes.map((index) => ({ value: index.name, label: index.name, title: indexText(index) })),
  ];
  const showIndex = (index: string) => {
    hoveredIndex.value = null;
    go({ params: { index, q: null, sql: null, item: null, cols: null } });
  };

  useCommands([
    { id: "data.reload", title: "Reload the items", keys: "r", group: "Data", run: () => void reload() },
    { id: "data.new", title: "New item", keys: "n", group: "Data", run: () => canEdit.value && openItem("new") },
    {
      id: "data.grid",
      title: "Focus the item grid",
      keys: "g g",
      group: "Data",
      run: () => document.querySelector<HTMLElement>(".data-grid")?.focus(),
    },
    ...tabs.slice(0, 9).map((each, at) => ({
      id: `data.tab.${each.value}`,
      title: each.value ? `Show index ${each.label}` : "Show the table",
      keys: `${at + 1}`,
      group: "Data",
      run: () => showIndex(each.value),
    })),
  ]);

  const menuOf = (row: Row): readonly (MenuItem | null)[] => {
    const key = keyOf(table, row.item);
    return [
      { label: "Open", beside: "Enter", run: () => openItem(key) },
      {
        label: "Show only this item collection",
        run: () => goTo(collectionHref(access.index, partitionOf(row, access))),
      },
      null,
      ...ITEM_LANGUAGES.map(([language, label]) => ({
        label: `Copy as ${label}`,
        run: () => setItemCode({ key, language }),
      })),
      { label: "Copy key", run: () => void copyText(JSON.stringify(key)) },
    ];
  };

  return (
    <>
      <Tabs
        label="Indexes"
        tabs={tabs}
        value={tab}
        onChange={showIndex}
        onHover={(index) => (hoveredIndex.value = index || null)}
        panel="data-panel"
      />
      <IndexLine table={table} tab={tab} />
      <QueryBar table={table} detail={detail} onCode={(query, language) => setCode({ query, language })} />
      <ProblemNotice problem={now.problem} retry={() => retry()} />
      <div class="data-panel" id="data-panel" role="tabpanel" aria-label={tab || "Table"}>
        <div class="row data-tools">
          <ReadProgress />
          <span class="grow" />
          <ColumnsMenu
            all={all}
            chosen={columns.filter((each) => !each.key).map((each) => each.name)}
            onChoose={(names) => go({ params: { cols: names ? JSON.stringify(names) : null } }, { replace: true })}
          />
        </div>
        {now.phase === "confirming" && now.plan ? (
          <Notice
            tone="warning"
            title={`This Scan reads up to ${formatBytes(now.plan.estimate.bytes_high)}`}
            actions={
              <Button kind="primary" onClick={() => void start({ confirmed: true })} data-autofocus>
                Run Scan
              </Button>
            }
          >
            <p>
              {now.plan.why} Reading all of it takes up to {unitsText(now.plan.estimate)}. Items load page by page, and
              you can stop. A Query reads only the items it returns.
            </p>
          </Notice>
        ) : null}
        {rows.value.length ? (
          <Grid table={table} access={access} columns={columns} flat={flat} menuOf={menuOf} />
        ) : now.phase === "planning" || now.phase === "reading" ? (
          <div class="data-waiting">
            <Spinner label="Reading" />
          </div>
        ) : now.phase === "idle" && now.requests > 0 ? (
          <NoItems table={table} />
        ) : null}
      </div>
      <BulkBar />
      <ItemDrawer />
      {code ? <QueryCodeDialog query={code.query} language={code.language} onClose={() => setCode(null)} /> : null}
      {itemCode ? (
        <ItemCodeDialog
          table={table.name}
          itemKey={itemCode.key}
          asOf={asOf.value}
          language={itemCode.language}
          onClose={() => setItemCode(null)}
        />
      ) : null}
    </>
  );
}

function goTo(address: string): void {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}

function NoItems({ table }: { table: TableSummary }) {
  const now = reading.value;
  const narrowed = Boolean(route.value.params["q"] || statement.value);
  if (!narrowed && now.ended) {
    return (
      <Empty title={route.value.params["index"] ? "This index is empty" : "This table is empty"}>
        {canEdit.value ? "Choose “New item” to add the first item, or import a file." : `${table.name} has no items.`}
      </Empty>
    );
  }
  return (
    <Empty title={now.ended ? "No items found" : "No items found so far"}>
      {now.ended
        ? "No items match the conditions."
        : "Not all items have been read. Load all, or add a condition on the partition key."}
    </Empty>
  );
}

/** The key and projection of the index whose tab is hovered over, else of the open one. */
function IndexLine({ table, tab }: { table: TableSummary; tab: string }) {
  const name = hoveredIndex.value ?? tab;
  const at = table.indexes.findIndex((each) => each.name === name);
  const index = table.indexes[at];
  const members = hoveredIndex.value !== null && index && hoveredIndex.value !== tab ? countMembers(at) : null;
  return (
    <p class="data-index-line small muted" aria-live="polite" data-hovered={hoveredIndex.value ?? ""}>
      {members === null ? null : (
        <strong class="data-members">{`${formatNumber(members)} of the ${formatNumber(rows.value.length)} loaded items are in this index. `}</strong>
      )}
      {index ? indexText(index) : `Table: ${keysText(table.keys)}`}
    </p>
  );
}

function keysText(keys: readonly TableKeyAttribute[]): string {
  const names = (role: string) =>
    keys
      .filter((each) => each.role === role)
      .map((each) => `${each.name} (${TAG_NAMES[each.type]})`)
      .join(" + ");
  const [hash, range] = [names("HASH"), names("RANGE")];
  return `partition key ${hash}${range ? `, sort key ${range}` : ""}`;
}

function indexText(index: IndexSummary): string {
  const projected =
    index.projection === "ALL"
      ? "all attributes"
      : index.projection === "KEYS_ONLY"
        ? "keys only"
        : `keys and ${index.included.join(", ")}`;
  const status = index.status === "ACTIVE" ? "" : `, ${index.status.toLowerCase()}`;
  return `${index.local ? "Local" : "Global"} index: ${keysText(index.keys)}; projection: ${projected}; ${formatCount(index.items, "item")}${status}`;
}

function parseNames(text: string): readonly string[] | null {
  if (!text) return null;
  try {
    const names = JSON.parse(text) as unknown;
    return Array.isArray(names) ? names.filter((each): each is string => typeof each === "string") : null;
  } catch {
    return null;
  }
}

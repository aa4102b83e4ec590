// Data: a table's items as the collections they are, one tab for each index, asked by conditions.
import "./page.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import { asOf } from "../../app/as_of";
import { useAsk } from "../../app/asking";
import { useCommands } from "../../app/commands";
import { go, route } from "../../app/router";
import { MissingTable } from "../../app/missing_table";
import { currentTable, mayChange, session } from "../../app/session";
import type { ItemQuery, IndexSummary, Item, TableKeyAttribute, TableDetail, TableSummary } from "../../generated/api";
import {
  Button,
  bytes,
  copyText,
  Empty,
  type MenuItem,
  Notice,
  num,
  ProblemNotice,
  Select,
  Spinner,
  TAG_NAMES,
  Tabs,
} from "../../parts";
import { BulkBar } from "./bulk";
import { collectionHref, partitionOf } from "./cells";
import { type ItemLanguage, ItemCodeDialog, type Language, QuestionCodeDialog } from "./code_dialog";
import { attributesOf, columnsOf } from "./columns";
import { ColumnsMenu } from "./columns_menu";
import { ItemDrawer } from "./editor";
import { countMembers, Grid } from "./grid";
import { keyOf, wayOf } from "./keys";
import { unitsText } from "./plan_lines";
import { QueryBar } from "./querybar";
import { ReadingBar } from "./reading_bar";
import type { Row } from "./rows";
import { followQuestion, openItem, pointedIndex, reading, reload, rows, start, statement, tryAgain } from "./state";
import { TransferMenu } from "./transfer";

export default function DataPage() {
  useEffect(() => followQuestion(), []);
  const table = currentTable.value;
  const detail = useAsk("GET /tables/describe", table && table.status !== "MISSING" ? { table: table.name } : null);
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
        <Empty whole title="There is no such table">
          {named} is not at this endpoint, or it was deleted. Choose another one.
        </Empty>
      ) : (
        <Empty whole title="There are no tables yet">
          Start the studio with a design and a store, or make a table with `tavola deploy`; then reload.
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
          options={tables.map((each) => ({ value: each.name, label: each.name }))}
          onChange={(name) => go({ page: "data", table: name })}
        />
        <span class="muted small">
          {num(table.items)} items · {bytes(table.bytes)} · {table.billing}
        </span>
      </div>
      <div class="row">
        {mayChange.value && table.status !== "MISSING" ? (
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
  const [code, setCode] = useState<{ asked: ItemQuery; language: Language } | null>(null);
  const [itemCode, setItemCode] = useState<{ key: Item; language: ItemLanguage } | null>(null);
  const now = reading.value;
  // Conditions on the table may be answered by an index; then the rows are that index's.
  const way = wayOf(table, now.plan && rows.value.length ? (now.plan.index ?? "") : tab);
  const flat = statement.value !== "" || (way.range.length === 0 && way.index === "");
  const chosen = parseNames(route.value.params["cols"] ?? "");
  const all = useMemo(() => attributesOf(rows.value, table, detail), [rows.value, table, detail]);
  // Widths are taken of the first page: columns that jump while one scrolls help nobody.
  const sample = rows.value.length ? rows.value[0] : null;
  const columns = useMemo(
    () => columnsOf(way, rows.value, table, detail, chosen, flat),
    [sample, way.index, table, detail, route.value.params["cols"], flat],
  );
  const tabs = [
    { value: "", label: "Table", title: keysText(table.keys) },
    ...table.indexes.map((index) => ({ value: index.name, label: index.name, title: indexText(index) })),
  ];
  const turn = (index: string) => {
    pointedIndex.value = null;
    go({ params: { index, q: null, sql: null, item: null, cols: null } });
  };

  useCommands([
    { id: "data.reload", title: "Read the rows again", keys: "r", group: "Data", run: () => void reload() },
    { id: "data.new", title: "New item", keys: "n", group: "Data", run: () => mayChange.value && openItem("new") },
    {
      id: "data.grid",
      title: "Go to the grid",
      keys: "g g",
      group: "Data",
      run: () => document.querySelector<HTMLElement>(".data-grid")?.focus(),
    },
    ...tabs.slice(0, 9).map((each, at) => ({
      id: `data.tab.${each.value}`,
      title: each.value ? `Index ${each.label}` : "The table itself",
      keys: `${at + 1}`,
      group: "Data",
      run: () => turn(each.value),
    })),
  ]);

  const menuOf = (row: Row): readonly (MenuItem | null)[] => {
    const key = keyOf(table, row.item);
    return [
      { label: "Open", beside: "Enter", run: () => openItem(key) },
      { label: "Only this collection", run: () => followTo(collectionHref(way.index, partitionOf(row, way))) },
      null,
      { label: "Copy as JSON", run: () => setItemCode({ key, language: "json" }) },
      { label: "Copy as DynamoDB JSON", run: () => setItemCode({ key, language: "dynamodb_json" }) },
      { label: "Copy as boto3", run: () => setItemCode({ key, language: "boto3" }) },
      { label: "Copy as AWS CLI", run: () => setItemCode({ key, language: "cli" }) },
      { label: "Copy as TypeScript", run: () => setItemCode({ key, language: "typescript" }) },
      { label: "Copy as Tavola code", run: () => setItemCode({ key, language: "tavola" }) },
      { label: "Copy its key", run: () => void copyText(JSON.stringify(key)) },
    ];
  };

  return (
    <>
      <Tabs
        label="Indexes"
        tabs={tabs}
        value={tab}
        onChange={turn}
        onHover={(index) => (pointedIndex.value = index || null)}
        panel="data-panel"
      />
      <PointedLine table={table} tab={tab} />
      <QueryBar table={table} detail={detail} onCode={(asked, language) => setCode({ asked, language })} />
      {now.problem ? <ProblemNotice problem={now.problem} again={() => tryAgain()} /> : null}
      <div class="data-panel" id="data-panel" role="tabpanel" aria-label={tab || "Table"}>
        <div class="row data-tools">
          <ReadingBar />
          <span class="grow" />
          <ColumnsMenu
            all={all}
            chosen={columns.filter((each) => !each.key).map((each) => each.name)}
            onChoose={(names) => go({ params: { cols: names ? JSON.stringify(names) : null } }, { replace: true })}
          />
        </div>
        {now.phase === "asking" && now.plan ? (
          <Notice
            tone="warning"
            title={`This is a Scan of ${bytes(now.plan.estimate.bytes_high)}`}
            actions={
              <Button kind="primary" onClick={() => void start({ agreed: true })} data-autofocus>
                Scan it
              </Button>
            }
          >
            <p>
              {now.plan.why} Up to {unitsText(now.plan.estimate)} for all of it; it is read page by page, and you can
              stop. A Query reads only what it asks for.
            </p>
          </Notice>
        ) : null}
        {rows.value.length ? (
          <Grid table={table} way={way} columns={columns} flat={flat} menuOf={menuOf} />
        ) : now.phase === "planning" || now.phase === "reading" ? (
          <div class="data-waiting">
            <Spinner label="Reading" />
          </div>
        ) : now.phase === "idle" && now.requests > 0 ? (
          <NothingFound table={table} />
        ) : null}
      </div>
      <BulkBar />
      <ItemDrawer />
      {code ? <QuestionCodeDialog asked={code.asked} language={code.language} onClose={() => setCode(null)} /> : null}
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

function followTo(address: string): void {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate"));
}

function NothingFound({ table }: { table: TableSummary }) {
  const now = reading.value;
  const asked = Boolean(route.value.params["q"] || statement.value);
  if (!asked && now.ended) {
    return (
      <Empty title={route.value.params["index"] ? "No item is in this index" : "The table is empty"}>
        {mayChange.value
          ? `Make the first item of ${table.name} with “New item”, or import some.`
          : `${table.name} has no items.`}
      </Empty>
    );
  }
  return (
    <Empty title={now.ended ? "Nothing was found" : "Nothing was found so far"}>
      {now.ended
        ? "No item has all of what is asked."
        : "There is more to read: read on to the end, or ask for a partition key."}
    </Empty>
  );
}

/** What the tab that is pointed at, or else the one that is open, is keyed by and holds. */
function PointedLine({ table, tab }: { table: TableSummary; tab: string }) {
  const pointed = pointedIndex.value ?? tab;
  const at = table.indexes.findIndex((each) => each.name === pointed);
  const index = table.indexes[at];
  const inside = pointedIndex.value !== null && index && pointedIndex.value !== tab ? countMembers(at) : null;
  return (
    <p class="data-pointed small muted" aria-live="polite" data-pointed={pointedIndex.value ?? ""}>
      {inside === null ? null : (
        <strong class="data-members">{`${num(inside)} of the ${num(rows.value.length)} rows read are in it. `}</strong>
      )}
      {index ? indexText(index) : keysText(table.keys)}
    </p>
  );
}

function keysText(keys: readonly TableKeyAttribute[]): string {
  const told = (role: string) =>
    keys
      .filter((each) => each.role === role)
      .map((each) => `${each.name} (${TAG_NAMES[each.type]})`)
      .join(" + ");
  return [told("HASH"), told("RANGE")].filter(Boolean).join(", sorted by ");
}

function indexText(index: IndexSummary): string {
  const holds =
    index.projection === "ALL"
      ? "all attributes"
      : index.projection === "KEYS_ONLY"
        ? "the keys alone"
        : `the keys and ${index.included.join(", ")}`;
  const ready = index.status === "ACTIVE" ? "" : `, ${index.status.toLowerCase()}`;
  return `${index.local ? "Local" : "Global"} index by ${keysText(index.keys)}; holds ${holds} of ${num(index.items)} items${ready}`;
}

function parseNames(text: string): readonly string[] | null {
  if (!text) return null;
  try {
    const told = JSON.parse(text) as unknown;
    return Array.isArray(told) ? told.filter((each): each is string => typeof each === "string") : null;
  } catch {
    return null;
  }
}

// Design: the design as a diagram, its lint findings, the solver's proposal, and its form in other tools.
import { useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { DesignPicture, DesignFindings, TablePicture } from "../../generated/api";
import {
  Button,
  Checkbox,
  Code,
  download,
  Empty,
  Notice,
  ProblemNotice,
  Select,
  Spinner,
  Tabs,
  plainOptions,
} from "../../parts";
import { Diagram, NodeBadge } from "./diagram";
import { DriftPanel } from "./drift";
import { Findings } from "./findings";
import { DescribeButton, ImportDialog } from "./import_dialog";
import { Infrastructure } from "./infrastructure";
import { NodePanel, TableDetail } from "./node_panel";
import { RuleSheet } from "./rules";
import { Solver } from "./solver";
import { type DesignSource, openedDesign, closeDesign } from "./state";
import { Targets } from "./targets";
import "./page.css";
import { formatCount } from "../../format";

const TABS = ["diagram", "findings", "solver", "infrastructure", "targets", "document"] as const;

export default function DesignPage() {
  const [importing, setImporting] = useState(false);
  const [rule] = useParam("rule");
  const opened = openedDesign.value;
  const table = currentTable.value?.name ?? route.value.table;
  const query = useQuery(
    "POST /design",
    opened ? { document: opened.document } : session.value?.designed === false ? null : { table },
  );
  useCommands([
    { id: "design-import", title: "Import a design", keys: "i", group: "Design", run: () => setImporting(true) },
    ...TABS.map((each) => ({
      id: `design-${each}`,
      title: `Design: ${each}`,
      group: "Design",
      run: () => go({ params: { tab: each === "diagram" ? null : each } }),
    })),
  ]);
  const picture = query.data;
  const fresh = picture !== null && picture.own === (opened === null);
  return (
    <div class="page design-page">
      <div class="page-head">
        <h1>Design</h1>
        <Button onClick={() => setImporting(true)}>Import…</Button>
      </div>
      {opened ? <OpenedNotice /> : null}
      <ProblemNotice problem={query.problem} retry={query.retry} />
      {!opened && session.value?.designed === false ? (
        <Empty
          title="No design loaded"
          actions={
            <Button kind="primary" onClick={() => setImporting(true)}>
              Import a design
            </Button>
          }
        >
          Start the studio with the module that declares your tables, for example <code>tavola studio shop.model</code>,
          or import a file or a deployed table.
        </Empty>
      ) : null}
      {query.loading && !fresh ? <Spinner /> : null}
      {picture && fresh && !query.problem ? (
        <DesignView
          picture={picture}
          source={{ design: opened ? null : picture.name, document: opened?.document ?? null }}
        />
      ) : null}
      {importing ? <ImportDialog onClose={() => setImporting(false)} /> : null}
      {rule ? <RuleSheet name={rule} onClose={() => go({ params: { rule: null } })} /> : null}
    </div>
  );
}

function OpenedNotice() {
  const opened = openedDesign.value;
  const [all, setAll] = useState(false);
  if (!opened) return null;
  const shown = all ? opened.notes : opened.notes.slice(0, 3);
  return (
    <Notice
      title={`Viewing ${opened.title}`}
      actions={
        <Button small onClick={closeDesign}>
          Back to the studio's design
        </Button>
      }
    >
      <p>This design exists only in this page and is lost on reload. Download it to keep it.</p>
      {shown.length ? (
        <ul class="design-notes small">
          {shown.map((each, at) => (
            <li key={at}>
              {each.place ? <code>{each.place}</code> : null} {each.message}
            </li>
          ))}
        </ul>
      ) : null}
      {opened.notes.length > 3 ? (
        <Button small kind="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${opened.notes.length} notes`}
        </Button>
      ) : null}
    </Notice>
  );
}

function DesignView({ picture, source }: { picture: DesignPicture; source: DesignSource }) {
  const [tab, setTab] = useParam("tab", "diagram");
  const [production, setProduction] = useParam("production", "no");
  const [shown, setShown] = useParam("shown");
  const asProduction = production === "yes";
  const report = useQuery("POST /design/findings", { ...source, production: asProduction });
  const name = picture.own ? (currentTable.value?.name ?? route.value.table) : shown;
  const table =
    picture.tables.find((each) => each.name === name) ??
    (picture.own && route.value.table ? undefined : picture.tables[0]);
  const chosen = (TABS as readonly string[]).includes(tab) ? tab : "diagram";
  const count = report.data?.findings.length ?? 0;
  const labels = {
    diagram: "Diagram",
    findings: count ? `Findings (${count})` : "Findings",
    solver: "Solver",
    infrastructure: "Infrastructure",
    targets: "Targets",
    document: "Document",
  } as const;
  const all = picture.own ? picture.tables_of.map(([each]) => each) : picture.tables.map((each) => each.name);
  const pick = (value: string) =>
    picture.own
      ? go({ table: value, params: { tab: tab === "diagram" ? null : tab, production: asProduction ? "yes" : null } })
      : setShown(value);
  return (
    <>
      <div class="row apart design-top">
        <span class="row">
          {all.length > 1 || !table ? (
            <Select
              label="Table"
              hideLabel
              value={table?.name ?? ""}
              onChange={pick}
              options={[...(table ? [] : [{ value: "", label: "Choose a table" }]), ...plainOptions(all)]}
            />
          ) : (
            <strong>{table.name}</strong>
          )}
          <span class="muted small">in {picture.name}</span>
        </span>
        <Checkbox label="Production rules" checked={asProduction} onChange={(on) => setProduction(on ? "yes" : "no")} />
      </div>
      <Tabs
        label="Design views"
        value={chosen}
        onChange={setTab}
        tabs={TABS.map((each) => ({ value: each, label: labels[each] }))}
        panel="design-panel"
      />
      <div id="design-panel" role="tabpanel" aria-label={labels[chosen as (typeof TABS)[number]]} class="stack">
        <ProblemNotice problem={report.problem} retry={report.retry} />
        {chosen === "diagram" ? (
          <DiagramTab
            picture={picture}
            table={table}
            report={report.data}
            source={source}
            production={asProduction}
            name={name}
          />
        ) : null}
        {chosen === "findings" ? (
          report.data ? (
            <Findings
              report={report.data}
              source={source}
              production={asProduction}
              tables={picture.tables.map((each) => each.name)}
            />
          ) : (
            <Spinner />
          )
        ) : null}
        {chosen === "solver" ? <Solver source={source} /> : null}
        {chosen === "infrastructure" ? <Infrastructure source={source} /> : null}
        {chosen === "targets" ? <Targets source={source} /> : null}
        {chosen === "document" ? <DocumentText source={source} /> : null}
      </div>
    </>
  );
}

interface DiagramTabProps {
  picture: DesignPicture;
  table: TablePicture | undefined;
  report: DesignFindings | null;
  source: DesignSource;
  production: boolean;
  name: string;
}

function DiagramTab({ picture, table, report, source, production, name }: DiagramTabProps) {
  const [node] = useParam("node");
  const [finding, setFinding] = useParam("finding");
  const findings = report?.findings ?? [];
  const open = (id: string, which = "") => go({ params: { node: id, finding: which || null } });
  if (!table) {
    return picture.tables.length ? (
      <Empty title="Table not in any design" actions={<DescribeButton table={name} />}>
        {name} exists, but no design describes it. Choose another table, or show its deployed settings.
      </Empty>
    ) : (
      <Empty title="No tables in the design">
        {picture.entities_without_table.length
          ? `It declares the entities ${picture.entities_without_table.join(", ")}. Use the solver to find keys for them.`
          : "Declare one, or import a design."}
      </Empty>
    );
  }
  const onTable = findings.filter((each) => each.node === table.id);
  const onDesign = findings.filter((each) => each.node === "design");
  return (
    <>
      <div class="row apart">
        <p class="muted small">
          {formatCount(table.entities.length, "entity", "entities")}, {formatCount(table.keys.length, "key")},{" "}
          {formatCount(table.indexes.length - 1, "index", "indexes")}. Hover over a node to highlight what belongs to
          it; use the arrow keys to move.
        </p>
        <span class="row tight">
          {onDesign.length ? (
            <>
              <span class="muted small">Design</span>
              <NodeBadge findings={onDesign} label="the design" onOpen={() => open("design", onDesign[0]?.id)} />
            </>
          ) : null}
          {onTable.length ? (
            <>
              <span class="muted small">Table</span>
              <NodeBadge
                findings={onTable}
                label={`table ${table.name}`}
                onOpen={() => open(table.id, onTable[0]?.id)}
              />
            </>
          ) : null}
          <Button small aria-pressed={node === table.id} onClick={() => open(table.id)}>
            Table settings
          </Button>
        </span>
      </div>
      {table.entities.length ? null : (
        <Notice title="No entities declared">
          The indexes and settings are known, but no entities or keys are declared for this table.
        </Notice>
      )}
      <Diagram
        table={table}
        findings={findings}
        selected={node}
        onSelect={(id) => open(id)}
        onBadge={(id) => open(id, findings.find((each) => each.node === id)?.id)}
      />
      <details class="panel design-all">
        <summary>Settings and stream</summary>
        <div class="body stack">
          <TableDetail table={table} />
        </div>
      </details>
      <DriftPanel source={source} table={table.name} />
      {node ? (
        <NodePanel
          picture={picture}
          table={table}
          node={node}
          findings={findings}
          source={source}
          production={production}
          open={finding}
          onOpen={setFinding}
          onClose={() => go({ params: { node: null, finding: null } })}
        />
      ) : null}
    </>
  );
}

function DocumentText({ source }: { source: DesignSource }) {
  const query = useQuery("POST /design/document", source);
  if (query.problem) return <ProblemNotice problem={query.problem} retry={query.retry} />;
  if (!query.data) return <Spinner />;
  const { text } = query.data;
  return (
    <>
      <div class="row apart">
        <p class="muted grow">
          The design as JSON, as printed by <code>tavola design --json</code>. Every command accepts it as a file.
        </p>
        <Button small onClick={() => download("design.json", text, "application/json")}>
          Download design.json
        </Button>
      </div>
      <Code text={text} label="design.json" />
    </>
  );
}

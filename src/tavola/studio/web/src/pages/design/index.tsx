// Design: the design as a diagram, what the rules find in it, what the solver offers, and what it becomes in other tools.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { useCommands } from "../../app/commands";
import { go, route, useParam } from "../../app/router";
import { currentTable, session } from "../../app/session";
import type { DesignPicture, LintReport, TablePicture } from "../../generated/api";
import { Button, Checkbox, Code, download, Empty, Notice, ProblemNotice, Select, Spinner, Tabs } from "../../parts";
import { Diagram, NodeBadge } from "./diagram";
import { DriftPanel } from "./drift";
import { Findings } from "./findings";
import { DescribeButton, Importing } from "./importing";
import { Infrastructure } from "./infrastructure";
import { NodePanel, TableDetail } from "./node_panel";
import { RuleSheet } from "./rules";
import { Solver } from "./solver";
import { type About, brought, leave } from "./state";
import { Targets } from "./targets";
import "./page.css";

const TABS = ["diagram", "findings", "solver", "infrastructure", "targets", "document"] as const;

export default function DesignPage() {
  const [importing, setImporting] = useState(false);
  const [rule] = useParam("rule");
  const own = brought.value;
  const table = currentTable.value?.name ?? route.value.table;
  const asked = useAsk(
    "POST /design",
    own ? { document: own.document } : session.value?.designed === false ? null : { table },
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
  const picture = asked.data;
  const fresh = picture !== null && picture.own === (own === null);
  return (
    <div class="page design-page">
      <div class="page-head">
        <h1>Design</h1>
        <Button onClick={() => setImporting(true)}>Import…</Button>
      </div>
      {own ? <BroughtNotice /> : null}
      {asked.problem ? <ProblemNotice problem={asked.problem} again={asked.again} /> : null}
      {!own && session.value?.designed === false ? (
        <Empty
          title="The studio knows no design"
          actions={
            <Button kind="primary" onClick={() => setImporting(true)}>
              Import a design
            </Button>
          }
        >
          It was started without one. Start it with the module that declares the tables, as{" "}
          <code>tavola studio shop.model</code>, or import a file or a table that stands.
        </Empty>
      ) : null}
      {asked.loading && !fresh ? <Spinner /> : null}
      {picture && fresh && !asked.problem ? (
        <Judged picture={picture} about={{ design: own ? null : picture.name, document: own?.document ?? null }} />
      ) : null}
      {importing ? <Importing onClose={() => setImporting(false)} /> : null}
      {rule ? <RuleSheet name={rule} onClose={() => go({ params: { rule: null } })} /> : null}
    </div>
  );
}

function BroughtNotice() {
  const own = brought.value;
  const [all, setAll] = useState(false);
  if (!own) return null;
  const shown = all ? own.notes : own.notes.slice(0, 3);
  return (
    <Notice
      title={`You look at ${own.title}`}
      actions={
        <Button small onClick={leave}>
          Back to the studio's own
        </Button>
      }
    >
      <p>
        It lives in this page alone: nothing of it is written anywhere. Reload, and it is gone; download what you want
        to keep.
      </p>
      {shown.length ? (
        <ul class="design-notes small">
          {shown.map((each, at) => (
            <li key={at}>
              {each.place ? <code>{each.place}</code> : null} {each.message}
            </li>
          ))}
        </ul>
      ) : null}
      {own.notes.length > 3 ? (
        <Button small kind="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Fewer" : `All ${own.notes.length} notes`}
        </Button>
      ) : null}
    </Notice>
  );
}

function Judged({ picture, about }: { picture: DesignPicture; about: About }) {
  const [tab, setTab] = useParam("tab", "diagram");
  const [production, setProduction] = useParam("production", "no");
  const [shown, setShown] = useParam("shown");
  const real = production === "yes";
  const report = useAsk("POST /design/findings", { ...about, production: real });
  const name = picture.own ? (currentTable.value?.name ?? route.value.table) : shown;
  const table =
    picture.tables.find((each) => each.name === name) ??
    (picture.own && route.value.table ? undefined : picture.tables[0]);
  const chosen = (TABS as readonly string[]).includes(tab) ? tab : "diagram";
  const many = report.data?.findings.length ?? 0;
  const labels = {
    diagram: "Diagram",
    findings: many ? `Findings (${many})` : "Findings",
    solver: "Solver",
    infrastructure: "Infrastructure",
    targets: "Targets",
    document: "Document",
  } as const;
  const all = picture.own ? picture.tables_of.map(([each]) => each) : picture.tables.map((each) => each.name);
  const pick = (value: string) =>
    picture.own
      ? go({ table: value, params: { tab: tab === "diagram" ? null : tab, production: real ? "yes" : null } })
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
              options={[
                ...(table ? [] : [{ value: "", label: "Choose a table" }]),
                ...all.map((each) => ({ value: each, label: each })),
              ]}
            />
          ) : (
            <strong>{table.name}</strong>
          )}
          <span class="muted small">of {picture.name}</span>
        </span>
        <Checkbox label="Judge as production" checked={real} onChange={(on) => setProduction(on ? "yes" : "no")} />
      </div>
      <Tabs
        label="The design"
        value={chosen}
        onChange={setTab}
        tabs={TABS.map((each) => ({ value: each, label: labels[each] }))}
        panel="design-panel"
      />
      <div id="design-panel" role="tabpanel" aria-label={labels[chosen as (typeof TABS)[number]]} class="stack">
        {report.problem ? <ProblemNotice problem={report.problem} again={report.again} /> : null}
        {chosen === "diagram" ? (
          <Drawn picture={picture} table={table} report={report.data} about={about} production={real} name={name} />
        ) : null}
        {chosen === "findings" ? (
          report.data ? (
            <Findings
              report={report.data}
              about={about}
              production={real}
              tables={picture.tables.map((each) => each.name)}
            />
          ) : (
            <Spinner />
          )
        ) : null}
        {chosen === "solver" ? <Solver about={about} /> : null}
        {chosen === "infrastructure" ? <Infrastructure about={about} /> : null}
        {chosen === "targets" ? <Targets about={about} /> : null}
        {chosen === "document" ? <DocumentText about={about} /> : null}
      </div>
    </>
  );
}

function Drawn({
  picture,
  table,
  report,
  about,
  production,
  name,
}: {
  picture: DesignPicture;
  table: TablePicture | undefined;
  report: LintReport | null;
  about: About;
  production: boolean;
  name: string;
}) {
  const [node] = useParam("node");
  const [finding, setFinding] = useParam("finding");
  const findings = report?.findings ?? [];
  const open = (id: string, which = "") => go({ params: { node: id, finding: which || null } });
  if (!table) {
    return picture.tables.length ? (
      <Empty title="No design has this table" actions={<DescribeButton table={name} />}>
        {name} stands, and no design says what is in it. Choose another table, or see what DynamoDB tells of this one.
      </Empty>
    ) : (
      <Empty title="The design has no table yet">
        {picture.entities_without_table.length
          ? `Its entities are ${picture.entities_without_table.join(", ")}; let the solver find keys for them.`
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
          {many(table.entities.length, "entity", "entities")}, {many(table.keys.length, "key", "keys")},{" "}
          {many(table.indexes.length - 1, "index", "indexes")}. Point at one to see what belongs to it; arrow keys move.
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
            Settings of {table.name}
          </Button>
        </span>
      </div>
      {table.entities.length ? null : (
        <Notice title="Nothing is said of what lives in it">
          Its indexes and settings are known; entities and their keys are not. Declare them to see them drawn.
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
      <DriftPanel about={about} table={table.name} />
      {node ? (
        <NodePanel
          picture={picture}
          table={table}
          node={node}
          findings={findings}
          about={about}
          production={production}
          open={finding}
          onOpen={setFinding}
          onClose={() => go({ params: { node: null, finding: null } })}
        />
      ) : null}
    </>
  );
}

function many(count: number, one: string, more: string): string {
  return `${count} ${count === 1 ? one : more}`;
}

function DocumentText({ about }: { about: About }) {
  const asked = useAsk("POST /design/document", about);
  if (asked.problem) return <ProblemNotice problem={asked.problem} again={asked.again} />;
  if (!asked.data) return <Spinner />;
  const { text } = asked.data;
  return (
    <>
      <div class="row apart">
        <p class="muted grow">
          The whole design as JSON, as <code>tavola design --json</code> prints it; every command takes it as a file.
        </p>
        <Button small onClick={() => download("design.json", text, "application/json")}>
          Download design.json
        </Button>
      </div>
      <Code text={text} label="design.json" />
    </>
  );
}

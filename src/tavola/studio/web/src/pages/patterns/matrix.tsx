// Matrix: access patterns by index: which index serves which pattern, which patterns are unserved, which indexes unused.
import { useRef, useState } from "preact/hooks";
import { useQuery } from "../../app/queries";
import type { Coverage, CoverageCell, CoverageColumn, CoverageRow, CoverageTable } from "../../generated/api";
import { Badge, Empty, Loaded, Panel, Stat, Stats } from "../../parts";
import { choose } from "./state";
import { toSentence } from "../../format";

const SIGNS: Readonly<Record<CoverageCell["state"], string>> = {
  "": "",
  serves: "●",
  could: "○",
  filters: "◐",
  scans: "✕",
  writes: "w",
};
const STATES: Readonly<Record<CoverageRow["state"], { label: string; tone?: "bad" | "warn" }>> = {
  served: { label: "served" },
  filtered: { label: "filtered", tone: "warn" },
  scanned: { label: "scanned", tone: "bad" },
  unserved: { label: "unserved", tone: "bad" },
  written: { label: "write" },
};

export function Matrix({ table }: { table: string }) {
  const coverage = useQuery("GET /patterns/coverage", {});
  return <Loaded query={coverage}>{(data) => <CoverageView coverage={data} table={table} />}</Loaded>;
}

function CoverageView({ coverage, table }: { coverage: Coverage; table: string }) {
  const here = coverage.tables.filter((each) => each.table === table || each.table === "");
  return (
    <div class="stack">
      <Panel title="Coverage of all designs">
        <Stats>
          <Stat label="Read patterns" value={coverage.patterns} />
          <Stat label="Served by a key" value={coverage.served} tone={coverage.unserved ? undefined : "good"} />
          <Stat label="Without a matching key" value={coverage.unserved} tone={coverage.unserved ? "bad" : undefined} />
          <Stat label="Indexes" value={coverage.indexes} />
          <Stat label="Unused indexes" value={coverage.unused} tone={coverage.unused ? "warn" : undefined} />
        </Stats>
      </Panel>
      {here.map((each) => (
        <OneTable key={each.table} matrix={each} />
      ))}
      {here.length ? null : <Empty title="Table not in the design">Choose a table that the design declares.</Empty>}
      <p class="small muted">
        ● serves the pattern · ○ could also serve it · ◐ serves it with a filter · ✕ Scan · w updated by the write. Use
        the arrow keys to move and Enter to open a pattern.
      </p>
    </div>
  );
}

function OneTable({ matrix }: { matrix: CoverageTable }) {
  const [at, setAt] = useState<readonly [number, number]>([0, 0]);
  const body = useRef<HTMLTableElement>(null);
  const rows = [...matrix.rows].sort((one, other) => Number(one.kind === "write") - Number(other.kind === "write"));
  const wide = matrix.columns.length;
  const focus = (row: number, column: number) => {
    const to: readonly [number, number] = [
      Math.max(0, Math.min(row, rows.length - 1)),
      Math.max(0, Math.min(column, wide)),
    ];
    setAt(to);
    body.current?.querySelector<HTMLElement>(`[data-at="${to[0]},${to[1]}"]`)?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const [row, column] = at;
    const to = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      Home: [row, 0],
      End: [row, wide],
      PageDown: [rows.length - 1, column],
      PageUp: [0, column],
    }[event.key];
    if (to) {
      event.preventDefault();
      focus(to[0] ?? 0, to[1] ?? 0);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const found = rows[row];
      if (found) choose(found.pattern);
    }
  };
  const tab = (row: number, column: number) => (at[0] === row && at[1] === column ? 0 : -1);
  return (
    <Panel title={matrix.table || "Declared needs without a table"} flush>
      <div class="scroll-x">
        <table
          class="patterns-matrix"
          role="grid"
          aria-label={`Patterns by index of ${matrix.table || "no table"}`}
          ref={body}
          onKeyDown={onKey}
        >
          <thead>
            <tr role="row">
              <th scope="col" role="columnheader">
                {" "}
                Access pattern{" "}
              </th>
              {matrix.columns.map((each) => (
                <Column key={each.index ?? ""} column={each} />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, down) => (
              <tr key={row.pattern} role="row" class={row.state}>
                <th
                  scope="row"
                  role="rowheader"
                  tabIndex={tab(down, 0)}
                  data-at={`${down},0`}
                  onFocus={() => setAt([down, 0])}
                  onDblClick={() => choose(row.pattern)}
                >
                  <RowHead row={row} />
                </th>
                {row.cells.map((cell, along) => (
                  <td
                    key={along}
                    role="gridcell"
                    class={cell.state}
                    tabIndex={tab(down, along + 1)}
                    data-at={`${down},${along + 1}`}
                    title={cell.text || undefined}
                    onFocus={() => setAt([down, along + 1])}
                    onClick={() => setAt([down, along + 1])}
                  >
                    <span aria-hidden="true">{SIGNS[cell.state]}</span>
                    <span class="hidden-text">{cell.text || "not used"}</span>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Column({ column }: { column: CoverageColumn }) {
  return (
    <th
      scope="col"
      role="columnheader"
      class={column.unused ? "unused" : ""}
      title={column.index ?? "the table itself"}
    >
      <span class="patterns-column">{column.index === null ? "table" : breakable(column.index)}</span>
      {column.index === null || column.label === column.index ? null : (
        <span class="small muted">{breakable(column.label)}</span>
      )}
      <span class="small muted nowrap">{column.patterns === 1 ? "1 pattern" : `${column.patterns} patterns`}</span>
      {column.unused ? (
        <span class="patterns-unused">
          <Badge tone="warn">unused</Badge>
          <span class="small warn">
            {toSentence(column.reason)} {toSentence(column.remedy, true)}
          </span>
        </span>
      ) : null}
    </th>
  );
}

/** Return a name that may break after its underscores and hyphens, and nowhere else. */
function breakable(name: string) {
  return name.split(/(?<=[_-])/).map((part, at) => (
    <span key={at}>
      {part}
      <wbr />
    </span>
  ));
}

function RowHead({ row }: { row: CoverageRow }) {
  const state = STATES[row.state];
  const open = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    choose(row.pattern);
  };
  return (
    <>
      <span class="row tight">
        <a href={`?${new URLSearchParams({ pattern: row.pattern }).toString()}`} tabIndex={-1} onClick={open}>
          {row.title}
        </a>
        {row.state === "served" ? null : <Badge {...(state.tone ? { tone: state.tone } : {})}>{state.label}</Badge>}
      </span>
      {row.reason && row.state !== "written" ? (
        <span class={`small ${state.tone ?? ""}`}>
          {toSentence(row.reason)} {row.remedy ? toSentence(row.remedy, true) : ""}
        </span>
      ) : null}
    </>
  );
}

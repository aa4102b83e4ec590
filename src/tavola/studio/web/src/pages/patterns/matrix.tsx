// Matrix: patterns by indexes: what serves what, what nothing serves, and which index nobody asks.
import { useRef, useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import type { CoverageCell, CoverageColumn, CoverageRow, CoverageTable } from "../../generated/api";
import { Badge, Empty, Panel, ProblemNotice, Spinner, Stat, Stats } from "../../parts";
import { choose } from "./state";

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
  const asked = useAsk("GET /patterns/coverage", {});
  if (asked.problem) return <ProblemNotice problem={asked.problem} again={asked.again} />;
  if (!asked.data) return <Spinner />;
  const told = asked.data;
  const here = told.tables.filter((each) => each.table === table || each.table === "");
  return (
    <div class="stack">
      <Panel title="The whole design">
        <Stats>
          <Stat label="ways of reading" value={told.patterns} />
          <Stat label="served by a key" value={told.served} {...(told.unserved ? {} : { tone: "good" as const })} />
          <Stat
            label="unserved or scanned"
            value={told.unserved}
            {...(told.unserved ? { tone: "bad" as const } : {})}
          />
          <Stat label="indexes" value={told.indexes} />
          <Stat label="indexes nobody asks" value={told.unused} {...(told.unused ? { tone: "warn" as const } : {})} />
        </Stats>
      </Panel>
      {here.map((each) => (
        <OneTable key={each.table} matrix={each} />
      ))}
      {here.length ? null : (
        <Empty title="The design says nothing of this table">Choose a table that it declares.</Empty>
      )}
      <p class="small muted">
        ● serves it · ○ could serve it too · ◐ finds it and filters · ✕ scans · w is written with it. Arrow keys move,
        Enter opens a pattern.
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
    <Panel title={matrix.table || "Needs that no table answers"} flush>
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
                pattern
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
                    <span class="hidden-text">{cell.text || "nothing"}</span>
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
      <span class="patterns-column">{column.index === null ? "table" : broken(column.index)}</span>
      {column.index === null || column.label === column.index ? null : (
        <span class="small muted">{broken(column.label)}</span>
      )}
      <span class="small muted nowrap">{column.patterns === 1 ? "1 pattern" : `${column.patterns} patterns`}</span>
      {column.unused ? (
        <span class="patterns-unused">
          <Badge tone="warn">unused</Badge>
          <span class="small warn">
            {column.reason}; {column.remedy}
          </span>
        </span>
      ) : null}
    </th>
  );
}

/** Return a name that may break after its underscores and hyphens, and nowhere else. */
function broken(name: string) {
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
          {row.reason}
          {row.remedy ? `; ${row.remedy}` : ""}
        </span>
      ) : null}
    </>
  );
}

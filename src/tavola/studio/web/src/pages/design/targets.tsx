// Targets: whether the design runs on each engine that speaks DynamoDB's API; each cell has its reason, its source and its date.
import { useAsk } from "../../app/asking";
import { useParam } from "../../app/router";
import type { CapabilityRow, TargetCell, TargetColumn, TargetMatrix } from "../../generated/api";
import { Badge, Panel, ProblemNotice, Spinner } from "../../parts";
import type { About } from "./state";

const MARKS = {
  yes: { sign: "✓", word: "fine", tone: "good" },
  no: { sign: "✕", word: "missing", tone: "bad" },
  partial: { sign: "≈", word: "differs", tone: "warn" },
  version: { sign: "v", word: "depends on the version", tone: "warn" },
  unknown: { sign: "?", word: "unknown", tone: "muted" },
} as const;

export function Targets({ about }: { about: About }) {
  const asked = useAsk("POST /design/targets", about);
  if (asked.problem) return <ProblemNotice problem={asked.problem} again={asked.again} />;
  if (!asked.data) return <Spinner />;
  return <Matrix matrix={asked.data} />;
}

function Matrix({ matrix }: { matrix: TargetMatrix }) {
  const [cell, setCell] = useParam("cell");
  const [capability = "", target = ""] = cell.split("@");
  const row = matrix.rows.find((each) => each.name === capability);
  const column = matrix.targets.find((each) => each.name === target);
  const chosen = row?.cells.find((each) => each.target === target);
  return (
    <div class="stack">
      <p class="muted">What the design needs, held against what each engine can do. Press a cell for its reason.</p>
      <div class="scroll-x design-matrix" tabIndex={0} role="region" aria-label="What the design needs, by engine">
        <table class="plain">
          <caption class="hidden-text">What the design needs, by engine</caption>
          <thead>
            <tr>
              <th scope="col">Needed</th>
              {matrix.targets.map((each) => (
                <th key={each.name} scope="col" class="design-target">
                  <span class="stack tight">
                    <span>{each.title}</span>
                    <Verdict column={each} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {matrix.rows.map((each) => (
              <tr key={each.name}>
                <th scope="row" title={each.name}>
                  {each.title}
                </th>
                {each.cells.map((found) => (
                  <td key={found.target}>
                    <CellButton
                      cell={found}
                      row={each}
                      chosen={cell === `${each.name}@${found.target}`}
                      onChoose={() => setCell(`${each.name}@${found.target}`)}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {row && column && chosen ? <Reason row={row} column={column} cell={chosen} /> : null}
    </div>
  );
}

function Verdict({ column }: { column: TargetColumn }) {
  if (column.missing) return <Badge tone="bad">{column.missing} missing</Badge>;
  if (column.differing) return <Badge tone="warn">{column.differing} differ</Badge>;
  if (column.unknown) return <Badge>{column.unknown} unknown</Badge>;
  return <Badge tone="good">runs</Badge>;
}

function CellButton({
  cell,
  row,
  chosen,
  onChoose,
}: {
  cell: TargetCell;
  row: CapabilityRow;
  chosen: boolean;
  onChoose: () => void;
}) {
  const mark = MARKS[cell.value];
  return (
    <button
      type="button"
      class={`design-cell ${mark.tone}`}
      aria-pressed={chosen}
      aria-label={`${row.title} on ${cell.target}: ${mark.word}`}
      title={cell.text || mark.word}
      onClick={onChoose}
    >
      {mark.sign}
    </button>
  );
}

function Reason({ row, column, cell }: { row: CapabilityRow; column: TargetColumn; cell: TargetCell }) {
  const mark = MARKS[cell.value];
  return (
    <Panel title={`${row.title} on ${column.title}`}>
      <div class="stack" role="status">
        <p>
          <Badge tone={mark.tone === "muted" ? undefined : mark.tone}>{mark.word}</Badge>{" "}
          {cell.text || (cell.value === "yes" ? "It is there as DynamoDB has it." : "")}
          {!cell.text && cell.value === "unknown" ? (
            <>
              Nobody has looked; <code>tavola probe</code> finds out.
            </>
          ) : null}
        </p>
        <p class="muted small">
          As of {cell.checked}: {cell.source}
        </p>
        <h3>Where the design needs it</h3>
        <ul class="design-list">
          {row.uses.map((use, at) => (
            <li key={at}>
              <span>{use.place}</span>
              <span class="muted small">{use.what}</span>
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

// Targets: whether the design runs on each engine with a DynamoDB API; each cell has a reason, a source and a date.
import { useQuery } from "../../app/queries";
import { useParam } from "../../app/router";
import type { CapabilityAnswer, NeededCapability, TargetFile, TargetMatrix } from "../../generated/api";
import { Badge, Panel, Loaded } from "../../parts";
import type { DesignSource } from "./state";

const MARKS = {
  yes: { sign: "✓", word: "supported", tone: "good" },
  no: { sign: "✕", word: "not supported", tone: "bad" },
  partial: { sign: "≈", word: "differs", tone: "warn" },
  version: { sign: "v", word: "depends on the version", tone: "warn" },
  unknown: { sign: "?", word: "unknown", tone: "muted" },
} as const;

export function Targets({ source }: { source: DesignSource }) {
  const matrix = useQuery("POST /design/targets", source);
  return <Loaded query={matrix}>{(data) => <Matrix matrix={data} />}</Loaded>;
}

function Matrix({ matrix }: { matrix: TargetMatrix }) {
  const [cell, setCell] = useParam("cell");
  const [capability = "", target = ""] = cell.split("@");
  const need = matrix.needed.find((each) => each.capability.name === capability);
  const column = matrix.targets.find((each) => each.name === target);
  return (
    <div class="stack">
      <p class="muted">What the design needs, compared with what each engine supports. Select a cell for details.</p>
      <div class="scroll-x design-matrix" tabIndex={0} role="region" aria-label="Design requirements by engine">
        <table class="plain">
          <caption class="hidden-text">Design requirements by engine</caption>
          <thead>
            <tr>
              <th scope="col">Requirement</th>
              {matrix.targets.map((each) => (
                <th key={each.name} scope="col" class="design-target">
                  <span class="stack tight">
                    <span>{each.title}</span>
                    <Verdict target={each} />
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {matrix.needed.map((each) => (
              <tr key={each.capability.name}>
                <th scope="row" title={each.capability.name}>
                  {each.capability.title}
                </th>
                {matrix.targets.map((on) => (
                  <td key={on.name}>
                    <CellButton
                      need={each}
                      target={on}
                      chosen={cell === `${each.capability.name}@${on.name}`}
                      onChoose={() => setCell(`${each.capability.name}@${on.name}`)}
                    />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {need && column ? <Reason need={need} target={column} /> : null}
    </div>
  );
}

function answerOf(target: TargetFile, need: NeededCapability): CapabilityAnswer {
  return target.answers[need.capability.name] ?? { value: "unknown", remark: "", since: "", source: "" };
}

/** How well a target supports the whole design. */
function Verdict({ target }: { target: TargetFile }) {
  const values = Object.values(target.answers).map((each) => each.value);
  const count = (...counted: CapabilityAnswer["value"][]) => values.filter((each) => counted.includes(each)).length;
  if (count("no")) return <Badge tone="bad">{count("no")} not supported</Badge>;
  if (count("partial")) return <Badge tone="warn">{count("partial")} differ</Badge>;
  if (count("unknown", "version")) return <Badge>{count("unknown", "version")} unknown</Badge>;
  return <Badge tone="good">compatible</Badge>;
}

interface CellProps {
  need: NeededCapability;
  target: TargetFile;
}

function CellButton({ need, target, chosen, onChoose }: CellProps & { chosen: boolean; onChoose: () => void }) {
  const answer = answerOf(target, need);
  const mark = MARKS[answer.value];
  return (
    <button
      type="button"
      class={`design-cell ${mark.tone}`}
      aria-pressed={chosen}
      aria-label={`${need.capability.title} on ${target.name}: ${mark.word}`}
      title={answer.remark || mark.word}
      onClick={onChoose}
    >
      {mark.sign}
    </button>
  );
}

function Reason({ need, target }: CellProps) {
  const { value, remark, source } = answerOf(target, need);
  const mark = MARKS[value];
  return (
    <Panel
      title={`${need.capability.title.charAt(0).toUpperCase()}${need.capability.title.slice(1)} on ${target.title}`}
    >
      <div class="stack" role="status">
        <p>
          <Badge tone={mark.tone === "muted" ? undefined : mark.tone}>{mark.word}</Badge>{" "}
          {remark || (value === "yes" ? "Works as in DynamoDB." : "")}
          {!remark && value === "unknown" ? (
            <>
              Not checked yet. Run <code>tavola probe</code> to find out.
            </>
          ) : null}
        </p>
        <p class="muted small">
          As of {target.checked}: {source || target.source}
        </p>
        <h3>Where the design uses it</h3>
        <ul class="design-list">
          {need.uses.map((use, at) => (
            <li key={at}>
              <span>{use.place.name}</span>
              <span class="muted small">{use.what}</span>
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

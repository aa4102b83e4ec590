// Solver: the keys and indexes that would serve every access pattern most cheaply, with reasons, beside what there is.
import { useState } from "preact/hooks";
import { useAsk } from "../../app/asking";
import { useParam } from "../../app/router";
import type { SolveRequest, Alternative, SolverChoice, SolverProposal } from "../../generated/api";
import {
  Badge,
  Button,
  Code,
  DiffView,
  download,
  Notice,
  num,
  Panel,
  ProblemNotice,
  Segmented,
  Spinner,
  Stat,
  Stats,
} from "../../parts";
import { dollars } from "./prose";
import { type About, bring } from "./state";

const STYLES = [
  { value: "auto", label: "Fewest indexes" },
  { value: "native", label: "Own attributes" },
  { value: "overloaded", label: "Templates" },
];

export function Solver({ about }: { about: About }) {
  const [told, setStyle] = useParam("style", "auto");
  const style = STYLES.some((each) => each.value === told) ? told : "auto";
  const asked = useAsk("POST /design/solve", { ...about, style: style as NonNullable<SolveRequest["style"]> });
  return (
    <div class="stack">
      <div class="row apart">
        <p class="muted grow">
          Keys are taken off the design, and the solver finds the cheapest that serve every access pattern and write.
        </p>
        <Segmented label="How indexes are keyed" value={style} onChange={setStyle} options={STYLES} />
      </div>
      {asked.problem && !asked.loading ? <ProblemNotice problem={asked.problem} again={asked.again} /> : null}
      {asked.loading ? <Spinner label="Solving" /> : null}
      {asked.data && !asked.problem && !asked.loading ? <Offer offer={asked.data} /> : null}
    </div>
  );
}

function Offer({ offer }: { offer: SolverProposal }) {
  const [form, setForm] = useState("difference");
  const { month } = offer;
  const cheaper = month.before !== null && less(month.total, month.before);
  const places = [...new Set(offer.choices.map((each) => each.place))];
  return (
    <>
      <Panel
        title="The offer"
        actions={
          <>
            <Button small onClick={() => bring({ title: "the solver's offer", document: offer.text, notes: [] })}>
              Look at it
            </Button>
            <Button small onClick={() => download("design.json", offer.text, "application/json")}>
              design.json
            </Button>
            <Button small onClick={() => download("model.py", offer.python)}>
              model.py
            </Button>
          </>
        }
      >
        <Stats>
          <Stat
            label="A month as it is keyed now"
            value={month.before === null ? "no keys yet" : dollars(month.before)}
          />
          <Stat
            label="A month with the offer"
            value={dollars(month.total)}
            tone={cheaper ? "good" : undefined}
            beside={
              month.before === null
                ? ""
                : cheaper
                  ? "cheaper"
                  : dollars(month.before) === dollars(month.total)
                    ? "the same"
                    : "dearer"
            }
          />
          <Stat label="Tables" value={num(offer.tables)} beside={`now ${offer.tables_before}`} />
          <Stat label="Indexes" value={num(offer.indexes)} beside={`now ${offer.indexes_before}`} />
        </Stats>
        {offer.difference ? <p class="design-after">{offer.difference}</p> : null}
        <p class="muted small design-after">
          Of {month.hours} hours, prices of {month.prices}.
          {month.beside.length
            ? ` Today's price has nothing for ${month.beside.join(", ")}: nobody says how that is asked.`
            : ""}
        </p>
      </Panel>
      <div class="design-offers">
        {places.map((place) => (
          <Place key={place} place={place} choices={offer.choices.filter((each) => each.place === place)} />
        ))}
      </div>
      {offer.alternatives.length ? (
        <Panel title="The whole design otherwise">
          <Alternatives ways={offer.alternatives} />
        </Panel>
      ) : null}
      {offer.findings.length ? (
        <Panel title="What the rules say of the offer">
          <ul class="design-list">
            {offer.findings.map((each, at) => (
              <li key={at}>
                <span>
                  {each.severity} · <span class="mono">{each.rule}</span> · {each.place}
                </span>
                <span class="muted small">{each.message}</span>
              </li>
            ))}
          </ul>
        </Panel>
      ) : null}
      {offer.notes.length ? (
        <Notice title="To know">
          <ul class="stack tight">
            {offer.notes.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </Notice>
      ) : null}
      <Panel
        title="As text"
        actions={
          <Segmented
            label="Text of the offer"
            value={form}
            onChange={setForm}
            options={[
              { value: "difference", label: "Difference" },
              { value: "python", label: "Python" },
              { value: "document", label: "Document" },
            ]}
          />
        }
      >
        {form === "difference" ? (
          <DiffView lines={offer.lines} label="The offer against the present design" />
        ) : (
          <Code
            text={form === "python" ? offer.python : offer.text}
            label={form === "python" ? "model.py" : "design.json"}
          />
        )}
      </Panel>
    </>
  );
}

function Place({ place, choices }: { place: string; choices: readonly SolverChoice[] }) {
  return (
    <Panel title={place}>
      <div class="stack">
        {choices.map((choice, at) => (
          <div key={at} class="stack tight">
            <div class="row apart">
              <span class="row tight">
                <Badge>{choice.pattern}</Badge>
                <span class="muted small">{choice.scenario}</span>
              </span>
              {choice.amount === null ? null : <span class="num">{dollars(choice.amount)} a month</span>}
            </div>
            <p>{choice.sentence}</p>
            {choice.instead.length ? (
              <details class="design-why">
                <summary>
                  {choice.instead.length === 1
                    ? "Another way was weighed"
                    : `${choice.instead.length} other ways were weighed`}
                </summary>
                <Alternatives ways={choice.instead} />
              </details>
            ) : null}
          </div>
        ))}
      </div>
    </Panel>
  );
}

function Alternatives({ ways }: { ways: readonly Alternative[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Other ways">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Another way</th>
            <th scope="col" class="num">
              A month in all
            </th>
            <th scope="col">Why not</th>
          </tr>
        </thead>
        <tbody>
          {ways.map((each, at) => (
            <tr key={at}>
              <td>{each.what}</td>
              <td class="num">{dollars(each.amount)}</td>
              <td class="muted">{each.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Tell whether one amount is less than another; both are texts of plain decimals, of dollars that a page may round. */
function less(one: string, other: string): boolean {
  return Number(one) < Number(other);
}

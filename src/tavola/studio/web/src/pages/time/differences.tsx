// Differences: how two versions of an item differ, attribute by attribute.
import { Value, valueText } from "../../parts";
import type { AttributeValue, Item, ItemDifference, KeyReading } from "../../generated/api";
import { KeyParts } from "../../parts";

const SIGN = { added: "+", removed: "−", changed: "~" } as const;

interface DifferencesProps {
  differences: readonly ItemDifference[];
  total: number;
  label?: string;
  empty?: string;
}

/** A table of differences: the path, the old and the new value. */
export function Differences({ differences, total, label = "Differences", empty }: DifferencesProps) {
  if (!differences.length) return <p class="muted">{empty ?? "No differences."}</p>;
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table class="plain time-differences">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden-text">Kind</span>
            </th>
            <th scope="col">Field</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {differences.map((each) => (
            <tr key={each.path} class={each.kind}>
              <td class="sign" title={each.kind}>
                <span aria-hidden="true">{SIGN[each.kind]}</span>
                <span class="hidden-text">{each.kind}</span>
              </td>
              <th scope="row" class="mono">
                {each.path}
              </th>
              {each.omitted ? (
                <td colSpan={2} class="muted">
                  too long to show here; open the full item
                </td>
              ) : (
                <>
                  <td class="was">
                    {each.lost?.length ? (
                      <Elements sign="−" elements={each.lost} />
                    ) : (
                      <OptionalValue value={each.before} />
                    )}
                  </td>
                  <td class="is">
                    {each.gained?.length ? (
                      <Elements sign="+" elements={each.gained} />
                    ) : (
                      <OptionalValue value={each.after} />
                    )}
                  </td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {total > differences.length ? <p class="muted small">and {total - differences.length} more</p> : null}
    </div>
  );
}

function OptionalValue({ value }: { value: AttributeValue | null | undefined }) {
  return value ? <Value value={value} type /> : <span class="muted">–</span>;
}

function Elements({ sign, elements }: { sign: string; elements: readonly string[] }) {
  return (
    <span class="mono">
      {elements.slice(0, 12).map((each) => (
        <span key={each} class="time-element">
          {sign} {each.length > 60 ? `${each.slice(0, 60)}…` : each}
        </span>
      ))}
      {elements.length > 12 ? `and ${elements.length - 12} more` : ""}
    </span>
  );
}

/** Return differences as one line. */
export function differencesText(differences: readonly ItemDifference[], total: number): string {
  const parts = differences.slice(0, 3).map((each) => {
    if (each.omitted) return each.path;
    if (each.kind === "added") return `+${each.path} ${shortText(each.after)}`;
    if (each.kind === "removed") return `−${each.path}`;
    if (each.gained?.length || each.lost?.length)
      return `${each.path} ${[...(each.gained ?? []).map((one) => `+${one}`), ...(each.lost ?? []).map((one) => `−${one}`)].join(" ")}`;
    return `${each.path} ${shortText(each.before)} → ${shortText(each.after)}`;
  });
  return parts.join(" · ") + (total > 3 ? ` · and ${total - 3} more` : "");
}

function shortText(value: AttributeValue | null | undefined): string {
  return value ? valueText(value, 28) : "–";
}

/** All attributes of an item, with their types. */
export function WholeItem({ item, label }: { item: Item; label: string }) {
  const names = Object.keys(item).sort();
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table class="plain">
        <tbody>
          {names.slice(0, 300).map((name) => (
            <tr key={name}>
              <th scope="row" class="mono">
                {name}
              </th>
              <td>
                <Value value={item[name]} type />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {names.length > 300 ? <p class="muted small">and {names.length - 300} more attributes</p> : null}
    </div>
  );
}

/** An item's key, split by its template. */
export function ItemKey({ parts }: { parts: readonly KeyReading[] }) {
  return (
    <span class="time-key">
      {parts.map((part) => (
        <KeyParts
          key={part.attribute}
          parts={part.pieces.map((piece) => ({
            text: piece.text,
            field: piece.field ?? (piece.value !== null ? part.attribute : null),
          }))}
        />
      ))}
    </span>
  );
}

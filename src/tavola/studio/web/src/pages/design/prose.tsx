// Prose: sentences of the rules as people read them: what stands between backticks is code.
export { cents as dollars } from "../../parts";

export function Prose({ text }: { text: string }) {
  return (
    <p class="design-prose">
      {text
        .split(/(`[^`]+`)/)
        .map((part, at) =>
          part.startsWith("`") && part.length > 2 ? <code key={at}>{part.slice(1, -1)}</code> : part,
        )}
    </p>
  );
}

const STARTS = new Set(
  "a all an and as at each every for in it its key keys names neither no nobody nothing of one some the there two what where".split(
    " ",
  ),
);

/** Return a clause as a sentence; one that begins with a name, which is written as it is, keeps its first letter. */
export function sentence(text: string, order = false): string {
  const first = /^[a-z]+(?=\s)/.exec(text)?.[0] ?? "";
  const named = order ? !first : !STARTS.has(first);
  return `${named ? text : text.charAt(0).toUpperCase() + text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

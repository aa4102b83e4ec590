// Prose: sentences from the server; text in backticks becomes code.

export function Prose({ text }: { text: string }) {
  return (
    <p class="prose">
      {text
        .split(/(`[^`]+`)/)
        .map((part, at) =>
          part.startsWith("`") && part.length > 2 ? <code key={at}>{part.slice(1, -1)}</code> : part,
        )}
    </p>
  );
}

// Tour: a walk over the pages, a few sentences each, for who is here for the first time.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../parts";
import { useCommands } from "./commands";
import { PAGES } from "./pages";
import { go } from "./router";
import { currentTable } from "./session";

const STEPS: readonly { page: string; text: string }[] = [
  {
    page: "data",
    text: "Items stand together by partition key, as DynamoDB keeps them. A tab is an index: point at one, and the rows that it holds light up. Before anything is read, the bar says whether that is a Query or a Scan, and what it takes.",
  },
  {
    page: "patterns",
    text: "Every access pattern of the design is a form. Run one, and see the calls, the units of each index, and what a million of them cost. The matrix shows which index serves which pattern, and which serves none.",
  },
  {
    page: "design",
    text: "Entities, their keys and indexes in one picture, with what the linter finds pinned where it is. The solver offers other keys; Terraform and CloudFormation are a tab away.",
  },
  {
    page: "heat",
    text: "Keys from top to bottom, time from left to right. Even noise is good, a bright line is one hot key, a diagonal is a key that counts up. The simulator paints the same picture before there is any traffic.",
  },
  {
    page: "cost",
    text: "A month in dollars, by pattern, under each way of paying. Move a slider, and see what it would do. The numbers are those of `tavola cost`, to the cent.",
  },
  {
    page: "time",
    text: "Changes as they come, with what was and what is. Drag the slider back, and every page shows what was then; an item's history and a restore are here too.",
  },
  {
    page: "operations",
    text: "Requests, latency, capacity and conflicts as they happen, the dearest requests, the access log, and why somebody may or may not do something.",
  },
];

/** Which step is shown; null: nobody walks. */
const step = signal<number | null>(null);

/** Begin the walk. */
export function startTour(): void {
  show(0);
}

function show(at: number): void {
  const next = STEPS[at];
  step.value = next ? at : null;
  if (!next) return;
  const page = PAGES.find((each) => each.name === next.page);
  if (page) go({ page: page.name, table: page.ofTable ? (currentTable.value?.name ?? "") : "" });
}

export function Tour() {
  useCommands([{ id: "tour", title: "Show me around", group: "Everywhere", run: startTour }]);
  const card = useRef<HTMLDivElement>(null);
  const before = useRef<HTMLElement | null>(null);
  const at = step.value;
  useEffect(() => {
    if (at === null) {
      if (before.current?.isConnected) before.current.focus();
      before.current = null;
      return;
    }
    before.current ??= document.activeElement as HTMLElement | null;
    card.current?.querySelector<HTMLElement>("[data-next]")?.focus();
  }, [at]);
  const now = at === null ? undefined : STEPS[at];
  if (at === null || !now) return null;
  const title = PAGES.find((each) => each.name === now.page)?.title ?? "";
  const end = () => (step.value = null);
  return (
    <div
      class="tour"
      role="dialog"
      aria-label={`Tour, ${at + 1} of ${STEPS.length}: ${title}`}
      ref={card}
      onKeyDown={(event) => {
        if (event.key === "Escape") end();
      }}
    >
      <h2>{title}</h2>
      <p>{now.text}</p>
      <div class="row apart">
        <span class="muted small">
          {at + 1} of {STEPS.length}
        </span>
        <span class="row tight">
          <Button kind="quiet" onClick={end}>
            Enough
          </Button>
          {at > 0 ? <Button onClick={() => show(at - 1)}>Back</Button> : null}
          <Button kind="primary" data-next onClick={() => show(at + 1)}>
            {at + 1 < STEPS.length ? "Next" : "Done"}
          </Button>
        </span>
      </div>
    </div>
  );
}

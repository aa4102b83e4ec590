// Tour: introduces each page in a few sentences.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Button, Prose } from "../parts";
import { useCommands } from "./commands";
import { PAGES } from "./pages";
import { go } from "./router";
import { currentTable } from "./session";

const STEPS: readonly { page: string; text: string }[] = [
  {
    page: "data",
    text: "Items are grouped by partition key. Each tab is an index; hover over one to highlight the items it contains. Before anything is read, the query bar shows whether it is a Query or a Scan and how much capacity it consumes.",
  },
  {
    page: "patterns",
    text: "Every access pattern in the design is a form. Run one to see its API calls, the consumed capacity of each index and the cost per million. The coverage matrix shows which index serves which pattern.",
  },
  {
    page: "design",
    text: "A diagram of entities, keys and indexes, with lint findings shown on the node they concern. The solver proposes other keys; Terraform and CloudFormation are one tab away.",
  },
  {
    page: "heat",
    text: "Keys run from top to bottom, time from left to right. Even noise is good, a bright line is a hot key, a diagonal is a sequential key. The simulator draws the same map from the traffic the design declares.",
  },
  {
    page: "cost",
    text: "The monthly cost by access pattern and pricing option. Move a slider to see its effect. The numbers match `tavola cost` to the cent.",
  },
  {
    page: "time",
    text: "Live changes with old and new values. Drag the time slider back and every page shows the data as of then. Item history and restore are here too.",
  },
  {
    page: "operations",
    text: "Live requests, latency, capacity and conflicts, the most expensive requests, the access log, and which IAM statement allows or denies a request.",
  },
];

/** The step that is shown; null if the tour is not running. */
const step = signal<number | null>(null);

/** Start the tour. */
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
  useCommands([{ id: "tour", title: "Take a tour", group: "General", run: startTour }]);
  const card = useRef<HTMLDivElement>(null);
  const focusedBefore = useRef<HTMLElement | null>(null);
  const at = step.value;
  useEffect(() => {
    if (at === null) {
      if (focusedBefore.current?.isConnected) focusedBefore.current.focus();
      focusedBefore.current = null;
      return;
    }
    focusedBefore.current ??= document.activeElement as HTMLElement | null;
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
      <Prose text={now.text} />
      <div class="row apart">
        <span class="muted small">
          {at + 1} of {STEPS.length}
        </span>
        <span class="row tight">
          <Button kind="quiet" onClick={end}>
            Skip tour
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

// Undoing: what was written last, and the way back; it stays when the drawer is closed.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, problemOf } from "../../../app/api";
import { useCommands } from "../../../app/commands";
import { mayChange } from "../../../app/session";
import type { Problem, UndoRequest } from "../../../generated/api";
import { Button, IconButton, Notice, ProblemNotice } from "../../../parts";
import { reload } from "../state";

interface Last {
  readonly told: string;
  readonly undo: UndoRequest | null;
  readonly problem: Problem | null;
  readonly busy: boolean;
}

/** The last write; null where there is none to take back. */
export const last = signal<Last | null>(null);
/** Counts up when a write was taken back, for whoever shows the item. */
export const undone = signal(0);

/** Remember a write. */
export function remember(told: string, undo: UndoRequest | null): void {
  last.value = { told, undo, problem: null, busy: false };
}

/** Take the last write back. */
export async function takeBack(): Promise<void> {
  const now = last.value;
  if (!now?.undo || now.busy) return;
  last.value = { ...now, busy: true };
  try {
    const done = await call("POST /items/undo", now.undo);
    if (done.outcome === "conflict" || done.outcome === "exists") {
      const detail = "It is not what your write made any more, so it was left as it is.";
      last.value = {
        ...now,
        busy: false,
        undo: null,
        problem: {
          code: "undo-refused",
          title: "Somebody changed it since",
          detail,
          remedy: "Open it and look.",
          status: 409,
        },
      };
    } else {
      last.value = { told: "Taken back.", undo: done.undo, problem: null, busy: false };
    }
    undone.value += 1;
    void reload();
  } catch (thrown) {
    last.value = { ...now, busy: false, problem: problemOf(thrown) };
  }
}

/** The notice of the last write, with the way back. Keys work wherever nobody types. */
export function UndoNotice({ inside, focus }: { inside: boolean; focus: boolean }) {
  const now = last.value;
  const button = useRef<HTMLSpanElement>(null);
  useCommands(
    now?.undo && mayChange.value
      ? [
          {
            id: "undo-write",
            title: "Take the last write back",
            keys: "mod+z",
            group: "Data",
            run: () => void takeBack(),
          },
        ]
      : [],
  );
  useEffect(() => {
    // After a save the hands are on the keys: the next one may be Ctrl-Z or Enter.
    if (focus && now?.undo) button.current?.querySelector("button")?.focus();
  }, [now?.undo, focus]);
  if (!now) return null;
  return (
    <div class={inside ? "" : "data-undo"}>
      {now.problem ? (
        <ProblemNotice problem={now.problem} />
      ) : (
        <Notice
          tone="good"
          actions={
            <span ref={button} class="data-undo-buttons">
              {now.undo && mayChange.value ? (
                <Button small disabled={now.busy} onClick={() => void takeBack()} title="Ctrl Z">
                  {now.told === "Taken back." ? "Do it again" : "Undo"}
                </Button>
              ) : null}
              <IconButton small kind="quiet" label="Dismiss" onClick={() => (last.value = null)}>
                ✕
              </IconButton>
            </span>
          }
        >
          {now.told}
        </Notice>
      )}
    </div>
  );
}

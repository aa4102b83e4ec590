// Undo: the last write and its undo; the notice stays when the drawer is closed.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, problemOf } from "../../../app/api";
import { useCommands } from "../../../app/commands";
import { canEdit } from "../../../app/session";
import type { Problem, UndoRequest } from "../../../generated/api";
import { Button, IconButton, Notice, ProblemNotice } from "../../../parts";
import { reload } from "../state";

interface LastWrite {
  readonly message: string;
  readonly undo: UndoRequest | null;
  readonly problem: Problem | null;
  readonly busy: boolean;
}

/** The message of an undone write. */
export const UNDONE = "Undone.";

/** The last write; null if there is none to undo. */
export const last = signal<LastWrite | null>(null);
/** Counts undone writes, so that the open item reloads. */
export const undoCount = signal(0);

/** Remember a write. */
export function remember(message: string, undo: UndoRequest | null): void {
  last.value = { message, undo, problem: null, busy: false };
}

/** Undo the last write. */
export async function undoWrite(): Promise<void> {
  const now = last.value;
  if (!now?.undo || now.busy) return;
  last.value = { ...now, busy: true };
  try {
    const done = await call("POST /items/undo", now.undo);
    if (done.outcome === "conflict" || done.outcome === "exists") {
      const detail = "The item changed after your write, so it was left as it is.";
      last.value = {
        ...now,
        busy: false,
        undo: null,
        problem: {
          code: "undo-refused",
          title: "Can't undo: the item changed",
          detail,
          remedy: "Open the item to see its current value.",
          status: 409,
        },
      };
    } else {
      last.value = { message: UNDONE, undo: done.undo, problem: null, busy: false };
    }
    undoCount.value += 1;
    void reload();
  } catch (thrown) {
    last.value = { ...now, busy: false, problem: problemOf(thrown) };
  }
}

/** The notice about the last write, with its undo button. */
export function UndoNotice({ inside, focus }: { inside: boolean; focus: boolean }) {
  const now = last.value;
  const button = useRef<HTMLSpanElement>(null);
  useCommands(
    now?.undo && canEdit.value
      ? [
          {
            id: "undo-write",
            title: "Undo the last write",
            keys: "mod+z",
            group: "Data",
            run: () => void undoWrite(),
          },
        ]
      : [],
  );
  useEffect(() => {
    // After a save the user is on the keyboard, and may press Ctrl-Z or Enter next.
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
              {now.undo && canEdit.value ? (
                <Button small disabled={now.busy} onClick={() => void undoWrite()} title="Ctrl Z">
                  {now.message === UNDONE ? "Redo" : "Undo"}
                </Button>
              ) : null}
              <IconButton small kind="quiet" label="Dismiss" onClick={() => (last.value = null)}>
                ✕
              </IconButton>
            </span>
          }
        >
          {now.message}
        </Notice>
      )}
    </div>
  );
}

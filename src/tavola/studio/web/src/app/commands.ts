// Commands: the entries of the command palette and their keyboard shortcuts. A component registers its own while mounted.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Command {
  readonly id: string;
  readonly title: string;
  /** One key or a chord of two: "r", "g d", "mod+s"; "mod" is Ctrl, or ⌘ on a Mac. */
  readonly keys?: string;
  /** Further words to find it by. */
  readonly words?: string;
  /** The heading in the list of shortcuts. */
  readonly group?: string;
  /** Works while the user types, too; only for shortcuts with "mod". */
  readonly always?: boolean;
  readonly run: () => void;
}

export const commands = signal<readonly Command[]>([]);

/** Register commands while a component is mounted. */
export function useCommands(own: readonly Command[]): void {
  const latest = useRef(own);
  latest.current = own;
  const shape = own.map((each) => `${each.id}|${each.title}|${each.keys ?? ""}`).join("\n");
  useEffect(() => {
    const registered = latest.current.map((each) => ({
      ...each,
      run: () => latest.current.find((now) => now.id === each.id)?.run(),
    }));
    commands.value = [...commands.value, ...registered];
    return () => {
      commands.value = commands.value.filter((each) => !registered.includes(each as (typeof registered)[number]));
    };
  }, [shape]);
}

const CHORD_MS = 900;
let chordStart = "";
let chordStartedAt = 0;

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Return the name of a key in the notation of `Command.keys`. */
function keyName(event: KeyboardEvent): string {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const key = event.key === " " ? "space" : event.key.length === 1 ? event.key : event.key.toLowerCase();
  const shift = event.shiftKey && event.key.length > 1 ? "shift+" : "";
  return `${mod ? "mod+" : ""}${event.altKey ? "alt+" : ""}${shift}${mod ? key.toLowerCase() : key}`;
}

/** Return whether the user is typing text, so that letters are not shortcuts. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  if (element.closest("textarea, select, [contenteditable=true]")) return true;
  const input = element.closest("input");
  return input !== null && !["checkbox", "radio", "button", "range"].includes(input.type);
}

/** Run the command of a key; while the user types, only commands with `always`. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || ["Control", "Shift", "Alt", "Meta"].includes(event.key)) return;
  if (isMac ? event.ctrlKey : event.metaKey) return; // a shortcut of the operating system
  const key = keyName(event);
  const typing = isTyping(event.target);
  const chord = chordStart && event.timeStamp - chordStartedAt < CHORD_MS ? `${chordStart} ${key}` : "";
  chordStart = "";
  const inDialog = document.querySelector("[role=dialog][aria-modal=true]") !== null;
  const usable = commands.value.filter((each) => (typing || inDialog ? each.always : true));
  const command = usable.findLast((each) => each.keys === chord) ?? usable.findLast((each) => each.keys === key);
  if (command) {
    event.preventDefault();
    command.run();
  } else if (!typing && usable.some((each) => each.keys?.startsWith(`${key} `))) {
    chordStart = key;
    chordStartedAt = event.timeStamp;
  }
}

/** Return a shortcut as text: "G then D", "Ctrl K". */
export function formatKeys(keys: string): string {
  return keys
    .split(" ")
    .map((key) => key.replace("mod+", isMac ? "⌘" : "Ctrl ").replace("shift+", "⇧ "))
    .map((key) =>
      (key.charAt(0).toUpperCase() + key.slice(1)).replace(/(?<=[ ⌘])[a-z](?=[a-z]*$)/, (letter) =>
        letter.toUpperCase(),
      ),
    )
    .join(" then ");
}

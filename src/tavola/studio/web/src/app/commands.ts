// Commands: what the palette lists and keys do. A part registers its own while it is there.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Command {
  readonly id: string;
  readonly title: string;
  /** One key or a chord of two: "r", "g d", "mod+s"; "mod" is Ctrl, or ⌘ on a Mac. */
  readonly keys?: string;
  /** What else it is found by. */
  readonly words?: string;
  /** What the palette groups it under. */
  readonly group?: string;
  /** Works while somebody types too: for chords with "mod" alone. */
  readonly always?: boolean;
  readonly run: () => void;
}

export const commands = signal<readonly Command[]>([]);

/** Register commands while a part is mounted. */
export function useCommands(given: readonly Command[]): void {
  const latest = useRef(given);
  latest.current = given;
  const shape = given.map((each) => `${each.id}|${each.title}|${each.keys ?? ""}`).join("\n");
  useEffect(() => {
    const mine = latest.current.map((each) => ({
      ...each,
      run: () => latest.current.find((now) => now.id === each.id)?.run(),
    }));
    commands.value = [...commands.value, ...mine];
    return () => {
      commands.value = commands.value.filter((each) => !mine.includes(each as (typeof mine)[number]));
    };
  }, [shape]);
}

const CHORD_MS = 900;
let begun = "";
let begunAt = 0;

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Return a key's name as commands spell it. */
function spelled(event: KeyboardEvent): string {
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const key = event.key === " " ? "space" : event.key.length === 1 ? event.key : event.key.toLowerCase();
  const shift = event.shiftKey && event.key.length > 1 ? "shift+" : "";
  return `${mod ? "mod+" : ""}${event.altKey ? "alt+" : ""}${shift}${mod ? key.toLowerCase() : key}`;
}

/** Tell whether somebody is typing text, so that a letter is a letter. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  if (!element?.closest) return false;
  if (element.closest("textarea, select, [contenteditable=true]")) return true;
  const input = element.closest("input");
  return input !== null && !["checkbox", "radio", "button", "range"].includes(input.type);
}

/** Do what a key is for; a key in a text is left alone unless its command says otherwise. */
export function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || ["Control", "Shift", "Alt", "Meta"].includes(event.key)) return;
  if (isMac ? event.ctrlKey : event.metaKey) return; // the system's own
  const key = spelled(event);
  const typing = isTyping(event.target);
  const chord = begun && event.timeStamp - begunAt < CHORD_MS ? `${begun} ${key}` : "";
  begun = "";
  const inDialog = document.querySelector("[role=dialog][aria-modal=true]") !== null;
  const usable = commands.value.filter((each) => (typing || inDialog ? each.always : true));
  const found = usable.findLast((each) => each.keys === chord) ?? usable.findLast((each) => each.keys === key);
  if (found) {
    event.preventDefault();
    found.run();
  } else if (!typing && usable.some((each) => each.keys?.startsWith(`${key} `))) {
    begun = key;
    begunAt = event.timeStamp;
  }
}

/** Return keys as a person reads them. */
export function shownKeys(keys: string): string {
  return keys
    .split(" ")
    .map((key) => key.replace("mod+", isMac ? "⌘" : "Ctrl ").replace("shift+", "⇧ "))
    .map((key) =>
      (key.charAt(0).toUpperCase() + key.slice(1)).replace(/(?<=[ ⌘])[a-z]$/, (letter) => letter.toUpperCase()),
    )
    .join(" then ");
}

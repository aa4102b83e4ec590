// KeptFocus: a button that is pressed may be gone when its work begins; the focus then goes to the next one, and not out of the dialog.
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Return a ref for the row of a dialog's buttons; whenever the phase changes and the focus is lost, the last of them gets it. */
export function useKeptFocus(phase: string): RefObject<HTMLSpanElement | null> {
  const buttons = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (document.activeElement && document.activeElement !== document.body) return;
    [...(buttons.current?.querySelectorAll<HTMLElement>("button:not(:disabled), a[href]") ?? [])].at(-1)?.focus();
  }, [phase]);
  return buttons;
}

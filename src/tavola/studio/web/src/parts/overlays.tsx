// Overlays: dialogs, drawers and menus. Escape closes the topmost, and focus returns to where it was.
import type { ComponentChildren, RefObject } from "preact";
import { createPortal } from "preact/compat";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button, IconButton } from "./controls";

const FOCUSABLE =
  'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex]:not([tabindex="-1"])';

/** Keep focus inside while the overlay is open, close it on Escape, and return focus afterwards. */
function useFocusTrap(onClose: () => void, options: { modal: boolean }) {
  const inside = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  // Before the overlay is painted: a key pressed as soon as it is visible must not reach what is below it.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const element = inside.current;
    if (!element) return;
    const target =
      element.querySelector<HTMLElement>("[data-autofocus]") ??
      element.querySelector<HTMLElement>(`.body ${FOCUSABLE.split(", ").join(", .body ")}`) ??
      element.querySelector<HTMLElement>(FOCUSABLE);
    target?.focus();
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented) {
        event.preventDefault();
        event.stopPropagation();
        close.current();
      } else if (event.key === "Tab" && options.modal) {
        const all = [...element.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((each) => each.offsetParent !== null);
        const first = all[0];
        const last = all.at(-1);
        if (event.shiftKey && document.activeElement === first) {
          event.preventDefault();
          last?.focus();
        } else if (!event.shiftKey && document.activeElement === last) {
          event.preventDefault();
          first?.focus();
        }
      }
    };
    element.addEventListener("keydown", onKey);
    return () => {
      element.removeEventListener("keydown", onKey);
      if (before?.isConnected) before.focus();
    };
  }, []);
  return inside;
}

/** Return a ref for a dialog's buttons. When the phase changes and the focused button is gone, the last button gets focus, so that focus stays in the dialog. */
export function useButtonFocus(phase: string): RefObject<HTMLSpanElement | null> {
  const buttons = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (document.activeElement && document.activeElement !== document.body) return;
    [...(buttons.current?.querySelectorAll<HTMLElement>("button:not(:disabled), a[href]") ?? [])].at(-1)?.focus();
  }, [phase]);
  return buttons;
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
  wide?: boolean;
}

/** A modal dialog. The element with `data-autofocus` gets focus, else the first one in the body. */
export function Dialog({ title, onClose, children, footer, wide }: DialogProps) {
  const inside = useFocusTrap(onClose, { modal: true });
  const id = useId();
  return createPortal(
    <div class="shade" onMouseDown={(event) => event.target === event.currentTarget && onClose()}>
      <div class={`dialog ${wide ? "wide" : ""}`} role="dialog" aria-modal="true" aria-labelledby={id} ref={inside}>
        <header role="presentation">
          <h2 id={id}>{title}</h2>
          <IconButton kind="quiet" label="Close" onClick={onClose}>
            ✕
          </IconButton>
        </header>
        <div class="body">{children}</div>
        {footer ? <footer role="presentation">{footer}</footer> : null}
      </div>
    </div>,
    document.body,
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  yes: string;
  danger?: boolean;
  onYes: () => void;
  onNo: () => void;
}

/** A confirmation dialog; its text says what will happen. */
export function Confirm({ title, children, yes, danger, onYes, onNo }: ConfirmProps) {
  return (
    <Dialog
      title={title}
      onClose={onNo}
      footer={
        <>
          <Button onClick={onNo}>Cancel</Button>
          <Button kind={danger ? "danger" : "primary"} onClick={onYes} data-autofocus>
            {yes}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}

interface DrawerProps {
  title: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
}

/** A panel at the right edge; the page beside it stays usable. */
export function Drawer({ title, onClose, children, footer }: DrawerProps) {
  const inside = useFocusTrap(onClose, { modal: false });
  const id = useId();
  return createPortal(
    <div class="drawer" role="dialog" aria-labelledby={id} ref={inside}>
      <header role="presentation">
        <h2 id={id} class="cut">
          {title}
        </h2>
        <IconButton kind="quiet" label="Close" onClick={onClose}>
          ✕
        </IconButton>
      </header>
      <div class="body">{children}</div>
      {footer ? <footer role="presentation">{footer}</footer> : null}
    </div>,
    document.body,
  );
}

export interface MenuItem {
  label: string;
  beside?: string;
  disabled?: boolean;
  run: () => void;
}

interface MenuProps {
  label: string;
  items: readonly (MenuItem | null)[];
  small?: boolean;
  kind?: "plain" | "quiet";
  icon?: ComponentChildren;
}

/** A button that opens a list of actions. */
export function Menu({ label, items, small, kind = "plain", icon }: MenuProps) {
  const [open, setOpen] = useState(false);
  const holder = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const button = holder.current?.querySelector("button");
    const menu = list.current;
    if (!open || !button || !menu) return;
    const at = button.getBoundingClientRect();
    const below = innerHeight - at.bottom > menu.offsetHeight + 8 || at.top < menu.offsetHeight + 8;
    menu.style.top = `${below ? at.bottom + 4 : at.top - menu.offsetHeight - 4}px`;
    menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - menu.offsetWidth - 8))}px`;
    menu.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    const away = (event: MouseEvent) => {
      if (!menu.contains(event.target as Node) && !holder.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("mousedown", away);
    return () => removeEventListener("mousedown", away);
  }, [open]);
  const close = () => {
    setOpen(false);
    holder.current?.querySelector("button")?.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if (to !== undefined && all.length) {
      event.preventDefault();
      all[to % all.length]?.focus();
    }
  };
  return (
    <div class="menu-holder" ref={holder}>
      <Button
        small={small ?? false}
        kind={kind}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={icon ? label : undefined}
        title={icon ? label : undefined}
        class={icon ? "icon" : ""}
        onClick={() => setOpen(!open)}
      >
        {icon ?? (
          <>
            {label} <span aria-hidden="true">▾</span>
          </>
        )}
      </Button>
      {open
        ? createPortal(
            <div class="menu" role="menu" id={id} aria-label={label} ref={list} onKeyDown={onKey}>
              {items.map((each, at) =>
                each === null ? (
                  <hr key={at} />
                ) : (
                  <button
                    key={each.label}
                    type="button"
                    role="menuitem"
                    tabIndex={-1}
                    disabled={each.disabled ?? false}
                    onClick={() => {
                      close();
                      each.run();
                    }}
                  >
                    <span>{each.label}</span>
                    {each.beside ? <span class="muted">{each.beside}</span> : null}
                  </button>
                ),
              )}
            </div>,
            document.body,
          )
        : null}
    </div>
  );
}

// Controls: what people press, fill in and choose from.
import type { ButtonHTMLAttributes, ComponentChildren, Ref, TargetedEvent } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

type ButtonKind = "plain" | "primary" | "danger" | "quiet";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "size" | "icon"> {
  kind?: ButtonKind;
  small?: boolean;
  children?: ComponentChildren;
}

export function Button({ kind = "plain", small, class: more, ...rest }: ButtonProps) {
  const names = ["button", kind === "plain" ? "" : kind, small ? "small" : "", String(more ?? "")];
  return <button type="button" class={names.filter(Boolean).join(" ")} {...rest} />;
}

/** A button that shows a sign alone: its label is read out and shown on hover. */
export function IconButton({ label, class: more, ...rest }: ButtonProps & { label: string }) {
  return <Button class={`icon ${String(more ?? "")}`} aria-label={label} title={label} {...rest} />;
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  wrong?: string | null;
  hideLabel?: boolean;
}

/** What any of the fields may be told besides; Preact's own types tie each attribute to an input's type and role. */
interface Shared<E extends HTMLElement> {
  id?: string;
  class?: string;
  disabled?: boolean;
  readOnly?: boolean;
  required?: boolean;
  placeholder?: string;
  autoFocus?: boolean;
  maxLength?: number;
  inputRef?: Ref<E>;
  onKeyDown?: (event: TargetedEvent<E, KeyboardEvent>) => void;
  onBlur?: (event: TargetedEvent<E, FocusEvent>) => void;
  onFocus?: (event: TargetedEvent<E, FocusEvent>) => void;
  onPaste?: (event: TargetedEvent<E, ClipboardEvent>) => void;
  "data-autofocus"?: boolean;
  "aria-controls"?: string;
  title?: string;
}

interface TextInputProps extends FieldProps, Shared<HTMLInputElement> {
  value: string;
  type?: "text" | "search" | "number" | "date" | "datetime-local" | "time" | "password" | "url";
  onInput?: (value: string) => void;
  /** The id of a datalist with suggestions. */
  list?: string;
  inputMode?: "text" | "numeric" | "decimal" | "search";
  min?: number | string;
  max?: number | string;
  step?: number | string;
  mono?: boolean;
}

function Labelled({
  id,
  label,
  hint,
  wrong,
  hideLabel,
  children,
}: FieldProps & { id: string; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id} class={hideLabel ? "hidden-text" : ""}>
        {label}
      </label>
      {children}
      {hint && !wrong ? (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      ) : null}
      {wrong ? (
        <span class="wrong" id={`${id}-hint`} role="alert">
          {wrong}
        </span>
      ) : null}
    </div>
  );
}

export function TextInput({
  label,
  hint,
  wrong,
  hideLabel,
  onInput,
  mono,
  class: more,
  inputRef,
  type = "text",
  ...rest
}: TextInputProps) {
  const made = useId();
  const id = rest.id ?? made;
  return (
    <Labelled id={id} label={label} hint={hint} wrong={wrong ?? null} hideLabel={hideLabel ?? false}>
      <input
        autocomplete="off"
        spellcheck={false}
        {...rest}
        {
          ...({ type } as { type: "text" }) /* Preact ties other attributes to each type; ours go with all of these */
        }
        ref={inputRef}
        id={id}
        class={`input ${mono ? "mono" : ""} ${String(more ?? "")}`}
        aria-invalid={wrong ? "true" : undefined}
        aria-describedby={hint || wrong ? `${id}-hint` : undefined}
        onInput={(event) => onInput?.(event.currentTarget.value)}
      />
    </Labelled>
  );
}

interface TextAreaProps extends FieldProps, Shared<HTMLTextAreaElement> {
  value: string;
  rows?: number;
  onInput?: (value: string) => void;
  mono?: boolean;
}

export function TextArea({
  label,
  hint,
  wrong,
  hideLabel,
  onInput,
  mono,
  class: more,
  inputRef,
  ...rest
}: TextAreaProps) {
  const made = useId();
  const id = rest.id ?? made;
  return (
    <Labelled id={id} label={label} hint={hint} wrong={wrong ?? null} hideLabel={hideLabel ?? false}>
      <textarea
        spellcheck={false}
        {...rest}
        ref={inputRef}
        id={id}
        class={`input ${mono ? "mono" : ""} ${String(more ?? "")}`}
        aria-invalid={wrong ? "true" : undefined}
        aria-describedby={hint || wrong ? `${id}-hint` : undefined}
        onInput={(event) => onInput?.(event.currentTarget.value)}
      />
    </Labelled>
  );
}

export interface Option {
  value: string;
  label: string;
  disabled?: boolean;
}

interface SelectProps extends FieldProps, Omit<Shared<HTMLSelectElement>, "readOnly" | "placeholder" | "maxLength"> {
  value: string;
  options: readonly Option[];
  onChange: (value: string) => void;
}

export function Select({
  label,
  hint,
  wrong,
  hideLabel,
  options,
  value,
  onChange,
  class: more,
  inputRef,
  ...rest
}: SelectProps) {
  const made = useId();
  const id = rest.id ?? made;
  return (
    <Labelled id={id} label={label} hint={hint} wrong={wrong ?? null} hideLabel={hideLabel ?? false}>
      <select
        {...rest}
        ref={inputRef}
        id={id}
        class={`input ${String(more ?? "")}`}
        value={value}
        aria-describedby={hint || wrong ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((each) => (
          <option key={each.value} value={each.value} disabled={each.disabled ?? false} selected={each.value === value}>
            {each.label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface CheckboxProps {
  label: string;
  checked: boolean;
  /** Neither all nor none of what it stands for. */
  some?: boolean;
  disabled?: boolean;
  hideLabel?: boolean;
  tabIndex?: number;
  onChange: (checked: boolean) => void;
  onClick?: (event: TargetedEvent<HTMLInputElement, MouseEvent>) => void;
}

export function Checkbox({ label, checked, some, onChange, hideLabel, ...rest }: CheckboxProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        {...rest}
        checked={checked}
        indeterminate={some ?? false}
        aria-label={hideLabel ? label : undefined}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {hideLabel ? null : <span>{label}</span>}
    </label>
  );
}

/** A few ways of which one is chosen; arrow keys move, as in a group of radio buttons. */
export function Segmented({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly Option[];
  value: string;
  onChange: (value: string) => void;
}) {
  const move = (event: KeyboardEvent) => {
    const step =
      event.key === "ArrowRight" || event.key === "ArrowDown"
        ? 1
        : event.key === "ArrowLeft" || event.key === "ArrowUp"
          ? -1
          : 0;
    if (!step) return;
    event.preventDefault();
    const at = options.findIndex((each) => each.value === value);
    const next = options[(at + step + options.length) % options.length];
    if (!next) return;
    onChange(next.value);
    const group = event.currentTarget as HTMLElement;
    requestAnimationFrame(() => group.querySelector<HTMLElement>("[aria-checked=true]")?.focus());
  };
  return (
    <div class="segmented" role="radiogroup" aria-label={label} onKeyDown={move}>
      {options.map((each) => (
        <button
          key={each.value}
          type="button"
          role="radio"
          aria-checked={each.value === value}
          tabIndex={
            each.value === value || (!options.some((other) => other.value === value) && each === options[0]) ? 0 : -1
          }
          disabled={each.disabled ?? false}
          onClick={() => onChange(each.value)}
        >
          {each.label}
        </button>
      ))}
    </div>
  );
}

export interface Tab extends Option {
  title?: string;
}

/** Tabs over one panel; arrow keys move. A value that no tab has shows the first as chosen. `onHover` tells which is pointed at or focused. */
export function Tabs({
  label,
  tabs,
  value,
  onChange,
  onHover,
  panel,
}: {
  label: string;
  tabs: readonly Tab[];
  value: string;
  onChange: (value: string) => void;
  onHover?: (value: string | null) => void;
  /** The id of the panel below. */
  panel?: string;
}) {
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    tabs.findIndex((each) => each.value === value),
  );
  const chosen = tabs[at]?.value;
  const labels = tabs.map((each) => each.label).join("\n");
  useEffect(() => {
    // Not scrollIntoView: that would scroll the page too, when tabs above or below what is read get another label.
    const row = list.current;
    const tab = row?.querySelector<HTMLElement>("[aria-selected=true]");
    if (!row || !tab) return;
    const [outer, inner] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
    if (inner.left < outer.left) row.scrollLeft -= Math.ceil(outer.left - inner.left);
    else if (inner.right > outer.right) row.scrollLeft += Math.ceil(inner.right - outer.right);
  }, [chosen, labels]);
  const move = (event: KeyboardEvent) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    if (!next) return;
    onChange(next.value);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>("[aria-selected=true]")?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move} ref={list}>
      {tabs.map((each) => (
        <button
          key={each.value}
          type="button"
          role="tab"
          title={each.title}
          aria-selected={each.value === chosen}
          aria-controls={panel}
          tabIndex={each.value === chosen ? 0 : -1}
          onClick={() => onChange(each.value)}
          onMouseEnter={() => onHover?.(each.value)}
          onMouseLeave={() => onHover?.(null)}
          onFocus={() => onHover?.(each.value)}
          onBlur={() => onHover?.(null)}
        >
          {each.label}
        </button>
      ))}
    </div>
  );
}

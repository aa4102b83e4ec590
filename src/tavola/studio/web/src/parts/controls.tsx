// Controls: buttons, form fields, tabs.
import type { ButtonHTMLAttributes, ComponentChildren, Ref, TargetedEvent } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "size" | "icon"> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  small?: boolean;
  children?: ComponentChildren;
}

export function Button({ kind = "plain", small, class: more, ...rest }: ButtonProps) {
  const names = ["button", kind === "plain" ? "" : kind, small ? "small" : "", String(more ?? "")];
  return <button type="button" class={names.filter(Boolean).join(" ")} {...rest} />;
}

/** A button with an icon instead of text; screen readers and the tooltip give its label. */
export function IconButton({ label, class: more, ...rest }: ButtonProps & { label: string }) {
  return <Button class={`icon ${String(more ?? "")}`} aria-label={label} title={label} {...rest} />;
}

interface FieldProps<E extends HTMLElement> {
  label: string;
  hint?: ComponentChildren;
  error?: string | null;
  hideLabel?: boolean;
  id?: string;
  class?: string;
  disabled?: boolean;
  readOnly?: boolean;
  required?: boolean;
  placeholder?: string;
  mono?: boolean;
  title?: string;
  name?: string;
  autocomplete?: string;
  inputRef?: Ref<E>;
  onKeyDown?: (event: TargetedEvent<E, KeyboardEvent>) => void;
  "data-autofocus"?: boolean;
}

/** Return the attributes that all kinds of field share, and a function that puts the label and hint around the control. */
function useField<E extends HTMLElement>(props: FieldProps<E>) {
  const { label, hint, error, hideLabel, mono, class: more, inputRef, id: givenId, ...rest } = props;
  const generatedId = useId();
  const id = givenId ?? generatedId;
  const note = error || hint;
  return {
    attributes: {
      ...rest,
      ref: inputRef,
      id,
      class: `input ${mono ? "mono" : ""} ${more ?? ""}`,
      "aria-invalid": error ? ("true" as const) : undefined,
      "aria-describedby": note ? `${id}-hint` : undefined,
    },
    wrap: (control: ComponentChildren) => (
      <div class="field">
        <label for={id} class={hideLabel ? "hidden-text" : ""}>
          {label}
        </label>
        {control}
        {note ? (
          <span class={error ? "wrong" : "hint"} id={`${id}-hint`} role={error ? "alert" : undefined}>
            {note}
          </span>
        ) : null}
      </div>
    ),
  };
}

interface TextInputProps extends FieldProps<HTMLInputElement> {
  value: string;
  type?: "text" | "search" | "number" | "date" | "password";
  onInput?: (value: string) => void;
  /** The id of a datalist with suggestions. */
  list?: string;
  inputMode?: "text" | "numeric" | "decimal" | "search";
  min?: number | string;
}

export function TextInput({ onInput, type = "text", value, list, inputMode, min, ...props }: TextInputProps) {
  const { attributes, wrap } = useField(props);
  return wrap(
    <input
      autocomplete="off"
      spellcheck={false}
      {...attributes}
      {
        ...({ type, value, list, inputMode, min } as { type: "text" }) /* Preact's types tie attributes to each type */
      }
      onInput={(event) => onInput?.(event.currentTarget.value)}
    />,
  );
}

interface TextAreaProps extends FieldProps<HTMLTextAreaElement> {
  value: string;
  rows?: number;
  onInput?: (value: string) => void;
}

export function TextArea({ onInput, value, rows, ...props }: TextAreaProps) {
  const { attributes, wrap } = useField(props);
  return wrap(
    <textarea
      spellcheck={false}
      {...attributes}
      value={value}
      rows={rows}
      onInput={(event) => onInput?.(event.currentTarget.value)}
    />,
  );
}

export interface Option {
  value: string;
  label: string;
  disabled?: boolean;
}

/** Return options whose labels are their values. */
export function plainOptions(values: readonly string[]): Option[] {
  return values.map((value) => ({ value, label: value }));
}

interface SelectProps extends Omit<FieldProps<HTMLSelectElement>, "readOnly" | "placeholder"> {
  value: string;
  options: readonly Option[];
  onChange: (value: string) => void;
}

export function Select({ options, value, onChange, ...props }: SelectProps) {
  const { attributes, wrap } = useField(props);
  return wrap(
    <select {...attributes} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map((each) => (
        <option key={each.value} value={each.value} disabled={each.disabled ?? false} selected={each.value === value}>
          {each.label}
        </option>
      ))}
    </select>,
  );
}

interface CheckboxProps {
  label: string;
  checked: boolean;
  title?: string;
  onChange: (checked: boolean) => void;
}

export function Checkbox({ label, checked, title, onChange }: CheckboxProps) {
  return (
    <label class="check" title={title}>
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

interface SegmentedProps {
  label: string;
  options: readonly Option[];
  value: string;
  onChange: (value: string) => void;
}

/** A row of options, one of them selected; arrow keys move the selection, as in a group of radio buttons. */
export function Segmented({ label, options, value, onChange }: SegmentedProps) {
  const known = options.some((each) => each.value === value);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
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
          tabIndex={each.value === value || (!known && each === options[0]) ? 0 : -1}
          disabled={each.disabled ?? false}
          onClick={() => onChange(each.value)}
        >
          {each.label}
        </button>
      ))}
    </div>
  );
}

interface TabsProps {
  label: string;
  tabs: readonly (Option & { title?: string })[];
  /** A value that no tab has selects the first. */
  value: string;
  onChange: (value: string) => void;
  /** Called with the tab under the pointer or with focus, and with null when there is none. */
  onHover?: (value: string | null) => void;
  /** The id of the panel below. */
  panel?: string;
}

/** Tabs over one panel; arrow keys move. */
export function Tabs({ label, tabs, value, onChange, onHover, panel }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    tabs.findIndex((each) => each.value === value),
  );
  const selected = tabs[at]?.value;
  const labels = tabs.map((each) => each.label).join("\n");
  useEffect(() => {
    // Not scrollIntoView: that would scroll the page too, when the labels of tabs above or below the view change.
    const row = list.current;
    const tab = row?.querySelector<HTMLElement>("[aria-selected=true]");
    if (!row || !tab) return;
    const [outer, inner] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
    if (inner.left < outer.left) row.scrollLeft -= Math.ceil(outer.left - inner.left);
    else if (inner.right > outer.right) row.scrollLeft += Math.ceil(inner.right - outer.right);
  }, [selected, labels]);
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
          aria-selected={each.value === selected}
          aria-controls={panel}
          tabIndex={each.value === selected ? 0 : -1}
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

// ValueCell: the control that edits one value, by its type; long text opens in a dialog.
import { useState } from "preact/hooks";
import type { FieldDesign } from "../../../generated/api";
import { base64Bytes, Button, Confirm, Dialog, download, epochText, Notice, valueText } from "../../../parts";
import { isContainer, type Node } from "./tree";
import { formatBytes, formatNumber, formatCount } from "../../../format";

const INLINE_MAX = 200; // longer text is edited in a dialog

interface CellProps {
  node: Node;
  label: string;
  field: FieldDesign | undefined;
  readOnly: boolean;
  hasError: boolean;
  onChange: () => void;
  onToggle: () => void;
  onAdd: () => void;
}

export function ValueCell({ node, label, field, readOnly, hasError, onChange, onToggle, onAdd }: CellProps) {
  const [, redraw] = useState(0);
  const [expanded, setExpanded] = useState(false);
  const edit = (text: string) => {
    node.text = text;
    redraw((before) => before + 1);
    onChange();
  };
  const longText = expanded ? (
    <LongText node={node} label={label} readOnly={readOnly} onChange={edit} onClose={() => setExpanded(false)} />
  ) : null;
  if (isContainer(node.tag))
    return <Members node={node} label={label} readOnly={readOnly} onToggle={onToggle} onAdd={onAdd} />;
  if (node.tag === "NULL") return <span class="data-editor-quiet">null</span>;
  if (node.tag === "BOOL") {
    return (
      <select
        class="input"
        aria-label={label}
        data-part="value"
        disabled={readOnly}
        value={node.truth ? "true" : "false"}
        onChange={(event) => {
          node.truth = event.currentTarget.value === "true";
          redraw((before) => before + 1);
          onChange();
        }}
      >
        <option value="true">true</option>
        <option value="false">false</option>
      </select>
    );
  }
  if (field?.choices && !readOnly && (node.tag === "S" || node.tag === "N")) {
    const choices = field.choices.map(String);
    const known = choices.includes(node.text);
    return (
      <select
        class="input"
        aria-label={label}
        aria-invalid={hasError ? "true" : undefined}
        data-part="value"
        value={node.text}
        onChange={(event) => edit(event.currentTarget.value)}
      >
        {known ? null : <option value={node.text}>{node.text || "(empty)"}</option>}
        {choices.map((each) => (
          <option key={each} value={each} selected={each === node.text}>
            {each}
          </option>
        ))}
      </select>
    );
  }
  if (node.text.length > INLINE_MAX || /[\r\n]/.test(node.text)) {
    const preview =
      node.tag === "B"
        ? `${formatNumber(base64Bytes(node.text))} bytes`
        : valueText({ S: node.text.replace(/[\r\n]+/g, " ⏎ ") }, 90);
    return (
      <>
        <button
          type="button"
          class="input data-editor-long"
          data-part="value"
          aria-label={`${label}: ${readOnly ? "show" : "edit"} ${formatNumber(node.text.length)} characters`}
          onClick={() => setExpanded(true)}
        >
          <span class="cut">{preview}</span>
          <span class="muted">{formatNumber(node.text.length)} characters</span>
        </button>
        {longText}
      </>
    );
  }
  return (
    <>
      <input
        class={`input ${node.tag === "S" ? "" : "mono"}`}
        data-part="value"
        aria-label={label}
        aria-invalid={hasError ? "true" : undefined}
        autocomplete="off"
        spellcheck={false}
        value={node.text}
        readOnly={readOnly}
        title={node.tag === "N" ? epochText(node.text) || undefined : undefined}
        placeholder={node.tag === "B" ? "base64" : node.tag === "S" ? "empty string" : ""}
        onInput={(event) => edit(event.currentTarget.value)}
        onDblClick={() => (node.tag === "S" || node.tag === "B") && setExpanded(true)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && event.altKey) {
            event.preventDefault();
            setExpanded(true);
          }
        }}
      />
      {longText}
    </>
  );
}

function Members({
  node,
  label,
  readOnly,
  onToggle,
  onAdd,
}: Pick<CellProps, "node" | "label" | "readOnly" | "onToggle" | "onAdd">) {
  const count = node.children.length;
  return (
    <span class="data-editor-members">
      <button
        type="button"
        class="button small quiet"
        data-part="value"
        aria-label={label}
        aria-expanded={node.open}
        onClick={onToggle}
      >
        {node.open ? "▾" : "▸"} {formatCount(count, "element")}
      </button>
      {readOnly ? null : (
        <button
          type="button"
          class="button small quiet"
          aria-label={`Add an element to ${label.replace(/^Value of /, "")}`}
          onClick={onAdd}
        >
          + Add
        </button>
      )}
    </span>
  );
}

interface LongTextProps {
  node: Node;
  label: string;
  readOnly: boolean;
  onChange: (text: string) => void;
  onClose: () => void;
}

/** A dialog for long text or binary. */
function LongText({ node, label, readOnly, onChange, onClose }: LongTextProps) {
  const breaks = lineBreaksOf(node.text);
  const [text, setText] = useState(node.text);
  const [confirming, setConfirming] = useState(false);
  const binary = node.tag === "B";
  // A text area has only one kind of line break, and would change text that mixes them.
  const fixed = readOnly || breaks === "mixed";
  const close = () => (text === node.text ? onClose() : setConfirming(true));
  const load = async (file: File | undefined) => {
    if (!file) return;
    const data = new Uint8Array(await file.arrayBuffer());
    let binaryText = "";
    for (let at = 0; at < data.length; at += 0x8000)
      binaryText += String.fromCharCode(...data.subarray(at, at + 0x8000));
    setText(btoa(binaryText));
  };
  return (
    <Dialog
      wide
      title={label}
      onClose={close}
      footer={
        <>
          <span class="muted grow">
            {formatNumber(text.length)} characters{binary ? `, ${formatBytes(base64Bytes(text))}` : ""}
          </span>
          {binary ? (
            <Button
              disabled={!/^[A-Za-z0-9+/]*={0,2}$/.test(text)}
              onClick={() =>
                download("value.bin", new Blob([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))]))
              }
            >
              Download
            </Button>
          ) : null}
          <Button onClick={onClose}>{fixed ? "Close" : "Cancel"}</Button>
          {fixed ? null : (
            <Button
              kind="primary"
              onClick={() => {
                onChange(text);
                onClose();
              }}
            >
              Apply
            </Button>
          )}
        </>
      }
    >
      <div
        class="stack"
        onKeyDown={(event) => {
          // Ctrl S saves the item behind this dialog, including what is typed here.
          if (!(event.ctrlKey || event.metaKey) || event.key !== "s" || fixed) return;
          onChange(text);
          onClose();
        }}
      >
        {binary && !readOnly ? (
          <label class="field">
            <span>Load from a file</span>
            <input type="file" onChange={(event) => void load(event.currentTarget.files?.[0])} />
          </label>
        ) : null}
        {breaks === "mixed" && !readOnly ? (
          <Notice tone="warning">
            This text mixes line endings, which a text area can't preserve. Edit the item as JSON, where \r and \n are
            escaped.
          </Notice>
        ) : null}
        <textarea
          class="input mono data-editor-large"
          aria-label={label}
          spellcheck={false}
          value={text}
          readOnly={fixed}
          data-autofocus
          onInput={(event) =>
            setText(breaks === "\r\n" ? event.currentTarget.value.replace(/\n/g, "\r\n") : event.currentTarget.value)
          }
        />
      </div>
      {confirming ? (
        <Confirm title="Discard changes?" yes="Discard" danger onYes={onClose} onNo={() => setConfirming(false)}>
          <p>Your changes to this value have not been applied.</p>
        </Confirm>
      ) : null}
    </Dialog>
  );
}

/** Return the line breaks of a text, or "mixed", which a text area cannot preserve. */
function lineBreaksOf(text: string): "\n" | "\r\n" | "mixed" {
  if (!text.includes("\r")) return "\n";
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? "mixed" : "\r\n";
}

// ValueCell: one value of an item under somebody's hands, by its type; what is long is edited in a window of its own.
import { useState } from "preact/hooks";
import type { EntityField } from "../../../generated/api";
import { base64Bytes, bytes, Button, Confirm, Dialog, download, epochText, Notice, num, shown } from "../../../parts";
import { isContainer, type Node } from "./tree";

const INLINE_MAX = 200; // characters that a line of text takes

interface CellProps {
  node: Node;
  label: string;
  field: EntityField | undefined;
  readOnly: boolean;
  wrong: boolean;
  onChange: () => void;
  onToggle: () => void;
  onAdd: () => void;
}

export function ValueCell({ node, label, field, readOnly, wrong, onChange, onToggle, onAdd }: CellProps) {
  const [, redraw] = useState(0);
  const [large, setLarge] = useState(false);
  const typed = (text: string) => {
    node.text = text;
    redraw((before) => before + 1);
    onChange();
  };
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
    const known = field.choices.includes(node.text);
    return (
      <select
        class="input"
        aria-label={label}
        aria-invalid={wrong ? "true" : undefined}
        data-part="value"
        value={node.text}
        onChange={(event) => typed(event.currentTarget.value)}
      >
        {known ? null : <option value={node.text}>{node.text || "(empty)"}</option>}
        {field.choices.map((each) => (
          <option key={each} value={each} selected={each === node.text}>
            {each}
          </option>
        ))}
      </select>
    );
  }
  if (node.text.length > INLINE_MAX || /[\r\n]/.test(node.text)) {
    const told =
      node.tag === "B"
        ? `${num(base64Bytes(node.text))} bytes`
        : shown({ S: node.text.replace(/[\r\n]+/g, " ⏎ ") }, 90);
    return (
      <>
        <button
          type="button"
          class="input data-editor-long"
          data-part="value"
          aria-label={`${label}: ${readOnly ? "show" : "edit"} ${num(node.text.length)} characters`}
          onClick={() => setLarge(true)}
        >
          <span class="cut">{told}</span>
          <span class="muted">{num(node.text.length)} characters</span>
        </button>
        {large ? (
          <Large node={node} label={label} readOnly={readOnly} onChange={typed} onClose={() => setLarge(false)} />
        ) : null}
      </>
    );
  }
  return (
    <>
      <input
        class={`input ${node.tag === "S" ? "" : "mono"}`}
        data-part="value"
        aria-label={label}
        aria-invalid={wrong ? "true" : undefined}
        autocomplete="off"
        spellcheck={false}
        value={node.text}
        readOnly={readOnly}
        title={node.tag === "N" ? epochText(node.text) || undefined : undefined}
        placeholder={node.tag === "B" ? "base64" : node.tag === "S" ? "empty text" : ""}
        onInput={(event) => typed(event.currentTarget.value)}
        onDblClick={() => (node.tag === "S" || node.tag === "B") && setLarge(true)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && event.altKey) {
            event.preventDefault();
            setLarge(true);
          }
        }}
      />
      {large ? (
        <Large node={node} label={label} readOnly={readOnly} onChange={typed} onClose={() => setLarge(false)} />
      ) : null}
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
        {node.open ? "▾" : "▸"} {count === 1 ? "1 member" : `${num(count)} members`}
      </button>
      {readOnly ? null : (
        <button
          type="button"
          class="button small quiet"
          aria-label={`Add a member to ${label.replace(/^Value of /, "")}`}
          onClick={onAdd}
        >
          + Add
        </button>
      )}
    </span>
  );
}

/** A long text, or bytes, in a window: one text area however long it is. */
function Large({
  node,
  label,
  readOnly,
  onChange,
  onClose,
}: {
  node: Node;
  label: string;
  readOnly: boolean;
  onChange: (text: string) => void;
  onClose: () => void;
}) {
  const breaks = breaksOf(node.text);
  const [text, setText] = useState(node.text);
  const [asking, setAsking] = useState(false);
  const binary = node.tag === "B";
  // A text area knows one kind of line break; a text that has two would come out of it as another.
  const fixed = readOnly || breaks === "mixed";
  const close = () => (text === node.text ? onClose() : setAsking(true));
  const load = async (file: File | undefined) => {
    if (!file) return;
    const data = new Uint8Array(await file.arrayBuffer());
    let told = "";
    for (let at = 0; at < data.length; at += 0x8000) told += String.fromCharCode(...data.subarray(at, at + 0x8000));
    setText(btoa(told));
  };
  return (
    <Dialog
      wide
      title={label}
      onClose={close}
      footer={
        <>
          <span class="muted grow">
            {num(text.length)} characters{binary ? `, ${bytes(base64Bytes(text))}` : ""}
          </span>
          {binary ? (
            <Button
              disabled={!/^[A-Za-z0-9+/]*={0,2}$/.test(text)}
              onClick={() =>
                download("value.bin", new Blob([Uint8Array.from(atob(text), (each) => each.charCodeAt(0))]))
              }
            >
              Keep as a file
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
              Take it over
            </Button>
          )}
        </>
      }
    >
      <div
        class="stack"
        onKeyDown={(event) => {
          // Ctrl S saves the item that stands behind this window: with what is typed here.
          if (!(event.ctrlKey || event.metaKey) || event.key !== "s" || fixed) return;
          onChange(text);
          onClose();
        }}
      >
        {binary && !readOnly ? (
          <label class="field">
            <span>Load the bytes of a file</span>
            <input type="file" onChange={(event) => void load(event.currentTarget.files?.[0])} />
          </label>
        ) : null}
        {breaks === "mixed" && !readOnly ? (
          <Notice tone="warning">
            Its lines end in different ways, which a text area cannot keep. Edit it as JSON, where \r and \n are written
            out.
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
      {asking ? (
        <Confirm title="Drop what you typed?" yes="Drop it" danger onYes={onClose} onNo={() => setAsking(false)}>
          <p>The text was changed and not taken over.</p>
        </Confirm>
      ) : null}
    </Dialog>
  );
}

/** Return how the lines of a text end: in one way, or in more than a text area can keep. */
function breaksOf(text: string): "\n" | "\r\n" | "mixed" {
  if (!text.includes("\r")) return "\n";
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? "mixed" : "\r\n";
}

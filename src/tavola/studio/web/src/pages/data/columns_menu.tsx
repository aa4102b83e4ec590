// ColumnsMenu: which attributes are columns; the choice is in the URL.
import { useState } from "preact/hooks";
import { Button, Checkbox, Dialog, TextInput } from "../../parts";

const SHOWN = 200;

export function ColumnsMenu({
  all,
  chosen,
  onChoose,
}: {
  all: readonly string[];
  chosen: readonly string[];
  onChoose: (names: readonly string[] | null) => void;
}) {
  const [open, setOpen] = useState(false);
  const [find, setFind] = useState("");
  const wanted = all.filter((name) => name.toLowerCase().includes(find.toLowerCase()));
  const toggle = (name: string, on: boolean) =>
    onChoose(on ? [...chosen, name] : chosen.filter((each) => each !== name));
  return (
    <>
      <Button small kind="quiet" onClick={() => setOpen(true)}>
        Columns
      </Button>
      {open ? (
        <Dialog
          title="Columns"
          onClose={() => setOpen(false)}
          footer={
            <>
              <Button onClick={() => onChoose(null)}>Choose for me</Button>
              <Button kind="primary" onClick={() => setOpen(false)}>
                Done
              </Button>
            </>
          }
        >
          <div class="stack">
            <TextInput label="Find an attribute" type="search" value={find} onInput={setFind} data-autofocus />
            <ul class="data-columns">
              {wanted.slice(0, SHOWN).map((name) => (
                <li key={name}>
                  <Checkbox label={name} checked={chosen.includes(name)} onChange={(on) => toggle(name, on)} />
                </li>
              ))}
            </ul>
            {wanted.length > SHOWN ? (
              <p class="small muted">{wanted.length - SHOWN} more; type a part of the name.</p>
            ) : null}
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

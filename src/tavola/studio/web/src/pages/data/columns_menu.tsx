// ColumnsMenu: chooses the columns of the grid; the choice is in the URL.
import { useState } from "preact/hooks";
import { Button, Checkbox, Dialog, TextInput } from "../../parts";

const NAMES_MAX = 200;

interface ColumnsMenuProps {
  all: readonly string[];
  chosen: readonly string[];
  onChoose: (names: readonly string[] | null) => void;
}

export function ColumnsMenu({ all, chosen, onChoose }: ColumnsMenuProps) {
  const [open, setOpen] = useState(false);
  const [find, setFind] = useState("");
  const matching = all.filter((name) => name.toLowerCase().includes(find.toLowerCase()));
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
              <Button onClick={() => onChoose(null)}>Reset to default</Button>
              <Button kind="primary" onClick={() => setOpen(false)}>
                Done
              </Button>
            </>
          }
        >
          <div class="stack">
            <TextInput label="Find attributes" type="search" value={find} onInput={setFind} data-autofocus />
            <ul class="data-columns">
              {matching.slice(0, NAMES_MAX).map((name) => (
                <li key={name}>
                  <Checkbox label={name} checked={chosen.includes(name)} onChange={(on) => toggle(name, on)} />
                </li>
              ))}
            </ul>
            {matching.length > NAMES_MAX ? (
              <p class="small muted">{matching.length - NAMES_MAX} more. Type part of a name to narrow the list.</p>
            ) : null}
          </div>
        </Dialog>
      ) : null}
    </>
  );
}

// Grid: all rows in one array, of which only those in view are on the page; moved in and chosen from by keyboard or mouse.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { asOf } from "../../app/as_of";
import type { TableSummary } from "../../generated/api";
import { Menu, type MenuItem } from "../../parts";
import {
  CHECK_WIDTH,
  ENTITY_WIDTH,
  EntityChip,
  GroupTold,
  ItemCells,
  MENU_WIDTH,
  partitionOf,
  type RowLook,
  type Totals,
} from "./cells";
import type { Column } from "./columns";
import type { Group } from "./groups";
import { isKeyed, keyId, keyOf, projectedBy, type Way } from "./keys";
import { groupOf, linesOf } from "./lines";
import type { Row } from "./rows";
import { groups, openItem, opened, pointedIndex, reading, readMore, rows, select, selection } from "./state";

const ROW = 30;
const SPARE = 5; // lines beyond each edge, so that a quick scroll shows no gap
const PIXELS_MAX = 15_000_000; // browsers lose precision past this; then one pixel of scrolling is several of content

interface Cursor {
  readonly line: number;
  readonly column: number;
}

/** The grid of a table's rows. `menuOf` gives what can be done with a row. */
export function Grid({
  table,
  way,
  columns,
  flat,
  menuOf,
}: {
  table: TableSummary;
  way: Way;
  columns: readonly Column[];
  flat: boolean;
  menuOf: (row: Row) => readonly (MenuItem | null)[];
}) {
  const all = rows.value;
  const grouped = groups.value;
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set());
  const [exact, setExact] = useState<ReadonlyMap<string, Totals>>(new Map());
  const [cursor, setCursor] = useState<Cursor>({ line: 0, column: 0 });
  const [view, setView] = useState({ top: 0, height: 600 });
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef(-1); // where a range of the selection begins
  const id = useId();
  const lines = useMemo(() => linesOf(grouped, folded, flat), [grouped, folded, flat]);

  // Another reading: what was folded and counted was of the rows before.
  const begun = all.length === 0;
  useEffect(() => {
    if (!begun) return;
    setFolded(new Set());
    setExact(new Map());
    setCursor({ line: 0, column: 0 });
    anchor.current = -1;
    if (box.current) box.current.scrollTop = 0;
  }, [begun]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const watching = new ResizeObserver(measure);
    watching.observe(element);
    measure();
    return () => watching.disconnect();
  }, []);

  const arrived = reading.value.arrived;
  useLayoutEffect(() => {
    if (!arrived) return;
    void box.current?.offsetHeight; // lays the rows out now, so that the measure has it all
    performance.measure("tavola:grid", { start: arrived, end: performance.now() });
  }, [arrived]);

  const whole = lines.length * ROW;
  const scale = whole > PIXELS_MAX ? whole / PIXELS_MAX : 1;
  const top = view.top * scale;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);
  const last = Math.min(lines.length, Math.ceil((top + view.height) / ROW) + SPARE);
  const near = lines.length > 0 && last >= lines.length - SPARE;
  useEffect(() => {
    if (near) void readMore();
  }, [near, lines.length]);

  const pointed =
    pointedIndex.value !== null && pointedIndex.value !== way.index
      ? table.indexes.findIndex((each) => each.name === pointedIndex.value)
      : -1;
  const pointedTo = table.indexes[pointed];
  const look: RowLook = { columns, way, projected: pointedTo ? projectedBy(table, pointedTo) : null };

  const rowAt = (line: number): Row | undefined => {
    const number = lines[line];
    return number === undefined || number < 0 ? undefined : all[number];
  };
  const groupAt = (line: number): number => {
    const number = lines[line] ?? 0;
    return number < 0 ? -1 - number : groupOf(grouped, number);
  };
  const fold = (at: number, on?: boolean) => {
    const group = grouped[at];
    if (!group) return;
    const next = new Set(folded);
    if (on ?? !next.has(group.first)) next.add(group.first);
    else next.delete(group.first);
    setFolded(next);
  };
  const rowsOf = (group: Group | undefined) => (group ? all.slice(group.first, group.first + group.count) : []);
  const isSelected = (row: Row) => selection.value.has(keyId(table, row.item));

  const toggle = (line: number, range: boolean) => {
    const row = rowAt(line);
    if (!row) {
      const members = rowsOf(grouped[groupAt(line)]);
      select(members, !members.every(isSelected));
      return;
    }
    if (range && anchor.current >= 0) {
      const [from, to] = anchor.current < line ? [anchor.current, line] : [line, anchor.current];
      const between: Row[] = [];
      for (let at = from; at <= to; at += 1) {
        const each = rowAt(at);
        if (each) between.push(each);
      }
      select(between, true);
      return;
    }
    select([row], !isSelected(row));
    anchor.current = line;
  };

  const reveal = (line: number) => {
    const element = box.current;
    if (!element) return;
    const at = (line * ROW) / scale;
    const room = element.clientHeight - ROW * 3; // the head and the group that stays at the top
    if (at < element.scrollTop + ROW) element.scrollTop = Math.max(0, at - ROW);
    else if (at > element.scrollTop + room) element.scrollTop = at - room;
  };
  const revealColumn = (column: number) => {
    const element = box.current;
    if (!element) return;
    const left = columns.slice(0, column).reduce((sum, each) => sum + each.width, CHECK_WIDTH + ENTITY_WIDTH);
    const right = left + (columns[column]?.width ?? 0);
    if (left < element.scrollLeft) element.scrollLeft = column === 0 ? 0 : left;
    else if (right > element.scrollLeft + element.clientWidth)
      element.scrollLeft = right - element.clientWidth + MENU_WIDTH;
  };
  const move = (line: number, column: number) => {
    const to = {
      line: Math.max(0, Math.min(lines.length - 1, line)),
      column: Math.max(0, Math.min(columns.length - 1, column)),
    };
    setCursor(to);
    reveal(to.line);
    revealColumn(to.column);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.altKey) return;
    const page = Math.max(1, Math.floor(view.height / ROW) - 2);
    const { line, column } = cursor;
    const head = (lines[line] ?? 0) < 0;
    const far = event.ctrlKey || event.metaKey;
    switch (event.key) {
      case "ArrowDown":
      case "ArrowUp": {
        const to = line + (event.key === "ArrowDown" ? 1 : -1);
        if (event.shiftKey) {
          if (anchor.current < 0) anchor.current = line;
          if (rowAt(line)) select([rowAt(line) as Row], true);
          if (rowAt(to)) select([rowAt(to) as Row], true);
        }
        move(to, column);
        break;
      }
      case "ArrowRight":
        if (head) fold(groupAt(line), false);
        else move(line, column + 1);
        break;
      case "ArrowLeft":
        if (head) fold(groupAt(line), true);
        else move(line, column - 1);
        break;
      case "PageDown":
        move(line + page, column);
        break;
      case "PageUp":
        move(line - page, column);
        break;
      case "Home":
        move(far ? 0 : line, far ? column : 0);
        break;
      case "End":
        move(far ? lines.length - 1 : line, far ? column : columns.length - 1);
        break;
      case "Enter": {
        const row = rowAt(line);
        if (!row) fold(groupAt(line));
        else if (isKeyed(table, row.item)) openItem(keyOf(table, row.item));
        break;
      }
      case " ":
        toggle(line, event.shiftKey);
        break;
      default:
        return;
    }
    event.preventDefault();
  };

  const count = async (row: Row) => {
    const key = partitionOf(row, way);
    const text = JSON.stringify(key);
    try {
      const told = await call("POST /browse/collection", {
        table: table.name,
        key,
        index: way.index || null,
        as_of: asOf.value || null,
      });
      setExact((before) => new Map(before).set(text, told));
    } catch (thrown) {
      reading.value = { ...reading.value, problem: problemOf(thrown) };
    }
  };

  const width = columns.reduce((sum, each) => sum + each.width, CHECK_WIDTH + ENTITY_WIDTH + MENU_WIDTH);
  const offset = scale === 1 ? first * ROW : view.top - (top - first * ROW);
  const cell = (line: number, column: number) => `${id}-${line}-${column}`;
  const inView = cursor.line >= first && cursor.line < last && lines.length > 0;
  const openKey = opened.value.kind === "item" ? keyId(table, opened.value.key) : "";

  const renderGroup = (at: number, line: number | null) => {
    const group = grouped[at];
    const row = group ? all[group.first] : undefined;
    if (!group || !row) return null;
    const shut = folded.has(group.first);
    const known = exact.get(JSON.stringify(partitionOf(row, way)));
    const content = (
      <>
        <button
          type="button"
          class="data-fold"
          tabIndex={-1}
          aria-label={shut ? "Unfold" : "Fold"}
          aria-expanded={!shut}
          onClick={() => fold(at)}
        >
          {shut ? "▸" : "▾"}
        </button>
        <GroupTold row={row} group={group} way={way} exact={known} onExact={() => void count(row)} />
      </>
    );
    if (line === null) return <div class="data-line group">{content}</div>;
    return (
      <div
        key={`g${group.first}`}
        role="row"
        aria-level={1}
        aria-rowindex={line + 2}
        aria-expanded={!shut}
        class={`data-line group ${inView && cursor.line === line ? "cursor" : ""}`}
        style={{ minWidth: `${width}px` }}
        onMouseDown={() => setCursor({ line, column: 0 })}
      >
        <div
          role="gridcell"
          class="data-group-cell"
          id={cursor.line === line ? cell(line, 0) : undefined}
          aria-colspan={columns.length + 3}
        >
          {content}
        </div>
      </div>
    );
  };

  const renderRow = (number: number, line: number) => {
    const row = all[number];
    if (!row) return null;
    const key = keyId(table, row.item);
    const keyed = isKeyed(table, row.item);
    const chosen = keyed && selection.value.has(key);
    const lit = pointed >= 0 && row.indexes ? (row.indexes.includes(pointed) ? "lit" : "out") : "";
    const at = cursor.line === line;
    return (
      <div
        key={number}
        role="row"
        aria-level={flat ? 1 : 2}
        aria-rowindex={line + 2}
        aria-selected={chosen}
        class={`data-line item ${chosen ? "chosen" : ""} ${lit} ${at ? "cursor" : ""} ${key === openKey ? "open" : ""}`}
        style={{ width: `${width}px` }}
        data-row={number}
        onMouseDown={() => setCursor({ line, column: cursor.column })}
        onClick={(event) => {
          if (keyed && !(event.target as Element).closest("a, button, input")) openItem(keyOf(table, row.item));
        }}
      >
        <div role="gridcell" class="data-check">
          <input
            type="checkbox"
            tabIndex={-1}
            checked={chosen}
            disabled={!keyed}
            title={keyed ? undefined : "The statement did not ask for the whole key, so this row stands for no item"}
            aria-label="Select this item"
            onClick={(event) => {
              toggle(line, event.shiftKey);
              // What is chosen is in the selection; the box shows it when that has changed.
              event.currentTarget.checked = selection.value.has(key);
            }}
          />
        </div>
        <div role="gridcell" class="data-entity">
          <EntityChip row={row} />
        </div>
        <ItemCells row={row} look={look} cursor={at ? cursor.column : -1} idOf={(column) => cell(line, column)} />
        <div role="gridcell" class="data-more">
          {keyed ? <Menu label="What to do with this item" small kind="quiet" icon="⋯" items={menuOf(row)} /> : null}
        </div>
      </div>
    );
  };

  const body = [];
  for (let line = first; line < last; line += 1) {
    const number = lines[line] ?? 0;
    body.push(number < 0 ? renderGroup(-1 - number, line) : renderRow(number, line));
  }
  const topLine = Math.min(lines.length - 1, Math.floor(top / ROW));
  const pinned = !flat && lines.length > 0 && view.top > 0 && (lines[topLine] ?? -1) >= 0 ? groupAt(topLine) : -1;
  const allChosen = all.length > 0 && selection.value.size >= all.length;

  return (
    <div
      class={`data-grid ${pointed >= 0 ? "pointing" : ""}`}
      ref={box}
      role="treegrid"
      tabIndex={0}
      aria-label={`Items of ${table.name}`}
      aria-rowcount={lines.length + 1}
      aria-colcount={columns.length + 3}
      aria-multiselectable="true"
      aria-activedescendant={inView ? cell(cursor.line, (lines[cursor.line] ?? 0) < 0 ? 0 : cursor.column) : undefined}
      onKeyDown={onKey}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div role="row" aria-rowindex={1} class="data-head" style={{ width: `${width}px` }}>
        <div role="columnheader" class="data-check">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label="Select all rows that were read"
            checked={allChosen}
            indeterminate={!allChosen && selection.value.size > 0}
            onChange={() => select(all, !allChosen)}
          />
        </div>
        <div role="columnheader" class="data-entity">
          Entity
        </div>
        {columns.map((column) => (
          <div
            key={column.name}
            role="columnheader"
            class={`data-cell ${column.key ? "key" : ""} ${look.projected && !look.projected.has(column.name) ? "faint" : ""}`}
            style={{ width: `${column.width}px` }}
            title={column.title}
          >
            {column.name}
          </div>
        ))}
        <div role="columnheader" class="data-more">
          <span class="hidden-text">More</span>
        </div>
      </div>
      {pinned >= 0 ? (
        <div class="data-pinned" aria-hidden="true">
          {renderGroup(pinned, null)}
        </div>
      ) : null}
      <div role="rowgroup" class="data-space" style={{ height: `${Math.min(whole, PIXELS_MAX)}px` }}>
        <div role="presentation" class="data-window" style={{ transform: `translateY(${offset}px)` }}>
          {body}
        </div>
      </div>
    </div>
  );
}

/** Tell how many of the rows read are in an index; null where the rows do not tell. */
export function countMembers(index: number): number | null {
  let count = 0;
  for (const row of rows.value) {
    if (row.indexes === null) return null;
    if (row.indexes.includes(index)) count += 1;
  }
  return count;
}

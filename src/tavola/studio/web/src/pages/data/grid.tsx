// Grid: the items, of which only those in view are in the document; navigable by keyboard and mouse.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, problemOf } from "../../app/api";
import { asOf } from "../../app/as_of";
import type { TableSummary } from "../../generated/api";
import { Menu, type MenuItem, useVirtualWindow } from "../../parts";
import {
  CHECK_WIDTH,
  ENTITY_WIDTH,
  EntityChip,
  GroupSummary,
  ItemCells,
  MENU_WIDTH,
  partitionOf,
  type RowStyle,
  type Totals,
} from "./cells";
import type { Column } from "./columns";
import type { Group } from "./groups";
import { hasKey, keyId, keyOf, projectedBy, type AccessKey } from "./keys";
import { groupOf, linesOf } from "./lines";
import type { Row } from "./rows";
import { groups, openItem, opened, hoveredIndex, reading, readMore, rows, select, selection } from "./state";

const ROW_PX = 30;
const SPARE_LINES = 5; // rendered beyond each edge, so that a quick scroll shows no gap

interface Cursor {
  readonly line: number;
  readonly column: number;
}

interface GridProps {
  table: TableSummary;
  access: AccessKey;
  columns: readonly Column[];
  flat: boolean;
  menuOf: (row: Row) => readonly (MenuItem | null)[];
}

/** The grid of items. `menuOf` returns the actions on a row. */
export function Grid({ table, access, columns, flat, menuOf }: GridProps) {
  const all = rows.value;
  const grouped = groups.value;
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(new Set());
  const [exact, setExact] = useState<ReadonlyMap<string, Totals>>(new Map());
  const [cursor, setCursor] = useState<Cursor>({ line: 0, column: 0 });
  const box = useRef<HTMLDivElement>(null);
  const anchor = useRef(-1); // the first line of a range selection
  const id = useId();
  const lines = useMemo(() => linesOf(grouped, collapsed, flat), [grouped, collapsed, flat]);

  // A new query: what was collapsed and counted belongs to the rows before.
  const isEmpty = all.length === 0;
  useEffect(() => {
    if (!isEmpty) return;
    setCollapsed(new Set());
    setExact(new Map());
    setCursor({ line: 0, column: 0 });
    anchor.current = -1;
    if (box.current) box.current.scrollTop = 0;
  }, [isEmpty]);

  const { view, top, scale, first, last, nearEnd, onScroll, spaceStyle, windowStyle } = useVirtualWindow(
    box,
    lines.length,
    ROW_PX,
    SPARE_LINES,
  );

  const arrived = reading.value.arrived;
  useLayoutEffect(() => {
    if (!arrived) return;
    void box.current?.offsetHeight; // forces layout now, so that the measurement includes it
    performance.measure("tavola:grid", { start: arrived, end: performance.now() });
  }, [arrived]);

  useEffect(() => {
    if (nearEnd) void readMore();
  }, [nearEnd, lines.length]);

  const hovered =
    hoveredIndex.value !== null && hoveredIndex.value !== access.index
      ? table.indexes.findIndex((each) => each.name === hoveredIndex.value)
      : -1;
  const hoveredSummary = table.indexes[hovered];
  const rowStyle: RowStyle = { columns, access, projected: hoveredSummary ? projectedBy(table, hoveredSummary) : null };

  const rowAt = (line: number): Row | undefined => {
    const number = lines[line];
    return number === undefined || number < 0 ? undefined : all[number];
  };
  const groupAt = (line: number): number => {
    const number = lines[line] ?? 0;
    return number < 0 ? -1 - number : groupOf(grouped, number);
  };
  const collapse = (at: number, on?: boolean) => {
    const group = grouped[at];
    if (!group) return;
    const next = new Set(collapsed);
    if (on ?? !next.has(group.first)) next.add(group.first);
    else next.delete(group.first);
    setCollapsed(next);
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
    const at = (line * ROW_PX) / scale;
    const space = element.clientHeight - ROW_PX * 3; // below the header row and the pinned group
    if (at < element.scrollTop + ROW_PX) element.scrollTop = Math.max(0, at - ROW_PX);
    else if (at > element.scrollTop + space) element.scrollTop = at - space;
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
    const page = Math.max(1, Math.floor(view.height / ROW_PX) - 2);
    const { line, column } = cursor;
    const isGroup = (lines[line] ?? 0) < 0;
    const isFar = event.ctrlKey || event.metaKey;
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
        if (isGroup) collapse(groupAt(line), false);
        else move(line, column + 1);
        break;
      case "ArrowLeft":
        if (isGroup) collapse(groupAt(line), true);
        else move(line, column - 1);
        break;
      case "PageDown":
        move(line + page, column);
        break;
      case "PageUp":
        move(line - page, column);
        break;
      case "Home":
        move(isFar ? 0 : line, isFar ? column : 0);
        break;
      case "End":
        move(isFar ? lines.length - 1 : line, isFar ? column : columns.length - 1);
        break;
      case "Enter": {
        const row = rowAt(line);
        if (!row) collapse(groupAt(line));
        else if (hasKey(table, row.item)) openItem(keyOf(table, row.item));
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
    const key = partitionOf(row, access);
    const text = JSON.stringify(key);
    try {
      const totals = await call("POST /browse/collection", {
        table: table.name,
        key,
        index: access.index || null,
        as_of: asOf.value || null,
      });
      setExact((before) => new Map(before).set(text, totals));
    } catch (thrown) {
      reading.value = { ...reading.value, problem: problemOf(thrown) };
    }
  };

  const width = columns.reduce((sum, each) => sum + each.width, CHECK_WIDTH + ENTITY_WIDTH + MENU_WIDTH);
  const cell = (line: number, column: number) => `${id}-${line}-${column}`;
  const inView = cursor.line >= first && cursor.line < last && lines.length > 0;
  const openKey = opened.value.kind === "item" ? keyId(table, opened.value.key) : "";

  const renderGroup = (at: number, line: number | null) => {
    const group = grouped[at];
    const row = group ? all[group.first] : undefined;
    if (!group || !row) return null;
    const isCollapsed = collapsed.has(group.first);
    const known = exact.get(JSON.stringify(partitionOf(row, access)));
    const content = (
      <>
        <button
          type="button"
          class="data-collapse"
          tabIndex={-1}
          aria-label={isCollapsed ? "Expand" : "Collapse"}
          aria-expanded={!isCollapsed}
          onClick={() => collapse(at)}
        >
          {isCollapsed ? "▸" : "▾"}
        </button>
        <GroupSummary row={row} group={group} access={access} exact={known} onExact={() => void count(row)} />
      </>
    );
    if (line === null) return <div class="data-line group">{content}</div>;
    return (
      <div
        key={`g${group.first}`}
        role="row"
        aria-level={1}
        aria-rowindex={line + 2}
        aria-expanded={!isCollapsed}
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
    const canOpen = hasKey(table, row.item);
    const selected = canOpen && selection.value.has(key);
    const membership = hovered >= 0 && row.indexes ? (row.indexes.includes(hovered) ? "member" : "non-member") : "";
    const at = cursor.line === line;
    return (
      <div
        key={number}
        role="row"
        aria-level={flat ? 1 : 2}
        aria-rowindex={line + 2}
        aria-selected={selected}
        class={`data-line item ${selected ? "selected" : ""} ${membership} ${at ? "cursor" : ""} ${key === openKey ? "open" : ""}`}
        style={{ width: `${width}px` }}
        data-row={number}
        onMouseDown={() => setCursor({ line, column: cursor.column })}
        onClick={(event) => {
          if (canOpen && !(event.target as Element).closest("a, button, input")) openItem(keyOf(table, row.item));
        }}
      >
        <div role="gridcell" class="data-check">
          <input
            type="checkbox"
            tabIndex={-1}
            checked={selected}
            disabled={!canOpen}
            title={canOpen ? undefined : "The statement did not return the whole key, so this item can't be opened"}
            aria-label="Select item"
            onClick={(event) => {
              toggle(line, event.shiftKey);
              // The selection is the source of truth; set the box to it at once.
              event.currentTarget.checked = selection.value.has(key);
            }}
          />
        </div>
        <div role="gridcell" class="data-entity">
          <EntityChip row={row} />
        </div>
        <ItemCells
          row={row}
          rowStyle={rowStyle}
          cursor={at ? cursor.column : -1}
          idOf={(column) => cell(line, column)}
        />
        <div role="gridcell" class="data-more">
          {canOpen ? <Menu label="Item actions" small kind="quiet" icon="⋯" items={menuOf(row)} /> : null}
        </div>
      </div>
    );
  };

  const body = [];
  for (let line = first; line < last; line += 1) {
    const number = lines[line] ?? 0;
    body.push(number < 0 ? renderGroup(-1 - number, line) : renderRow(number, line));
  }
  const topLine = Math.min(lines.length - 1, Math.floor(top / ROW_PX));
  const pinned = !flat && lines.length > 0 && view.top > 0 && (lines[topLine] ?? -1) >= 0 ? groupAt(topLine) : -1;
  const allSelected = all.length > 0 && selection.value.size >= all.length;

  return (
    <div
      class={`data-grid ${hovered >= 0 ? "highlighting" : ""}`}
      ref={box}
      role="treegrid"
      tabIndex={0}
      aria-label={`Items of ${table.name}`}
      aria-rowcount={lines.length + 1}
      aria-colcount={columns.length + 3}
      aria-multiselectable="true"
      aria-activedescendant={inView ? cell(cursor.line, (lines[cursor.line] ?? 0) < 0 ? 0 : cursor.column) : undefined}
      onKeyDown={onKey}
      onScroll={onScroll}
    >
      <div role="row" aria-rowindex={1} class="data-head" style={{ width: `${width}px` }}>
        <div role="columnheader" class="data-check">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label="Select all loaded rows"
            checked={allSelected}
            indeterminate={!allSelected && selection.value.size > 0}
            onChange={() => select(all, !allSelected)}
          />
        </div>
        <div role="columnheader" class="data-entity">
          Entity
        </div>
        {columns.map((column) => (
          <div
            key={column.name}
            role="columnheader"
            class={`data-cell ${column.key ? "key" : ""} ${rowStyle.projected && !rowStyle.projected.has(column.name) ? "faint" : ""}`}
            style={{ width: `${column.width}px` }}
            title={column.title}
          >
            {column.name}
          </div>
        ))}
        <div role="columnheader" class="data-more">
          <span class="hidden-text">Actions</span>
        </div>
      </div>
      {pinned >= 0 ? (
        <div class="data-pinned" aria-hidden="true">
          {renderGroup(pinned, null)}
        </div>
      ) : null}
      <div role="rowgroup" class="data-space" style={spaceStyle}>
        <div role="presentation" class="data-window" style={windowStyle}>
          {body}
        </div>
      </div>
    </div>
  );
}

/** Return how many of the loaded rows are in an index; null if the rows do not say. */
export function countMembers(index: number): number | null {
  let count = 0;
  for (const row of rows.value) {
    if (row.indexes === null) return null;
    if (row.indexes.includes(index)) count += 1;
  }
  return count;
}

// Cells: one line of the grid: the head of a group, or an item with its entity, its key taken apart and its attributes.
import { href } from "../../app/router";
import type { Item, KeyPiece } from "../../generated/api";
import { bytes, colourOf, epochText, num, shown, taken } from "../../parts";
import type { Column } from "./columns";
import type { Group } from "./groups";
import { held, partOf, type Way } from "./keys";
import { piecesOf, type Row } from "./rows";
import { writeConditions } from "./state";

export const CHECK_WIDTH = 34;
export const ENTITY_WIDTH = 128;
export const MENU_WIDTH = 34;

/** Return the address of a collection: all items with these values of a partition key. */
export function collectionHref(index: string, key: Item): string {
  const conditions = Object.entries(key).map(([attribute, value]) => ({
    attribute,
    operator: "=" as const,
    values: [value],
  }));
  return href({ params: { index, q: writeConditions(conditions), item: null, sql: null } });
}

/** Return a group's partition key. */
export function partitionOf(row: Row, way: Way): Item {
  return partOf(row.item, way.hash);
}

const TEXT_MOST = 90;

/** A key's pieces: what the template says is grey, what the item says is not; a piece says its field when pointed at. */
export function Pieces({ pieces }: { pieces: readonly KeyPiece[] }) {
  return (
    <>
      {pieces.map((piece, at) =>
        piece.value === null || piece.value === undefined ? (
          <i key={at}>{piece.text}</i>
        ) : (
          <b key={at} title={piece.field ? `${piece.field} = ${piece.value.slice(0, 300)}` : undefined}>
            {piece.text.length > TEXT_MOST ? `${piece.text.slice(0, TEXT_MOST)}…` : piece.text}
          </b>
        ),
      )}
    </>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  guard: "guard",
  marker: "marker",
  guess: "",
  entity: "",
  unknown: "unknown",
};

/** An entity's chip in one element: a thousand of them are on their way past. */
export function EntityChip({ row }: { row: Row }) {
  const { entity, kind, note } = row.entity;
  const word = KINDS[kind] ?? "";
  const name = entity ? (word ? `${entity} ${word}` : entity) : word;
  return (
    <span
      class={`chip ${kind === "entity" ? "" : "guess"}`}
      style={{ "--chip": entity ? colourOf(entity) : "var(--muted)" }}
      title={note || undefined}
      data-entity={entity ?? ""}
      data-kind={kind}
    >
      {name}
    </span>
  );
}

export interface RowLook {
  readonly columns: readonly Column[];
  readonly way: Way;
  /** What the pointed index holds; null: everything, or no index is pointed at. */
  readonly projected: ReadonlySet<string> | null;
}

/** The cells of an item after its chip; `cursor` is the column that the keyboard is at. */
export function ItemCells({
  row,
  look,
  cursor,
  idOf,
}: {
  row: Row;
  look: RowLook;
  cursor: number;
  idOf: (column: number) => string;
}) {
  return (
    <>
      {look.columns.map((column, at) => {
        const value = held(row.item, column.name);
        const faint = value !== undefined && look.projected !== null && !look.projected.has(column.name);
        const style = { width: `${column.width}px` };
        const names = `data-cell ${column.key ? "key" : ""} ${faint ? "faint" : ""} ${cursor === at ? "cursor" : ""}`;
        if (value === undefined)
          return (
            <div
              key={column.name}
              role="gridcell"
              id={cursor === at ? idOf(at) : undefined}
              class={`${names} absent`}
              style={style}
              data-name={column.name}
            />
          );
        const [tag, inside] = taken(value);
        const parts = column.key ? piecesOf(row, column.name) : null;
        const content = parts ? <Pieces pieces={parts} /> : shown(value, TEXT_MOST);
        const time = tag === "N" ? epochText(inside as string) : "";
        const long = tag === "S" && (inside as string).length > 30 && !parts ? (inside as string).slice(0, 600) : "";
        return (
          <div
            key={column.name}
            role="gridcell"
            id={cursor === at ? idOf(at) : undefined}
            class={`${names} ${tag}`}
            style={style}
            title={time || long || undefined}
            data-name={column.name}
          >
            {column.leads === null ? (
              content
            ) : (
              <a href={collectionHref(column.leads, { [column.name]: value })} tabIndex={-1}>
                {content}
              </a>
            )}
          </div>
        );
      })}
    </>
  );
}

export interface Totals {
  readonly count: number;
  readonly bytes: number;
  readonly units: number;
  readonly whole: boolean;
}

/** What a group's head says: its key, how many, how large, and what reading all of it takes. */
export function GroupTold({
  row,
  group,
  way,
  exact,
  onExact,
}: {
  row: Row;
  group: Group;
  way: Way;
  exact: Totals | undefined;
  onExact?: () => void;
}) {
  const told = exact ?? group;
  const least = told.whole ? "" : "≥ ";
  const key = partitionOf(row, way);
  return (
    <>
      <a class="data-group-key" href={collectionHref(way.index, key)} tabIndex={-1} title="Only this collection">
        {way.hash.map(({ name }) => {
          const parts = piecesOf(row, name);
          const value = held(row.item, name);
          return (
            <span key={name} class="data-group-part">
              {way.hash.length > 1 ? <i>{name} </i> : null}
              {parts ? <Pieces pieces={parts} /> : value ? <b>{shown(value, TEXT_MOST)}</b> : null}
            </span>
          );
        })}
      </a>
      <span
        class="data-group-numbers"
        title={
          told.whole
            ? "All items with this key, and what reading them at once takes"
            : "At least: not everything with this key was read"
        }
      >
        {least}
        {num(told.count)} {told.count === 1 ? "item" : "items"} · {least}
        {bytes(told.bytes)} · {least}
        {num(told.units)} RCU
      </span>
      {!told.whole && onExact ? (
        <button
          type="button"
          class="data-exact"
          tabIndex={-1}
          onClick={onExact}
          title="Read the whole collection to count it"
        >
          count it
        </button>
      ) : null}
    </>
  );
}

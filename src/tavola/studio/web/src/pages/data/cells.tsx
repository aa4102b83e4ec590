// Cells: the content of a line of the grid: the head of an item collection, or an item with its entity, key and attributes.
import { href } from "../../app/router";
import type { Item, KeyPiece } from "../../generated/api";
import { colourOf, epochText, splitValue, valueText } from "../../parts";
import type { Column } from "./columns";
import type { Group } from "./groups";
import { attributeOf, partOf, type AccessKey } from "./keys";
import { piecesOf, type Row } from "./rows";
import { writeConditions } from "./state";
import { formatBytes, formatCount, formatNumber } from "../../format";

export const CHECK_WIDTH = 34;
export const ENTITY_WIDTH = 128;
export const MENU_WIDTH = 34;

/** Return the URL of an item collection: all items with this partition key. */
export function collectionHref(index: string, key: Item): string {
  const conditions = Object.entries(key).map(([attribute, value]) => ({
    attribute,
    operator: "=" as const,
    values: [value],
  }));
  return href({ params: { index, q: writeConditions(conditions), item: null, sql: null } });
}

/** Return the partition key of a row in an index or the table. */
export function partitionOf(row: Row, access: AccessKey): Item {
  return partOf(row.item, access.hash);
}

const LENGTH_MAX = 90;

/** A key split by its template: literals are grey; a field's value has its name as a tooltip. */
export function Pieces({ pieces }: { pieces: readonly KeyPiece[] }) {
  return (
    <>
      {pieces.map((piece, at) =>
        piece.value === null || piece.value === undefined ? (
          <i key={at}>{piece.text}</i>
        ) : (
          <b key={at} title={piece.field ? `${piece.field} = ${piece.value.slice(0, 300)}` : undefined}>
            {piece.text.length > LENGTH_MAX ? `${piece.text.slice(0, LENGTH_MAX)}…` : piece.text}
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

/** An entity's chip as a single element, since scrolling renders thousands of them. */
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

export interface RowStyle {
  readonly columns: readonly Column[];
  readonly access: AccessKey;
  /** The attributes that the highlighted index projects; null if all, or if none is highlighted. */
  readonly projected: ReadonlySet<string> | null;
}

interface ItemCellsProps {
  row: Row;
  rowStyle: RowStyle;
  cursor: number;
  idOf: (column: number) => string;
}

/** The attribute cells of an item; `cursor` is the column with the keyboard cursor. */
export function ItemCells({ row, rowStyle, cursor, idOf }: ItemCellsProps) {
  return (
    <>
      {rowStyle.columns.map((column, at) => {
        const value = attributeOf(row.item, column.name);
        const faint = value !== undefined && rowStyle.projected !== null && !rowStyle.projected.has(column.name);
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
        const [tag, raw] = splitValue(value);
        const parts = column.key ? piecesOf(row, column.name) : null;
        const content = parts ? <Pieces pieces={parts} /> : valueText(value, LENGTH_MAX);
        const time = tag === "N" ? epochText(raw as string) : "";
        const long = tag === "S" && (raw as string).length > 30 && !parts ? (raw as string).slice(0, 600) : "";
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
            {column.collectionIndex === null ? (
              content
            ) : (
              <a href={collectionHref(column.collectionIndex, { [column.name]: value })} tabIndex={-1}>
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

interface GroupSummaryProps {
  row: Row;
  group: Group;
  access: AccessKey;
  exact: Totals | undefined;
  onExact?: () => void;
}

/** The head of an item collection: its key, item count, size, and the capacity to read it. */
export function GroupSummary({ row, group, access, exact, onExact }: GroupSummaryProps) {
  const totals = exact ?? group;
  const prefix = totals.whole ? "" : "≥ ";
  const key = partitionOf(row, access);
  return (
    <>
      <a
        class="data-group-key"
        href={collectionHref(access.index, key)}
        tabIndex={-1}
        title="Show only this item collection"
      >
        {access.hash.map(({ name }) => {
          const parts = piecesOf(row, name);
          const value = attributeOf(row.item, name);
          return (
            <span key={name} class="data-group-part">
              {access.hash.length > 1 ? <i>{name} </i> : null}
              {parts ? <Pieces pieces={parts} /> : value ? <b>{valueText(value, LENGTH_MAX)}</b> : null}
            </span>
          );
        })}
      </a>
      <span
        class="data-group-numbers"
        title={
          totals.whole
            ? "All items with this partition key, and the capacity to read them in one Query"
            : "At least: not all items with this partition key were read"
        }
      >
        {prefix}
        {formatCount(totals.count, "item")} · {prefix}
        {formatBytes(totals.bytes)} · {prefix}
        {formatNumber(totals.units)} read units
      </span>
      {!totals.whole && onExact ? (
        <button
          type="button"
          class="data-exact"
          tabIndex={-1}
          onClick={onExact}
          title="Read the whole item collection to count it"
        >
          {" "}
          count{" "}
        </button>
      ) : null}
    </>
  );
}

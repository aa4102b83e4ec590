// Layout: the positions of the nodes in three columns. All heights are fixed, so that the lines can be drawn without measuring.
import type { EntityPicture, IndexPicture, KeyPicture, TablePicture } from "../../generated/api";

export const GAP = 10;
/** Left edge and width of each column, in hundredths of the drawing's width. */
export const COLUMNS = { entity: [0, 22], key: [28, 38], index: [72, 28] } as const;

export type NodeKind = keyof typeof COLUMNS;

interface Placed<T> {
  readonly node: T;
  readonly top: number;
  readonly height: number;
}

export interface Link {
  readonly id: string;
  readonly entity: string;
  readonly key: string;
  readonly index: string;
  readonly path: string;
}

export interface Layout {
  readonly entities: readonly Placed<EntityPicture>[];
  readonly keys: readonly Placed<KeyPicture>[];
  readonly indexes: readonly Placed<IndexPicture>[];
  readonly links: readonly Link[];
  readonly height: number;
}

export const HEIGHTS = { entity: 50, index: 50 } as const;

/** Return the height of a key's node: a row for each half, and one for its notes. */
export function keyHeight(key: KeyPicture): number {
  const more = key.key.sparse || key.members.length > 0 || key.shards !== "";
  return 14 + 18 * ((key.key.range.length ? 2 : 1) + (more ? 1 : 0));
}

/** Return the layout: keys in order, entities and indexes as close to their keys as there is space. */
export function layout(table: TablePicture): Layout {
  const keys: Placed<KeyPicture>[] = [];
  let at = 0;
  for (const entity of table.entities) {
    for (const key of table.keys.filter((each) => each.entity === entity.id)) {
      keys.push({ node: key, top: at, height: keyHeight(key) });
      at += keyHeight(key) + GAP;
    }
    if (keys.length) at += GAP;
  }
  const entities = placeBeside(table.entities, HEIGHTS.entity, (entity) =>
    keys.filter((each) => each.node.entity === entity.id),
  );
  const indexes = placeBeside(table.indexes, HEIGHTS.index, (index) =>
    keys.filter((each) => each.node.index === index.id),
  );
  const height = Math.max(...[...keys, ...entities, ...indexes].map((each) => each.top + each.height), HEIGHTS.entity);
  return { entities, keys, indexes, links: links(entities, keys, indexes), height };
}

/** Place nodes beside the middle of their keys, in order, without overlaps. */
function placeBeside<T>(
  nodes: readonly T[],
  height: number,
  beside: (node: T) => readonly Placed<KeyPicture>[],
): Placed<T>[] {
  const wanted = nodes.map((node, order) => {
    const near = beside(node);
    const middle = near.length
      ? near.reduce((sum, each) => sum + each.top + each.height / 2, 0) / near.length
      : Number.POSITIVE_INFINITY;
    return { node, order, middle };
  });
  wanted.sort((one, other) => one.middle - other.middle || one.order - other.order);
  const placed: Placed<T>[] = [];
  let free = 0;
  for (const each of wanted) {
    const top = Number.isFinite(each.middle) ? Math.max(free, each.middle - height / 2) : free;
    placed.push({ node: each.node, top, height });
    free = top + height + GAP;
  }
  return placed;
}

function links(
  entities: readonly Placed<EntityPicture>[],
  keys: readonly Placed<KeyPicture>[],
  indexes: readonly Placed<IndexPicture>[],
): Link[] {
  const result: Link[] = [];
  for (const key of keys) {
    const entity = entities.find((each) => each.node.id === key.node.entity);
    const index = indexes.find((each) => each.node.id === key.node.index);
    if (!entity || !index) continue;
    const middle = (place: Placed<unknown>) => place.top + place.height / 2;
    const first = curve(COLUMNS.entity[0] + COLUMNS.entity[1], middle(entity), COLUMNS.key[0], middle(key));
    const second = curve(COLUMNS.key[0] + COLUMNS.key[1], middle(key), COLUMNS.index[0], middle(index));
    result.push({
      id: key.node.id,
      entity: entity.node.id,
      key: key.node.id,
      index: index.node.id,
      path: `${first} ${second}`,
    });
  }
  return result;
}

function curve(fromX: number, fromY: number, toX: number, toY: number): string {
  const half = (fromX + toX) / 2;
  return `M${fromX} ${fromY}C${half} ${fromY} ${half} ${toY} ${toX} ${toY}`;
}

/** Return a node and all nodes linked to it. */
export function family(drawn: Layout, id: string): ReadonlySet<string> {
  const related = new Set([id]);
  for (const link of drawn.links) {
    if ([link.entity, link.key, link.index].includes(id))
      for (const each of [link.entity, link.key, link.index]) related.add(each);
  }
  return related;
}

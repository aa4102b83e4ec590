// Tree: an item as rows that people edit: every value a node, changed in place, so that a key press costs one node and not ten thousand.
import type { AttributeValue, Item, ItemIssue } from "../../../generated/api";
import { type Tag, taken } from "../../../parts";

export interface Node {
  readonly id: number;
  parent: Node | null;
  /** Of an attribute or a member of a map; "" in lists and sets. */
  name: string;
  tag: Tag;
  /** Of a text, number or binary. */
  text: string;
  truth: boolean;
  /** Of a list, map or set. */
  children: Node[];
  open: boolean;
  /** What it held as another type, and what was made of that: so a type that was chosen by mistake costs nothing. */
  past: {
    readonly tag: Tag;
    readonly text: string;
    readonly truth: boolean;
    readonly children: Node[];
    readonly made: string;
  }[];
}

/** A row of the view: a node at its depth, or what is wrong with the node above. */
export interface TreeRow {
  readonly node: Node;
  readonly depth: number;
  readonly flaw: ItemIssue | null;
}

export const CONTAINERS: readonly Tag[] = ["L", "M", "SS", "NS", "BS"];
const SETS: readonly Tag[] = ["SS", "NS", "BS"];
const OPEN_MAX = 12; // members that a container shows by itself; larger ones are opened by hand

let lastId = 0;

export function isSet(tag: Tag): boolean {
  return SETS.includes(tag);
}

export function isContainer(tag: Tag): boolean {
  return CONTAINERS.includes(tag);
}

/** Return the type of a set's members. */
export function memberTag(tag: Tag): Tag {
  return tag[0] as Tag;
}

function fresh(parent: Node | null, name: string, tag: Tag): Node {
  lastId += 1;
  return { id: lastId, parent, name, tag, text: "", truth: tag === "NULL", children: [], open: false, past: [] };
}

function nodeOf(parent: Node | null, name: string, value: AttributeValue): Node {
  const [tag, held] = taken(value);
  const node = fresh(parent, name, tag);
  if (tag === "S" || tag === "N" || tag === "B") node.text = String(held);
  else if (tag === "BOOL" || tag === "NULL") node.truth = held === true;
  else if (tag === "M") node.children = Object.entries(held as Item).map(([each, inner]) => nodeOf(node, each, inner));
  else if (tag === "L") node.children = (held as AttributeValue[]).map((inner) => nodeOf(node, "", inner));
  else node.children = (held as string[]).map((member) => nodeOf(node, "", { [memberTag(tag)]: member }));
  node.open = node.children.length > 0 && node.children.length <= OPEN_MAX;
  return node;
}

function copied(node: Node): Node {
  const copy: Node = { ...node, past: [...node.past], children: node.children.map(copied) };
  for (const each of copy.children) each.parent = copy;
  return copy;
}

function valueOf(node: Node): AttributeValue {
  switch (node.tag) {
    case "S":
    case "N":
    case "B":
      return { [node.tag]: node.text };
    case "BOOL":
      return { BOOL: node.truth };
    case "NULL":
      return { NULL: true };
    case "L":
      return { L: node.children.map(valueOf) };
    case "M":
      return { M: Object.fromEntries(node.children.map((each) => [each.name, valueOf(each)])) };
    default:
      return { [node.tag]: node.children.map((each) => each.text) };
  }
}

/** The item that is edited. Whoever changes it calls `onChange`. */
export class ItemTree {
  readonly root: Node;

  constructor(item: Item) {
    this.root = fresh(null, "", "M");
    this.root.children = Object.entries(item).map(([name, value]) => nodeOf(this.root, name, value));
    this.root.open = true;
  }

  item(): Item {
    return valueOf(this.root)["M"] as Item;
  }

  /** Return the names that stand twice in one map, of which an item can have only one. */
  repeated(): ItemIssue[] {
    const flaws: ItemIssue[] = [];
    const visit = (node: Node, path: readonly string[]) => {
      if (node.tag === "M") {
        const seen = new Set<string>();
        for (const each of node.children) {
          if (seen.has(each.name))
            flaws.push({
              path: [...path, each.name],
              text: `There are two called “${each.name}”; rename one.`,
              severity: "error",
            });
          else if (!each.name)
            flaws.push({ path: [...path, each.name], text: "It has no name; give it one.", severity: "error" });
          seen.add(each.name);
        }
      }
      if (node.tag === "M" || node.tag === "L")
        node.children.forEach((each, at) => visit(each, [...path, node.tag === "L" ? String(at) : each.name]));
    };
    visit(this.root, []);
    return flaws;
  }

  /** Return the rows in view order, flaws below what they are about. */
  rows(flaws: readonly ItemIssue[]): TreeRow[] {
    const told = new Map<Node, ItemIssue[]>();
    for (const flaw of flaws) {
      const node = flaw.path.length ? this.at(flaw.path) : null;
      if (node) told.set(node, [...(told.get(node) ?? []), flaw]);
    }
    const rows: TreeRow[] = [];
    const visit = (node: Node, depth: number) => {
      rows.push({ node, depth, flaw: null });
      for (const flaw of told.get(node) ?? []) rows.push({ node, depth, flaw });
      if (node.open) for (const each of node.children) visit(each, depth + 1);
    };
    for (const each of this.root.children) visit(each, 0);
    return rows;
  }

  /** Return the node of a path; of two with one name the last, which is the one to rename. */
  at(path: readonly string[]): Node | null {
    let node: Node | undefined = this.root;
    for (const step of path) {
      const inside: Node[] = node.children;
      node = node.tag === "M" ? inside.findLast((each) => each.name === step) : inside[Number(step)];
      if (!node) return null;
    }
    return node;
  }

  /** Return where a node is. */
  path(node: Node): string[] {
    const steps: string[] = [];
    for (let each: Node = node; each.parent; each = each.parent) {
      steps.unshift(each.parent.tag === "M" ? each.name : String(each.parent.children.indexOf(each)));
    }
    return steps;
  }

  /** Give a node another type, keeping what it holds where that can be; what cannot be kept comes back with the type it had. */
  retype(node: Node, tag: Tag): void {
    if (node.tag === tag) return;
    const now = JSON.stringify(valueOf(node));
    const kept = node.past.at(-1)?.made === now ? node.past.findLast((each) => each.tag === tag) : undefined;
    const held = { tag: node.tag, text: node.text, truth: node.truth, children: node.children.map(copied) };
    if (kept) {
      Object.assign(node, {
        tag,
        text: kept.text,
        truth: kept.truth,
        children: kept.children.map(copied),
        open: kept.children.length > 0,
      });
      for (const each of node.children) each.parent = node;
    } else this.converted(node, tag);
    node.past = [
      ...(node.past.at(-1)?.made === now ? node.past : []),
      { ...held, made: JSON.stringify(valueOf(node)) },
    ];
  }

  private converted(node: Node, tag: Tag): void {
    const was = node.tag;
    node.tag = tag;
    if (isContainer(tag)) {
      if (isContainer(was)) {
        if (isSet(tag)) node.children = node.children.filter((each) => !isContainer(each.tag));
        node.children.forEach((each, at) => {
          if (isSet(tag)) this.converted(each, memberTag(tag));
          each.name = tag === "M" ? each.name || `member${at + 1}` : "";
        });
      } else {
        const scalar = fresh(node, tag === "M" ? "member1" : "", isSet(tag) ? memberTag(tag) : was);
        scalar.text = node.text;
        scalar.truth = node.truth;
        node.children = isSet(tag) || node.text || was === "BOOL" ? [scalar] : [];
      }
      node.open = true;
    } else if (isContainer(was)) {
      node.text = node.children.length === 1 ? (node.children[0]?.text ?? "") : "";
      node.children = [];
    } else if (was === "BOOL" && tag === "S") node.text = node.truth ? "true" : "false";
    else if (tag === "BOOL") node.truth = node.text === "true";
  }

  /** Add a member: to a container, or behind a sibling. */
  add(parent: Node, after: Node | null = null): Node {
    const tag = isSet(parent.tag) ? memberTag(parent.tag) : (after?.tag ?? parent.children.at(-1)?.tag ?? "S");
    const node = fresh(parent, "", isContainer(tag) ? "S" : tag);
    const place = after ? parent.children.indexOf(after) + 1 : parent.children.length;
    parent.children.splice(place, 0, node);
    parent.open = true;
    return node;
  }

  remove(node: Node): void {
    const siblings = node.parent?.children;
    siblings?.splice(siblings.indexOf(node), 1);
  }

  /** Move a node among its siblings; tell whether it moved. */
  move(node: Node, step: -1 | 1): boolean {
    const siblings = node.parent?.children ?? [];
    const at = siblings.indexOf(node);
    const other = siblings[at + step];
    if (!other) return false;
    siblings[at] = other;
    siblings[at + step] = node;
    return true;
  }
}

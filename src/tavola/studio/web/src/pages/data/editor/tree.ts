// Tree: an item as editable rows. Every value is a node that is changed in place, so that a key press does not rebuild the whole item.
import type { AttributeValue, Item, ItemIssue } from "../../../generated/api";
import { type Tag, splitValue } from "../../../parts/values";

export interface Node {
  readonly id: number;
  parent: Node | null;
  /** The name of an attribute or map member; "" in lists and sets. */
  name: string;
  tag: Tag;
  /** The content of a string, number or binary. */
  text: string;
  truth: boolean;
  /** The members of a list, map or set. */
  children: Node[];
  open: boolean;
  /** Its content under earlier types, so that choosing a type by mistake loses nothing. */
  earlier: {
    readonly tag: Tag;
    readonly text: string;
    readonly truth: boolean;
    readonly children: Node[];
    readonly converted: string;
  }[];
}

/** A row: a node at its depth, or an issue of the node above. */
export interface TreeRow {
  readonly node: Node;
  readonly depth: number;
  readonly issue: ItemIssue | null;
}

export const CONTAINERS: readonly Tag[] = ["L", "M", "SS", "NS", "BS"];
const SETS: readonly Tag[] = ["SS", "NS", "BS"];
const OPEN_MAX = 12; // containers with more members start collapsed

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

function newNode(parent: Node | null, name: string, tag: Tag): Node {
  lastId += 1;
  return { id: lastId, parent, name, tag, text: "", truth: tag === "NULL", children: [], open: false, earlier: [] };
}

function nodeOf(parent: Node | null, name: string, value: AttributeValue): Node {
  const [tag, content] = splitValue(value);
  const node = newNode(parent, name, tag);
  if (tag === "S" || tag === "N" || tag === "B") node.text = String(content);
  else if (tag === "BOOL" || tag === "NULL") node.truth = content === true;
  else if (tag === "M")
    node.children = Object.entries(content as Item).map(([each, inner]) => nodeOf(node, each, inner));
  else if (tag === "L") node.children = (content as AttributeValue[]).map((inner) => nodeOf(node, "", inner));
  else node.children = (content as string[]).map((member) => nodeOf(node, "", { [memberTag(tag)]: member }));
  node.open = node.children.length > 0 && node.children.length <= OPEN_MAX;
  return node;
}

function copyNode(node: Node): Node {
  const copy: Node = { ...node, earlier: [...node.earlier], children: node.children.map(copyNode) };
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

/** The item as a tree of nodes. */
export class ItemTree {
  readonly root: Node;

  constructor(item: Item) {
    this.root = newNode(null, "", "M");
    this.root.children = Object.entries(item).map(([name, value]) => nodeOf(this.root, name, value));
    this.root.open = true;
  }

  item(): Item {
    return valueOf(this.root)["M"] as Item;
  }

  /** Return an issue for each duplicate or empty name in a map. */
  nameIssues(): ItemIssue[] {
    const issues: ItemIssue[] = [];
    const visit = (node: Node, path: readonly string[]) => {
      if (node.tag === "M") {
        const seen = new Set<string>();
        for (const each of node.children) {
          if (seen.has(each.name))
            issues.push({
              path: [...path, each.name],
              text: `Duplicate name “${each.name}”. Rename one of them.`,
              severity: "error",
            });
          else if (!each.name) issues.push({ path: [...path, each.name], text: "Enter a name.", severity: "error" });
          seen.add(each.name);
        }
      }
      if (node.tag === "M" || node.tag === "L")
        node.children.forEach((each, at) => visit(each, [...path, node.tag === "L" ? String(at) : each.name]));
    };
    visit(this.root, []);
    return issues;
  }

  /** Return the rows in order, each issue below its node. */
  rows(issues: readonly ItemIssue[]): TreeRow[] {
    const issuesByNode = new Map<Node, ItemIssue[]>();
    for (const issue of issues) {
      const node = issue.path.length ? this.at(issue.path) : null;
      if (node) issuesByNode.set(node, [...(issuesByNode.get(node) ?? []), issue]);
    }
    const rows: TreeRow[] = [];
    const visit = (node: Node, depth: number) => {
      rows.push({ node, depth, issue: null });
      for (const issue of issuesByNode.get(node) ?? []) rows.push({ node, depth, issue });
      if (node.open) for (const each of node.children) visit(each, depth + 1);
    };
    for (const each of this.root.children) visit(each, 0);
    return rows;
  }

  /** Return the node at a path; of two with the same name the last, which is the one to rename. */
  at(path: readonly string[]): Node | null {
    let node: Node | undefined = this.root;
    for (const step of path) {
      const inside: Node[] = node.children;
      node = node.tag === "M" ? inside.findLast((each) => each.name === step) : inside[Number(step)];
      if (!node) return null;
    }
    return node;
  }

  /** Change the type of a node, converting its content where possible; changing back restores it. */
  retype(node: Node, tag: Tag): void {
    if (node.tag === tag) return;
    const now = JSON.stringify(valueOf(node));
    const restored =
      node.earlier.at(-1)?.converted === now ? node.earlier.findLast((each) => each.tag === tag) : undefined;
    const current = { tag: node.tag, text: node.text, truth: node.truth, children: node.children.map(copyNode) };
    if (restored) {
      Object.assign(node, {
        tag,
        text: restored.text,
        truth: restored.truth,
        children: restored.children.map(copyNode),
        open: restored.children.length > 0,
      });
      for (const each of node.children) each.parent = node;
    } else this.convert(node, tag);
    node.earlier = [
      ...(node.earlier.at(-1)?.converted === now ? node.earlier : []),
      { ...current, converted: JSON.stringify(valueOf(node)) },
    ];
  }

  private convert(node: Node, tag: Tag): void {
    const was = node.tag;
    node.tag = tag;
    if (isContainer(tag)) {
      if (isContainer(was)) {
        if (isSet(tag)) node.children = node.children.filter((each) => !isContainer(each.tag));
        node.children.forEach((each, at) => {
          if (isSet(tag)) this.convert(each, memberTag(tag));
          each.name = tag === "M" ? each.name || `member${at + 1}` : "";
        });
      } else {
        const scalar = newNode(node, tag === "M" ? "member1" : "", isSet(tag) ? memberTag(tag) : was);
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

  /** Add a member at the end of a container, or after a sibling. */
  add(parent: Node, after: Node | null = null): Node {
    const tag = isSet(parent.tag) ? memberTag(parent.tag) : (after?.tag ?? parent.children.at(-1)?.tag ?? "S");
    const node = newNode(parent, "", isContainer(tag) ? "S" : tag);
    const place = after ? parent.children.indexOf(after) + 1 : parent.children.length;
    parent.children.splice(place, 0, node);
    parent.open = true;
    return node;
  }

  remove(node: Node): void {
    const siblings = node.parent?.children;
    siblings?.splice(siblings.indexOf(node), 1);
  }

  /** Move a node among its siblings; return whether it moved. */
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

// Keys: an item's key as one text for the URL, and back.
import type { Item } from "../../generated/api";

/** Return a key as the URL holds it. */
export function keyText(key: Item): string {
  return JSON.stringify(key);
}

/** Return the key that a text holds; null where it holds none. */
export function keyOf(text: string): Item | null {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found !== "object" || found === null || Array.isArray(found)) return null;
    const sound = Object.values(found).every(
      (value) => typeof value === "object" && value !== null && Object.keys(value).length === 1,
    );
    return sound && Object.keys(found).length > 0 ? (found as Item) : null;
  } catch {
    return null;
  }
}

// Keys: an item's key as a parameter of the URL, and back.
import type { Item } from "../../generated/api";

/** Return a key as a parameter of the URL. */
export function keyText(key: Item): string {
  return JSON.stringify(key);
}

/** Parse a key from the URL; null if it is invalid. */
export function parseKey(text: string): Item | null {
  try {
    const key: unknown = JSON.parse(text);
    if (typeof key !== "object" || key === null || Array.isArray(key)) return null;
    const isValid = Object.values(key).every(
      (value) => typeof value === "object" && value !== null && Object.keys(value).length === 1,
    );
    return isValid && Object.keys(key).length > 0 ? (key as Item) : null;
  } catch {
    return null;
  }
}

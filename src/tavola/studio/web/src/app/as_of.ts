// AsOf: the moment that is looked at. It is in the URL, so a link shows what was seen; everything that reads passes it on.
import { computed } from "@preact/signals";
import { go, route } from "./router";

/** The moment as ISO 8601, which reading questions take as `as_of`; "" is now. */
export const asOf = computed(() => route.value.params["at"] ?? "");

/** Look at another moment; "" goes back to now. */
export function lookAt(moment: string, replace = false): void {
  go({ params: { at: moment } }, { replace });
}

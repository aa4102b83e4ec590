// AsOf: the point in time that pages show. It is in the URL, so that a link shows the same data; every read passes it on.
import { computed } from "@preact/signals";
import { go, route } from "./router";

/** The time as ISO 8601, for the `as_of` of read requests; "" is now. */
export const asOf = computed(() => route.value.params["at"] ?? "");

/** Show the data as of another time; "" returns to now. */
export function setAsOf(time: string, replace = false): void {
  go({ params: { at: time } }, { replace });
}

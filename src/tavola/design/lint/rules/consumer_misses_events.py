"""A stream consumer does not receive all changes that its data depends on.

Why: A new item is an INSERT record, an updated item a MODIFY, a deleted or expired item a REMOVE. A consumer
that counts on MODIFY only never counts new items and subtracts items it never added, so totals become
negative. (A consumer that only sends notifications keeps no data and may handle MODIFY alone.) An event
filter drops records silently if it omits an event name, requires an image that such records do not have, or
uses `numeric`, because numbers are strings in stream records.

Example: `Consumer("metrics", events=("MODIFY",), writes=("Metric",))` with a handler that runs
`counts[new_status] += 1; counts[old_status] -= 1`.

Instead: Handle INSERT, MODIFY and REMOVE, including expiry, and let the filters pass all three. Compute each
number from the old and the new image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.model.document import Consumer

SEVERITY = "error"

_KINDS = ("INSERT", "MODIFY", "REMOVE")


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers that ignore kinds of changes they need, and those whose filters drop records they handle."""
    for table, consumer in context.all_consumers():
        place = context.consumer_place(table, consumer)
        for message, remedy in _missed_changes(consumer, expires=table.settings.ttl is not None):
            yield Defect(place, message, remedy)


def _missed_changes(consumer: Consumer, *, expires: bool) -> Iterator[tuple[str, str]]:
    handled = set(consumer.events or _KINDS)
    written = join_names(consumer.writes)  # a consumer that stores nothing cannot have wrong data
    if written and "MODIFY" in handled and "INSERT" not in handled:
        deletions_note = "" if "REMOVE" in handled else " and deleted ones"
        yield (
            f"Maintains {written} from {join_names(kind for kind in _KINDS if kind in handled)} records only: it misses new items{deletions_note}",
            "Handle INSERT, MODIFY and REMOVE",
        )
    elif written and handled == {"INSERT", "MODIFY"} and consumer.needs_old:
        gone = "deleted or expired" if expires else "deleted"
        yield (
            f"Handles INSERT and MODIFY but not REMOVE: items that are {gone} stay counted in {written}",
            "Handle REMOVE as well, using the old image",
        )
    if consumer.filters:
        passed = {kind for filter_ in consumer.filters for kind in _matched_kinds(filter_)}
        dropped = [kind for kind in consumer.events if kind not in passed]
        if dropped:
            yield (
                f"Handles {join_names(dropped)} records, but its filters drop all of them",
                f"Add {join_names(dropped)} to eventName in the filters, and do not require an image that these records lack",
            )
        if any(_has_key(filter_, "numeric") for filter_ in consumer.filters):
            yield (
                "A filter uses `numeric`, but numbers are strings in stream records, so it never matches",
                "Match the exact string, or compare in the handler",
            )


def _matched_kinds(pattern: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kinds of records that one filter can match."""
    named = pattern.get("eventName")
    images = pattern.get("dynamodb")
    for kind in _KINDS:
        if isinstance(named, list) and not any(_allows_kind(kind_filter, kind) for kind_filter in named):
            continue
        if isinstance(images, Mapping) and kind == "REMOVE" and _requires_image(images.get("NewImage")):
            continue
        if isinstance(images, Mapping) and kind == "INSERT" and _requires_image(images.get("OldImage")):
            continue
        yield kind


def _allows_kind(element: Any, kind: str) -> bool:
    """Return whether one element of an eventName filter passes a kind; True if it is not understood."""
    match element:
        case str():
            return element == kind
        case {"prefix": str(start)}:
            return kind.startswith(start)
        case {"suffix": str(end)}:
            return kind.endswith(end)
        case {"anything-but": str(other)}:
            return kind != other
        case {"anything-but": [*others]}:
            return kind not in others
        case {"equals-ignore-case": str(text)}:
            return text.upper() == kind
        case _:
            return True


def _requires_image(image: Any) -> bool:
    """Return whether a filter requires something to be present in an image."""
    if isinstance(image, Mapping):
        return any(_requires_image(part) for part in image.values())
    return isinstance(image, list) and {"exists": False} not in image


def _has_key(node: Any, key: str) -> bool:
    if isinstance(node, Mapping):
        return any(
            (name == key and isinstance(part, list)) or _has_key(part, key) for name, part in node.items()
        )
    return isinstance(node, list | tuple) and any(_has_key(element, key) for element in node)

"""A consumer does not see all changes that its data depends on.

Why: A new item is an INSERT, a changed one a MODIFY, one that is deleted or expires a REMOVE. Who counts by MODIFY alone
never counts what is created, and takes away what it never added: numbers become negative. (Who only tells others of changes
counts nothing, and may act on MODIFY alone.) A filter that names other kinds, that asks for an image such a record does not have, or that compares numbers as numbers (they are text in a record),
leaves records out in silence.

Example: `Consumer("numbers", events=("MODIFY",), writes=("Metric",))`, whose handler does `if record["eventName"] == "MODIFY":
counts[new_status] += 1; counts[old_status] -= 1`.

Instead: Act on INSERT, MODIFY and REMOVE, expiry included, and let the filters pass them; derive each number from the old
and the new image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.model.document import Consumer

SEVERITY: Severity = "error"

_KINDS = ("INSERT", "MODIFY", "REMOVE")


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the consumers that start after the first changes, and those whose filters drop records that they act on."""
    for table in context.design.tables:
        for consumer in table.consumers:
            place = DesignPath(kind="consumer", table=table.name, name=consumer.name)
            for message, remedy in _missed_changes(consumer, expires=table.settings.ttl is not None):
                yield Finding("consumer-misses-records", SEVERITY, place, message, remedy)


def _missed_changes(consumer: Consumer, *, expires: bool) -> Iterator[tuple[str, str]]:
    wanted = set(consumer.events or _KINDS)
    kept = " and ".join(consumer.writes)  # who keeps nothing has nothing that becomes wrong
    if kept and "MODIFY" in wanted and "INSERT" not in wanted:
        more = "" if "REMOVE" in wanted else ", nor that one is gone"
        yield (
            f"it keeps {kept} by {' and '.join(kind for kind in _KINDS if kind in wanted)}: it never learns that an item is new{more}",
            "act on INSERT, MODIFY and REMOVE",
        )
    elif kept and wanted == {"INSERT", "MODIFY"} and consumer.needs_old:
        gone = "deleted or expires" if expires else "deleted"
        yield (
            f"it takes differences of INSERT and MODIFY and leaves out REMOVE: what is {gone} stays in {kept}",
            "act on REMOVE too, from the old image",
        )
    if consumer.filters:
        passed = {kind for each in consumer.filters for kind in _matched_kinds(each)}
        dropped = [kind for kind in consumer.events if kind not in passed]
        if dropped:
            yield (
                f"it acts on {' and '.join(dropped)}, and its filters let none through",
                f"name {' and '.join(dropped)} in the filters' eventName, and ask of an image only what such records have",
            )
        if any(_has_key(each, "numeric") for each in consumer.filters):
            yield (
                "a filter compares with `numeric`, and numbers are text in a record: it never matches",
                "compare with the number's exact text, or in the handler",
            )


def _matched_kinds(pattern: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kinds of records that one filter can match."""
    named = pattern.get("eventName")
    images = pattern.get("dynamodb")
    for kind in _KINDS:
        if isinstance(named, list) and not any(_allows_kind(each, kind) for each in named):
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
    return isinstance(node, list | tuple) and any(_has_key(each, key) for each in node)

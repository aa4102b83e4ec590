"""A consumer needs images that the table's stream does not have.

Why: A stream's view decides what a record holds: keys alone, the new image, the old one or both. It is chosen when the
stream is switched on; another view is a new stream, and what was not read of the old one is gone after 24 hours. Without
a stream there is nothing to read at all, and a global table wants both images.

Example: `stream="NEW_IMAGE"` and a consumer that counts by the difference of old and new status.

Instead: `stream="NEW_AND_OLD_IMAGES"`. Streams cost by reads, not by view; what is not wanted can be filtered.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.model.document import Consumer, TableDesign

SEVERITY: Severity = "error"

_OLD = ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")
_NEW = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the consumers without a stream or without the images that they use, and replicas without both images."""
    for table in context.design.tables:
        view = table.settings.stream
        for consumer in table.consumers:
            lacking = _missing_images(consumer, view)
            if lacking is not None:
                yield Finding(
                    "stream-view-lacks",
                    SEVERITY,
                    DesignPath(kind="consumer", table=table.name, name=consumer.name),
                    lacking,
                    f'set stream="NEW_AND_OLD_IMAGES" on {table.label}',
                )
        told_otherwise = "stream" in table.settings.unknown  # replicas that agree strongly want none
        if table.settings.replicas and not told_otherwise and not _both(table):
            stream_text = "has no stream" if view is None else f"streams {view}"
            yield Finding(
                "stream-view-lacks",
                SEVERITY,
                context.table_place(table),
                f"it is replicated to {', '.join(table.settings.replicas)} and {stream_text}: replication wants NEW_AND_OLD_IMAGES",
                'set stream="NEW_AND_OLD_IMAGES"',
            )


def _missing_images(consumer: Consumer, view: str | None) -> str | None:
    if view is None:
        return "it reads the table's stream, and the table has none"
    if consumer.needs_old and view not in _OLD:
        return f"it looks at what an item was before, and the stream carries {view}"
    asked = {image for each in consumer.filters for image in _images(each.get("dynamodb"))}
    if "OldImage" in asked and view not in _OLD:
        return f"its filter asks for the old image, and the stream carries {view}: nothing passes"
    if "NewImage" in asked and view not in _NEW:
        return f"its filter asks for the new image, and the stream carries {view}: nothing passes"
    return None


def _images(node: object) -> tuple[str, ...]:
    return tuple(map(str, node)) if isinstance(node, dict) else ()


def _both(table: TableDesign) -> bool:
    return table.settings.stream == "NEW_AND_OLD_IMAGES"

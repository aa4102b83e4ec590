"""A stream consumer needs images that the table's stream does not contain.

Why: The stream view type determines what a record contains: keys only, the new image, the old image, or both.
It cannot be changed: a different view type requires a new stream, and unread records of the old stream expire
after 24 hours. A consumer also needs a stream to be enabled at all, and a global table requires both images.

Example: `stream="NEW_IMAGE"` and a consumer that compares the old status with the new one.

Instead: Set `stream="NEW_AND_OLD_IMAGES"`. Streams are charged by read requests, not by view type.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import Consumer

SEVERITY = "error"

_OLD = ("OLD_IMAGE", "NEW_AND_OLD_IMAGES")
_NEW = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers without a stream or without the images that they use, and replicas without both images."""
    for table in context.design.tables:
        view = table.settings.stream
        for consumer in table.consumers:
            lacking = _missing_images(consumer, view)
            if lacking is not None:
                yield Defect(
                    context.consumer_place(table, consumer),
                    lacking,
                    f'Set stream="NEW_AND_OLD_IMAGES" on {table.label}',
                )
        stream_unknown = "stream" in table.settings.unknown  # strongly consistent replicas need no stream
        if table.settings.replicas and not stream_unknown and view != "NEW_AND_OLD_IMAGES":
            stream_text = "has no stream" if view is None else f"streams {view}"
            yield Defect(
                context.table_place(table),
                f"Replicates to {', '.join(table.settings.replicas)} and {stream_text}: global tables require NEW_AND_OLD_IMAGES",
                'Set stream="NEW_AND_OLD_IMAGES"',
            )


def _missing_images(consumer: Consumer, view: str | None) -> str | None:
    if view is None:
        return "Reads the table's stream, but the stream is not enabled"
    if consumer.needs_old and view not in _OLD:
        return f"Uses the old image, but the stream view type is {view}"
    filtered = {image for filter_ in consumer.filters for image in _images(filter_.get("dynamodb"))}
    if "OldImage" in filtered and view not in _OLD:
        return f"Filters on the old image, but the stream view type is {view}: no record matches"
    if "NewImage" in filtered and view not in _NEW:
        return f"Filters on the new image, but the stream view type is {view}: no record matches"
    return None


def _images(node: object) -> tuple[str, ...]:
    return tuple(map(str, node)) if isinstance(node, dict) else ()

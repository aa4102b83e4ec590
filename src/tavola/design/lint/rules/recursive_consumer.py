"""A stream consumer writes to the table whose stream it reads and receives its own writes.

Why: Every write produces a stream record, including the consumer's own. A function that writes for each
record it receives runs in a loop, and costs grow until the table throttles or the function is disabled. If
the handler is known to stop, suppress this finding with the reason.

Example: `Consumer("metrics", writes=("Metric",))` without filters, on the table that stores `Metric`.

Instead: Add an event filter that admits only the source entities: `filters=({"dynamodb": {"NewImage":
{"_entity": {"S": ["Ticket"]}}}},)`. Or store the results in a separate table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.model.document import Consumer, EntityDesign, TableDesign

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers whose filters pass the records of their own writes."""
    for table, consumer in context.all_consumers():
        returning = [
            entity.name
            for entity in table.entities
            if entity.name in consumer.writes and _receives_own(table, consumer, entity)
        ]
        if returning:
            why = "its filters pass these records" if consumer.filters else "it has no filters"
            yield Defect(
                context.consumer_place(table, consumer),
                f"Writes {join_names(returning)} to {table.label} and reads the stream of {table.label}: {why}, so it receives its own writes",
                "Add an event filter for the source entities, or write the results to a separate table",
            )


def _receives_own(table: TableDesign, consumer: Consumer, entity: EntityDesign) -> bool:
    """Return whether a record of the entity passes one of the filters; False if that cannot be decided."""
    if not consumer.filters:
        return True
    tag = table.settings.tag
    return tag is not None and any(
        _passes(filter_.get("dynamodb"), tag, entity.tag) for filter_ in consumer.filters
    )


def _passes(images: Any, tag: str, value: str) -> bool:
    """Return whether a filter on images passes an entity: it has no condition on them, or allows its tag."""
    if not isinstance(images, Mapping):
        return True
    image_patterns = [
        image
        for name, image in images.items()
        if name in ("NewImage", "OldImage") and isinstance(image, Mapping)
    ]
    if not image_patterns:
        return "Keys" not in images
    for image in image_patterns:
        allowed = image.get(tag)
        texts = allowed.get("S") if isinstance(allowed, Mapping) else None
        if not isinstance(texts, list) or value in texts:
            continue
        if all(isinstance(text, str) for text in texts):
            return False
    return all(tag in image for image in image_patterns)

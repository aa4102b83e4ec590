"""A consumer of a table's stream writes into the same table and receives its own writes.

Why: Every write makes a record, the consumer's own too. One that writes for each record it gets writes for ever: the bill
grows by itself, until the table throttles or somebody switches the function off. Where its handler is known to stop, an
ignore says why.

Example: `Consumer("numbers", writes=("Number",))` on the table that `Number` lives in, without filters.

Instead: Filter by the entity, so that only those it counts from come: `filters=({"dynamodb": {"NewImage": {"_entity": {"S":
["Ticket"]}}}},)`; or keep what it writes in a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.model.document import Consumer, EntityDesign, TableDesign

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the consumers whose filters pass the records of their own writes."""
    for table in context.design.tables:
        for consumer in table.consumers:
            back = [
                entity.name
                for entity in table.entities
                if entity.name in consumer.writes and _comes_back(table, consumer, entity)
            ]
            if back:
                how = "its filters let" if consumer.filters else "without filters"
                yield Finding(
                    "consumer-feeds-itself",
                    SEVERITY,
                    DesignPath(kind="consumer", table=table.name, name=consumer.name),
                    f"it writes {' and '.join(back)} into {table.label}, whose stream it reads, and {how} these writes come back to it",
                    "filter by the entities that it counts from, or keep what it writes in a table of its own",
                )


def _comes_back(table: TableDesign, consumer: Consumer, entity: EntityDesign) -> bool:
    """Return whether a record of the entity passes one of the filters; False if that cannot be decided."""
    if not consumer.filters:
        return True
    tag = table.settings.tag
    return tag is not None and any(
        _passes(each.get("dynamodb"), tag, entity.tag) for each in consumer.filters
    )


def _passes(images: Any, tag: str, value: str) -> bool:
    """Return whether a filter on images passes an entity: it has no condition on them, or allows its tag."""
    if not isinstance(images, Mapping):
        return True
    asked = [
        image
        for name, image in images.items()
        if name in ("NewImage", "OldImage") and isinstance(image, Mapping)
    ]
    if not asked:
        return "Keys" not in images
    for image in asked:
        allowed = image.get(tag)
        texts = allowed.get("S") if isinstance(allowed, Mapping) else None
        if not isinstance(texts, list) or value in texts:
            continue
        if all(isinstance(text, str) for text in texts):
            return False
    return all(tag in image for image in asked)

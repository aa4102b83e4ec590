"""Keyless: entities that have no table yet, as rules of entities can judge them: by their fields and their writes."""

from __future__ import annotations

from dataclasses import replace

from tavola.model.document import Design, TableDesign, TableSettings

OF_ENTITIES = frozenset(  # rules that look at no key
    ("changed-immutable", "large-item", "racing-version", "sequence-by-count", "unbounded-list")
)


def stand_in(design: Design) -> Design | None:
    """Return a design that has the entities of one without tables in a table of no name; None if there are tables."""
    if design.tables or not design.views:
        return None
    settings = TableSettings(
        name="",
        hash="pk",
        range="sk",
        ttl=None,
        tag=None,
        delimiter="#",
        stream=None,
        recovery=True,
        recovery_days=35,
        encryption=None,
        table_class="STANDARD",
        deletion_protection=True,
        read_units=None,
        write_units=None,
    )
    table = TableDesign("", settings, {"pk": "S", "sk": "S"}, entities=design.views)
    return replace(design, tables=(table,), views=(), needs=())

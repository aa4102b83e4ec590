"""Rates for questions and writes that declare none.

If no question has a rate, each counts as one per second; the same holds for writes. If some have rates, the others count as zero, as in
`tavola cost`. Assumed rates are reported and never appear in the resulting design.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tavola.design.text import list_first
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    PatternDesign,
    WritePattern,
)

_RATE = 1.0  # per second
_PUT = WritePattern("assumed write", "put", per_second=_RATE)


ReadingT = TypeVar("ReadingT", PatternDesign, CollectionDesign)


@dataclass(frozen=True, slots=True)
class AssumedRates:
    """Which rates are assumed: those of questions, those of writes."""

    reads: bool = False
    writes: bool = False

    @staticmethod
    def find_missing(
        entities: Mapping[str, EntityDesign], accesses: Iterable[AccessPattern | None]
    ) -> AssumedRates:
        """Return which kinds need assumed rates: those without a single declared rate (0 counts as declared)."""
        has_write_rate = any(w.per_second is not None for entity in entities.values() for w in entity.writes)
        has_read_rate = any(access is not None and access.per_second is not None for access in accesses)
        return AssumedRates(not has_read_rate, not has_write_rate)

    def add_to_entity(self, entity: EntityDesign) -> EntityDesign:
        """Return an entity with assumed rates for its writes."""
        if not self.writes:
            return entity
        writes = tuple(replace(write, per_second=_RATE) for write in entity.writes)
        return replace(entity, writes=writes or (_PUT,))

    def add_to_access(self, name: str, access: AccessPattern | None) -> AccessPattern | None:
        """Return the access pattern of a question with an assumed rate."""
        if not self.reads:
            return access
        return replace(access or AccessPattern(name), per_second=_RATE)

    def add_to_design(self, design: Design) -> Design:
        """Return a keyed design with assumed rates, to price it beside the solution."""
        if not (self.reads or self.writes):
            return design
        tables = []
        for table in design.tables:
            entities = tuple(self._add_to_patterns(entity) for entity in table.entities)
            together = tuple(
                replace(collection, access=self.add_to_access(collection.name, collection.access))
                for collection in table.collections
            )
            tables.append(replace(table, entities=entities, collections=together))
        return replace(design, tables=tuple(tables))

    def _add_to_patterns(self, entity: EntityDesign) -> EntityDesign:
        def add_rate(pattern: PatternDesign) -> PatternDesign:
            return replace(
                pattern, access=self.add_to_access(f"{entity.name}.{pattern.name}", pattern.access)
            )

        rated = self.add_to_entity(entity)
        primary = None if rated.primary is None else add_rate(rated.primary)
        return replace(rated, primary=primary, patterns=tuple(map(add_rate, rated.patterns)))

    def remove_from_design(self, design: Design, original: Mapping[str, EntityDesign]) -> Design:
        """Return a solved design without the assumed rates. `original` has the declared writes of each entity."""
        if not (self.reads or self.writes):
            return design

        def without_rate(reading: ReadingT) -> ReadingT:
            return replace(reading, access=_without_rate(reading.access)) if self.reads else reading

        tables = []
        for table in design.tables:
            entities = []
            for entity in table.entities:
                primary = None if entity.primary is None else without_rate(entity.primary)
                writes = original[entity.name].writes if self.writes else entity.writes
                patterns = tuple(map(without_rate, entity.patterns))
                entities.append(replace(entity, primary=primary, patterns=patterns, writes=writes))
            tables.append(
                replace(
                    table, entities=tuple(entities), collections=tuple(map(without_rate, table.collections))
                )
            )
        return replace(design, tables=tuple(tables))

    def notes(self, entities: Mapping[str, EntityDesign], unrated_reads: Sequence[str]) -> Iterator[str]:
        """Yield notes on the rates that were assumed and on what has no rate and so no price."""
        if self.reads:
            yield (
                "No read rates are declared: every access pattern is assumed to run once per second. Declare per_second= in "
                "AccessPattern for a realistic cost."
            )
        elif unrated_reads:
            yield f"Access patterns without a rate, not priced: {list_first(unrated_reads, 4)}. Declare per_second= to include them."
        if self.writes:
            undeclared = [name for name, entity in entities.items() if entity.writes == (_PUT,)]
            undeclared_note = (
                f"; for {list_first(undeclared, 4)} no write is declared, and one put is assumed"
                if undeclared
                else ""
            )
            yield (
                f"No write rates are declared: every write is assumed to run once per second{undeclared_note}. Declare per_second= "
                "in WritePattern for a realistic cost."
            )
            return
        unrated = [
            f"{name}: {write.title}"
            for name, entity in entities.items()
            for write in entity.writes
            if write.per_second is None
        ]
        if unrated:
            yield (
                f"Writes without a rate, so index updates for them are not priced: {list_first(unrated, 4)}. Declare per_second= to "
                "include them."
            )
        unwritten = [name for name, entity in entities.items() if not entity.writes]
        if unwritten:
            yield (
                f"No writes are declared for {list_first(unwritten, 4)}, so index updates for them are not priced. Declare a "
                "WritePattern with per_second= to include them."
            )


def _without_rate(access: AccessPattern | None) -> AccessPattern | None:
    """Return an access pattern without its rate, or None if the rate was all it had."""
    if access is None:
        return None
    bare = replace(access, per_second=None)
    return None if bare == AccessPattern(access.title) else bare

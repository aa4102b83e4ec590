"""Rates for questions and writes that declare none.

If no question has a rate, each counts as one per second; the same holds for writes. If some have rates, the others count as zero, as in
`tavola cost`. Assumed rates are reported and never appear in the resulting design.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    PatternDesign,
    WritePattern,
)

_ASSUMED = 1.0  # a second
_PUT = WritePattern("a write that nobody declared", "put", per_second=_ASSUMED)


@dataclass(frozen=True, slots=True)
class AssumedRates:
    """Which rates were assumed: those of questions, those of writes."""

    reads: bool = False
    writes: bool = False

    @staticmethod
    def of(entities: Mapping[str, EntityDesign], accesses: Iterable[AccessPattern | None]) -> AssumedRates:
        """Return what must be filled in: the kinds of which nobody said a single rate, not even none."""
        written = any(w.per_second is not None for entity in entities.values() for w in entity.writes)
        asked = any(access is not None and access.per_second is not None for access in accesses)
        return AssumedRates(not asked, not written)

    def entity(self, entity: EntityDesign) -> EntityDesign:
        """Return an entity with the rates that its writes count by."""
        if not self.writes:
            return entity
        told = tuple(replace(write, per_second=_ASSUMED) for write in entity.writes)
        return replace(entity, writes=told or (_PUT,))

    def access(self, name: str, access: AccessPattern | None) -> AccessPattern | None:
        """Return the access pattern of a question with the rate that it counts by."""
        if not self.reads:
            return access
        return replace(access or AccessPattern(name), per_second=_ASSUMED)

    def design(self, design: Design) -> Design:
        """Return a design that has its keys, weighed as the questions are: for a price beside theirs."""
        if not (self.reads or self.writes):
            return design
        tables = []
        for table in design.tables:
            entities = tuple(self._keyed(entity) for entity in table.entities)
            together = tuple(
                replace(each, access=self.access(each.name, each.access)) for each in table.collections
            )
            tables.append(replace(table, entities=entities, collections=together))
        return replace(design, tables=tuple(tables))

    def _keyed(self, entity: EntityDesign) -> EntityDesign:
        def asked(pattern: PatternDesign) -> PatternDesign:
            return replace(pattern, access=self.access(f"{entity.name}.{pattern.name}", pattern.access))

        told = self.entity(entity)
        primary = None if told.primary is None else asked(told.primary)
        return replace(told, primary=primary, patterns=tuple(map(asked, told.patterns)))

    def without(self, design: Design, given: Mapping[str, EntityDesign]) -> Design:
        """Return a solved design without what was filled in: rates that nobody said are in nobody's design."""
        if not (self.reads or self.writes):
            return design

        def bare(pattern: PatternDesign) -> PatternDesign:
            return replace(pattern, access=_unrated(pattern.access)) if self.reads else pattern

        def bare_all(collection: CollectionDesign) -> CollectionDesign:
            return replace(collection, access=_unrated(collection.access)) if self.reads else collection

        tables = []
        for table in design.tables:
            entities = []
            for entity in table.entities:
                primary = None if entity.primary is None else bare(entity.primary)
                writes = given[entity.name].writes if self.writes else entity.writes
                patterns = tuple(map(bare, entity.patterns))
                entities.append(replace(entity, primary=primary, patterns=patterns, writes=writes))
            tables.append(
                replace(table, entities=tuple(entities), collections=tuple(map(bare_all, table.collections)))
            )
        return replace(design, tables=tuple(tables))

    def notes(self, entities: Mapping[str, EntityDesign], silent: Sequence[str]) -> Iterator[str]:
        """Give what was filled in, and what counts for nothing."""
        if self.reads:
            yield (
                "Nobody said how often anything is asked: every question counts as one a second. Give per_second= in "
                "AccessPattern for a price that is yours."
            )
        elif silent:
            yield f"Without a rate, and so without a price: {_few(silent)}. Give per_second= to weigh them."
        if self.writes:
            undeclared = [name for name, entity in entities.items() if entity.writes == (_PUT,)]
            told = (
                f"; of {_few(undeclared)} no write is declared, and one put is assumed" if undeclared else ""
            )
            yield (
                f"Nobody said how often anything is written: every write counts as one a second{told}. Give per_second= "
                "in WritePattern for a price that is yours."
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
                f"Written without a rate, so that index entries cost nothing for it: {_few(unrated)}. Give per_second= to "
                "weigh them."
            )
        unwritten = [name for name, entity in entities.items() if not entity.writes]
        if unwritten:
            yield (
                f"No write is declared of {_few(unwritten)}, so that indexes cost nothing to keep there. Declare a "
                "WritePattern with its per_second= to weigh them."
            )


def _unrated(access: AccessPattern | None) -> AccessPattern | None:
    """Return an access pattern without its rate, None where nothing else was said."""
    if access is None:
        return None
    told = replace(access, per_second=None)
    return None if told == AccessPattern(access.title) else told


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")

"""Standings: what the records of a batch come to for each item, by what entities add to numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tavola.client.stream_changes import AnyChange, RawChange
from tavola.model import Entity, Table, shape_of
from tavola.patterns.recipe import RecipeRefused
from tavola.patterns.shares import SHARES_MAX, Share, Shares, source_of


@dataclass(slots=True)
class Standing:
    """The records of one item in a batch: the state that they come to, and how far in the stream that is."""

    source: str
    tag: str = ""
    place: str = ""
    shares: Shares = field(default_factory=dict)
    gone: bool = False
    moved: bool = False  # whether a record changed what the item adds
    sequences: list[str] = field(default_factory=list)
    error: Exception | None = None  # why the last state cannot be counted


class Declared:
    """What each entity of a table adds to the numbers."""

    def __init__(self, table: type[Table]) -> None:
        self.table = table
        self.functions: dict[type[Entity], Callable[[Any], Iterable[Share]]] = {}

    def shares_of(self, entity: Entity | None) -> Shares:
        """Return what an item adds to the numbers; nothing, if it is gone or of no entity that was declared."""
        function = None if entity is None else self.functions.get(type(entity))
        place = type(entity).__name__
        shares: Shares = {}
        for share in () if function is None else function(entity):
            parts = shares.setdefault(share.name, {})
            if not share.name or not share.part:
                raise RecipeRefused(
                    place, f"{share!r} has an empty text, which no key can have; give it a name"
                )
            if share.part in parts:
                raise RecipeRefused(
                    place,
                    f"it gives two shares of {share.name!r}, {share.part!r}; add them up, or name them apart",
                )
            if isinstance(share.value, float):
                raise RecipeRefused(place, f"{share!r} has a float, which rounds; give a Decimal or an int")
            parts[share.part] = Decimal(share.value)
        if (given := sum(map(len, shares.values()))) > SHARES_MAX:
            raise RecipeRefused(
                place, f"it gives {given} shares, and {SHARES_MAX} fit into a transaction with their mark"
            )
        return shares

    def standings(self, changes: Iterable[AnyChange]) -> dict[str, Standing]:
        """Return the items that changes are about and that count, each with its last state."""
        standings: dict[str, Standing] = {}
        for change in changes:
            source = source_of(self.table, change.keys)
            if source in standings or change.entity in self.functions:
                self._note(standings.setdefault(source, Standing(source)), change)
        return standings

    def _note(self, standing: Standing, change: AnyChange) -> None:
        """Take one more record of an item. Only the last state counts; what lay between need not be readable."""
        standing.sequences.append(change.sequence)
        place = place_of(change)
        if place < standing.place:
            return
        standing.place = place
        standing.gone = change.kind == "removed"
        standing.error = None
        if change.entity is not None:
            standing.tag = shape_of(change.entity).name
        try:
            standing.shares = self.shares_of(self._state(change))
        except Exception as error:  # noqa: BLE001 - the user's function, of this item alone
            standing.error = error
        standing.moved = (
            standing.moved or standing.error is not None or self._before(change) != standing.shares
        )

    def _before(self, change: AnyChange) -> Shares | None:
        """Return what an item added before a change; None: nobody can say."""
        if isinstance(change, RawChange) or (change.old is None and change.kind != "inserted"):
            return None
        try:
            return self.shares_of(change.old)
        except Exception:  # noqa: BLE001 - it is of no account any more
            return None

    def _state(self, change: AnyChange) -> Entity | None:
        """Return what an item is after a change; None: it is gone, or of no entity."""
        if change.kind == "removed":
            return None
        if isinstance(change, RawChange):
            if change.found is None and change.problem is not None:
                raise change.problem
            return change.found
        if change.new is None:
            raise RecipeRefused(
                self.table.__name__, "its stream tells no new images, so nothing can be counted"
            )
        found: Entity = change.new
        return found


def place_of(change: AnyChange) -> str:
    """Return how far in a table's streams a change is, as text that sorts so: by stream, then by number.

    A stream's label is the time at which it was enabled, so a table that was made anew goes on after the
    old one.
    """
    stream = change.origin.stream
    if stream is None:
        raise RecipeRefused(
            "the records", "they do not tell which stream they are of; give its ARN with stream=…"
        )
    return f"{stream.rpartition('/stream/')[2]}/{change.sequence:0>40}"

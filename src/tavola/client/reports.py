"""Reports: what is told of a table: keys that are wrong, changes it needs, what a migration takes, what was done.

Data alone, each with the words for a person; the modules that find it out are loaded when they are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from tavola.client.effects import Call
from tavola.values import Item

FaultKind = Literal["stale", "missing", "superfluous", "misplaced"]
GuardFaultKind = Literal["unguarded", "taken", "orphaned"]
TableChangeKind = Literal[
    "create", "add index", "drop index", "stream", "ttl", "recovery", "class", "protection", "encryption",
    "billing", "tags",
]  # fmt: skip
Means = Literal["nothing", "rewrite", "move", "care"]


@dataclass(frozen=True, slots=True)
class KeyFault:
    """A key of an item that is not what it should be."""

    key: Item  # of the item, in the table
    entity: str
    index: str | None  # None: the table's own key, which a write in place cannot mend
    kind: FaultKind
    stored: Item  # its attributes as they are, absent ones left out
    right: Item  # and as they should be

    def __str__(self) -> str:
        where = "the table's key" if self.index is None else f"its key in {self.index}"
        return f"{self.entity} {plain_key(self.key)}: {where} is {self.kind}: {plain_key(self.stored) or 'absent'}, and should be {plain_key(self.right) or 'absent'}"


@dataclass(frozen=True, slots=True)
class GuardFault:
    """A unique value that is kept for nobody, for another item as well, or for an item that does not have it."""

    key: Item  # of the item that has the value; of an orphaned guard, the guard's own
    entity: str
    field: str
    kind: GuardFaultKind
    guard: str  # the text of the guard's key
    owner: Item | None  # the key of the item that the guard names, where that is another

    def __str__(self) -> str:
        owner = plain_key(self.owner or {})
        match self.kind:
            case "unguarded":
                what = f"no guard keeps its {self.field}, and another item could take the value"
            case "taken":
                what = f"its {self.field} must be unique, and is taken by {owner}; change one of the two"
            case "orphaned":
                what = f"this guard keeps {self.field} for {owner}, which does not have the value"
        return f"{self.entity} {plain_key(self.key)}: {what}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item that says it is of an entity, and cannot be read as one."""

    key: Item
    entity: str
    reason: str

    @property
    def plain_key(self) -> str:
        """Its key as a person reads it."""
        return plain_key(self.key)


@dataclass(frozen=True, slots=True)
class KeyReport:
    """What a table was found to be; the tuples hold the first thousand of each kind."""

    table: str
    items: int
    by_entity: Mapping[str, int]
    # Stale, missing, superfluous and misplaced keys; unknown, unreadable, left and expired items; unguarded and taken
    # unique values, and orphaned guards.
    counts: Mapping[str, int]
    faults: tuple[KeyFault, ...]
    unknown: tuple[Item, ...]  # keys of items of no entity in the design
    unreadable: tuple[Unreadable, ...]
    repaired: int  # items that were written
    resumed: bool = False  # it went on from a checkpoint; what the first part found is counted and not listed
    guards: tuple[GuardFault, ...] = ()

    @property
    def faulty(self) -> int:
        """How many keys and guards are not what they should be."""
        return sum(self.counts.get(kind, 0) for kind in (*get_args(FaultKind), *get_args(GuardFaultKind)))

    @property
    def sound(self) -> bool:
        """Whether every key of every item that can be read is right, and every unique value kept for one item."""
        return self.faulty == 0 and self.counts.get("unreadable", 0) == 0

    def __str__(self) -> str:
        told = [f"{self.items:,} items of {self.table} were gone through"]
        told += [f"{number:,} {kind}" for kind, number in self.counts.items() if number]
        if self.repaired:
            told.append(f"{self.repaired:,} items were put right")
        return "; ".join(told)


def plain_key(attributes: Mapping[str, Any]) -> str:
    """Return key attributes as a person reads them."""
    return " ".join(f"{name}={next(iter(value.values()))}" for name, value in attributes.items())


@dataclass(frozen=True, slots=True)
class DesignDifference:
    """One thing that is otherwise, and what it means for items that are there."""

    entity: str  # by its tag; empty for the table itself
    what: str
    means: Means

    def __str__(self) -> str:
        return f"{self.entity}: {self.what}" if self.entity else self.what


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """What one entity's items must undergo."""

    entity: str
    items: int
    rewritten: int  # of them
    write_units: float
    reasons: Mapping[str, int]  # what is otherwise: in how many items


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What a backfill would do, how long it is and what it costs."""

    table: str
    items: int
    exact: bool  # every item was looked at; otherwise the numbers are those of a sample, multiplied
    sampled: int
    entities: tuple[EntityPlan, ...]
    differences: tuple[DesignDifference, ...]  # of the design from the older one, if that was given
    given_up: tuple[str, ...]  # attributes that nothing writes any more; backfill(forget=…) removes them
    misplaced: int  # items whose key in the table would be another; a backfill leaves them
    unreadable: int
    unknown: int  # items of no entity in the design
    read_units: float
    write_units: float
    usd: Decimal  # on demand
    book: str  # whose prices
    provisioned_writes: int | None  # write units a second that the table has; None: on demand
    taken: int = 0  # items of which a unique value is another item's too; a backfill leaves them
    counted: bool = True  # whether the number of items is known; False: there are more than those looked at

    @property
    def rewritten(self) -> int:
        """How many items a backfill would write."""
        return sum(entity.rewritten for entity in self.entities)

    def seconds(self, units_per_second: float) -> float:
        """Return how long a backfill takes at so many write units a second."""
        return self.write_units / units_per_second

    def __str__(self) -> str:
        about = "" if self.exact else "about " if self.counted else "at least "
        lines = [str(each) for each in self.differences]
        if not self.rewritten:
            lines.append(
                f"Nothing must be rewritten: {about}{self.items:,} items of {self.table} are as they should be."
            )
        else:
            lines.append(
                f"{about}{self.rewritten:,} of {self.items:,} items of {self.table} must be rewritten: "
                f"{about}{self.write_units:,.0f} write units and {self.read_units:,.0f} read units, "
                f"{about}{self.usd.quantize(Decimal('0.01'))} USD on demand ({self.book})."
            )
        for entity in self.entities:
            for reason, number in entity.reasons.items():
                lines.append(f"{entity.entity}: {reason} in {about}{number:,} items")
        if self.misplaced:
            lines.append(
                f"{about}{self.misplaced:,} items would have another key in the table, and cannot be moved in place; "
                "create them anew and delete the old ones"
            )
        if self.unreadable:
            lines.append(
                f"{about}{self.unreadable:,} items cannot be read by the design; verify_keys() names them"
            )
        if self.taken:
            lines.append(
                f"{about}{self.taken:,} items have a unique value that another item has too; change one of the two"
            )
        if self.given_up:
            lines.append(
                f"nothing writes {', '.join(self.given_up)} any more; backfill(forget=…) removes them"
            )
        if self.rewritten and self.provisioned_writes:
            lines.append(
                f"the table has {self.provisioned_writes} write units a second: "
                f"{self.seconds(self.provisioned_writes):,.0f} s if nobody else writes"
            )
        if not self.exact:
            told = f"These are the numbers of {self.sampled:,} items"
            lines.append(
                f"{told}, multiplied; exact=True counts all."
                if self.counted
                else f"{told} alone: there are more, and DescribeTable does not say yet how many, for it counts some hours "
                "late; exact=True counts all."
            )
        return "\n".join(line[:1].upper() + line[1:] for line in lines)


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """What a backfill did."""

    table: str
    items: int  # gone through
    written: int
    by_entity: Mapping[str, int]  # written of each
    write_units: float  # by this run
    left: tuple[Unreadable, ...]  # items that could not be rewritten, and why: the first thousand
    left_count: int
    resumed: bool
    guards: int = 0  # of unique values, that were made

    def __str__(self) -> str:
        told = f"{self.items:,} items of {self.table} were gone through, {self.written:,} were rewritten"
        if self.guards:
            told += f", {self.guards:,} guards of unique values were made"
        return f"{told}; {self.left_count:,} were left" if self.left_count else told


@dataclass(frozen=True, slots=True)
class TableChange:
    """One change of a table, in words and as the requests that make it."""

    kind: TableChangeKind
    what: str
    calls: tuple[Call, ...]
    removes: bool = False  # it takes something away that somebody may be using
    index: str | None = None
    needs: tuple[str, ...] = ()  # indexes that must be gone before: they have an attribute of another type

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class TableChanges:
    """What makes a table its model's."""

    table: str
    changes: tuple[TableChange, ...]
    refusals: tuple[str, ...]  # what cannot be changed in place

    def __bool__(self) -> bool:
        return bool(self.changes or self.refusals)

    def __str__(self) -> str:
        if not self:
            return f"{self.table} is as its model says."
        lines = [
            f"{self.table}: {change}{' (takes away)' if change.removes else ''}" for change in self.changes
        ]
        return "\n".join(
            [*lines, *(f"{self.table}: cannot be changed in place: {told}" for told in self.refusals)]
        )

"""Reports on tables: wrong keys, changes a table needs, what a migration would do, what a backfill did.

These are data with a text form for people. The modules that compute them are loaded when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, get_args

from tavola.client.effects import Call
from tavola.values import Item

KeyProblemKind = Literal["stale", "missing", "superfluous", "misplaced"]
GuardProblemKind = Literal["unguarded", "taken", "orphaned"]
TableChangeKind = Literal[
    "create", "add index", "drop index", "stream", "ttl", "recovery", "class", "protection", "encryption",
    "billing", "tags",
]  # fmt: skip
Consequence = Literal["nothing", "rewrite", "move", "care"]


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """A key of an item that does not match its fields."""

    key: Item  # of the item, in the table
    entity: str
    index: str | None  # None: the primary key, which an update cannot change
    kind: KeyProblemKind
    stored: Item  # the key attributes as stored, without absent ones
    right: Item  # the key attributes as they should be

    def __str__(self) -> str:
        where = "the primary key" if self.index is None else f"the key in {self.index}"
        stored, right = key_text(self.stored) or "absent", key_text(self.right) or "absent"
        return f"{self.entity} {key_text(self.key)}: {where} is {self.kind}: it is {stored}, and should be {right}"


@dataclass(frozen=True, slots=True)
class GuardProblem:
    """A unique value without a guard, a value that two items have, or a guard whose item does not have the value."""

    key: Item  # of the item; for an orphaned guard, of the guard
    entity: str
    field: str
    kind: GuardProblemKind
    guard: str  # the guard's key
    owner: Item | None  # the key of the other item that the guard names

    def __str__(self) -> str:
        owner = key_text(self.owner or {})
        match self.kind:
            case "unguarded":
                what = f"no guard protects its {self.field}, so another item could get the same value"
            case "taken":
                what = (
                    f"its {self.field} must be unique, but {owner} has the same value; change one of the two"
                )
            case "orphaned":
                what = f"this guard reserves {self.field} for {owner}, which does not have the value"
        return f"{self.entity} {key_text(self.key)}: {what}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An item that cannot be read as its entity, or could not be rewritten."""

    key: Item
    entity: str
    reason: str

    @property
    def key_text(self) -> str:
        """Its key as text for people."""
        return key_text(self.key)


@dataclass(frozen=True, slots=True)
class KeyReport:
    """The result of verify_keys; each tuple lists up to a thousand problems of its kind."""

    table: str
    items: int
    by_entity: Mapping[str, int]
    # By kind: stale, missing, superfluous and misplaced keys; unknown, unreadable, left and expired items; unguarded and
    # taken unique values, and orphaned guards.
    counts: Mapping[str, int]
    problems: tuple[KeyProblem, ...]
    unknown: tuple[Item, ...]  # keys of items that belong to no entity in the design
    unreadable: tuple[Unreadable, ...]
    repaired: int  # items that were written
    resumed: bool = False  # from a checkpoint; problems found before it are counted but not listed
    guards: tuple[GuardProblem, ...] = ()

    @property
    def problem_count(self) -> int:
        """The number of wrong keys and guards."""
        return sum(
            self.counts.get(kind, 0) for kind in (*get_args(KeyProblemKind), *get_args(GuardProblemKind))
        )

    @property
    def sound(self) -> bool:
        """Whether all items can be read, and all their keys and guards are right."""
        return self.problem_count == 0 and self.counts.get("unreadable", 0) == 0

    def __str__(self) -> str:
        parts = [f"{self.items:,} items of {self.table} checked"]
        parts += [f"{number:,} {kind}" for kind, number in self.counts.items() if number]
        if self.repaired:
            parts.append(f"{self.repaired:,} items repaired")
        return "; ".join(parts)


def key_text(attributes: Mapping[str, Any]) -> str:
    """Return key attributes as text for people."""
    return " ".join(f"{name}={next(iter(value.values()))}" for name, value in attributes.items())


@dataclass(frozen=True, slots=True)
class DesignDifference:
    """One difference between two designs, and its consequence for stored items."""

    entity: str  # its name; empty for the table itself
    what: str
    consequence: Consequence
    membership_of: str | None = None  # the index that the entity's items enter or leave

    def __str__(self) -> str:
        return f"{self.entity}: {self.what}" if self.entity else self.what


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """What a backfill would do to the items of one entity."""

    entity: str
    items: int
    rewritten: int
    write_units: float
    reasons: Mapping[str, int]  # the number of items by reason


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What a backfill would do and cost."""

    table: str
    items: int
    exact: bool  # every item was read; otherwise the numbers are extrapolated from a sample
    sampled: int
    entities: tuple[EntityPlan, ...]
    differences: tuple[DesignDifference, ...]  # from the previous design, if it was passed
    removed_attributes: tuple[str, ...]  # no longer written; backfill(forget=…) deletes them
    misplaced: int  # items whose primary key would change; a backfill leaves them
    unreadable: int
    unknown: int  # items that belong to no entity in the design
    read_units: float
    write_units: float
    usd: Decimal  # on demand
    book: str  # the price book
    provisioned_writes: int | None  # write units per second of the table; None: on demand
    taken: int = 0  # items with a unique value that another item has too; a backfill leaves them
    total_known: bool = True  # False: there are more items than were read, and their number is unknown

    @property
    def rewritten(self) -> int:
        """The number of items that a backfill would write."""
        return sum(entity.rewritten for entity in self.entities)

    def seconds(self, units_per_second: float) -> float:
        """Return how many seconds a backfill takes at this rate."""
        return self.write_units / units_per_second

    @property
    def _price(self) -> str:
        return "< $0.01" if 0 < self.usd < Decimal("0.005") else f"${self.usd:,.2f}"

    def __str__(self) -> str:
        about = "" if self.exact else "about " if self.total_known else "at least "
        lines = [str(difference) for difference in self.differences]
        if not self.rewritten:
            lines.append(f"Nothing to rewrite: {about}{self.items:,} items of {self.table} match the design.")
        else:
            lines.append(
                f"{about}{self.rewritten:,} of {self.items:,} items of {self.table} must be rewritten: "
                f"{about}{self.write_units:,.0f} write units and {self.read_units:,.0f} read units, "
                f"{about}{self._price} on demand ({self.book})."
            )
        for entity in self.entities:
            for reason, number in entity.reasons.items():
                lines.append(f"{entity.entity}: {reason} in {about}{number:,} items")
        if self.misplaced:
            lines.append(
                f"{about}{self.misplaced:,} items would get another primary key, which cannot be changed in place; "
                "create new items and delete the old ones"
            )
        if self.unreadable:
            lines.append(f"{about}{self.unreadable:,} items cannot be read; verify_keys() lists them")
        if self.taken:
            lines.append(
                f"{about}{self.taken:,} items have a unique value that another item has too; change one of the two"
            )
        if self.removed_attributes:
            names = ", ".join(self.removed_attributes)
            lines.append(f"{names} are no longer written; backfill(forget=…) removes them")
        if self.rewritten and self.provisioned_writes:
            lines.append(
                f"the table has {self.provisioned_writes} write units per second: at least "
                f"{self.seconds(self.provisioned_writes):,.0f} s without other writers"
            )
        if not self.exact:
            sample = f"These numbers are from a sample of {self.sampled:,} items"
            lines.append(
                f"{sample}, extrapolated; use exact=True to count all."
                if self.total_known
                else f"{sample} only: there are more items, and DescribeTable does not show their number yet, because it is "
                "updated every few hours; use exact=True to count all."
            )
        return "\n".join(line[:1].upper() + line[1:] for line in lines)


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """The result of a backfill."""

    table: str
    items: int  # read
    written: int
    by_entity: Mapping[str, int]  # items written
    write_units: float  # consumed by this run
    left: tuple[Unreadable, ...]  # up to a thousand items that could not be rewritten, and why
    left_count: int
    resumed: bool
    guards: int = 0  # guards of unique values that were created

    def __str__(self) -> str:
        text = f"{self.items:,} items of {self.table} read, {self.written:,} rewritten"
        if self.guards:
            text += f", {self.guards:,} guards of unique values created"
        return f"{text}; {self.left_count:,} could not be rewritten" if self.left_count else text


@dataclass(frozen=True, slots=True)
class TableChange:
    """One change that a table needs, as text and as requests."""

    kind: TableChangeKind
    what: str
    calls: tuple[Call, ...]
    removes: bool = False  # it removes something that may be in use
    index: str | None = None
    needs: tuple[str, ...] = ()  # indexes to drop before, because they use an attribute with another type

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class TableChanges:
    """The changes that make a table match its model."""

    table: str
    changes: tuple[TableChange, ...]
    refusals: tuple[str, ...]  # differences that cannot be changed in place

    def __bool__(self) -> bool:
        return bool(self.changes or self.refusals)

    def __str__(self) -> str:
        if not self:
            return f"{self.table} matches its model."
        lines = [
            f"{self.table}: {change}{' (removes something)' if change.removes else ''}"
            for change in self.changes
        ]
        lines += [f"{self.table}: cannot be changed in place: {refusal}" for refusal in self.refusals]
        return "\n".join(lines)

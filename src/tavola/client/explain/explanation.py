"""Explanation: what an operation asks, by which index, and what it costs; as data, text and JSON.

The money is on-demand money, by a price book that is named beside it. Estimates say what they assume; what
was really consumed is there when the operation was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from tavola.client.consumption import Place, Units, added, place_text, total
from tavola.client.explain.estimates import Estimate

R_co = TypeVar("R_co", covariant=True)

_ROUNDS_MAX = 4  # how many requests are shown in text; of those that go out together, the first
_WIDTH = 100
_TEXT_MAX = 60


@dataclass(frozen=True, slots=True)
class Request:
    """One request of an operation, as it goes out, and what came of it."""

    operation: str
    body: Mapping[str, Any]
    together: int  # how many go out at once, this one among them
    estimate: Estimate | None
    consumed: Mapping[Place, Units] | None  # None: it was not sent
    scanned: int | None  # items read, of a query or scan that was run
    returned: int | None  # of those, the items that passed the filter

    @property
    def places(self) -> tuple[str, ...]:
        """What it asks: tables, or the index of one."""
        index = self.body.get("IndexName")
        return tuple(place_text((table, index)) for table in self.tables)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it asks."""
        table = self.body.get("TableName")
        if table is not None:
            return (table,)
        members = self.body.get("RequestItems")
        if members is not None:
            return tuple(members)
        actions = (next(iter(action.values())) for action in self.body.get("TransactItems", ()))
        return tuple(dict.fromkeys(action["TableName"] for action in actions))


@dataclass(frozen=True, slots=True)
class Waste:
    """What a filter threw away after it was read and paid for."""

    scanned: int
    returned: int
    units: float  # paid beyond what reading the returned items alone would have taken


@dataclass(frozen=True, slots=True)
class Explanation(Generic[R_co]):
    """What an operation asks and costs; `str()` of it is for reading, `document()` for programs."""

    what: str
    requests: tuple[Request, ...]
    more: str  # what follows that only an answer can tell; empty: nothing does
    usd_per_million: Decimal | None  # of such calls, on demand: by what was consumed, else by the estimate
    book: str  # the price book that it is from: region and date
    warnings: tuple[str, ...]
    waste: Waste | None = None
    ran: bool = False
    result: R_co | None = None  # of an operation that was run

    @property
    def operation(self) -> str:
        """DynamoDB's operation: of a read before a write, the write."""
        return self.requests[-1].operation if self.requests else "nothing"

    @property
    def index(self) -> str | None:
        """The index that is asked, None for the table itself."""
        return self.requests[0].body.get("IndexName") if self.requests else None

    @property
    def estimated(self) -> Units | None:
        """The units that were foretold, None where one request's cannot be."""
        known = [each.estimate for each in self.requests]
        if any(each is None for each in known):
            return None
        return total(added(each.by_place for each in known if each is not None))

    @property
    def estimated_by_place(self) -> dict[Place, Units]:
        """The units that were foretold, by table and index."""
        return added(each.estimate.by_place for each in self.requests if each.estimate is not None)

    @property
    def consumed(self) -> Units | None:
        """The units that DynamoDB told, None if it was not run."""
        return total(self.consumed_by_place) if self.ran else None

    @property
    def consumed_by_place(self) -> dict[Place, Units]:
        """The units that DynamoDB told, by table and index."""
        return added(each.consumed for each in self.requests if each.consumed is not None)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the estimate takes for granted, one sentence each."""
        estimates = (each.estimate for each in self.requests if each.estimate is not None)
        return tuple(dict.fromkeys(sentence for each in estimates for sentence in each.assumed))

    def document(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold, money as text."""
        waste = self.waste
        dollars = self.usd_per_million
        return {
            "what": self.what,
            "operation": self.operation,
            "index": self.index,
            "requests": [
                {"operation": each.operation, "request": each.body, "together": each.together}
                for each in self.requests
            ],
            "more": self.more or None,
            "estimated": _units_document(self.estimated, self.estimated_by_place),
            "assumed": list(self.assumed),
            "consumed": _units_document(self.consumed, self.consumed_by_place) if self.ran else None,
            "usd_per_million": None if dollars is None else f"{dollars.normalize():f}",
            "prices": self.book,
            "waste": None
            if waste is None
            else {"scanned": waste.scanned, "returned": waste.returned, "read_units": waste.units},
            "warnings": list(self.warnings),
        }

    def json(self) -> str:
        """Return the document as JSON."""
        return json.dumps(self.document(), ensure_ascii=False)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.what
        at = rounds = 0
        while at < len(self.requests) and rounds < _ROUNDS_MAX:
            each = self.requests[at]
            many = "" if each.together == 1 else f", and {each.together - 1} more at once"
            yield f"  {each.operation} on {', '.join(each.places)}{many}"
            yield from (f"    {line}" for line in _request_lines(each.body))
            at, rounds = at + each.together, rounds + 1
        if at < len(self.requests):
            yield f"  and {len(self.requests) - at:,} more requests"
        if self.more:
            yield f"  then       {self.more}"
        yield f"  estimated  {_units_text(self.estimated, self.estimated_by_place)}"
        for sentence in self.assumed:
            yield f"  assuming   {sentence}"
        if self.ran:
            yield f"  consumed   {_units_text(self.consumed, self.consumed_by_place)}"
        dollars = self.usd_per_million
        if dollars is not None:
            yield f"  cost       {dollars.normalize():f} USD for a million of these, on demand ({self.book})"
        if self.waste is not None:
            yield (
                f"  filter     {self.waste.scanned:,} items read, {self.waste.returned:,} returned, "
                f"{self.waste.units:g} read units for nothing"
            )
        for sentence in self.warnings:
            yield f"  warning    {sentence}"


def _request_lines(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield a request a line for each member, and one for each attribute of an item; long texts are cut short."""
    for name, value in request.items():
        if isinstance(value, str):
            yield f"{name}: {value}"
            continue
        line = f"{name}: {_short(value)}"
        if len(line) <= _WIDTH or not isinstance(value, Mapping | list):
            yield line
            continue
        yield f"{name}:"
        yield from (f"  {line}" for line in _member_lines(value))


def _member_lines(value: Mapping[str, Any] | list[Any]) -> Iterator[str]:
    """Yield the members of an item, the actions of a transaction, or how many a batch has and the first."""
    if isinstance(value, list):
        for action in value:
            for verb, told in action.items():
                yield f"{verb}:"
                yield from (f"  {line}" for line in _request_lines(told))
        return
    for name, each in value.items():
        many = each.get("Keys") if isinstance(each, Mapping) else each
        if isinstance(many, list):
            yield f"{name}: {len(many)}, the first of them {_short(many[0])}"
        else:
            yield f"{name}: {_short(each)}"


def _short(value: Any) -> str:
    return json.dumps(_cut(value), ensure_ascii=False)


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_MAX:
        return f"{value[:_TEXT_MAX]}… ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {name: _cut(each) for name, each in value.items()}
    return [_cut(each) for each in value] if isinstance(value, list) else value


def _units_text(units: Units | None, by_place: Mapping[Place, Units]) -> str:
    if units is None:
        return "not known before it is run"
    if len(by_place) < 2:
        return str(units)
    return f"{units}: {', '.join(f'{place_text(place)} {each}' for place, each in by_place.items())}"


def _units_document(units: Units | None, by_place: Mapping[Place, Units]) -> dict[str, Any] | None:
    if units is None:
        return None
    return {
        "read_units": units.reads,
        "write_units": units.writes,
        "by_place": [
            {"table": table, "index": index, "read_units": each.reads, "write_units": each.writes}
            for (table, index), each in by_place.items()
        ],
    }

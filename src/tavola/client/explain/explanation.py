"""Explanation: the requests of an operation, the index it uses, and its cost; as data, text and JSON.

Costs are on-demand prices of the price book named beside them. Estimates list their assumptions; the consumed capacity is
available if the operation was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from tavola.client.consumption import CapacityOwner, Units, merge_units, owner_name, total_units
from tavola.client.explain.estimates import Estimate

R_co = TypeVar("R_co", covariant=True)

_ROUNDS_MAX = 4  # rounds of requests that the text shows
_WIDTH = 100
_TEXT_MAX = 60


@dataclass(frozen=True, slots=True)
class ExplainedRequest:
    """One request of an operation, with its estimate and its consumption."""

    operation: str
    body: Mapping[str, Any]
    concurrent: int  # how many are sent at once, including this one
    estimate: Estimate | None
    consumed: Mapping[CapacityOwner, Units] | None  # None: it was not sent
    scanned: int | None  # items read by a query or scan, if it was run
    returned: int | None  # items that passed the filter

    @property
    def targets(self) -> tuple[str, ...]:
        """The tables or the index that it uses."""
        index = self.body.get("IndexName")
        return tuple(owner_name((table, index)) for table in self.tables)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it uses."""
        table = self.body.get("TableName")
        if table is not None:
            return (table,)
        members = self.body.get("RequestItems")
        if members is not None:
            return tuple(members)
        actions = (next(iter(action.values())) for action in self.body.get("TransactItems", ()))
        return tuple(dict.fromkeys(action["TableName"] for action in actions))


@dataclass(frozen=True, slots=True)
class FilterWaste:
    """Items that a filter discarded after they were read and paid for."""

    scanned: int
    returned: int
    units: float  # read units beyond those for the returned items alone


@dataclass(frozen=True, slots=True)
class Explanation(Generic[R_co]):
    """The requests and the cost of an operation; `str()` for people, `document()` for programs."""

    what: str
    requests: tuple[ExplainedRequest, ...]
    more: str  # requests that depend on a response and are not shown; empty: none
    # On-demand price of a million calls, by consumption if run, else by the estimate
    usd_per_million: Decimal | None
    book: str  # the price book: region and date
    warnings: tuple[str, ...]
    waste: FilterWaste | None = None
    ran: bool = False
    result: R_co | None = None  # if it was run

    @property
    def operation(self) -> str:
        """The DynamoDB operation; if a write reads first, the write."""
        return self.requests[-1].operation if self.requests else "nothing"

    @property
    def index(self) -> str | None:
        """The index that is read, None for the table itself."""
        return self.requests[0].body.get("IndexName") if self.requests else None

    @property
    def estimated(self) -> Units | None:
        """The estimated units, None if those of one request cannot be estimated."""
        if any(request.estimate is None for request in self.requests):
            return None
        return total_units(self.estimated_by_index)

    @property
    def estimated_by_index(self) -> dict[CapacityOwner, Units]:
        """The estimated units by table and index."""
        return merge_units(
            request.estimate.by_owner for request in self.requests if request.estimate is not None
        )

    @property
    def consumed(self) -> Units | None:
        """The consumed units, None if it was not run."""
        return total_units(self.consumed_by_index) if self.ran else None

    @property
    def consumed_by_index(self) -> dict[CapacityOwner, Units]:
        """The consumed units by table and index."""
        return merge_units(request.consumed for request in self.requests if request.consumed is not None)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of the estimate, one sentence each."""
        estimates = (request.estimate for request in self.requests if request.estimate is not None)
        return tuple(dict.fromkeys(sentence for estimate in estimates for sentence in estimate.assumptions))

    def document(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold, money as text."""
        waste = self.waste
        dollars = self.usd_per_million
        return {
            "what": self.what,
            "operation": self.operation,
            "index": self.index,
            "requests": [
                {"operation": request.operation, "request": request.body, "concurrent": request.concurrent}
                for request in self.requests
            ],
            "more": self.more or None,
            "estimated": _units_document(self.estimated, self.estimated_by_index),
            "assumptions": list(self.assumptions),
            "consumed": _units_document(self.consumed, self.consumed_by_index) if self.ran else None,
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
            request = self.requests[at]
            many = "" if request.concurrent == 1 else f", and {request.concurrent - 1} more concurrently"
            yield f"  {request.operation} on {', '.join(request.targets)}{many}"
            yield from (f"    {line}" for line in _request_lines(request.body))
            at, rounds = at + request.concurrent, rounds + 1
        if at < len(self.requests):
            yield f"  and {len(self.requests) - at:,} more requests"
        if self.more:
            yield f"  then       {self.more}"
        yield f"  estimated  {_units_text(self.estimated, self.estimated_by_index)}"
        for sentence in self.assumptions:
            yield f"  assuming   {sentence}"
        if self.ran:
            yield f"  consumed   {_units_text(self.consumed, self.consumed_by_index)}"
        dollars = self.usd_per_million
        if dollars is not None:
            yield f"  cost       {dollars.normalize():f} USD per million calls, on demand ({self.book})"
        if self.waste is not None:
            yield (
                f"  filter     {self.waste.scanned:,} items read, {self.waste.returned:,} returned, "
                f"{self.waste.units:g} read units wasted"
            )
        for sentence in self.warnings:
            yield f"  warning    {sentence}"


def _request_lines(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line for each member of a request, and for each attribute of an item; long texts are shortened."""
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
    """Yield the attributes of an item, the actions of a transaction, or the size of a batch and its first member."""
    if isinstance(value, list):
        for action in value:
            for verb, members in action.items():
                yield f"{verb}:"
                yield from (f"  {line}" for line in _request_lines(members))
        return
    for name, member in value.items():
        members = member.get("Keys") if isinstance(member, Mapping) else member
        if isinstance(members, list):
            yield f"{name}: {len(members)}, the first is {_short(members[0])}"
        else:
            yield f"{name}: {_short(member)}"


def _short(value: Any) -> str:
    return json.dumps(_shorten(value), ensure_ascii=False)


def _shorten(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_MAX:
        return f"{value[:_TEXT_MAX]}… ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {name: _shorten(member) for name, member in value.items()}
    return [_shorten(element) for element in value] if isinstance(value, list) else value


def _units_text(units: Units | None, by_owner: Mapping[CapacityOwner, Units]) -> str:
    if units is None:
        return "unknown until it is run"
    if len(by_owner) < 2:
        return str(units)
    return f"{units}: {', '.join(f'{owner_name(owner)} {owner_units}' for owner, owner_units in by_owner.items())}"


def _units_document(units: Units | None, by_owner: Mapping[CapacityOwner, Units]) -> dict[str, Any] | None:
    if units is None:
        return None
    return {
        "read_units": units.reads,
        "write_units": units.writes,
        "by_index": [
            {
                "table": table,
                "index": index,
                "read_units": owner_units.reads,
                "write_units": owner_units.writes,
            }
            for (table, index), owner_units in by_owner.items()
        ],
    }

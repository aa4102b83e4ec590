"""The access checks of PartiQL statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tavola.expressions.partiql import (
    Statement,
    StatementError,
    equalities,
    mentioned_attributes,
    parse_statement,
)
from tavola.iam.access_checks import AccessCheck, text_of
from tavola.iam.patterns import Values
from tavola.iam.resources import table_of
from tavola.protocol.arns import Scope
from tavola.protocol.resources import GuardResources, TableFacts

_ACTIONS = {
    "select": "dynamodb:PartiQLSelect",
    "exists": "dynamodb:PartiQLSelect",
    "insert": "dynamodb:PartiQLInsert",
    "update": "dynamodb:PartiQLUpdate",
    "delete": "dynamodb:PartiQLDelete",
}


class StatementAccessCheck(AccessCheck):
    """A statement's check on the items of one partition, or on an unknown set of items."""

    __slots__ = ("hashes", "pinned", "shared", "statement")
    is_of_items = True

    def __init__(
        self,
        resource: str,
        request: Any,
        facts: TableFacts | None,
        statement: Statement,
        hashes: tuple[str, ...],
        pinned: Mapping[str, Values],
        enclosing: str,
        shared: Any,
    ) -> None:
        super().__init__(_ACTIONS[statement.kind], resource, request, facts, enclosing)
        self.statement = statement
        self.hashes = hashes
        self.pinned = pinned
        self.shared = shared

    def leading_keys(self, place: int) -> Values:
        """Return the values that the statement fixes for the n-th partition key attribute."""
        return self.pinned.get(self.hashes[place], ()) if place < len(self.hashes) else ()

    def attributes(self) -> Values:
        """Return the attributes that the statement names."""
        return tuple(sorted(mentioned_attributes(self.statement)))

    def select(self) -> Values:
        """Return the Select value of a SELECT."""
        if self.statement.kind != "select":
            return ()
        if self.statement.columns is not None:
            return ("SPECIFIC_ATTRIBUTES",)
        return ("ALL_ATTRIBUTES",) if self.statement.index is None else ("ALL_PROJECTED_ATTRIBUTES",)

    def return_values(self) -> Values:
        """Return the image that RETURNING selects, and that of a failed condition."""
        if self.statement.kind in ("select", "exists"):
            return ()
        returning = self.statement.returning
        told = "NONE"
        if returning is not None:
            told = f"{'ALL' if returning.part == 'ALL' else 'UPDATED'}_{returning.image}"
        failing = getattr(self.request, "return_values_on_condition_check_failure", None)
        return (told, *((failing,) if failing not in (None, "NONE", told) else ()))

    def return_consumed_capacity(self) -> Values:
        """Return the request's value, or the default."""
        return (getattr(self.shared, "return_consumed_capacity", None) or "NONE",)

    def full_scan(self) -> Values:
        """Return whether a SELECT fixes no partition key."""
        if self.statement.kind != "select":
            return ()
        return ("false",) if self.hashes and self.hashes[0] in self.pinned else ("true",)


def statement_access_checks(
    request: Any, resources: GuardResources, scope: Scope, *, enclosing: str = "", shared: Any = None
) -> Iterator[AccessCheck]:
    """Yield the access checks of one statement, one per partition it names; none if it cannot be parsed."""
    try:
        statement = parse_statement(request.statement)
        given = equalities(statement, request.parameters or ())
    except StatementError:
        return
    resource, facts = table_of(statement.table, resources, scope)
    hashes: tuple[str, ...] = ()
    if facts is not None:
        hashes = (facts.hash,)
        if statement.index is not None:
            hashes = facts.indexes.get(statement.index, ((), ()))[0]
    if statement.index is not None:
        resource = f"{resource}/index/{statement.index}"
    pinned = {name: _texts(given[name]) for name in hashes if name in given}
    first = pinned.get(hashes[0], ()) if hashes else ()
    for each in [{hashes[0]: (value,)} for value in first] or [{}]:
        yield StatementAccessCheck(
            resource, request, facts, statement, hashes, {**pinned, **each}, enclosing, shared or request
        )


def _texts(values: Sequence[Any]) -> Values:
    return tuple(dict.fromkeys(text for value in values for text in text_of(value)))

"""Errors that the client raises between an entity and its table, each with the data that a handler needs.

Other refusals of DynamoDB (sustained throttling, an invalid request) are raised as the `Fault` they are. A message names the
item by its key and never shows its attributes, because messages go into logs; the data is on the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault

_TOO_LARGE = re.compile(r"Item size (?:to update )?has exceeded the maximum allowed size")


class ConditionFailed(TavolaError):
    """The condition of a write did not hold; nothing was written."""

    code = "conflict"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, found: Any = None) -> None:
        self.what = what
        self.found = found  # the stored entity, None if the item does not exist
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        state = "the item does not exist" if self.found is None else "the stored item is in .found"
        return f"{self.what}: the condition does not hold; {state}"


class ItemMissing(ConditionFailed):
    """An update of an item that does not exist."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND

    def _sentence(self) -> str:
        return f"{self.what} does not exist, so it cannot be updated; create it, or call update() with create=True"


class ItemExists(ConditionFailed):
    """A create of an item that exists already."""

    code = "exists"

    def _sentence(self) -> str:
        return f"{self.what} already exists; use put() to overwrite it or update() to change it"


class LockConflict(ConditionFailed):
    """An optimistic lock failed: the item was written after the entity was read."""

    def _sentence(self) -> str:
        return (
            f"{self.what} was changed after it was read, by another writer or by an update() whose result was not "
            "used; read it again and repeat the change"
        )


class UniqueViolation(ConditionFailed):
    """A value that must be unique belongs to another item already."""

    code = "taken"

    def __init__(self, what: str, field: str, value: Any, owner: Any = None) -> None:
        self.field = field
        self.value = value
        self.owner = owner  # the key of the item that has the value, in DynamoDB JSON
        super().__init__(what)

    def _sentence(self) -> str:
        return f"{self.what}: another item has the same {self.field}, which must be unique; see .value and .owner"


class ItemImmutable(TavolaError):
    """A write over an item of an entity declared with immutable=True; nothing was sent."""

    code = "immutable"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, verb: str) -> None:
        self.what = what
        self.verb = verb
        remedy = "delete it with erase=True" if verb == "delete" else "create another item instead"
        super().__init__(f"{what} is immutable, so {verb}() is not allowed; {remedy}")


class UpdateIncomplete(TavolaError):
    """An update does not determine a new index key, and the entity says stale="refuse"."""

    def __init__(self, what: str, index: str, fields: tuple[str, ...]) -> None:
        self.what = what
        self.index = index
        self.fields = fields
        super().__init__(
            f"{what}: the key in {index} also contains {', '.join(fields)}, whose value the update does not determine; "
            f'set it in the same update, fix it with when=, or declare the entity with stale="read"'
        )


class UpdateContended(TavolaError):
    """Other writers changed the item during every attempt of an update."""

    code = "contended"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, attempts: int) -> None:
        self.what = what
        self.attempts = attempts
        super().__init__(
            f"{what} was changed by other writers during all {attempts} attempts to update it; retry later"
        )


class TransactionRefused(TavolaError):
    """A transaction that DynamoDB would reject, refused before it is sent."""

    def __init__(self, problem: str, intents: Sequence[Any] = ()) -> None:
        self.problem = problem
        self.intents = tuple(intents)  # the intents with the problem
        super().__init__(f"The transaction cannot be committed: {problem}")


class CursorRefused(TavolaError):
    """A page cursor that belongs to another query or was not issued by this application."""

    code = "cursor-refused"
    kind = ErrorKind.USAGE

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The cursor cannot be used: {reason}")


class TableMissing(ResourceNotFoundFault):
    """A table that does not exist in this account and region."""

    def __init__(self, tables: Sequence[str]) -> None:
        self.tables = tuple(tables)  # those that the request named; at least one is missing
        what = (
            f"table {self.tables[0]} does not exist"
            if len(self.tables) == 1
            else f"at least one of the tables {', '.join(self.tables)} does not exist"
        )
        super().__init__(
            f"Requested resource not found: {what} here; create it with create_tables(), or check the region and account"
        )


class ItemSizeExceeded(ValidationFault):
    """A write whose item would exceed DynamoDB's limit of 400 KB; nothing was written."""

    kind = ErrorKind.TOO_LARGE


def specific_error(request: Mapping[str, Any], error: TavolaError) -> TavolaError:
    """Return a more specific error for one from a backend, or the error itself.

    DynamoDB does not say which table is missing, and reports an item that is too large as a general validation error.
    """
    if type(error) is ValidationFault and is_item_too_large(error.message):
        return ItemSizeExceeded(str(error))
    if type(error) is not ResourceNotFoundFault:
        return error
    names = [request["TableName"]] if "TableName" in request else list(request.get("RequestItems", ()))
    for action in request.get("TransactItems", ()):
        names += [inner["TableName"] for inner in action.values()]
    return TableMissing(sorted(set(names))) if names else error


def is_item_too_large(message: str | None) -> bool:
    """Return whether DynamoDB's message says that an item is too large."""
    return message is not None and _TOO_LARGE.search(message) is not None

"""What can go wrong between an entity and its table, each with the data that its handler needs.

What DynamoDB answers otherwise (a throttle that lasted, a table that is not there) arrives as the `Fault` it is. A sentence
names the item by its key and never tells what is in it: sentences go into logs. The data is on the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault

_TOO_LARGE = re.compile(r"Item size (?:to update )?has exceeded the maximum allowed size")


class ConditionFailed(TavolaError):
    """A write whose condition did not hold; nothing was written."""

    code = "conflict"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, found: Any = None) -> None:
        self.what = what
        self.found = found  # the entity that stands there, None where there is none
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        state = "the item does not exist" if self.found is None else "what the item is, is in .found"
        return f"{self.what}: the condition does not hold; {state}"


class ItemMissing(ConditionFailed):
    """A change of an item that is not there."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND

    def _sentence(self) -> str:
        return f"{self.what} does not exist, so it cannot be changed; create it, or update with create=True"


class ItemExists(ConditionFailed):
    """A creation of an item that is there already."""

    code = "exists"

    def _sentence(self) -> str:
        return f"{self.what} exists already; put() would overwrite it, update() would change it"


class LockLost(ConditionFailed):
    """A write of an entity that somebody else has written since it was read."""

    def _sentence(self) -> str:
        return (
            f"{self.what} was written since it was read, by somebody else or by an update() whose result was not taken; "
            "read it again and repeat the change"
        )


class UniqueTaken(ConditionFailed):
    """A value that must be unique, and that another item has."""

    code = "taken"

    def __init__(self, what: str, field: str, value: Any, owner: Any = None) -> None:
        self.field = field
        self.value = value
        self.owner = owner  # the key of the item that has it, as DynamoDB has keys
        super().__init__(what)

    def _sentence(self) -> str:
        return f"{self.what}: its {self.field} is taken by another item; .value and .owner tell which"


class ItemImmutable(TavolaError):
    """A write over an item of an entity that says immutable=True; nothing was asked."""

    code = "immutable"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, verb: str) -> None:
        self.what = what
        self.verb = verb
        remedy = (
            "delete it with erase=True if it must go" if verb == "delete" else "create another item instead"
        )
        super().__init__(f"{what} is immutable, and {verb}() would not leave it as it is; {remedy}")


class UpdateNeedsMore(TavolaError):
    """An update that would leave an index key stale, of an entity that says stale="refuse"."""

    def __init__(self, what: str, index: str, fields: tuple[str, ...]) -> None:
        self.what = what
        self.index = index
        self.fields = fields
        told = ", ".join(fields)
        super().__init__(
            f"{what}: the key in {index} is made of {told} too, and the update does not say what it is; set it in "
            f'the same update, fix it with when=, or let the entity read first (stale="read")'
        )


class UpdateContended(TavolaError):
    """An update that was overtaken too often."""

    code = "contended"
    kind = ErrorKind.CONFLICT

    def __init__(self, what: str, attempts: int) -> None:
        self.what = what
        self.attempts = attempts
        super().__init__(
            f"{what} was changed by others {attempts} times while it was being updated; try later"
        )


class TransactionRefused(TavolaError):
    """A transaction that DynamoDB would not take, told before it is asked."""

    def __init__(self, problem: str, intents: Sequence[Any] = ()) -> None:
        self.problem = problem
        self.intents = tuple(intents)  # those that it is about
        super().__init__(f"The transaction cannot be done: {problem}")


class CursorRefused(TavolaError):
    """A page cursor that was not given for this question, or not by this application."""

    code = "cursor-refused"
    kind = ErrorKind.USAGE

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The cursor cannot be used: {reason}")


class TableMissing(ResourceNotFoundFault):
    """A table that is not there, or not in the region and account that were asked."""

    def __init__(self, tables: Sequence[str]) -> None:
        self.tables = tuple(tables)  # those that were asked for; at least one is missing
        told = (
            f"no table {self.tables[0]}" if len(self.tables) == 1 else f"not all of {', '.join(self.tables)}"
        )
        super().__init__(
            f"Requested resource not found: there is {told} here; create_tables() makes it, and another region or account "
            "may have it"
        )


class ItemSizeExceeded(ValidationFault):
    """A write whose item would be larger than DynamoDB's 400 KB; nothing was written."""

    kind = ErrorKind.TOO_LARGE


def specific_error(request: Mapping[str, Any], error: TavolaError) -> TavolaError:
    """Return an error as it is, or as the one that tells more of it.

    A table that is not there is told by its name, which DynamoDB leaves out; an item that is too large has an error of
    its own, for DynamoDB tells it from other invalid requests by its words alone.
    """
    if type(error) is ValidationFault and too_large(error.message):
        return ItemSizeExceeded(str(error))
    if type(error) is not ResourceNotFoundFault:
        return error
    names = [request["TableName"]] if "TableName" in request else list(request.get("RequestItems", ()))
    for action in request.get("TransactItems", ()):
        names += [inner["TableName"] for inner in action.values()]
    if not names:
        return error
    return TableMissing(sorted(set(names)))


def too_large(message: str | None) -> bool:
    """Return whether a refusal of DynamoDB says that an item is too large."""
    return message is not None and _TOO_LARGE.search(message) is not None

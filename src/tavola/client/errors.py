"""What can go wrong between an entity and its table, each with the data that its handler needs.

What DynamoDB answers otherwise (a throttle that lasted, a table that is not there) arrives as the `Fault` it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tavola.errors import TavolaError


class ConditionFailed(TavolaError):
    """A write whose condition did not hold; nothing was written."""

    def __init__(self, what: str, found: Any = None) -> None:
        self.what = what
        self.found = found  # the entity that stands there, None where there is none
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        state = "does not exist" if self.found is None else f"is {self.found!r}"
        return f"{self.what}: the condition does not hold; the item {state}"


class ItemMissing(ConditionFailed):
    """A change of an item that is not there."""

    def _sentence(self) -> str:
        return f"{self.what} does not exist, so it cannot be changed; create it, or update with create=True"


class ItemExists(ConditionFailed):
    """A creation of an item that is there already."""

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

    def __init__(self, what: str, field: str, value: Any, owner: Any = None) -> None:
        self.field = field
        self.value = value
        self.owner = owner  # the key of the item that has it, as DynamoDB has keys
        super().__init__(what)

    def _sentence(self) -> str:
        return f"{self.what}: {self.field} {self.value!r} is taken by another item"


class ItemImmutable(TavolaError):
    """A write over an item of an entity that says immutable=True; nothing was asked."""

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

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The cursor cannot be used: {reason}")

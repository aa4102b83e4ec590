"""Errors for attribute values, in DynamoDB's words."""

from __future__ import annotations

from tavola.errors import TavolaError


class ValueRefused(TavolaError):
    """A value of the right shape that DynamoDB does not accept: a ValidationException.

    DynamoDB words some refusals in two ways, by operation and region; both are carried, and the
    operation that asked chooses. A `bare` one is told the same everywhere, with nothing in front.
    """

    remedy = "Mend the value or expression that is named; nothing was changed."

    def __init__(self, classic: str, modern: str | None = None, *, bare: bool = False) -> None:
        self.classic = classic
        self.modern = classic if modern is None else modern
        self.bare = bare
        super().__init__(self.modern)


class NumberRefused(ValueRefused):
    """Text that is no DynamoDB number, or a result that no DynamoDB number can hold."""


class DuplicatesRefused(ValueRefused):
    """A set that names a member twice."""


class ValueMalformed(TavolaError):
    """JSON that does not deserialise into an attribute value: a SerializationException."""

    remedy = "Mend the value or expression that is named; nothing was changed."

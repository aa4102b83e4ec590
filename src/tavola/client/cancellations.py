"""Cancellations: why a transaction was not done, told for each intent by what stood in its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from tavola.client.errors import ItemExists
from tavola.client.intents import Intent
from tavola.errors import ErrorKind, TavolaError
from tavola.model import Entity

E = TypeVar("E", bound=Entity)

ReasonKind = Literal[
    "condition",  # the caller's condition did not hold
    "missing",  # there is no item to be changed, or none where one is checked for
    "exists",  # there is an item where one was to be created
    "lock",  # somebody else has written it since it was read
    "unique",  # another item has a value that must be unique
    "conflict",  # another transaction was at work on the item, however often it was tried
    "throttled",  # there was no capacity, however often it was tried
    "too_large",  # the item, or its partition with local indexes, would be larger than it may be
    "invalid",  # DynamoDB cannot do it to the item that is there
]


@dataclass(frozen=True, slots=True)
class Reason(Generic[E]):
    """What stood in the way of one intent."""

    intent: Intent[E]
    kind: ReasonKind
    error: TavolaError  # what the same write alone would have raised
    item: E | None = field(
        repr=False
    )  # what stands there, where a condition of any kind failed; None where there is nothing


class Failures(Mapping[Intent[Any], Reason[Any]]):
    """The reasons of those intents that failed, each typed as its intent is."""

    def __init__(self, reasons: Sequence[Reason[Any] | None]) -> None:
        self._reasons = {reason.intent: reason for reason in reasons if reason is not None}

    def __getitem__(self, intent: Intent[E]) -> Reason[E]:
        return self._reasons[intent]

    def __iter__(self) -> Iterator[Intent[Any]]:
        return iter(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{intent!r}: {reason.kind}' for intent, reason in self._reasons.items())}}}"


class TransactionCancelled(TavolaError):
    """A transaction of which nothing was done; `failed` says for which intents, and why."""

    kind = ErrorKind.CONFLICT

    def __init__(self, reasons: Sequence[Reason[Any] | None]) -> None:
        self.reasons = tuple(reasons)  # one for each intent, in their order; None: nothing stood in its way
        self.failed = Failures(reasons)
        TavolaError.__init__(self, _sentence(self.failed))


class TransactionExists(TransactionCancelled, ItemExists):
    """A transaction that nothing stands in the way of but one creation of what is there already.

    It is also an `ItemExists`, with what is there as `found`: of a transaction that is tried again, this alone
    says that it was done before.
    """

    def __init__(self, reasons: Sequence[Reason[Any] | None]) -> None:
        only = next(reason for reason in reasons if reason is not None)
        self.what = only.intent.what
        self.found = only.item
        TransactionCancelled.__init__(self, reasons)


def cancelled(reasons: Sequence[Reason[Any] | None]) -> TransactionCancelled:
    """Return the error for some reasons, of which at least one is one."""
    failed = [reason for reason in reasons if reason is not None]
    assert failed, "a transaction is not cancelled for nothing"
    if len(failed) == 1 and failed[0].kind == "exists":
        return TransactionExists(reasons)
    return TransactionCancelled(reasons)


def _sentence(failed: Failures) -> str:
    told = "; ".join(f"{intent!r}: {reason.error}" for intent, reason in failed.items())
    return f"Nothing of the transaction was done. {told}"

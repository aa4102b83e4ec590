"""Router: which function a change goes to, by its entity.

    router = Router(Desk)

    @router.on(Ticket)
    def count(change: EntityChange[Ticket]) -> None: …

    @router.on(Session, "removed")
    def say_goodbye(change: EntityChange[Session]) -> None: …

It takes changes one at a time (`dispatch`), or a whole event as a Lambda function does (`handler`).
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tavola.client.stream_changes import AnyChange, ChangeKind, EntityChange, RawChange, changes_of
from tavola.client.streams import StreamError
from tavola.model import Entity, ModelError, Table, shape_of

E = TypeVar("E", bound=Entity)
R = TypeVar("R")

_log = logging.getLogger("tavola.client")


class ChangeUnrouted(StreamError):
    """A change of an item that is of no entity, or cannot be read, where nobody asked for such."""

    def __init__(self, change: RawChange) -> None:
        self.change = change
        why = (
            "is of no entity of this design"
            if change.problem is None
            else f"cannot be read ({change.problem})"
        )
        super().__init__(f"The item {change.keys} {why}; say with @router.raw what becomes of such")


class Router:
    """Functions for the changes of a table, each for those of an entity.

    Changes of entities that no function is for are passed over. Those of no entity at all are not: without
    a `raw` function they are a `ChangeUnrouted`. `reports_failures` is for a Lambda function whose mapping
    has ReportBatchItemFailures; without it, what goes wrong is raised and the whole batch comes again.
    """

    def __init__(self, table: type[Table], *, reports_failures: bool = True) -> None:
        self.table = table
        self.reports_failures = reports_failures
        self._routes: list[tuple[type[Entity], tuple[ChangeKind, ...], Callable[[Any], Any]]] = []
        self._raw: Callable[[RawChange], Any] | None = None

    def on(
        self, entity: type[E], *kinds: ChangeKind
    ) -> Callable[[Callable[[EntityChange[E]], R]], Callable[[EntityChange[E]], R]]:
        """Decorate a function for the changes of an entity, of all kinds unless some are given."""
        if entity is not Entity and shape_of(entity).table not in (self.table, None):
            raise ModelError(
                entity.__name__,
                f"it lives in another table than {self.table.__name__}, whose changes these are",
            )

        def mark(function: Callable[[EntityChange[E]], R]) -> Callable[[EntityChange[E]], R]:
            self._routes.append((entity, kinds, function))
            return function

        return mark

    def raw(self, function: Callable[[RawChange], R]) -> Callable[[RawChange], R]:
        """Decorate the function for items that are of no entity, or cannot be read as theirs."""
        self._raw = function
        return function

    def functions(self, change: AnyChange) -> Iterator[Callable[[Any], Any]]:
        """Give the functions that a change goes to, in the order in which they were declared."""
        if isinstance(change, RawChange):
            if self._raw is None:
                raise ChangeUnrouted(change)
            yield self._raw
            return
        for entity, kinds, function in self._routes:
            if issubclass(change.entity, entity) and (not kinds or change.kind in kinds):
                yield function

    def dispatch(self, change: AnyChange) -> None:
        """Call the functions that a change goes to; what one raises is raised, and no other is called."""
        for function in self.functions(change):
            if inspect.iscoroutinefunction(function):
                raise TypeError(
                    f"{function.__name__} is a coroutine function; await router.adispatch(change)"
                )
            function(change)

    async def adispatch(self, change: AnyChange) -> None:
        """Call the functions that a change goes to, and await those that can be."""
        for function in self.functions(change):
            answer = function(change)
            if inspect.isawaitable(answer):
                await answer

    def handler(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any] | None:
        """Deal with an event of Lambda; the first change that goes wrong, and all after it, come again."""
        for change in changes_of(self.table, event):
            try:
                self.dispatch(change)
            except Exception:
                if not self.reports_failures:
                    raise
                _log.exception("the change %s failed; it comes again", change.sequence)
                return failures([change.sequence])
        return failures([]) if self.reports_failures else None


def failures(sequences: Sequence[str]) -> dict[str, Any]:
    """Return what a Lambda function answers when some records failed: those from the first on come again."""
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in sequences]}

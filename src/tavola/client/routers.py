"""Router: calls functions with the changes of a table, by entity.

    router = Router(Desk)

    @router.on(Ticket)
    def count(change: EntityChange[Ticket]) -> None: …

    @router.on(Session, "removed")
    def say_goodbye(change: EntityChange[Session]) -> None: …

It takes changes one at a time (`dispatch`), or the whole event of a Lambda function (`handler`).
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
    """A change of an item that belongs to no entity or cannot be read, and no `raw` function is registered."""

    def __init__(self, change: RawChange) -> None:
        self.change = change
        why = (
            "belongs to no entity of this design"
            if change.problem is None
            else f"cannot be read ({change.problem})"
        )
        super().__init__(f"The item {change.keys} {why}; register a function for such items with @router.raw")


class Router:
    """Functions for the changes of a table, each registered for one entity.

    Changes of entities without a function are ignored. A change of no entity raises `ChangeUnrouted`, unless a `raw` function
    is registered.

    `handler` raises if a function raises, and the whole batch is delivered again, whatever the event source mapping's settings
    are. `report_batch_item_failures` makes it return the first record that failed instead, so that the records before it do
    not come again. Lambda reads that only if the mapping has the setting of the same name, and otherwise drops the records.
    """

    def __init__(self, table: type[Table], *, report_batch_item_failures: bool = False) -> None:
        self.table = table
        self.report_batch_item_failures = report_batch_item_failures
        self._routes: list[tuple[type[Entity], tuple[ChangeKind, ...], Callable[[Any], Any]]] = []
        self._raw: Callable[[RawChange], Any] | None = None

    def on(
        self, entity: type[E], *kinds: ChangeKind
    ) -> Callable[[Callable[[EntityChange[E]], R]], Callable[[EntityChange[E]], R]]:
        """Register a function for the changes of an entity, of all kinds unless some are given."""
        if entity is not Entity and shape_of(entity).table not in (self.table, None):
            raise ModelError(
                entity.__name__,
                f"it is stored in another table than {self.table.__name__}; register it with that table's router",
            )

        def mark(function: Callable[[EntityChange[E]], R]) -> Callable[[EntityChange[E]], R]:
            self._routes.append((entity, kinds, function))
            return function

        return mark

    def raw(self, function: Callable[[RawChange], R]) -> Callable[[RawChange], R]:
        """Register the function for items that belong to no entity, or cannot be read."""
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
        """Call the functions for a change; if one raises, the rest are not called."""
        for function in self.functions(change):
            if inspect.iscoroutinefunction(function):
                raise TypeError(
                    f"{function.__name__} is a coroutine function; use await router.adispatch(change)"
                )
            function(change)

    async def adispatch(self, change: AnyChange) -> None:
        """Call the functions for a change, and await coroutine functions."""
        for function in self.functions(change):
            result = function(change)
            if inspect.isawaitable(result):
                await result

    def handler(self, event: Mapping[str, Any], context: object = None) -> dict[str, Any] | None:
        """Process a Lambda event; a change that fails ends it, and is raised or reported."""
        for change in changes_of(self.table, event):
            try:
                self.dispatch(change)
            except Exception as error:
                if not self.report_batch_item_failures:
                    error.add_note(f"The change {change.sequence} failed, so its whole batch fails.")
                    raise
                _log.exception(
                    "change %s failed and is returned in batchItemFailures, which the event source mapping must read "
                    "(report_batch_item_failures)",
                    change.sequence,
                )
                return failures([change.sequence])
        return failures([]) if self.report_batch_item_failures else None


def failures(sequences: Sequence[str]) -> dict[str, Any]:
    """Return the response of a Lambda function when records failed.

    They are delivered again, from the first on, if the event source mapping reads it.
    """
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in sequences]}

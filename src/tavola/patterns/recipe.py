"""Recipe: the base of every pattern. A method is written once and works on a synchronous and an asynchronous client.

    class Greetings(Recipe[D_co]):
        @recipe_method
        def greet(self, name: str) -> PatternProgram[Guest]:
            guest = yield from call_client(lambda db: db.get(Guest.Key(name=name)))
            return guest or (yield from call_client(lambda db: db.create(Guest(name=name))))

    Greetings(db).greet("Ada")              with a `Connection`: returns a Guest
    await Greetings(db).greet("Ada")        with an `AsyncConnection`: the same, awaited

A recipe method is a generator that yields the client calls it wants made. The client that the recipe was created with
decides whether they are called or awaited, and type checkers know which. Recipes use only the client's public methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from functools import update_wrapper
from inspect import isawaitable
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar, overload

from tavola.client.connection import AsyncConnection, Connection, Page, Transaction
from tavola.client.effects import RunBlocking, Sleep, run_program, run_program_async
from tavola.client.retries import RetryPolicy
from tavola.clock import Clock, pause
from tavola.entropy import Entropy
from tavola.errors import TavolaError
from tavola.model import Entity, PrimaryKey, Query, Selection, shape_of

D_co = TypeVar("D_co", bound=Connection | AsyncConnection, covariant=True)
E = TypeVar("E", bound=Entity)
P = ParamSpec("P")
R = TypeVar("R")


class PatternError(TavolaError):
    """Base class of the errors that only patterns raise."""


class RecipeRefused(PatternError):
    """An entity, key or setting that a pattern cannot use."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place}: {problem}")


PatternProgram: TypeAlias = Generator[Callable[[Connection], Any] | Sleep | RunBlocking, Any, R]


def call_client(call: Callable[[Connection], R]) -> PatternProgram[R]:
    """Make one client call and return its result.

    Written `yield from call_client(lambda db: db.get(key))`. The same function is used with an asynchronous client, whose result is awaited afterwards. So it must make exactly one
    call and not use its result. Of a page, use `items` and `cursor`; do not iterate over it.
    """
    result: R = yield call
    return result


def write_together(fill: Callable[[Transaction], object]) -> PatternProgram[None]:
    """Make several writes in one transaction, all of them or none.

    Written `yield from write_together(lambda writes: (writes.create(order), writes.delete(cart)))`.
    """
    result = yield lambda db: _commit(db, fill)
    assert result is None


def _commit(db: Connection, fill: Callable[[Transaction], object]) -> Any:
    writes = db.transaction()
    fill(writes)
    return writes.commit()  # an awaitable, if the client is asynchronous


def sleep(seconds: float) -> PatternProgram[None]:
    """Wait without blocking an event loop."""
    yield Sleep(seconds)


def run_blocking(function: Callable[[], R]) -> PatternProgram[R]:
    """Run a blocking function, such as a file access; with an event loop, in a thread."""
    result: R = yield RunBlocking(function)
    return result


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """One page of a result, in order."""

    items: tuple[R, ...]
    cursor: str | None  # continues after this page; None: this was the last

    def __iter__(self) -> Iterator[R]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def query_all(page: Callable[[Connection, str | None], Page[E]]) -> PatternProgram[list[E]]:
    """Return the entities of all pages of a query.

    Written `yield from query_all(lambda db, cursor: db.query(question, cursor=cursor))`.
    """
    entities: list[E] = []
    cursor: str | None = None
    while True:
        start = cursor
        result = yield from call_client(lambda db: page(db, start))  # noqa: B023 - called before the next turn
        entities += result.items
        cursor = result.cursor
        if cursor is None:
            return entities


def query_slice(
    query: Selection[E],
    limit: int | None,
    cursor: str | None = None,
    *,
    newest_first: bool = False,
    consistent: bool | None = None,
) -> PatternProgram[Slice[E]]:
    """Return one page of a query; everything if neither limit nor cursor is given."""
    if limit is None and cursor is None:
        entities = yield from query_all(
            lambda db, start: db.query(query, cursor=start, newest_first=newest_first, consistent=consistent)
        )
        return Slice(tuple(entities), None)
    page = yield from call_client(
        lambda db: db.query(
            query, limit=limit or 100, cursor=cursor, newest_first=newest_first, consistent=consistent
        )
    )
    return Slice(tuple(page.items), page.cursor)


class Recipe(Generic[D_co]):
    """A pattern that works on a client's tables; subclass it and write its methods with `recipe_method`."""

    def __init__(self, db: D_co) -> None:
        self.db = db
        self.clock: Clock = db.context.clock  # shared with the client, so that a test sets them once
        self.entropy: Entropy = db.context.entropy
        self.retry_policy: RetryPolicy = db.context.retry_policy

    def run_program(self, program: PatternProgram[Any]) -> Any:
        """Return what a program returns; with an asynchronous client, an awaitable of it."""
        db: Connection | AsyncConnection = self.db
        return run_async(db, program) if isinstance(db, AsyncConnection) else run(db, program)

    def random_below(self, bound: int) -> int:
        """Return a random number below a bound."""
        return int.from_bytes(self.entropy.bytes(8), "big") % bound


class recipe_method(Generic[P, R]):  # noqa: N801 - used as a decorator
    """Turn a method that returns a program into one that runs it: called or, with an asynchronous client, awaited."""

    def __init__(self, steps: Callable[Concatenate[Any, P], PatternProgram[R]]) -> None:
        self.steps = steps
        update_wrapper(self, steps)  # type: ignore[arg-type]  # it takes whatever it can find

    @overload
    def __get__(self, recipe: None, owner: type, /) -> recipe_method[P, R]: ...
    @overload
    def __get__(self, recipe: Recipe[Connection], owner: type, /) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, recipe: Recipe[AsyncConnection], owner: type, /
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, recipe: Recipe[Any] | None, owner: type, /) -> Any:
        if recipe is None:
            return self

        def method(*arguments: P.args, **options: P.kwargs) -> Any:
            return recipe.run_program(self.steps(recipe, *arguments, **options))

        return update_wrapper(method, self.steps)


def run(db: Connection, program: PatternProgram[R]) -> R:
    """Return what a pattern's program returns, calling the client; errors are raised inside the program."""

    def perform(effect: Any) -> Any:
        if isinstance(effect, Sleep):
            return pause(effect.seconds)
        return effect.function() if isinstance(effect, RunBlocking) else effect(db)

    return run_program(program, perform)


async def run_async(db: AsyncConnection, program: PatternProgram[R]) -> R:
    """Return what a pattern's program returns, awaiting the client."""

    async def perform(effect: Any) -> Any:
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        if isinstance(effect, RunBlocking):
            return await asyncio.to_thread(effect.function)
        result = effect(db)
        return await result if isawaitable(result) else result

    return await run_program_async(program, perform)


def key_class(entity: type[E], *parts: str) -> type[PrimaryKey[E]]:
    """Return an entity's key class; refuse one whose arguments are not exactly `parts`."""
    shape = shape_of(entity)
    if shape.key is None:
        _refuse(entity, "Key", parts)
    declared = getattr(entity, shape.key.name)
    assert isinstance(declared, type)
    assert issubclass(declared, PrimaryKey)
    if set(shape.key.partition) != set(parts):
        _refuse(entity, shape.key.name, parts)
    return declared


def query_class(
    entity: type[E], query: type[Query[E]], *parts: str, sorts: tuple[str, ...] = ()
) -> type[Query[E]]:
    """Return `query`; refuse one whose arguments are not exactly `parts` or whose sort key does not begin with `sorts`."""
    pattern = query.__get_pattern__()
    if pattern.owner is not entity:
        raise RecipeRefused(
            pattern.place,
            f"the pattern stores {entity.__name__} items; pass a query class of {entity.__name__}",
        )
    if set(pattern.partition) != set(parts) or pattern.sorts[: len(sorts)] != sorts:
        sort_parts = f", and sort parts {', '.join(sorts)} first" if sorts else ""
        raise RecipeRefused(
            pattern.place, f"the pattern asks it with {', '.join(parts)}{sort_parts}; declare it so"
        )
    return query


def check_expires_with(entity: type[Entity], field: str) -> None:
    """Refuse an entity whose field is not its table's TTL attribute: expired items would never be deleted."""
    shape = shape_of(entity)
    attribute = shape.fields[field].attribute
    if shape.home.settings.ttl != attribute:
        raise RecipeRefused(
            f"{entity.__name__}.{field}",
            f'it says when an item is over; declare {shape.home.__name__} with ttl="{attribute}", or the field with '
            f"attr(name=…) of the table's",
        )


def _refuse(entity: type[Entity], name: str, parts: tuple[str, ...]) -> NoReturn:
    raise RecipeRefused(
        f"{entity.__name__}.{name}",
        f"the pattern finds its items by {', '.join(parts)}; declare a class {name}(PrimaryKey[…]) of just these, and "
        "a table",
    )

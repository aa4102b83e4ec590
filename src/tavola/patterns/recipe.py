"""Recipe: what every pattern is built on. Written once, it serves a synchronous and an asynchronous client.

    class Greetings(Recipe[D]):
        @verb
        def greet(self, name: str) -> Turns[Guest]:
            found = yield from ask(lambda db: db.get(Guest.Key(name=name)))
            return found or (yield from ask(lambda db: db.create(Guest(name=name))))

    Greetings(db).greet("Ada")              with a `Connection`: a Guest
    await Greetings(db).greet("Ada")        with an `AsyncConnection`: the same

A verb is a generator that yields the calls it wants made of the client. What its object was given decides whether they
are made or awaited, and type checkers know which. Nothing here reaches behind the client's methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from functools import update_wrapper
from inspect import isawaitable
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, TypeAlias, TypeVar, overload

from tavola.client import AsyncDb, Db, Page, RetryPolicy, Transaction
from tavola.clock import Clock, pause
from tavola.entropy import Entropy
from tavola.errors import TavolaError
from tavola.model import Entity, PrimaryKey, Query, shape_of

D = TypeVar("D", bound=Db | AsyncDb)
D_co = TypeVar("D_co", bound=Db | AsyncDb, covariant=True)
E = TypeVar("E", bound=Entity)
P = ParamSpec("P")
R = TypeVar("R")


class PatternError(TavolaError):
    """What goes wrong in a pattern and nowhere else."""


class RecipeRefused(PatternError):
    """An entity, key or setting that a pattern cannot work with."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(f"{place}: {problem}")


@dataclass(frozen=True, slots=True)
class Pause:
    """Some time that a verb wants to wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Something of one's own that takes its time: a file, another service."""

    function: Callable[[], Any]


Turns: TypeAlias = Generator[Callable[[Db], Any] | Pause | Work, Any, R]


def ask(what: Callable[[Db], R]) -> Turns[R]:
    """Have one call made of the client and get what it returns.

    Written `yield from ask(lambda db: db.get(key))`. An asynchronous client is asked by the same function, and its answer is awaited. So the function makes one call
    and looks at nothing that comes of it; of a page, take `items` and `cursor` and do not iterate.
    """
    answer: R = yield what
    return answer


def together(fill: Callable[[Transaction], object]) -> Turns[None]:
    """Have several writes made in one transaction, all of them or none.

    Written `yield from together(lambda writes: (writes.create(order), writes.delete(cart)))`.
    """
    answer = yield lambda db: _committed(db, fill)
    assert answer is None


def _committed(db: Db, fill: Callable[[Transaction], object]) -> Any:
    writes = db.transaction()
    fill(writes)
    return writes.commit()  # of an asynchronous client, to be awaited


def wait(seconds: float) -> Turns[None]:
    """Let some time pass, as the client does: a thread sleeps, a loop goes on."""
    yield Pause(seconds)


def work(function: Callable[[], R]) -> Turns[R]:
    """Do what is no call of the client and takes its time; a loop has it done in a thread."""
    answer: R = yield Work(function)
    return answer


@dataclass(frozen=True, slots=True)
class Slice(Generic[R]):
    """Some of an answer, in its order."""

    items: tuple[R, ...]
    cursor: str | None  # from where to go on; None: that was all

    def __iter__(self) -> Iterator[R]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def every(page: Callable[[Db, str | None], Page[E]]) -> Turns[list[E]]:
    """Return everything that a question finds, through all its pages.

    Written `yield from every(lambda db, cursor: db.query(question, cursor=cursor))`.
    """
    found: list[E] = []
    cursor: str | None = None
    while True:
        here = cursor
        answer = yield from ask(lambda db: page(db, here))  # noqa: B023 - it is called before the next turn
        found += answer.items
        cursor = answer.cursor
        if cursor is None:
            return found


class Recipe(Generic[D_co]):
    """A pattern at work on a client's tables; subclass it, with verbs."""

    def __init__(self, db: D_co) -> None:
        self.db = db
        self.clock: Clock = db.context.clock  # a pattern has its client's time, chance and patience
        self.entropy: Entropy = db.context.entropy
        self.retry_policy: RetryPolicy = db.context.retry_policy

    def perform(self, steps: Turns[Any]) -> Any:
        """Return what steps come to, or where the client is asynchronous, what can be awaited for it."""
        db: Db | AsyncDb = self.db
        return arun(db, steps) if isinstance(db, AsyncDb) else run(db, steps)

    def chance(self, bound: int) -> int:
        """Return any number below a bound."""
        return int.from_bytes(self.entropy.bytes(8), "big") % bound


class verb(Generic[P, R]):  # noqa: N801 - used as a decorator
    """Make a method written in steps one that can be called, or awaited where the client is asynchronous."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Turns[R]]) -> None:
        self.steps = steps
        update_wrapper(self, steps)  # type: ignore[arg-type]  # it takes whatever it can find

    @overload
    def __get__(self, recipe: None, owner: type, /) -> verb[P, R]: ...
    @overload
    def __get__(self, recipe: Recipe[Db], owner: type, /) -> Callable[P, R]: ...
    @overload
    def __get__(self, recipe: Recipe[AsyncDb], owner: type, /) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, recipe: Recipe[Any] | None, owner: type, /) -> Any:
        if recipe is None:
            return self

        def method(*arguments: P.args, **options: P.kwargs) -> Any:
            return recipe.perform(self.steps(recipe, *arguments, **options))

        return update_wrapper(method, self.steps)


def run(db: Db, steps: Turns[R]) -> R:
    """Return what steps come to, calling the client; what goes wrong goes wrong where the steps stand."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(wanted, Pause):
                    pause(wanted.seconds)
                elif isinstance(wanted, Work):
                    answer = wanted.function()
                else:
                    answer = wanted(db)
            except Exception as error:  # noqa: BLE001 - the steps know what to undo, whatever it was
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is not generic
    finally:
        steps.close()


async def arun(db: AsyncDb, steps: Turns[R]) -> R:
    """Return what steps come to, awaiting the client."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer: Any = None
                if isinstance(wanted, Pause):
                    await asyncio.sleep(wanted.seconds)
                elif isinstance(wanted, Work):
                    answer = await asyncio.to_thread(wanted.function)
                else:
                    answer = wanted(db)  # type: ignore[arg-type]  # its methods are those of Db, awaited
                    if isawaitable(answer):
                        answer = await answer
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - the steps know what to undo, whatever it was
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # StopIteration is not generic
    finally:
        steps.close()


def key_class(entity: type[E], *parts: str) -> type[PrimaryKey[E]]:
    """Return the key class of an entity, whose arguments must be just these."""
    shape = shape_of(entity)
    if shape.key is None:
        _refuse(entity, "Key", parts)
    found = getattr(entity, shape.key.name)
    assert isinstance(found, type)
    assert issubclass(found, PrimaryKey)
    if set(shape.key.partition) != set(parts):
        _refuse(entity, shape.key.name, parts)
    return found


def query_class(
    entity: type[E], query: type[Query[E]], *parts: str, sorts: tuple[str, ...] = ()
) -> type[Query[E]]:
    """Return a query class of an entity, whose arguments must be just these and whose sort key must begin so."""
    pattern = query.__compiled__()
    if pattern.owner is not entity:
        raise RecipeRefused(pattern.place, f"the pattern is of {entity.__name__}; give a query class of that")
    if set(pattern.partition) != set(parts) or pattern.sorts[: len(sorts)] != sorts:
        told = f", and sort parts {', '.join(sorts)} first" if sorts else ""
        raise RecipeRefused(
            pattern.place, f"the pattern asks it with {', '.join(parts)}{told}; declare it so"
        )
    return query


def expires_with(entity: type[Entity], field: str) -> None:
    """Refuse an entity whose field is not its table's time to live: what is over would stay, and be paid for."""
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

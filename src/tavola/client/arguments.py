"""Arguments: what is handed to a verb and is not what it takes, told with what to give.

A type checker sees all of this; whoever runs without one is told in the same words, before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tavola.model import (
    Change,
    Collection,
    Condition,
    Entity,
    ModelError,
    Operand,
    PrimaryKey,
    QueryRefused,
    Shape,
    Table,
    fields_apply_to,
    shape_of,
)


def shape_of_entity(entity: Any, verb: str) -> Shape:
    """Return the shape of an entity that is to be stored; refuse what is none."""
    if not isinstance(entity, Entity):
        raise ModelError(verb, f"it stores entities, such as Ticket(…), not {_told(entity)}")
    return shape_of(type(entity))


def check_condition(shape: Shape, condition: Any, verb: str, word: str = "when") -> None:
    """Refuse what is no condition, and a condition on another entity."""
    if condition is None:
        return
    name = shape.entity.__name__
    if not isinstance(condition, Condition):
        if isinstance(condition, bool):
            problem = f"{condition} is no condition; compare the field of the class, {name}.field, not of an instance"
        elif isinstance(condition, Change):
            problem = f"a change of {condition.field} is no condition; changes stand before {word}="
        else:
            problem = f"{_told(condition)} is no condition"
        raise QueryRefused(
            f"{name}.{verb}", f"{word}= takes a condition such as {name}.field.eq(…): {problem}"
        )
    if condition.entity is not None and not fields_apply_to(shape.entity, condition.entity):
        raise QueryRefused(
            f"{name}.{verb}", f"{word}= is a condition on {condition.entity.__name__}; name fields of {name}"
        )


def check_changes(shape: Shape, changes: Iterable[Any]) -> None:
    """Refuse what is no change, and changes of another entity."""
    name = shape.entity.__name__
    for change in changes:
        if not isinstance(change, Change):
            if isinstance(change, Condition):
                problem = "a condition is none; it goes into when="
            elif isinstance(change, Operand):
                problem = (
                    f"{change.field} alone is none; say what becomes of it, {name}.{change.field}.set(…)"
                )
            else:
                problem = f"{_told(change)} is none"
            raise ModelError(f"{name}.update", f"it takes changes such as {name}.field.set(…): {problem}")
        if change.entity is not None and not fields_apply_to(shape.entity, change.entity):
            raise ModelError(
                f"{name}.update",
                f"a change of {change.entity.__name__}.{change.field} is given; give changes of {name}",
            )


def check_collection(collection: Any) -> None:
    """Refuse what is no collection with its partition."""
    if isinstance(collection, Collection):
        return
    if isinstance(collection, type) and issubclass(collection, Collection):
        raise QueryRefused(
            collection.__name__,
            f"it is a class; call it with what it is asked with: {collection.__name__}({_parts(collection)})",
        )
    raise QueryRefused(
        "collect", f"it takes a collection such as TicketFile(ticket_id=…), not {_told(collection)}"
    )


def check_scanned(what: Any) -> None:
    """Refuse what is neither an entity nor a table."""
    if isinstance(what, type) and issubclass(what, Entity | Table):
        return
    raise QueryRefused("scan", f"it takes an entity's class such as Ticket, not {_told(what)}")


def _parts(collection: type[Collection]) -> str:
    return ", ".join(f"{name}=…" for name in collection.__parts__)


def _told(given: Any) -> str:
    """Return what was given as people call it; never what is in it."""
    if isinstance(given, type):
        return f"the class {given.__qualname__}"
    if isinstance(given, PrimaryKey):
        return f"the key {given!r}"
    return f"a {type(given).__name__}"

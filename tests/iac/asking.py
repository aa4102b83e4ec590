"""Every declared access pattern, asked with the client as an application would: what a policy must let through.

Entities are made up from their types, so that any design can be asked; what is asked besides, in the shapes that a pattern allows
(several items in one transaction, a check beside a write), is asked too.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from tavola import Collection, Connection, Entity, Table, WritePattern, to_item
from tavola.model import VERSION_ATTRIBUTE, entities_of, shape_of

LATER = datetime(2050, 1, 2, 3, 4, 5, tzinfo=UTC)


def sample(entity: type[Entity], number: int = 1) -> Any:
    """Return an entity with what it must have, and all that its keys are made of; another for each number."""
    shape = shape_of(entity)
    assert shape.key is not None
    wanted = {name for name, field in shape.fields.items() if field.required}
    wanted |= {name for key in (shape.key.key, *shape.keys) for name in key.fields}
    told = {name: entity.model_fields[name].annotation for name in wanted if name in entity.model_fields}
    return entity(**{n: _value(kind, number if n in shape.key_fields else 1) for n, kind in told.items()})


def _value(annotation: Any, number: int) -> Any:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _value(get_args(annotation)[0], number)
    if origin in (Union, types.UnionType):
        return _value(next(each for each in get_args(annotation) if each is not type(None)), number)
    if origin is Literal:
        return get_args(annotation)[0]
    if origin in (list, tuple, set, frozenset):
        return origin([_value(get_args(annotation)[0], number)])
    if origin is dict:
        return {}
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return next(iter(annotation))
        if issubclass(annotation, datetime):
            return LATER + timedelta(seconds=number)
        if issubclass(annotation, date):
            return LATER.date() + timedelta(days=number)
        if issubclass(annotation, BaseModel):
            fields = annotation.model_fields.items()
            return annotation(**{n: _value(f.annotation, number) for n, f in fields if f.is_required()})
        for kind, made in (
            (bool, True),
            (int, number),
            (float, 0.5),
            (Decimal, Decimal("0.5")),
            (bytes, b"x"),
        ):
            if issubclass(annotation, kind):
                return made
    return f"{number}"


@dataclass(frozen=True)
class Application:
    """The tables of an application, with its collections."""

    tables: Sequence[type[Table]]
    collections: Sequence[type[Collection]] = ()
    views: Mapping[type[Entity], type[Entity]] = field(
        default_factory=dict
    )  # what is read of an entity by its key

    @property
    def entities(self) -> Iterator[type[Entity]]:
        """All that lives in its tables."""
        return (entity for table in self.tables for entity in entities_of(table))

    def fill(self, db: Connection, first: int = 1) -> None:
        """Put two items of each entity where everything may be done, numbered from the first on."""
        for entity in self.entities:
            for number in (first, first + 1):
                made = sample(entity, number)
                for unique in shape_of(entity).uniques:
                    made = made.model_copy(update={unique.field: f"old-{number}"})
                db.create(made)
                if shape_of(entity).version > 1 and number > first:  # as a program of an older schema left it
                    item = {name: value for name, value in to_item(made).items() if name != VERSION_ATTRIBUTE}
                    db.call("PutItem", {"TableName": shape_of(entity).home.settings.name, "Item": item})

    def read(self, db: Connection) -> None:
        """Ask every read pattern."""
        for entity in self.entities:
            shape = shape_of(entity)
            assert shape.key is not None
            made: Any = sample(entity)
            access = shape.key.access
            if access is not None:
                keys = [_key(entity, number) for number in (1, 2)]
                if access.transactional:
                    db.get_together(keys)
                elif (access.items or 1) > 1:
                    assert all(db.get_many(keys))
                elif entity in self.views:
                    assert db.get(keys[0], view=self.views[entity]) is not None
                else:
                    assert db.get(keys[0]) is not None
            for name, pattern in shape.patterns.items():
                asked = getattr(entity, name)(**{part: getattr(made, part) for part in pattern.partition})
                assert db.query(asked).items, f"{entity.__name__}.{name} finds what there is"
                db.count(asked)
        for collection in self.collections:
            parts = dict.fromkeys(collection.__parts__, "1")
            db.collect(collection(**parts))

    def write(self, db: Connection, first: int) -> None:
        """Make every write: to the two items that are there from the first number on, and to new ones after them."""
        for entity in self.entities:
            for number, write in enumerate(shape_of(entity).writes, start=1):
                if write.kind == "put":
                    self._put(db, entity, write, first, first + 10 * number)
                elif write.kind == "update":
                    self._update(db, entity, write, first)
                else:
                    self._delete(db, entity, write, first)

    def _put(self, db: Connection, entity: type[Entity], write: WritePattern, first: int, new: int) -> None:
        made = [sample(entity, new + more) for more in range(2)]
        for unique in shape_of(entity).uniques:  # of the usual size, and of one that stands by its digest
            made = [
                each.model_copy(update={unique.field: f"{new}-{more}" * size})
                for more, (each, size) in enumerate(zip(made, (1, 700), strict=True))
            ]
        if write.transactional:
            with db.transaction() as tx:
                tx.check(_key(entity, first))
                for each in made:
                    tx.create(each)
        elif write.items > 1:
            db.put_many(made)
        else:
            db.create(made[0])
            if not shape_of(entity).immutable:
                db.put(made[1])
                db.put(made[1])  # with guards that are there
                fields = [unique.field for unique in shape_of(entity).uniques]
                db.put(made[1].model_copy(update=dict.fromkeys(fields, f"{new}-again")))

    def _update(self, db: Connection, entity: type[Entity], write: WritePattern, first: int) -> None:
        def changes(number: int, round_: int) -> list[Any]:
            return [
                getattr(entity, name).add(1)
                if name in write.adds
                else getattr(entity, name).set(
                    _value(entity.model_fields[name].annotation, 100 * number + round_)
                )
                for name in dict.fromkeys((*write.changes, *write.adds))
            ]

        if not write.transactional:
            for number in (first, first + 1):
                db.update(_key(entity, number), *changes(number, 0))
            if write.creates:
                db.update(_key(entity, first + 50), *changes(first + 50, 0), create=True)
            return
        for round_, numbers in enumerate(((first,), (first, first + 1))):
            with db.transaction() as tx:
                for number in numbers:
                    tx.update(_key(entity, number), *changes(number, round_))
        with db.transaction() as tx:
            tx.check(_key(entity, first + 1))
            tx.update(_key(entity, first), *changes(first, 2))

    def _delete(self, db: Connection, entity: type[Entity], write: WritePattern, first: int) -> None:
        keys = [_key(entity, number) for number in (first, first + 1)]
        if write.transactional:
            with db.transaction() as tx:
                tx.check(keys[1])
                tx.delete(keys[0])
        elif write.items > 1:
            db.delete_many(keys)
        else:
            db.delete(keys[0])
            db.delete(keys[0])  # there is none, and no guard


def _key(entity: Any, number: int) -> Any:
    made = sample(entity, number)
    shape = shape_of(entity)
    assert shape.key is not None
    return entity.Key(**{name: getattr(made, name) for name in shape.key.partition})

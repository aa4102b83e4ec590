"""A club whose members have unique values, and a check that guards and items agree."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tavola import (
    Attr,
    Collection,
    Connection,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    attr,
    member,
    sort,
)
from tavola.client.unique_guards import guards_of
from tavola.model import OWNER_ATTRIBUTE, UNIQUE_ATTRIBUTE, shape_of


class Club(Table, ttl="ends"):
    """Members of several clubs."""

    inverted = Gsi(pk="sk", sk="pk")


class Member(Entity, table=Club):
    """A member: the email is unique in the table, the handle and the number within the club."""

    club: Attr[str]
    member_id: Attr[str]
    email: Attr[str] = attr(unique=True)
    handle: Attr[str | None] = attr(default=None, unique=True, within=("club", "team"))
    team: Attr[str] = attr(default="first")
    number: Attr[int | None] = attr(default=None, unique=True, within=("club",))
    nickname: Attr[str | None] = attr(default=None)
    ends: Attr[datetime | None] = attr(default=None)

    class Key(PrimaryKey["Member"], pk="CLUB#{club}", sk="MEMBER#{member_id}"):
        club: str
        member_id: str

    class InClub(Query["Member"], on=Key):
        club: str
        member_id: Sort[str] = sort()


class Roll(Collection, pk="CLUB#{club}"):
    """All that is in a club."""

    club: str
    members: list[Member] = member()


class Town(Table, pk="person_id", sk=None, tag=None):
    """A table of another program: no sort key, no tag."""


class Person(Entity, table=Town):
    """A person, keyed by id."""

    person_id: Attr[str]
    email: Attr[str] = attr(unique=True)
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Person"]):
        person_id: str


def disagreements(db: Connection, entity: type[Entity]) -> list[str]:
    """Return each guard without an item, and each unique value of an item without a guard."""
    shape = shape_of(entity)
    items = db.call("Scan", {"TableName": db.context.name_of(shape.home), "ConsistentRead": True})["Items"]
    guards = {_key(shape.home, item): item for item in items if UNIQUE_ATTRIBUTE in item}
    owners: dict[Any, str] = {}
    problems: list[str] = []
    for item in items:
        if UNIQUE_ATTRIBUTE in item:
            continue
        primary = {name: item[name] for name in _names(shape.home)}
        for guard in guards_of(shape, item, primary).values():
            key = _key(shape.home, guard.item)
            if key in owners:
                problems.append(f"{guard.text} is had by {owners[key]} and {primary}")
            elif guards.get(key) != guard.item:
                problems.append(f"{guard.text} is had by {primary}, and its guard is {guards.get(key)}")
            owners[key] = str(primary)
    problems += [f"{item[OWNER_ATTRIBUTE]} has no {key}" for key, item in guards.items() if key not in owners]
    return problems


def _names(table: type[Table]) -> list[str]:
    return [name for name in (table.settings.hash, table.settings.range) if name is not None]


def _key(table: type[Table], item: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(item[name]["S"] for name in _names(table))

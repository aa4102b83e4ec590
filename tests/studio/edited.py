"""A table of people with every kind of derived key, and the studio on it, for tests of editing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from tavola import (
    Attr,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Shards,
    Sort,
    Table,
    attr,
    connect,
    connect_async,
    sort,
)
from tavola.engine import Engine
from tavola.model.document import Design, design_of
from tavola.studio.studio import Studio, TablesLocation

R = TypeVar("R")
JOINED = datetime(2026, 3, 1, 12, tzinfo=UTC)


class State(StrEnum):
    ASKED = "asked"
    ACTIVE = "active"
    LEFT = "left"


class Club(Table, name="studio-club", pk="PK", sk="SK", ttl="ends"):
    """Members and their visits."""

    by_state = Gsi(pk="GSI1PK", sk="GSI1SK", name="states")
    by_town = Gsi(pk="GSI2PK", sk="GSI2SK", projection=("name",), name="towns")
    by_points = Gsi(pk="town", sk="points", projection="KEYS_ONLY", name="points")


class Member(Entity, table=Club):
    """A member of the club."""

    member_id: Attr[str]
    name: Attr[str]
    state: Attr[State]
    joined_at: Attr[datetime]
    town: Attr[str | None] = attr(default=None)
    points: Attr[int | None] = attr(default=None)
    email: Attr[str | None] = attr(default=None, unique=True)
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
        member_id: str

    class ByState(
        Query["Member"], on=Club.by_state, pk="STATE#{state}", sk="{joined_at:desc}", shards=Shards(4)
    ):
        state: State
        joined_at: Sort[datetime] = sort()

    class ByTown(
        Query["Named"],
        on=Club.by_town,
        pk="TOWN#{town}",
        sk="{points:06}#{member_id}",
        sparse=True,
        members={"state": State.ACTIVE},
    ):
        town: str
        points: Sort[int] = sort()
        member_id: Sort[str] = sort()


class Named(Entity):
    """What the index of towns has of a member."""

    name: Attr[str]


class Visit(Entity, table=Club, immutable=True):
    """A visit of a member."""

    member_id: Attr[str]
    number: Attr[int]

    class Key(PrimaryKey["Visit"], pk="MEMBER#{member_id}", sk="VISIT#{number:06}"):
        member_id: str
        number: int


DESIGN = design_of(Club, Member, Visit)


@dataclass
class Stage:
    """The engine, a client of entities on it, and the studio."""

    engine: Engine
    studio: Studio

    def item(self, key: dict[str, Any], table: str = "studio-club") -> dict[str, Any] | None:
        answer: Any = self.engine.call("GetItem", {"TableName": table, "Key": key})
        result: dict[str, Any] | None = answer.get("Item")
        return result

    def put(self, item: dict[str, Any], table: str = "studio-club") -> None:
        self.engine.call("PutItem", {"TableName": table, "Item": item})

    def items(self, table: str) -> list[dict[str, Any]]:
        answer: Any = self.engine.call("Scan", {"TableName": table})
        result: list[dict[str, Any]] = answer["Items"]
        return result

    def call(self, handler: Callable[[Studio, Any], Coroutine[Any, Any, R]], asked: Any) -> R:
        return asyncio.run(handler(self.studio, asked))


@contextmanager
def club(*, design: Design | None = DESIGN, members: int = 3) -> Iterator[Stage]:
    """Give a club with some members, each written by the client."""
    engine = Engine.open()
    with connect(engine) as db:
        db.create_tables(Club)
        for number in range(members):
            db.create(
                Member(
                    member_id=f"m{number}",
                    name=f"Member {number}",
                    state=State.ACTIVE,
                    joined_at=JOINED,
                    town="Lecce",
                    points=10 * number,
                    email=f"m{number}@club.example",
                )
            )
    where = TablesLocation("memory", "memory", "eu-west-1")
    yield Stage(engine, Studio(db=connect_async(engine), where=where, design=design, engine=engine))
    engine.close()


def key_of(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"MEMBER#m{number}"}, "SK": {"S": "MEMBER"}}


def plain_table(stage: Stage, name: str = "plain") -> None:
    """Make a table that no design knows."""
    stage.engine.call(
        "CreateTable",
        {
            "TableName": name,
            "KeySchema": [
                {"AttributeName": "id", "KeyType": "HASH"},
                {"AttributeName": "n", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "n", "AttributeType": "N"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )

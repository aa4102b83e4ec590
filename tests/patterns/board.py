"""A help desk and the board with its numbers: the design that the tests of streams' patterns work on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from tavola import Attr, Entity, PrimaryKey, Query, Sort, Table, attr, sort
from tavola.patterns import Metric, ProjectionMark, Projector, Share, Sum

Status = Literal["new", "working", "ready"]

ARN = "arn:aws:dynamodb:eu-south-1:123456789012:table/Helpdesk/stream/2026-11-16T00:00:00.000"


class Helpdesk(Table, ttl="expires", stream="NEW_AND_OLD_IMAGES"):
    """Where the work is."""


class Case(Entity, table=Helpdesk):
    """Something that a customer needs help with."""

    case_id: Attr[str]
    status: Attr[Status] = attr(default="new")
    opened_at: Attr[datetime]
    ready_at: Attr[datetime | None] = attr(default=None)
    note: Attr[str] = attr(default="")
    expires: Attr[datetime | None] = attr(default=None)

    class Key(PrimaryKey["Case"], pk="CASE#{case_id}", sk="CASE"):
        case_id: str


class Rating(Entity, table=Helpdesk):
    """What a customer thought of it."""

    case_id: Attr[str]
    stars: Attr[int]

    class Key(PrimaryKey["Rating"], pk="CASE#{case_id}", sk="RATING"):
        case_id: str


class Board(Table, ttl="expires"):
    """Where the numbers are."""


class Numbers(Metric, table=Board):
    """The numbers of the board."""

    class Key(PrimaryKey["Numbers"], pk="METRIC#{name}", sk="{part}"):
        name: str
        part: str

    class Of(Query["Numbers"], on=Key):
        name: str
        part: Sort[str] = sort()


class Counted(ProjectionMark, table=Board):
    """What is counted."""

    class Key(PrimaryKey["Counted"], pk="MARK#{source}", sk="{projector}"):
        source: str
        projector: str


def case_shares(case: Case) -> Iterator[Share]:
    """Cases by status and by day, and how long those took that are ready."""
    yield Share("cases", case.status)
    yield Share("opened", case.opened_at.date().isoformat())
    if case.ready_at is not None:
        yield Share("resolution", value=Decimal(str((case.ready_at - case.opened_at).total_seconds())))


def rating_shares(rating: Rating) -> Iterator[Share]:
    """How content customers are."""
    yield Share("satisfaction", value=rating.stars)


def projector_on(db: Any, **options: Any) -> Projector[Any, Numbers, Counted]:
    """Return the board's projector on a client."""
    projector: Projector[Any, Numbers, Counted] = Projector(db, Helpdesk, Numbers, Counted, **options)
    projector.of(Case)(case_shares)
    projector.of(Rating)(rating_shares)
    return projector


def numbers(db: Any) -> dict[tuple[str, str], Sum]:
    """Return every number on the board that is not 0."""
    found = {(each.name, each.part): Sum(each.count, each.total) for each in db.scan(Numbers)}
    return {number: told for number, told in found.items() if told}


def marked(db: Any) -> dict[tuple[str, str], Sum]:
    """Return what the marks come to, which is what the numbers must be at every moment."""
    sums: dict[tuple[str, str], Sum] = {}
    for mark in db.scan(Counted):
        for name, parts in mark.shares.items():
            for part, value in parts.items():
                sums[name, part] = sums.get((name, part), Sum()) + Sum(1, value)
    return sums

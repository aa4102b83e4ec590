"""Reads with expired, mixed, moved, rounded, older or distant items."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    CursorRefused,
    Entity,
    Gsi,
    ItemExists,
    ManualClock,
    ModelError,
    PrimaryKey,
    Query,
    QueryRefused,
    Shards,
    Sort,
    Table,
    attr,
    sort,
    upgrade,
)
from tavola.client import reading
from tavola.client.effects import Call, CallGroup, Program
from tests.client.conftest import START_S

AT = datetime(2026, 9, 1, tzinfo=UTC)
NOW = datetime.fromtimestamp(START_S, UTC)


def drive(db: Connection, steps: Program[Any], before: Callable[[Call | CallGroup], object]) -> Any:
    """Run a program, with a callback before each effect, and return its result."""
    try:
        effect: Any = next(steps)
        while True:
            before(effect)
            if isinstance(effect, CallGroup):
                effect = steps.send([db.call(call.operation, call.request) for call in effect.calls])
            else:
                effect = steps.send(db.call(effect.operation, effect.request))
    except StopIteration as done:
        return done.value


class Sessions(Table, ttl="expires_at"):
    """Sessions and tokens, with indexes that project some attributes."""

    by_user = Gsi(pk="g1pk", sk="g1sk", projection="KEYS_ONLY")
    by_end = Gsi(pk="kind", sk="expires_at")


class Session(Entity, table=Sessions):
    """A login, which expires."""

    session_id: Attr[str]
    user: Attr[str]
    kind: Attr[str] = attr(default="web")
    expires_at: Attr[datetime]

    class Key(PrimaryKey["Session"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str

    class ByUser(Query["Session"], on=Sessions.by_user, pk="USER#{user}", sk="{session_id}", hydrate=True):
        user: str
        session_id: Sort[str] = sort()

    class ByEnd(Query["Session"], on=Sessions.by_end):
        kind: str
        expires_at: Sort[datetime] = sort()


class Token(Entity, table=Sessions):
    """A token, which lies beside the sessions of its user and never expires."""

    token_id: Attr[str]
    user: Attr[str]

    class Key(PrimaryKey["Token"], pk="TOKEN#{token_id}", sk="TOKEN"):
        token_id: str

    class ByUser(Query["TokenRef"], on=Sessions.by_user, pk="USER#{user}", sk="{token_id}"):
        user: str
        token_id: Sort[str] = sort()


class TokenRef(Entity):
    """The fields of a token in the index."""

    token_id: Attr[str]
    user: Attr[str]


@pytest.fixture
def sessions(opened: Callable[..., Connection]) -> Connection:
    """A connection with a user who has a token and two sessions, one of them expired."""
    db = opened()
    db.create_tables(Sessions)
    db.put(Session(session_id="s1", user="ann", expires_at=NOW - timedelta(seconds=1)))
    db.put(Session(session_id="s2", user="ann", expires_at=NOW + timedelta(hours=1)))
    db.put(Token(token_id="t1", user="ann"))
    return db


def test_a_count_equals_the_results_of_a_query(sessions: Connection) -> None:
    """If an index projects neither kind nor expiry, a count reads keys or items and excludes what a query excludes."""
    assert [s.session_id for s in sessions.query(Session.ByUser(user="ann"))] == ["s2"]
    assert sessions.count(Session.ByUser(user="ann")) == 1
    assert [t.token_id for t in sessions.query(Token.ByUser(user="ann"))] == ["t1"]
    with sessions.measure() as spent:
        assert sessions.count(Token.ByUser(user="ann")) == 1
    assert spent.operations == {"Query": 1}


def test_a_time_to_live_that_is_a_key_is_counted_by(sessions: Connection) -> None:
    """A filter cannot name a key, so expiry is decided on the index entries themselves."""
    assert [s.session_id for s in sessions.query(Session.ByEnd(kind="web"))] == ["s2"]
    assert sessions.count(Session.ByEnd(kind="web")) == 1
    assert sessions.count(Session.ByEnd(kind="web").expires_at.lt(NOW)) == 0


def test_a_time_to_live_of_over_five_years_ago_does_not_expire(
    opened: Callable[..., Connection], clock: ManualClock
) -> None:
    """As in DynamoDB, such a time never expires an item: for get, query, count and every condition."""
    db = opened()
    db.create_tables(Sessions)
    five_years = timedelta(days=5 * 365)
    for number, age in enumerate((five_years, five_years - timedelta(seconds=1))):
        db.put(Session(session_id=f"s{number}", user="ann", expires_at=NOW - age))

    assert db.get(Session.Key(session_id="s0")) is not None
    assert db.get(Session.Key(session_id="s1")) is None
    assert [s.session_id for s in db.query(Session.ByUser(user="ann"))] == ["s0"]
    assert [s.session_id for s in db.scan(Session)] == ["s0"]
    assert db.count(Session.ByEnd(kind="web")) == 1
    with pytest.raises(ItemExists):
        db.create(Session(session_id="s0", user="bob", expires_at=NOW + timedelta(hours=1)))
    assert db.update(Session.Key(session_id="s0"), Session.user.set("bob")).user == "bob"
    db.create(Session(session_id="s1", user="bob", expires_at=NOW + timedelta(hours=1)))


class Adopted(Table, tag=None):
    """A table whose items have no type tag."""

    by_shelf = Gsi(pk="g1pk", sk="g1sk")


class Book(Entity, table=Adopted):
    """A book, identified by its key alone."""

    number: Attr[str]
    shelf: Attr[str]

    class Key(PrimaryKey["Book"], pk="BOOK#{number}", sk="BOOK"):
        number: str

    class ByShelf(Query["Book"], on=Adopted.by_shelf, pk="SHELF#{shelf}", sk="{number}"):
        shelf: str
        number: Sort[str] = sort()


class Film(Entity, table=Adopted):
    """A film on the same shelf, under keys of the same form."""

    number: Attr[str]
    shelf: Attr[str]

    class Key(PrimaryKey["Film"], pk="FILM#{number}", sk="FILM"):
        number: str

    class ByShelf(Query["Film"], on=Adopted.by_shelf, pk="SHELF#{shelf}", sk="{number}"):
        shelf: str
        number: Sort[str] = sort()


def test_kinds_without_a_tag_are_counted_apart(opened: Callable[..., Connection]) -> None:
    """In a table without a tag, a count distinguishes the kinds in a partition by key, as a query does."""
    db = opened()
    db.create_tables(Adopted)
    db.put_many([Book(number="1", shelf="a"), Film(number="2", shelf="a"), Book(number="3", shelf="a")])

    assert [b.number for b in db.query(Book.ByShelf(shelf="a"))] == ["1", "3"]
    assert (db.count(Book.ByShelf(shelf="a")), db.count(Film.ByShelf(shelf="a"))) == (2, 1)


def test_a_page_behind_many_of_another_kind_is_soon_found(opened: Callable[..., Connection]) -> None:
    """A small page size grows while no item matches, and requests no more than it needs once some do."""
    db = opened()
    db.create_tables(Adopted)
    db.put_many(Film(number=f"{n:04}", shelf="a") for n in range(600))
    db.put_many(Book(number=f"{n:04}", shelf="a") for n in range(600, 605))

    behind = db.query(Book.ByShelf(shelf="a"), limit=1)
    assert ([b.number for b in behind], behind.requests) == (["0600"], 5)
    ahead = db.query(Film.ByShelf(shelf="a"), limit=1)
    assert (ahead.scanned, ahead.requests) == (2, 1)
    following = db.query(Book.ByShelf(shelf="a"), limit=10, cursor=behind.cursor)
    assert [b.number for b in following] == ["0601", "0602", "0603", "0604"]


class Diary(Table):
    """Events, indexed by time in several ways."""

    rising = Gsi(pk="g1pk", sk="g1sk")
    falling = Gsi(pk="g2pk", sk="g2sk")
    daily = Gsi(pk="g3pk", sk="g3sk", projection="KEYS_ONLY")
    spread = Gsi(pk="g4pk", sk="g4sk")
    native = Gsi(pk="kind", sk="score")


class Event(Entity, table=Diary):
    """An event."""

    event_id: Attr[str]
    kind: Attr[str]
    at: Attr[datetime]
    score: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Event"], pk="EVENT#{event_id}", sk="EVENT"):
        event_id: str

    class Rising(
        Query["Event"], on=Diary.rising, pk="KIND#{kind}", sk="{at}", shards=Shards.by_time("at", "day")
    ):
        kind: str
        at: Sort[datetime] = sort()

    class Falling(
        Query["Event"], on=Diary.falling, pk="KIND#{kind}", sk="{at:desc}", shards=Shards.by_time("at", "day")
    ):
        kind: str
        at: Sort[datetime] = sort()

    class Daily(Query["EventRef"], on=Diary.daily, pk="KIND#{kind}", sk="{at:day}#{event_id}"):
        kind: str
        at: Sort[datetime] = sort()
        event_id: Sort[str] = sort()

    class Spread(Query["Event"], on=Diary.spread, pk="KIND#{kind}", sk="{event_id}", shards=4):
        kind: str
        event_id: Sort[str] = sort()

    class Native(Query["Event"], on=Diary.native):
        kind: str
        score: Sort[int] = sort()


class EventRef(Entity):
    """The keys of an event, without its time."""

    event_id: Attr[str]
    kind: Attr[str]


@pytest.fixture
def diary(opened: Callable[..., Connection]) -> Connection:
    """Ten events, two a day."""
    db = opened()
    db.create_tables(Diary)
    db.put_many(
        Event(event_id=f"e{n}", kind="k", at=AT + timedelta(hours=12 * n), score=n) for n in range(10)
    )
    return db


def ids(found: Any) -> list[str]:
    """Return the ids of events, in their order."""
    return [each.event_id for each in found]


def test_shards_of_time_follow_their_sort_key(diary: Connection) -> None:
    """Time shards are read in sort-key order, also if that is descending in time."""
    days = AT, AT + timedelta(days=5)
    rising, falling = (q(kind="k").at.between(*days) for q in (Event.Rising, Event.Falling))
    order = [f"e{n}" for n in range(10)]

    assert ids(diary.query(rising)) == ids(diary.query(falling, newest_first=True)) == order
    assert ids(diary.query(falling)) == ids(diary.query(rising, newest_first=True)) == order[::-1]


class Rota(Table):
    """Shifts by day."""

    by_month = Gsi(pk="g1pk", sk="g1sk")


class Shift(Entity, table=Rota):
    """A shift with a day and no time."""

    shift_id: Attr[str]
    day: Attr[date]

    class Key(PrimaryKey["Shift"], pk="SHIFT#{shift_id}", sk="SHIFT"):
        shift_id: str

    class ByMonth(
        Query["Shift"], on=Rota.by_month, pk="ALL", sk="{day:desc}", shards=Shards.by_time("day", "month")
    ):
        day: Sort[date] = sort()


def test_shards_of_time_may_be_of_days(opened: Callable[..., Connection]) -> None:
    """A date field can shard by time too, up to the last possible day."""
    db = opened()
    db.create_tables(Rota)
    days = [date(2026, month, 31) for month in (1, 3, 5, 7)] + [date.max]
    db.put_many(Shift(shift_id=str(n), day=day) for n, day in enumerate(days))

    found = db.query(Shift.ByMonth().day.between(date(2026, 2, 1), date(2026, 5, 31)))
    assert [shift.day.month for shift in found] == [5, 3]
    last = db.query(Shift.ByMonth().day.between(date(9999, 11, 1), date.max))
    assert [shift.day for shift in last] == [date.max]


def test_shards_of_time_need_both_ends(diary: Connection) -> None:
    """A range without an end would mean something else each day, so it is refused, and a cursor holds over midnight."""
    conditions: list[Callable[[Any], Any]] = [
        lambda at: at.gte(AT), lambda at: at.gt(AT), lambda at: at.lt(AT), lambda at: at.lte(AT)
    ]  # fmt: skip
    for condition in conditions:
        with pytest.raises(QueryRefused, match=r"at\.between\(start, end\)"):
            diary.query(condition(Event.Rising(kind="k").at))


def test_a_cursor_belongs_to_the_meaning_of_a_query(diary: Connection, clock: ManualClock) -> None:
    """A cursor does not depend on the current time, on the time zone of a value, or on the consistency."""
    ends = AT, AT + timedelta(days=5)
    abroad = [end.astimezone(timezone(timedelta(hours=9))) for end in ends]
    page = diary.query(Event.Rising(kind="k").at.between(*ends), limit=3)
    clock.advance(86_400)

    following = diary.query(Event.Rising(kind="k").at.between(*abroad), limit=9, cursor=page.cursor)
    assert ids(page) + ids(following) == [f"e{n}" for n in range(10)]
    scanned = diary.scan(Event, limit=3)
    rest = diary.scan(Event, limit=9, cursor=scanned.cursor, consistent=True)
    assert len({*ids(scanned), *ids(rest)}) == 10
    with pytest.raises(CursorRefused, match="another query"):
        diary.query(Event.Rising(kind="k").at.between(AT, AT + timedelta(days=4)), cursor=page.cursor)


def _spread(shards: int) -> Any:
    class Queue(Table, name="Queue"):
        index = Gsi(pk="g1pk", sk="g1sk")

    class Job(Entity, table=Queue, tag="Job"):
        job_id: Attr[str]

        class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
            job_id: str

        class All(Query["Job"], on=Queue.index, pk="JOBS", sk="{job_id}", shards=shards):
            job_id: Sort[str] = sort()

    return Job


def test_a_cursor_of_another_number_of_shards_is_refused(opened: Callable[..., Connection]) -> None:
    """After the shard count changes, an older cursor is reported as such, not as forged."""
    db = opened()
    old, new = _spread(4), _spread(8)
    db.create_tables(old.__options__["table"])
    db.put_many(old(job_id=str(n)) for n in range(9))
    cursor = db.query(old.All(), limit=2).cursor

    with pytest.raises(CursorRefused, match="4 shards or segments, and there are 8 now"):
        db.query(new.All(), limit=2, cursor=cursor)
    part = db.scan(old, limit=2, segments=3)
    with pytest.raises(CursorRefused, match="3 shards or segments"):
        db.scan(old, limit=2, segments=2, cursor=part.cursor)


def test_a_rough_key_and_a_view_without_the_field_cannot_be_compared(diary: Connection) -> None:
    """A comparison is refused if the key truncates the value and the view lacks it;

    one that the key decides is allowed.
    """
    daily = Event.Daily(kind="k")

    for question in (daily.at.gt(AT + timedelta(hours=6)), daily.at.eq(AT + timedelta(hours=6))):
        for call in (diary.query, diary.count):
            with pytest.raises(QueryRefused, match="at rounded, and EventRef does not have the field"):
                call(question)
    assert ids(diary.query(daily.at.gte(AT + timedelta(days=4)))) == ["e8", "e9"]
    assert diary.count(daily.at.lt(AT + timedelta(days=1))) == 2


def test_a_page_without_a_limit_is_one_round(opened: Callable[..., Connection]) -> None:
    """Over shards too, a page holds one round of requests, and iterating returns every item in order."""
    db = opened()
    db.create_tables(Diary)
    db.put_many(Event(event_id=f"e{n:03}", kind="k", at=AT) for n in range(200))

    page = db.query(Event.Spread(kind="k"), page_size=10)
    assert 10 <= len(page.items) <= 40
    assert page.requests == 4
    assert ids(page) == [f"e{n:03}" for n in range(200)]


def test_a_range_on_a_field_itself_may_be_empty(diary: Connection) -> None:
    """A reversed range, or one under an empty string, matches nothing, for a template key and for a field."""
    assert list(diary.query(Event.Native(kind="k").score.between(5, 1))) == []
    assert diary.count(Event.Native(kind="k").score.between(5, 1)) == 0
    assert list(diary.query(Event.Native(kind=""))) == []
    assert len(list(diary.query(Event.Native(kind="k").score.between(1, 5)))) == 5
    turned = Event.Rising(kind="k").at.between(AT + timedelta(days=2), AT)
    assert list(diary.query(turned)) == []


def test_segments_are_read_together(diary: Connection) -> None:
    """The segments of a scan are requested at once;

    a limit applies across them, and each item is returned once.
    """
    effects: list[Call | CallGroup] = []
    steps = reading.scan(diary.context, Event, page_size=2, segments=4)
    page = drive(diary, steps, effects.append)

    assert isinstance(effects[0], CallGroup)
    assert len(effects[0].calls) == page.requests == 4
    assert len(list(diary.scan(Event, segments=4, page_size=2))) == 10
    seen: list[str] = []
    cursor = None
    while True:
        found = diary.scan(Event, segments=4, limit=3, cursor=cursor)
        seen += ids(found.items)
        assert len(found.items) == 3 or found.cursor is None
        cursor = found.cursor
        if cursor is None:
            break
    assert sorted(seen) == [f"e{n}" for n in range(10)]


@pytest.mark.parametrize("segments", [0, -1, 1_000_001])
def test_zero_segments_are_refused(diary: Connection, segments: int) -> None:
    """A scan of zero segments is refused instead of returning no items."""
    with pytest.raises(ModelError, match="segments"):
        diary.scan(Event, segments=segments)


class Office(Table):
    """Work in an index that holds a part of it."""

    by_state = Gsi(pk="g1pk", sk="g1sk", projection=("owner",))


class Work(Entity, table=Office):
    """Some work, fetched whole."""

    work_id: Attr[str]
    state: Attr[str] = attr(default="open")
    owner: Attr[str] = attr(default="ann")
    note: Attr[str] = attr(default="")

    class Key(PrimaryKey["Work"], pk="WORK#{work_id}", sk="WORK"):
        work_id: str

    class ByState(Query["Work"], on=Office.by_state, pk="STATE#{state}", sk="{work_id}", hydrate=True):
        state: str
        work_id: Sort[str] = sort()


def _meanwhile(db: Connection, change: Callable[[], object]) -> Callable[[Call | CallGroup], None]:
    """Return what changes something once, between an index's entries and their items."""
    left = [change]

    def before(effect: Call | CallGroup) -> None:
        if isinstance(effect, Call) and effect.operation == "BatchGetItem" and left:
            left.pop()()

    return before


@pytest.mark.parametrize(
    "change", [Work.state.set("closed"), Work.owner.set("bob")], ids=["moved", "filtered"]
)
def test_fetched_items_are_checked_against_the_query(opened: Callable[..., Connection], change: Any) -> None:
    """An item that left the partition or fails the filter since its index entry was read is left out."""
    db = opened()
    db.create_tables(Office)
    db.put_many(Work(work_id=f"w{n}") for n in range(3))
    question = Work.ByState(state="open").where(Work.owner.eq("ann"))
    meanwhile = _meanwhile(db, lambda: db.update(Work.Key(work_id="w1"), change))

    found = drive(db, reading.query(db.context, question), meanwhile)

    assert [work.work_id for work in found.items] == ["w0", "w2"]


@pytest.mark.parametrize("limit", [None, 1, 2, 3])
def test_a_page_with_a_cursor_is_never_empty(opened: Callable[..., Connection], limit: int | None) -> None:
    """If items of index entries are gone, the page is filled from later entries up to its limit."""
    db = opened()
    db.create_tables(Office)
    db.put_many(Work(work_id=f"w{n}") for n in range(8))
    gone = _meanwhile(db, lambda: db.delete_many([Work.Key(work_id=f"w{n}") for n in range(4)]))
    steps = reading.query(db.context, Work.ByState(state="open"), limit=limit, page_size=None if limit else 2)

    page = drive(db, steps, gone)

    expected = ["w4", "w5", "w6", "w7"]
    assert [work.work_id for work in page.items] == expected[: limit or 2]
    seen = [work.work_id for work in page.items]
    while page.cursor is not None:
        page = db.query(
            Work.ByState(state="open"), limit=limit, page_size=None if limit else 2, cursor=page.cursor
        )
        assert page.items or page.cursor is None
        seen += [work.work_id for work in page.items]
    assert seen == expected


class UserRef(Entity):
    """The fields of a user of the first schema in the index."""

    user_id: Attr[str]
    mail: Attr[str]


class PersonRef(Entity):
    """And of one of the second."""

    user_id: Attr[str]
    email: Attr[str]


def _people(version: int, projection: Any) -> Any:
    """Return a user in two schemas: the second renames the address and lowercases it."""

    class People(Table, name="People"):
        by_city = Gsi(pk="g1pk", sk="g1sk", projection=projection)

    if version == 1:

        class User(Entity, table=People, tag="User"):
            user_id: Attr[str]
            city: Attr[str]
            mail: Attr[str]
            tags: Attr[set[str]]
            note: Attr[str | None]

            class Key(PrimaryKey["User"], pk="USER#{user_id}", sk="USER"):
                user_id: str

            class ByCity(Query["UserRef"], on=People.by_city, pk="CITY#{city}", sk="{user_id}"):
                city: str
                user_id: Sort[str] = sort()

        return User

    class Person(Entity, table=People, tag="User", version=2):
        user_id: Attr[str]
        city: Attr[str]
        email: Attr[str]
        tags: Attr[set[str]]
        note: Attr[str | None]

        class Key(PrimaryKey["Person"], pk="USER#{user_id}", sk="USER"):
            user_id: str

        class ByCity(Query["PersonRef"], on=People.by_city, pk="CITY#{city}", sk="{user_id}"):
            city: str
            user_id: Sort[str] = sort()

        @staticmethod
        @upgrade(1)
        def renamed(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "email": item["mail"].lower()}

    return Person


@pytest.mark.parametrize(
    "projection", [("mail", "email"), ("mail", "email", "_version"), "ALL"], ids=["untold", "told", "whole"]
)
def test_a_view_of_an_older_item_is_upgraded(opened: Callable[..., Connection], projection: Any) -> None:
    """A view has the newest schema, whatever its item was written with;

    items of that schema are not fetched if the index projects the view.
    """
    db = opened()
    old, new = _people(1, projection), _people(2, projection)
    db.create_tables(old.__options__["table"])
    db.put(old(user_id="u1", city="rome", mail="ANN@x", tags=set(), note=None))
    db.put(new(user_id="u2", city="rome", email="bob@x", tags=set(), note=None))

    found = list(db.query(new.ByCity(city="rome")))
    assert [(ref.user_id, ref.email) for ref in found] == [("u1", "ann@x"), ("u2", "bob@x")]
    assert [type(ref).__name__ for ref in found] == ["PersonRef", "PersonRef"]
    with db.measure() as spent:
        db.query(new.ByCity(city="rome").user_id.eq("u2"))
    assert ("BatchGetItem" in spent.operations) is (projection == ("mail", "email"))


def test_an_upgraded_item_may_lack_attributes_with_defaults(opened: Callable[..., Connection]) -> None:
    """An empty set and None, which are stored as absent attributes, are read by the next schema too."""
    db = opened()
    old, new = _people(1, ("mail", "email")), _people(2, ("mail", "email"))
    db.create_tables(old.__options__["table"])
    db.put(old(user_id="u1", city="rome", mail="ann@x", tags=set(), note=None))

    found: Any = db.get(new.Key(user_id="u1"))
    assert (found.tags, found.note) == (set(), None)


def test_shards_differ_in_one_value_alone(diary: Connection) -> None:
    """Requests to the shards are compiled once: they share expressions and the values of range and filter."""
    effects: list[Any] = []
    question = Event.Spread(kind="k").event_id.gte("e2").where(Event.score.gte(3))
    found = drive(diary, reading.query(diary.context, question), effects.append)

    requests = [call.request for call in effects[0].calls]
    assert ids(found.items) == [f"e{n}" for n in range(3, 10)]
    assert len({request["KeyConditionExpression"] for request in requests}) == 1
    values = [tuple(request["ExpressionAttributeValues"][":p0"].values()) for request in requests]
    assert values == [(f"KIND#k#{n:04}",) for n in range(4)]

"""Sessions: what is over is never returned, and use costs a write now and then only."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tavola import Attr, Connection, Gsi, ManualClock, PrimaryKey, Query, Sort, Table, attr, connect, sort
from tavola.patterns import RecipeRefused, Session, Sessions
from tests.patterns.interleaving import interleavings

LIFE = timedelta(minutes=30)


class Desk(Table, ttl="expires_at"):
    """The one table."""

    gsi1 = Gsi(pk="gsi1pk", sk="gsi1sk")


class Plain(Table):
    """A table without a time to live."""


class Login(Session, table=Desk):
    """A login with a role."""

    role: Attr[str] = attr(default="agent")

    class Key(PrimaryKey["Login"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str

    class OfUser(Query["Login"], on=Desk.gsi1, pk="USER#{user_id}", sk="SESSION#{created_at}#{session_id}"):
        user_id: str
        created_at: Sort[datetime] = sort()
        session_id: Sort[str] = sort()


class Eternal(Session, table=Plain):
    """A login that nobody would delete."""

    class Key(PrimaryKey["Eternal"], pk="SESSION#{session_id}", sk="SESSION"):
        session_id: str


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


@pytest.fixture
def sessions(db: Connection, made: Callable[..., Any]) -> Any:
    """Sessions of half an hour, at most two hours."""
    return made(Sessions, db, Login, of_user=Login.OfUser, life=LIFE, longest=timedelta(hours=2))


def test_a_session_is_found_until_it_is_over(sessions: Any, clock: ManualClock) -> None:
    """A session is valid for its life, to the second, and None from then on, deleted or not."""
    begun = sessions.start("ann", role="lead")
    clock.advance(LIFE.total_seconds() - 1)
    assert sessions.find(begun.session_id) == begun
    assert begun.role == "lead"

    clock.advance(1)

    assert sessions.find(begun.session_id) is None
    assert sessions.use(begun.session_id) is None
    assert sessions.of_user("ann") == []


def test_use_at_the_end_of_the_longest_life_writes_nothing(
    sessions: Any, db: Connection, clock: ManualClock
) -> None:
    """Once a session cannot be moved any more, using it is a read alone, also where it was begun between two seconds."""
    clock.advance(0.625)
    begun = sessions.start("ann")
    for _ in range(6):
        clock.advance(1_100)
        assert sessions.use(begun.session_id) is not None
    with db.measure() as spent:
        for _ in range(5):
            clock.advance(60)
            found = sessions.use(begun.session_id)
            assert found.expires_at == found.ends_at

    assert set(spent.operations) == {"GetItem"}
    clock.advance(300)
    assert sessions.use(begun.session_id) is None


def test_use_renews_only_when_it_is_time(sessions: Any, db: Connection, clock: ManualClock) -> None:
    """A use costs a write only when less than half of the life is left."""
    begun = sessions.start("ann")
    with db.measure() as spent:
        for _ in range(10):
            clock.advance(60)
            assert sessions.use(begun.session_id) == begun
    assert spent.writes == 0

    clock.advance(600)
    with db.measure() as spent:
        renewed = sessions.use(begun.session_id)

    assert spent.operations["UpdateItem"] == 1
    assert renewed.expires_at == datetime.fromtimestamp(clock.now(), UTC) + LIFE


def test_constant_use_ends_at_the_longest_life(sessions: Any, clock: ManualClock) -> None:
    """However much a session is used, it ends; the last renewal goes no further than that."""
    begun = sessions.start("ann")
    seen = []
    for _ in range(15):
        clock.advance(600)
        found = sessions.use(begun.session_id)
        if found is not None:
            seen.append(found.expires_at)

    assert len(seen) == 11
    assert max(seen) == begun.ends_at


def test_revoked_is_revoked(sessions: Any) -> None:
    """A revoked session is gone at once; revoking it again says that there was none."""
    begun = sessions.start("ann")

    assert sessions.revoke(begun.session_id) is True
    assert sessions.revoke(begun.session_id) is False
    assert sessions.use(begun.session_id) is None


def test_the_sessions_of_a_user(sessions: Any, clock: ManualClock) -> None:
    """A user's valid sessions are listed in the order of their beginning, and ended all but one."""
    ids = []
    for _ in range(3):
        ids.append(sessions.start("ann").session_id)
        clock.advance(5)
    sessions.start("ben")
    assert [found.session_id for found in sessions.of_user("ann")] == ids

    assert sessions.revoke_all("ann", but=ids[1]) == 2

    assert [found.session_id for found in sessions.of_user("ann")] == [ids[1]]
    assert len(sessions.of_user("ben")) == 1


def test_a_renewal_never_undoes_a_revocation() -> None:
    """In every order of the calls of a use that renews and a revocation, the session is gone afterwards."""
    ended: list[Any] = []

    def make() -> tuple[Connection, list[Any]]:
        clock = ManualClock()
        db = connect("memory:", clock=clock)
        db.create_tables(Desk)
        sessions = Sessions(db, Login, life=LIFE)
        begun = sessions.start("ann")
        clock.advance(LIFE.total_seconds() - 10)
        ended.append((db, sessions, begun.session_id))
        return db, [
            Sessions.use.steps(sessions, begun.session_id),
            Sessions.revoke.steps(sessions, begun.session_id),
        ]

    outcomes = []
    for used, revoked in interleavings(make):
        db, sessions, session_id = ended[-1]
        assert revoked is True
        assert sessions.find(session_id) is None
        outcomes.append(used is None)
        db.close()
    assert set(outcomes) == {True, False}


def test_what_cannot_hold_sessions_is_refused() -> None:
    """A table that would keep them for ever, and lives that are none, are refused with what to do."""
    with connect("memory:") as db:
        with pytest.raises(RecipeRefused, match='declare Plain with ttl="expires_at"'):
            Sessions(db, Eternal)
        with pytest.raises(RecipeRefused, match="at least as long as life"):
            Sessions(db, Login, life=timedelta(hours=2), longest=timedelta(hours=1))
        with pytest.raises(RecipeRefused, match="above 0 and at most 1"):
            Sessions(db, Login, renew=0)
        with pytest.raises(RecipeRefused, match="needs a query"):
            Sessions(db, Login).of_user("ann")

"""Sessions: logins that are extended while they are used, and expire.

A session slides: use extends it. Writing at every use would cost one write per read, so it is extended only when less than
a fraction of its lifetime is left, and never past its maximum lifetime. An expired session is never returned, whether or
not DynamoDB has deleted it yet.

    class Login(Session, table=Desk):
        role: Attr[str]

        class Key(PrimaryKey["Login"], pk="SESSION#{session_id}", sk="SESSION"):
            session_id: str

        class OfUser(Query["Login"], on=Desk.gsi1, pk="USER#{user_id}", sk="SESSION#{created_at}"):
            user_id: str
            created_at: Sort[datetime] = sort()

    sessions = Sessions(db, Login, of_user=Login.OfUser, life=timedelta(minutes=30))
    session = sessions.start("ann", role="agent")
    sessions.use(session.session_id)       the session, or None: log in again
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from tavola.client.errors import ItemMissing
from tavola.model import Attr, Entity, Query, attr
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    query_all,
    query_class,
    recipe_method,
)

ID_BYTES = 32  # 256 bits cannot be guessed


class Session(Entity):
    """A login; subclass it with a table, a key of session_id and your own fields."""

    session_id: Attr[str] = attr(repr=False)  # a secret: it is the proof of the login
    user_id: Attr[str]
    created_at: Attr[datetime]
    expires_at: Attr[datetime]  # moves when the session is used; the table's TTL attribute
    ends_at: Attr[datetime]  # the end of its maximum lifetime


S = TypeVar("S", bound=Session)


class Sessions(Recipe[D_co], Generic[D_co, S]):
    """Sessions of users.

    `life` is how long a session lasts unused, `longest` its maximum lifetime. A use extends it when less than the fraction
    `renew` of its life is left: at 0.5, a session in constant use is written once per half life. `of_user` is a query class
    with the argument user_id; without it, a user's sessions cannot be listed.
    """

    def __init__(
        self,
        db: D_co,
        entity: type[S],
        *,
        of_user: type[Query[S]] | None = None,
        life: timedelta = timedelta(minutes=30),
        longest: timedelta = timedelta(hours=12),
        renew: float = 0.5,
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "session_id")
        self.of_user_class = None if of_user is None else query_class(entity, of_user, "user_id")
        check_expires_with(entity, "expires_at")
        if life < timedelta(seconds=1) or longest < life:
            raise RecipeRefused(
                entity.__name__,
                f"life={life} must be at least one second, and longest={longest} at least as long as life",
            )
        if not 0 < renew <= 1:
            raise RecipeRefused(
                entity.__name__,
                f"renew={renew} must be above 0 and at most 1; use 0.5, or 1 to extend a session at every use",
            )
        self.life = life
        self.longest = longest
        self.renew = renew

    @recipe_method
    def start(self, user_id: str, /, **more: Any) -> PatternProgram[S]:
        """Start a session of a user, with a new id that cannot be guessed; `more` sets your own fields."""
        now = self._now()
        session_id = urlsafe_b64encode(self.entropy.bytes(ID_BYTES)).rstrip(b"=").decode()
        session = self.entity(
            session_id=session_id,
            user_id=user_id,
            created_at=now,
            expires_at=_whole_second(now + self.life),
            ends_at=_whole_second(now + self.longest),
            **more,
        )
        return (yield from call_client(lambda db: db.create(session)))

    @recipe_method
    def use(self, session_id: str) -> PatternProgram[S | None]:
        """Return a valid session, extended if it is time; None if it does not exist, has expired or was revoked."""
        session = yield from self._valid(session_id)
        if session is None or not self._needs_renewal(session):
            return session
        until = _whole_second(min(self._now() + self.life, session.ends_at))
        key = self.key(session_id=session_id)
        try:
            # An update creates no item, so a session that is revoked at the same time stays revoked.
            return (yield from call_client(lambda db: db.update(key, self.entity.expires_at.set(until))))
        except ItemMissing:
            return None

    @recipe_method
    def find(self, session_id: str) -> PatternProgram[S | None]:
        """Return a valid session without extending it."""
        return (yield from self._valid(session_id))

    @recipe_method
    def revoke(self, session_id: str) -> PatternProgram[bool]:
        """End a session now; return whether it existed."""
        return (yield from self._revoke(session_id))

    @recipe_method
    def of_user(self, user_id: str) -> PatternProgram[list[S]]:
        """Return the valid sessions of a user, from an index: a new session may appear with a short delay."""
        return (yield from self._of_user(user_id))

    @recipe_method
    def revoke_all(self, user_id: str, *, but: str | None = None) -> PatternProgram[int]:
        """End the sessions of a user, except `but`, and return how many."""
        ended = 0
        for session in (yield from self._of_user(user_id)):
            if session.session_id != but:
                ended += yield from self._revoke(session.session_id)
        return ended

    def _valid(self, session_id: str) -> PatternProgram[S | None]:
        key = self.key(session_id=session_id)
        # Consistent, so that a revoked session is not returned.
        session = yield from call_client(lambda db: db.get(key, consistent=True))
        return session if session is not None and self._is_valid(session) else None

    def _revoke(self, session_id: str) -> PatternProgram[bool]:
        key = self.key(session_id=session_id)
        return (yield from call_client(lambda db: db.delete(key))) is not None

    def _of_user(self, user_id: str) -> PatternProgram[list[S]]:
        if self.of_user_class is None:
            raise RecipeRefused(
                self.entity.__name__,
                "listing a user's sessions needs a query class; pass it: Sessions(…, of_user=Login.OfUser)",
            )
        query = self.of_user_class(user_id=user_id)
        sessions = yield from query_all(lambda db, cursor: db.query(query, cursor=cursor))
        return [session for session in sessions if self._is_valid(session)]

    def _is_valid(self, session: S) -> bool:
        return self._now() < min(session.expires_at, session.ends_at)

    def _needs_renewal(self, session: S) -> bool:
        if session.expires_at >= _whole_second(session.ends_at):
            return False  # its maximum lifetime is reached
        return session.expires_at - self._now() < self.life * self.renew

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)


def _whole_second(moment: datetime) -> datetime:
    """Return a moment without fractions of a second: a TTL has none, and values compared with it must not either."""
    return moment.replace(microsecond=0)

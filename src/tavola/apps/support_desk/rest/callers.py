"""Callers: connections with the credentials of whoever asks, so that the store decides what they may see.

A key that was used is kept open for a while. A store that takes every caller at their word (an engine in this process, a
server without `--auth strict`) would show everybody everything; that is found out with a key that nobody has, before a key is
let in for the first time, and again every few seconds while keys are used. A store that changes its mind in between shows for these seconds
what it then shows to everybody.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tavola import Clock, Credentials, Entropy, Fault, Unanswered
from tavola.apps.shell import ProblemError
from tavola.apps.support_desk.store import SupportDeskStore

KEPT_S = 300.0
KEPT_MAX = 64
PROVEN_S = 10.0
"""For how long it is taken for granted, for keys that are open already, that the store verifies callers."""

_UNPROVEN = frozenset(
    {
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "IncompleteSignatureException",
        "MissingAuthenticationTokenException",
        "InvalidClientTokenId",
        "ExpiredTokenException",
    }
)
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="access key", charset="UTF-8"'}

Open = Callable[[Credentials], SupportDeskStore]


@dataclass(slots=True)
class _Line:
    """The store as one caller sees it, and how many requests use it."""

    store: SupportDeskStore
    secret: str
    until_s: float
    users: int = 0
    gone: bool = False  # no longer among those that are kept: the last user closes it


class Callers:
    """The callers of a desk; `open_as` is None where the target knows no credentials."""

    def __init__(self, open_as: Open | None, *, clock: Clock, entropy: Entropy) -> None:
        self._open_as = open_as
        self._clock = clock
        self._entropy = entropy
        self._lines: dict[str, _Line] = {}
        self._proven_until_s = 0.0

    @asynccontextmanager
    async def store(self, authorization: str | None) -> AsyncIterator[SupportDeskStore]:
        """Give the store as whoever an Authorization header names sees it; refuse who cannot be told from another."""
        open_as = self._open_as
        if open_as is None:
            raise unverified()
        credentials = credentials_of(authorization)
        if self._kept(credentials) is None or self._clock.now() >= self._proven_until_s:
            await self._prove(open_as)
        line = await self._taken(open_as, credentials)
        try:
            yield line.store
        except Fault as fault:
            if fault.code in _UNPROVEN:
                await self._drop(credentials.access_key_id, line)
                raise unauthorized(
                    "The store does not know this access key, or its secret is another."
                ) from fault
            raise
        except Unanswered:
            self._proven_until_s = 0.0  # who answers next may be another
            raise
        finally:
            line.users -= 1
            if line.gone and not line.users:
                await line.store.db.close()

    async def close(self) -> None:
        """Let all connections go."""
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            line.gone = True
            if not line.users:
                await line.store.db.close()

    async def _taken(self, open_as: Open, credentials: Credentials) -> _Line:
        """Return the line of a caller with one user more, so that nobody closes it meanwhile."""
        now_s = self._clock.now()
        over = [(key, line) for key, line in self._lines.items() if line.until_s <= now_s]
        for key, line in over:  # while one is closed, another request may drop the next
            await self._drop(key, line)
        found = self._kept(credentials)
        if found is not None:
            found.users += 1
            return found
        while len(self._lines) >= KEPT_MAX:
            oldest = next(iter(self._lines))
            await self._drop(oldest, self._lines[oldest])
        line = _Line(open_as(credentials), credentials.secret_access_key, now_s + KEPT_S, users=1)
        before = self._lines.get(credentials.access_key_id)
        self._lines[credentials.access_key_id] = line
        if before is not None:
            await self._drop(credentials.access_key_id, before)
        return line

    def _kept(self, credentials: Credentials) -> _Line | None:
        """Return what is open for a key; another secret opens no door that was opened before."""
        line = self._lines.get(credentials.access_key_id)
        if line is None or line.until_s <= self._clock.now():
            return None
        same = hmac.compare_digest(line.secret.encode(), credentials.secret_access_key.encode())
        return line if same else None

    async def _drop(self, key: str, line: _Line) -> None:
        if self._lines.get(key) is line:
            del self._lines[key]
        if not line.gone:
            line.gone = True
            if not line.users:
                await line.store.db.close()

    async def _prove(self, open_as: Open) -> None:
        """Make sure that the store refuses a key that nobody has."""
        now_s = self._clock.now()
        nobody = Credentials(f"AKIA{self._entropy.bytes(8).hex().upper()}", self._entropy.bytes(20).hex())
        async with open_as(nobody).db as db:
            try:
                await db.call("ListTables", {"Limit": 1})
            except Fault as fault:
                if fault.code not in _UNPROVEN:
                    raise
                self._proven_until_s = now_s + PROVEN_S
                return
        raise unverified()


def credentials_of(authorization: str | None) -> Credentials:
    """Return the credentials in an Authorization header of the kind Basic: access key and secret."""
    scheme, _, told = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        raise unauthorized("Send your access key and its secret as Authorization: Basic.")
    try:
        key, colon, secret = base64.b64decode(told.strip(), validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise unauthorized("The Authorization header cannot be read.") from None
    if not (
        colon
        and key
        and secret
        and key.isascii()
        and key.isalnum()
        and len(key) <= 128
        and len(secret) <= 1_024
    ):
        raise unauthorized("Send access key and secret, with a colon between them, in Base64.")
    return Credentials(key, secret)


def unauthorized(detail: str) -> ProblemError:
    """Return the problem of a caller who has not said who they are."""
    return ProblemError(401, "unauthorized", "Unauthorized", detail, headers=_CHALLENGE)


def unverified() -> ProblemError:
    """Return the problem of a store that does not tell one caller from another."""
    return ProblemError(
        403,
        "callers-not-verified",
        "Callers are not verified here",
        "The store of this desk takes every caller at their word, so it cannot keep customers apart. Run the desk on AWS, or "
        "on a server with --auth strict, and give each customer an access key.",
    )

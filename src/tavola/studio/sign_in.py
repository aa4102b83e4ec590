"""Signing in to the studio beside a server that verifies its callers.

A person proves possession of an access key by sending its secret once. The studio keeps no secret: it gets a `SignedInCaller`
for the key, opens a `Studio` whose connection acts with that caller's rights, and gives the browser a random session id.

    POST /api/sign-in  key, secret ──► verify ──► SignedInCaller ──► Studio with its connection
                                                     │
    cookie: random id (HttpOnly) ──SHA-256──► BrowserSession ──► token that changes need

Only the hash of the id is stored, so a copy of this process's memory or a log cannot be used as a cookie. Times are those of a
clock that never goes back.

A session ends when its person signs out or signs in again, after `IDLE_S` without a request, after `LIFETIME_S`, and when its key
may not be used any more. Its event streams and downloads end with it. Not prevented: cookies are shared by all ports of a
host, so another program of this machine that the same browser visits receives the id.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import Any, Final, Protocol

import msgspec

from tavola.clock import monotonic
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.protocol.faults import ExpiredTokenFault, Fault
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import SignedInCaller, Studio
from tavola.studio.types import ApiMessage
from tavola.web import ProblemError

IDLE_S: Final = 30 * 60.0
LIFETIME_S: Final = 12 * 3600.0
SESSIONS_MAX: Final = 200
ID_BYTES: Final = 32

FAILURES_WINDOW_S: Final = 15 * 60.0
KEY_FAILURES_MAX: Final = 10  # failed attempts with one key in a window
CLIENT_FAILURES_MAX: Final = 30  # failed attempts from one address in a window
_COUNTED_MAX: Final = 4096

_KEY_CHARACTERS_MAX = 128
_SECRET_CHARACTERS_MAX = 1024
_TOKEN_CHARACTERS_MAX = 16 * 1024

SIGN_IN_REQUIRED: Final = "sign-in-required"

_END: Final = object()  # after the last part of a stream


class SignInRequest(ApiMessage):
    """An access key with its secret, and the token of a session if the key is temporary."""

    key_id: str
    secret: str
    session_token: str = ""


class SignInState(ApiMessage):
    """The person who is signed in, and the token that the page's requests need."""

    name: str
    arn: str
    account: str
    key_id: str
    token: str


class KeyVerifier(Protocol):
    """Verifies access keys; the server implements it."""

    def sign_in(
        self, key_id: str, secret: str, token: str | None, address: str, agent: str
    ) -> SignedInCaller:
        """Return the caller with a key; raise a fault if the key, secret or token is wrong or has expired."""
        ...


@dataclass(slots=True, eq=False)
class BrowserSession:
    """One person in one browser."""

    caller: SignedInCaller
    studio: Studio
    token: str  # of the page, for requests other than a GET
    address: str
    opened_s: float
    used_s: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def state(self) -> SignInState:
        """Return what the page shows of the person."""
        caller = self.caller
        return SignInState(
            caller.arn.partition(":")[2].rpartition("/")[2] if "/" in caller.arn else "root",
            caller.arn,
            caller.account,
            caller.key_id,
            self.token,
        )


class _FailureCounts:
    """Failed attempts by key or by address, in windows that begin with the first failure."""

    def __init__(self, failures_max: int, now: Callable[[], float]) -> None:
        self._failures_max = failures_max
        self._now = now
        self._counts: dict[str, tuple[int, float]] = {}  # failures, and when their window ends

    def wait_s(self, name: str) -> float:
        """Return how long to wait before the next attempt; 0 if one is allowed now."""
        failures, ends_s = self._counts.get(name, (0, 0.0))
        return max(0.0, ends_s - self._now()) if failures >= self._failures_max else 0.0

    def add(self, name: str) -> None:
        """Count a failure."""
        now_s = self._now()
        failures, ends_s = self._counts.pop(name, (0, 0.0))
        if ends_s <= now_s:
            failures, ends_s = 0, now_s + FAILURES_WINDOW_S
        self._counts[name] = failures + 1, ends_s  # the latest last
        while len(self._counts) > _COUNTED_MAX:
            del self._counts[next(iter(self._counts))]

    def clear(self, name: str) -> None:
        """Forget the failures of a key that signed in."""
        self._counts.pop(name, None)


class StudioSignIn:
    """The sessions of a studio whose users sign in, one `Studio` for each."""

    def __init__(
        self,
        verifier: KeyVerifier,
        open_studio: Callable[[SignedInCaller], Studio],
        *,
        read_only: bool = False,
        now: Callable[[], float] = monotonic,
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        """Verify keys with `verifier`; `open_studio` returns a studio that acts with a caller's rights."""
        self.read_only = read_only
        self._verifier = verifier
        self._open_studio = open_studio
        self._now = now
        self._entropy = entropy
        self._sessions: dict[bytes, BrowserSession] = {}  # by the hash of the id, the latest last
        self._key_failures = _FailureCounts(KEY_FAILURES_MAX, now)
        self._client_failures = _FailureCounts(CLIENT_FAILURES_MAX, now)

    def sign_in(self, request: SignInRequest, address: str, agent: str) -> tuple[str, BrowserSession]:
        """Return a new session and its id for the cookie; raise RequestRefused if the key is not accepted."""
        self._check_attempts(request.key_id, address)
        try:
            if (
                len(request.key_id) > _KEY_CHARACTERS_MAX
                or len(request.secret) > _SECRET_CHARACTERS_MAX
                or len(request.session_token) > _TOKEN_CHARACTERS_MAX
            ):
                raise _wrong_key()
            caller = self._verifier.sign_in(
                request.key_id, request.secret, request.session_token or None, address, agent
            )
        except (Fault, RequestRefused) as error:
            self._key_failures.add(request.key_id[:_KEY_CHARACTERS_MAX])
            self._client_failures.add(address)
            raise _expired_key() if isinstance(error, ExpiredTokenFault) else _wrong_key() from error
        self._key_failures.clear(request.key_id)
        session_id = self._entropy.bytes(ID_BYTES).hex()
        now_s = self._now()
        session = BrowserSession(
            caller, self._open_studio(caller), self._entropy.bytes(ID_BYTES).hex(), address, now_s, now_s
        )
        self._sessions[_hash(session_id)] = session
        self._drop_ended()
        return session_id, session

    def find(self, session_id: str, address: str) -> BrowserSession:
        """Return the session of a request and count the request as use; raise RequestRefused without one."""
        session = self._sessions.get(_hash(session_id)) if session_id else None
        if session is None or session.address != address or not self.is_open(session):
            raise RequestRefused(
                SIGN_IN_REQUIRED,
                "Sign in to continue",
                "This server verifies its callers, and this browser has no session, or the session has ended.",
                "Open the studio's page and sign in with an access key.",
                status=401,
            )
        session.used_s = self._now()
        return session

    def is_open(self, session: BrowserSession) -> bool:
        """Return whether a session continues; end it if its time is over or its key may not be used any more."""
        if session.ended.is_set():
            return False
        now_s = self._now()
        if (
            now_s - session.used_s >= IDLE_S
            or now_s - session.opened_s >= LIFETIME_S
            or not session.caller.is_in_force()
        ):
            self.end(session)
            return False
        return True

    def end(self, session: BrowserSession) -> None:
        """End a session, with its event streams and downloads."""
        session.ended.set()
        self._sessions = {key: other for key, other in self._sessions.items() if other is not session}

    def end_all(self) -> None:
        """End every session, because the studio stops."""
        for session in tuple(self._sessions.values()):
            self.end(session)

    async def until_end(self, session: BrowserSession, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield the parts of a streamed response until they or the session end."""
        ended = asyncio.ensure_future(session.ended.wait())
        step: asyncio.Future[Any] | None = None
        try:
            while self.is_open(session):
                step = asyncio.ensure_future(_next_chunk(chunks))
                await asyncio.wait({step, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not step.done() or step.result() is _END or not self.is_open(session):
                    return
                yield step.result()
        finally:
            ended.cancel()
            if step is not None and not step.done():
                step.cancel()
                with suppress(asyncio.CancelledError):
                    await step
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _check_attempts(self, key_id: str, address: str) -> None:
        wait_s = max(
            self._key_failures.wait_s(key_id[:_KEY_CHARACTERS_MAX]), self._client_failures.wait_s(address)
        )
        if wait_s > 0:
            raise ProblemError(
                429,
                "sign-in-throttled",
                "Too many failed attempts",
                "Sign-in is blocked after too many failed attempts with this key or from this address.",
                f"Wait {ceil(wait_s / 60)} minutes, then try again.",
                headers={"Retry-After": str(ceil(wait_s))},
            )

    def _drop_ended(self) -> None:
        """End the sessions whose time is over, and the oldest beyond `SESSIONS_MAX`."""
        for session in tuple(self._sessions.values()):
            self.is_open(session)
        while len(self._sessions) > SESSIONS_MAX:
            self.end(next(iter(self._sessions.values())))


async def _next_chunk(chunks: AsyncIterator[Any]) -> Any:
    return await anext(chunks, _END)


def parse_sign_in(body: bytes) -> SignInRequest:
    """Return the request in a JSON body; its content is not repeated in the error."""
    try:
        return msgspec.json.decode(body, type=SignInRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RequestRefused(
            "request-malformed",
            "Invalid request",
            "The body is not a JSON object with key_id and secret.",
            "Use the studio's sign-in page.",
        ) from None


def is_same_token(sent: str, token: str) -> bool:
    """Return whether a token is the expected one, compared in constant time."""
    return hmac.compare_digest(sent.encode("utf-8", "replace"), token.encode())


def _hash(session_id: str) -> bytes:
    return sha256(session_id.encode("utf-8", "replace")).digest()


def _wrong_key() -> RequestRefused:
    return RequestRefused(
        "sign-in-refused",
        "Sign-in failed",
        "The access key ID, the secret or the session token is wrong, or the key is inactive.",
        "Check them and try again. `tavola iam list` shows the keys of the server's users.",
        status=401,
    )


def _expired_key() -> RequestRefused:
    return RequestRefused(
        "sign-in-expired",
        "These credentials have expired",
        "The access key is temporary, and its time is over.",
        "Assume the role again, and sign in with the new credentials.",
        status=401,
    )

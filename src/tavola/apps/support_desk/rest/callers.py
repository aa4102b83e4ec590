"""CallerConnections: connections with the credentials of callers, so that the store decides what they may see.

Connections are kept open for a while per access key. A store that does not verify callers (an engine in this process, a server without
`--auth strict`) would show everything to everyone. So the store must first refuse a random key: this is checked before a new
key is accepted, and again every few seconds while keys are in use. If the store stops verifying in between, callers
see for those seconds what it then shows to everyone.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tavola import Clock, Credentials, Entropy, Fault, ResponseMissing
from tavola.apps.shell import ProblemError
from tavola.apps.support_desk.store import SupportDeskStore

CONNECTION_LIFE_S = 300.0
CONNECTIONS_MAX = 64
VERIFIED_S = 10.0
"""How long a successful check that the store verifies callers stays valid for keys in use."""

_AUTHENTICATION_FAULTS = frozenset(
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

OpenStore = Callable[[Credentials], SupportDeskStore]


@dataclass(slots=True)
class _CallerConnection:
    """The store with one caller's credentials, and how many requests use it."""

    store: SupportDeskStore
    secret: str
    expires_at_s: float
    users: int = 0
    dropped: bool = False  # closed by the last request that uses it


class CallerConnections:
    """The connections of callers; `open_as` is None if the target has no credentials."""

    def __init__(self, open_as: OpenStore | None, *, clock: Clock, entropy: Entropy) -> None:
        self._open_as = open_as
        self._clock = clock
        self._entropy = entropy
        self._connections: dict[str, _CallerConnection] = {}
        self._verified_until_s = 0.0

    @asynccontextmanager
    async def store(self, authorization: str | None) -> AsyncIterator[SupportDeskStore]:
        """Provide the store with the credentials of an Authorization header; refuse callers that cannot be verified."""
        open_as = self._open_as
        if open_as is None:
            raise callers_not_verified()
        credentials = parse_credentials(authorization)
        if self._open_connection(credentials) is None or self._clock.now() >= self._verified_until_s:
            await self._check_verification(open_as)
        connection = await self._acquire(open_as, credentials)
        try:
            yield connection.store
        except Fault as fault:
            if fault.code in _AUTHENTICATION_FAULTS:
                await self._drop(credentials.access_key_id, connection)
                raise unauthorized_problem("Unknown access key, or wrong secret.") from fault
            raise
        except ResponseMissing:
            self._verified_until_s = 0.0  # another server, which may not verify callers, may answer next
            raise
        finally:
            connection.users -= 1
            if connection.dropped and not connection.users:
                await connection.store.db.close()

    async def close(self) -> None:
        """Close all connections."""
        connections, self._connections = list(self._connections.values()), {}
        for connection in connections:
            connection.dropped = True
            if not connection.users:
                await connection.store.db.close()

    async def _acquire(self, open_as: OpenStore, credentials: Credentials) -> _CallerConnection:
        """Return the connection of a caller, counted as used so that it is not closed meanwhile."""
        now_s = self._clock.now()
        expired = [
            (key, connection)
            for key, connection in self._connections.items()
            if connection.expires_at_s <= now_s
        ]
        for (
            key,
            connection,
        ) in expired:  # a list, because other requests may drop connections while one closes
            await self._drop(key, connection)
        existing = self._open_connection(credentials)
        if existing is not None:
            existing.users += 1
            return existing
        while len(self._connections) >= CONNECTIONS_MAX:
            oldest = next(iter(self._connections))
            await self._drop(oldest, self._connections[oldest])
        connection = _CallerConnection(
            open_as(credentials), credentials.secret_access_key, now_s + CONNECTION_LIFE_S, users=1
        )
        replaced = self._connections.get(credentials.access_key_id)
        self._connections[credentials.access_key_id] = connection
        if replaced is not None:
            await self._drop(credentials.access_key_id, replaced)
        return connection

    def _open_connection(self, credentials: Credentials) -> _CallerConnection | None:
        """Return the open connection of a key; None if there is none, or if the secret differs."""
        connection = self._connections.get(credentials.access_key_id)
        if connection is None or connection.expires_at_s <= self._clock.now():
            return None
        same = hmac.compare_digest(connection.secret.encode(), credentials.secret_access_key.encode())
        return connection if same else None

    async def _drop(self, key: str, connection: _CallerConnection) -> None:
        if self._connections.get(key) is connection:
            del self._connections[key]
        if not connection.dropped:
            connection.dropped = True
            if not connection.users:
                await connection.store.db.close()

    async def _check_verification(self, open_as: OpenStore) -> None:
        """Check that the store refuses a random key; raise a 403 otherwise."""
        now_s = self._clock.now()
        unknown = Credentials(f"AKIA{self._entropy.bytes(8).hex().upper()}", self._entropy.bytes(20).hex())
        async with open_as(unknown).db as db:
            try:
                await db.call("ListTables", {"Limit": 1})
            except Fault as fault:
                if fault.code not in _AUTHENTICATION_FAULTS:
                    raise
                self._verified_until_s = now_s + VERIFIED_S
                return
        raise callers_not_verified()


def parse_credentials(authorization: str | None) -> Credentials:
    """Return the access key and secret of a Basic Authorization header."""
    scheme, _, encoded = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        raise unauthorized_problem("Send your access key and its secret as Authorization: Basic.")
    try:
        key, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise unauthorized_problem("The Authorization header cannot be read.") from None
    if not (
        colon
        and key
        and secret
        and key.isascii()
        and key.isalnum()
        and len(key) <= 128
        and len(secret) <= 1_024
    ):
        raise unauthorized_problem("Send access key and secret, with a colon between them, in Base64.")
    return Credentials(key, secret)


def unauthorized_problem(detail: str) -> ProblemError:
    """Return a 401 with a challenge."""
    return ProblemError(401, "unauthorized", "Unauthorized", detail, headers=_CHALLENGE)


def callers_not_verified() -> ProblemError:
    """Return a 403 for a store that does not verify its callers."""
    return ProblemError(
        403,
        "callers-not-verified",
        "Callers are not verified",
        "The store of this desk does not verify access keys, so it cannot separate customers. Run the desk on AWS, or on a server "
        "with --auth strict, and give each customer an access key.",
    )

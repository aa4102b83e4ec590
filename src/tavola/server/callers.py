"""Callers: who sends a request, and from where.

One `Caller` is one key used by one program on one connection. It is created once and reused for every request, so it
also holds the parts that all its log records share.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tavola.engine import AccessGuard, RequestContext
from tavola.iam import RoleCredentials, RoleRequest, WebIdentity
from tavola.protocol.arns import Scope

_KEY_ID = re.compile(rb"Credential=([A-Za-z0-9_]{1,32})(?:/|%2F)")
_AGENT_CHARACTERS_MAX = 256
_KNOWN_MAX = 16


@dataclass(slots=True, eq=False)
class Caller:
    """The account and region of a request, the caller's identity, and the guard that checks its permissions."""

    scope: Scope
    identity: Mapping[str, Any]  # CloudTrail's userIdentity
    address: str
    agent: str
    secure: bool
    decision: str  # the log's decision on a call that is not refused
    guard: AccessGuard | None = None
    source: str = ""  # the program in this process that made the call; empty for calls over HTTP
    context: RequestContext | None = None  # reused for each call; set by `Dispatch`
    heads: dict[str, bytes] = field(default_factory=dict)  # start of log records, by operation
    tail: bytes = b""  # end of log records; empty before the first


@dataclass(slots=True, eq=False)
class Peer:
    """The other end of a connection, and the callers seen on it."""

    address: str = ""
    secure: bool = False
    callers: dict[object, tuple[bytes | None, Caller]] = field(default_factory=dict)

    def remember(self, credential: object, agent: bytes | None, caller: Caller) -> Caller:
        """Cache a caller by its credential and user agent."""
        if len(self.callers) >= _KNOWN_MAX:
            self.callers.clear()
        self.callers[credential] = agent, caller
        return caller


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the peer of a connection; its address is empty if the system does not know it."""
    name = transport.get_extra_info("peername")
    address = name[0] if isinstance(name, tuple) and name else ""
    return Peer(str(address).partition("%")[0], transport.get_extra_info("sslcontext") is not None)


class CallerVerifier(Protocol):
    """Identifies the callers of requests."""

    def admit(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> Caller:
        """Return the caller of a request, or raise a Fault if it cannot be verified."""
        ...

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return the caller of a request that is refused before verification."""
        ...

    def refresh(self) -> None:
        """Pick up changes; called about once a second."""
        ...

    def role_issuer(self) -> RoleIssuer:
        """Return the issuer of temporary credentials for these callers."""
        ...


class CallerIdentity(NamedTuple):
    """Who sends a request, as GetCallerIdentity answers."""

    arn: str
    user_id: str
    account: str


class RoleIssuer(Protocol):
    """Identifies the callers of STS and issues credentials of roles to them."""

    def admit(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer
    ) -> Caller:
        """Return the caller of a signed request, or raise a Fault if it cannot be verified."""
        ...

    def admit_web_identity(
        self, request: RoleRequest, token: str, fields: Mapping[bytes, bytes], peer: Peer
    ) -> tuple[Caller, WebIdentity | None]:
        """Return the holder of a web identity token, and what was verified; raise an IamError if it is invalid."""
        ...

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return the caller of a request that is refused before verification."""
        ...

    def identify(self, caller: Caller, fields: Mapping[bytes, bytes], url: bytes) -> CallerIdentity:
        """Return the identity of an admitted caller."""
        ...

    def assume_role(self, caller: Caller, request: RoleRequest) -> RoleCredentials:
        """Return credentials of a role for an admitted caller; raise an IamError if it may not have them."""
        ...


def make_anonymous_caller(
    scope: Scope, fields: Mapping[bytes, bytes], url: bytes, peer: Peer, decision: str
) -> Caller:
    """Return an unverified caller; its identity has the key id that the request states, if it looks like one."""
    key_id = _KEY_ID.search(fields.get(b"authorization") or url)
    identity: dict[str, Any] = {"type": "Unknown", "accountId": scope.account}
    if key_id is not None:
        identity["accessKeyId"] = key_id[1].decode("ascii")
    return Caller(scope, identity, peer.address, user_agent_of(fields), peer.secure, decision)


def user_agent_of(fields: Mapping[bytes, bytes]) -> str:
    """Return the User-Agent header, shortened and printable."""
    text = fields.get(b"user-agent", b"")[:_AGENT_CHARACTERS_MAX].decode("latin-1")
    return "".join(letter if letter.isprintable() else "?" for letter in text)

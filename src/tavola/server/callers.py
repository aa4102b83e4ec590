"""Callers: who sends a request, as far as it is known, and from where.

One caller stands for one key used on one connection by one program. It is made once and met again with every
request, so what is the same in each of its calls and log records is kept on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tavola.engine import AccessGuard, RequestContext
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope
from tavola.server.scopes import scope_of_request

_KEY_ID = re.compile(rb"Credential=([A-Za-z0-9_]{1,32})(?:/|%2F)")
_AGENT_CHARACTERS_MAX = 256
_KNOWN_MAX = 16
_SIGNATURE_CHARACTERS = 64


@dataclass(slots=True, eq=False)
class Caller:
    """Whose tables are meant, who is said to ask, and what they may do."""

    scope: Scope
    identity: Mapping[str, Any]  # CloudTrail's userIdentity
    address: str
    agent: str
    secure: bool
    decision: str  # what the log says of a call that is not refused
    guard: AccessGuard | None = None
    visit: RequestContext | None = None  # what the engine is told of each call; the dispatcher's own
    heads: dict[str, bytes] = field(default_factory=dict)  # of log records, by operation
    tail: bytes = b""  # of log records; empty before the first


@dataclass(slots=True, eq=False)
class Peer:
    """The other end of a connection, and the callers that were met on it."""

    address: str = ""
    secure: bool = False
    known: dict[object, tuple[bytes | None, Caller]] = field(default_factory=dict)

    def remember(self, sign: object, agent: bytes | None, caller: Caller) -> Caller:
        """Remember a caller by what it is known by next time: its sign and its program."""
        if len(self.known) >= _KNOWN_MAX:
            self.known.clear()
        self.known[sign] = agent, caller
        return caller


class Callers(Protocol):
    """Says who sends a request."""

    def admit(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> Caller:
        """Return who sends a request, or raise a Fault if that is not proved."""
        ...

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return the caller of a request that is refused before anything is proved."""
        ...

    def refresh(self) -> None:
        """Take note of what has changed; called about once a second."""
        ...


class OpenCallers:
    """Takes every caller at their word, as a server on one's own machine may."""

    def admit(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> Caller:
        """Return who a request says it comes from."""
        sign = fields.get(b"authorization", b"")[:-_SIGNATURE_CHARACTERS] or url
        agent = fields.get(b"user-agent")
        known = peer.known.get(sign)
        if known is not None and known[0] == agent:
            return known[1]
        caller = make_anonymous_caller(scope_of_request(fields, url), fields, url, peer, "open")
        return peer.remember(sign, agent, caller)

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return who a refused request says it comes from."""
        return make_anonymous_caller(DEFAULT_SCOPE, fields, url, peer, "refused")

    def refresh(self) -> None:
        """Know of nothing that could change."""


def make_anonymous_caller(
    scope: Scope, fields: Mapping[bytes, bytes], url: bytes, peer: Peer, decision: str
) -> Caller:
    """Return a caller of whom nothing is proved; the key it names is told, if it looks like one."""
    found = _KEY_ID.search(fields.get(b"authorization") or url)
    identity: dict[str, Any] = {"type": "Unknown", "accountId": scope.account}
    if found is not None:
        identity["accessKeyId"] = found[1].decode("ascii")
    return Caller(scope, identity, peer.address, agent_of(fields), peer.secure, decision)


def agent_of(fields: Mapping[bytes, bytes]) -> str:
    """Return the name of the program that asks, as it gives it."""
    text = fields.get(b"user-agent", b"")[:_AGENT_CHARACTERS_MAX].decode("latin-1")
    return "".join(letter if letter.isprintable() else "?" for letter in text)

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
from tavola.protocol.arns import Scope

_KEY_ID = re.compile(rb"Credential=([A-Za-z0-9_]{1,32})(?:/|%2F)")
_AGENT_CHARACTERS_MAX = 256
_KNOWN_MAX = 16


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
    context: RequestContext | None = None  # what the engine is told of each call; the dispatcher's own
    heads: dict[str, bytes] = field(default_factory=dict)  # of log records, by operation
    tail: bytes = b""  # of log records; empty before the first


@dataclass(slots=True, eq=False)
class Peer:
    """The other end of a connection, and the callers that were met on it."""

    address: str = ""
    secure: bool = False
    callers: dict[object, tuple[bytes | None, Caller]] = field(default_factory=dict)

    def remember(self, credential: object, agent: bytes | None, caller: Caller) -> Caller:
        """Remember a caller by what it is known by next time: its sign and its program."""
        if len(self.callers) >= _KNOWN_MAX:
            self.callers.clear()
        self.callers[credential] = agent, caller
        return caller


class CallerVerifier(Protocol):
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


def make_anonymous_caller(
    scope: Scope, fields: Mapping[bytes, bytes], url: bytes, peer: Peer, decision: str
) -> Caller:
    """Return a caller of whom nothing is proved; the key it names is told, if it looks like one."""
    found = _KEY_ID.search(fields.get(b"authorization") or url)
    identity: dict[str, Any] = {"type": "Unknown", "accountId": scope.account}
    if found is not None:
        identity["accessKeyId"] = found[1].decode("ascii")
    return Caller(scope, identity, peer.address, user_agent_of(fields), peer.secure, decision)


def user_agent_of(fields: Mapping[bytes, bytes]) -> str:
    """Return the name of the program that asks, as it gives it."""
    text = fields.get(b"user-agent", b"")[:_AGENT_CHARACTERS_MAX].decode("latin-1")
    return "".join(letter if letter.isprintable() else "?" for letter in text)

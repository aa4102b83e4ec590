"""Authorization: finds the caller of a signed request, and the policies that apply to it.

The directory of users, roles and policies is a file, checked for changes once a second. A change replaces everything
that was verified and compiled with the old directory, so a deleted key is refused at once. If the file becomes
unreadable, the old directory stays in force and the server's log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tavola.clock import Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.iam import (
    CompiledPolicies,
    ConnectionProperties,
    Credential,
    Directory,
    Guard,
    Guards,
    Principal,
    RoleCredentials,
    RoleRequest,
    WebIdentity,
    assume_role,
    verify_web_identity,
    web_identity_principal,
)
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.server.callers import (
    Caller,
    CallerIdentity,
    Peer,
    RoleIssuer,
    make_anonymous_caller,
    user_agent_of,
)
from tavola.server.sigv4 import STS, Claim, Verifier

_log = logging.getLogger("tavola.server")


class Directories(Protocol):
    """Source of the directory; `tavola.iam.DirectoryFile` implements it."""

    def current(self) -> Directory:
        """Return the directory in force; the same object until it changes."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why a newer directory could not be read."""
        ...


class StrictCallers:
    """Admits callers with a valid signature, each with the guard that checks its permissions."""

    def __init__(self, directories: Directories, clock: Clock, entropy: Entropy = SYSTEM_ENTROPY) -> None:
        self._directories = directories
        self._clock = clock
        self._entropy = entropy
        self._trouble: str | None = None
        self._guards = Guards(clock)
        self._adopt(directories.current())

    def refresh(self) -> None:
        """Switch to a changed directory; log once if it cannot be read."""
        directory = self._directories.current()
        if directory is not self._directory:
            self._adopt(directory)
            _log.info("Reloaded the users and policies.")
        trouble = self._directories.trouble
        if trouble != self._trouble:
            self._trouble = trouble
            if trouble is not None:
                _log.error("The users and policies were not reloaded: %s", trouble)

    def admit(self, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer) -> Caller:
        """Return the caller of a request, or raise AWS's fault for an invalid signature."""
        claim = self._verifier.verify(url, fields, body)
        agent = fields.get(b"user-agent")
        known = peer.callers.get(claim)
        if known is not None and known[0] == agent:
            return known[1]
        return peer.remember(claim, agent, self._caller(claim, peer, user_agent_of(fields)))

    def anonymous_caller(self, url: bytes, fields: Mapping[bytes, bytes], peer: Peer) -> Caller:
        """Return the unauthenticated caller of a request."""
        return make_anonymous_caller(DEFAULT_SCOPE, fields, url, peer, "unauthenticated")

    def role_issuer(self) -> RoleIssuer:
        """Return the issuer of role credentials, which obeys the trust policies of the directory in force."""
        return StrictIssuer(self, self._clock, self._entropy)

    @property
    def directory(self) -> Directory:
        """The directory in force."""
        return self._directory

    def admit_to_sts(
        self, method: bytes, url: bytes, fields: Mapping[bytes, bytes], body: bytes, peer: Peer
    ) -> Caller:
        """Return the caller of a request that is signed for STS, or raise AWS's fault for an invalid signature."""
        claim = self._sts_verifier.verify_in_full(method, url, fields, body)
        return self._caller(claim, peer, user_agent_of(fields))

    def make_caller(
        self, credential: Credential, region: str, peer: Peer, agent: str, source: str = ""
    ) -> Caller:
        """Return the caller with a verified key, and the guard that checks its permissions."""
        principal = credential.principal
        scope = Scope(principal.account, region)
        connection = ConnectionProperties(source_ip=peer.address, secure=peer.secure, user_agent=agent)
        guard = self._guards.guard(self._directory, principal, scope, connection)
        identity = identity_of(principal, credential.key_id)
        return Caller(scope, identity, peer.address, agent, peer.secure, "allowed", guard, source)

    def _adopt(self, directory: Directory) -> None:
        self._directory = directory
        self._verifier: Verifier[Credential] = Verifier(directory, self._clock)
        self._sts_verifier: Verifier[Credential] = Verifier(directory, self._clock, STS)

    def _caller(self, claim: Claim[Credential], peer: Peer, agent: str) -> Caller:
        return self.make_caller(claim.credential, claim.region, peer, agent)


class StrictIssuer:
    """Issues credentials of roles to verified callers that the role trusts."""

    def __init__(self, callers: StrictCallers, clock: Clock, entropy: Entropy) -> None:
        self._callers = callers
        self._clock = clock
        self._entropy = entropy
        self.admit = callers.admit_to_sts
        self.anonymous_caller = callers.anonymous_caller

    def admit_web_identity(
        self, request: RoleRequest, token: str, fields: Mapping[bytes, bytes], peer: Peer
    ) -> tuple[Caller, WebIdentity]:
        """Return the holder of a token that an issuer of the role's account signed."""
        directory, agent, account = self._callers.directory, user_agent_of(fields), request.account
        identity = verify_web_identity(directory.issuers(account), token, self._clock.now())
        principal = web_identity_principal(account, identity)
        scope = Scope(account, DEFAULT_SCOPE.region)
        connection = ConnectionProperties(source_ip=peer.address, secure=peer.secure, user_agent=agent)
        guard = Guard(CompiledPolicies(directory, principal), scope, connection, self._clock)
        members = identity_of(principal, "")
        return Caller(scope, members, peer.address, agent, peer.secure, "allowed", guard), identity

    def identify(self, caller: Caller, fields: Mapping[bytes, bytes], url: bytes) -> CallerIdentity:
        """Return the identity of the principal whose key signed the request."""
        principal = _guard_of(caller).principal
        return CallerIdentity(principal.arn, principal.id, principal.account)

    def assume_role(self, caller: Caller, request: RoleRequest) -> RoleCredentials:
        """Return credentials of a role that trusts the caller."""
        return assume_role(
            self._callers.directory, _guard_of(caller), request, self._entropy, self._clock.now()
        )


def _guard_of(caller: Caller) -> Guard:
    assert isinstance(caller.guard, Guard), "an admitted caller has the guard of its principal"
    return caller.guard


def identity_of(principal: Principal, key_id: str) -> Mapping[str, Any]:
    """Return CloudTrail's userIdentity of a principal."""
    if principal.kind == "federated":
        audience = dict(principal.identity_keys).get(f"{principal.arn.partition('/')[2].lower()}:aud", ("",))
        return {
            "type": "WebIdentityUser",
            "principalId": f"{principal.arn}:{audience[0]}:{principal.id}",
            "userName": principal.id,
            "identityProvider": principal.arn,
        }
    kinds = {"root": "Root", "user": "IAMUser", "session": "AssumedRole"}
    identity: dict[str, Any] = {
        "type": kinds[principal.kind],
        "principalId": principal.id,
        "arn": principal.arn,
        "accountId": principal.account,
        "accessKeyId": key_id,
    }
    if principal.kind == "user":
        identity["userName"] = principal.name
    elif principal.kind == "session":
        issuer = {
            "type": "Role",
            "arn": principal.role_arn,
            "accountId": principal.account,
            "userName": principal.name,
        }
        identity["sessionContext"] = {"sessionIssuer": issuer}
    return identity

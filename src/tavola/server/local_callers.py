"""Local callers: people who sign in to a program of this process, such as the studio beside a strict server.

Their calls do not come over HTTP, so nothing of `connection` and `dispatch` runs for them. A `LocalCaller` gives them the same
two properties: each call is checked by the guard of the caller's key and is written to the access log.

    browser ──cookie──► studio ──► AsyncEmbeddedBackend ──► LocalCaller ──guard, log──► Engine
                                     (calls it as it would call the engine)

A caller proves possession of a key once, with its secret. Afterwards every call compares the directory with the one that the
key was verified in. In a changed directory the key is looked up again: a removed, deactivated or replaced key is refused, and
changed policies apply from the next call on, as for callers over HTTP.

A write is logged when its outcome is known. Its call may join an open commit group, so until `commit` or `commit_pending` the
record waits here; if the commit fails, the record says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import Engine, ItemAccess, RequestContext
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.iam import AccessCheck, Credential, Guard, Principal
from tavola.iam.decisions import denial_message
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import (
    AccessDeniedFault,
    ExpiredTokenFault,
    Fault,
    InternalServerFault,
    UnrecognizedClientFault,
)
from tavola.server.access_log import AccessLog
from tavola.server.authorization import StrictCallers
from tavola.server.callers import Caller, Peer, user_agent_of
from tavola.server.records import SIGN_IN
from tavola.server.responses import ResponseEncoder

_KEY_ID = re.compile(r"[A-Za-z0-9_]{1,128}")


@dataclass(frozen=True, slots=True)
class _CallRecord:
    """A call that is executed and not logged yet."""

    caller: Caller
    operation: str
    request_id: bytes
    began_s: float
    accesses: list[ItemAccess]
    body: bytes
    denied: int = 0


class LocalCallers:
    """Verifies the keys of people who sign in to a program of this process."""

    def __init__(
        self,
        callers: StrictCallers,
        engine: Engine,
        *,
        region: str,
        source: str,
        log: AccessLog | None = None,
        clock: Clock = SYSTEM_CLOCK,
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        """Verify keys with `callers`; `source` names the program in the access log."""
        self.callers = callers
        self.engine = engine
        self.region = region
        self.source = source
        self.log = log
        self.now: Callable[[], float] = clock.now
        self.new_request_id = ResponseEncoder(clock, entropy).new_request_id
        self._decoy = entropy.bytes(32).hex()  # compared with the secret for an unknown key

    def sign_in(self, key_id: str, secret: str, token: str | None, address: str, agent: str) -> LocalCaller:
        """Return the caller with a key, or raise the fault that AWS gives for an invalid or expired one; both are logged."""
        began_s, peer = self.now(), Peer(address)
        agent = user_agent_of({b"user-agent": agent.encode("latin-1", "replace")})
        try:
            credential = self._verify(key_id, secret, token)
        except Fault as fault:
            self._note(
                _CallRecord(
                    self._unverified_caller(key_id, token, peer, agent), SIGN_IN, *self._begin(began_s)
                ),
                fault,
            )
            raise
        local = LocalCaller(self, credential, peer, agent)
        self._note(_CallRecord(local.caller(), SIGN_IN, *self._begin(began_s)))
        return local

    def find_credential(self, key_id: str, token: str | None) -> Credential | None:
        """Return the credential of a key, or of a temporary key with its token, in the directory in force."""
        return self.callers.directory.credential(key_id, None if token is None else token.encode())

    def has_expired(self, credential: Credential) -> bool:
        """Return whether a credential was temporary and has ended."""
        return credential.expires_at_s is not None and credential.expires_at_s <= self.now()

    def _verify(self, key_id: str, secret: str, token: str | None) -> Credential:
        """Return the credential of a key after comparing its secret and token in constant time."""
        credential = self.find_credential(key_id, token)
        matches = _equal(secret, self._decoy if credential is None else credential.secret)
        matches &= _equal(token or "", "" if credential is None else credential.token or "")
        if credential is None or not matches or not credential.active:
            raise UnrecognizedClientFault
        if self.has_expired(credential):
            raise ExpiredTokenFault
        return credential

    def _unverified_caller(self, key_id: str, token: str | None, peer: Peer, agent: str) -> Caller:
        """Return the caller of a refused sign-in; it belongs to the account of the key that it names, if there is one."""
        credential = self.find_credential(key_id, token)
        account = DEFAULT_SCOPE.account if credential is None else credential.principal.account
        identity = {"type": "Unknown", "accountId": account}
        if _KEY_ID.fullmatch(key_id):
            identity["accessKeyId"] = key_id
        return Caller(
            Scope(account, self.region),
            identity,
            peer.address,
            agent,
            peer.secure,
            "unauthenticated",
            source=self.source,
        )

    def _begin(self, began_s: float) -> tuple[bytes, float, list[ItemAccess], bytes]:
        """Return the members of a record that is no call of DynamoDB."""
        return self.new_request_id(), began_s, [], b""

    def _note(self, record: _CallRecord, fault: Fault | None = None) -> None:
        if self.log is not None:
            self.log.note(
                record.caller,
                record.operation,
                record.request_id,
                record.began_s,
                record.accesses,
                record.body,
                fault,
                record.denied,
            )


class LocalCaller:
    """A verified key, with the methods of an engine that a backend uses: each call is checked and logged."""

    def __init__(self, local: LocalCallers, credential: Credential, peer: Peer, agent: str) -> None:
        self._local = local
        self._credential = credential
        self._peer = peer
        self._agent = agent
        self._adopt(credential)
        self._waiting: dict[object, _CallRecord] = {}  # by participant of the commit group

    @property
    def principal(self) -> Principal:
        """The user or role session that the key belongs to."""
        return self._credential.principal

    @property
    def account(self) -> str:
        """The account whose tables the caller sees."""
        return self.principal.account

    @property
    def arn(self) -> str:
        """The ARN of the caller."""
        return self.principal.arn

    @property
    def key_id(self) -> str:
        """The access key that the caller signed in with."""
        return self._credential.key_id

    def is_in_force(self) -> bool:
        """Return whether the key may still be used."""
        try:
            self.caller()
        except Fault:
            return False
        return True

    def caller(self) -> Caller:
        """Return the caller in the directory in force; raise a fault if its key may not be used any more."""
        local, known = self._local, self._credential
        if local.has_expired(known):
            raise ExpiredTokenFault
        if local.callers.directory is not self._directory:
            credential = local.find_credential(known.key_id, known.token)
            if credential is None or _proof_of(credential) != _proof_of(known):
                raise UnrecognizedClientFault
            self._adopt(credential)
        return self._caller

    def _adopt(self, credential: Credential) -> None:
        local = self._local
        self._credential = credential
        self._directory = local.callers.directory
        self._caller = local.callers.make_caller(
            credential, local.region, self._peer, self._agent, local.source
        )

    def require(self, action: str) -> None:
        """Raise AccessDeniedFault unless a policy allows an action on everything; the decision is logged."""
        local = self._local
        caller = self.caller()
        record = _CallRecord(caller, action.partition(":")[2], *local._begin(local.now()))
        assert isinstance(caller.guard, Guard), "a verified caller has a guard of its policies"
        decision = caller.guard.decide(AccessCheck(action, "*"))
        if decision.allowed:
            local._note(record)
            return
        fault = AccessDeniedFault(denial_message(decision, self.principal, action, "*"))
        local._note(record, fault)
        raise fault

    # The engine, as a backend uses it.

    @property
    def syncs(self) -> bool:
        """Whether a commit waits for the disk."""
        return self._local.engine.syncs

    @property
    def closed(self) -> bool:
        """Whether the engine was closed."""
        return self._local.engine.closed

    @property
    def dirty(self) -> bool:
        """Whether some writes are not durable yet."""
        return self._local.engine.dirty

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = DEFAULT_SCOPE,
        context: RequestContext | None = None,
        *,
        participant: object = None,
    ) -> bytes:
        """Return the engine's response to a request that the caller is allowed to make; log the call.

        `scope` is ignored: the tables are those of the caller's account.
        """
        local = self._local
        began_s = local.now()
        caller = self.caller()
        accesses: list[ItemAccess] = []
        own = RequestContext(caller.guard, None if context is None else context.as_of_us, accesses)
        request_id = local.new_request_id()
        fault: Fault | None = None
        try:
            return local.engine.execute(operation, body, caller.scope, own, participant=participant)
        except Fault as error:
            fault = error
            raise
        except BaseException:
            fault = InternalServerFault()
            raise
        finally:
            record = _CallRecord(caller, operation, request_id, began_s, accesses, body, own.denied)
            if fault is None and local.engine.dirty:
                self._waiting[participant] = record
            else:
                local._note(record, fault)

    def commit(self, participant: object) -> None:
        """Commit the group of a call, and log the call with its outcome."""
        self._finish(participant, lambda: self._local.engine.commit(participant))

    def commit_pending(self) -> None:
        """Commit the collected writes now, and log the call with its outcome."""
        self._finish(None, self._local.engine.commit_pending)

    def _finish(self, participant: object, commit: Callable[[], None]) -> None:
        record = self._waiting.pop(participant, None)
        try:
            commit()
        except BaseException:
            if record is not None:
                self._local._note(record, InternalServerFault())
            raise
        if record is not None:
            self._local._note(record)

    def close(self) -> None:
        """Do nothing: the engine belongs to the server."""


def _proof_of(credential: Credential) -> tuple[str, str | None, bool, str]:
    """Return what must be unchanged for a key to be the one that was verified."""
    return credential.secret, credential.token, credential.active, credential.principal.arn


def _equal(text: str, other: str) -> bool:
    """Return whether two texts are equal, in a time that reveals neither their content nor their length."""
    return compare_digest(
        sha256(text.encode("utf-8", "replace")).digest(), sha256(other.encode("utf-8", "replace")).digest()
    )

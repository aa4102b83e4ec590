"""Role sessions: temporary credentials that carry everything about themselves and are stored nowhere.

Credentials of an assumed role must work until they expire: after a restart, and on every server with the same IAM file.
Storing them would let any caller grow that file. So the session token *is* the session:

    payload = version, compressed JSON of the `RoleSession`
    token   = base64( HMAC(token key, payload), payload )      only a holder of the IAM file's session key can make one
    secret  = base64( HMAC(secret key, payload) )              the secret access key; it is derived, never sent in a request

Both keys are derived from `session_key` of the IAM file. A request carries the token and is signed with the secret; the
server recomputes both from the token. A token that was changed, or comes from a server with another session key, is
unknown. A token does not outlive its role: it names the role's id, which a new role of the same name does not have.

Given up: a single session cannot be ended. To end all of a role, deny requests with an older `aws:TokenIssueTime`; to end
all sessions, replace the session key (`tavola iam revoke-sessions`). The holder of a token can read it, so it contains
nothing that the holder does not know: the session's name, tags and policies.
"""

from __future__ import annotations

import hmac
import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256

import msgspec
from msgspec import Struct

SESSION_KEY_BYTES = 32
PACKED_BYTES_MAX = 3000
"""The size of a session's policies and tags in its token; with base64 the header stays below 8 KB."""

_VERSION = b"\x01"
_CODE_BYTES = sha256().digest_size


class RoleSession(Struct, frozen=True, array_like=True):
    """An assumed role: whose, since when, until when, and what narrows it. Its JSON is the content of a token."""

    account: str
    role: str
    role_id: str
    name: str
    key_id: str
    issued_at_s: int
    expires_at_s: int
    policy: str | None = None  # a session policy, as JSON
    policy_names: tuple[str, ...] = ()  # managed policies that are session policies too
    tags: tuple[tuple[str, str], ...] = ()
    transitive_tag_keys: tuple[str, ...] = ()  # of the tags that sessions assumed from this one inherit
    condition_keys: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of a web identity; names in lower case

    @property
    def arn(self) -> str:
        """The ARN of the session."""
        return f"arn:aws:sts::{self.account}:assumed-role/{self.role}/{self.name}"

    @property
    def user_id(self) -> str:
        """The value of aws:userid: the role's id and the session's name."""
        return f"{self.role_id or self.role}:{self.name}"

    @property
    def is_limited(self) -> bool:
        """Return whether session policies limit the session."""
        return self.policy is not None or bool(self.policy_names)

    @property
    def packed_percent(self) -> int:
        """The size of policies and tags in the token, in percent of what is allowed."""
        parts = (self.policy, self.policy_names, self.tags, self.condition_keys)
        return -(-len(zlib.compress(msgspec.json.encode(parts))) * 100 // PACKED_BYTES_MAX)


_decode = msgspec.json.Decoder(RoleSession).decode


class RoleCredentials(Struct, frozen=True):
    """The temporary credentials of a session."""

    session: RoleSession
    secret: str
    token: str


class SessionSigner:
    """Makes and reads session tokens with the session key of an IAM file."""

    __slots__ = ("_secret_key", "_token_key")

    def __init__(self, session_key: bytes) -> None:
        self._token_key = hmac.digest(session_key, b"tavola session token", "sha256")
        self._secret_key = hmac.digest(session_key, b"tavola session secret", "sha256")

    def issue(self, session: RoleSession) -> RoleCredentials:
        """Return the credentials of a session."""
        return self._credentials(session, _VERSION + zlib.compress(msgspec.json.encode(session)))

    def open(self, token: bytes) -> RoleCredentials | None:
        """Return the credentials with this token, expired or not; None if this key did not make it."""
        try:
            content = b64decode(token, validate=True)
        except (NotBase64, ValueError):
            return None
        code, payload = content[:_CODE_BYTES], content[_CODE_BYTES:]
        if not hmac.compare_digest(code, hmac.digest(self._token_key, payload, "sha256")):
            return None
        if (
            payload[:1] != _VERSION or b64encode(content) != token
        ):  # base64 has several spellings of some bytes
            return None
        return self._credentials(_decode(zlib.decompress(payload[1:])), payload)

    def _credentials(self, session: RoleSession, payload: bytes) -> RoleCredentials:
        code = hmac.digest(self._token_key, payload, "sha256")
        secret = hmac.digest(self._secret_key, payload, "sha256")[:30]
        return RoleCredentials(session, b64encode(secret).decode(), b64encode(code + payload).decode())

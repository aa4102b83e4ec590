"""Session tokens: what was issued opens, and nothing else does."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tavola.iam import role_sessions
from tavola.iam.role_sessions import RoleSession, SessionSigner
from tests.iam.tables import ACCOUNT
from tests.planted import plant

KEY, OTHER_KEY = bytes(32), bytes(31) + b"\x01"
SESSION = RoleSession(
    ACCOUNT, "Agent", "AROA1", "s1", "ASIA1", 1000, 4600,
    policy='{"Statement":[]}', policy_names=("Read",), tags=(("team", "red"),), transitive_tag_keys=("team",),
    condition_keys=(("login.example.com:sub", ("alice",)),),
)  # fmt: skip


def test_a_token_carries_its_session() -> None:
    """Another signer with the same key, such as that of a restarted server, reads the whole session and its secret."""
    issued = SessionSigner(KEY).issue(SESSION)
    opened = SessionSigner(KEY).open(issued.token.encode())

    assert opened == issued
    assert opened.session == SESSION
    assert len(issued.secret) == 40


def test_a_token_does_not_contain_its_secret() -> None:
    """The secret is derived with another key, so the holder of a token alone cannot sign."""
    issued = SessionSigner(KEY).issue(SESSION)
    content = b64decode(issued.token)

    assert b64decode(issued.secret) not in content
    assert (
        SessionSigner(KEY).issue(RoleSession(*[*_members()[:4], "ASIA2", 1000, 4600])).secret != issued.secret
    )


def _members() -> list[Any]:
    return [SESSION.account, SESSION.role, SESSION.role_id, SESSION.name]


def _forgeries(module: ModuleType) -> Iterator[tuple[str, bytes]]:
    """Yield tokens that must not open."""
    token = SessionSigner(KEY).issue(SESSION).token.encode()
    for place in range(len(token)):
        other = b"A" if token[place : place + 1] != b"A" else b"B"
        yield f"character {place}", token[:place] + other + token[place + 1 :]
    content = b64decode(token)
    for place in range(0, len(content), 7):
        yield (
            f"byte {place}",
            b64encode(content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :]),
        )
    yield "another key", SessionSigner(OTHER_KEY).issue(SESSION).token.encode()
    yield "cut", token[:-4]
    yield "longer", token + b"AAAA"
    yield "empty", b""
    yield "not base64", b"\xff" * 64
    yield "line break", token + b"\n"
    yield "zero code", b64encode(bytes(32) + content[32:])
    padded = next(text for text in _spellings(SESSION))
    yield "another spelling", padded


def _spellings(session: RoleSession) -> Iterator[bytes]:
    """Yield tokens with other unused bits behind the last byte, which decode to the same bytes."""
    for number in range(100):
        named = RoleSession(*[*_members()[:3], "s" * (number + 2), session.key_id, 1000, 4600])
        token = SessionSigner(KEY).issue(named).token.encode()
        if token.endswith(b"=") and not token.endswith(b"=="):
            changed = token[:-2] + bytes((token[-2] + 1,)) + b"="
            if b64decode(changed) == b64decode(token):
                yield changed


def _opened(module: ModuleType) -> list[str]:
    signer = module.SessionSigner(KEY)
    found = []
    for name, token in _forgeries(module):
        try:
            if signer.open(token) is not None:
                found.append(name)
        except Exception as error:  # noqa: BLE001 - a token must not raise either
            found.append(f"{name}: {error!r}")
    return found


def test_no_other_token_opens() -> None:
    """Every changed character and byte, another key, another spelling of the same bytes: unknown, without an error."""
    assert _opened(role_sessions) == []


PLANTED = {
    "code": ("if not hmac.compare_digest(code,", "if False and not hmac.compare_digest(code,"),
    "spelling": (" or b64encode(content) != token", ""),
    "version": ("payload[:1] != _VERSION or ", ""),
}


@pytest.mark.parametrize("name", ["code", "spelling"])
def test_a_missing_check_is_found(name: str) -> None:
    """Without one of the checks, some forgery opens."""
    assert _opened(plant(role_sessions, *PLANTED[name]))


def test_a_token_of_another_version_does_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later format signed with the same key is unknown, not misread."""
    with monkeypatch.context() as patched:
        patched.setattr(role_sessions, "_VERSION", b"\x02")
        later = SessionSigner(KEY).issue(SESSION).token.encode()

    assert SessionSigner(KEY).open(later) is None
    assert plant(role_sessions, *PLANTED["version"]).SessionSigner(KEY).open(later) is not None

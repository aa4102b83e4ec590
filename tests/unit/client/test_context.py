"""The context: a secret that nobody can guess, whoever makes it."""

from __future__ import annotations

import pytest

from tavola import Connection, connect
from tavola.client import Context
from tavola.client.cursors import seal, unseal


def test_a_context_has_a_secret() -> None:
    """Without one given it has its own by chance, so that nobody signs cursors but itself."""
    assert len(Context().secret) == 32
    assert Context().secret != Context().secret
    assert Context(secret=b"shared").secret == b"shared"
    assert Context(secret=b"").secret


def test_a_connection_over_a_backend_signs_with_its_own_secret() -> None:
    """A handle that is made by hand takes no cursor that is signed with nothing."""
    with connect("memory:") as db:
        assert Connection(db.backend)._context.secret


def test_nothing_is_signed_with_no_secret() -> None:
    """Sealing and unsealing with an empty secret is an error of the program."""
    with pytest.raises(AssertionError):
        seal(b"", "question", [])
    with pytest.raises(AssertionError):
        unseal(b"", "question", seal(b"secret", "question", []), 0)

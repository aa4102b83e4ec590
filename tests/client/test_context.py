"""The context: an unguessable secret, and table names."""

from __future__ import annotations

from typing import Any

import pytest

from tavola import Attr, Connection, Entity, ModelError, PrimaryKey, Table, connect
from tavola.client.context import Context
from tavola.client.pages import decode_cursor, encode_cursor


def test_a_context_has_a_secret() -> None:
    """Without a configured secret it draws a random one, so only it can sign its cursors."""
    assert len(Context().secret) == 32
    assert Context().secret != Context().secret
    assert Context(secret=b"shared").secret == b"shared"
    assert Context(secret=b"").secret


def test_a_connection_over_a_backend_signs_with_its_own_secret() -> None:
    """A handle built by hand rejects cursors signed with an empty secret."""
    with connect("memory:") as db:
        assert Connection(db.backend).context.secret


def test_nothing_is_signed_with_no_secret() -> None:
    """Sealing and unsealing with an empty secret is an error of the program."""
    with pytest.raises(AssertionError):
        encode_cursor(b"", "question", [])
    with pytest.raises(AssertionError):
        decode_cursor(b"", "question", encode_cursor(b"secret", "question", []), 0)


class TownStore(Table, name="town-store"):
    """A table whose class and table names differ."""


class TownCrate(Entity, table=TownStore):
    """An entity of that table."""

    crate_id: Attr[str]

    class Key(PrimaryKey["TownCrate"], pk="CRATE#{crate_id}", sk="CRATE"):
        crate_id: str


@pytest.mark.parametrize("key", [TownStore, "TownStore", "town-store"])
def test_table_names_accepts_the_class_or_a_name(key: Any) -> None:
    """`table_names` takes the class, the class's name or the model's table name, and overrides the prefix."""
    with connect("memory:", table_names={key: "staging-store"}, table_prefix="other-") as db:
        db.create_tables(TownStore)
        db.put(TownCrate(crate_id="c1"))

        assert db.call("ListTables")["TableNames"] == ["staging-store"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            {"Ghosts": "staging-store"},
            r"'Ghosts' is not a declared table; declared are .*TownStore \('town-store'\)",
        ),
        ({TownCrate: "staging-store"}, "TownCrate is not a declared table"),
        (
            {"TownStore": "one-store", "town-store": "two-store"},
            "is mapped to one-store and two-store",
        ),
        ({"TownStore": ""}, "'TownStore' is mapped to ''"),
    ],
)
def test_a_name_for_no_table_is_refused(names: Any, problem: str) -> None:
    """A name that is meant for no table that is declared is an error before anything is written, never ignored."""
    with pytest.raises(ModelError, match=problem):
        connect("memory:", table_names=names).put(TownCrate(crate_id="c1"))


def test_an_ambiguous_class_name_is_refused() -> None:
    """If two classes share a name, `table_names` requires the class itself."""

    def made(name: str) -> Any:
        class Twin(Table, name=name):
            pass

        Twin.__qualname__ = f"Twin of {name}"
        return Twin

    one, other = made("twin-a"), made("twin-b")

    with pytest.raises(ModelError, match="'Twin' could be twin-a or twin-b; use the table class"):
        Context(names={"Twin": "here"}).name_of(one)
    assert Context(names={one: "here"}).name_of(one) == "here"
    assert Context(names={one: "here"}).name_of(other) == "twin-b"


def test_a_secret_is_bytes() -> None:
    """Text is refused when the context is made, not when the first cursor is signed."""
    with pytest.raises(ModelError, match="it must be bytes"):
        connect("memory:", cursor_secret="text")  # type: ignore[arg-type]  # the mistake

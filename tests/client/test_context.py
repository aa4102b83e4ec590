"""The context: a secret that nobody can guess, whoever makes it."""

from __future__ import annotations

from typing import Any

import pytest

from tavola import Attr, Connection, Entity, ModelError, PrimaryKey, Table, connect
from tavola.client.context import Context
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
        assert Connection(db.backend).context.secret


def test_nothing_is_signed_with_no_secret() -> None:
    """Sealing and unsealing with an empty secret is an error of the program."""
    with pytest.raises(AssertionError):
        seal(b"", "question", [])
    with pytest.raises(AssertionError):
        unseal(b"", "question", seal(b"secret", "question", []), 0)


class TownStore(Table, name="town-store"):
    """A table whose class is called otherwise than itself."""


class TownCrate(Entity, table=TownStore):
    """What is in it."""

    crate_id: Attr[str]

    class Key(PrimaryKey["TownCrate"], pk="CRATE#{crate_id}", sk="CRATE"):
        crate_id: str


@pytest.mark.parametrize("key", [TownStore, "TownStore", "town-store"])
def test_a_table_is_called_here_as_its_class_or_its_name_is_told(key: Any) -> None:
    """`table_names` takes the class, the class's name or the name in the model, and goes before the prefix."""
    with connect("memory:", table_names={key: "staging-store"}, table_prefix="other-") as db:
        db.create_tables(TownStore)
        db.put(TownCrate(crate_id="c1"))

        assert db.call("ListTables")["TableNames"] == ["staging-store"]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            {"Ghosts": "staging-store"},
            r"'Ghosts' is no table that is declared; there are .*TownStore \('town-store'\)",
        ),
        ({TownCrate: "staging-store"}, "TownCrate is no table that is declared"),
        (
            {"TownStore": "one-store", "town-store": "two-store"},
            "is called one-store and two-store; give one",
        ),
        ({"TownStore": ""}, "'TownStore' is called ''"),
    ],
)
def test_a_name_for_no_table_is_refused(names: Any, problem: str) -> None:
    """A name that is meant for no table that is declared is an error before anything is written, never ignored."""
    with pytest.raises(ModelError, match=problem):
        connect("memory:", table_names=names).put(TownCrate(crate_id="c1"))


def test_a_class_name_that_two_tables_have_is_refused() -> None:
    """Of two classes of one name nobody can tell which is meant; the class itself says it."""

    def made(name: str) -> Any:
        class Twin(Table, name=name):
            pass

        Twin.__qualname__ = f"Twin of {name}"
        return Twin

    one, other = made("twin-a"), made("twin-b")

    with pytest.raises(ModelError, match="'Twin' could be twin-a or twin-b; give the class itself"):
        Context(names={"Twin": "here"}).name_of(one)
    assert Context(names={one: "here"}).name_of(one) == "here"
    assert Context(names={one: "here"}).name_of(other) == "twin-b"


def test_a_secret_is_bytes() -> None:
    """Text is refused where it is given, not where the first cursor is signed."""
    with pytest.raises(ModelError, match="it signs cursors, and is bytes"):
        connect("memory:", cursor_secret="text")  # type: ignore[arg-type]  # the mistake

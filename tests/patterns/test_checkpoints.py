"""The checkpoint of a projector, in an item beside its marks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tavola import CheckpointRefused, CheckpointStore, Connection, connect
from tavola.patterns import MarkCheckpoint
from tavola.patterns.checkpoints import CHECKPOINT_SOURCE
from tests.patterns.board import Board, Case, Counted, Helpdesk


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """Return a client whose tables exist."""
    connection = opened()
    connection.create_tables(Helpdesk, Board)
    return connection


def test_a_checkpoint_is_saved_replaced_and_cleared(db: Connection, made: Callable[..., Any]) -> None:
    """A checkpoint belongs to one projector, and `clear` leaves none."""
    store = made(MarkCheckpoint, db, Counted, "cases")
    other = made(MarkCheckpoint, db, Counted, "others")

    assert store.load() is None
    store.save({"stream": "a"})
    store.save({"stream": "b"})
    assert store.load() == {"stream": "b"}
    assert other.load() is None
    store.clear()
    assert store.load() is None


def test_an_unreadable_checkpoint_is_refused(db: Connection, made: Callable[..., Any]) -> None:
    """An item that holds no JSON object is not taken for a checkpoint."""
    db.put(Counted(projector="cases", source=CHECKPOINT_SOURCE, kind="", place="[1"))

    with pytest.raises(CheckpointRefused):
        made(MarkCheckpoint, db, Counted, "cases").load()


def test_a_subscription_stores_its_checkpoint_in_the_item() -> None:
    """With a `Connection` it is a `CheckpointStore`: the next subscription continues where the first stopped."""
    with connect("memory:") as db:
        db.create_tables(Helpdesk, Board)
        store: CheckpointStore = MarkCheckpoint(db, Counted, "cases")
        for number in range(2):
            with db.subscribe(Helpdesk, from_="start", checkpoint=store, follow=False) as changes:
                db.create(Case(case_id=f"c{number}", opened_at=datetime(2026, 11, 16, tzinfo=UTC)))
                keys = [change.new.case_id for change in changes if isinstance(change.new, Case)]

            assert keys == [f"c{number}"]

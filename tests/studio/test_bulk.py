"""Bulk edits: previewed, then applied in slices, without losing concurrent changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tavola import connect
from tavola.client.connection import AsyncConnection
from tavola.studio.api.items import BulkRequest, BulkSlice, preview_bulk, run_bulk
from tavola.studio.edits import bulk_edits
from tavola.studio.edits.bulk_edits import BulkAction
from tavola.studio.edits.selections import ItemSelection
from tavola.studio.edits.writes import write_edit
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.planner import ItemQuery
from tests.studio.edited import Club, Stage, club, key_of, plain_table

ALL = ItemSelection("studio-club")


def to_the_end(stage: Stage, asked: BulkRequest) -> list[BulkSlice]:
    slices = [stage.call(run_bulk, asked)]
    while slices[-1].cursor is not None:
        slices.append(stage.call(run_bulk, BulkRequest(asked.selection, asked.action, slices[-1].cursor)))
    return slices


def set_(attribute: str, value: dict[str, Any]) -> BulkAction:
    return BulkAction("set", attribute, value)


def stale(stage: Stage) -> int:
    with connect(stage.engine) as db:
        report = db.verify_keys(Club)
    return sum(report.counts[kind] for kind in ("stale", "missing", "superfluous", "misplaced")) + len(
        report.guards
    )


def test_a_preview_shows_the_changes_and_writes_nothing() -> None:
    """The preview has counts, the price and rows before and after; the run consumes the announced units."""
    selection = ItemSelection("studio-club", keys=(key_of(0), key_of(1), key_of(9)))
    with club() as stage:
        before = stage.items("studio-club")
        request = BulkRequest(selection, set_("state", {"S": "left"}))
        response = stage.call(preview_bulk, request)
        stood = stage.items("studio-club")
        (done,) = to_the_end(stage, request)

        assert stood == before
        assert (response.matched, response.changing, response.same) == (3, 2, 0)
        assert [left.key for left in response.skipped] == [key_of(9)]
        assert response.rows[0].before["state"] == {"S": "active"}
        assert response.rows[0].after is not None
        assert response.rows[0].after["state"] == {"S": "left"}
        assert response.dollars > 0
        assert (done.written, len(done.skipped)) == (2, 1)
        assert done.units == response.units + response.read_units
        assert stale(stage) == 0


def test_a_bulk_edit_of_a_question_runs_in_slices() -> None:
    """All items that a plan finds are changed, a slice at a time, each with its keys."""
    condition = QueryCondition("_entity", "=", ({"S": "Member"},))
    question = ItemQuery("studio-club", conditions=(condition,))
    with club(members=250) as stage:
        request = BulkRequest(ItemSelection("studio-club", question=question), set_("town", {"S": "Bari"}))
        slices = to_the_end(stage, request)
        again = to_the_end(stage, request)

        assert len(slices) > 2
        assert sum(each.written for each in slices) == 250
        assert (sum(each.written for each in again), sum(each.same for each in again)) == (0, 250)
        assert stale(stage) == 0


def test_an_index_that_does_not_hold_all_gives_whole_items() -> None:
    """A question that an index answers with a part of each item edits the items, and not the parts."""
    question = ItemQuery(
        "studio-club", "towns", conditions=(QueryCondition("GSI2PK", "=", ({"S": "TOWN#Lecce"},)),)
    )
    with club() as stage:
        (done,) = to_the_end(
            stage,
            BulkRequest(ItemSelection("studio-club", question=question), BulkAction("remove", "points")),
        )

        assert done.written == 3
        item = stage.item(key_of(1))
        assert item is not None
        assert "points" not in item
        assert "email" in item
        assert stale(stage) == 0


def test_deleting_many_releases_their_values() -> None:
    """Each item goes with its guards, and nothing else does."""
    selection = ItemSelection("studio-club", keys=(key_of(0), key_of(1)))
    with club() as stage:
        (done,) = to_the_end(stage, BulkRequest(selection, BulkAction("delete")))

        assert done.written == 2
        assert len(stage.items("studio-club")) == 2  # the third member and its guard
        assert stale(stage) == 0


def test_items_that_cannot_change_are_skipped_with_a_reason() -> None:
    """An item that DynamoDB would refuse, or that would have to move, is left with its reason."""
    with club() as stage:
        selection = ItemSelection("studio-club", keys=(key_of(0), key_of(1)))
        wrong = stage.call(run_bulk, BulkRequest(selection, set_("points", {"S": "many"})))
        moving = stage.call(run_bulk, BulkRequest(selection, set_("member_id", {"S": "m9"})))
        shared = stage.call(run_bulk, BulkRequest(selection, set_("email", {"S": "one@club.example"})))

        assert ["points" in left.reason for left in wrong.skipped] == [True, True]
        assert ["would move" in left.reason for left in moving.skipped] == [True, True]
        assert shared.written == 1
        assert "already in use" in shared.skipped[0].reason
        with pytest.raises(RequestRefused, match="part of the primary key"):
            stage.call(run_bulk, BulkRequest(selection, set_("PK", {"S": "x"})))


def test_a_change_between_reading_and_writing_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that changes while the slice runs is skipped and reported."""
    with club(design=None) as stage:

        async def raced(studio: Any, layout: Any, change: Any) -> Any:
            stage.put({**change.before, "name": {"S": "Theirs"}})
            return await write_edit(studio, layout, change)

        monkeypatch.setattr(bulk_edits, "write_edit", raced)
        selection = ItemSelection("studio-club", keys=(key_of(1),))
        done = stage.call(run_bulk, BulkRequest(selection, set_("name", {"S": "Mine"})))

        assert done.written == 0
        assert "changed in the meantime" in done.skipped[0].reason
        item = stage.item(key_of(1))
        assert item is not None
        assert item["name"] == {"S": "Theirs"}


def test_the_past_is_not_edited() -> None:
    """A selection of a moment that is over can be looked at and not changed."""
    with club() as stage, pytest.raises(RequestRefused, match="earlier point in time"):
        stage.call(
            run_bulk,
            BulkRequest(ItemSelection("studio-club", as_of="2026-01-01T00:00:00Z"), BulkAction("delete")),
        )


def test_what_the_question_finds_no_more_is_left() -> None:
    """An index may be behind the table: an item that is found there and is otherwise by now is neither edited nor deleted."""
    question = ItemQuery(
        "studio-club", "towns", conditions=(QueryCondition("GSI2PK", "=", ({"S": "TOWN#Lecce"},)),)
    )

    class Behind:
        """A connection whose index still has what the table has no more."""

        def __init__(self, db: Any, stage: Stage) -> None:
            self.db, self.stage = db, stage

        async def close(self) -> None:
            """Leave open what it calls through: that is another's."""

        async def call(self, operation: str, request: Any) -> Any:
            answer = await self.db.call(operation, request)
            if operation == "Query":
                item = self.stage.item(key_of(1))
                assert item is not None
                self.stage.put({**item, "town": {"S": "Bari"}, "GSI2PK": {"S": "TOWN#Bari"}})
            return answer

    with club() as stage:
        stage.studio = replace(stage.studio, db=AsyncConnection(Behind(stage.studio.db, stage)))
        query = BulkRequest(ItemSelection("studio-club", question=question), BulkAction("delete"))
        (done,) = to_the_end(stage, query)

        assert done.written == 2
        assert stage.item(key_of(1)) is not None


def test_the_attributes_of_the_selection_are_conditions_of_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that stops matching the query while the slice runs is skipped, even if another attribute is set."""
    question = ItemQuery(
        "studio-club", conditions=(QueryCondition("state", "=", ({"S": "active"},)),), choose=False
    )
    with club(design=None) as stage:

        async def raced(studio: Any, layout: Any, change: Any) -> Any:
            stage.put({**change.before, "state": {"S": "left"}})
            return await write_edit(studio, layout, change)

        monkeypatch.setattr(bulk_edits, "write_edit", raced)
        selection = ItemSelection("studio-club", question=question)
        (done,) = to_the_end(stage, BulkRequest(selection, set_("note", {"S": "still here"})))

        assert (done.written, len(done.skipped)) == (0, 3)
        assert all("note" not in item for item in stage.items("studio-club"))


def test_a_key_is_found_however_it_is_spelled() -> None:
    """1.0 equals 1, and a key that occurs twice in a selection is one item."""
    keys = ({"id": {"S": "a"}, "n": {"N": "1.0"}}, {"id": {"S": "a"}, "n": {"N": "1"}})
    with club(members=0) as stage:
        plain_table(stage)
        stage.put({"id": {"S": "a"}, "n": {"N": "1"}}, "plain")
        (done,) = to_the_end(stage, BulkRequest(ItemSelection("plain", keys=keys), set_("x", {"BOOL": True})))

        assert (done.written, done.skipped) == (1, ())

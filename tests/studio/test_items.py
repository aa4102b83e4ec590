"""Editing one item: measured while it is typed, keys derived from fields, conflicts detected, and undone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tavola import Attr, Entity, Gsi, PrimaryKey, Query, Table, attr, connect
from tavola.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from tavola.model.document import design_of
from tavola.studio.api import items, transfer
from tavola.studio.api.items import (
    EditItemRequest,
    ReadItemRequest,
    RemoveItemRequest,
    delete_item,
    get_item,
    measure_item,
    put_item,
    undo_write,
)
from tavola.studio.api.tables import list_forms
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.types import TableRequest
from tests.studio.edited import DESIGN, Club, Member, Stage, State, club, key_of, plain_table

TEN: dict[str, Any] = {
    "text": {"S": '<b>né\n"x"</b>'},
    "empty": {"S": ""},
    "number": {"N": "12345678901234567890123456789012345678"},
    "binary": {"B": "AAECAw=="},
    "truth": {"BOOL": False},
    "null": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"L": []}, {"M": {"deep": {"N": "-0.5"}}}]},
    "map": {"M": {"<img src=x>": {"S": ""}, "b": {"SS": ["x"]}}},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "99999999999999999999999999999999999999"]},
    "binaries": {"BS": ["AA==", "AQ=="]},
}


def stale(stage: Stage) -> int:
    """Return how many keys and guards the client finds wrong."""
    with connect(stage.engine) as db:
        report = db.verify_keys(Club)
    return sum(report.counts[kind] for kind in ("stale", "missing", "superfluous", "misplaced")) + len(
        report.guards
    )


def edited(stage: Stage, number: int, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    before = stage.item(key_of(number))
    assert before is not None
    after = {**before, **changes}
    return before, {name: value for name, value in after.items() if value is not None}


def test_an_item_comes_whole_with_what_it_is() -> None:
    """The item of a key is given with its entity, its exact bytes and its key taken apart."""
    with club() as stage:
        view = stage.call(get_item, ReadItemRequest("studio-club", key_of(1)))
        nothing = stage.call(get_item, ReadItemRequest("studio-club", key_of(9)))

        assert view.item == stage.item(key_of(1))
        assert (view.entity, view.kind) == ("Member", "entity")
        assert [piece.value for piece in view.keys[0].pieces] == [None, "m1"]
        assert nothing.item is None


def test_all_ten_types_are_written_and_nothing_else_is_touched() -> None:
    """Editing one attribute leaves the others unchanged, whatever their type."""
    with club() as stage:
        plain_table(stage)
        item = {"id": {"S": "a"}, "n": {"N": "1"}, **TEN}
        made = stage.call(put_item, EditItemRequest("plain", item))
        after = {**item, "text": {"S": "other"}}

        written = stage.call(put_item, EditItemRequest("plain", after, before=item))

        assert (made.outcome, written.outcome) == ("written", "written")
        assert stage.item({"id": {"S": "a"}, "n": {"N": "1"}}, "plain") == after


@pytest.mark.parametrize("before", [{}, {"id": {"S": "a"}}, {"id": {"S": "a"}, "n": {"S": "1"}}, {"id": {}}])
def test_an_item_that_cannot_have_been_stored_is_refused(before: dict[str, Any]) -> None:
    """A write over an item without a whole key, or of no value that there is, is a question that makes no sense."""
    with club() as stage:
        plain_table(stage)
        item = {"id": {"S": "a"}, "n": {"N": "1"}}
        for ask, request in (
            (put_item, EditItemRequest("plain", item, before=before)),
            (measure_item, EditItemRequest("plain", item, before)),
            (delete_item, RemoveItemRequest("plain", before)),
            (undo_write, items.UndoRequest("plain", before, item)),
        ):
            with pytest.raises(RequestRefused, match="Invalid item"):
                stage.call(ask, request)

        assert stage.item(item, "plain") is None


def test_the_measure_is_what_the_engine_counts() -> None:
    """The measured bytes and units of a write, by table and index, equal what DynamoDB reports."""
    with club() as stage:
        before, after = edited(stage, 1, name={"S": "x" * 3000}, town={"S": "Bari"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))

        done = stage.call(put_item, EditItemRequest("studio-club", after, before))

        effects = {index.index: index.effect for index in response.indexes}
        assert effects == {"states": "updated", "towns": "moves", "points": "moves"}
        assert response.units == done.units
        assert response.bytes == stage.call(get_item, ReadItemRequest("studio-club", key_of(1))).bytes


def test_entering_and_leaving_an_index_is_reported() -> None:
    """Each index says what the write does to it."""
    with club() as stage:
        before, after = edited(stage, 1, town=None)
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))

        assert {index.index: index.effect for index in response.indexes} == {
            "states": "updated", "towns": "leaves", "points": "leaves",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("attribute", "value", "path", "words"),
    [
        ("a", {"SS": []}, ("a",), "may not be empty"),
        ("a", {"NS": ["1", "1.0"]}, ("a",), "duplicates"),
        ("a", {"N": "1e126"}, ("a",), "overflow"),
        ("a", {"N": "1.234567890123456789012345678901234567890"}, ("a",), "38 significant digits"),
        ("a", {"N": "twelve"}, ("a",), "numeric value"),
        ("a", {"B": "AAE"}, ("a",), "multiple of 4"),
        ("a", {"L": [{"S": "x"}, {"M": {"b": {"SS": []}}}]}, ("a", "1", "b"), "may not be empty"),
        ("a", {"NS": ["1", "x"]}, ("a", "1"), "numeric value"),
        ("a", {"S": "x", "N": "1"}, ("a",), "more than one datatypes"),
        ("PK", {"N": "1"}, ("PK",), "needs a string (S)"),
        ("GSI1PK", {"S": ""}, ("GSI1PK",), "must not be empty"),
        ("points", {"S": "many"}, ("points",), "needs a number (N)"),
        ("SK", {"S": "x" * 1025}, ("SK",), "1,024 bytes"),
        ("a", {"S": "x" * ITEM_BYTES_MAX}, (), "400 KB"),
    ],
)
def test_an_issue_has_the_path_of_its_value(
    attribute: str, value: dict[str, Any], path: tuple[str, ...], words: str
) -> None:
    """A flaw has the path of the very value, and the words of DynamoDB; it is refused when it is saved too."""
    with club(design=None) as stage:
        before, after = edited(stage, 1, **{attribute: value})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))

        assert [(flaw.path, words in flaw.text) for flaw in response.issues] == [(path, True)]
        with pytest.raises(RequestRefused, match="DynamoDB would reject"):
            stage.call(put_item, EditItemRequest("studio-club", after, before))


def test_excessive_nesting_is_reported_at_its_depth() -> None:
    """A document nested beyond the limit is reported at the path where it becomes too deep."""
    value: dict[str, Any] = {"S": "x"}
    for _ in range(34):
        value = {"L": [value]}
    with club(design=None) as stage:
        _, after = edited(stage, 1, deep=value)
        (flaw,) = stage.call(measure_item, EditItemRequest("studio-club", after)).issues

        assert "Nesting Levels" in flaw.text
        assert flaw.path == ("deep", *["0"] * NESTING_LEVELS_MAX)


def test_several_issues_are_reported_at_once() -> None:
    """DynamoDB reports the first issue; the studio reports all."""
    with club(design=None) as stage:
        _, after = edited(stage, 1, a={"SS": []}, b={"N": "x"}, SK=None)
        flaws = stage.call(measure_item, EditItemRequest("studio-club", after)).issues

        assert [flaw.path for flaw in flaws] == [("a",), ("b",)]


def test_a_changed_field_takes_its_keys_along() -> None:
    """Every key computed from a field is recomputed, the lock is incremented, and the client finds no stale key."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "asked"}, points={"N": "77"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))
        done = stage.call(put_item, EditItemRequest("studio-club", after, before))

        assert {change.attribute for change in response.keys} == {"GSI1PK", "GSI2PK", "GSI2SK", "revision"}
        assert done.keys == response.keys
        assert stale(stage) == 0
        current = stage.item(key_of(1))
        assert current is not None
        assert current["GSI1PK"]["S"].startswith("STATE#asked#")
        assert "GSI2PK" not in current
        with connect(stage.engine) as db:
            member = db.get(Member.Key(member_id="m1"))
        assert member is not None
        assert member.revision == 2


def test_a_new_item_of_an_entity_gets_its_keys() -> None:
    """Fields alone are enough for a new item: key, index keys, tag and lock follow, and its value is guarded."""
    values = {
        "member_id": {"S": "m7"}, "name": {"S": "Seven"}, "state": {"S": "active"},
        "joined_at": {"S": "2026-03-01T12:00:00.000000Z"}, "town": {"S": "Lecce"}, "points": {"N": "5"},
        "email": {"S": "seven@club.example"},
    }  # fmt: skip
    with club() as stage:
        done = stage.call(put_item, EditItemRequest("studio-club", values, entity="Member"))

        assert done.outcome == "written"
        assert stale(stage) == 0
        with connect(stage.engine) as db:
            member = db.get(Member.Key(member_id="m7"))
        assert member is not None
        assert member.state is State.ACTIVE


def test_keys_written_as_entered_are_reported_as_stale() -> None:
    """With keys as entered, those that no longer match their fields are reported before saving."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "left"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before, keys="given"))

        warned = {flaw.path[0] for flaw in response.issues if "Stale key" in flaw.text}
        assert warned == {"GSI1PK", "GSI2PK", "GSI2SK"}
        assert all(flaw.severity == "warning" for flaw in response.issues)


def test_keys_of_other_code_are_derived_only_if_the_template_matches() -> None:
    """In a table that other code writes, a key is recomputed only if its template produced the stored value."""
    foreign = replace(DESIGN, tables=tuple(replace(table, foreign=True) for table in DESIGN.tables))
    with club(design=foreign) as stage:
        before, after = edited(stage, 1, town={"S": "Bari"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))

        # The town alone could be repeated; the points are padded there, which a loose reading cannot know.
        assert response.keys == ()
        assert any(
            flaw.path == ("GSI2PK",) and "does not match its template" in flaw.text
            for flaw in response.issues
        )


def test_conflicts_with_the_design_are_warnings() -> None:
    """A wrong choice, a wrong type and a write to an immutable item are warnings; the write is possible."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "resting"}, name={"N": "1"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))
        visit = {"member_id": {"S": "m1"}, "number": {"N": "1"}}
        made = stage.call(put_item, EditItemRequest("studio-club", visit, entity="Visit"))
        assert made.current is not None
        again = stage.call(
            measure_item, EditItemRequest("studio-club", {**made.current, "x": {"S": "y"}}, made.current)
        )

        assert {flaw.path for flaw in response.issues} >= {("state",), ("name",)}
        assert {flaw.severity for flaw in response.issues} == {"warning"}
        assert "immutable" in again.issues[0].text


def test_two_edits_of_different_attributes_both_succeed() -> None:
    """An edit writes what it changes alone, so another's change of another attribute is not lost."""
    with club(design=None) as stage:
        before, mine = edited(stage, 1, name={"S": "Mine"})
        stage.put({**before, "note": {"S": "theirs"}})

        done = stage.call(put_item, EditItemRequest("studio-club", mine, before))

        assert done.outcome == "written"
        current = stage.item(key_of(1))
        assert current is not None
        assert (current["name"], current["note"]) == ({"S": "Mine"}, {"S": "theirs"})


def test_a_lost_race_shows_theirs_and_mine() -> None:
    """If the same attribute changed concurrently, nothing is written and both changes are returned."""
    with club(design=None) as stage:
        before, mine = edited(stage, 1, name={"S": "Mine"})
        stage.put({**before, "name": {"S": "Theirs"}})

        done = stage.call(put_item, EditItemRequest("studio-club", mine, before))

        assert done.outcome == "conflict"
        assert done.undo is None
        assert [each.after for each in done.theirs] == [{"S": "Theirs"}]
        assert [each.after for each in done.mine] == [{"S": "Mine"}]
        assert stage.item(key_of(1)) == {**before, "name": {"S": "Theirs"}}


def test_an_edit_of_what_was_deleted_makes_no_ghost() -> None:
    """An update would make a new item of the attributes that it sets; here it is a conflict."""
    with club(design=None) as stage:
        before, mine = edited(stage, 1, name={"S": "Mine"})
        stage.engine.call("DeleteItem", {"TableName": "studio-club", "Key": key_of(1)})

        done = stage.call(put_item, EditItemRequest("studio-club", mine, before))

        assert (done.outcome, done.current) == ("conflict", None)
        assert stage.item(key_of(1)) is None


def test_a_new_item_never_takes_anothers_place() -> None:
    """Creating under a key that is taken changes nothing and shows what is there."""
    with club(design=None) as stage:
        done = stage.call(put_item, EditItemRequest("studio-club", {**key_of(1), "name": {"S": "New"}}))

        assert done.outcome == "exists"
        assert done.current == stage.item(key_of(1))
        assert done.current is not None
        assert done.current["name"] == {"S": "Member 1"}


def test_every_write_can_be_undone() -> None:
    """Undoing an edit, a creation or a deletion restores the former item; the lock is incremented."""
    with club() as stage:
        before, after = edited(stage, 1, name={"S": "Other"}, email={"S": "other@club.example"})
        first = stage.call(put_item, EditItemRequest("studio-club", after, before))
        assert first.undo is not None
        back = stage.call(undo_write, first.undo)
        current = stage.item(key_of(1))
        assert current is not None
        assert back.outcome == "written"
        assert current == {**before, "revision": {"N": "3"}}

        gone = stage.call(delete_item, RemoveItemRequest("studio-club", current))
        assert stage.item(key_of(1)) is None
        assert gone.undo is not None
        stage.call(undo_write, gone.undo)

        assert stage.item(key_of(1)) == current
        assert stale(stage) == 0


def test_undo_refuses_after_another_write() -> None:
    """What was written after the write that is taken back is not lost."""
    with club(design=None) as stage:
        before, after = edited(stage, 1, name={"S": "Other"})
        done = stage.call(put_item, EditItemRequest("studio-club", after, before))
        assert done.undo is not None
        stage.put({**after, "name": {"S": "Third"}})

        back = stage.call(undo_write, done.undo)

        assert back.outcome == "conflict"
        current = stage.item(key_of(1))
        assert current is not None
        assert current["name"] == {"S": "Third"}


def test_a_key_that_changes_moves_the_item() -> None:
    """A field of the table's key moves the item in one transaction, guards and all; undo moves it back."""
    with club() as stage:
        before, after = edited(stage, 1, member_id={"S": "m99"})
        response = stage.call(measure_item, EditItemRequest("studio-club", after, before))
        done = stage.call(put_item, EditItemRequest("studio-club", after, before))

        assert response.moves
        assert response.units == done.units  # the guard's, which names its owner, among them
        assert stage.item(key_of(1)) is None
        assert stage.item(key_of(99)) is not None
        assert stale(stage) == 0
        assert done.undo is not None
        stage.call(undo_write, done.undo)
        assert stage.item(key_of(99)) is None
        assert stale(stage) == 0


def test_a_key_that_changes_never_takes_anothers_place() -> None:
    """Moving to a key that is taken is refused whole."""
    with club() as stage:
        before, after = edited(stage, 1, member_id={"S": "m2"}, email=None)

        done = stage.call(put_item, EditItemRequest("studio-club", after, before))

        assert done.outcome == "exists"
        assert stage.item(key_of(1)) == before


def test_a_unique_value_in_use_is_refused() -> None:
    """A unique value in use is not written, and its owner is named."""
    with club() as stage:
        before, after = edited(stage, 1, email={"S": "m2@club.example"})

        with pytest.raises(RequestRefused, match="MEMBER#m2") as refused:
            stage.call(put_item, EditItemRequest("studio-club", after, before))

        assert refused.value.problem.code == "unique-taken"
        assert stage.item(key_of(1)) == before


def test_a_unique_value_moves_its_guard() -> None:
    """The old value is free afterwards, and the new one is kept."""
    with club() as stage:
        before, after = edited(stage, 1, email={"S": "new@club.example"})
        stage.call(put_item, EditItemRequest("studio-club", after, before))
        other, taking = edited(stage, 2, email={"S": "m1@club.example"})

        assert stage.call(put_item, EditItemRequest("studio-club", taking, other)).outcome == "written"
        assert stale(stage) == 0


def test_a_deletion_holds_only_of_what_was_read() -> None:
    """An item that anybody changed in any attribute, or added one to, is not deleted."""
    with club(design=None) as stage:
        before, _ = edited(stage, 1)
        stage.put({**before, "added": {"S": "x"}})

        done = stage.call(delete_item, RemoveItemRequest("studio-club", before))

        assert done.outcome == "conflict"
        assert [each.path for each in done.theirs] == ["added"]
        assert stage.item(key_of(1)) is not None


def test_thousands_of_attributes_are_edited_in_parts_and_whole() -> None:
    """An edit of more attributes than a condition takes is written in parts; a lost race takes all of them back."""
    many = {f"attribute-{number:05d}": {"N": str(number)} for number in range(10_000)}
    with club(design=None) as stage:
        plain_table(stage)
        item = {"id": {"S": "big"}, "n": {"N": "1"}, **many}
        stage.call(put_item, EditItemRequest("plain", item))
        after = item | {f"attribute-{number:05d}": {"N": "-1"} for number in range(500)}
        stage.put({**item, "attribute-00499": {"S": "theirs"}}, "plain")
        lost = stage.call(put_item, EditItemRequest("plain", after, item))
        stood = stage.item({"id": {"S": "big"}, "n": {"N": "1"}}, "plain")
        stage.put(item, "plain")

        done = stage.call(put_item, EditItemRequest("plain", after, item))

        assert lost.outcome == "conflict"
        assert stood == {**item, "attribute-00499": {"S": "theirs"}}
        assert done.outcome == "written"
        assert stage.item({"id": {"S": "big"}, "n": {"N": "1"}}, "plain") == after


def test_an_item_of_the_largest_size_is_written() -> None:
    """An item of exactly 400 KB is measured and written; one byte more is refused."""
    with club(design=None) as stage:
        plain_table(stage)
        bare = {"id": {"S": "big"}, "n": {"N": "1"}}
        size = stage.call(measure_item, EditItemRequest("plain", {**bare, "t": {"S": ""}})).bytes
        full = {**bare, "t": {"S": "x" * (ITEM_BYTES_MAX - size)}}
        over = {**bare, "t": {"S": "x" * (ITEM_BYTES_MAX - size + 1)}}

        assert stage.call(measure_item, EditItemRequest("plain", full)).bytes == ITEM_BYTES_MAX
        assert stage.call(put_item, EditItemRequest("plain", full)).outcome == "written"
        assert stage.call(measure_item, EditItemRequest("plain", over)).issues[0].path == ()


def test_a_form_lists_the_keys_derived_from_a_field() -> None:
    """A form lists the key attributes computed from each field, and those made by templates."""
    with club() as stage:
        forms = stage.call(list_forms, TableRequest("studio-club")).forms

        form = next(form for form in forms if form.entity.name == "Member")
        assert form.entity.field("state").choices == ("asked", "active", "left")
        assert form.feeds["state"] == ("GSI1PK", "GSI2PK", "GSI2SK")
        assert form.entity.field("revision").lock
        assert form.entity.field("email").unique
        assert ("GSI1PK", "states") in {
            (source.attribute, key.index) for key in form.entity.keys for source in key.sources
        }
        assert stage.call(list_forms, TableRequest("plain")).forms == ()


class Parcels(Table, name="studio-parcels", pk="pk", sk="sk"):
    """Parcels, with the default state "sent"."""

    states = Gsi(pk="gsi1pk", sk="gsi1sk", name="gsi1")


class Parcel(Entity, table=Parcels):
    """A parcel."""

    parcel_id: Attr[str]
    state: Attr[str] = attr(default="sent")
    weight: Attr[int] = attr(default=0)

    class Key(PrimaryKey["Parcel"], pk="PARCEL#{parcel_id}", sk="PARCEL"):
        parcel_id: str

    class ByState(Query["Parcel"], on=Parcels.states, pk="STATE#{state}", sk="{parcel_id}"):
        state: str


def test_a_new_item_has_its_defaults_or_a_warning() -> None:
    """The form of a new item has the constant defaults; without them a warning names the index it will not be in."""
    with club(design=design_of(Parcels)) as stage:
        with connect(stage.engine) as db:
            db.create_tables(Parcels)
        form = stage.call(list_forms, TableRequest("studio-parcels")).forms[0]
        filled = form.defaults
        values = {"parcel_id": {"S": "p1"}}

        bare = stage.call(measure_item, EditItemRequest("studio-parcels", values, entity="Parcel"))
        whole = stage.call(
            measure_item, EditItemRequest("studio-parcels", {**filled, **values}, entity="Parcel")
        )
        stage.call(put_item, EditItemRequest("studio-parcels", {**filled, **values}, entity="Parcel"))

        assert filled == {"state": {"S": "sent"}, "weight": {"N": "0"}}
        assert [(flaw.path, flaw.severity) for flaw in bare.issues] == [(("state",), "warning")]
        assert "will not be in gsi1" in bare.issues[0].text
        assert whole.issues == ()
        with connect(stage.engine) as db:
            assert [result.parcel_id for result in db.query(Parcel.ByState(state="sent"))] == ["p1"]


def test_read_only_refuses_every_write() -> None:
    """What changes something is marked so, and read-only refuses what is marked."""
    changing = {e.name for module in (items, transfer) for e in module.ENDPOINTS if e.is_write}

    assert changing == {
        "POST /items/put",
        "POST /items/delete",
        "POST /items/undo",
        "POST /bulk/run",
        "POST /import/run",
    }
    with club() as stage:
        only = replace(stage.studio, read_only=True)
        endpoint: Endpoint = next(e for e in items.ENDPOINTS if e.name == "POST /items/put")
        with pytest.raises(RequestRefused, match="read-only"):
            asyncio.run(endpoint.call(only, EditItemRequest("studio-club", {})))

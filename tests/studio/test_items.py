"""Editing one item: measured while it is typed, its keys made of its fields, nobody's change lost, and undone."""

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
    DeleteItemRequest,
    GetItemRequest,
    PutItemRequest,
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
        view = stage.ask(get_item, GetItemRequest("studio-club", key_of(1)))
        nothing = stage.ask(get_item, GetItemRequest("studio-club", key_of(9)))

        assert view.item == stage.item(key_of(1))
        assert (view.entity, view.kind) == ("Member", "entity")
        assert [piece.value for piece in view.keys[0].pieces] == [None, "m1"]
        assert nothing.item is None


def test_all_ten_types_are_written_and_nothing_else_is_touched() -> None:
    """An edit of one attribute leaves every other, of whatever type, as it stood."""
    with club() as stage:
        plain_table(stage)
        item = {"id": {"S": "a"}, "n": {"N": "1"}, **TEN}
        made = stage.ask(put_item, PutItemRequest("plain", item))
        after = {**item, "text": {"S": "other"}}

        written = stage.ask(put_item, PutItemRequest("plain", after, before=item))

        assert (made.outcome, written.outcome) == ("written", "written")
        assert stage.item({"id": {"S": "a"}, "n": {"N": "1"}}, "plain") == after


@pytest.mark.parametrize("before", [{}, {"id": {"S": "a"}}, {"id": {"S": "a"}, "n": {"S": "1"}}, {"id": {}}])
def test_what_cannot_have_stood_is_refused(before: dict[str, Any]) -> None:
    """A write over an item without a whole key, or of no value that there is, is a question that makes no sense."""
    with club() as stage:
        plain_table(stage)
        item = {"id": {"S": "a"}, "n": {"N": "1"}}
        for ask, asked in (
            (put_item, PutItemRequest("plain", item, before=before)),
            (measure_item, PutItemRequest("plain", item, before)),
            (delete_item, DeleteItemRequest("plain", before)),
            (undo_write, items.UndoRequest("plain", before, item)),
        ):
            with pytest.raises(RequestRefused, match="cannot have stood"):
                stage.ask(ask, asked)

        assert stage.item(item, "plain") is None


def test_the_measure_is_what_the_engine_counts() -> None:
    """Bytes and units of a write, on the table and on each index, are those that DynamoDB then tells."""
    with club() as stage:
        before, after = edited(stage, 1, name={"S": "x" * 3000}, town={"S": "Bari"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))

        done = stage.ask(put_item, PutItemRequest("studio-club", after, before))

        effects = {index.index: index.effect for index in told.indexes}
        assert effects == {"states": "updated", "towns": "moves", "points": "moves"}
        assert told.units == done.units
        assert told.bytes == stage.ask(get_item, GetItemRequest("studio-club", key_of(1))).bytes


def test_an_index_is_told_to_be_entered_and_left() -> None:
    """Each index says what the write does to it."""
    with club() as stage:
        before, after = edited(stage, 1, town=None)
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))

        assert {index.index: index.effect for index in told.indexes} == {
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
        ("PK", {"N": "1"}, ("PK",), "wants a text (S)"),
        ("GSI1PK", {"S": ""}, ("GSI1PK",), "cannot be empty"),
        ("points", {"S": "many"}, ("points",), "wants a number (N)"),
        ("SK", {"S": "x" * 1025}, ("SK",), "1,024 bytes"),
        ("a", {"S": "x" * ITEM_BYTES_MAX}, (), "400 KB"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    attribute: str, value: dict[str, Any], path: tuple[str, ...], words: str
) -> None:
    """A flaw has the path of the very value, and the words of DynamoDB; it is refused when it is saved too."""
    with club(design=None) as stage:
        before, after = edited(stage, 1, **{attribute: value})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))

        assert [(flaw.path, words in flaw.text) for flaw in told.issues] == [(path, True)]
        with pytest.raises(RequestRefused, match="DynamoDB would not take"):
            stage.ask(put_item, PutItemRequest("studio-club", after, before))


def test_too_deep_is_told_at_the_depth() -> None:
    """Of a document that is nested beyond the limit, the place is told where it becomes too deep."""
    value: dict[str, Any] = {"S": "x"}
    for _ in range(34):
        value = {"L": [value]}
    with club(design=None) as stage:
        _, after = edited(stage, 1, deep=value)
        (flaw,) = stage.ask(measure_item, PutItemRequest("studio-club", after)).issues

        assert "Nesting Levels" in flaw.text
        assert flaw.path == ("deep", *["0"] * NESTING_LEVELS_MAX)


def test_several_flaws_are_told_at_once() -> None:
    """DynamoDB tells the first; a person is told all."""
    with club(design=None) as stage:
        _, after = edited(stage, 1, a={"SS": []}, b={"N": "x"}, SK=None)
        flaws = stage.ask(measure_item, PutItemRequest("studio-club", after)).issues

        assert [flaw.path for flaw in flaws] == [("a",), ("b",)]


def test_a_changed_field_takes_its_keys_along() -> None:
    """Every key that a field feeds is made anew, the lock counts on, and the client finds nothing stale."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "asked"}, points={"N": "77"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))
        done = stage.ask(put_item, PutItemRequest("studio-club", after, before))

        assert {change.attribute for change in told.keys} == {"GSI1PK", "GSI2PK", "GSI2SK", "revision"}
        assert done.keys == told.keys
        assert stale(stage) == 0
        stands = stage.item(key_of(1))
        assert stands is not None
        assert stands["GSI1PK"]["S"].startswith("STATE#asked#")
        assert "GSI2PK" not in stands
        with connect(stage.engine) as db:
            member = db.get(Member.Key(member_id="m1"))
        assert member is not None
        assert member.revision == 2


def test_a_new_item_of_an_entity_gets_its_keys() -> None:
    """Fields alone are enough for a new item: key, index keys, tag and lock follow, and its value is guarded."""
    given = {
        "member_id": {"S": "m7"}, "name": {"S": "Seven"}, "state": {"S": "active"},
        "joined_at": {"S": "2026-03-01T12:00:00.000000Z"}, "town": {"S": "Lecce"}, "points": {"N": "5"},
        "email": {"S": "seven@club.example"},
    }  # fmt: skip
    with club() as stage:
        done = stage.ask(put_item, PutItemRequest("studio-club", given, entity="Member"))

        assert done.outcome == "written"
        assert stale(stage) == 0
        with connect(stage.engine) as db:
            member = db.get(Member.Key(member_id="m7"))
        assert member is not None
        assert member.state is State.ACTIVE


def test_keys_left_as_given_are_told_to_be_stale() -> None:
    """Whoever keeps keys as they are typed is told before saving which of them no longer fit."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "left"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before, keys="given"))

        warned = {flaw.path[0] for flaw in told.issues if "stale" in flaw.text}
        assert warned == {"GSI1PK", "GSI2PK", "GSI2SK"}
        assert all(flaw.severity == "warning" for flaw in told.issues)


def test_other_codes_keys_are_made_anew_only_where_the_template_made_them() -> None:
    """In a table that other code writes, a key is recomputed if its template made what stood; else it is left."""
    foreign = replace(DESIGN, tables=tuple(replace(table, foreign=True) for table in DESIGN.tables))
    with club(design=foreign) as stage:
        before, after = edited(stage, 1, town={"S": "Bari"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))

        # The town alone could be repeated; the points are padded there, which a loose reading cannot know.
        assert told.keys == ()
        assert any(flaw.path == ("GSI2PK",) and "Other code" in flaw.text for flaw in told.issues)


def test_what_the_design_says_against_is_a_warning() -> None:
    """A wrong choice, a wrong type and a write of what is immutable are told, and can be done all the same."""
    with club() as stage:
        before, after = edited(stage, 1, state={"S": "resting"}, name={"N": "1"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))
        visit = {"member_id": {"S": "m1"}, "number": {"N": "1"}}
        made = stage.ask(put_item, PutItemRequest("studio-club", visit, entity="Visit"))
        assert made.current is not None
        again = stage.ask(
            measure_item, PutItemRequest("studio-club", {**made.current, "x": {"S": "y"}}, made.current)
        )

        assert {flaw.path for flaw in told.issues} >= {("state",), ("name",)}
        assert {flaw.severity for flaw in told.issues} == {"warning"}
        assert "never written again" in again.issues[0].text


def test_two_edits_of_different_attributes_both_stand() -> None:
    """An edit writes what it changes alone, so another's change of another attribute is not lost."""
    with club(design=None) as stage:
        before, mine = edited(stage, 1, name={"S": "Mine"})
        stage.put({**before, "note": {"S": "theirs"}})

        done = stage.ask(put_item, PutItemRequest("studio-club", mine, before))

        assert done.outcome == "written"
        stands = stage.item(key_of(1))
        assert stands is not None
        assert (stands["name"], stands["note"]) == ({"S": "Mine"}, {"S": "theirs"})


def test_a_lost_race_shows_theirs_and_mine() -> None:
    """Where somebody changed the same attribute meanwhile nothing is written, and both changes are told."""
    with club(design=None) as stage:
        before, mine = edited(stage, 1, name={"S": "Mine"})
        stage.put({**before, "name": {"S": "Theirs"}})

        done = stage.ask(put_item, PutItemRequest("studio-club", mine, before))

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

        done = stage.ask(put_item, PutItemRequest("studio-club", mine, before))

        assert (done.outcome, done.current) == ("conflict", None)
        assert stage.item(key_of(1)) is None


def test_a_new_item_never_takes_anothers_place() -> None:
    """Creating under a key that is taken changes nothing and shows what is there."""
    with club(design=None) as stage:
        done = stage.ask(put_item, PutItemRequest("studio-club", {**key_of(1), "name": {"S": "New"}}))

        assert done.outcome == "exists"
        assert done.current == stage.item(key_of(1))
        assert done.current is not None
        assert done.current["name"] == {"S": "Member 1"}


def test_every_write_can_be_undone() -> None:
    """Undo of an edit, of a creation and of a deletion gives back what stood; the lock counts on."""
    with club() as stage:
        before, after = edited(stage, 1, name={"S": "Other"}, email={"S": "other@club.example"})
        first = stage.ask(put_item, PutItemRequest("studio-club", after, before))
        assert first.undo is not None
        back = stage.ask(undo_write, first.undo)
        stands = stage.item(key_of(1))
        assert stands is not None
        assert back.outcome == "written"
        assert stands == {**before, "revision": {"N": "3"}}

        gone = stage.ask(delete_item, DeleteItemRequest("studio-club", stands))
        assert stage.item(key_of(1)) is None
        assert gone.undo is not None
        stage.ask(undo_write, gone.undo)

        assert stage.item(key_of(1)) == stands
        assert stale(stage) == 0


def test_undo_refuses_where_somebody_wrote_since() -> None:
    """What was written after the write that is taken back is not lost."""
    with club(design=None) as stage:
        before, after = edited(stage, 1, name={"S": "Other"})
        done = stage.ask(put_item, PutItemRequest("studio-club", after, before))
        assert done.undo is not None
        stage.put({**after, "name": {"S": "Third"}})

        back = stage.ask(undo_write, done.undo)

        assert back.outcome == "conflict"
        stands = stage.item(key_of(1))
        assert stands is not None
        assert stands["name"] == {"S": "Third"}


def test_a_key_that_changes_moves_the_item() -> None:
    """A field of the table's key moves the item in one transaction, guards and all; undo moves it back."""
    with club() as stage:
        before, after = edited(stage, 1, member_id={"S": "m99"})
        told = stage.ask(measure_item, PutItemRequest("studio-club", after, before))
        done = stage.ask(put_item, PutItemRequest("studio-club", after, before))

        assert told.moves
        assert told.units == done.units  # the guard's, which names its owner, among them
        assert stage.item(key_of(1)) is None
        assert stage.item(key_of(99)) is not None
        assert stale(stage) == 0
        assert done.undo is not None
        stage.ask(undo_write, done.undo)
        assert stage.item(key_of(99)) is None
        assert stale(stage) == 0


def test_a_key_that_changes_never_takes_anothers_place() -> None:
    """Moving to a key that is taken is refused whole."""
    with club() as stage:
        before, after = edited(stage, 1, member_id={"S": "m2"}, email=None)

        done = stage.ask(put_item, PutItemRequest("studio-club", after, before))

        assert done.outcome == "exists"
        assert stage.item(key_of(1)) == before


def test_a_unique_value_that_is_taken_is_refused() -> None:
    """The value of another is not written, and whose it is is told."""
    with club() as stage:
        before, after = edited(stage, 1, email={"S": "m2@club.example"})

        with pytest.raises(RequestRefused, match="MEMBER#m2") as refused:
            stage.ask(put_item, PutItemRequest("studio-club", after, before))

        assert refused.value.problem.code == "unique-taken"
        assert stage.item(key_of(1)) == before


def test_a_unique_value_moves_its_guard() -> None:
    """The old value is free afterwards, and the new one is kept."""
    with club() as stage:
        before, after = edited(stage, 1, email={"S": "new@club.example"})
        stage.ask(put_item, PutItemRequest("studio-club", after, before))
        other, taking = edited(stage, 2, email={"S": "m1@club.example"})

        assert stage.ask(put_item, PutItemRequest("studio-club", taking, other)).outcome == "written"
        assert stale(stage) == 0


def test_a_deletion_holds_only_of_what_was_read() -> None:
    """An item that anybody changed in any attribute, or added one to, is not deleted."""
    with club(design=None) as stage:
        before, _ = edited(stage, 1)
        stage.put({**before, "added": {"S": "x"}})

        done = stage.ask(delete_item, DeleteItemRequest("studio-club", before))

        assert done.outcome == "conflict"
        assert [each.path for each in done.theirs] == ["added"]
        assert stage.item(key_of(1)) is not None


def test_thousands_of_attributes_are_edited_in_parts_and_whole() -> None:
    """An edit of more attributes than a condition takes is written in parts; a lost race takes all of them back."""
    many = {f"attribute-{number:05d}": {"N": str(number)} for number in range(10_000)}
    with club(design=None) as stage:
        plain_table(stage)
        item = {"id": {"S": "big"}, "n": {"N": "1"}, **many}
        stage.ask(put_item, PutItemRequest("plain", item))
        after = item | {f"attribute-{number:05d}": {"N": "-1"} for number in range(500)}
        stage.put({**item, "attribute-00499": {"S": "theirs"}}, "plain")
        lost = stage.ask(put_item, PutItemRequest("plain", after, item))
        stood = stage.item({"id": {"S": "big"}, "n": {"N": "1"}}, "plain")
        stage.put(item, "plain")

        done = stage.ask(put_item, PutItemRequest("plain", after, item))

        assert lost.outcome == "conflict"
        assert stood == {**item, "attribute-00499": {"S": "theirs"}}
        assert done.outcome == "written"
        assert stage.item({"id": {"S": "big"}, "n": {"N": "1"}}, "plain") == after


def test_an_item_of_the_largest_size_is_written() -> None:
    """An item of exactly 400 KB is measured and written; one byte more is refused."""
    with club(design=None) as stage:
        plain_table(stage)
        bare = {"id": {"S": "big"}, "n": {"N": "1"}}
        size = stage.ask(measure_item, PutItemRequest("plain", {**bare, "t": {"S": ""}})).bytes
        full = {**bare, "t": {"S": "x" * (ITEM_BYTES_MAX - size)}}
        over = {**bare, "t": {"S": "x" * (ITEM_BYTES_MAX - size + 1)}}

        assert stage.ask(measure_item, PutItemRequest("plain", full)).bytes == ITEM_BYTES_MAX
        assert stage.ask(put_item, PutItemRequest("plain", full)).outcome == "written"
        assert stage.ask(measure_item, PutItemRequest("plain", over)).issues[0].path == ()


def test_a_form_says_which_keys_a_field_feeds() -> None:
    """Whoever edits a field sees which key attributes will follow it, and which are made by templates."""
    with club() as stage:
        told = stage.ask(list_forms, TableRequest("studio-club"))

        member = next(form for form in told.forms if form.name == "Member")
        fields = {field.name: field for field in member.fields}
        assert fields["state"].choices == ("asked", "active", "left")
        assert fields["state"].feeds == ("GSI1PK", "GSI2PK", "GSI2SK")
        assert fields["revision"].lock
        assert fields["email"].unique
        assert ("GSI1PK", "states") in {
            (part.attribute, key.index) for key in member.keys for part in (*key.hash, *key.range)
        }
        assert stage.ask(list_forms, TableRequest("plain")).forms == ()


class Parcels(Table, name="studio-parcels", pk="pk", sk="sk"):
    """Parcels, which are sent unless somebody says otherwise."""

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
    """The form of a new item holds the constant defaults, with which it is in its index; without them that is told."""
    with club(design=design_of(Parcels)) as stage:
        with connect(stage.engine) as db:
            db.create_tables(Parcels)
        form = stage.ask(list_forms, TableRequest("studio-parcels")).forms[0]
        filled = {field.attribute: field.default for field in form.fields if field.default is not None}
        given = {"parcel_id": {"S": "p1"}}

        bare = stage.ask(measure_item, PutItemRequest("studio-parcels", given, entity="Parcel"))
        whole = stage.ask(
            measure_item, PutItemRequest("studio-parcels", {**filled, **given}, entity="Parcel")
        )
        stage.ask(put_item, PutItemRequest("studio-parcels", {**filled, **given}, entity="Parcel"))

        assert filled == {"state": {"S": "sent"}, "weight": {"N": "0"}}
        assert [(flaw.path, flaw.severity) for flaw in bare.issues] == [(("state",), "warning")]
        assert "will not be in gsi1" in bare.issues[0].text
        assert whole.issues == ()
        with connect(stage.engine) as db:
            assert [found.parcel_id for found in db.query(Parcel.ByState(state="sent"))] == ["p1"]


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
            asyncio.run(endpoint.call(only, PutItemRequest("studio-club", {})))

"""Guards of unique values held against their items: fields made unique later, schemas that change them, others' writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    GuardProblem,
    PrimaryKey,
    Table,
    UniqueViolation,
    attr,
    connect,
    upgrade,
)
from tavola.model import ItemUnreadable
from tavola.protocol.faults import InternalServerFault
from tests.client.club import disagreements


def people(*, unique: bool) -> SimpleNamespace:
    """Return a design of people whose address is unique, or is not."""

    class Town(Table, name="town"):
        """A table."""

    class Person(Entity, table=Town):
        """A person with an address."""

        person_id: Attr[str]
        email: Attr[str | None] = attr(default=None, unique=unique)
        street: Attr[str] = attr(default="")

        class Key(PrimaryKey["Person"], pk="PERSON#{person_id}", sk="PERSON"):
            person_id: str

    return SimpleNamespace(Town=Town, Person=Person)


OPEN, UNIQUE = people(unique=False), people(unique=True)


@pytest.fixture
def memory() -> Iterator[Connection]:
    """A connection to a table with three people whose addresses are not unique."""
    with connect("memory:") as db:
        filled(db)
        yield db


def filled(db: Any) -> None:
    """Store three people of the older design."""
    db.create_tables(OPEN.Town)
    db.put_many(OPEN.Person(person_id=f"p{n}", email=f"{n}@x") for n in range(3))
    db.put(OPEN.Person(person_id="p9"))


def guards(db: Any, name: str = "town") -> set[str]:
    """Return the keys of the stored guards."""
    items = db.call("Scan", {"TableName": name})["Items"]
    return {item["pk"]["S"] for item in items if "_unique" in item}


class Between:
    """A backend that runs a callback before or after each call, one call at a time."""

    def __init__(self, inner: Any, before: Any = None, after: Any = None) -> None:
        self._inner, self._before, self._after = inner, before, after

    def call(self, operation: str, request: Any) -> Any:
        """Return the answer of the other."""
        if self._before is not None:
            self._before(operation, request)
        answer = self._inner.call(operation, request)
        if self._after is not None:
            self._after(operation, request)
        return answer

    def close(self) -> None:
        """Leave the other open."""


class TestMadeUniqueLater:
    """A field that becomes unique when items already exist."""

    def test_plan_and_verification_say_so_and_a_backfill_guards_every_value(
        self, opened: Callable[..., Connection]
    ) -> None:
        """Missing guards are reported; after a backfill every value has its guard and is taken."""
        db: Any = opened()
        filled(db)

        plan = db.plan_migration(UNIQUE.Town, was=OPEN.Town)
        found = db.verify_keys(UNIQUE.Town)
        report = db.backfill(UNIQUE.Town)

        assert "email is unique in the whole table, and was not" in str(plan)
        assert plan.rewritten == found.counts["unguarded"] == report.written == report.guards == 3
        assert plan.entities[0].reasons == {"no guard for the unique email": 3}
        assert plan.write_units == report.write_units == 12
        assert not found.sound
        assert disagreements(db, UNIQUE.Person) == []
        assert db.verify_keys(UNIQUE.Town).sound
        assert db.plan_migration(UNIQUE.Town).rewritten == db.backfill(UNIQUE.Town).written == 0
        with pytest.raises(UniqueViolation):
            db.create(UNIQUE.Person(person_id="p7", email="1@x"))

    def test_a_duplicate_value_is_reported(self, memory: Any) -> None:
        """Of two items with one value the first is guarded;

        the other is skipped and reported with the owner.
        """
        memory.put(OPEN.Person(person_id="p5", email="1@x"))

        plan = memory.plan_migration(UNIQUE.Town)
        report = memory.backfill(UNIQUE.Town)
        found = memory.verify_keys(UNIQUE.Town, repair=True)

        assert (plan.taken, plan.rewritten) == (1, 3)
        assert "1 items have a unique value that another item has too" in str(plan)
        assert (report.written, report.left_count) == (3, 1)
        assert "its email must be unique, but pk=PERSON#p" in report.left[0].reason
        (fault,) = found.guards
        assert (fault.kind, fault.field) == ("taken", "email")
        assert {fault.key["pk"]["S"], fault.owner["pk"]["S"]} == {"PERSON#p1", "PERSON#p5"}
        assert "must be unique, but pk=PERSON#p" in str(fault)
        assert (found.sound, found.repaired) == (False, 0)

    def test_an_item_that_changes_meanwhile_has_one_guard(self, memory: Any) -> None:
        """A change between the scan and the guard's transaction is not lost and leaves no extra guard."""
        seen: list[str] = []

        def interfere(operation: str, request: Any) -> None:
            if operation == "TransactWriteItems" and not seen:
                seen.append(operation)
                pk = request["TransactItems"][0]["ConditionCheck"]["Key"]["pk"]["S"]
                memory.update(OPEN.Person.Key(person_id=pk[7:]), OPEN.Person.email.set("new@x"))

        Connection(Between(memory.backend, interfere)).backfill(UNIQUE.Town)

        assert "UNIQUE#Person#email#new@x" in guards(memory)
        assert len(guards(memory)) == 3
        assert disagreements(memory, UNIQUE.Person) == []

    def test_uniqueness_within_other_fields_is_a_difference_too(self, memory: Any) -> None:
        """A field that is no longer unique is reported, and a repair removes its guards."""
        memory.backfill(UNIQUE.Town)

        plan = memory.plan_migration(OPEN.Town, was=UNIQUE.Town)
        found = memory.verify_keys(OPEN.Town, repair=True)

        assert "email is no longer unique" in str(plan)
        assert (found.counts["orphaned"], found.repaired) == (3, 3)
        assert guards(memory) == set()


class TestVerified:
    """Items without guards and guards without items, made by writing past the library."""

    @pytest.fixture
    def town(self, opened: Callable[..., Connection]) -> Any:
        """A connection to a table in which everything is right."""
        db: Any = opened()
        db.create_tables(UNIQUE.Town)
        for n in range(4):
            db.create(UNIQUE.Person(person_id=f"p{n}", email=f"{n}@x"))
        return db

    def _name(self, db: Any) -> str:
        names: list[str] = db.call("ListTables")["TableNames"]
        return next(name for name in names if name.endswith("town"))

    def _key(self, pk: str, sk: str | None = None) -> dict[str, Any]:
        return {"pk": {"S": pk}, "sk": {"S": sk or pk}}

    def test_every_planted_fault_is_found_and_repaired(self, town: Any) -> None:
        """A deleted guard, a deleted item and a changed item are reported from both sides;

        all are repaired.
        """
        name = self._name(town)
        guard = "UNIQUE#Person#email#{}@x"
        town.call("DeleteItem", {"TableName": name, "Key": self._key(guard.format(0))})
        town.call("DeleteItem", {"TableName": name, "Key": self._key("PERSON#p1", "PERSON")})
        town.call(
            "UpdateItem",
            {
                "TableName": name, "Key": self._key("PERSON#p2", "PERSON"),
                "UpdateExpression": "SET email = :v", "ExpressionAttributeValues": {":v": {"S": "new@x"}},
            },
        )  # fmt: skip

        found = town.verify_keys(UNIQUE.Town)

        faults = {(each.kind, each.guard) for each in found.guards}
        assert faults == {
            ("unguarded", guard.format(0)), ("orphaned", guard.format(1)), ("orphaned", guard.format(2)),
            ("unguarded", guard.format("new")),
        }  # fmt: skip
        assert found.problem_count == 4
        assert all(isinstance(each, GuardProblem) for each in found.guards)
        assert any("which does not have the value" in str(each) for each in found.guards)
        assert town.verify_keys(UNIQUE.Town, repair=True).repaired == 4
        assert town.verify_keys(UNIQUE.Town).sound
        assert disagreements(town, UNIQUE.Person) == []
        assert town.create(UNIQUE.Person(person_id="p8", email="1@x")).email == "1@x"

    def test_a_writer_meanwhile_is_no_fault(self) -> None:
        """Values that move between the reads of items and of guards are not reported and not changed."""
        with connect("memory:") as db:
            db.create_tables(UNIQUE.Town)
            for n in range(4):
                db.create(UNIQUE.Person(person_id=f"p{n}", email=f"{n}@x"))
            moved: list[int] = []

            def interfere(operation: str, request: Any) -> None:
                if operation == "Scan" and not moved:
                    for n in range(4):
                        moved.append(n)
                        db.update(UNIQUE.Person.Key(person_id=f"p{n}"), UNIQUE.Person.email.set(f"{n}@y"))
                    db.delete(UNIQUE.Person.Key(person_id="p3"))

            found = Connection(Between(db.backend, after=interfere)).verify_keys(UNIQUE.Town, repair=True)

            assert moved
            assert (found.sound, found.repaired) == (True, 0)
            assert disagreements(db, UNIQUE.Person) == []

    def test_guards_of_entities_that_this_program_does_not_know_are_left(self, memory: Any) -> None:
        """A guard of an unknown entity is neither reported nor removed."""
        guard = {
            **self._key("UNIQUE#Car#plate#A1"), "_entity": {"S": "UNIQUE"}, "_unique": {"S": "Car.plate"},
            "_owner": {"M": self._key("CAR#1", "CAR")},
        }  # fmt: skip
        memory.call("PutItem", {"TableName": "town", "Item": guard})

        found = memory.verify_keys(OPEN.Town, repair=True)

        assert found.sound
        assert "UNIQUE#Car#plate#A1" in guards(memory)

    def test_a_failure_of_the_service_does_not_end_a_repair(self, memory: Any) -> None:
        """After a write with an unknown outcome, the item is read again;

        no repair is done twice or skipped.
        """
        lost: list[str] = []

        def fail(operation: str, request: Any) -> None:
            if operation == "TransactWriteItems" and len(lost) < 2:
                lost.append(operation)
                raise InternalServerFault("it went wrong")

        report = Connection(Between(memory.backend, after=fail)).backfill(UNIQUE.Town)

        assert report.left_count == 0
        assert disagreements(memory, UNIQUE.Person) == []


def numbered(second: str | None) -> SimpleNamespace:
    """Return a design with a unique number; the second schema makes it a string or renames it."""

    class Yard(Table, name="yard"):
        """A table."""

    if second is None:

        class Box(Entity, table=Yard):
            """A box by its number."""

            box_id: Attr[str]
            number: Attr[int] = attr(unique=True)

            class Key(PrimaryKey["Box"], pk="BOX#{box_id}", sk="BOX"):
                box_id: str

        return SimpleNamespace(Yard=Yard, Box=Box)
    if second == "type":

        class Text(Entity, table=Yard, tag="Box", version=2):
            """A box whose number is a string."""

            box_id: Attr[str]
            number: Attr[str] = attr(unique=True)
            note: Attr[str] = attr(default="")

            class Key(PrimaryKey["Text"], pk="BOX#{box_id}", sk="BOX"):
                box_id: str

            @staticmethod
            @upgrade(1)
            def to_text(item: dict[str, Any]) -> dict[str, Any]:
                """Convert the number to a string."""
                return {**item, "number": f"n{item['number']}"}

        return SimpleNamespace(Yard=Yard, Box=Text)

    class Renamed(Entity, table=Yard, tag="Box", version=2):
        """A box whose number has another name."""

        box_id: Attr[str]
        plate: Attr[int] = attr(unique=True)
        note: Attr[str] = attr(default="", unique=False)

        class Key(PrimaryKey["Renamed"], pk="BOX#{box_id}", sk="BOX"):
            box_id: str

        @staticmethod
        @upgrade(1)
        def rename(item: dict[str, Any]) -> dict[str, Any]:
            """Call it otherwise."""
            return {**{n: v for n, v in item.items() if n != "number"}, "plate": item["number"]}

    return SimpleNamespace(Yard=Yard, Box=Renamed)


@pytest.mark.parametrize("second", ["type", "name"])
class TestSchemasThatChangeWhatIsUnique:
    """Items whose unique value was claimed under another type or name."""

    @pytest.fixture
    def yard(self, opened: Callable[..., Connection], second: str) -> Any:
        """A connection with three boxes of the first schema, and the second schema."""
        was, now = numbered(None), numbered(second)
        db: Any = opened()
        db.create_tables(was.Yard)
        for n in range(3):
            db.create(was.Box(box_id=f"b{n}", number=n))
        return db, was, now

    def test_they_are_updated_put_and_deleted_and_leave_no_guard_behind(self, yard: Any) -> None:
        """Every write claims the new value and releases the old one, so no value stays taken without an owner."""
        db, was, now = yard
        keys = [now.Box.Key(box_id=f"b{n}") for n in range(3)]

        assert db.update(keys[0], now.Box.note.set("x")).note == "x"
        db.put(db.get(keys[1]))
        assert db.delete(keys[2]).box_id == "b2"

        assert disagreements(db, now.Box) == []
        assert db.verify_keys(now.Yard).sound
        assert db.create(was.Box(box_id="b9", number=2)).number == 2

    def test_a_backfill_moves_the_guards_with_their_items(self, yard: Any) -> None:
        """The item is upgraded, the new value claimed and the old one released, in one transaction."""
        db, _, now = yard

        assert db.plan_migration(now.Yard).rewritten == 3
        report = db.backfill(now.Yard)

        assert (report.written, report.left_count, report.guards) == (3, 0, 3)
        assert disagreements(db, now.Box) == []
        assert db.verify_keys(now.Yard).sound
        assert db.backfill(now.Yard).written == 0


def test_an_upgrade_claims_newly_unique_values() -> None:
    """The write that upgrades an item guards fields that the new schema makes unique, whatever it changes."""
    was, now = people(unique=False), raised()
    with connect("memory:") as db:
        db.create_tables(was.Town)
        db.put_many(was.Person(person_id=f"p{n}", email=f"{n}@x") for n in range(2))

        db.update(now.Person.Key(person_id="p0"), now.Person.street.set("High Street"))
        stored = db.get(now.Person.Key(person_id="p1"))
        assert stored is not None
        db.put(stored)

        assert disagreements(db, now.Person) == []
        with pytest.raises(UniqueViolation):
            db.create(now.Person(person_id="p7", email="0@x"))


def raised() -> SimpleNamespace:
    """Return the design of people in a second schema, in which the address is unique."""

    class Town(Table, name="town"):
        """A table."""

    class Person(Entity, table=Town, version=2):
        """A person with an address."""

        person_id: Attr[str]
        email: Attr[str | None] = attr(default=None, unique=True)
        street: Attr[str] = attr(default="")

        class Key(PrimaryKey["Person"], pk="PERSON#{person_id}", sk="PERSON"):
            person_id: str

        @staticmethod
        @upgrade(1)
        def same(item: dict[str, Any]) -> dict[str, Any]:
            """Return the item unchanged."""
            return item

    return SimpleNamespace(Town=Town, Person=Person)


def test_an_invalid_value_in_a_unique_field_does_not_block_writes(memory: Any) -> None:
    """The item is reported as unreadable, and can be replaced and deleted."""
    for n in (0, 1):
        request = {
            "TableName": "town", "Key": {"pk": {"S": f"PERSON#p{n}"}, "sk": {"S": "PERSON"}},
            "UpdateExpression": "SET email = :v", "ExpressionAttributeValues": {":v": {"N": "7"}},
        }  # fmt: skip
        memory.call("UpdateItem", request)

    with pytest.raises(ItemUnreadable):
        memory.get(UNIQUE.Person.Key(person_id="p0"))
    memory.put(UNIQUE.Person(person_id="p0", email="0@x"))
    with pytest.raises(ItemUnreadable):
        memory.delete(UNIQUE.Person.Key(person_id="p1"))

    assert memory.get(UNIQUE.Person.Key(person_id="p0")) is not None
    assert memory.get(UNIQUE.Person.Key(person_id="p1")) is None
    assert guards(memory) == {"UNIQUE#Person#email#0@x"}


def test_a_plan_reports_an_unknown_item_count() -> None:
    """DescribeTable is updated every six hours; a sample is exact only if it covered the whole table."""
    with connect("memory:") as db:
        db.create_tables(OPEN.Town)
        db.put_many(OPEN.Person(person_id=f"p{n}") for n in range(2500))
        whole = db.plan_migration(OPEN.Town)

        class Late(Between):
            """A backend whose DescribeTable has counted no items yet."""

            def call(self, operation: str, request: Any) -> Any:
                answer = super().call(operation, request)
                if operation == "DescribeTable":
                    answer["Table"]["ItemCount"] = 0
                return answer

        plan = Connection(Late(db.backend)).plan_migration(OPEN.Town)

    assert (whole.exact, whole.items) == (False, 2500)
    assert (plan.exact, plan.total_known) == (False, False)
    assert plan.items == plan.sampled < 2500
    assert "at least" in str(plan)
    assert "updated every few hours" in str(plan)

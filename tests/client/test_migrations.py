"""Changing a live design: schema versions, plans, backfills, and the number of shards."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from tavola import (
    Attr,
    CheckpointRefused,
    ConditionFailed,
    Connection,
    Entity,
    Gsi,
    ModelError,
    PrimaryKey,
    Progress,
    Query,
    Shards,
    Sort,
    Table,
    attr,
    connect,
    design_document,
    sort,
    upgrade,
)
from tavola.client.effects import Sleep
from tavola.model import ItemUnreadable

State = Literal["new", "paid"]


def before() -> SimpleNamespace:
    """Return the shop's old design."""

    class Shop(Table, name="shop"):
        """The table, with one index."""

        by_state = Gsi(pk="g1pk", sk="g1sk")
        by_buyer = Gsi(pk="g2pk", sk="g2sk")

    class Order(Entity, table=Shop):
        """An order of the first schema."""

        order_id: Attr[str]
        buyer: Attr[str]
        state: Attr[State] = attr(default="new")
        total: Attr[int] = attr(default=0)

        class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
            order_id: str

        class ByState(Query["Order"], on=Shop.by_state, pk="STATE#{state}", sk="{order_id}"):
            state: State
            order_id: Sort[str] = sort()

    class Line(Entity, table=Shop):
        """A line of an order, which does not change."""

        order_id: Attr[str]
        number: Attr[int]

        class Key(PrimaryKey["Line"], pk="ORDER#{order_id}", sk="LINE#{number:04}"):
            order_id: str
            number: int

    return SimpleNamespace(Shop=Shop, Order=Order, Line=Line)


def after() -> SimpleNamespace:
    """Return the shop's new design:

    cents instead of euros, a renamed field, another key template and one more index.
    """

    class Shop(Table, name="shop"):
        """The table, with a second index in use."""

        by_state = Gsi(pk="g1pk", sk="g1sk")
        by_buyer = Gsi(pk="g2pk", sk="g2sk")

    class Order(Entity, table=Shop, version=2):
        """An order of the second schema."""

        order_id: Attr[str]
        customer: Attr[str]
        state: Attr[State] = attr(default="new")
        cents: Attr[int] = attr(default=0)
        channel: Attr[str] = attr(default="web")

        class Key(PrimaryKey["Order"], pk="ORDER#{order_id}", sk="ORDER"):
            order_id: str

        class ByState(Query["Order"], on=Shop.by_state, pk="STATE#{state}", sk="{cents:08}#{order_id}"):
            state: State
            cents: Sort[int] = sort()
            order_id: Sort[str] = sort()

        class ByCustomer(Query["Order"], on=Shop.by_buyer, pk="CUSTOMER#{customer}", sk="{state}"):
            customer: str
            state: Sort[State] = sort()

        @staticmethod
        @upgrade(1)
        def to_cents(item: dict[str, Any]) -> dict[str, Any]:
            """Make an order of the first schema one of the second."""
            item["cents"] = item.pop("total") * 100
            item["customer"] = item.pop("buyer")
            return item

    class Line(Entity, table=Shop):
        """A line of an order."""

        order_id: Attr[str]
        number: Attr[int]

        class Key(PrimaryKey["Line"], pk="ORDER#{order_id}", sk="LINE#{number:04}"):
            order_id: str
            number: int

    return SimpleNamespace(Shop=Shop, Order=Order, Line=Line)


OLD, NEW = before(), after()


def filled(db: Connection, count: int = 6) -> Any:
    """Store orders of the first schema, each with a line."""
    db.create_tables(OLD.Shop)
    for n in range(count):
        db.put(OLD.Order(order_id=f"o{n}", buyer=f"b{n % 2}", total=n))
        db.put(OLD.Line(order_id=f"o{n}", number=1))
    return db


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Any:
    """A connection to the shop as the old program left it."""
    return filled(opened())


@pytest.fixture
def memory() -> Any:
    """The same in memory, where a test looks inside."""
    with connect("memory:") as made:
        yield filled(made, 40)


def items(db: Any) -> dict[str, dict[str, Any]]:
    """Return every stored item of the shop, by key."""
    name = next(name for name in db.call("ListTables")["TableNames"] if name.endswith("shop"))
    found = db.call("Scan", {"TableName": name})["Items"]
    return {f"{each['pk']['S']}/{each['sk']['S']}": each for each in found}


class Watched:
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


def key(number: int) -> Any:
    """Return the key of an order, as the new program has it."""
    return NEW.Order.Key(order_id=f"o{number}")


class TestVersions:
    """Items of an older schema, read and written by a newer program."""

    def test_an_old_item_reads_as_a_new_one(self, db: Any) -> None:
        """Upgrades run on read; the stored item does not change."""
        found = db.get(key(3))

        assert (found.customer, found.cents, found.channel) == ("b1", 300, "web")
        assert "_version" not in items(db)["ORDER#o3/ORDER"]

    def test_a_put_stores_the_version(self, db: Any) -> None:
        """A put stores the current schema with its version."""
        db.put(NEW.Order(order_id="o9", customer="b1"))

        assert items(db)["ORDER#o9/ORDER"]["_version"] == {"N": "2"}

    @pytest.mark.parametrize("change", ["state", "cents", "channel"])
    def test_an_update_never_leaves_half_an_item(self, db: Any, change: str) -> None:
        """An update of an old item rewrites all of it:

        upgraded, changed, with correct index keys and no old attributes.
        """
        changes = {
            "state": NEW.Order.state.set("paid"),
            "cents": NEW.Order.cents.add(1),
            "channel": NEW.Order.channel.set("x"),
        }

        changed = db.update(key(3), changes[change])

        item = items(db)["ORDER#o3/ORDER"]
        assert item["_version"] == {"N": "2"}
        assert not item.keys() & {"buyer", "total"}
        assert changed == db.get(key(3))
        assert changed.cents == (301 if change == "cents" else 300)
        assert [o.order_id for o in db.query(NEW.Order.ByCustomer(customer="b1"))] == ["o3"]
        assert "o3" in [o.order_id for o in db.query(NEW.Order.ByState(state=changed.state).cents.gte(300))]

    def test_a_condition_is_evaluated_on_the_upgraded_item(self, db: Any) -> None:
        """The caller's condition names the new fields, which an old item does not store under these names."""
        with pytest.raises(ConditionFailed) as refused:
            db.update(key(3), NEW.Order.state.set("paid"), when=NEW.Order.cents == 1)
        assert refused.value.found.cents == 300

        assert db.update(key(3), NEW.Order.state.set("paid"), when=NEW.Order.cents == 300).state == "paid"
        assert db.delete(key(5), when=NEW.Order.customer == "b1").order_id == "o5"

    def test_a_transaction_upgrades_too(self, db: Any) -> None:
        """Updates of old and new items in one transaction are all whole."""
        db.put(NEW.Order(order_id="o9", customer="b1"))
        with db.transaction() as both:
            both.update(key(2), NEW.Order.state.set("paid"))
            both.update(key(9), NEW.Order.state.set("paid"))

        assert items(db)["ORDER#o2/ORDER"]["_version"] == {"N": "2"}
        assert [o.state for o in db.get_many([key(2), key(9)])] == ["paid", "paid"]

    def test_an_update_that_creates_makes_the_present_schema(self, db: Any) -> None:
        """An item that an update makes is of the present schema, with all keys that follow from its defaults."""
        db.update(key(77), NEW.Order.customer.set("b7"), create=True)

        assert db.get(key(77)).cents == 0
        assert [o.order_id for o in db.query(NEW.Order.ByState(state="new").cents.eq(0))] == ["o77"]

    def test_a_newer_item_is_not_touched_by_an_older_program(self, db: Any) -> None:
        """An item of an unknown newer schema is neither read nor changed."""
        db.put(NEW.Order(order_id="o9", customer="b1"))
        stored = items(db)["ORDER#o9/ORDER"]
        name = next(name for name in db.call("ListTables")["TableNames"] if name.endswith("shop"))
        db.call("PutItem", {"TableName": name, "Item": {**stored, "_version": {"N": "3"}}})

        with pytest.raises(ItemUnreadable, match="version 3, and this program supports up to 2"):
            db.get(key(9))
        with pytest.raises(ItemUnreadable, match="version 3"):
            db.update(key(9), NEW.Order.cents.add(1))
        db.put(NEW.Order(order_id="o8", customer="b1"))
        with pytest.raises(ItemUnreadable, match="version 2, and this program supports up to 1"):
            db.get(OLD.Order.Key(order_id="o8"))

    def test_an_overtaken_upgrade_starts_again(self, memory: Any) -> None:
        """Two concurrent changes of an old item lose nothing."""
        seen: list[str] = []

        def interfere(operation: str, request: Any) -> None:
            if operation == "PutItem" and not seen:
                seen.append(operation)
                memory.update(OLD.Order.Key(order_id="o3"), OLD.Order.total.set(7))

        found = Connection(Watched(memory.backend, interfere)).update(key(3), NEW.Order.state.set("paid"))

        assert (found.cents, found.state, seen) == (700, "paid", ["PutItem"])

    def test_a_missing_step_is_refused_at_declaration(self) -> None:
        """Every version below the present one needs its upgrade; one beyond it is a mistake."""
        with pytest.raises(ModelError, match=r"@upgrade\(1\)"):

            class Lost(Entity, table=NEW.Shop, version=2):
                lost_id: Attr[str]

                class Key(PrimaryKey["Lost"], pk="LOST#{lost_id}", sk="LOST"):
                    lost_id: str

    def test_the_version_attribute_is_reserved(self) -> None:
        """A field with the same attribute name as the version cannot be declared."""
        with pytest.raises(ModelError, match="the schema's version"):

            class Taken(Entity, table=NEW.Shop, version=2):
                taken_id: Attr[str]
                edition: Attr[int] = attr(default=0, name="_version")

                class Key(PrimaryKey["Taken"], pk="TAKEN#{taken_id}", sk="TAKEN"):
                    taken_id: str

                @staticmethod
                @upgrade(1)
                def same(item: dict[str, Any]) -> dict[str, Any]:
                    """Return the item unchanged."""
                    return item

    def test_a_version_of_others_says_nothing(self, memory: Any) -> None:
        """In a table that others fill, an attribute of the same name is theirs; an entity without versions reads on."""
        strange = {"pk": {"S": "LINE"}, "sk": {"S": "x"}, "_version": {"N": "7"}}
        line = {
            **strange,
            "pk": {"S": "ORDER#o1"},
            "sk": {"S": "LINE#0009"},
            "order_id": {"S": "o1"},
            "number": {"N": "9"},
        }
        memory.call("PutItem", {"TableName": "shop", "Item": line})

        assert memory.get(OLD.Line.Key(order_id="o1", number=9)) == OLD.Line(order_id="o1", number=9)

    def test_a_failing_upgrade_names_the_item(self, db: Any) -> None:
        """The error names the item, and the caller does not see a KeyError."""
        name = next(name for name in db.call("ListTables")["TableNames"] if name.endswith("shop"))
        stored = items(db)["ORDER#o3/ORDER"]
        del stored["total"]
        db.call("PutItem", {"TableName": name, "Item": stored})

        with pytest.raises(ItemUnreadable, match=r"@upgrade\(1\) failed"):
            db.get(key(3))


def tagged(*tags: str) -> Any:
    """Return a table with an entity of each tag."""

    class Store(Table, name="store"):
        """A table."""

    for tag in tags:

        class Thing(Entity, table=Store, tag=tag):
            """Something."""

            thing_id: Attr[str]

            class Key(PrimaryKey["Thing"], pk=f"{tag}#{{thing_id}}", sk="THING"):
                thing_id: str

    return Store


class TestPlans:
    """What a migration rewrites, and its cost."""

    def test_differences_come_in_one_order(self) -> None:
        """The differences of a design have the same order in every process."""
        tags = [f"Tag{n}" for n in range(12)]
        with connect("memory:") as db:
            now = tagged("Other")
            db.create_tables(now)

            differences = db.plan_migration(now, was=tagged(*reversed(tags))).differences

        assert [each.entity for each in differences] == sorted(tags)

    def test_a_plan_counts_items_and_units(self, db: Any) -> None:
        """Without an older design, the stored items show what differs."""
        plan = db.plan_migration(NEW.Shop)

        (line, order) = plan.entities
        assert (line.items, line.rewritten, order.items, order.rewritten) == (6, 0, 6, 6)
        assert plan.exact
        assert (
            order.write_units == plan.write_units == 6 * (1 + 2 + 1)
        )  # the table, a move, an entry that is new
        assert plan.usd > 0
        assert "6 of 12 items" in str(plan)
        assert "$0.01 on demand (" in str(plan)

    def test_the_units_are_those_that_a_backfill_takes(self, memory: Any) -> None:
        """The estimate equals the capacity that DynamoDB reports."""
        plan = memory.plan_migration(NEW.Shop)

        report = memory.backfill(NEW.Shop)

        assert report.write_units == plan.write_units

    @pytest.mark.parametrize("older", ["class", "document"])
    def test_a_plan_names_the_differences_to_an_older_design(self, memory: Any, older: str) -> None:
        """Comparing two designs yields each change as text."""
        was = OLD.Shop if older == "class" else json.loads(json.dumps(design_document(OLD.Shop)))

        changes = {each.what for each in memory.plan_migration(NEW.Shop, was=was).differences}

        assert "its schema version is 2, and was 1" in changes
        assert "its items are added to by_buyer" in changes
        assert any("its key in by_state" in each for each in changes)

    def test_a_document_without_the_table_is_refused(self, memory: Any) -> None:
        """An older design without the table is an error that lists the tables it has."""
        other = design_document(sharded(Shards(2)).Tally)

        with pytest.raises(ModelError, match="it has tally"):
            memory.plan_migration(NEW.Shop, was=other)

    def test_a_large_table_is_sampled(self) -> None:
        """Of a table larger than the sample, the numbers are those of the sample, multiplied; exact=True counts."""
        with connect("memory:") as db:
            db.create_tables(OLD.Shop)
            db.put_many(OLD.Order(order_id=f"o{n}", buyer="b", total=n) for n in range(4000))

            plan, exact = db.plan_migration(NEW.Shop), db.plan_migration(NEW.Shop, exact=True)

        assert (plan.exact, exact.exact, exact.rewritten) == (False, True, 4000)
        assert plan.sampled == 2000
        assert plan.rewritten == pytest.approx(4000, rel=0.01)
        assert "extrapolated" in str(plan)

    def test_the_region_decides_the_price(self, memory: Any) -> None:
        """The dollars are of the region's price book, which the plan names."""
        plan = memory.plan_migration(NEW.Shop, region="us-west-2")

        assert "us-west-2" in plan.book
        assert isinstance(plan.usd, Decimal)

    def test_a_table_that_matches_its_design_has_an_empty_plan(self, memory: Any) -> None:
        """The plan has no differences."""
        plan = memory.plan_migration(OLD.Shop)

        assert plan.rewritten == plan.write_units == 0
        assert "Nothing to rewrite" in str(plan)


class TestBackfills:
    """Rewriting a live table."""

    def test_a_backfill_rewrites_every_item_as_a_put_would(self, db: Any) -> None:
        """After a backfill each item equals what a put of its entity stores, and the new indexes contain it."""
        report = db.backfill(NEW.Shop)

        assert (report.items, report.written, dict(report.by_entity)) == (12, 6, {"Order": 6})
        assert {o.order_id for o in db.query(NEW.Order.ByCustomer(customer="b1"))} == {"o1", "o3", "o5"}
        stored = items(db)
        for entity in db.scan_table(NEW.Shop):
            db.put(entity)
        assert stored == items(db)
        assert db.verify_keys(NEW.Shop).sound

    def test_a_second_backfill_writes_nothing(self, db: Any) -> None:
        """A second backfill reads every item and writes none."""
        db.backfill(NEW.Shop)
        stored = items(db)

        assert db.backfill(NEW.Shop, segments=3).written == 0
        assert stored == items(db)

    def test_undeclared_attributes_are_preserved(self, memory: Any) -> None:
        """Attributes of other programs survive; attributes that the design dropped are removed if named."""
        memory.call(
            "UpdateItem",
            {
                "TableName": "shop", "Key": {"pk": {"S": "ORDER#o1"}, "sk": {"S": "ORDER"}},
                "UpdateExpression": "SET note_of_others = :v, g9pk = :v", "ExpressionAttributeValues": {":v": {"S": "x"}},
            },
        )  # fmt: skip

        memory.backfill(NEW.Shop, forget=("g9pk",))

        item = items(memory)["ORDER#o1/ORDER"]
        assert item["note_of_others"] == {"S": "x"}
        assert "g9pk" not in item
        with pytest.raises(ModelError, match="cannot be removed with forget="):
            memory.backfill(NEW.Shop, forget=("cents",))

    def test_some_entities_alone(self, memory: Any) -> None:
        """Only the entities that are named are rewritten; one of another table is refused."""
        assert memory.backfill(NEW.Shop, entities=[NEW.Line]).written == 0
        assert memory.backfill(NEW.Shop, entities=[NEW.Order]).written == 40
        with pytest.raises(ModelError, match="is not stored in this table"):
            memory.backfill(NEW.Shop, entities=[OLD.Order])

    def test_items_that_cannot_be_rewritten_are_skipped_and_reported(self, memory: Any) -> None:
        """An unreadable item, and one whose key would change, are reported with the reason."""
        for number, change in ((1, "REMOVE #t"), (2, "SET order_id = :v")):
            request: dict[str, Any] = {
                "TableName": "shop", "Key": {"pk": {"S": f"ORDER#o{number}"}, "sk": {"S": "ORDER"}},
                "UpdateExpression": change,
            }  # fmt: skip
            if "#t" in change:
                request["ExpressionAttributeNames"] = {"#t": "total"}
            else:
                request["ExpressionAttributeValues"] = {":v": {"S": "o99"}}
            memory.call("UpdateItem", request)

        report = memory.backfill(NEW.Shop)

        assert (report.written, report.left_count) == (38, 2)
        assert {each.key["pk"]["S"] for each in report.left} == {"ORDER#o1", "ORDER#o2"}
        plan = memory.plan_migration(NEW.Shop)
        assert (plan.misplaced, plan.unreadable) == (1, 1)

    def test_an_item_that_grows_too_large_is_skipped_and_reported(self) -> None:
        """An item that DynamoDB refuses does not stop the backfill of the others."""
        was, now = padded(1), padded(3)
        with connect("memory:") as db:
            db.create_tables(was.Attic)
            db.put_many([was.Box(box_id="large", text="x" * 200_000), was.Box(box_id="small", text="x")])

            report = db.backfill(now.Attic)

        assert (report.written, report.left_count) == (1, 1)
        assert "size" in report.left[0].reason

    def test_a_unique_value_changes_with_its_guard(self) -> None:
        """An upgrade that changes a unique value claims the new one and releases the old one in the same write."""
        was, now = members(lower=False), members(lower=True)
        with connect("memory:") as db:
            db.create_tables(was.Club)
            db.create(was.Member(member_id="m1", email="Ann@x"))
            db.create(was.Member(member_id="m2", email="bob@x"))
            db.create(was.Member(member_id="m3", email="Bob@x"))

            report = db.backfill(now.Club)

            assert (report.written, report.left_count) == (2, 1)
            assert "has the same value" in report.left[0].reason
            assert db.backfill(now.Club).written == 0
            assert db.create(was.Member(member_id="m4", email="Ann@x")).email == "Ann@x"

    def test_a_write_meanwhile_wins(self, memory: Any) -> None:
        """A change that the application makes between the scan and the rewrite is preserved."""
        seen: list[str] = []

        def interfere(operation: str, request: Any) -> None:
            if operation == "UpdateItem" and not seen:
                seen.append(operation)
                pk = request["Key"]["pk"]["S"]
                memory.update(OLD.Order.Key(order_id=pk[6:]), OLD.Order.total.set(777))

        Connection(Watched(memory.backend, interfere)).backfill(NEW.Shop)

        assert [o.cents for o in memory.scan(NEW.Order) if o.cents == 77700] == [77700]

    def test_killed_and_resumed_ends_the_same(self, tmp_path: Path) -> None:
        """Wherever a backfill is killed, going on from its checkpoint comes to what one run comes to."""
        with connect("memory:") as whole:
            filled(whole, 30)
            whole.backfill(NEW.Shop)
            expected = items(whole)
        for calls in range(2, 40, 5):
            file = tmp_path / f"checkpoint-{calls}.json"
            with connect("memory:") as db:
                filled(db, 30)
                steps = paged(db, checkpoint=file)
                stopped = drive(db, steps, calls)
                steps.close()

                report = db.run(paged(db, checkpoint=file))

                assert items(db) == expected
                assert stopped is None or report.items == 60
                assert not file.exists()

    def test_a_checkpoint_of_another_design_is_refused(self, memory: Any, tmp_path: Path) -> None:
        """Half a table by one rule and half by another is what a checkpoint prevents."""
        file = tmp_path / "checkpoint.json"
        drive(memory, paged(memory, checkpoint=file), 8)
        assert json.loads(file.read_text())["work"].startswith("backfill of shop (Line, Order)")

        with pytest.raises(CheckpointRefused, match="remove it to start from the beginning"):
            memory.backfill(OLD.Shop, checkpoint=file)

        file.write_text("{")
        with pytest.raises(CheckpointRefused, match="cannot be read"):
            memory.backfill(NEW.Shop, checkpoint=file)

    def test_writes_are_throttled(self, memory: Any) -> None:
        """Past the limit of units per second, the backfill waits."""
        waits: list[float] = []
        steps = paged(memory, units_per_second=20.0)

        drive(memory, steps, None, waits)

        units = 40 * (1 + 2 + 1)
        assert sum(waits) == pytest.approx((units - 20) / 20, rel=0.25)

    def test_progress_is_reported(self, db: Any) -> None:
        """The callback receives the number of items read and rewritten."""
        heard: list[Progress] = []

        db.backfill(NEW.Shop, progress=heard.append, segments=2)

        assert (heard[-1].done, heard[-1].total, heard[-1].written) == (12, 12, 6)


def padded(times: int) -> SimpleNamespace:
    """Return a design whose items are `times` as long."""

    class Attic(Table, name="attic"):
        """A table of large items."""

    class Box(Entity, table=Attic, version=2 if times > 1 else 1):
        """A box."""

        box_id: Attr[str]
        text: Attr[str]

        class Key(PrimaryKey["Box"], pk="BOX#{box_id}", sk="BOX"):
            box_id: str

        if times > 1:

            @staticmethod
            @upgrade(1)
            def longer(item: dict[str, Any]) -> dict[str, Any]:
                """Make the text longer."""
                return {**item, "text": item["text"] * times}

    return SimpleNamespace(Attic=Attic, Box=Box)


def members(*, lower: bool) -> SimpleNamespace:
    """Return a design with a unique value, which the second schema writes in small letters."""

    class Club(Table, name="club"):
        """A table with guards in it."""

    class Member(Entity, table=Club, version=2 if lower else 1):
        """A member with a unique address."""

        member_id: Attr[str]
        email: Attr[str] = attr(unique=True)

        class Key(PrimaryKey["Member"], pk="MEMBER#{member_id}", sk="MEMBER"):
            member_id: str

        if lower:

            @staticmethod
            @upgrade(1)
            def small(item: dict[str, Any]) -> dict[str, Any]:
                """Write the address in small letters."""
                return {**item, "email": item["email"].lower()}

    return SimpleNamespace(Club=Club, Member=Member)


def paged(db: Any, *, checkpoint: Path | None = None, units_per_second: float | None = None) -> Any:
    """Return the steps of a backfill in small pages."""
    from tavola.client.checkpoints import open_checkpoints
    from tavola.client.migrations import backfill
    from tavola.client.sweeps import SweepOptions

    pace = SweepOptions(2, units_per_second, open_checkpoints(checkpoint), page_size=7, consistent=True)
    return backfill(db.context, NEW.Shop, None, (), pace)


def drive(db: Any, steps: Any, calls: int | None, waits: list[float] | None = None) -> Any:
    """Perform `calls` effects of a program, or all of them; return the next effect, None at the end."""
    effect = next(steps, None)
    while effect is not None and (calls is None or calls > 0):
        if isinstance(effect, Sleep):
            if waits is not None:
                waits.append(effect.seconds)
            answer: Any = None
        elif hasattr(effect, "calls"):
            answer = [db.call(each.operation, each.request) for each in effect.calls]
        else:
            answer = db.call(effect.operation, effect.request)
        if calls is not None:
            calls -= 1
        try:
            effect = steps.send(answer)
        except StopIteration:
            return None
    return effect


def sharded(shards: Shards) -> SimpleNamespace:
    """Return a design with these shards."""

    class Tally(Table, name="tally"):
        """A table with one busy index."""

        by_state = Gsi(pk="g1pk", sk="g1sk")

    class Vote(Entity, table=Tally):
        """A vote."""

        vote_id: Attr[int]
        state: Attr[str]

        class Key(PrimaryKey["Vote"], pk="VOTE#{vote_id}", sk="VOTE"):
            vote_id: int

        class ByState(Query["Vote"], on=Tally.by_state, pk="STATE#{state}", sk="{vote_id:06}", shards=shards):
            state: str
            vote_id: Sort[int] = sort()

    return SimpleNamespace(Tally=Tally, Vote=Vote)


@pytest.mark.parametrize("by", ["hash", "random"])
@pytest.mark.parametrize(("old", "new"), [(8, 16), (16, 8), (1, 5)])
def test_the_number_of_shards_changes_while_live(by: Any, old: int, new: int) -> None:
    """Readers of the larger number find every item, in order, after each single write of the backfill."""
    most = max(old, new)
    was, during, final = (
        sharded(Shards(old, by)), sharded(Shards(new, by, reading=most)), sharded(Shards(new, by)),
    )  # fmt: skip
    with connect("memory:") as db:
        db.create_tables(was.Tally)
        db.put_many(was.Vote(vote_id=n, state="yes") for n in range(60))
        wrong: list[list[int]] = []
        writes: list[str] = []

        def read(operation: str, request: Any) -> None:
            if operation == "UpdateItem":
                writes.append(operation)
                found = [v.vote_id for v in db.query(during.Vote.ByState(state="yes"))]
                if found != list(range(60)):
                    wrong.append(found)

        assert db.verify_keys(during.Tally).sound, "an item in a shard that is read is where it belongs"
        plan = db.plan_migration(during.Tally, was=was.Tally)

        report = Connection(Watched(db.backend, after=read)).backfill(during.Tally)

        assert not wrong
        assert len(writes) == report.written == plan.rewritten
        assert report.written > 0 or (by == "random" and new > old)
        assert any(
            each.what.startswith("by_state: ") and "shards" in each.what and "→" in each.what
            for each in plan.differences
        )
        assert [v.vote_id for v in db.query(final.Vote.ByState(state="yes"))] == list(range(60))
        assert db.verify_keys(final.Tally).sound
        assert db.backfill(final.Tally).written == 0

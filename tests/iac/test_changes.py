"""Changes: what becomes of a table when its design changes, and what that takes; told of two designs as of a design and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tavola import Consumer, Engine, Scaling, connect
from tavola.iac import Deployment, DeployPermissions, compare_designs, compare_live
from tavola.iac.changes import DesignChange
from tavola.keys import Template
from tavola.model.document import Design, EntityDesign, TableDesign, design_of
from tests.iac import shop

KEY = "arn:aws:kms:us-east-1:000000000000:key/1234abcd"
WAS = design_of(shop)
(TABLE,) = WAS.tables


def with_table(change: Callable[[TableDesign], TableDesign]) -> Design:
    """Return the design with its table changed."""
    return replace(WAS, tables=(change(TABLE),))


def settings(**changed: Any) -> Design:
    """Return the design with other settings."""
    return with_table(lambda table: replace(table, settings=replace(table.settings, **changed)))


def index(name: str, **changed: Any) -> Design:
    """Return the design with an index that is otherwise."""
    return with_table(
        lambda table: replace(
            table, indexes=tuple(replace(i, **changed) if i.name == name else i for i in table.indexes)
        )
    )


def entity(name: str, **changed: Any) -> Design:
    """Return the design with an entity that is otherwise."""
    return with_table(
        lambda table: replace(
            table, entities=tuple(replace(e, **changed) if e.name == name else e for e in table.entities)
        )
    )


def without(name: str) -> Design:
    """Return the design without an index, and without the keys and queries on it."""

    def trimmed(told: EntityDesign) -> EntityDesign:
        keys = tuple(key for key in told.keys if key.index != name)
        return replace(told, keys=keys, patterns=tuple(p for p in told.patterns if p.index != name))

    return with_table(
        lambda table: replace(
            table,
            indexes=tuple(i for i in table.indexes if i.name != name),
            entities=tuple(map(trimmed, table.entities)),
            key_types={n: t for n, t in table.key_types.items() if n not in table.index(name).attributes},
        )
    )


def keyed_otherwise() -> Design:
    """Return the design with a table of another key, which no table can be changed to."""
    (table,) = _bare(settings(range=None)).tables
    return Design((replace(table, consumers=()),))


PROVISIONED = {"read_units": 5, "write_units": 5}
SCALING = Scaling(read_max=500, write_max=500, read_min=5, write_min=5)


def consumers(*names: str) -> Design:
    """Return the design with these consumers of its stream."""
    return with_table(lambda table: replace(table, consumers=tuple(map(Consumer, names))))


STRUCTURE: dict[str, tuple[Design, Design, str, str]] = {
    "ttl off": (WAS, settings(ttl=None), "ttl", "remove"),
    "ttl on": (settings(ttl=None), WAS, "ttl", "in place"),
    "ttl elsewhere": (WAS, settings(ttl="until"), "ttl", "in place"),
    "stream off": (WAS, settings(stream=None), "stream", "remove"),
    "stream on": (settings(stream=None), WAS, "stream", "in place"),
    "stream view": (WAS, settings(stream="OLD_IMAGE"), "stream", "replace"),
    "recovery off": (WAS, settings(recovery=False), "recovery", "remove"),
    "recovery on": (settings(recovery=False), WAS, "recovery", "in place"),
    "class": (WAS, settings(table_class="STANDARD_INFREQUENT_ACCESS"), "class", "in place"),
    "protection": (WAS, settings(deletion_protection=True), "protection", "in place"),
    "tags": (WAS, settings(tags={"a": "b"}), "tags", "in place"),
    "tags gone": (settings(tags={"a": "b"}), WAS, "tags", "remove"),
    "provisioned": (WAS, settings(**PROVISIONED), "billing", "remove"),
    "on demand": (settings(**PROVISIONED), WAS, "billing", "in place"),
    "more units": (settings(**PROVISIONED), settings(read_units=9, write_units=9), "billing", "in place"),
    "fewer units": (settings(**PROVISIONED), settings(read_units=1, write_units=1), "billing", "remove"),
    "new index": (without("listing"), WAS, "add index", "backfill"),
    "index gone": (WAS, without("listing"), "drop index", "remove"),
    "key": (WAS, settings(encryption=KEY), "encryption", "in place"),
    "another key": (settings(encryption=KEY), settings(encryption=f"{KEY}0"), "encryption", "in place"),
    "key by id": (WAS, settings(encryption=KEY.rpartition("/")[2]), "encryption", "in place"),
    "key by alias": (WAS, settings(encryption="alias/mine"), "encryption", "in place"),
    "key of AWS": (WAS, settings(encryption="alias/aws/dynamodb"), "encryption", "in place"),
    "no key": (settings(encryption="alias/mine"), WAS, "encryption", "remove"),
    "projection": (WAS, index("listing", projection=("email",)), "replace index", "rebuild"),
    "index key": (WAS, index("listing", range=()), "replace index", "rebuild"),
}


def only(found: Any) -> DesignChange:
    """Return the one change that there is."""
    (comparison,) = found
    (change,) = comparison.changes
    told: DesignChange = change
    return told


@pytest.mark.parametrize("name", STRUCTURE)
def test_what_a_change_of_structure_means(name: str) -> None:
    """Each setting and each index that is otherwise is one change, with its effect."""
    was, now, kind, effect = STRUCTURE[name]
    was, now = _bare(was), _bare(now)

    change = only(compare_designs(was, now))

    assert (change.kind, change.effect) == (kind, effect)


@pytest.mark.parametrize("name", STRUCTURE)
def test_a_former_design_and_its_table_are_compared_alike(name: str) -> None:
    """What is told of two designs is what is told where the former one was deployed; deployed too, nothing is left."""
    was, now, _, _ = STRUCTURE[name]
    was, now = _bare(was), _bare(now)
    with Engine.open() as engine, connect(engine) as db:
        made = Deployment(db, was)
        made.apply(*(change for each in made.compare() for change in each.changes))
        told = [(c.kind, c.effect, c.what, c.removes) for e in compare_designs(was, now) for c in e.changes]

        assert [
            (c.kind, c.effect, c.what, c.removes) for e in compare_live(db, now) for c in e.changes
        ] == told

        work = Deployment(db, now, allowed=DeployPermissions(drop=True, replace=True))
        after = work.apply(*(change for each in work.compare() for change in each.changes))
        left = [change for each in work.compare() for change in each.changes]
        assert left == [] or (name.startswith("ttl") and "an hour" in after[0].note)


def _bare(design: Design) -> Design:
    """Return a design without what would be told of items besides."""
    return replace(
        design, tables=tuple(replace(table, entities=(), collections=()) for table in design.tables)
    )


def test_nothing_changes_between_a_design_and_itself() -> None:
    """The same design twice is no change."""
    assert [each.changes for each in compare_designs(WAS, WAS)] == [()]


def test_everything_is_new_where_there_was_nothing() -> None:
    """A table that is not there is made, and that is all that is told of it."""
    change = only(compare_designs(Design(), WAS))

    assert (change.effect, change.what) == (
        "create",
        "create table shop with 2 indexes",
    )


def test_a_new_index_tells_its_backfill() -> None:
    """An entry is written for each item that is in the index: items, units and how long, by what is declared."""
    was = without("shelves")
    now = entity("Product", items=1_000_000)

    change = next(c for e in compare_designs(was, now) for c in e.changes if c.kind == "add index")

    assert change.work is not None
    assert (change.work.items, change.work.write_units, change.work.seconds) == (
        1_000_000,
        1_000_000.0,
        250.0,
    )
    assert str(change.work) == (
        "backfill of about 1,000,000 items: 1,000,000 write units, 4 min at 4,000 units per second"
    )


def test_of_a_table_that_is_there_its_own_count_is_an_upper_bound() -> None:
    """Where nobody declares how many items there are, DynamoDB's count serves, and says that it is the most there can be."""
    with Engine.open() as engine, connect(engine) as db:
        was = _bare(without("shelves"))
        Deployment(db, was).apply(only(compare_live(db, was)))
        for number in range(3):
            db.call("PutItem", {"TableName": "shop", "Item": {"pk": {"S": f"{number}"}, "sk": {"S": "x"}}})

        change = only(compare_live(db, _bare(WAS)))

    assert change.work is not None
    assert (change.work.items, change.work.write_units, change.work.most) == (3, 3.0, True)


def test_nobody_guesses_how_many_items_there_are() -> None:
    """Of two designs that declare no number of items, the work is said to be unknown, with what to declare."""
    change = only(compare_designs(_bare(without("shelves")), _bare(WAS)))

    assert (
        str(change.work)
        == "backfill of an unknown number of items; declare items= and item_bytes= for an estimate"
    )


def test_another_template_is_a_rewrite_of_its_items() -> None:
    """An index key that is written otherwise costs the item and two entries each; the index itself stays."""
    customer = TABLE.entity("Customer")
    listing = customer.keys[0]
    source = replace(listing.hash[0], template=Template.parse("PEOPLE#{tenant}"))
    now = entity("Customer", keys=(replace(listing, hash=(source,)),), items=1_000)

    change = only(compare_designs(WAS, now))

    assert (change.kind, change.effect, change.place) == ("entity", "rewrite", "Customer")
    assert "its key in listing is 'PEOPLE#{tenant}'" in change.what
    assert change.work is not None
    assert (change.work.items, change.work.write_units, change.work.read_units) == (1_000, 3_000.0, 54.0)


def test_another_key_of_an_entity_is_a_copy_of_its_items() -> None:
    """An item cannot move: it is written under the new key and deleted under the old one."""
    product = TABLE.entity("Product")
    assert product.key is not None
    source = replace(product.key.hash[0], template=Template.parse("GOODS#{product_id}"))
    now = entity("Product", key=replace(product.key, hash=(source,)), items=10)

    change = only(compare_designs(WAS, now))

    assert (change.effect, change.removes) == ("rewrite", True)
    assert change.work is not None
    assert (change.work.kind, change.work.write_units) == ("copy", 10 * (2 + 2))


def test_an_index_of_attributes_that_items_have_needs_no_rewrite() -> None:
    """Items enter an index of their own attributes by themselves: it is filled, and nothing is written anew."""
    change = only(compare_designs(without("shelves"), WAS))

    assert (change.kind, change.effect, change.warnings) == ("add index", "backfill", ())


def test_an_index_of_own_attributes_goes_without_a_rewrite() -> None:
    """Items leave it by themselves too: their attributes stay, as they are fields."""
    change = only(compare_designs(WAS, without("shelves")))

    assert (change.kind, change.effect) == ("drop index", "remove")


@pytest.mark.parametrize("changed", [{"hash": "id"}, {"range": None}])
def test_another_key_of_the_table_is_a_replacement(changed: dict[str, Any]) -> None:
    """A table's key is for ever: another table is made, and the items are copied."""
    now = _bare(settings(**changed))
    now = replace(
        now, tables=(replace(now.tables[0], key_types={**TABLE.key_types, "id": "S"}, indexes=TABLE.indexes),)
    )

    change = only(compare_designs(_bare(WAS), now))

    assert (change.kind, change.effect, change.removes) == ("replace table", "replace", True)
    assert "never deletes a table" in change.warnings[0]


BEYOND: dict[str, tuple[Design, Design, str, str]] = {
    "replica": (WAS, settings(replicas=("eu-west-1",)), "replica", "add a replica in eu-west-1"),
    "no replica": (settings(replicas=("eu-west-1",)), WAS, "replica", "remove the replica in eu-west-1"),
    "scaling": (settings(**PROVISIONED), settings(**PROVISIONED, scaling=SCALING), "scaling", "is added"),
    "no scaling": (
        settings(**PROVISIONED, scaling=SCALING),
        settings(**PROVISIONED),
        "scaling",
        "is removed",
    ),
    "other scaling": (
        settings(**PROVISIONED, scaling=SCALING),
        settings(**PROVISIONED, scaling=replace(SCALING, target=50)),
        "scaling",
        "changes (target 70 → 50)",
    ),
    "consumer": (consumers(), consumers("one"), "consumer", "add consumer one"),
    "no consumer": (consumers("one"), consumers(), "consumer", "remove consumer one"),
    "another alias": (
        settings(encryption=KEY),
        settings(encryption="alias/mine"),
        "encryption",
        "change the encryption key from arn:aws:kms:us-east-1:000000000000:key/1234abcd to alias/mine",
    ),
    "its own key": (WAS, settings(encryption="new"), "encryption", "a KMS key that is still to be created"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_infrastructure_does_is_told(name: str) -> None:
    """What deploy does not do is no silence: it is a change that is made elsewhere."""
    was, now, kind, what = BEYOND[name]

    changes = [
        change
        for each in compare_designs(_bare(was), _bare(now))
        for change in each.changes
        if change.kind != "stream"
    ]

    assert [(change.kind, change.effect, change.parts) for change in changes] == [(kind, "elsewhere", ())]
    assert what in changes[0].what
    assert kind != "replica" or "CloudFormation" in changes[0].warnings[0]


def test_a_table_of_another_name_is_a_replacement_and_one_that_is_gone_stays() -> None:
    """A table is known by its label: renamed, it is copied; no longer declared, it is left as it is."""
    now = settings(name="store")

    renamed = only(compare_designs(WAS, now))
    gone = only(compare_designs(WAS, Design()))

    assert (renamed.kind, renamed.what) == (
        "replace table",
        "renamed from shop to store: DynamoDB cannot rename a table",
    )
    assert (gone.kind, gone.effect, gone.calls) == ("abandoned table", "remove", ())


def test_changes_are_told_by_what_they_mean() -> None:
    """What is changed in place comes first, then what is filled, then what is written anew; what goes, goes last."""
    now = settings(ttl=None, tags={"a": "b"}, stream="OLD_IMAGE")
    was = without("listing")

    (found,) = compare_designs(was, now)

    assert [change.effect for change in found.changes] == [
        "in place", "backfill", "rewrite", "rewrite", "replace", "remove",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (settings(stream="OLD_IMAGE"), "another ARN"),
        (settings(ttl="until"), "one TTL change per hour"),
        (settings(table_class="STANDARD_INFREQUENT_ACCESS"), "two table class changes in 30 days"),
        (index("listing", projection="ALL"), "The index cannot be queried"),
    ],
)
def test_what_dynamodb_makes_hard_is_told(now: Design, word: str) -> None:
    """Limits on how often, and what is not there meanwhile, are told with the change."""
    assert any(word in warning for warning in only(compare_designs(_bare(WAS), _bare(now))).warnings)


def test_what_nobody_told_is_let_be() -> None:
    """A setting that a design does not know is neither compared nor changed, whichever side does not know it; it is told."""
    untold = settings(ttl=None, recovery=False, tags={}, unknown=("ttl", "recovery", "tags"))
    full = settings(tags={"a": "b"})
    with Engine.open() as engine, connect(engine) as db:
        Deployment(db, full).apply(only(compare_live(db, full)))
        live = compare_live(db, untold)

    for found in (live, compare_designs(full, untold), compare_designs(untold, full)):
        assert [each.changes for each in found] == [()]
        assert any("Not compared" in note and "time to live" in note for note in found[0].notes)


def test_what_differs_is_told_from_what_to_what() -> None:
    """An index that is rebuilt, a consumer and a scaling that change tell the former value and the new one."""
    rebuilt = only(compare_designs(WAS, index("listing", projection=("email",))))
    before, after = (
        replace(WAS, tables=(replace(TABLE, consumers=(Consumer("c", batch_size=size),)),))
        for size in (10, 20)
    )

    assert "the projection changes from KEYS_ONLY to INCLUDE (email)" in rebuilt.what
    assert "(batch_size 10 → 20)" in only(compare_designs(before, after)).what


def test_scaling_that_begins_tells_of_the_indexes_under_terraform() -> None:
    """A plan does not keep silent that indexes become resources of their own."""
    was, now = settings(**PROVISIONED), settings(**PROVISIONED, scaling=SCALING)

    begins, ends = only(compare_designs(was, now)), only(compare_designs(now, was))

    assert any("terraform import" in warning for warning in begins.warnings)
    assert any("terraform state rm" in warning for warning in ends.warnings)


def test_the_count_of_a_table_that_is_there_wins() -> None:
    """What a design says of its items does not stand in for what DynamoDB counts of the table that is looked at."""
    counted = tuple(replace(each, items=1_000) for each in TABLE.entities)
    with Engine.open() as engine, connect(engine) as db:
        was = _bare(without("shelves"))
        Deployment(db, was).apply(only(compare_live(db, was)))
        for number in range(12):
            db.call("PutItem", {"TableName": "shop", "Item": {"pk": {"S": f"{number}"}, "sk": {"S": "x"}}})
        (found,) = compare_live(db, with_table(lambda table: replace(table, entities=counted)))
    (change,) = (each for each in found.changes if each.kind == "add index")

    assert change.work is not None
    assert change.work.items == round(12 / len(counted))
    assert any("reports 12 items" in told for told in change.work.assumed)


def test_a_key_that_is_to_be_made_is_told_with_the_table() -> None:
    """A plan says what deploy would refuse."""
    change = only(compare_designs(Design(), settings(encryption="new")))

    assert any("needs a KMS key" in warning for warning in change.warnings)

"""What would change a bill: each change found where it saves, and not where it does not."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tavola.cli.designs import load_design
from tavola.design.cost import Assumptions, CostSaving, estimate_month, savings
from tavola.design.cost.alterations import (
    needed_attributes,
    with_narrow_projection,
    with_shards,
    with_short_names,
    with_split_entity,
    with_table,
)
from tavola.design.cost.cost_savings import PLANNED_SHARE
from tavola.design.lint import lint
from tavola.model.document import Design, Given, Need, Route
from tavola.model.sizes import entry_bytes, item_bytes
from tavola.patterns.sharding import HEADROOM
from tavola.prices import load_book
from tests.design.builders import (
    access,
    choice,
    collection,
    design,
    entity,
    gsi,
    key,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
    view,
)

BOOK = load_book("us-east-1")


def found(told: Design, change: str) -> list[CostSaving]:
    """Return the savings of one kind."""
    return [each for each in savings(told, Assumptions(), BOOK) if each.change == change]


def shop(
    *, projection: Any = "ALL", result: str = "", asked: bool = True, shards: int | None = None, **more: Any
) -> Design:
    """Tickets of 3,000 bytes in one index, read as summaries."""
    index = gsi("by_status", "g1pk", "g1sk", projection=projection)
    pattern = query(
        "ByStatus", index, "status", "at", per_second=50, items=10, item_bytes=more.pop("on_index", None), result=result,
        reads=more.pop("reads", ()),
    )  # fmt: skip
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "DONE"), moment("at"), text("title", typical_bytes=40),
                text("body"), number("views"),
                pk="TICKET#{ticket_id}",
                keys=[key(index, "STATUS#{status}", "{at}#{ticket_id}", shards=shards)],
                patterns=[pattern] if asked else [],
                writes=[put(per_second=20, item_bytes=3_000), *more.pop("writes", ())],
                primary={"per_second": 10, "item_bytes": 3_000, **more.pop("primary", {})},
            ),
            indexes=[index],
        ),
        views=[view("Summary", text("ticket_id"), text("title"))],
    )  # fmt: skip


def test_a_projection_that_carries_what_nobody_reads_is_narrowed() -> None:
    """An index of whole items that is read as summaries saves its writes and its reads."""
    told = found(shop(result="Summary"), "narrow projection")

    assert len(told) == 1
    assert told[0].place == "shop/by_status"
    assert "title" in told[0].sentence
    assert "body" not in told[0].sentence
    assert told[0].amount > 50


def test_a_projection_that_is_read_stays() -> None:
    """Where whole items come back, and where only what is read is projected, there is nothing to narrow."""
    assert not found(shop(), "narrow projection")
    assert not found(
        shop(result="Summary", projection=("ticket_id", "title", "_entity")), "narrow projection"
    )


def test_fields_that_are_read_say_what_to_project() -> None:
    """`reads` of an access pattern is what its index needs; with none beside the keys, KEYS_ONLY is enough."""
    assert "title" in found(shop(reads=("title",)), "narrow projection")[0].sentence
    told = shop(reads=("title",)).tables[0]
    needed = needed_attributes(design(told), told, told.indexes[0])
    assert needed == frozenset({"title"})
    thin = with_narrow_projection(told, told.indexes[0], frozenset())
    assert thin is not None
    assert thin.indexes[0].projection == ("_entity",)


def test_a_declared_entry_shrinks_with_its_projection() -> None:
    """What a pattern declares of its items' size is cut in proportion when less is projected."""
    told = shop(result="Summary", on_index=3_000).tables[0]

    thin = with_narrow_projection(told, told.indexes[0], frozenset({"ticket_id", "title"}))

    assert thin is not None
    access = thin.entities[0].patterns[0].access
    assert access is not None
    assert access.item_bytes is not None
    assert access.item_bytes < 500
    assert entry_bytes(thin, thin.entities[0], thin.indexes[0]) == access.item_bytes


def test_an_index_that_nobody_reads_is_dropped() -> None:
    """An index without a pattern saves all that its writes cost; one that a need's route asks is used."""
    silent = shop(asked=False)
    unused = design(*silent.tables, needs=[Need("one", "Ticket", "ticket_id", single=True)])

    told = found(unused, "unused index")

    month = estimate_month(unused, Assumptions(), BOOK)
    assert told[0].amount == sum(line.amount for line in month.lines if line.index == "by_status")
    route = Need(
        "old ones", "Ticket", (Given("status"),), route=Route("query", "by_status", (Given("g1pk"),))
    )
    asked = design(*unused.tables, needs=[route])
    assert not found(asked, "unused index")
    assert not found(shop(), "unused index")
    assert not found(silent, "unused index")  # nobody said how the table is asked


def test_eventual_reads_save_half() -> None:
    """A consistent get costs twice what an eventual one does; an eventual one has nothing to save."""
    told = found(shop(primary={"consistent": True}), "eventually consistent reads")

    assert [each.place for each in told] == ["Ticket.Key"]
    month = estimate_month(shop(primary={"consistent": True}), Assumptions(), BOOK)
    bill = next(each for each in month.bills if each.place == "Ticket.Key")
    assert told[0].amount == bill.amount / 2
    assert not found(shop(), "eventually consistent reads")


def test_fields_that_change_often_stand_apart() -> None:
    """An update of a number in an item of 3,000 bytes pays for three units, apart for one."""
    counted = shop(
        writes=[update(adds=("views",), title="count a view", per_second=100, item_bytes=3_000)],
        result="Summary",
    )

    told = found(counted, "vertical partitioning")

    assert "views" in told[0].sentence
    assert told[0].amount > 100
    small = shop(writes=[update("status", title="close", per_second=100, item_bytes=3_000)])
    assert not found(small, "vertical partitioning")  # it is a part of an index key


def test_fields_that_are_seldom_read_stand_apart() -> None:
    """A get that reads little of a large item pays for less when the rest is apart."""
    told = shop(
        primary={"reads": ("title", "views"), "per_second": 5_000, "item_bytes": 30_000}, result="Summary"
    )

    assert "body" in found(told, "vertical partitioning")[0].sentence


def test_a_split_keeps_every_byte() -> None:
    """The two items together are as large as the one was, and one more key."""
    told = shop().tables[0]

    split = with_split_entity(design(told), told, told.entities[0], frozenset({"views"}))

    assert split is None  # ByStatus gives whole items, so an index would lack the field
    told = shop(result="Summary").tables[0]
    whole = shop(result="Summary")
    split = with_split_entity(whole, told, told.entities[0], frozenset({"views"}))
    assert split is not None
    rest, beside = split.entities
    assert 3_000 < item_bytes(split, rest) + item_bytes(split, beside) < 3_100


def test_shorter_names_save_where_they_cross_a_unit() -> None:
    """Items just above a unit fall below it with shorter names; one far from it saves nothing."""

    def told(size: int) -> Design:
        return design(
            table(
                entity(
                    "Ticket", text("ticket_identifier"), text("a_rather_long_name_of_an_attribute"),
                    pk="{ticket_identifier}", writes=[put(per_second=100, item_bytes=size)],
                ),
                indexes=[],
            )
        )  # fmt: skip

    assert (
        found(told(1_030), "short attribute names")[0].amount
        == Decimal("0.625") / 1_000_000 * 730 * 3_600 * 100
    )
    assert not found(told(900), "short attribute names")

    names = {field.attribute for field in with_short_names(told(900).tables[0]).entities[0].fields}
    assert names == {"aa", "ab"}


@pytest.mark.parametrize(
    ("reads", "writes", "enough"),
    [
        (50, 20, 1),
        (50, 400, 2),
        (50, 1_300, 4),
        (5_000, 10, 1),
        (8_000, 10, 4),
    ],
)
def test_shards_beyond_the_rate_are_told(reads: float, writes: float, enough: int) -> None:
    """As few shards as take the writes of one key, with half to spare, are told; no fewer. Every query asks every shard,
    so that fewer of them are asked no more often each; where one is asked beyond what it gives, nothing is told."""
    index = gsi("by_status", "g1pk", "g1sk")
    told = design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW"), pk="{ticket_id}",
                keys=[key(index, "STATUS#{status}", "{ticket_id}", shards=4)],
                patterns=[query("ByStatus", index, "status", "ticket_id", per_second=reads, items=1, item_bytes=900)],
                writes=[put(per_second=writes, item_bytes=1_500)],
            ),
            indexes=[index],
        )
    )  # fmt: skip

    told_ = found(told, "fewer shards")

    assert [each.sentence.split()[0] for each in told_] == ([] if enough == 4 else [str(enough)])
    assert PLANNED_SHARE == HEADROOM
    if told_:
        [sharded] = told.tables[0].entities
        fewer = with_table(told, with_shards(told.tables[0], sharded, sharded.keys[0], enough))
        assert "too-few-shards" not in {finding.rule for finding in lint(fewer).findings}


def test_a_split_saves_nothing_where_both_are_read() -> None:
    """A collection, and a need that is asked today, read both parts: what they cost does not change with a split."""

    def told(often: float, **more: Any) -> Design:
        return design(
            table(
                entity(
                    "Ticket", text("ticket_id"), text("title", typical_bytes=40), text("body"), pk="TICKET#{ticket_id}",
                    writes=[put(per_second=1, item_bytes=30_000)],
                    primary={"per_second": 100, "reads": ("title",), "item_bytes": 30_000},
                ),
                collections=[collection("File", "TICKET#{ticket_id}", "Ticket", items=1, per_second=often)],
                recovery=False,
            ),
            **more,
        )  # fmt: skip

    alone, often = (found(told(rate), "vertical partitioning")[0].amount for rate in (0, 100_000))
    assert 0 < often <= alone
    for route in (Route("get"), Route("query"), Route("scan")):
        need = Need(
            "all of it", "Ticket", (Given("ticket_id"),), access=access("all", per_second=1_000), route=route
        )
        assert not found(told(0, needs=[need]), "vertical partitioning")
    little = access("titles", per_second=1_000, reads=("title",))
    need = Need("titles", "Ticket", (Given("ticket_id"),), access=little, route=Route("get"))
    assert (
        found(told(0, needs=[need]), "vertical partitioning")[0].amount > alone
    )  # which wants the small part alone


def test_an_index_collection_that_gives_a_field_keeps_it() -> None:
    """What a collection of an index gives cannot stand in an item that is not in the index."""
    whole = shop(result="Summary")
    asked = collection("File", "STATUS#{status}", "Ticket", index="by_status", items=1)
    told = replace(whole.tables[0], collections=(asked,))

    assert (
        with_split_entity(whole, whole.tables[0], whole.tables[0].entities[0], frozenset({"views"}))
        is not None
    )
    assert with_split_entity(with_table(whole, told), told, told.entities[0], frozenset({"views"})) is None


def test_what_an_item_must_have_stays_in_it() -> None:
    """When it expires, its lock, whose it is and what is unique stay in the item; and a lock counts its part's changes."""
    told = design(
        table(
            entity(
                "Ticket", text("ticket_id"), text("title", typical_bytes=40), text("body"), number("expires"),
                number("rev", lock=True), text("owner", tenant=True), text("email", unique=True), pk="TICKET#{ticket_id}",
                writes=[put(per_second=1, item_bytes=30_000), update("body", title="rewrite", item_bytes=30_000)],
                primary={"per_second": 1_000, "reads": ("title",), "item_bytes": 30_000},
            ),
            ttl="expires",
        )
    )  # fmt: skip

    [saving] = found(told, "vertical partitioning")

    assert saving.sentence.startswith("move body to a separate item")
    shop_ = told.tables[0]
    for name in ("expires", "rev", "owner", "email"):
        assert with_split_entity(told, shop_, shop_.entities[0], frozenset({"body", name})) is None
    split = with_split_entity(told, shop_, shop_.entities[0], frozenset({"body"}))
    assert split is not None
    assert [write.title for write in split.entities[0].writes] == ["put it", "rewrite"]


def test_collections_may_be_read_eventually() -> None:
    """A consistent collection costs twice what an eventual one does."""
    told = design(
        table(
            entity("Ticket", text("ticket_id"), pk="T#{ticket_id}", writes=[put(item_bytes=3_000)]),
            collections=[
                collection("File", "T#{ticket_id}", "Ticket", items=100, per_second=1_000, consistent=True)
            ],
        )
    )

    [saving] = found(told, "eventually consistent reads")

    assert saving.place == "File"
    assert saving.amount == estimate_month(told, Assumptions(), BOOK).total / 2


def test_billing_is_among_what_would_change_it() -> None:
    """Even traffic is cheaper with provisioned units, and that is told with its amount."""
    told = {each.place: each.amount for each in found(shop(), "capacity mode")}

    on_demand = estimate_month(shop(), Assumptions(mode="on-demand"), BOOK).total
    assert (
        told["provisioned"] == on_demand - estimate_month(shop(), Assumptions(mode="provisioned"), BOOK).total
    )
    assert "On-demand" not in told


def test_savings_come_largest_first() -> None:
    """The list begins with what saves most."""
    told = [each.amount for each in savings(shop(result="Summary", shards=4), Assumptions(), BOOK)]

    assert told == sorted(told, reverse=True)
    assert len(told) >= 3


def test_a_saving_is_the_difference_of_two_months() -> None:
    """A saving is what the changed design's own month is less."""
    whole = shop(result="Summary")
    told = whole.tables[0]
    thin = with_narrow_projection(told, told.indexes[0], frozenset({"ticket_id", "title"}))
    assert thin is not None

    after = estimate_month(with_table(whole, thin), Assumptions(), BOOK).total

    before = estimate_month(whole, Assumptions(), BOOK).total
    assert found(whole, "narrow projection")[0].amount == pytest.approx(before - after)


@pytest.mark.parametrize(
    "assumptions", [Assumptions(), Assumptions(mode="provisioned"), Assumptions(table_class="STANDARD")]
)
def test_a_change_saves_the_same_priced_by_its_table_and_by_the_whole(assumptions: Assumptions) -> None:
    """Tables share nothing, so a change is priced by its own; a need makes it priced by the whole design, to the same digit."""
    found = load_design("tavola.apps.support_desk.model")
    first = found.tables[0].entities[0]
    asked = replace(found, needs=(Need("whatever", first.name, first.fields[0].name),))

    told = savings(found, assumptions, BOOK)

    assert len(told) > 3
    assert told == savings(asked, assumptions, BOOK)

"""The units of one access, at each place that it touches."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.design.cost import collection_units, index_effects, need_units, pattern_units, write_pattern_units
from tavola.model.document import Given, Need, Route, Shards, TableDesign, WritePattern
from tests.design.builders import (
    access,
    choice,
    collection,
    delete,
    design,
    entity,
    gsi,
    key,
    lsi,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
)

BY_STATUS = gsi("by_status", "g1pk", "g1sk")
BY_OWNER = gsi("by_owner", "g2pk", "g2sk", projection=("owner", "title"))
ESCALATED = gsi("escalated", "g3pk", "g3sk", projection="KEYS_ONLY")
BY_RANK = lsi("by_rank", "l1sk", projection="KEYS_ONLY")


def shop(*writes: WritePattern, primary: dict[str, Any] | None = None, **more: Any) -> TableDesign:
    """A table of tickets in four indexes; further words are the table's."""
    return table(
        entity(
            "Ticket",
            text("ticket_id"),
            choice("status", "NEW", "DONE"),
            text("owner"),
            text("title"),
            text("email", unique=more.pop("unique", False)),
            number("rank"),
            number("version", lock=more.pop("lock", False)),
            moment("escalated_at", nullable=True),
            pk="TICKET#{ticket_id}",
            keys=[
                key(BY_STATUS, "STATUS#{status}", "{ticket_id}", shards=more.pop("shards", None)),
                key(BY_OWNER, "OWNER#{owner}", "{ticket_id}"),
                key(ESCALATED, "ESCALATED", "{escalated_at}", sparse=True),
                key(BY_RANK, "TICKET#{ticket_id}", "{rank:04}"),
            ],
            patterns=more.pop("patterns", ()),
            writes=writes,
            primary=primary or {},
        ),
        indexes=[BY_STATUS, BY_OWNER, ESCALATED, BY_RANK],
        **more,
    )


def read(found: TableDesign, at: int = 0) -> dict[str | None, float]:
    """Return the units of a pattern by place; the primary one is -1."""
    ticket = found.entities[0]
    pattern = ticket.primary if at < 0 else ticket.patterns[at]
    assert pattern is not None
    return {units.index: units.read for units in pattern_units(found, ticket, pattern)}


def written(found: TableDesign) -> dict[str | None, float]:
    """Return the write units of the first write by place."""
    ticket = found.entities[0]
    return {units.index: units.write for units in write_pattern_units(found, ticket, ticket.writes[0])}


@pytest.mark.parametrize(
    ("told", "units"),
    [
        ({"item_bytes": 4_096}, 0.5),
        ({"item_bytes": 4_097}, 1.0),
        ({"item_bytes": 4_096, "consistent": True}, 1.0),
        ({"item_bytes": 4_097, "transactional": True}, 4.0),
        ({"item_bytes": 100, "items": 25}, 12.5),
        ({"item_bytes": 100, "items": 0}, 0.5),
    ],
)
def test_a_get_rounds_each_item(told: dict[str, Any], units: float) -> None:
    """A get takes half units when it is eventual, twice as many in a transaction; in a batch each item by itself."""
    assert read(shop(primary=told), -1) == {None: units}


@pytest.mark.parametrize(
    ("told", "units"),
    [
        ({"items": 20, "item_bytes": 450}, 1.5),
        ({"items": 20, "item_bytes": 450, "consistent": True}, 1.5),  # a global index knows no other
        ({"items": 20, "item_bytes": 450, "filters": ("title",), "returned": 2}, 1.5),
        ({"items": 0, "item_bytes": 450}, 0.5),
    ],
)
def test_a_query_rounds_the_sum(told: dict[str, Any], units: float) -> None:
    """A query adds up what it reads, before any filter, and rounds that."""
    assert read(shop(patterns=[query("ByStatus", BY_STATUS, "status", **told)])) == {"by_status": units}


def test_a_sharded_query_asks_every_shard() -> None:
    """A merged read takes from each shard as much as the whole answer may hold; the least is half a unit each."""
    ordered = [query("ByStatus", BY_STATUS, "status", "ticket_id", items=20, item_bytes=450)]
    small = [query("ByStatus", BY_STATUS, "status", items=1, item_bytes=100)]

    assert read(shop(shards=4, patterns=ordered)) == {"by_status": 4 * 1.5}
    assert read(shop(shards=4, patterns=small)) == {"by_status": 4 * 0.5}
    by_title = Shards(4, of=("status",))
    assert read(shop(shards=by_title, patterns=ordered)) == {"by_status": 1.5}


def test_what_is_fetched_whole_pays_for_each_item() -> None:
    """A hydrated query pays on the index, and for each item on the table; so does a local index that lacks a field."""
    near = lsi("near", "rank", projection="KEYS_ONLY")
    hydrated = [query("ByOwner", BY_OWNER, "owner", hydrate=True, items=10, item_bytes=5_000)]
    local = [query("ByRank", BY_RANK, "ticket_id", items=10, reads=("title",))]
    held = [query("Near", near, "pk", items=10, reads=("pk", "rank"))]

    assert read(shop(put(item_bytes=5_000), patterns=hydrated))[None] == 10 * 1.0
    assert read(shop(put(item_bytes=5_000), patterns=local))[None] == 10 * 1.0
    native = table(
        entity(
            "Ticket", text("pk"), text("sk"), text("rank"), text("body"), pk="pk", sk="sk", keys=[key(near, "pk", "rank")], patterns=held,
            writes=[put(item_bytes=5_000)],
        ),
        indexes=[near],
    )  # fmt: skip
    assert read(native) == {"near": 0.5}  # the entries have all that is read


@pytest.mark.parametrize(
    ("write", "units"),
    [
        (put(item_bytes=900), {None: 1, "by_status": 1, "by_owner": 1, "by_rank": 1, "escalated": 0.1}),
        (put(item_bytes=1_025), {None: 2, "by_status": 2, "by_owner": 1, "by_rank": 1, "escalated": 0.1}),
        (put(item_bytes=900, transactional=True), {None: 2, "by_status": 1, "by_owner": 1, "by_rank": 1, "escalated": 0.1}),
        (put(item_bytes=900, together="open"), {None: 2, "by_status": 1, "by_owner": 1, "by_rank": 1, "escalated": 0.1}),
        (put(item_bytes=900, items=3), {None: 3, "by_status": 3, "by_owner": 3, "by_rank": 3, "escalated": pytest.approx(0.3)}),
        (update("status", item_bytes=900), {None: 1, "by_status": 2}),
        (update("owner", item_bytes=900), {None: 1, "by_status": 1, "by_owner": 2}),
        (update("title", item_bytes=900), {None: 1, "by_status": 1, "by_owner": 1}),
        (update("email", item_bytes=900), {None: 1, "by_status": 1}),
        (update("escalated_at", item_bytes=900), {None: 1, "by_status": 1, "escalated": 1.1}),
        (update(adds=("rank",), item_bytes=900), {None: 1, "by_status": 1, "by_rank": 2}),
        (delete(item_bytes=900), {None: 1, "by_status": 1, "by_owner": 1, "by_rank": 1, "escalated": 0.1}),
    ],
)  # fmt: skip
def test_a_write_pays_where_it_changes_something(write: WritePattern, units: dict[str | None, float]) -> None:
    """A key change counts twice, a projected change once, and an entry that stays as it is nothing; of a sparse index
    so many pay as are in it, and of its key's changes those twice that are in it already."""
    assert written(shop(write)) == units


def test_a_new_item_stays_out_of_an_index_that_it_enters_later() -> None:
    """Where an update sets what a sparse index wants, a put does not pay for the index."""
    found = shop(put(item_bytes=900), update("escalated_at", item_bytes=900))
    ticket = found.entities[0]

    kinds = {each.index: each.kind for each in index_effects(found, ticket, ticket.writes[0])}

    assert kinds["escalated"] == "untouched"
    assert kinds["by_status"] == "added"


WORKFLOW = ("NEW", "OPEN", "PENDING", "CLOSED")


def workflow(*writes: WritePattern, members: tuple[str, ...], template: str = "S#{status}") -> TableDesign:
    """Tickets of four states, of which some are in an index."""
    index = gsi("open", "g1pk", "g1sk", projection="KEYS_ONLY")
    return table(
        entity(
            "Ticket", text("ticket_id"), choice("status", *WORKFLOW), pk="{ticket_id}",
            keys=[key(index, template, "{ticket_id}", members={"status": members})], writes=writes,
        ),
        indexes=[index],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("members", "template", "units"),
    [
        # Of 12 changes of a state, 6 stay within three (2 units), 6 go in or out (1).
        (("NEW", "OPEN", "PENDING"), "S#{status}", 1.5),
        # 2 stay within two, 8 cross, 2 happen outside.
        (("NEW", "OPEN"), "S#{status}", 1.0),
        # 6 cross one, 6 happen outside.
        (("NEW",), "S#{status}", 0.5),
        # The key has no state: staying within changes nothing there.
        (("NEW", "OPEN", "PENDING"), "OPEN", 0.5),
        (WORKFLOW, "S#{status}", 2.0),
    ],
)
def test_a_change_of_state_pays_by_where_it_leads(
    members: tuple[str, ...], template: str, units: float
) -> None:
    """In an index of some states a change within them is a key change, one across its bounds counts once, others nothing."""
    found = workflow(update("status", item_bytes=900), members=members, template=template)
    ticket = found.entities[0]

    [effect] = index_effects(found, ticket, ticket.writes[0])

    assert effect.units == pytest.approx(units)
    within = len(members) * (len(members) - 1) / 12
    assert effect.moved == pytest.approx(within if "{status}" in template else 0.0)
    assert effect.kind == ("moved" if members == WORKFLOW else "entered")


@pytest.mark.parametrize(
    ("members", "later", "units"),
    [(("NEW", "OPEN"), True, 1.0), (("CLOSED",), True, 0.0), (("CLOSED",), False, 0.25)],
)
def test_a_new_item_begins_with_the_first_state(members: tuple[str, ...], later: bool, units: float) -> None:
    """A put goes into the index of a state that items begin with; where no update changes it, any state is as likely."""
    updates = [update("status", item_bytes=900)] if later else []
    found = workflow(put(item_bytes=900), *updates, members=members)

    assert written(found).get("open", 0.0) == units


def test_unique_values_have_items_of_their_own() -> None:
    """A put with a unique value is a transaction of two items; changing the value writes its guards as well."""
    assert written(shop(put(item_bytes=900), unique=True))[None] == 4
    assert written(shop(update("email", item_bytes=900), unique=True))[None] == 6
    assert written(shop(update("title", item_bytes=900), unique=True))[None] == 1


def test_an_update_reads_first_what_it_does_not_know() -> None:
    """An index key that is made of more than the update sets wants the item read first; foreign code reads nothing."""
    two = gsi("two", "g1pk", "g1sk")

    def reads(**more: Any) -> float:
        found = table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW"), moment("at"), pk="{ticket_id}",
                keys=[key(two, "{status}", "{at}")], writes=[update("status", item_bytes=5_000)],
            ),
            indexes=[two], **more,
        )  # fmt: skip
        ticket = found.entities[0]
        return write_pattern_units(found, ticket, ticket.writes[0])[0].read

    assert reads() == 2.0
    assert reads(foreign=True) == 0.0


def test_foreign_keys_move_only_when_they_are_rewritten() -> None:
    """Code that sets a field and not its index key leaves the entry where it is."""
    stale = shop(update("status", item_bytes=900), foreign=True)
    right = shop(update("status", item_bytes=900, rewrites=("g1pk",)), foreign=True)

    assert written(stale)["by_status"] == 1
    assert written(right)["by_status"] == 2


def test_a_collection_is_one_query() -> None:
    """Everything of a collection is added up before it is rounded."""
    found = shop(
        put(item_bytes=900), collections=[collection("File", "TICKET#{ticket_id}", "Ticket", items=10)]
    )

    assert [units.read for units in collection_units(found, found.collections[0])] == [1.5]


def test_a_need_is_paid_as_it_is_asked_today() -> None:
    """A scan reads the table, many queries each at least the least, and a need without a route nothing."""
    found = shop(put(item_bytes=1_000))

    def units(route: Route | None, **told: Any) -> list[float]:
        need = Need("x", "Ticket", (Given("owner"),), access=access("x", **told), route=route)
        return [each.read for each in need_units(design(found), need)]

    assert units(Route("scan"), items=1_000) == [122.5]
    assert units(Route("query", "by_owner", queries=100), items=100, item_bytes=100) == [50.0]
    assert units(Route("get"), items=3) == [1.5]
    assert units(Route("batch_get", queries=4), items=3) == [2.0]
    assert units(None) == []


def test_a_need_of_two_entities_shares_its_items() -> None:
    """Two items of two entities are two reads, and not two of each; each entity is read once at least."""
    found = table(
        *(entity(name, text("id"), pk=f"{name}#{{id}}", writes=[put(item_bytes=900)]) for name in "AB")
    )

    def units(items: int | None) -> float:
        need = Need("x", ("A", "B"), (Given("id"),), access=access("x", items=items), route=Route("get"))
        return sum(each.read for each in need_units(design(found), need))

    assert [units(items) for items in (None, 2, 6)] == [1.0, 1.0, 3.0]


def test_time_shards_are_asked_one_after_another() -> None:
    """A query over stretches of time asks one of them, however many are read at most."""
    ordered = [query("ByStatus", BY_STATUS, "status", "ticket_id", items=20, item_bytes=450)]
    by_time = Shards(30, by="time", of=("escalated_at",), bucket="day")

    assert read(shop(shards=by_time, patterns=ordered)) == {"by_status": 1.5}


def test_a_collection_of_a_global_index_is_eventual() -> None:
    """A global index knows no consistent read; a collection of the table does."""

    def units(**more: Any) -> float:
        asked = collection(
            "File", "STATUS#{status}", "Ticket", items=10, item_bytes=400, consistent=True, **more
        )
        [told] = collection_units(shop(collections=[asked]), asked)
        return told.read

    assert units(index="by_status") == 0.5
    assert units() == 1.0

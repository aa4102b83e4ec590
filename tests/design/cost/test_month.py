"""A month: lines, bills, and what they add up to."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.design.cost import Assumptions, CostError, MonthlyBill, estimate_month
from tavola.design.cost.assumptions import Mode
from tavola.design.cost.traffic import autoscaled_units, daily_demand
from tavola.model.document import Design, Scaling, design_of
from tavola.model.sizes import stored_entry_bytes
from tavola.prices import labelled_book, load_book
from tests.design.builders import (
    choice,
    design,
    entity,
    gsi,
    key,
    listed,
    lsi,
    put,
    query,
    table,
    text,
    update,
)

BOOK = load_book("us-east-1")
BY_STATUS = gsi("by_status", "g1pk", "g1sk")
BY_TITLE = lsi("by_title", "l1sk", projection="KEYS_ONLY")
MONTH_S = 730 * 3_600


def shop(
    *,
    reads: float | None = 10,
    writes: float | None = 5,
    changes: float = 2,
    size: int = 900,
    peak: float | None = None,
    items: int | None = 1_000_000,
    **settings_: Any,
) -> Design:
    """A design with a get, a query, a put and an update that moves an index entry."""
    return design(
        table(
            entity(
                "Ticket",
                text("ticket_id"),
                choice("status", "NEW", "DONE"),
                text("title"),
                pk="TICKET#{ticket_id}",
                keys=[
                    key(BY_STATUS, "STATUS#{status}", "{ticket_id}"),
                    key(BY_TITLE, "TICKET#{ticket_id}", "{title}"),
                ],
                patterns=[
                    query("ByStatus", BY_STATUS, "status", per_second=reads, items=10, item_bytes=size)
                ],
                writes=[
                    put("open", per_second=writes, peak_per_second=peak, item_bytes=size, transactional=True),
                    update("status", title="change", per_second=changes, item_bytes=size),
                ],
                primary={"per_second": reads, "peak_per_second": peak, "item_bytes": size},
                items=items,
            ),
            indexes=[BY_STATUS, BY_TITLE],
            **settings_,
        )
    )


def month(told: Design, **assumed: Any) -> MonthlyBill:
    """Return a month at today's prices."""
    return estimate_month(told, Assumptions(**assumed), BOOK)


def line(told: MonthlyBill, what: str, index: str | None = None) -> Decimal:
    """Return the amount of one line."""
    return sum((each.amount for each in told.lines if (each.what, each.index) == (what, index)), Decimal(0))


def test_a_month_on_demand() -> None:
    """Requests are units times rates times 730 hours; a transaction's second unit and a moved entry have lines."""
    told = month(shop())

    per_million = Decimal("0.625") / 1_000_000 * MONTH_S
    assert line(told, "writes") == per_million * 7
    assert line(told, "transactions") == per_million * 5
    assert line(told, "writes", "by_status") == per_million * 7
    assert line(told, "key changes", "by_status") == per_million * 2
    assert line(told, "reads") == Decimal("0.125") / 1_000_000 * MONTH_S * Decimal("5.0")
    assert told.hours == 730
    assert "2026-08-01" in told.book


def test_storage_counts_items_entries_and_what_is_added() -> None:
    """A million items of 900 bytes are stored with 100 bytes each, in the table and in the index."""
    told = month(shop(recovery=False))

    gb = Decimal(1_000_000) * 1_000 / 1024**3
    assert line(told, "storage") == (gb * Decimal("0.25")).quantize(Decimal("1e-10"))
    assert line(told, "storage", "by_status") == line(told, "storage")
    assert line(told, "recovery") == 0


def test_recovery_and_backups_are_of_the_table_and_its_local_indexes() -> None:
    """Recovery and each backup that is kept are paid by the gigabyte, global indexes aside."""
    told = month(shop(), backups=2)

    held = {each.index: each.quantity for each in told.lines if each.what == "storage"}
    recovered = next(each for each in told.lines if each.what == "recovery")
    assert recovered.quantity == held[None] + held["by_title"]
    assert line(told, "backups") == pytest.approx(recovered.quantity * 2 * Decimal("0.10"))


def test_a_stream_is_free_for_lambda() -> None:
    """A stream costs nothing until somebody else polls it."""
    streamed = shop(stream="NEW_IMAGE")

    assert line(month(streamed), "streams") == 0
    polled = month(streamed, stream_polls_per_second=4)
    assert line(polled, "streams") == Decimal(4 * MONTH_S) * Decimal("0.02") / 100_000


def test_replicas_pay_for_each_write_again() -> None:
    """Each further region pays for the writes, plain ones, and for the storage."""
    alone, copied = month(shop()), month(shop(replicas=("eu-west-1", "us-west-2")))

    assert line(copied, "replicated writes") == 2 * line(alone, "writes")
    assert line(copied, "storage") > 3 * line(alone, "storage")
    assert any("eu-west-1" in note for note in copied.notes)


def test_standard_ia_has_its_own_prices() -> None:
    """Standard-IA stores for less and asks more for requests."""
    standard, rare = month(shop()), month(shop(), table_class="STANDARD_INFREQUENT_ACCESS")

    assert rare.of("storage") == pytest.approx(standard.of("storage") * Decimal("0.4"))
    assert rare.requests > standard.requests


def test_provisioned_units_follow_the_traffic() -> None:
    """Even traffic has the units that its target wants; a peak has its hour."""
    even = month(shop(writes=70, changes=0), mode="provisioned")
    peaky = month(shop(writes=70, changes=0, peak=7_000), mode="provisioned")

    writes = next(each for each in even.capacities if each.kind == "write" and each.index is None)
    assert set(writes.hourly) == {300}  # 70 puts of 2 units, and each its local entry, at 70 %
    highest = next(each for each in peaky.capacities if each.kind == "write" and each.index is None)
    assert sorted(highest.hourly)[-1] == 30_000
    assert sorted(highest.hourly)[-2] <= 600
    assert peaky.total > even.total


def test_scaling_has_bounds_and_says_what_they_throttle() -> None:
    """Units never leave the declared bounds; traffic beyond them is told."""
    bounded = shop(
        writes=500, read_units=5, write_units=5, scaling=Scaling(read_max=50, write_max=50, read_min=20)
    )

    told = month(bounded)

    assert all(max(each.hourly) <= 50 for each in told.capacities)
    assert all(min(each.hourly) >= 20 for each in told.capacities if each.kind == "read")
    assert any("throttled" in note and "50 write units" in note for note in told.notes)


def test_fixed_units_are_paid_whether_they_are_used_or_not() -> None:
    """A provisioned table without scaling pays for its units, and nobody's part is told as such."""
    idle = month(shop(reads=0, writes=0, changes=0, read_units=10, write_units=10, items=0))

    assert idle.requests == Decimal(2 * 10 * 730) * (Decimal("0.00013") + Decimal("0.00065"))
    assert sum(bill.amount for bill in idle.bills) == idle.requests


def test_reserved_blocks_are_those_that_pay() -> None:
    """Blocks of 100 units are reserved where they are used enough; a small table reserves none."""
    large = shop(writes=5_000)
    plain = month(large, mode="provisioned")
    one = month(large, mode="provisioned", reserved="one_year")
    three = month(large, mode="provisioned", reserved="three_years")
    small = shop(reads=1, writes=1, changes=1)

    assert three.total < one.total < plain.total
    assert (
        month(small, mode="provisioned", reserved="one_year").total == month(small, mode="provisioned").total
    )
    with pytest.raises(CostError, match="no discount"):
        estimate_month(
            large, Assumptions(mode="provisioned", reserved="one_year"), labelled_book("support-desk")
        )


def test_reserved_units_are_no_replicas_and_no_standard_ia() -> None:
    """Reserved capacity is neither for replicated writes nor for Standard-IA; a global table's indexes and reads may have it."""

    def saved(told: Design, **more: Any) -> Decimal:
        return month(told, mode="provisioned", reserved="one_year", **more).of("reserved")

    def lone(**more: Any) -> Design:
        writes = [put(per_second=5_000, item_bytes=900)]
        return design(table(entity("Ticket", text("ticket_id"), pk="{ticket_id}", writes=writes), **more))

    assert saved(lone()) < 0
    assert saved(lone(replicas=("eu-west-1",))) == 0
    assert saved(lone(), table_class="STANDARD_INFREQUENT_ACCESS") == 0
    assert saved(shop(writes=5_000)) < saved(shop(writes=5_000, replicas=("eu-west-1",))) < 0


def test_a_replica_has_whole_units_of_its_own() -> None:
    """A replica holds what the copied writes need, in whole units and at least one; a transaction is copied plainly."""
    hour = Decimal("0.00065") * 730
    quiet = month(shop(writes=0, changes=0, replicas=("eu-west-1",)), mode="provisioned")
    little = month(shop(writes=0.01, changes=0, replicas=("eu-west-1",)), mode="provisioned")
    busy = month(shop(writes=70, changes=0, replicas=("eu-west-1",)), mode="provisioned")

    assert (
        quiet.of("replicated writes") == little.of("replicated writes") == 2 * hour
    )  # the table's, and the index's
    assert quiet.total <= little.total
    # 70 puts of two units and a local entry each need 300 units at 70 %; copied they are plain, and need 200.
    own, copy = (each for each in busy.capacities if each.kind == "write" and each.index is None)
    assert (set(own.hourly), set(copy.hourly), copy.regions) == ({300}, {200}, 1)
    assert line(busy, "replicated writes", "by_status") == 100 * hour
    assert sum(bill.amount for bill in quiet.bills) == quiet.requests


def test_replicas_are_those_of_other_regions() -> None:
    """The book's own region is no replica; index writes are made in each region again, and recovery is paid in each."""
    alone, same = month(shop()), month(shop(replicas=("us-east-1",)))
    two = month(shop(replicas=("us-east-1", "eu-west-1", "us-west-2")))

    assert same.requests == alone.requests
    assert line(two, "replicated writes", "by_status") == 2 * (
        line(alone, "writes", "by_status") + line(alone, "key changes", "by_status")
    )
    held = {each.index: each.quantity for each in two.lines if each.what == "storage"}
    recovered = next(each.quantity for each in two.lines if each.what == "recovery")
    assert recovered == held[None] + held["by_title"]


def test_a_sparse_index_stores_its_part() -> None:
    """Of a choice so many entries are stored as values are in the index; of what nobody says, the share that is assumed."""
    some, few = (
        gsi("some", "g1pk", "g1sk", projection="KEYS_ONLY"),
        gsi("few", "g2pk", "g2sk", projection="KEYS_ONLY"),
    )
    ticket = entity(
        "Ticket", text("ticket_id"), choice("status", "A", "B", "C", "D"), text("who", nullable=True), pk="{ticket_id}",
        keys=[
            key(some, "S#{status}", "{ticket_id}", members={"status": ["A"]}),
            key(few, "W#{who}", "{ticket_id}", sparse=True),
        ],
        writes=[put(item_bytes=900)], items=1_000_000,
    )  # fmt: skip
    told = month(design(table(ticket, indexes=[some, few])), sparse_share=0.05)

    found = table(ticket, indexes=[some, few])
    for index, share in ((some, Decimal("0.25")), (few, Decimal("0.05"))):
        entry = stored_entry_bytes(found, ticket, index)
        held = next(
            each.quantity for each in told.lines if (each.what, each.index) == ("storage", index.name)
        )
        assert held == share * 1_000_000 * entry / 1024**3


def test_units_are_used_in_the_hours_that_have_traffic() -> None:
    """Traffic of six hours a day uses a quarter of what it would all day."""
    all_day, some = (
        month(shop(writes=70, changes=0), mode="provisioned", hours_per_day=hours) for hours in (24, 6)
    )

    used = [
        next(each.used_units for each in told.capacities if each.kind == "write") for told in (all_day, some)
    ]
    assert used == [70 * 3 * 24, 70 * 3 * 6]


def test_the_free_tier_has_a_bound() -> None:
    """More storage than is free is paid from there on."""
    told = month(shop(), free_tier=True, storage_gb={"shop": 100.0})

    free = next(each for each in told.lines if each.what == "free tier")
    assert free.price == "storage_gb_month"
    assert (free.quantity, free.amount) == (Decimal(25), Decimal("-6.25"))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (shop(writes=1e25), "Ticket: 'open' has 1e\\+25 requests per second"),
        (shop(reads=1, peak=1e300), "the maximum is 1e"),
        (shop(items=10**30), "too much to compute"),
    ],
)
def test_more_than_can_be_is_refused(told: Design, sentence: str) -> None:
    """Rates and numbers beyond anything are one sentence that names the place, and no failure of the arithmetic."""
    with pytest.raises(CostError, match=sentence):
        month(told)


def test_the_free_tier_is_taken_off_once() -> None:
    """What an account has free is taken off all tables together, and never more than was used."""
    told = month(shop(), free_tier=True)

    assert told.total == month(shop()).total + told.of("free tier")
    assert told.of("free tier") == pytest.approx(-told.of("storage"))


def test_what_nobody_said_is_named() -> None:
    """Patterns without a rate and entities without a number count for nothing, and are told."""
    told = month(shop(reads=None, writes=None, changes=0, items=None))

    assert told.total == 0
    assert told.unrated == ("Ticket.Key: Key", "Ticket.ByStatus: ByStatus", "Ticket: open")
    assert told.unsized == ("Ticket",)


def test_a_book_without_a_price_says_so() -> None:
    """What a book has no price for is not in the sum, and is named."""
    told = estimate_month(shop(), Assumptions(), labelled_book("support-desk"))

    assert told.unpriced == ("pitr_gb_month",)


def test_an_empty_design_is_refused() -> None:
    """A design without a table has no month."""
    with pytest.raises(CostError, match="no table"):
        month(Design())


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": 5},
        {"hours_per_day": 0},
        {"sparse_share": 2.0},
        {"backups": -1},
        {"storage_gb": {"shop": -1.0}},
    ],
)
def test_numbers_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    """An assumption outside its bounds is told, with what to give."""
    with pytest.raises(CostError, match=r"must be|use 20 to 90"):
        Assumptions(**wrong)


@pytest.mark.parametrize(("mean", "peak"), [(10.0, 10.0), (10.0, 15.0), (10.0, 500.0), (0.0, 0.0)])
@pytest.mark.parametrize("hours", [24, 12, 1])
def test_a_day_holds_its_mean_and_reaches_its_peak(mean: float, peak: float, hours: int) -> None:
    """The hours of a day never hold less than the mean asks for, and one of them reaches the peak."""
    told = daily_demand(mean, peak, hours)

    assert len(told) == 24
    assert max(told) == peak
    assert sum(told) >= mean * hours - 1e-9


def test_units_are_whole_and_within_bounds() -> None:
    """Auto scaling holds the demand at its target, rounded up."""
    assert autoscaled_units((0.0, 7.0, 7.1, 700.0), target=70, least=2, most=500) == (2, 10, 11, 500)


rates = st.floats(0, 10_000, allow_nan=False)
ways = st.sampled_from(
    [
        Assumptions(mode="on-demand"),
        Assumptions(mode="provisioned"),
        Assumptions(mode="on-demand", table_class="STANDARD_INFREQUENT_ACCESS"),
        Assumptions(mode="provisioned", reserved="one_year"),
        Assumptions(mode="on-demand", hours_per_day=7, free_tier=True),
    ]
)


@settings(max_examples=40)
@given(rates, rates, rates, st.integers(1, 300_000), ways, st.booleans())
def test_lines_and_bills_add_up(
    reads: float, writes: float, changes: float, size: int, way: Assumptions, copied: bool
) -> None:
    """Every line is its quantity at the book's price, credits aside, and the bills give the requests to the last digit."""
    replicas = ("eu-west-1",) if copied else ()
    told = estimate_month(
        shop(reads=reads, writes=writes, changes=changes, size=size, replicas=replicas), way, BOOK
    )

    for each in told.lines:
        if each.what not in ("reserved", "free tier"):
            price = BOOK.prices[each.price]
            exact = each.quantity * price.amount / price.per
            assert abs(each.amount - exact) <= len(told.bills) * Decimal("5e-11")
            assert each.amount >= 0
    assert sum((bill.amount for bill in told.bills), Decimal(0)) == told.requests
    for bill in told.bills:
        assert sum((amount for _, amount in bill.parts), Decimal(0)) == bill.amount


SOME = gsi("some", "g2pk", "g2sk", projection=("body", "tags"))
FEW = gsi("few", "g3pk", "g3sk", projection="KEYS_ONLY")


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """What else a design may be: sizes of fields, sparse and narrow indexes, replicas, bounds of scaling."""
    scaling = Scaling(read_max=50, write_max=500, read_min=2)
    return {
        "body": draw(st.sampled_from([{}, {"typical_bytes": 800}, {"length_max": 50}])),
        "sparse": draw(st.booleans()),
        "members": draw(st.sampled_from([None, ["NEW"], ["NEW", "DONE"]])),
        "transactional": draw(st.booleans()),
        "settings": draw(
            st.sampled_from(
                [
                    {},
                    {"replicas": ("eu-west-1",)},
                    {"read_units": 20, "write_units": 20, "scaling": scaling},
                    {"read_units": 20, "write_units": 20},
                ]
            )
        ),
    }


def shaped(
    shape: dict[str, Any], *, reads: float, writes: float, size: int, peak: float | None, items: int
) -> Design:
    """A design of that shape at these rates."""
    sized: dict[str, Any] = {"item_bytes": size}
    members = {} if shape["members"] is None else {"members": {"status": shape["members"]}}
    return design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "OPEN", "DONE"), text("who", nullable=True),
                text("body", **shape["body"]), listed("tags"), text("note"),
                pk="TICKET#{ticket_id}",
                keys=[
                    key(BY_STATUS, "STATUS#{status}", "{ticket_id}", **members),
                    key(SOME, "S#{status}", "{ticket_id}", shards=4),
                    key(FEW, "W#{who}", "{ticket_id}", sparse=shape["sparse"]),
                ],
                patterns=[
                    query("ByStatus", BY_STATUS, "status", per_second=reads, items=10),
                    query("Some", SOME, "status", per_second=reads / 2, items=3, hydrate=True),
                ],
                writes=[
                    put("open", per_second=writes, peak_per_second=peak, transactional=shape["transactional"], **sized),
                    update("status", title="change", per_second=writes / 2, **sized),
                    update("who", title="assign", per_second=writes / 3, **sized),
                ],
                primary={"per_second": reads, "consistent": True, **sized},
                items=items,
            ),
            indexes=[BY_STATUS, SOME, FEW],
            **shape["settings"],
        )
    )  # fmt: skip


@settings(max_examples=60)
@given(
    shapes(), rates, rates, st.integers(1, 9_000), st.integers(0, 10**7), st.floats(0, 100), st.floats(0, 100),
    st.integers(0, 5_000), st.integers(0, 10**6), st.none() | st.just(20_000.0), ways,
)  # fmt: skip
def test_more_never_costs_less(
    shape: dict[str, Any],
    reads: float,
    writes: float,
    size: int,
    items: int,
    more_reads: float,
    more_writes: float,
    larger: int,
    more_items: int,
    peak: float | None,
    way: Assumptions,
) -> None:
    """A month does not fall when rates, sizes or numbers of items grow, whatever the design and however it is paid for."""
    small = shaped(shape, reads=reads, writes=writes, size=size, peak=peak, items=items)
    large = shaped(
        shape,
        reads=reads + more_reads,
        writes=writes + more_writes,
        size=size + larger,
        peak=peak,
        items=items + more_items,
    )

    # Charges are rounded to ten digits each, so equal designs may differ by as many halves of the last one.
    assert estimate_month(large, way, BOOK).total >= estimate_month(small, way, BOOK).total - Decimal("1e-8")


@settings(max_examples=40)
@given(shapes(), rates, st.floats(1, 50), st.floats(1, 3), st.sampled_from(["on-demand", "provisioned"]))
def test_a_higher_peak_costs_no_less_but_for_whole_units(
    shape: dict[str, Any], writes: float, peak: float, more: float, mode: Mode
) -> None:
    """Of the same traffic, the more uneven costs no less on demand; units are whole, so of provisioned ones a deeper
    trough may save less than one an hour at each place. Where scaling has reached its bound the rest is not served, and
    what is not served is not paid."""
    low, high = (
        estimate_month(
            shaped(shape, reads=1, writes=writes, size=900, peak=writes * times, items=0),
            Assumptions(mode=mode),
            BOOK,
        )
        for times in (peak, peak * more)
    )

    if mode == "on-demand":
        assert low.total == high.total
    elif "scaling" not in shape["settings"]:
        places = sum(each.regions for each in high.capacities)
        assert high.total >= low.total - places * 730 * Decimal("0.00065") - Decimal("1e-8")


def test_whole_units_are_a_step_of_their_own() -> None:
    """A unit is held whole: 0.71 a second at 70 % take two all day, and 0.75 at noon with less at night fewer."""
    even, uneven = (sum(autoscaled_units(daily_demand(0.71, peak), target=70)) for peak in (0.71, 0.75))

    assert even == 48
    assert 24 < uneven < 48


def test_what_a_bound_refuses_is_not_paid() -> None:
    """Scaling that has reached its bound serves no more: a higher peak then costs less, and the note says why."""
    bounded: dict[str, Any] = {
        "read_units": 5, "write_units": 5, "scaling": Scaling(read_max=50, write_max=1_000),
    }  # fmt: skip
    low, high = (month(shop(writes=200, changes=0, peak=peak, **bounded)) for peak in (220, 2_000))

    assert high.total < low.total
    assert any("throttled" in note for note in high.notes)
    assert not any("write units" in note for note in low.notes)


@pytest.mark.parametrize("name", ["support_desk", "service_desk", "terraform_review"])
def test_the_applications_have_a_month(name: str) -> None:
    """Every application's design is priced whole at today's book, with a bill for each pattern that has a rate."""
    import importlib

    found = design_of(importlib.import_module(f"tavola.apps.{name}.model"))

    told = month(found)

    assert told.total > 0
    assert not told.unpriced
    assert all(bill.amount > 0 for bill in told.bills if bill.per_second)
    doubled = replace(
        BOOK, prices={key_: replace(each, amount=each.amount * 2) for key_, each in BOOK.prices.items()}
    )
    assert estimate_month(found, Assumptions(), doubled).total == pytest.approx(2 * told.total)

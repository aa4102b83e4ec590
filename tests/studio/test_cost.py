"""Cost: the page's sums are the command line's, to the cent, for every application and region."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tavola import connect_async
from tavola.cli.designs import load_design
from tavola.clock import SYSTEM_CLOCK, Clock, ManualClock
from tavola.design.cost import (
    Assumptions,
    CostError,
    Sliders,
    apply_sliders,
    compute_curves,
    estimate_month,
    payment_options,
    write_pattern_units,
)
from tavola.engine import Engine
from tavola.model.document import Design
from tavola.prices import load_book
from tavola.studio.api import BY_NAME
from tavola.studio.api import cost as api
from tavola.studio.api.cost import MonthlyCost
from tavola.studio.cost import CalculationRequest, CostAssumptions, CostRequest
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import DeclaredDesign, Studio, TablesLocation
from tavola.studio.types import NoParameters
from tests.command_line import invoked, printed_json

APPLICATIONS = (
    "tavola.apps.support_desk.model",
    "tavola.apps.service_desk.model",
    "tavola.apps.terraform_review.model",
    "tavola.apps.gallery.metrics",
)
# Each application once, and one of them in every region.
PLACES = (
    *((APPLICATIONS[0], region) for region in ("us-east-1", "us-west-2", "ap-northeast-2")),
    (APPLICATIONS[1], "us-west-2"),
    (APPLICATIONS[2], "us-east-1"),
    (APPLICATIONS[3], "ap-northeast-2"),
)


@cache
def design_of(name: str) -> Design:
    result: Design = load_design(name)
    return result


def studio_of(name: str, *, clock: Clock = SYSTEM_CLOCK, region: str = "us-east-1") -> Studio:
    return Studio(
        db=connect_async("memory:"),
        where=TablesLocation("memory", "memory:", region),
        design=design_of(name),
        designs=(name,),
        clock=clock,
    )


def answered(name: str, asked: CostRequest, **more: Any) -> MonthlyCost:
    async def story() -> MonthlyCost:
        studio = studio_of(name, **more)
        async with studio.db:
            return api.monthly_cost(studio, asked)

    return asyncio.run(story())


def printed(*words: str) -> Any:
    return printed_json("cost", *words)


def plain(document: Any) -> Any:
    return json.loads(msgspec.json.encode(document))


@pytest.mark.parametrize(("name", "region"), PLACES)
def test_the_untouched_design_costs_what_the_command_line_prints(name: str, region: str) -> None:
    """The whole document is the same, and the command that the page offers is about the same design."""
    response = answered(name, CostRequest(assumptions=CostAssumptions(region=region)))

    assert plain(response.declared) == printed(name, "--region", region)
    assert response.is_unchanged
    assert response.altered == response.declared
    assert not response.saved
    assert response.command == " ".join(
        ["tavola cost", name, *(["--region", region] if region != "us-east-1" else [])]
    )


def test_every_assumption_is_an_option_of_the_command_line() -> None:
    """With all of them turned, page and command line still agree, by the command that the page offers."""
    assumptions = CostAssumptions(
        region="us-west-2", date="2026-09-01", mode="provisioned", table_class="STANDARD_INFREQUENT_ACCESS",
        target=55, hours_per_day=9, free_tier=True, backups=3, stream_polls=4.5, sparse_share=0.25,
        storage_gb={"prod-tickets-unified": 120.0},
    )  # fmt: skip
    response = answered(APPLICATIONS[0], CostRequest(assumptions=assumptions))

    assert plain(response.altered) == printed(*response.command.split()[2:])
    assert "--storage-gb prod-tickets-unified=120" in response.command


def test_a_moved_slider_is_a_design_that_the_command_line_takes(tmp_path: Path) -> None:
    """The altered design is a document, and `tavola cost` prints of it what the page shows."""
    sliders = Sliders(
        reads=3.0, writes=0.5, item_bytes=1.7, items=2.0, indexes=2, peak=4.0, consistency="strong", transactions="none",
        rates={"prod-tickets-unified/Ticket.ByCustomer": 333.0},
    )  # fmt: skip
    request = CostRequest(sliders=sliders)
    response = answered(APPLICATIONS[0], request)

    async def document() -> str:
        studio = studio_of(APPLICATIONS[0])
        async with studio.db:
            return (api.export_design(studio, request)).text

    file = tmp_path / "modified.json"
    file.write_text(asyncio.run(document()), "utf-8")
    assert response.saved
    assert response.command.split()[:3] == ["tavola", "cost", "modified.json"]
    assert plain(response.altered) == printed(str(file), *response.command.split()[3:])
    assert plain(response.declared) == printed(APPLICATIONS[0])
    rates = dict(
        zip(response.ids, (each["per_second"] for each in response.altered["access_patterns"]), strict=True)
    )
    assert rates["prod-tickets-unified/Ticket.ByCustomer"] == 333.0
    assert rates["prod-tickets-unified/Ticket.Key"] == 300.0
    assert rates["prod-tickets-unified/Ticket: open a ticket"] == 2.5


def test_a_part_of_a_design_is_a_document_by_itself(tmp_path: Path) -> None:
    """A table whose consumers write to another one is altered alone, and the command line reads it."""
    request = CostRequest(tables=("prod-tickets-unified",), sliders=Sliders(reads=2.0))
    response = answered(APPLICATIONS[0], request)

    async def document() -> str:
        studio = studio_of(APPLICATIONS[0])
        async with studio.db:
            return (api.export_design(studio, request)).text

    file = tmp_path / "modified.json"
    file.write_text(asyncio.run(document()), "utf-8")
    assert response.saved
    assert printed(str(file))["total"] == response.altered["total"]


def test_designs_that_call_entities_alike_have_no_command() -> None:
    """Two designs may both have a Ticket: their total is computed, but there is no command for them together."""
    one = design_of(APPLICATIONS[0])
    copies = tuple(
        replace(each, settings=replace(each.settings, name=f"{each.name}-2")) for each in one.tables
    )
    both = replace(one, tables=(*one.tables, *copies))

    async def story() -> MonthlyCost:
        async with connect_async("memory:") as db:
            studio = Studio(
                db=db,
                where=TablesLocation("memory", "memory:", "us-east-1"),
                design=both,
                designs=APPLICATIONS[:2],
            )
            with pytest.raises(RequestRefused) as refused:
                api.export_design(studio, CostRequest())
            assert refused.value.problem.code == "design-unwritable"
            return api.monthly_cost(studio, CostRequest())

    response = asyncio.run(story())

    assert (response.command, response.saved) == ("", False)
    assert Decimal(response.declared["total"]) == 2 * Decimal(
        answered(APPLICATIONS[0], CostRequest()).declared["total"]
    )


def test_a_command_has_every_digit() -> None:
    """Numbers of more than six digits are not rounded on their way to the command line."""
    request = CalculationRequest(1_234_567.25, 0.123456789, 1.2345678, 12_345_678.5)
    storage = {"prod-tickets-unified": 1_234_567.875}

    async def story() -> Any:
        studio = studio_of(APPLICATIONS[1])
        async with studio.db:
            return api.calculate_cost(studio, request)

    response = asyncio.run(story())
    month = answered(APPLICATIONS[0], CostRequest(assumptions=CostAssumptions(storage_gb=storage)))

    assert plain(response.document) == printed(*response.command.split()[2:])
    assert plain(month.altered) == printed(*month.command.split()[2:])


@pytest.mark.parametrize("name", APPLICATIONS)
def test_another_index_is_paid_with_every_write_and_holds_every_item(name: str) -> None:
    """Each more index costs as much as the one before it: a put is written once more whole, and stored once more."""
    design, book = design_of(name), load_book("us-east-1")
    months = [
        estimate_month(apply_sliders(design, Sliders(indexes=many)), Assumptions(), book) for many in range(4)
    ]
    reads = [sum(bill.amount for bill in month.bills if bill.kind == "read") for month in months]

    steps = {later.total - month.total for month, later in pairwise(months)}
    assert len(steps) == 1
    assert steps.pop() > 0
    assert len(set(reads)) == 1
    table = design.tables[0]
    one = apply_sliders(design, Sliders(indexes=1)).tables[0]
    for entity, changed in zip(table.entities, one.entities, strict=True):
        for write, again in zip(entity.writes, changed.writes, strict=True):
            own = write_pattern_units(table, entity, write)
            extra = write_pattern_units(one, changed, again)[len(own) :]
            assert [units.index for units in extra] == ["more-1"]
            if write.kind == "put" and not write.changes:
                base = own[0].write - own[0].transacted
                guards = 2 * len([field for field in entity.fields if field.unique])
                assert extra[0].write == base - guards / 2


def test_indexes_are_no_more_than_a_table_can_have() -> None:
    """Twenty global indexes are the most, those that it has among them."""
    design = design_of(APPLICATIONS[0])
    with pytest.raises(CostError, match="can have"):
        apply_sliders(design, Sliders(indexes=20))
    with pytest.raises(CostError, match="must be 0 to 20"):
        Sliders(indexes=21)
    assert not Sliders(indexes=1).is_unchanged


@pytest.mark.parametrize("name", APPLICATIONS)
def test_each_bill_has_the_id_of_its_pattern(name: str) -> None:
    """Ids and bills are in one order, so that a rate can be set where its bill is shown."""
    response = answered(name, CostRequest())

    for id_, bill in zip(response.ids, response.declared["access_patterns"], strict=True):
        place = bill["place"] if bill["kind"] == "read" else f"{bill['place']}: {bill['title']}"
        assert id_.split("/", 1)[-1] == place or not id_


def test_one_table_of_a_design_is_a_month_of_its_own() -> None:
    """The months of the parts are the month of the whole, and a part's command names its table."""
    whole = answered(APPLICATIONS[0], CostRequest())
    parts = [
        answered(APPLICATIONS[0], CostRequest(tables=(name,)))
        for name in ("prod-tickets-unified", "prod-metrics")
    ]

    assert Decimal(whole.declared["total"]) == sum(Decimal(part.declared["total"]) for part in parts)
    assert parts[1].command == "tavola cost tavola.apps.support_desk.model:Metrics"
    assert plain(parts[1].declared) == printed("tavola.apps.support_desk.model:Metrics")


def test_one_of_several_designs_is_a_month_of_its_own() -> None:
    """A studio with two designs estimates each by name, as the command line does."""
    names = APPLICATIONS[1:3]
    declared = tuple(DeclaredDesign(name, design_of(name)) for name in names)
    both = replace(declared[0].design, tables=declared[0].design.tables + declared[1].design.tables)

    async def story() -> Any:
        async with connect_async("memory:") as db:
            studio = Studio(
                db=db,
                where=TablesLocation("memory", "memory:", "us-east-1"),
                design=both,
                designs=names,
                declared=declared,
            )
            options = await api.list_options(studio, NoParameters())
            return options, [api.monthly_cost(studio, CostRequest(design=name)) for name in names]

    options, response = asyncio.run(story())
    assert options.designs == names
    for name, each in zip(names, response, strict=True):
        assert plain(each.declared) == printed(name)
        assert each.command == f"tavola cost {name}"


def test_sliders_at_rest_change_nothing() -> None:
    """A slider at one gives back the design itself; turned, only what it says is changed."""
    design = design_of(APPLICATIONS[0])

    assert apply_sliders(design, Sliders()) is design
    book = load_book("us-east-1")
    base = estimate_month(design, Assumptions(), book)
    stored = estimate_month(apply_sliders(design, Sliders(items=3.0)), Assumptions(), book)
    assert stored.of("storage") == pytest.approx(base.of("storage") * 3)
    assert stored.requests == base.requests
    often = estimate_month(apply_sliders(design, Sliders(reads=2.0)), Assumptions(), book)
    assert often.of("storage") == base.of("storage")
    reads = sum(bill.amount for bill in base.bills if bill.kind == "read")
    assert often.requests - base.requests == pytest.approx(reads)


def test_more_of_anything_never_costs_less() -> None:
    """Larger items, surer reads, more transactions and higher peaks are dearer, or cost the same."""
    design, book = design_of(APPLICATIONS[0]), load_book("us-east-1")
    base = estimate_month(design, Assumptions(), book).total

    for dearer in (
        Sliders(item_bytes=4.0),
        Sliders(consistency="strong"),
        Sliders(transactions="all"),
        Sliders(reads=1.5),
    ):
        assert estimate_month(apply_sliders(design, dearer), Assumptions(), book).total > base
    assert (
        estimate_month(apply_sliders(design, Sliders(transactions="none")), Assumptions(), book).total < base
    )
    provisioned = Assumptions(mode="provisioned")
    even = estimate_month(apply_sliders(design, Sliders(peak=1.0)), provisioned, book).total
    assert estimate_month(apply_sliders(design, Sliders(peak=8.0)), provisioned, book).total > even


@pytest.mark.parametrize("free_tier", [False, True])
def test_curves_are_months_at_so_many_times_the_traffic(free_tier: bool) -> None:
    """Each point is what the ways of paying cost of a design with its rates multiplied, to the cent."""
    design, book = design_of(APPLICATIONS[1]), load_book("us-east-1")
    assumptions = Assumptions(free_tier=free_tier)
    result = compute_curves(design, assumptions, book)

    assert [line.name for line in result.lines] == [
        way.name for way in payment_options(design, assumptions, book)
    ]
    for at in (0, 4, 6, 12):
        factor = result.factors[at]
        months = {
            way.name: way.total
            for way in payment_options(
                apply_sliders(design, Sliders(reads=factor, writes=factor)), assumptions, book
            )
        }
        for line in result.lines:
            assert abs(line.totals[at] - (months[line.name] or 0)) < Decimal("0.005"), (line.name, factor)


def test_where_two_ways_of_paying_meet_the_cheaper_one_changes() -> None:
    """Below the meeting paying on demand is cheaper than provisioned units, and above it dearer."""
    design, book = design_of(APPLICATIONS[1]), load_book("us-east-1")
    result = compute_curves(design, Assumptions(), book)
    [meeting] = [each for each in result.meetings if each.cheaper_above == "Provisioned, auto scaling"]

    def gap(factor: float) -> Decimal:
        totals = {
            way.name: way.total or Decimal(0)
            for way in payment_options(
                apply_sliders(design, Sliders(reads=factor, writes=factor)), Assumptions(), book
            )
        }
        return totals["On-demand"] - totals["Provisioned, auto scaling"]

    assert gap(meeting.factor / 2) < 0 < gap(meeting.factor * 2)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (CalculationRequest(100, 20, 3, 50, 12), "--reads 100 --writes 20 --item-kb 3 --storage-gb 50 --hours-per-day 12"),
        (CalculationRequest(0.5, 0, 400, eventual=True), "--reads 0.5 --writes 0 --item-kb 400 --eventual"),
        (
            CalculationRequest(10, 10, 1.5, 7, indexes=3, region="ap-northeast-2", free_tier=True, backups=2, target=50),
            ("--reads 10 --writes 10 --item-kb 1.5 --storage-gb 7 --indexes 3 --region ap-northeast-2 --free-tier "
            "--backups 2 --target-utilization 50"),
        ),
        (CalculationRequest(100, 20, 3, 50, 12, prices="support-desk"), ("--reads 100 --writes 20 --item-kb 3 --storage-gb 50 "
        "--hours-per-day 12 --prices support-desk")),
        (
            CalculationRequest(1, 1, table_class="STANDARD_INFREQUENT_ACCESS", date="2026-09-01"),
            "--reads 1 --writes 1 --table-class standard-ia --date 2026-09-01",
        ),
    ],
)  # fmt: skip
def test_the_calculator_is_the_command_lines(asked: CalculationRequest, words: str) -> None:
    """Rates without a design give the document that `tavola cost --reads` prints, and the command that does."""

    async def story() -> Any:
        studio = studio_of(APPLICATIONS[1])
        async with studio.db:
            return api.calculate_cost(studio, asked)

    response = asyncio.run(story())

    assert plain(response.document) == printed(*words.split())
    assert plain(response.document) == printed(*response.command.split()[2:])


def test_an_index_of_whole_items_doubles_writes_and_storage() -> None:
    """With one index each write is paid twice and each gigabyte twice; reads are paid once."""

    def sums(indexes: int) -> dict[str, dict[str, str]]:
        document = printed("--reads", "10", "--writes", "10", "--storage-gb", "5", "--indexes", str(indexes))
        return {way["name"]: way for way in document["ways"]}

    none, one = sums(0), sums(1)
    for name, factor in (("writes", 2), ("storage", 2), ("reads", 1)):
        assert Decimal(one["On-demand"][name]) == factor * Decimal(none["On-demand"][name])
    fixed = "Provisioned, fixed"
    assert Decimal(one[fixed]["writes"]) == 2 * Decimal(none[fixed]["writes"])


def test_what_cannot_be_is_refused() -> None:
    """Numbers that nothing can have, and names that the design has not, are refused with what to give."""
    for body in (b'{"sliders": {"reads": -1}}', b'{"sliders": {"peak": 0.5}}'):
        with pytest.raises(CostError):
            BY_NAME["POST /cost"].parse_body(body)
    for request, kind in (
        (CostRequest(sliders=Sliders(rates={"nothing": 1.0})), CostError),
        (CostRequest(assumptions=CostAssumptions(target=10)), CostError),
        (CostRequest(assumptions=CostAssumptions(date="soon")), CostError),
        (CostRequest(assumptions=CostAssumptions(prices="patterns", region="us-east-1")), CostError),
        (CostRequest(assumptions=CostAssumptions(storage_gb={"nothing": 1.0})), CostError),
        (CostRequest(tables=("nothing",)), RequestRefused),
        (CostRequest(design="nothing"), RequestRefused),
    ):
        with pytest.raises(kind):
            answered(APPLICATIONS[1], request)


def test_the_declared_month_is_cached() -> None:
    """The declared costing is computed once; another day, or another assumption, is another one."""
    clock = ManualClock(1_790_000_000.0)
    first = answered(APPLICATIONS[1], CostRequest(), clock=clock)
    clock.advance(400 * 86_400)
    later = answered(APPLICATIONS[1], CostRequest(), clock=clock)

    assert first.declared["total"] == later.declared["total"]
    assert any("days old" in note for note in later.declared["notes"])
    assert not any("days old" in note for note in first.declared["notes"])


def test_a_region_without_a_book_takes_the_one_that_commands_begin_with() -> None:
    """Prices are those of the tables' region where there is a book; else of us-east-1, and it is said."""

    async def story(region: str) -> str:
        studio = studio_of(APPLICATIONS[1], region=region)
        async with studio.db:
            return (await api.list_options(studio, NoParameters())).region

    assert asyncio.run(story("us-west-2")) == "us-west-2"
    assert asyncio.run(story("eu-west-1")) == "us-east-1"


def test_vector_indexes_are_listed_with_their_sizes() -> None:
    """A table's vector index is counted: its entries, their bytes, and those of the vectors alone."""
    engine = Engine.open()
    engine.call(
        "CreateTable",
        {
            "TableName": "near",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
            "VectorIndexes": [
                {
                    "IndexName": "close",
                    "VectorAttribute": {"AttributeName": "v"},
                    "Dimensions": 3,
                    "DistanceFunction": "COSINE",
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        },
    )
    vector = {"L": [{"N": "1"}, {"N": "0"}, {"N": "0.5"}]}
    engine.call("PutItem", {"TableName": "near", "Item": {"pk": {"S": "a"}, "v": vector}})

    async def story() -> Any:
        async with connect_async(engine) as db:
            studio = Studio(db=db, where=TablesLocation("memory", "memory:", "us-east-1"))
            return await api.list_vector_indexes(studio, NoParameters())

    [result] = asyncio.run(story()).indexes
    engine.close()
    assert (result.table, result.index, result.dimensions, result.items) == ("near", "close", 3, 1)
    assert result.vector_bytes == 12
    assert result.bytes >= 12


def test_rows_for_a_spreadsheet_are_the_command_lines() -> None:
    """The CSV of the page is what `tavola cost --csv` prints."""

    async def story() -> str:
        studio = studio_of(APPLICATIONS[2])
        async with studio.db:
            return (api.export_csv(studio, CostRequest())).text

    assert asyncio.run(story()) == invoked("cost", APPLICATIONS[2], "--csv").stdout


def test_endpoints_take_what_pages_send() -> None:
    """A body of JSON becomes the question, and the answer goes back as JSON."""
    endpoint = BY_NAME["POST /cost"]
    request = endpoint.parse_body(b'{"sliders": {"reads": 2}, "assumptions": {"region": "us-west-2"}}')

    assert request == CostRequest(assumptions=CostAssumptions(region="us-west-2"), sliders=Sliders(reads=2))

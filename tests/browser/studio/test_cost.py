"""The cost page: equal to the command line to the cent, at rest and with its sliders moved."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tavola.cli.designs import load_design
from tavola.design.cost import Assumptions, Sliders, apply_sliders, report_cost
from tavola.engine import Engine
from tavola.model.document import Design
from tavola.prices import load_book
from tests.browser.stage import NARROW, PATIENCE_MS, Stage, accessibility_faults, overflow
from tests.command_line import printed_json
from tools.studio_server import ServedStudio, serve_studio

Pages = Callable[..., Page]
DESK = "tavola.apps.support_desk.model"
BY_CUSTOMER = "prod-tickets-unified/Ticket.ByCustomer"


@cache
def desk() -> Design:
    result: Design = load_design(DESK)
    return result


@pytest.fixture(scope="module")
def desk_house() -> Iterator[ServedStudio]:
    engine = Engine.open()
    with serve_studio(engine, desk(), designs=(DESK,)) as result:
        yield result
    engine.close()


def printed(*words: str) -> Any:
    return printed_json("cost", *words)


def cents(amount: str | Decimal) -> str:
    return f"${Decimal(amount):,.2f}"


def total(page: Page) -> Locator:
    return page.get_by_test_id("cost-total")


def altered(**sliders: Any) -> str:
    """Return what the same functions say of the altered design."""
    response = report_cost(
        apply_sliders(desk(), Sliders(**sliders)),
        Assumptions(),
        load_book("us-east-1"),
        datetime.date(2026, 11, 1),
    )
    return cents(response.month.total)


def test_the_page_equals_the_command_line(pages: Pages, desk_house: ServedStudio) -> None:
    """The sum, every way of paying and every pattern's bill are those that `tavola cost` prints, to the cent."""
    response = printed(DESK)
    page = pages(desk_house, "/cost")

    expect(total(page)).to_have_text(cents(response["total"]))
    for way in response["ways"]:
        expect(page.locator(f'[data-way="{way["name"]}"] strong')).to_have_text(cents(way["total"]))
    page.get_by_role("button", name=re.compile("Show all")).first.click()
    for bill in response["access_patterns"]:
        place = bill["place"] if bill["kind"] == "read" else f"{bill['place']}: {bill['title']}"
        row = page.locator(f'[data-pattern$="/{place}"]').first
        expect(row.get_by_role("cell").last).to_have_text(cents(bill["amount"]))
    expect(page.get_by_test_id("cost-book")).to_contain_text("us-east-1 prices of 2026-08-01")
    expect(page.get_by_label("Command line")).to_have_text(f"tavola cost {DESK}")


def test_the_cheapest_way_is_marked(pages: Pages, desk_house: ServedStudio) -> None:
    """One card says that it is the cheapest, and it is."""
    response = printed(DESK)
    least = min(response["ways"], key=lambda way: Decimal(way["total"]))
    page = pages(desk_house, "/cost")

    expect(page.locator(".cost-ways .best .cost-way-name")).to_have_text(least["name"])


def test_moved_sliders_equal_the_same_functions(pages: Pages, desk_house: ServedStudio) -> None:
    """Each slider changes the sum to what the altered design costs; the declared sum stays beside it."""
    page = pages(desk_house, "/cost")
    before = total(page).inner_text()

    page.get_by_label("Reads, as a number").fill("3")
    page.get_by_label("Reads, as a number").press("Enter")
    expect(total(page)).to_have_text(altered(reads=3.0))
    page.get_by_role("radio", name="strong").click()
    expect(total(page)).to_have_text(altered(reads=3.0, consistency="strong"))
    expect(page.locator(".stat").first).to_contain_text(f"declared {before}")
    page.get_by_label("a customer's tickets, newest first, requests per second").fill("500")
    page.get_by_label("a customer's tickets, newest first, requests per second").press("Enter")
    expect(total(page)).to_have_text(altered(reads=3.0, consistency="strong", rates={BY_CUSTOMER: 500.0}))
    page.get_by_role("button", name="Reset").click()
    expect(total(page)).to_have_text(before)


def test_more_indexes_cost_more_with_every_write(pages: Pages, desk_house: ServedStudio) -> None:
    """The slider adds indexes of whole items to each table; more than a table can have is refused in words."""
    page = pages(desk_house, "/cost")
    page.get_by_label("Additional indexes", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")

    expect(total(page)).to_have_text(altered(indexes=2))
    expect(page).to_have_url(re.compile("idx=2"))
    expect(page.get_by_role("status").filter(has_text=f"{altered(indexes=2)} per month")).to_have_count(1)


def test_what_cannot_be_one_command_is_said(stage: Stage, start_studio: Any) -> None:
    """Designs that call entities alike have a sum and no command, and a document of them is refused with what to do."""
    copies = tuple(
        replace(each, settings=replace(each.settings, name=f"{each.name}-2")) for each in desk().tables
    )
    alike = replace(desk(), tables=(*desk().tables, *copies))
    page = stage.browser.new_page()  # its console tells of every refusal
    page.set_default_timeout(PATIENCE_MS)
    page.goto(start_studio(None, alike).url + "/cost?reads=2")

    expect(page.get_by_text("no single command can price them together")).to_be_visible()
    expect(page.get_by_label("Command line")).to_have_count(0)
    expect(total(page)).to_have_text(re.compile(r"^\$[1-9]"))
    page.get_by_role("button", name="Download design.json").click()
    expect(page.get_by_role("alert").first).to_contain_text("Choose a single design")
    page.close()


def test_a_slider_is_moved_by_keys(pages: Pages, desk_house: ServedStudio) -> None:
    """Arrow keys on the range turn the number, and the sum follows."""
    page = pages(desk_house, "/cost")
    before = total(page).inner_text()
    page.get_by_label("Writes", exact=True).focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")

    expect(page.get_by_label("Writes, as a number")).to_have_value("2")
    expect(total(page)).to_have_text(altered(writes=2.0))
    assert total(page).inner_text() != before


def test_the_address_holds_the_numbers(pages: Pages, desk_house: ServedStudio) -> None:
    """A link shows the same month: sliders, assumptions, the table and the region."""
    words = ("--region", "us-west-2", "--mode", "provisioned", "--hours-per-day", "8", "--free-tier")
    response = printed(f"{DESK}:Metrics", *words)
    page = pages(desk_house, "/cost?table=prod-metrics&region=us-west-2&mode=provisioned&hours=8&free=yes")

    expect(total(page)).to_have_text(cents(response["total"]))
    expect(page.get_by_test_id("cost-book")).to_contain_text("us-west-2")
    expect(page.get_by_label("Hours per day, as a number")).to_have_value("8")
    command = page.get_by_label("Command line").inner_text()
    assert printed(*command.split()[2:]) == response
    page.get_by_label("Item size, as a number").fill("2")
    page.get_by_label("Item size, as a number").press("Enter")
    expect(page).to_have_url(re.compile("size=2"))
    changed = page.get_by_test_id("cost-total")
    expect(changed).not_to_have_text(cents(response["total"]))
    again = pages(desk_house, page.url.removeprefix(desk_house.url))
    expect(total(again)).to_have_text(changed.inner_text())


def test_break_even_is_drawn_and_told(pages: Pages, desk_house: ServedStudio) -> None:
    """A line for each way of paying, the design's own place, and where lines meet in words."""
    page = pages(desk_house, "/cost")
    picture = page.get_by_role("img", name=re.compile("Monthly cost from"))

    expect(picture).to_be_visible()
    assert picture.locator("polyline").count() == 6
    expect(
        page.get_by_text(
            re.compile(r"Above about .* “Provisioned, auto scaling” is cheaper than “On-demand”")
        )
    ).to_be_visible()


def test_rows_for_a_spreadsheet_are_saved(pages: Pages, desk_house: ServedStudio) -> None:
    """The CSV is what `tavola cost --csv` prints; the altered design is a document to ask about."""
    page = pages(desk_house, "/cost?reads=2")
    expect(total(page)).to_have_text(altered(reads=2.0))
    with page.expect_download() as rows:
        page.get_by_role("button", name="Download CSV").click()
    with page.expect_download() as document:
        page.get_by_role("button", name="Download design.json").click()

    assert rows.value.suggested_filename == "cost.csv"
    last = rows.value.path().read_text("utf-8").strip().split("\n")[-1]
    assert last.startswith("total")
    assert cents(last.split(",")[9]) == altered(reads=2.0)
    assert cents(printed(str(_kept(document.value)))["total"]) == altered(reads=2.0)


def _kept(download: Any) -> Any:
    path = download.path().with_suffix(".json")
    download.save_as(path)
    return path


def test_the_calculator_needs_no_design(pages: Pages, desk_house: ServedStudio) -> None:
    """Rates alone give what `tavola cost --reads` prints, by the command that the page shows."""
    page = pages(desk_house, "/cost?view=calculator&k.reads=250&k.writes=40&k.kb=2.5&k.gb=30&k.indexes=2")
    response = printed(
        "--reads", "250", "--writes", "40", "--item-kb", "2.5", "--storage-gb", "30", "--indexes", "2"
    )

    for way in response["ways"]:
        row = page.get_by_role("row", name=re.compile(f"^{way['name']}"))
        expect(row.get_by_role("cell").last).to_have_text(cents(way["total"]))
    command = page.get_by_label("Command line").inner_text()
    assert printed(*command.split()[2:]) == response


def test_without_a_design_there_is_the_calculator(pages: Pages, start_studio: Any) -> None:
    """A studio that knows no design still computes the cost of rates."""
    page = pages(start_studio(), "/cost")

    expect(page.get_by_text("Command line")).to_be_visible()
    expect(page.get_by_label("Reads per second", exact=True)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["", "?view=calculator", "?reads=3"])
def test_everybody_can_use_it(pages: Pages, desk_house: ServedStudio, scheme: str, view: str) -> None:
    """axe-core finds nothing, in both themes."""
    page = pages(desk_house, f"/cost{view}", color_scheme=scheme)
    expect(page.get_by_label("Command line")).to_be_visible()
    page.wait_for_load_state("networkidle")

    assert accessibility_faults(page) == []


def test_a_phone_has_room_for_it(pages: Pages, desk_house: ServedStudio) -> None:
    """Nothing is wider than a phone, and the sum stays in view above the sliders."""
    page = pages(desk_house, "/cost?reads=3", viewport=NARROW, has_touch=True)
    expect(page.locator(".cost-sticky")).to_be_visible()
    page.wait_for_load_state("networkidle")

    assert overflow(page) == []

"""The access patterns: forms made from the design, runs that tell what the engine counted, and the matrix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tavola import Given, Need
from tavola.engine import Engine
from tavola.model.document import Design
from tests.browser.stage import NARROW, PATIENCE_MS, Stage, accessibility_faults, overflow
from tests.studio.bookshop import Order, bookshop_design, stocked
from tools.studio_server import REGION, SCOPE, ServedStudio, serve_studio

Pages = Callable[..., Page]


@pytest.fixture(scope="module")
def shop() -> Iterator[Engine]:
    with stocked(region=REGION) as engine:
        yield engine


@pytest.fixture(scope="module")
def shop_house(shop: Engine) -> Iterator[ServedStudio]:
    with serve_studio(shop, bookshop_design(document=True)) as result:
        yield result


def at(id_: str, **params: str) -> str:
    """Return the address of a pattern of the shop."""
    response = "".join(f"&{name}={quote(value, safe='')}" for name, value in params.items())
    return f"/patterns/bookshop?pattern={quote(f'bookshop/{id_}', safe='')}{response}"


def stat(page: Page, label: str) -> Locator:
    """Return a number of the result by its label."""
    return (
        page.get_by_test_id("pattern-result")
        .locator(".stat", has_text=re.compile(f"^{label}"))
        .locator(".number")
    )


def consumed(engine: Engine, operation: str, body: dict[str, Any]) -> dict[str | None, float]:
    """Ask the engine the same, and return the units that it counts at each place."""
    response = engine.call(operation, {**body, "ReturnConsumedCapacity": "INDEXES"}, SCOPE)[
        "ConsumedCapacity"
    ]
    result: dict[str | None, float] = {None: response["Table"]["CapacityUnits"]}
    result |= {
        name: each["CapacityUnits"] for name, each in response.get("GlobalSecondaryIndexes", {}).items()
    }
    return {place: units for place, units in result.items() if units}


def test_a_form_is_made_of_the_design_and_runs_at_once(pages: Pages, shop_house: ServedStudio) -> None:
    """The fields are the pattern's, filled from an item; Run gives items and the units that the engine counts."""
    page = pages(shop_house, at("Order.ByCustomer"))
    form = page.get_by_role("form", name="Run a customer's orders")

    expect(form.get_by_label("customer", exact=True)).to_have_value(re.compile("^c[0-3]$"))
    expect(form.get_by_label("placed_at", exact=True)).to_have_value("")
    assert form.get_by_label("Operator for placed_at").locator("option").all_inner_texts() == [
        "=", "<", "<=", ">", ">=", "between",
    ]  # fmt: skip
    form.get_by_label("customer", exact=True).fill("c2")
    form.get_by_role("button", name="Run").click()

    expect(stat(page, "Items")).to_have_text("15")
    body = {
        "TableName": "bookshop", "IndexName": "by_customer", "KeyConditionExpression": "GSI1PK = :p",
        "ExpressionAttributeValues": {":p": {"S": "CUSTOMER#c2"}},
    }  # fmt: skip
    units = consumed(shop_house.engine, "Query", body)
    expect(stat(page, "Read units")).to_have_text(f"{sum(units.values()):g}")
    row = page.get_by_role("row", name=re.compile("^by_customer"))
    expect(row.get_by_role("cell").nth(0)).to_have_text(f"{units['by_customer']:g}")
    expect(stat(page, "Read amplification")).to_have_text("1×")
    expect(page.get_by_text('GSI1PK = "CUSTOMER#c2"').first).to_be_visible()


def test_shards_and_fetched_items_are_told_apart(pages: Pages, shop_house: ServedStudio) -> None:
    """Each shard is a request of its own, and what an index lacks is fetched: both are counted where they happen."""
    page = pages(shop_house, at("Order.ByState", run="yes", limit="5", **{"p.state": "new"}))

    expect(stat(page, "API calls")).to_have_text("4")
    requests = page.locator(".patterns-requests > li")
    assert requests.count() == 4
    expect(requests.nth(3)).to_contain_text("BatchGetItem")
    expect(page.get_by_role("row", name=re.compile("^by_state"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^bookshop"))).to_be_visible()
    expect(page.get_by_text("3 shards").first).to_be_visible()


def test_the_address_runs_the_same(pages: Pages, shop_house: ServedStudio) -> None:
    """The URL contains the run: reloading it, or opening it in another browser, gives the same result; Back works."""
    page = pages(shop_house, at("Order.ByCustomer"))
    form = page.get_by_role("form")
    form.get_by_label("customer", exact=True).fill("c1")
    form.get_by_label("Operator for placed_at").select_option("between")
    form.get_by_label("placed_at", exact=True).fill("2026-08-01T12:00:00Z")
    form.get_by_label("placed_at, to").fill("2026-08-02T12:00:00Z")
    form.get_by_role("radio", name="Descending").click()
    form.get_by_label("Limit").fill("2")
    form.get_by_role("button", name="Run").click()
    expect(stat(page, "Items")).to_have_text("2")
    first = page.locator(".patterns-rows tbody tr").first.inner_text()

    other = pages(shop_house, page.url.removeprefix(shop_house.url))
    expect(stat(other, "Items")).to_have_text("2")
    assert other.locator(".patterns-rows tbody tr").first.inner_text() == first
    expect(other.get_by_label("placed_at, to")).to_have_value("2026-08-02T12:00:00Z")
    expect(other.get_by_role("radio", name="Descending")).to_have_attribute("aria-checked", "true")
    page.go_back()
    expect(page.get_by_test_id("pattern-result")).to_have_count(0)


def test_a_filter_and_a_scan_say_what_they_waste(pages: Pages, shop_house: ServedStudio) -> None:
    """Items that were read and discarded are reported with the reason."""
    page = pages(
        shop_house,
        at("new orders of a customer", run="yes", limit="100", **{"p.customer": "c0"}),
    )

    expect(stat(page, "Read amplification")).to_have_text("3×")
    expect(page.get_by_text("removed 10 of 15 items")).to_be_visible()
    page.goto(shop_house.url + at("dear orders", run="yes", **{"p.total": "14"}))
    expect(stat(page, "Read amplification")).to_have_text("45×")
    expect(page.get_by_text("The scan of bookshop reads every item")).to_be_visible()


def test_a_need_is_asked_by_the_conditions_that_it_declares(
    pages: Pages, start_studio: Any, shop: Engine
) -> None:
    """Both ends of a stretch are fields, strict ends leave their items out, and several keys are one batch."""
    design = bookshop_design()
    needs = (
        Need("within", Order, ("customer", Given("placed_at", ">"), Given("placed_at", "<"))),
        Need("some", Order, Given("order_id", "in")),
    )
    studio_server = start_studio(shop, Design(design.tables, design.views, needs))
    page = pages(studio_server, at("within"))
    forecast = page.get_by_test_id("pattern-forecast")
    expect(forecast).to_contain_text("declares no route for this need")
    form = page.get_by_role("form")
    form.get_by_label("customer", exact=True).fill("c0")
    form.get_by_label("placed_at >").fill("2026-08-01T12:00:00Z")
    form.get_by_label("placed_at <").fill("2026-08-02T20:00:00Z")
    form.get_by_role("button", name="Run").click()

    expect(stat(page, "Items")).to_have_text("3")
    expect(page.get_by_text("2 items were filtered out after being read and charged")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="3 items")).to_have_count(1)
    page.goto(studio_server.url + at("some", run="yes", **{"p.order_id": "o001, o002"}))
    expect(stat(page, "Items")).to_have_text("2")
    expect(page.locator(".patterns-requests > li")).to_contain_text("BatchGetItem")


def test_what_is_foretold_before_a_run_is_not_told_as_taken(pages: Pages, shop_house: ServedStudio) -> None:
    """Before a run the units have one column; after it what was taken and what was foretold stand beside each other."""
    page = pages(shop_house, at("Order.ByCustomer"))
    head = page.get_by_test_id("pattern-forecast").locator("thead th")
    expect(head).to_have_text(["Table or index", "Units"])

    page.get_by_role("form").get_by_role("button", name="Run").click()

    expect(page.get_by_test_id("pattern-result").locator(".patterns-units thead th")).to_have_text(
        ["Table or index", "Consumed", "Estimated"]
    )


@pytest.mark.parametrize("path", ["/patterns/bookshop?view=nothing", "/cost?view=nothing"])
def test_a_view_that_is_none_is_the_first(pages: Pages, shop_house: ServedStudio, path: str) -> None:
    """A link with a word that no tab has shows the first tab, and says so."""
    page = pages(shop_house, path)

    expect(page.get_by_role("tab", selected=True)).to_have_count(1)
    expect(page.get_by_role("tab").first).to_have_attribute("aria-selected", "true")


def test_a_write_is_forecast_and_not_run(pages: Pages, shop_house: ServedStudio) -> None:
    """Of a write the units at each place are shown, no button runs it, and it is said why."""
    page = pages(shop_house, at("Order: place an order"))

    expect(page.get_by_test_id("pattern-forecast")).to_contain_text("Write units")
    expect(page.get_by_text("Writes can't be run here")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_have_count(0)


def test_an_invalid_value_is_refused_with_a_remedy(stage: Stage, shop_house: ServedStudio) -> None:
    """An invalid time is reported beside the form, and the input is kept."""
    page = stage.browser.new_page()  # its console tells of every refusal
    page.set_default_timeout(PATIENCE_MS)
    page.goto(shop_house.url + at("Order.ByCustomer"))
    form = page.get_by_role("form")
    form.get_by_label("placed_at", exact=True).fill("Monday")
    with page.expect_response(re.compile("/patterns/run")) as answered:
        form.get_by_role("button", name="Run").click()

    assert answered.value.status == 400
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("placed_at is not a date and time")
    expect(alert).to_contain_text("2026-08-01T12:00:00Z")
    expect(form.get_by_label("placed_at", exact=True)).to_have_value("Monday")
    page.close()


def test_an_item_opens_in_the_data(pages: Pages, shop_house: ServedStudio) -> None:
    """A row leads to its item by its key."""
    page = pages(shop_house, at("WholeOrder", run="yes", **{"p.order_id": "o003"}))
    expect(stat(page, "Items")).to_have_text("3")

    page.get_by_role("link", name="ORDER#o003").last.click()

    expect(page).to_have_url(re.compile("/data/bookshop.*item="))
    assert "ORDER%23o003" in page.url or "ORDER#o003" in page.url


def test_the_matrix_shows_what_nothing_serves_and_what_nobody_asks(
    pages: Pages, shop_house: ServedStudio
) -> None:
    """A need without a key is red with its reason, an unused index amber, and the counts say how many."""
    page = pages(shop_house, "/patterns/bookshop?view=coverage")
    grid = page.get_by_role("grid")

    red = grid.get_by_role("row", name=re.compile("orders by note"))
    expect(red).to_have_class(re.compile("unserved"))
    expect(red).to_contain_text("No key serves Order by note")
    amber = grid.get_by_role("columnheader", name=re.compile("nobody"))
    expect(amber).to_have_class(re.compile("unused"))
    expect(amber).to_contain_text("No access pattern uses nobody")
    served_ = grid.get_by_role("row", name=re.compile("a customer's orders"))
    expect(served_.get_by_role("gridcell").nth(1)).to_have_class("serves")
    counts = page.locator(".stats .stat").all_inner_texts()
    assert [each.split("\n")[1] for each in counts] == ["12", "10", "2", "5", "1"]


def test_keys_move_in_the_matrix_and_open_a_pattern(pages: Pages, shop_house: ServedStudio) -> None:
    """One stop of Tab for the grid, arrows within it, and Enter goes to the pattern."""
    page = pages(shop_house, "/patterns/bookshop?view=coverage")
    grid = page.get_by_role("grid")
    grid.locator("[tabindex='0']").focus()
    assert grid.locator("[tabindex='0']").count() == 1

    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.at") == "1,2"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")

    expect(page.get_by_role("form", name="Run a customer's orders")).to_be_visible()


def test_a_pattern_is_found_chosen_and_run_by_keyboard(pages: Pages, shop_house: ServedStudio) -> None:
    """Slash searches, arrows choose, Enter opens, and Ctrl Enter runs."""
    page = pages(shop_house, "/patterns/bookshop")
    expect(page.get_by_role("form")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("lines")
    expect(page.get_by_text("1 of 12")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("order_id", exact=True)).to_have_value(re.compile("^o"))
    page.get_by_label("order_id", exact=True).focus()
    page.keyboard.press("Control+Enter")

    expect(stat(page, "Items")).to_have_text("3")


def test_names_with_markup_are_text(pages: Pages, shop_house: ServedStudio) -> None:
    """Markup in an item or a URL is shown as text and never executed."""
    html = "<img src=x onerror=alert(1)>"
    page = pages(shop_house, at("Order.Key", run="yes", **{"p.order_id": html}))

    expect(stat(page, "Items")).to_have_text("0")
    expect(page.get_by_text("ORDER#<img").first).to_be_visible()
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(pages: Pages, shop_house: ServedStudio, scheme: str) -> None:
    """axe-core finds nothing on the run and on the matrix, in both themes."""
    page = pages(shop_house, at("Order.ByState", run="yes", **{"p.state": "new"}), color_scheme=scheme)
    expect(page.get_by_test_id("pattern-result")).to_be_visible()
    faults = accessibility_faults(page)
    page.goto(shop_house.url + "/patterns/bookshop?view=coverage")
    expect(page.get_by_role("grid")).to_be_visible()

    assert faults + accessibility_faults(page) == []


def test_a_phone_has_room_for_it(pages: Pages, shop_house: ServedStudio) -> None:
    """Nothing is wider than a phone, on the run and on the matrix."""
    page = pages(
        shop_house, at("Order.ByState", run="yes", **{"p.state": "new"}), viewport=NARROW, has_touch=True
    )
    expect(page.get_by_test_id("pattern-result")).to_be_visible()
    assert overflow(page) == []
    page.goto(shop_house.url + "/patterns/bookshop?view=coverage")
    expect(page.get_by_role("grid")).to_be_visible()
    assert overflow(page) == []

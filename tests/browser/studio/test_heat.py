"""Heat: a hot key is a bright row and a sentence, keys in order are a diagonal, and the map goes by mouse and by keyboard."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tavola.clock import ManualClock
from tavola.engine import Engine, ItemAccess
from tavola.model.document import Design
from tavola.protocol.arns import table_arn
from tests.browser.stage import accessibility_faults, overflow
from tests.browser.studio.conftest import StartStudio
from tests.design.builders import design, entity, table, text, update
from tools.studio_server import SCOPE, ServedStudio

TICKETS = {
    "TableName": "Tickets",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "status")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-status",
            "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
BRIGHTNESS = """
(canvas) => {
  const context = canvas.getContext("2d");
  const {width, height} = canvas;
  const data = context.getImageData(0, 0, width, height).data;
  const rows = [];
  for (let y = 0; y < height; y++) {
    let sum = 0;
    for (let x = 0; x < width; x++) {
      const at = 4 * (y * width + x);
      sum += data[at] + data[at + 1] + data[at + 2];
    }
    rows.push(sum);
  }
  return rows;
}
"""


class Desk:
    """An engine with a table whose clock a test moves, ten minutes behind."""

    def __init__(self) -> None:
        self.clock = ManualClock(float(int(time.time()) - 600))
        self.engine = Engine.open(clock=self.clock)
        self.engine.call("CreateTable", TICKETS, SCOPE)
        self.chance = random.Random(11)

    def put(self, name: str, status: str = "open") -> None:
        item = {"pk": {"S": name}, "status": {"S": status}}
        self.engine.call("PutItem", {"TableName": "Tickets", "Item": item}, SCOPE)

    def plant_hot_key(self, seconds: int = 60) -> None:
        """Ten writes a second, of which 62 % go to one key."""
        for second in range(seconds):
            for number in range(50):
                self.put("TICKET#42" if number < 31 else f"TICKET#{100 + (second * 19 + number) % 60}")
            self.clock.advance(1.0)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    with closing(made.engine):
        yield made


def zipf() -> Design:
    """Changes to pages by Zipf's law."""
    writes = [update("body", per_second=600, peak_per_second=600, item_bytes=500, skew=1.6)]
    return design(
        table(entity("Page", text("page_id"), text("body"), pk="PAGE#{page_id}", writes=writes, items=2_000))
    )


def findings(page: Page) -> Any:
    return page.get_by_role("list", name="Diagnosis").get_by_role("listitem")


def plot(page: Page) -> Any:
    return page.get_by_role("application")


def readout(page: Page) -> Any:
    return page.locator("#heat-readout")


def test_a_hot_key_is_a_bright_row_and_is_named_with_its_share(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """The row is at its key's place, the sentence has the key and the share, and the list leads to its items."""
    studio_server = start_studio(desk.engine)
    desk.plant_hot_key()
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60", color_scheme="dark")
    expect(findings(page).first).to_contain_text("TICKET#42 receives 62% of writes")
    expect(findings(page).first).to_contain_text("which is 32 times as much")
    expect(plot(page)).to_have_attribute("data-rows", "61")
    rows = page.locator(".heat-plot canvas").first.evaluate(BRIGHTNESS)
    keys = page.locator(".heat-keys li")

    assert rows.index(max(rows)) // (len(rows) / 61) < 1, "TICKET#42 is before TICKET#100"
    expect(keys.first).to_contain_text("TICKET#42")
    expect(keys.first).to_contain_text("62%")
    keys.first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/data/Tickets\?.*TICKET%2342"))


def test_keys_in_order_are_diagnosed(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """A diagonal is called one, with its first and last key."""
    studio_server = start_studio(desk.engine)
    for number in range(120):
        desk.put(f"ORDER#{number}")
        desk.clock.advance(0.5)
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60")

    expect(findings(page).first).to_contain_text("Sequential keys")
    expect(findings(page).first).to_contain_text("ORDER#119")


def test_an_index_shows_its_own_keys_and_the_map_is_a_table_too(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """Rows of an index are its partition keys; as a table they can be read."""
    studio_server = start_studio(desk.engine)
    for number in range(30):
        desk.put(f"T#{number}", "open" if number % 3 else "closed")
    page = pages(studio_server, "/heat/Tickets?metric=writes")
    page.get_by_label("Table or index").select_option("by-status")
    page.get_by_role("radio", name="Table", exact=True).click()
    row = page.get_by_role("region", name="Hottest rows").get_by_role("row").nth(1)

    expect(row).to_contain_text("open")
    expect(row).to_contain_text("67%")
    assert "index=by-status" in page.url
    page.reload()
    expect(row).to_contain_text("open")


def test_the_map_goes_on_by_itself(desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]) -> None:
    """New keys and new columns come without a whole map, and a pause holds it."""
    studio_server = start_studio(desk.engine)
    desk.put("TICKET#5")
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60")
    expect(plot(page)).to_have_attribute("data-rows", "1")
    query: list[str] = []
    page.on("request", lambda request: query.append(request.url))
    desk.clock.advance(2.0)
    desk.put("TICKET#4")
    expect(plot(page)).to_have_attribute("data-rows", "2")
    maps = [url for url in query if "/api/heat?" in url]

    assert maps, "it was asked again"
    assert all("layout=" in url and "since_s=" in url for url in maps)
    page.get_by_role("button", name="Pause").click()
    expect(page).to_have_url(re.compile("source=paused"))
    desk.put("TICKET#3")
    page.wait_for_timeout(1_500)
    expect(plot(page)).to_have_attribute("data-rows", "2")
    page.get_by_role("button", name="Resume").click()
    expect(plot(page)).to_have_attribute("data-rows", "3")


def test_a_brush_zooms_and_the_url_keeps_it(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """A rectangle becomes the view, a reload shows the same, and all can be shown again."""
    studio_server = start_studio(desk.engine)
    desk.plant_hot_key(30)
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60")
    expect(findings(page).first).to_be_visible()  # it comes after the map, and moves it
    box = plot(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.6, steps=4)
    page.mouse.up()

    expect(page).to_have_url(re.compile(r"first=TICKET.*from=\d+"))
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    expect(page.get_by_text("TICKET#42", exact=True).locator("visible=true").first).to_be_visible()
    labels = page.locator(".heat-labels").inner_text()
    page.reload()
    expect(page.get_by_role("button", name="Show all")).to_be_visible()
    assert page.locator(".heat-labels").inner_text() == labels
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)


def test_zooming_into_ranges_of_keys_shows_the_keys(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """Where rows are ranges, the part that is brushed comes in finer rows; the URL keeps it, and all can be shown again."""
    studio_server = start_studio(desk.engine)
    watch = studio_server.studio.monitor
    assert watch is not None
    with watch.lock:
        for number in range(4_000):
            touch = ItemAccess(table_arn(SCOPE, "Tickets"), None, _key(f"KEY#{number}"), 0.0, 1.0)
            watch.heat.note("PutItem", SCOPE, desk.clock.now() + number // 800, 0.0, (touch,), None, b"")
    desk.clock.advance(5.0)
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60")
    expect(plot(page)).to_have_attribute("data-rows", "1000")
    expect(findings(page).first).to_be_visible()  # it comes after the map, and moves it
    box = plot(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] * 0.1)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] * 0.2, steps=4)
    page.mouse.up()

    expect(page).to_have_url(re.compile(r"keys=[0-9a-f]+-[0-9a-f]+"))
    expect(plot(page)).to_have_attribute("data-rows", re.compile(r"^[34]\d\d$"))
    expect(page.get_by_text("some keys of Tickets")).to_be_visible()
    rows = plot(page).get_attribute("data-rows")
    page.reload()
    expect(plot(page)).to_have_attribute("data-rows", rows or "")
    page.get_by_role("button", name="Show all").click()
    expect(plot(page)).to_have_attribute("data-rows", "1000")


def test_the_keyboard_walks_zooms_and_opens(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """Arrow keys move a cell that is read out, plus and minus zoom, Enter opens what lies behind it."""
    studio_server = start_studio(desk.engine)
    desk.plant_hot_key(20)
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60")
    expect(plot(page)).to_be_visible()
    plot(page).focus()
    page.keyboard.press("Home")
    expect(readout(page)).to_contain_text("TICKET#42 ·")
    expect(readout(page)).to_contain_text("31 write units")
    page.keyboard.press("ArrowDown")
    expect(readout(page)).to_contain_text("TICKET#100 ·")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("first="))
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("first="))
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="TICKET#42")

    expect(panel).to_contain_text("PutItem 31")
    expect(panel.get_by_role("link", name="TICKET#42")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_the_simulator_paints_its_hottest_bucket(
    start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """Zipf's first key is in the brightest row, and the scenario is the URL's."""
    made = zipf()
    studio_server = start_studio(None, made)
    name = made.tables[0].name
    page = pages(studio_server, f"/heat/{name}?source=simulator&hours=0.5", color_scheme="dark")
    expect(plot(page)).to_be_visible(timeout=20_000)
    busiest = page.locator(".heat-keys li .heat-key").first.inner_text()
    rows = page.locator(".heat-plot canvas").first.evaluate(BRIGHTNESS)
    plot(page).focus()
    page.keyboard.press("Home")
    expect(readout(page)).to_contain_text(busiest)
    brightest = rows.index(max(rows)) // (len(rows) / 64)
    labels = page.locator(".heat-labels .lit")

    assert 0 <= brightest < 64
    expect(labels).to_contain_text(busiest)
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog")
    expect(panel).to_contain_text("Write units per second")
    expect(panel.get_by_role("row").nth(1)).to_contain_text(busiest)
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.get_by_label("Seed").fill("3")
    page.get_by_label("Burst").fill("nonsense")
    expect(page.get_by_role("button", name="Simulate")).to_be_disabled()
    page.get_by_label("Burst").fill("5x60s@2")
    page.get_by_role("button", name="Simulate").click()
    expect(page).to_have_url(re.compile("burst=5x60s%402.*seed=3"))
    expect(page.get_by_role("button", name="Simulate")).to_be_visible(timeout=20_000)
    expect(findings(page).first).to_contain_text("Writes of")


def test_a_thousand_rows_and_six_hundred_columns_are_painted(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """All cells go into the picture; how long it takes is measured, and here only kept from being absurd."""
    studio_server = start_studio(desk.engine)
    fill(studio_server, desk.clock)
    page = pages(studio_server, "/heat/Tickets?metric=writes")
    expect(plot(page)).to_have_attribute("data-rows", "1000", timeout=30_000)
    expect(plot(page)).to_have_attribute("data-columns", "600")
    painted = page.evaluate(
        "performance.getEntriesByName('tavola:heat').map(each => [each.detail.rows, each.detail.columns, each.duration])"
    )

    whole = [took for rows, columns, took in painted if (rows, columns) == (1000, 600)]
    assert whole
    assert min(whole) < 500


def fill(studio_server: ServedStudio, clock: ManualClock) -> None:
    """Give a thousand keys something in each of six hundred seconds, without asking the engine for it."""
    watch = studio_server.studio.monitor
    assert watch is not None
    arn = table_arn(SCOPE, "Tickets")
    schema_keys = [_key(f"KEY#{number}") for number in range(1_000)]
    start = int(clock.now())
    clock.advance(599.0)
    with watch.lock:
        for second in range(600):
            for key in schema_keys[second % 10 :: 10]:
                touch = ItemAccess(arn, None, key, 0.0, 1.0 + second % 7)
                watch.heat.note("PutItem", SCOPE, start + second, 0.0, (touch,), None, b"")


def _key(name: str) -> bytes:
    from tavola.keys import KeyAttribute, KeySchema

    return KeySchema((KeyAttribute("pk", "S"),)).key_of({"pk": {"S": name}})


def test_on_a_phone_nothing_runs_over(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """At 390 pixels the page has the map and no sideways scroll."""
    studio_server = start_studio(desk.engine)
    desk.plant_hot_key(10)
    page = pages(studio_server, "/heat/Tickets?span=60", viewport={"width": 390, "height": 844})
    expect(plot(page)).to_be_visible()

    assert plot(page).bounding_box()["width"] > 280
    assert not overflow(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(
    desk: Desk, start_studio: StartStudio, pages: Callable[..., Page], scheme: str
) -> None:
    """axe-core finds nothing: on the map with an open cell, on the table, in the simulator."""
    made = zipf()
    studio_server = start_studio(desk.engine, made)
    desk.plant_hot_key(10)
    page = pages(studio_server, "/heat/Tickets?metric=writes&span=60", color_scheme=scheme)
    expect(plot(page)).to_be_visible()

    assert not accessibility_faults(page)
    plot(page).focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Partition key")
    assert not accessibility_faults(page)
    page.goto(f"{studio_server.url}/heat/Tickets?look=table&span=60")
    expect(page.get_by_role("region", name="Hottest rows")).to_be_visible()
    assert not accessibility_faults(page)
    page.goto(f"{studio_server.url}/heat/{made.tables[0].name}?source=simulator&hours=0.2")
    expect(plot(page)).to_be_visible(timeout=20_000)
    assert not accessibility_faults(page)

"""Time: changes as they come, the past, an item's history, and the way back."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.studio.api import changes as changes_api
from tavola.studio.changes import StreamFollower
from tests.browser.stage import accessibility_faults, overflow
from tests.browser.studio.conftest import StartStudio
from tools.studio_server import SCOPE, ServedStudio

SEEN = """
window.seen = [];
const Real = window.EventSource;
window.EventSource = class extends Real {
  addEventListener(name, take) {
    super.addEventListener(name, event => {
      if (name === "changes") for (const each of JSON.parse(event.data).changes) window.seen.push(each.sequence);
      take(event);
    });
  }
};
"""

KEY = json.dumps({"pk": {"S": "ORDER#1"}, "sk": {"S": "HEAD"}})


def made(*, stream: bool = True, kept: bool = True) -> Engine:
    """Return an engine with one table; its clock is an hour behind until it is moved."""
    clock = ManualClock((datetime.now(UTC) - timedelta(hours=1)).timestamp())
    engine = Engine.open(clock=clock)
    engine.call(
        "CreateTable",
        {
            "TableName": "Orders",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
            **(
                {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
                if stream
                else {}
            ),
        },
        SCOPE,
    )
    if kept:
        setting = {"PointInTimeRecoveryEnabled": True}
        engine.call(
            "UpdateContinuousBackups",
            {"TableName": "Orders", "PointInTimeRecoverySpecification": setting},
            SCOPE,
        )
    return engine


@pytest.fixture
def orders(start_studio: StartStudio) -> Iterator[ServedStudio]:
    """A studio on one empty table with a stream, whose past is kept."""
    engine = made()
    with closing(engine):
        yield start_studio(engine)


def put(studio_server: ServedStudio, number: int, **more: Any) -> None:
    """Write an order behind the studio's back."""
    item = {"pk": {"S": f"ORDER#{number}"}, "sk": {"S": "HEAD"}, **more}
    studio_server.call("PutItem", {"TableName": "Orders", "Item": item})


def live(page: Page) -> None:
    """Wait until the stream is open."""
    page.wait_for_selector("[data-state=live]")


def advance(studio_server: ServedStudio, seconds: float) -> str:
    """Let time pass for the engine, and return the moment half way as the URL takes it."""
    clock = studio_server.engine.clock
    assert isinstance(clock, ManualClock)
    half = datetime.fromtimestamp(clock.now() + seconds / 2, UTC)
    clock.advance(seconds)
    return half.isoformat().replace("+00:00", "Z")


def test_a_change_appears_with_what_it_changed(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A change is there at once: entity, key, old and new values; and in full when it is chosen."""
    put(orders, 1, status={"S": "open"})
    page = pages(orders, "/time/Orders")
    live(page)
    put(orders, 1, status={"S": "closed"}, note={"S": "<img src=x onerror=alert(1)>"})
    row = page.get_by_role("option").first
    expect(row).to_contain_text("status open → closed")
    expect(row).to_contain_text("ORDER#1")
    row.click()
    detail = page.get_by_role("region", name="Change details")

    expect(detail.get_by_role("row", name="status")).to_contain_text("open")
    expect(detail.get_by_role("row", name="note")).to_contain_text("<img src=x onerror=alert(1)>")
    assert "change=" in page.url
    assert page.locator(".time-rows img").count() == 0


def test_two_lost_connections_lose_and_double_nothing(
    orders: ServedStudio, pages: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server drops the connection twice in the middle of ten thousand changes; each is had once."""
    real = changes_api._events
    connections = 0

    async def dropping(follower: StreamFollower) -> AsyncIterator[bytes]:
        nonlocal connections
        connections += 1
        sent = 0
        async for event in real(follower):
            yield event
            sent += event.startswith(b"event: changes")
            if connections <= 2 and sent >= 4:
                return

    monkeypatch.setattr(changes_api, "_events", dropping)
    page = pages(orders, "/time/Orders?tab=past")
    page.add_init_script(SEEN)
    page.goto(f"{orders.url}/time/Orders")
    live(page)
    for start in range(0, 10_000, 250):
        for number in range(start, start + 250):
            put(orders, number)
    expect(page.get_by_text("10,000 changes")).to_be_visible(timeout=30_000)
    seen = page.evaluate("window.seen")

    assert connections == 3
    assert len(seen) == len(set(seen)) == 10_000
    assert page.locator("*").count() < 2_000


SIGHT = """seen => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !seen });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_page_that_nobody_sees_lets_its_connection_go(
    orders: ServedStudio, pages: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser has six connections for all tabs of a server, so one in the background gives its own back, and misses nothing."""
    real = changes_api._events
    open_ = opened = 0

    async def counted(follower: StreamFollower) -> AsyncIterator[bytes]:
        nonlocal open_, opened
        open_, opened = open_ + 1, opened + 1
        try:
            async with aclosing(real(follower)) as events:  # type: ignore[type-var]
                async for event in events:
                    yield event
        finally:
            open_ -= 1

    monkeypatch.setattr(changes_api, "_events", counted)
    page = pages(orders, "/time/Orders?tab=past")
    page.clock.install()
    page.goto(f"{orders.url}/time/Orders")
    live(page)
    first = opened  # the page before this one may have opened one too
    put(orders, 1)
    expect(page.get_by_role("option")).to_have_count(1)
    page.evaluate(SIGHT, False)
    page.clock.fast_forward(21_000)
    expect(page.locator("[data-state=live]")).to_have_count(0)
    for _ in range(50):
        if not open_:
            break
        page.wait_for_timeout(100)
    assert (open_, opened) == (0, first)
    put(orders, 2)
    page.evaluate(SIGHT, True)
    live(page)

    expect(page.get_by_role("option")).to_have_count(2)
    assert (open_, opened) == (1, first + 1)


def test_pause_holds_what_comes(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """While it is paused nothing moves, what waits is counted, and nothing of it is lost."""
    page = pages(orders, "/time/Orders")
    live(page)
    put(orders, 1)
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("p")
    for number in range(2, 12):
        put(orders, number)
    expect(page.get_by_text("10 held back")).to_be_visible()
    expect(page.get_by_role("option")).to_have_count(1)
    page.get_by_role("button", name="Resume").click()

    expect(page.get_by_role("option")).to_have_count(11)


def test_filters_and_replay(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """The stream is narrowed by event and key, in the URL too, and what it still has can be had again."""
    put(orders, 1)
    put(orders, 1, status={"S": "open"})
    put(orders, 22)
    page = pages(orders, "/time/Orders?events=INSERT")
    live(page)
    page.get_by_role("button", name="Replay all").click()
    expect(page.get_by_role("option")).to_have_count(2)
    page.get_by_label("Key begins with").fill("ORDER#22")
    expect(page.get_by_role("option")).to_have_count(1)
    put(orders, 220)
    put(orders, 3)
    expect(page.get_by_role("option")).to_have_count(2)
    page.get_by_role("radio", name="All").click()

    assert "prefix=ORDER" in page.url
    assert "events" not in page.url
    page.get_by_role("option").last.click()
    page.get_by_role("button", name="Replay from here").click()
    expect(page.get_by_role("option")).to_have_count(2)


def test_a_chosen_change_is_in_the_link(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """After a reload the page shows the selected change and those after it, and can replay from there."""
    page = pages(orders, "/time/Orders")
    live(page)
    for number in range(1, 4):
        put(orders, number)
    expect(page.get_by_role("option")).to_have_count(3)
    page.get_by_role("option").nth(1).click()
    page.reload()

    expect(page.get_by_role("option")).to_have_count(2)
    expect(page.get_by_role("option", selected=True)).to_contain_text("ORDER#2")
    page.get_by_role("button", name="Replay from here").click()
    expect(page.get_by_role("option", selected=True)).to_have_count(0)
    page.reload()
    expect(page.get_by_role("option")).to_have_count(2)


def test_a_replay_is_in_the_order_of_time(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Shards are read one after another; the list has the newest first all the same."""
    for number in range(40):
        put(orders, number)
        advance(orders, 1)
    page = pages(orders, "/time/Orders?from=start")
    expect(page.get_by_text("40 changes")).to_be_visible()
    shards = orders.call("DescribeTable", {"TableName": "Orders"})["Table"]["LatestStreamArn"]
    described = orders.call("DescribeStream", {"StreamArn": shards})["StreamDescription"]
    shown = [int(row.get_attribute("data-sequence") or 0) for row in page.get_by_role("option").all()]

    assert len(described["Shards"]) > 1
    assert len(shown) > 10
    assert shown == sorted(shown, reverse=True)


def test_a_question_that_is_none_says_why(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A link with a filter that there is not is refused in words, and not taken for a lost connection."""
    page = pages(orders, "/time/Orders?events=UPSERT", trouble=True)

    expect(page.get_by_text("Unknown event")).to_be_visible()
    expect(page.locator("[data-state=refused]")).to_be_visible()


def test_large_items_do_not_fill_the_page(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Of changes of the largest items only as many are kept as fit; what was let go is counted."""
    page = pages(orders, "/time/Orders")
    live(page)
    for number in range(110):
        put(orders, number, text={"S": "<b>" + "x" * 390_000})
    counted = page.get_by_text("110 changes, showing the latest")
    expect(counted).to_be_visible(timeout=20_000)
    page.get_by_role("option").first.click()

    expect(page.get_by_role("region", name="Change details")).to_contain_text("<b>xxx")
    saved = int(counted.inner_text().split("showing the latest ")[1].split()[0])
    assert 50 < saved < 105


def test_a_stream_is_turned_on(start_studio: StartStudio, pages: Callable[..., Page]) -> None:
    """A table without a stream says so, and gets one."""
    engine = made(stream=False)
    with closing(engine):
        studio_server = start_studio(engine)
        page = pages(studio_server, "/time/Orders")
        page.get_by_role("button", name="Turn on stream").click()
        live(page)
        put(studio_server, 1)

        expect(page.get_by_role("option")).to_have_count(1)


def test_the_slider_shows_what_was(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A moment is chosen by keyboard or typed; every page shows it, says so, and leads back."""
    put(orders, 1, status={"S": "open"})
    then = advance(orders, 600)
    put(orders, 1, status={"S": "closed"})
    advance(orders, 600)
    page = pages(orders, "/time/Orders?tab=past")
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "now")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    banner = page.get_by_text("Viewing data as of")
    expect(banner).to_be_visible()
    assert "at=" in page.url
    page.get_by_role("button", name="Return to now").first.click()
    expect(banner).to_have_count(0)

    page.goto(f"{orders.url}/data/Orders?at={then}")
    expect(banner).to_be_visible()
    expect(page.get_by_text("open", exact=True).first).to_be_visible()
    expect(page.get_by_text("closed", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Return to now").click()
    expect(page.get_by_text("closed", exact=True).first).to_be_visible()


def test_the_right_end_is_now(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Dragged to its end the slider is at now, whatever part of a second the past begins at."""
    put(orders, 1)
    then = advance(orders, 600.7)
    page = pages(orders, f"/time/Orders?tab=past&at={then}")
    banner = page.get_by_text("Viewing data as of")
    expect(banner).to_be_visible()
    slider = page.get_by_role("slider")
    slider.evaluate("e => { e.value = e.max; e.dispatchEvent(new Event('input', { bubbles: true })); }")

    expect(banner).to_have_count(0)
    expect(slider).to_have_attribute("aria-valuetext", "now")
    assert "at=" not in page.url


def test_an_invalid_time_is_reported(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A link with an invalid time says so and leads back to the present; a time without a zone is UTC."""
    page = pages(orders, "/time/Orders?tab=restore&at=rubbish")
    expect(page.get_by_text("“rubbish” is not a valid time")).to_be_visible()
    page.get_by_role("button", name="Return to now").click()
    expect(page.get_by_text("is no time")).to_have_count(0)

    shown = []
    for at in ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00", "1772366400"):
        page.goto(f"{orders.url}/time/Orders?tab=restore&at={at}")
        shown.append(page.get_by_text("Viewing data as of").locator("strong").inner_text())
    assert len(set(shown)) == 1


def test_the_slider_opens_on_any_page(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Key t brings the slider, and a typed time is checked against what is kept."""
    put(orders, 1)
    page = pages(orders, "/time/Orders?tab=restore")
    page.wait_for_selector("text=Restore to a point in time")
    page.keyboard.press("t")
    expect(page.get_by_role("slider", name="Point in time")).to_be_focused()
    typed = page.get_by_label("Go to time")
    typed.fill("rubbish")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page.get_by_text("Not a valid time")).to_be_visible()
    typed.fill("3h")
    page.get_by_role("button", name="Go", exact=True).click()

    expect(page.get_by_text("The earliest")).to_be_visible()


def test_an_item_has_a_history_and_goes_back(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Versions with their differences and who made them; one is put back, and that is undone."""
    put(orders, 1, status={"S": "open"}, updated_by={"S": "ann"})
    advance(orders, 60)
    put(orders, 1, status={"S": "closed"}, updated_by={"S": "bob"})
    page = pages(orders, "/time/Orders?tab=item")
    page.get_by_label("pk (partition key)").fill("ORDER#1")
    page.get_by_label("sk (sort key)").fill("HEAD")
    page.get_by_role("button", name="Show history").click()
    versions = page.get_by_role("list", name="Versions, newest first").locator("> li")
    expect(versions).to_have_count(3)
    expect(versions.nth(0)).to_contain_text("by bob")
    expect(versions.nth(0).get_by_role("row", name="status")).to_contain_text("open")
    expect(versions.nth(1)).to_contain_text("by ann")
    versions.nth(1).get_by_role("button", name="Compare with current").click()
    expect(versions.nth(1).get_by_role("row", name="status")).to_contain_text("closed")
    versions.nth(1).get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("The item was restored.")).to_be_visible()
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "HEAD"}}
    back = orders.call("GetItem", {"TableName": "Orders", "Key": key})["Item"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    again = orders.call("GetItem", {"TableName": "Orders", "Key": key})["Item"]

    assert back["status"] == {"S": "open"}
    assert again["status"] == {"S": "closed"}
    assert "key=" in page.url


def test_versions_of_one_second_are_told_apart(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Two that share a second have their milliseconds; one alone has not."""
    clock = orders.engine.clock
    assert isinstance(clock, ManualClock)
    clock.advance(10 - clock.now() % 1)
    put(orders, 1, status={"S": "open"})
    clock.advance(0.25)
    put(orders, 1, status={"S": "paid"})
    clock.advance(5)
    put(orders, 1, status={"S": "sent"})
    page = pages(orders, "/time/Orders?tab=item&" + "key=" + quote(KEY))
    moments = page.locator(".time-versions strong.num")

    expect(moments.nth(0)).to_have_text(re.compile(r":\d\d$"))
    expect(moments.nth(1)).to_have_text(re.compile(r":\d\d\.2[45]\d$"))
    expect(moments.nth(2)).to_have_text(re.compile(r":\d\d\.(000|999)$|:\d\d\.00\d$"))


def test_an_item_without_a_past_offers_to_keep_it(
    start_studio: StartStudio, pages: Callable[..., Page]
) -> None:
    """A table that keeps nothing says so with the button, and with no JSON."""
    with closing(made(stream=False, kept=False)) as engine:
        studio_server = start_studio(engine)
        put(studio_server, 1)
        page = pages(studio_server, "/time/Orders?tab=item&" + "key=" + quote(KEY), trouble=True)
        page.get_by_role("button", name="Turn on point-in-time recovery").click()
        expect(page.get_by_role("list", name="Versions, newest first")).to_be_visible()


def test_what_others_did_meanwhile_stays(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """Neither restoring an item nor undoing that overwrites a concurrent change."""
    put(orders, 1, status={"S": "open"})
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "HEAD"}}
    advance(orders, 60)
    orders.call("DeleteItem", {"TableName": "Orders", "Key": key})
    page = pages(orders, f"/time/Orders?tab=item&key={quote(json.dumps(key))}")
    versions = page.get_by_role("list", name="Versions, newest first").locator("> li")
    expect(versions.nth(0)).to_contain_text("deleted")
    put(orders, 1, status={"S": "theirs"})
    versions.nth(1).get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("The item changed in the meantime, so nothing was written")).to_be_visible()
    assert orders.call("GetItem", {"TableName": "Orders", "Key": key})["Item"]["status"] == {"S": "theirs"}

    expect(versions).to_have_count(4)
    versions.nth(2).get_by_role("button", name="Restore").click()
    page.get_by_role("dialog").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("The item was restored.")).to_be_visible()
    put(orders, 1, status={"S": "again theirs"})
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("nothing was undone")).to_be_visible()
    assert orders.call("GetItem", {"TableName": "Orders", "Key": key})["Item"]["status"] == {
        "S": "again theirs"
    }


def test_a_table_is_restored(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A moment becomes a new table, with its progress, beside the one that goes on."""
    for number in range(20):
        put(orders, number)
    then = advance(orders, 60)
    for number in range(10, 40):
        put(orders, number, late={"BOOL": True})
    page = pages(orders, f"/time/Orders?tab=restore&at={then}")
    page.get_by_role("button", name="Choose restore point").click()
    page.get_by_label("New table name").fill("Orders-then")
    page.get_by_role("dialog").get_by_role("button", name="Restore", exact=True).click()
    expect(page.get_by_text("Orders-then was restored")).to_be_visible(timeout=10_000)
    result = orders.call("Scan", {"TableName": "Orders-then"})["Items"]

    expect(page.get_by_role("link", name="Orders-then")).to_be_visible()
    assert len(result) == 20
    assert not any("late" in item for item in result)


def test_a_backup_is_made_and_listed(orders: ServedStudio, pages: Callable[..., Page]) -> None:
    """A backup is made by one press and can be restored."""
    put(orders, 1)
    page = pages(orders, "/time/Orders?tab=restore")
    page.get_by_role("button", name="Create backup").click()

    expect(page.get_by_role("row", name="Orders-2")).to_be_visible()


def test_read_only_changes_nothing(start_studio: StartStudio, pages: Callable[..., Page]) -> None:
    """Where nothing may be changed, the buttons that would are off, and looking works."""
    engine = made()
    with closing(engine):
        studio_server = start_studio(engine, read_only=True)
        put(studio_server, 1)
        page = pages(studio_server, "/time/Orders?tab=restore")
        expect(page.get_by_role("button", name="Choose restore point")).to_be_disabled()
        expect(page.get_by_role("button", name="Create backup")).to_be_disabled()
        page.goto(f"{studio_server.url}/time/Orders?from=start")

        expect(page.get_by_role("option")).to_have_count(1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(orders: ServedStudio, pages: Callable[..., Page], scheme: str) -> None:
    """axe-core finds no problems in any filled tab, and live counters are not announced to screen readers."""
    key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "HEAD"}}
    for status in ("open", "held", "closed"):
        put(orders, 1, status={"S": status}, tags={"SS": [status, "all"]})
        then = advance(orders, 60)
    page = pages(orders, "/time/Orders?from=start", color_scheme=scheme)
    page.get_by_role("option").first.click()
    expect(page.get_by_role("region", name="Change details")).to_be_visible()
    assert accessibility_faults(page) == []
    assert not any(
        text.strip().startswith("3 changes") for text in page.get_by_role("status").all_inner_texts()
    )

    page.goto(f"{orders.url}/time/Orders?tab=past&at={then}")
    expect(page.get_by_role("slider")).to_be_visible()
    assert accessibility_faults(page) == []
    assert not any("ago" in text for text in page.get_by_role("status").all_inner_texts())

    page.goto(f"{orders.url}/time/Orders?tab=item&key={quote(json.dumps(key))}")
    for at in range(3):
        page.get_by_role("button", name="Compare with current").nth(at).click()
    for _ in range(2):
        page.get_by_role("button", name="Show item").first.click()  # then it is called otherwise
    expect(page.get_by_role("heading", name="Changes since then")).to_have_count(3)
    assert accessibility_faults(page) == []

    page.goto(f"{orders.url}/time/Orders?tab=restore")
    page.get_by_role("button", name="Create backup").click()
    expect(page.get_by_role("row", name="Orders-2")).to_be_visible()
    page.get_by_role("button", name="Choose restore point").click()
    assert accessibility_faults(page) == []


def test_a_phone_shows_all_of_it(studio_server: ServedStudio, phone: Page) -> None:
    """Nothing is wider than a phone."""
    for tab in ("live", "past", "item", "restore"):
        phone.goto(f"{studio_server.url}/time/prod-tickets-unified?tab={tab}&from=start")
        phone.wait_for_selector("[role=tabpanel]")
        phone.wait_for_timeout(300)

        assert not overflow(phone)

"""Operations: live request counts, expensive requests and their replay, and explanations of access."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tavola.cli.studio_options import directory_reader
from tavola.engine import Engine
from tavola.protocol.faults import Fault
from tavola.studio.monitoring.counters import CELLS_MAX
from tavola.studio.studio import LogQuery
from tests.browser.stage import NARROW, Stage, accessibility_faults, overflow
from tests.browser.studio.conftest import StartStudio
from tools.studio_server import REGION, SCOPE, ServedStudio

ORDERS = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "by")],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "ByWhom",
            "KeySchema": [{"AttributeName": "by", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
            "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        }
    ],
    "ProvisionedThroughput": {"ReadCapacityUnits": 10, "WriteCapacityUnits": 5},
}
ARN = f"arn:aws:dynamodb:{REGION}:000000000000:table/Orders"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Sid": "Read", "Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": ARN},
        {"Sid": "Never", "Effect": "Deny", "Action": "dynamodb:DeleteItem", "Resource": "*"},
    ],
}
DIRECTORY = {
    "tavola_iam": 1,
    "accounts": {
        "000000000000": {"policies": {"Reading": POLICY}, "users": {"ann": {"policies": ["Reading"]}}}
    },
}
EVIL = "<img src=x onerror=document.title='run'>"
RECORDS = 450


def _records() -> list[dict[str, Any]]:
    return [
        {
            "eventTime": f"2026-11-16T10:{place // 60:02}:{place % 60:02}Z",
            "eventName": "GetItem" if place % 3 else "PutItem",
            "eventID": f"id-{place}",
            "userIdentity": {"userName": EVIL if place == RECORDS - 1 else "ann"},
            "requestParameters": {"tableName": "Orders", "keys": [f"hash-{place % 9}"]},
            **({"errorCode": "ThrottlingException"} if place % 50 == 0 else {}),
            "additionalEventData": {
                "decision": "allowed",
                "latencyMs": 0.04,
                "consumed": [{"table": "Orders", "reads": 0.5, "writes": 0.0}],
            },
        }
        for place in range(RECORDS)
    ]


def _log(question: LogQuery) -> Iterator[Mapping[str, Any]]:
    expected = [
        record
        for record in reversed(_records())
        if question.operation in (None, record["eventName"])
        and question.caller in (None, record["userIdentity"]["userName"])
        and question.fault in (None, record.get("errorCode"))
        and question.key in (None, *record["requestParameters"]["keys"])
        and question.index is None
        and (question.item is None or record["requestParameters"]["keys"] == ["hash-3"])
    ]
    return iter(expected[: question.limit])


@pytest.fixture
def orders() -> Iterator[Engine]:
    """An engine with one provisioned table of forty items."""
    with closing(Engine.open()) as engine:
        engine.call("CreateTable", ORDERS, SCOPE)
        for place in range(40):
            item = {
                "pk": {"S": f"o#{place}"},
                "sk": {"S": "line"},
                "by": {"S": "ann"},
                "text": {"S": "x" * 3000},
            }
            engine.call("PutItem", {"TableName": "Orders", "Item": item}, SCOPE)
        yield engine


def get(studio_server: ServedStudio, times: int = 1) -> None:
    """Read an item behind the studio's back."""
    for _ in range(times):
        studio_server.call(
            "GetItem", {"TableName": "Orders", "Key": {"pk": {"S": "o#1"}, "sk": {"S": "line"}}}
        )


def lose(studio_server: ServedStudio) -> None:
    """Write what another has written first."""
    with pytest.raises(Fault):
        studio_server.call(
            "PutItem",
            {
                "TableName": "Orders",
                "Item": {"pk": {"S": "o#1"}, "sk": {"S": "line"}},
                "ConditionExpression": "attribute_not_exists(pk)",
            },
        )


def cells(page: Page, operation: str) -> list[str]:
    """Return the row of an operation in the table by operation."""
    row = page.get_by_role("region", name="By operation").get_by_role("row").filter(has_text=operation)
    return row.first.get_by_role("cell").all_inner_texts()


def test_calls_are_seen_as_they_are_made(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """The tiles, the table and the charts count requests, and continue without a reload."""
    studio_server = start_studio(orders)
    get(studio_server, 20)
    lose(studio_server)
    page = pages(studio_server, "/operations?w=60")

    def looked() -> None:
        rows = page.get_by_role("region", name="By operation")
        expect(rows.get_by_role("row").filter(has_text="GetItem")).to_contain_text("20")
        expect(page.get_by_text("ConditionalCheckFailedException × 1")).to_be_visible()
        expect(page.locator("figcaption").first).to_contain_text("Requests per second over the last minute")
        expect(page.get_by_text("Throttled requests, conflicts and failed conditions")).to_be_visible()
        get(studio_server, 5)
        expect(rows.get_by_role("row").filter(has_text="GetItem")).to_contain_text("25")
        assert cells(page, "GetItem")[1:2] == ["25"]

    stage.run(looked)


def test_a_pause_holds_the_numbers_still(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """P pauses and goes on; meanwhile nothing moves."""
    studio_server = start_studio(orders)
    get(studio_server, 3)
    page = pages(studio_server, "/operations?w=60")

    def looked() -> None:
        row = page.get_by_role("region", name="By operation").get_by_role("row").filter(has_text="GetItem")
        expect(row).to_contain_text("3")
        page.keyboard.press("p")
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        get(studio_server, 4)
        page.wait_for_timeout(1500)
        assert cells(page, "GetItem")[1] == "3"
        page.keyboard.press("p")
        expect(row.get_by_role("cell").nth(1)).to_have_text("7")

    stage.run(looked)


def test_the_url_holds_window_and_filters(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """What is chosen is in the address; a reload and going back show the same."""
    studio_server = start_studio(orders)
    get(studio_server, 2)
    studio_server.call("Scan", {"TableName": "Orders"})
    page = pages(studio_server, "/operations")

    def looked() -> None:
        page.get_by_role("radio", name="1 h").click()
        page.get_by_role("button", name="Scan", exact=True).click()
        expect(page).to_have_url(re.compile(r"w=3600&op=Scan"))
        rows = page.get_by_role("region", name="By operation").get_by_role("row")
        expect(rows).to_have_count(2)
        page.reload()
        expect(page.get_by_role("radio", name="1 h")).to_have_attribute("aria-checked", "true")
        expect(page.get_by_label("Operation", exact=True)).to_have_value("Scan")
        expect(rows).to_have_count(2)
        page.go_back()
        expect(page.get_by_label("Operation", exact=True)).to_have_value("")

    stage.run(looked)


def test_consumption_stands_against_its_limit(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """Each table and index says how much of what it is provisioned for it took, and is marked where it was more."""
    studio_server = start_studio(orders)
    studio_server.call("Scan", {"TableName": "Orders"})
    page = pages(studio_server, "/operations?w=60")

    def looked() -> None:
        table = page.locator(".operations-place").filter(
            has=page.get_by_role("heading", name="Orders", exact=True)
        )
        expect(table).to_contain_text("of 10 (")
        expect(table).to_contain_text("the limit is provisioned")
        expect(table).to_contain_text("over limit")
        expect(table.locator("figcaption")).to_contain_text(
            "Orders over the last minute: reads: peak 15/s of 10 (150%)"
        )

    stage.run(looked)


def test_who_has_no_traffic_gets_some(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """The empty page says what to do, and its button does it."""
    page = pages(start_studio(orders), "/operations")

    def looked() -> None:
        expect(page.get_by_role("heading", name="No traffic yet")).to_be_visible()
        page.get_by_role("button", name="Run sample reads").click()
        expect(page.get_by_role("region", name="By operation")).to_contain_text("Query")

    stage.run(looked)


def test_the_most_expensive_request_is_found_explained_and_replayed(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """A planted scan is first; it says why it is dear; once more it costs the same. A write is not made again."""
    studio_server = start_studio(orders)
    get(studio_server, 30)
    studio_server.call(
        "Scan",
        {
            "TableName": "Orders",
            "FilterExpression": "#b = :b",
            "ExpressionAttributeNames": {"#b": "by"},
            "ExpressionAttributeValues": {":b": {"S": "nobody"}},
        },
    )
    studio_server.call(
        "UpdateItem",
        {
            "TableName": "Orders",
            "Key": {"pk": {"S": "o#1"}, "sk": {"S": "line"}},
            "UpdateExpression": "SET note = :n",
            "ExpressionAttributeValues": {":n": {"S": "a private sentence"}},
        },
    )
    page = pages(studio_server, "/operations?tab=expensive")

    def looked() -> None:
        rows = page.locator(".operations-expensive-row")
        expect(rows.first).to_contain_text("Scan")
        rows.first.press("Enter")
        expect(page.get_by_text("Filters apply after reading")).to_be_visible()
        page.get_by_role("button", name="Run again").click()
        again = page.get_by_role("table", name="The request then and now")
        expect(again).to_contain_text("40 read, 0 returned")
        units = again.get_by_role("row").filter(has_text="Units").get_by_role("cell").all_inner_texts()
        assert units[0] == units[1]
        rows.first.click()
        rows.filter(has_text="UpdateItem").click()
        expect(page.get_by_role("button", name="Run again")).to_be_disabled()
        expect(page.get_by_label("Request of UpdateItem")).to_contain_text("S, 18 bytes")
        expect(page.get_by_text("a private sentence")).to_have_count(0)

    stage.run(looked)


def test_the_access_log_is_paged_filtered_and_harmless(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """Few of many rows are on the page; scrolling asks for more; a filter is in the URL; a name with HTML is text."""
    page = pages(start_studio(orders, log=_log), "/operations?tab=log")

    def looked() -> None:
        rows = page.locator("button.operations-log-row")
        expect(rows.first).to_contain_text(EVIL)
        expect(page.get_by_text("200 loaded, newest first")).to_be_visible()
        assert rows.count() < 60
        for _ in range(3):
            page.locator(".virtual").evaluate("box => { box.scrollTop = box.scrollHeight }")
            page.wait_for_timeout(250)
        expect(page.get_by_text("450 records")).to_be_visible()
        page.get_by_label("Operation", exact=True).fill("PutItem")
        expect(page.get_by_text("150 records")).to_be_visible()
        expect(page).to_have_url(re.compile("lop=PutItem"))
        rows.first.click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_contain_text('"eventName": "PutItem"')
        page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)
        assert page.title() != "run"

    stage.run(looked)


def test_the_log_is_narrowed_to_a_key_an_item_an_index_and_an_answer(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """The log has the filters of `tavola log`; a record's key leads to its other calls; an incomplete key is not a filter."""
    page = pages(start_studio(orders, log=_log), "/operations?tab=log")

    def looked() -> None:
        expect(page.get_by_text("200 loaded")).to_be_visible()
        page.locator("button.operations-log-row").first.click()
        page.get_by_role("button", name="Show requests for this key").click()
        expect(page.get_by_text("50 records")).to_be_visible()
        expect(page).to_have_url(re.compile(f"hash=hash-{(RECORDS - 1) % 9}"))
        page.get_by_role("button", name="Clear", exact=True).click()
        expect(page.get_by_text("200 loaded")).to_be_visible()
        page.get_by_label("Item", exact=True).fill('{"pk": {"S": ')
        expect(page.get_by_text("Invalid JSON")).to_be_visible()
        page.get_by_label("Item", exact=True).fill('{"pk": {"S": "o#1"}}')
        expect(page.get_by_text("50 records")).to_be_visible()
        page.get_by_label("Item", exact=True).fill("")
        page.get_by_label("Index", exact=True).fill("ByWhom")
        expect(page.get_by_text("No matching records")).to_be_visible()
        page.get_by_label("Index", exact=True).fill("")
        page.get_by_label("Result", exact=True).select_option("ThrottlingException")
        expect(page.get_by_text("9 records")).to_be_visible()
        page.reload()
        expect(page.get_by_label("Result", exact=True)).to_have_value("ThrottlingException")

    stage.run(looked)


def test_calls_that_are_not_told_apart_are_told_of(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """A hundred tables at a time are too many: the page says how many calls are in the sum alone, and names their row."""
    studio_server = start_studio(orders)
    for place in range(2 * CELLS_MAX + 20):
        with pytest.raises(Fault):
            studio_server.call("GetItem", {"TableName": f"Gone{place}", "Key": {"pk": {"S": "x"}}})
    page = pages(studio_server, "/operations?w=600")

    def looked() -> None:
        expect(page.get_by_text("requests are counted only in the totals")).to_be_visible()
        expect(page.get_by_text("single tables or operations may be undercounted")).to_be_visible()
        page.get_by_role("button", name="Gone0", exact=True).click()
        expect(page.get_by_text("with these filters some requests may be missing")).to_be_visible()

    stage.run(looked)


@pytest.fixture
def directory(tmp_path: Path) -> Any:
    path = tmp_path / "iam.json"
    path.write_text(json.dumps(DIRECTORY))
    return directory_reader(path)


def test_access_is_explained_with_the_statement_that_decides(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage, directory: Any
) -> None:
    """The request begins with the table's own key; a link to the verdict shows the verdict."""
    page = pages(start_studio(orders, directory=directory), "/operations?tab=iam")

    def looked() -> None:
        expect(page.get_by_label("Request", exact=True)).to_have_value(re.compile('"Orders"(.|\n)*"pk"'))
        page.get_by_role("button", name="Check access").click()
        expect(page.get_by_text("Allowed", exact=True)).to_be_visible()
        expect(page.get_by_text("Decided by policy Reading of user ann")).to_contain_text("(Read): Allow")
        page.get_by_label("Operation", exact=True).select_option("DeleteItem")
        page.get_by_role("button", name="Check access").click()
        expect(page.get_by_text("Denied", exact=True)).to_be_visible()
        expect(page.get_by_text("Decided by policy Reading of user ann")).to_contain_text("(Never): Deny")
        page.reload()
        expect(page.get_by_text("Denied", exact=True)).to_be_visible()
        page.get_by_label("Request", exact=True).fill("{ no json")
        page.get_by_role("button", name="Check access").click()
        expect(page.get_by_text("Invalid JSON")).to_be_visible()

    stage.run(looked)


def test_who_is_asked_about_is_whom_the_form_shows(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage, directory: Any
) -> None:
    """A caller whom the log was narrowed to is no principal of the form: each tab has its own."""
    page = pages(start_studio(orders, log=_log, directory=directory), "/operations?tab=log")

    def looked() -> None:
        page.get_by_label("Caller", exact=True).fill("somebody")
        expect(page.get_by_text("No matching records")).to_be_visible()
        page.get_by_role("tab", name="Access check").click()
        page.get_by_role("button", name="Check access").click()
        expect(page.get_by_text("Decided by policy Reading of user ann")).to_be_visible()
        page.get_by_role("tab", name="Access log").click()
        expect(page.get_by_label("Caller", exact=True)).to_have_value("somebody")

    stage.run(looked)


def test_what_is_not_there_says_how_to_have_it(
    start_studio: StartStudio, orders: Engine, pages: Callable[..., Page], stage: Stage
) -> None:
    """Without a log, a directory or an engine of this process, the page says what to start; `g o` leads there."""
    page = pages(start_studio(orders), "/data")

    def elsewhere(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "seen": "studio"})

    def looked() -> None:
        page.route("**/api/operations?*", elsewhere)
        page.keyboard.press("g")
        page.keyboard.press("o")
        expect(page.get_by_text("Only the studio's own requests are shown")).to_be_visible()
        page.get_by_role("tab", name="Access log").click()
        expect(page.get_by_text("--access-log access.log").first).to_be_visible()
        page.get_by_role("tab", name="Access check").click()
        expect(page.get_by_text("tavola iam init")).to_be_visible()

    stage.run(looked)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["overview", "expensive", "log", "iam"])
def test_axe_finds_nothing_where_there_is_something_to_see(
    start_studio: StartStudio,
    orders: Engine,
    pages: Callable[..., Page],
    stage: Stage,
    directory: Any,
    tab: str,
    theme: str,
) -> None:
    """With traffic, a log and a directory every tab keeps to WCAG 2.2 AA, and fits a phone."""
    studio_server = start_studio(orders, log=_log, directory=directory)
    get(studio_server, 5)
    lose(studio_server)
    page = pages(studio_server, f"/operations?tab={tab}&w=60", color_scheme=theme)

    def looked() -> None:
        if tab == "expensive":
            page.locator(".operations-expensive-row").first.click()
        elif tab == "iam":
            page.get_by_role("button", name="Check access").click()
            expect(page.get_by_text("Allowed", exact=True)).to_be_visible()
        elif tab == "log":
            expect(page.locator("button.operations-log-row").first).to_be_visible()
        else:
            expect(page.get_by_role("region", name="By operation")).to_be_visible()
        page.wait_for_timeout(300)
        assert not accessibility_faults(page)
        page.set_viewport_size(NARROW)
        page.wait_for_timeout(200)
        assert not overflow(page)
        assert not accessibility_faults(page)

    stage.run(looked)

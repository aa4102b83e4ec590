"""Editing in the studio: items of every type, many at once, and files; nothing lost, nothing run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from tavola import connect
from tavola.engine import Engine
from tavola.values import equal, item_size
from tests.browser.stage import NARROW, accessibility_faults, overflow
from tests.browser.studio.conftest import StartStudio
from tests.studio.edited import DESIGN, JOINED, Club, Member, State
from tests.studio.test_items import TEN
from tools.studio_server import REGION, SCOPE, ServedStudio

Pages = Callable[..., Page]
CLUB, PLAIN = "studio-club", "plain"
KEY = {"id": {"S": "ten"}, "n": {"N": "1"}}
HOSTILE = {
    "<img src=x onerror=\"document.title='run'\">": {"S": "<script>document.title='run'</script>"},
    "__proto__": {"S": "a name like any other"},
}
MANY = {f"attribute-{number:05d}": {"N": str(number)} for number in range(10_000)}


def table(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}],
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A club of twelve members, and a table that no design knows with an item of every type."""
    with closing(Engine.open()) as made:
        with connect(made, region=REGION) as db:
            db.create_tables(Club)
            for number in range(12):
                db.create(
                    Member(
                        member_id=f"m{number}", name=f"Member {number}", state=State.ACTIVE, joined_at=JOINED,
                        town="Lecce", points=10 * number, email=f"m{number}@club.example",
                    )
                )  # fmt: skip
        made.call("CreateTable", table(PLAIN), SCOPE)
        made.call("PutItem", {"TableName": PLAIN, "Item": {**KEY, **TEN, **HOSTILE}}, SCOPE)
        yield made


@pytest.fixture
def club(engine: Engine, start_studio: StartStudio) -> ServedStudio:
    """The studio on these tables."""
    return start_studio(engine, DESIGN)


def member(studio_server: ServedStudio, number: int = 1) -> dict[str, Any]:
    key = {"PK": {"S": f"MEMBER#m{number}"}, "SK": {"S": "MEMBER"}}
    result: dict[str, Any] = studio_server.call("GetItem", {"TableName": CLUB, "Key": key})["Item"]
    return result


def plain(studio_server: ServedStudio, name: str = PLAIN) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = studio_server.call("Scan", {"TableName": name})["Items"]
    return result


def item_path(name: str, key: dict[str, Any]) -> str:
    return f"/data/{name}?item={quote(json.dumps(key))}"


def member_path(number: int = 1) -> str:
    return item_path(CLUB, {"PK": {"S": f"MEMBER#m{number}"}, "SK": {"S": "MEMBER"}})


def value(page: Page, name: str) -> Locator:
    """Return the place of a value in the drawer."""
    return page.get_by_label(f"Value of {name}", exact=True)


def ready(page: Page) -> None:
    """Wait until the open item is read and measured."""
    page.wait_for_selector(".data-editor-gauge:not(.stale)", timeout=15_000)


def test_every_type_is_shown_edited_and_otherwise_unchanged(club: ServedStudio, pages: Pages) -> None:
    """A text is changed through the page; the nine other types, 38 digits and bytes stay what they were."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    for name in ("text", "number", "binary", "truth", "null", "list", "map", "texts", "numbers", "binaries"):
        expect(page.get_by_label(f"Name of {name}", exact=True)).to_have_value(name)
    expect(value(page, "number")).to_have_value("12345678901234567890123456789012345678")

    value(page, "empty").fill("no longer")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved:")).to_be_visible()

    (current,) = plain(club)
    assert current == {**KEY, **TEN, **HOSTILE, "empty": {"S": "no longer"}}


@pytest.mark.parametrize("mode", ["JSON", "DynamoDB JSON"])
def test_text_is_read_back_exactly(club: ServedStudio, pages: Pages, mode: str) -> None:
    """Switching to either JSON form and back changes nothing; a syntax error has its line and column."""
    (before,) = plain(club)
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    page.get_by_role("radio", name=mode, exact=True).click()
    text = page.get_by_label("Item as", exact=False)
    expect(text).to_have_value(re.compile("12345678901234567890123456789012345678"))
    response = text.input_value()
    text.fill(response.replace('"empty"', '"empty", '))
    expect(page.get_by_text(re.compile(r"Line \d+, column \d+"))).to_be_visible()
    text.fill(response.replace("{", '{"added": ' + ("1.50" if mode == "JSON" else '{"N": "1.50"}') + ",", 1))
    page.get_by_role("radio", name="Fields").click()
    expect(value(page, "added")).to_have_value("1.50")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved:")).to_be_visible()

    (current,) = plain(club)
    assert equal({"M": current}, {"M": {**before, "added": {"N": "1.5"}}})


def test_every_type_can_be_made(club: ServedStudio, pages: Pages) -> None:
    """A new item gets an attribute of each type by the type picker, nested ones too."""
    page = pages(club, f"/data/{PLAIN}?item=new")
    ready(page)
    value(page, "id").fill("made")
    value(page, "n").fill("2")

    def attribute(name: str, tag: str) -> None:
        page.get_by_role("button", name="+ Add attribute").click()
        expect(page.get_by_label("Name of (no name)")).to_be_focused()
        page.keyboard.type(name)
        page.get_by_label(f"Type of {name}", exact=True).select_option(tag)

    def inside(name: str) -> None:
        page.get_by_role("button", name=f"Add an element to {name}").click()

    attribute("flag", "BOOL")
    value(page, "flag").select_option("true")
    attribute("nothing", "NULL")
    attribute("bytes", "B")
    value(page, "bytes").fill("AQID")
    attribute("set", "NS")
    value(page, "set 1").fill("7")
    attribute("row", "L")
    inside("row")
    value(page, "row 1").fill("first")
    attribute("tree", "M")
    inside("tree")
    expect(page.get_by_label("Name of (no name)")).to_be_focused()
    page.keyboard.type("leaf")
    value(page, "leaf").fill("green")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Saved:")).to_be_visible()

    current = next(item for item in plain(club) if item["id"]["S"] == "made")
    assert current == {
        "id": {"S": "made"}, "n": {"N": "2"}, "flag": {"BOOL": True}, "nothing": {"NULL": True},
        "bytes": {"B": "AQID"}, "set": {"NS": ["7"]}, "row": {"L": [{"S": "first"}]},
        "tree": {"M": {"leaf": {"S": "green"}}},
    }  # fmt: skip


def test_the_size_bar_is_the_engines_size(club: ServedStudio, pages: Pages) -> None:
    """The bytes beside the bar are those that the engine counts, before and after typing."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    (before,) = plain(club)
    expect(page.locator("[data-bytes]")).to_have_attribute("data-bytes", str(item_size(before)))

    value(page, "empty").fill("é" * 10)

    expect(page.locator("[data-bytes]")).to_have_attribute("data-bytes", str(item_size(before) + 20))


def test_a_refused_value_is_told_at_its_place(club: ServedStudio, pages: Pages) -> None:
    """A value that DynamoDB would refuse has its error below its row, and saving changes nothing."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    before = plain(club)
    value(page, "number").fill("12,5")
    flaw = page.locator(".data-editor-issue", has_text="cannot be converted to a numeric value")
    expect(flaw).to_be_visible()
    row = page.locator(".data-editor-row", has=value(page, "number"))
    assert row.evaluate("row => row.nextElementSibling.className").startswith("data-editor-issue")
    expect(value(page, "number")).to_have_attribute("aria-invalid", "true")

    value(page, "number").fill("12.5")

    expect(flaw).to_have_count(0)
    assert plain(club) == before


def test_keys_follow_the_fields(club: ServedStudio, pages: Pages) -> None:
    """A changed field shows which keys will change, and they do; computed keys cannot be edited."""
    page = pages(club, member_path())
    ready(page)
    expect(value(page, "GSI1PK")).to_have_attribute("readonly", "")
    value(page, "state").select_option("left")
    expect(page.get_by_text("4 computed attributes change")).to_be_visible()
    page.get_by_text("4 computed attributes change").click()
    expect(page.locator(".data-editor-follows")).to_contain_text("STATE#left#")
    expect(page.locator(".data-editor-index.leaves")).to_contain_text("towns")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("GSI1PK")).not_to_have_count(0)
    expect(page.get_by_text("Saved:")).to_be_visible()

    current = member(club)
    assert current["GSI1PK"]["S"].startswith("STATE#left#")
    assert "GSI2PK" not in current
    assert current["revision"] == {"N": "2"}


def test_a_lost_race_shows_both_and_can_be_joined(club: ServedStudio, pages: Pages) -> None:
    """After a concurrent write both changes are shown, the other one is kept, and mine can be applied on top."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    (stood,) = plain(club)
    page.get_by_role("button", name=re.compile("^Value of text: edit")).click()
    page.get_by_role("dialog", name="Value of text").get_by_label("Value of text").fill("mine")
    page.get_by_role("button", name="Apply").click()
    theirs = {**stood, "text": {"S": "theirs"}, "extra": {"S": "also theirs"}}
    club.call("PutItem", {"TableName": PLAIN, "Item": theirs})
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("The item changed since you opened it")).to_be_visible()
    expect(page.get_by_role("region", name="Stored")).to_contain_text("also theirs")
    expect(page.get_by_role("region", name="Yours")).to_contain_text("mine")
    assert plain(club) == [theirs]

    page.get_by_role("button", name="Apply my changes").click()
    ready(page)
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved:")).to_be_visible()

    assert plain(club) == [{**theirs, "text": {"S": "mine"}}]


def test_find_edit_and_undo_with_keys_alone(club: ServedStudio, pages: Pages) -> None:
    """From the grid to the item, a value changed, saved and taken back, and not one click."""
    before = member(club, 3)
    page = pages(club, f"/data/{CLUB}?q={quote(json.dumps([['PK', '=', {'S': 'MEMBER#m3'}]]))}")
    page.wait_for_selector(".data-grid")
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".data-editor-gauge")
    expect(value(page, "name")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("Renamed")
    page.keyboard.press("Control+s")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    assert member(club, 3)["name"] == {"S": "Renamed"}

    page.keyboard.press("Control+z")
    expect(page.get_by_text("Undone.")).to_be_visible()

    assert member(club, 3) == {**before, "revision": {"N": "3"}}
    expect(value(page, "name")).to_have_value("Member 3")


def test_an_item_is_deleted_after_a_question_and_taken_back(club: ServedStudio, pages: Pages) -> None:
    """The question says what goes; the notice brings it back, with the value that it kept unique."""
    before = club.call("Scan", {"TableName": CLUB})["Items"]
    page = pages(club, member_path(2))
    ready(page)
    page.get_by_role("button", name="Delete…").click()
    request = page.get_by_role("dialog", name="Delete this Member?")
    expect(request).to_contain_text("PK = MEMBER#m2")
    request.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("Deleted.")).to_be_visible()
    assert len(club.call("Scan", {"TableName": CLUB})["Items"]) == len(before) - 2

    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone.")).to_be_visible()

    assert club.call("Scan", {"TableName": CLUB})["Items"] == before


def test_what_was_typed_survives_another_item(club: ServedStudio, pages: Pages) -> None:
    """Looking elsewhere loses nothing; closing asks first."""
    page = pages(club, member_path(1))
    ready(page)
    value(page, "name").fill("Unsaved")
    page.evaluate(
        "path => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }",
        "/studio" + member_path(2),
    )
    expect(value(page, "name")).to_have_value("Member 2")
    page.go_back()
    expect(value(page, "name")).to_have_value("Unsaved")
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog", name="Discard changes?")).to_be_visible()
    page.get_by_role("button", name="Discard").click()

    expect(page.locator(".data-editor")).to_have_count(0)
    assert member(club, 1)["name"] == {"S": "Member 1"}


def test_read_only_shows_and_offers_nothing(engine: Engine, start_studio: StartStudio, pages: Pages) -> None:
    """In read-only mode values are there to be read and copied, and there is no way to write."""
    studio_server = start_studio(engine, DESIGN, read_only=True)
    page = pages(studio_server, item_path(PLAIN, KEY))
    ready(page)
    expect(page.get_by_text("The studio is in read-only mode")).to_be_visible()
    expect(value(page, "number")).to_have_attribute("readonly", "")
    for name in ("Save", "Delete…", "+ Add attribute", "New item"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_markup_in_names_and_values_is_inert(club: ServedStudio, pages: Pages) -> None:
    """HTML in an attribute's name or value is text, in fields, in JSON and in every dialog."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    name = next(iter(HOSTILE))
    page.locator(".data-editor-rows .virtual").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(page.get_by_label(f"Name of {name}", exact=True)).to_have_value(name)
    expect(page.get_by_label("Name of __proto__", exact=True)).to_have_value("__proto__")
    page.get_by_role("radio", name="DynamoDB JSON").click()
    page.get_by_role("button", name="Delete…").click()

    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "run"


def test_ten_thousand_attributes_and_the_largest_text(club: ServedStudio, pages: Pages) -> None:
    """10,000 attributes and 400 KB of text are opened, scrolled and saved, with few elements on the page."""
    big = {"id": {"S": "many"}, "n": {"N": "1"}, **MANY}
    club.call("PutItem", {"TableName": PLAIN, "Item": big})
    long = {"id": {"S": "long"}, "n": {"N": "1"}, "text": {"S": "line of text\n" * 31_000}}
    club.call("PutItem", {"TableName": PLAIN, "Item": long})
    page = pages(club, item_path(PLAIN, {"id": {"S": "many"}, "n": {"N": "1"}}))
    ready(page)
    assert page.locator(".drawer *").count() < 2_000
    page.locator(".data-editor-rows .virtual").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    value(page, "attribute-09999").fill("-1")
    ready(page)
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved:")).to_be_visible(timeout=15_000)
    (current,) = [item for item in plain(club) if item["id"]["S"] == "many"]
    assert current == {**big, "attribute-09999": {"N": "-1"}}

    page.goto(club.url + item_path(PLAIN, {"id": {"S": "long"}, "n": {"N": "1"}}))
    ready(page)
    page.get_by_role("button", name="edit 403,000 characters").click(timeout=20_000)
    area = page.get_by_role("dialog", name="Value of text").get_by_label("Value of text")
    assert page.locator(".dialog *").count() < 60
    # As a paste does it; typed key by key it would be the browser's patience that is tried.
    area.evaluate(
        "area => { area.value = 'x'.repeat(420000); area.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("the maximum is 409,600 (400 KB)")).to_be_visible()


def select_first(page: Page, count: int) -> None:
    page.wait_for_selector(".data-grid [role=row] input[type=checkbox]")
    boxes = page.get_by_role("checkbox", name=re.compile("^Select (?!all)"))
    for at in range(count):
        boxes.nth(at).check()


def test_many_are_changed_after_a_look(club: ServedStudio, pages: Pages) -> None:
    """The dialog shows how many, what it costs and the first before and after; then it is done, keys and all."""
    question = [["_entity", "=", {"S": "Member"}]]
    page = pages(club, f"/data/{CLUB}?q={quote(json.dumps(question))}")
    select_first(page, 3)
    page.get_by_role("button", name="Set attribute…").click()
    dialog = page.get_by_role("dialog", name="Edit 3 selected items")
    dialog.get_by_label("Attribute", exact=True).fill("state")
    dialog.get_by_label("Value", exact=True).fill("left")
    page.get_by_role("button", name="Preview changes").click()
    page.get_by_role("button", name="Change 3 items").wait_for()
    first = page.get_by_role("region", name="Preview of the first items")
    expect(first).to_contain_text("active")
    expect(first).to_contain_text("GSI1PK")
    assert all(member(club, number)["state"] == {"S": "active"} for number in range(12))

    page.get_by_role("button", name="Change 3 items").click()
    expect(page.get_by_text("Done. 3 of 3 changed")).to_be_visible()

    changed = [number for number in range(12) if member(club, number)["state"] == {"S": "left"}]
    assert len(changed) == 3
    assert all(member(club, number)["GSI1PK"]["S"].startswith("STATE#left") for number in changed)


def test_all_that_is_found_is_deleted(club: ServedStudio, pages: Pages) -> None:
    """A bulk edit of all matching items says so, and reports the skipped ones."""
    question = [["points", ">=", {"N": "60"}]]
    page = pages(club, f"/data/{CLUB}?q={quote(json.dumps(question))}")
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Edit all matching items…").click()
    page.get_by_role("radio", name="Delete items").click()
    page.get_by_role("button", name="Preview changes").click()
    page.get_by_role("button", name="Delete 6 items").click()
    expect(page.get_by_text("Done. 6 of 6 deleted")).to_be_visible()

    assert len(club.call("Scan", {"TableName": CLUB})["Items"]) == 12  # six members and six guards


@pytest.mark.parametrize("form", ["CSV", "JSON", "DynamoDB JSON", "AWS export"])
def test_an_exported_file_is_imported_equal(
    club: ServedStudio, pages: Pages, tmp_path: Path, form: str
) -> None:
    """What the page exports it imports into another table, and the two are equal."""
    club.call("CreateTable", table("copy"))
    for number in range(30):
        item = {"id": {"S": f"more {number}"}, "n": {"N": "1"}, "text": {"S": f'a,"b"\n{number}'}}
        club.call("PutItem", {"TableName": PLAIN, "Item": item})
    page = pages(club, f"/data/{PLAIN}")
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Export…").click()
    page.get_by_role("radio", name=form, exact=True).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export", exact=True).click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    page.goto(f"{club.url}/data/copy")
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Import…").click()
    page.get_by_label("File (CSV").set_input_files(file)
    page.get_by_role("button", name="Import 31 items").click()
    expect(page.get_by_text("Done. 31 items imported.")).to_be_visible()

    def by_id(name: str) -> list[dict[str, Any]]:
        return sorted(plain(club, name), key=lambda item: str(item["id"]["S"]))

    assert all(equal({"M": a}, {"M": b}) for a, b in zip(by_id(PLAIN), by_id("copy"), strict=True))


def test_a_pasted_file_is_looked_at_first(club: ServedStudio, pages: Pages) -> None:
    """Types are guessed and can be changed, existing keys are marked, and a failing line is reported and kept."""
    page = pages(club, f"/data/{PLAIN}")
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Import…").click()
    page.get_by_label("Or paste text").fill("id,n,price\nten,1,0.10\nnew,2,00.20\nbad,x,1\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("button", name="Import 1 item", exact=True)).to_be_enabled()
    expect(page.get_by_text("exists", exact=True)).to_be_visible()
    expect(page.get_by_text("Line 4:")).to_be_visible()
    expect(page.get_by_label("Type of price")).to_have_value("S")
    page.get_by_label("Type of price").select_option("N")
    page.get_by_role("button", name="Import 1 item", exact=True).click()
    expect(page.get_by_text("Done. 1 item imported.")).to_be_visible()
    expect(page.get_by_text("An item with this key already exists")).to_be_visible()

    assert {"id": {"S": "new"}, "n": {"N": "2"}, "price": {"N": "0.2"}} in plain(club)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download failed records").click()
    assert "bad,x,1" in Path(waiting.value.path()).read_text()


def slowly(page: Page) -> Callable[[Route], None]:
    """Return what lets a request wait a while."""

    def wait(route: Route) -> None:
        page.wait_for_timeout(400)
        route.continue_()

    return wait


def import_dialog(page: Page) -> None:
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Import…").click()


def test_an_import_that_stops_half_way_goes_on(club: ServedStudio, pages: Pages) -> None:
    """If the server fails in the middle of an import, Continue writes the rest and nothing twice."""
    page = pages(club, f"/data/{PLAIN}", trouble=True)
    request = {"runs": 0}

    def lose(route: Route) -> None:
        request["runs"] += 1
        refusal = {
            "problem": {
                "code": "endpoint-lost",
                "title": "The endpoint does not respond",
                "detail": "Gone.",
                "remedy": "",
                "status": 502,
            }
        }
        if request["runs"] == 2:
            route.fulfill(status=502, content_type="application/json", body=json.dumps(refusal))
        else:
            route.continue_()

    page.route("**/api/import/run", lose)
    records = [{"id": f"item {number}", "n": 1, "text": "x" * 1_000} for number in range(600)]
    import_dialog(page)
    page.get_by_label("File (CSV").set_input_files(
        {"name": "many.json", "mimeType": "application/json", "buffer": json.dumps(records).encode()}
    )
    page.get_by_role("button", name="Import 600 items").click()
    expect(page.get_by_text("The endpoint does not respond")).to_be_visible()
    expect(page.get_by_text(re.compile("Stopped. The rest of the file"))).to_be_visible()
    assert 0 < len(plain(club)) - 1 < 600

    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Done. 600 items imported.")).to_be_visible()

    assert len(plain(club)) == 601


def test_stopping_an_import_tells_all_that_was_written(club: ServedStudio, pages: Pages) -> None:
    """Stop, or Escape, lets the piece on its way come to its end: the number on the page is the number in the table."""
    page = pages(club, f"/data/{PLAIN}")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/import/run", hold)
    records = [{"id": f"item {number}", "n": 1, "text": "x" * 1_000} for number in range(900)]
    import_dialog(page)
    page.get_by_label("File (CSV").set_input_files(
        {"name": "many.json", "mimeType": "application/json", "buffer": json.dumps(records).encode()}
    )
    with page.expect_request("**/api/import/run"):
        page.get_by_role("button", name="Import 900 items").click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Stopping…").wait_for()
    held[0].continue_()
    response = page.get_by_text(re.compile(r"Stopped. .* [\d,]+ items imported"))
    expect(response).to_be_visible()

    written = int(re.search(r"([\d,]+) items imported", response.inner_text())[1].replace(",", ""))  # type: ignore[index]  # it was found
    assert written == len(plain(club)) - 1 > 0
    assert len(held) == 1


def test_a_file_in_another_encoding_is_never_taken_for_utf_8(club: ServedStudio, pages: Pages) -> None:
    """Latin-1 is refused, because its letters would be others; UTF-16, which says what it is, is read."""
    page = pages(club, f"/data/{PLAIN}")
    import_dialog(page)
    text = "id\tn\tname\r\nü\t1\tÉté\r\n"
    page.get_by_label("File (CSV").set_input_files(
        {"name": "old.tsv", "mimeType": "text/plain", "buffer": text.encode("latin-1")}
    )
    expect(page.get_by_text("The file is not UTF-8")).to_be_visible()
    page.get_by_role("button", name="Choose another file").click()
    page.get_by_label("File (CSV").set_input_files(
        {"name": "new.tsv", "mimeType": "text/plain", "buffer": b"\xff\xfe" + text.encode("utf-16-le")}
    )
    page.get_by_role("button", name="Import 1 item").click()
    expect(page.get_by_text("Done. 1 item imported.")).to_be_visible()

    assert {"id": {"S": "ü"}, "n": {"N": "1"}, "name": {"S": "Été"}} in plain(club)


def test_an_export_that_cannot_be_says_why(club: ServedStudio, pages: Pages) -> None:
    """If the table is gone, the dialog says so and no download starts."""
    page = pages(club, f"/data/{PLAIN}", trouble=True)
    page.get_by_role("button", name="Import, export, edit all").click()
    page.get_by_role("menuitem", name="Export…").click()
    club.call("DeleteTable", {"TableName": PLAIN})
    page.get_by_role("button", name="Export", exact=True).click()

    expect(page.get_by_role("dialog").get_by_text(re.compile("not found", re.I)).first).to_be_visible()


def test_line_breaks_stay_what_they_are(club: ServedStudio, pages: Pages) -> None:
    """A text area knows one kind of line break: a text with the other keeps it, one with both is not edited there."""
    item = {**KEY, "id": {"S": "lines"}, "dos": {"S": "a\r\nb"}, "both": {"S": "a\r\nb\nc"}}
    club.call("PutItem", {"TableName": PLAIN, "Item": item})
    page = pages(club, item_path(PLAIN, {**KEY, "id": {"S": "lines"}}))
    ready(page)
    page.get_by_role("button", name=re.compile("^Value of both: edit")).click()
    expect(page.get_by_text("This text mixes line endings")).to_be_visible()
    expect(page.get_by_role("dialog", name="Value of both").get_by_label("Value of both")).to_have_attribute(
        "readonly", ""
    )
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("^Value of dos: edit")).click()
    page.get_by_role("dialog", name="Value of dos").get_by_label("Value of dos").fill("a\nb\nc")
    page.keyboard.press("Control+s")  # saves what is typed in the window too
    expect(page.get_by_text("Saved:")).to_be_visible()

    current = next(result for result in plain(club) if result["id"] == {"S": "lines"})
    assert current == {**item, "dos": {"S": "a\r\nb\r\nc"}}


def test_nothing_typed_is_lost_on_the_way(club: ServedStudio, pages: Pages) -> None:
    """A long text is not dropped by Escape, a type chosen by mistake gives its members back, a save takes no key presses."""
    page = pages(club, item_path(PLAIN, KEY))
    ready(page)
    page.get_by_label("Type of list", exact=True).select_option("S")
    page.get_by_label("Type of list", exact=True).select_option("N")
    page.get_by_label("Type of list", exact=True).select_option("L")
    page.get_by_role("button", name=re.compile("^Value of text: edit")).click()
    page.get_by_role("dialog", name="Value of text").get_by_label("Value of text").fill("long")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Discard changes?")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Apply").click()
    value(page, "empty").fill("kept")
    page.route("**/api/items/put", slowly(page))
    page.keyboard.press("Control+s")
    expect(value(page, "empty")).to_have_attribute("readonly", "")
    expect(page.get_by_text("Saved:")).to_be_visible()

    assert plain(club) == [{**KEY, **TEN, **HOSTILE, "text": {"S": "long"}, "empty": {"S": "kept"}}]


def test_what_was_typed_stays_when_the_entity_is_another(club: ServedStudio, pages: Pages) -> None:
    """Input is kept when another entity is chosen for a new item; leaving the page needs confirmation."""
    page = pages(club, f"/data/{CLUB}?item=new")
    ready(page)
    value(page, "member_id").fill("m77")
    page.get_by_label("Entity", exact=True).select_option("Visit")
    expect(value(page, "member_id")).to_have_value("m77")
    expect(page.get_by_label("Name of number", exact=True)).to_be_visible()
    request: list[str] = []

    def accept(dialog: Dialog) -> None:
        request.append(dialog.type)
        dialog.accept()

    page.on("dialog", accept)

    page.reload()

    assert request == ["beforeunload"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_drawer_and_the_dialogs_can_be_used_by_all(club: ServedStudio, pages: Pages, theme: str) -> None:
    """axe-core finds nothing in the drawer, with flaws in it, nor in the dialogs; nothing is wider than a phone."""
    page = pages(club, item_path(PLAIN, KEY), color_scheme=theme)
    ready(page)
    value(page, "number").fill("x")
    expect(page.locator(".data-editor-issue")).to_be_visible()
    assert not accessibility_faults(page)
    page.get_by_role("radio", name="DynamoDB JSON").click()
    assert not accessibility_faults(page)
    page.goto(f"{club.url}/data/{CLUB}")
    select_first(page, 2)
    page.get_by_role("button", name="Set attribute…").click()
    assert not accessibility_faults(page)
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    page.get_by_label("Or paste text").fill("id,n\na,1\n")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name=re.compile("^Import 0")).wait_for()
    assert not accessibility_faults(page)

    phone = pages(club, member_path(), viewport=NARROW, color_scheme=theme)
    ready(phone)
    assert not overflow(phone)

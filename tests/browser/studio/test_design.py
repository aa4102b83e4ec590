"""The design page: the diagram and its findings, remedies as differences, the solver's offer, files out and files in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

from tavola.design.lint import RULES
from tavola.model.document import Design, write_document
from tests.browser.stage import NARROW, accessibility_faults, overflow
from tests.browser.studio.conftest import StartStudio
from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.lint.cases import (
    frequent_scan,
    hot_partition,
    no_deletion_protection,
    policy_omits_indexes,
    table_per_entity,
    unpadded_number,
)
from tests.design.seeds import support_desk

DESK: Design = next(each for each in vars(support_desk).values() if isinstance(each, Design))
TABLE = "prod-tickets-unified"
HTML = '<img src=x onerror="document.title=`run`">'
Pages = Callable[..., Page]

_BY_MAIL = gsi("by_mail", "GSI1PK")
SHOP = design(
    table(
        entity(
            "User", text("user_id"), text("mail"), pk="USER#{user_id}", keys=[key(_BY_MAIL, "MAIL#{mail}")],
            patterns=[query("ByMail", _BY_MAIL, "mail", per_second=5, item_bytes=200)],
        ),
        indexes=[_BY_MAIL],
    )
)  # fmt: skip


def _open(
    start_studio: StartStudio, pages: Pages, found: Design, path: str = "/design", **settings: Any
) -> Page:
    return pages(start_studio(design=found), path, **settings)


def test_the_diagram_shows_all_there_is(start_studio: StartStudio, pages: Pages) -> None:
    """All entities, every key and every index of the table is a node, and every key has its line."""
    page = _open(start_studio, pages, DESK, f"/design/{TABLE}")
    response = DESK.table(TABLE)

    for each in response.entities:
        expect(page.get_by_role("button", name=re.compile(rf"^Entity {each.name}, "))).to_be_visible()
    for index in response.indexes:
        expect(
            page.get_by_role("button", name=re.compile(rf"^Global index {re.escape(index.name)}, "))
        ).to_be_visible()
    keys = sum(1 + len(each.keys) for each in response.entities)
    expect(page.locator("li.design-node.key")).to_have_count(keys)
    expect(page.locator(".design-lines path")).to_have_count(keys)
    expect(page.locator("li.design-node.key").first).to_contain_text("TICKET#{ticket_id}")


def test_what_belongs_to_a_node_lights_up(start_studio: StartStudio, pages: Pages) -> None:
    """Pointing at an index dims what it does not hold, and arrow keys go along the lines."""
    page = _open(start_studio, pages, DESK, f"/design/{TABLE}")
    index = page.get_by_role("button", name=re.compile("^Global index GSI3-operator-index"))

    index.hover()

    expect(page.locator(".design-lines path.lit")).to_have_count(1)
    expect(page.locator("li.design-node.entity:not(.dim)")).to_have_count(1)
    page.get_by_role("button", name=re.compile("^Entity Ticket, ")).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("li.design-node.key.focus")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile("^Key of Ticket in index"))


CASES: dict[str, Any] = {
    "no-deletion-protection": no_deletion_protection,
    "hot-partition": hot_partition,
    "unpadded-number": unpadded_number,
    "policy-omits-indexes": policy_omits_indexes,
    "frequent-scan": frequent_scan,
}


@pytest.mark.parametrize("name", CASES)
def test_a_badge_leads_to_its_finding_and_a_difference(
    name: str, start_studio: StartStudio, pages: Pages
) -> None:
    """From the badge on the node to the finding, its remedy as lines that come and go, and the rule's page."""
    case = CASES[name]
    production = "?production=yes" if getattr(case, "PRODUCTION", False) else ""
    page = _open(start_studio, pages, case.FOUND, f"/design{production}")
    page.locator(".design-badge").first.wait_for()
    result = page.locator(".drawer .design-finding", has=page.get_by_label(f"Rule {name}"))
    for badge in page.locator(".design-badge").all():
        badge.click()
        page.locator(".drawer .design-finding").first.wait_for()
        if result.count():
            break
        page.keyboard.press("Escape")

    first = result.first
    if first.get_by_role("button", name="Show fix").count():
        first.get_by_role("button", name="Show fix").click()

    expect(first.locator(".diff .plus, .diff .minus").first).to_be_visible()
    expect(first.get_by_text("Resolves")).to_be_visible()
    first.get_by_label(f"Rule {name}").click()
    expect(page.get_by_role("dialog", name=name).get_by_role("heading", name="Instead")).to_be_visible()


def test_a_remedy_that_stands_alone_is_open_and_can_be_closed(
    start_studio: StartStudio, pages: Pages
) -> None:
    """Of one finding the remedy is shown at once; hiding it hides it, and showing it shows it again."""
    unused = design(table(entity("User", text("user_id"), pk="USER#{user_id}"), indexes=[_BY_MAIL]))
    page = _open(start_studio, pages, unused, "/design?node=index:shop/by_mail")
    drawer = page.locator(".drawer")
    expect(drawer.locator(".diff")).to_be_visible()

    drawer.get_by_role("button", name="Hide fix").click()

    expect(drawer.locator(".diff")).to_have_count(0)
    drawer.get_by_role("button", name="Show fix").click()
    expect(drawer.locator(".diff")).to_be_visible()


def test_a_table_of_which_only_indexes_are_known_is_drawn(start_studio: StartStudio, pages: Pages) -> None:
    """Without entities the indexes are drawn, each with what is known of it."""
    page = _open(start_studio, pages, design(table(indexes=[_BY_MAIL])))

    expect(page.get_by_text("No entities declared")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Global index by_mail, "))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Global index by_mail, ")).click()
    expect(page.locator(".drawer")).to_contain_text("GSI1PK")


def test_what_belongs_to_no_table_is_in_the_designs_panel(start_studio: StartStudio, pages: Pages) -> None:
    """The design's own panel has needs and policies; an unknown node says so."""
    page = _open(start_studio, pages, DESK, f"/design/{TABLE}?node=design")
    sheet = page.locator(".drawer")

    expect(sheet.get_by_role("heading", name="Declared needs without a query class")).to_be_visible()
    expect(sheet).to_contain_text(DESK.needs[0].title)
    expect(sheet).to_contain_text(DESK.policies[0].name)
    page.goto(page.url.replace("node=design", "node=index%3Anone"))
    expect(page.locator(".drawer")).to_contain_text("no such node")


def test_what_takes_a_person_shows_the_rules_words(start_studio: StartStudio, pages: Pages) -> None:
    """Where no change of the design does it, the rule's own example and what to do instead are shown."""
    page = _open(start_studio, pages, table_per_entity.FOUND, "/design?tab=findings&only=table-per-entity")

    page.get_by_role("button", name="Show fix").first.click()

    expect(page.get_by_text("This needs a manual change")).to_be_visible()
    expect(page.get_by_role("heading", name="Instead")).to_be_visible()


def test_an_altered_design_is_looked_at_and_kept(start_studio: StartStudio, pages: Pages) -> None:
    """The design with a remedy in it can be looked at, judged again and downloaded; the studio's own is one press away."""
    unprotected = design(
        table(entity("User", text("user_id"), pk="USER#{user_id}"), deletion_protection=False)
    )
    page = _open(
        start_studio, pages, unprotected, "/design?tab=findings&production=yes&only=no-deletion-protection"
    )
    page.get_by_role("button", name="Show fix").click()

    page.get_by_role("button", name="Open modified design").click()

    expect(page.get_by_text("Viewing the design with the fix for no-deletion-protection")).to_be_visible()
    expect(
        page.get_by_text("No findings match these filters").or_(page.get_by_text("Nothing found"))
    ).to_be_visible()
    page.get_by_role("button", name="Back to the studio's design").click()
    expect(page.locator(".design-finding")).to_have_count(1)
    page.get_by_role("button", name="Show fix").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download design.json").click()
    assert json.loads(saved.value.path().read_text())["tables"][0]["settings"]["deletion_protection"] is True


def test_findings_are_narrowed_by_the_url(start_studio: StartStudio, pages: Pages) -> None:
    """Severity and rule are in the address, so that a reload shows the same."""
    page = _open(start_studio, pages, DESK, "/design?tab=findings")
    page.get_by_role("radio", name=re.compile("^Errors")).click()
    page.get_by_label("Rule", exact=True).select_option("stale-index-key")
    expect(page.locator(".design-finding.error")).to_have_count(2)

    page.reload()

    expect(page.locator(".design-finding.error")).to_have_count(2)
    assert "only=stale-index-key" in page.url
    page.get_by_text("Rule reference").click()
    expect(page.locator(".design-rules li")).to_have_count(len(RULES))
    page.get_by_role("button", name="mixed-sort-keys").last.click()
    expect(page.get_by_role("dialog", name="mixed-sort-keys")).to_be_visible()


def test_the_solver_makes_its_offer(start_studio: StartStudio, pages: Pages) -> None:
    """The offer has a price beside the present one, reasons for each choice, and the module that declares it."""
    page = _open(start_studio, pages, SHOP, "/design?tab=solver")

    expect(page.get_by_text("Proposed monthly cost")).to_be_visible(timeout=15_000)
    expect(page.get_by_text("Simple Key").first).to_be_visible()
    page.get_by_role("radio", name="Python").click()
    expect(page.get_by_label("model.py")).to_contain_text("class User(Entity")


def test_an_offer_is_shown_under_its_own_style_alone(start_studio: StartStudio, pages: Pages) -> None:
    """While another style is solved, the offer of the last one is not shown for it; a style that is none is the first."""
    page = _open(start_studio, pages, SHOP, "/design?tab=solver&style=none")
    expect(page.get_by_role("radio", name="Fewest indexes")).to_be_checked()
    expect(page.get_by_text("Proposed monthly cost")).to_be_visible(timeout=15_000)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/design/solve", hold)

    page.get_by_role("radio", name="Templates").click()

    expect(page.get_by_text("Solving")).to_be_attached()
    expect(page.get_by_text("Proposed monthly cost")).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_text("Proposed monthly cost")).to_be_visible(timeout=15_000)


def test_what_was_not_held_against_the_table_is_said(start_studio: StartStudio, pages: Pages) -> None:
    """A matching table is reported as matching "as far as it could be checked"; a failed request is shown as a problem."""
    studio_server = start_studio(design=DESK)
    page = pages(studio_server, f"/design/{TABLE}")
    expect(page.get_by_text("Table not created yet")).to_be_visible()
    page.route("**/api/design/drift", lambda route: route.fulfill(json={"tables": [NOTED]}))

    page.reload()

    expect(page.get_by_text("as far as it could be checked")).to_be_visible()
    expect(page.get_by_text("Stream consumers is not looked at.")).to_be_visible()


NOTED: dict[str, Any] = {
    "table": TABLE, "work": [], "problem": None,
    "comparison": {"table": TABLE, "exists": True, "changes": [], "notes": ["Stream consumers is not looked at"]},
}  # fmt: skip


def test_files_are_shown_and_a_workbench_model_comes_back(start_studio: StartStudio, pages: Pages) -> None:
    """Each tool's files are there; the Workbench model that is written is read again."""
    page = _open(start_studio, pages, SHOP, "/design?tab=infrastructure")
    page.get_by_role("tab", name="tables.tf").click()
    expect(page.get_by_label("tables.tf")).to_contain_text('resource "aws_dynamodb_table"')
    page.get_by_label("For").select_option("workbench")
    expect(page.get_by_label("model.json")).to_contain_text("ModelName")
    model = page.get_by_label("model.json").inner_text()

    page.get_by_role("button", name="Import…").click()
    page.get_by_label("Or paste text").fill(model)
    page.get_by_role("button", name="Open design").click()

    expect(page.get_by_text(re.compile(r"Viewing pasted text \(workbench\)"))).to_be_visible()
    page.get_by_role("tab", name="Diagram").click()
    expect(page.get_by_role("button", name=re.compile("^Global index by_mail"))).to_be_visible()


def test_an_imported_name_with_markup_is_text(start_studio: StartStudio, pages: Pages) -> None:
    """HTML in the names of a file is shown as it is written, on every tab, and nothing of it runs."""
    odd = design(
        table(entity(HTML, text("user_id", description=HTML), pk="USER#{user_id}"), label=HTML, name="shop")
    )
    page = _open(start_studio, pages, SHOP)
    page.get_by_role("button", name="Import…").click()
    page.locator("input[type=file]").set_input_files(
        FilePayload(
            name="odd.json", mimeType="application/json", buffer=json.dumps(write_document(odd)).encode()
        )
    )

    page.get_by_role("button", name="Open design").click()

    expect(page.locator("li.design-node.entity")).to_contain_text(HTML)
    page.locator("li.design-node.entity button").first.click()
    expect(page.locator(".drawer")).to_contain_text(HTML)
    page.keyboard.press("Escape")
    for name in ("Findings", "Targets", "Document", "Infrastructure"):
        page.get_by_role("tab", name=re.compile(f"^{name}")).click()
    assert page.locator("main img").count() == 0
    assert page.title() != "run"


def test_a_file_that_is_too_large_is_refused_in_the_dialog(
    start_studio: StartStudio, pages: Pages, tmp_path: Path
) -> None:
    """A file too large for a design is refused before it is sent, and pasted text is kept."""
    page = _open(start_studio, pages, SHOP)
    page.get_by_role("button", name="Import…").click()
    page.get_by_label("Or paste text").fill("format: none")

    dump = tmp_path / "dump.json"
    dump.write_bytes(b" " * (9 * 1024 * 1024))
    page.locator("input[type=file]").set_input_files(dump)

    expect(page.get_by_text("The file is too large")).to_be_visible()
    expect(page.get_by_label("Or paste text")).to_have_value("format: none")


def test_targets_have_a_reason_in_each_cell(start_studio: StartStudio, pages: Pages) -> None:
    """A cell says what differs, as of when, by which source, and where the design needs it."""
    page = _open(start_studio, pages, DESK, f"/design/{TABLE}?tab=targets")

    page.get_by_role("button", name="DynamoDB Streams on alternator: differs").click()

    expect(page.get_by_text(re.compile(r"As of \d{4}-\d\d-\d\d: "))).to_be_visible()
    expect(page.get_by_text("Where the design uses it")).to_be_visible()
    assert "cell=streams%40alternator" in page.url


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "path",
    [
        "",
        "?tab=findings",
        "?tab=infrastructure",
        "?tab=targets",
        "?tab=document",
        f"?node=entity:{TABLE}/Ticket",
        "?rule=mixed-sort-keys",
    ],
)
def test_a_phone_shows_lists_and_nothing_overflows(
    path: str, theme: str, start_studio: StartStudio, pages: Pages
) -> None:
    """At 390 pixels the diagram is three lists; axe has nothing to say in either theme."""
    page = _open(
        start_studio,
        pages,
        DESK,
        f"/design/{TABLE}{path}",
        viewport=NARROW,
        has_touch=True,
        color_scheme=theme,
    )
    page.wait_for_selector("#design-panel")
    expect(page.locator(".spinner")).to_have_count(0)

    assert not overflow(page)
    assert not accessibility_faults(page)
    if not path:
        expect(page.locator(".design-lines")).to_be_hidden()
        expect(page.get_by_role("button", name=re.compile("^Entity Ticket, "))).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_offer_fits_a_phone(theme: str, start_studio: StartStudio, pages: Pages) -> None:
    """The solver's offer at 390 pixels: nothing overflows, and axe has nothing to say."""
    page = _open(
        start_studio, pages, SHOP, "/design?tab=solver", viewport=NARROW, has_touch=True, color_scheme=theme
    )
    expect(page.get_by_text("Proposed monthly cost")).to_be_visible(timeout=15_000)

    assert not overflow(page)
    assert not accessibility_faults(page)


@pytest.mark.parametrize("tab", ["document", "targets"])
def test_the_chosen_tab_is_in_sight_on_a_phone(tab: str, start_studio: StartStudio, pages: Pages) -> None:
    """A link to a tab far to the right scrolls the row of tabs to it, and the page stays where it is."""
    page = _open(start_studio, pages, SHOP, f"/design?tab={tab}", viewport=NARROW, has_touch=True)
    chosen = page.get_by_role("tablist", name="Design views").locator("[aria-selected=true]")
    expect(chosen).to_have_text(tab.capitalize())

    expect(chosen).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    page.get_by_role("tab", name="Diagram").click()
    expect(page.get_by_role("tab", name="Diagram")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("path", ["/design?tab=none", "/operations?tab=none", "/cost?view=none"])
def test_a_tab_that_is_none_shows_the_first(path: str, start_studio: StartStudio, pages: Pages) -> None:
    """An address of an older or mistyped tab shows the first one, chosen, reachable by the tabulator and by arrow keys."""
    page = _open(start_studio, pages, SHOP, path)
    first = page.get_by_role("tablist").first.get_by_role("tab").first

    expect(first).to_have_attribute("aria-selected", "true")
    expect(first).to_have_attribute("tabindex", "0")
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tablist").first.get_by_role("tab").nth(1)).to_be_focused()

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
from tests.browser.studio.conftest import Housed
from tests.design.builders import design, entity, gsi, key, query, table, text
from tests.design.lint.cases import (
    deletion_unprotected,
    few_partitions,
    numbers_as_text,
    policy_misses_index,
    scanned_pattern,
    table_per_entity,
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


def _open(housed: Housed, pages: Pages, found: Design, path: str = "/design", **settings: Any) -> Page:
    return pages(housed(design=found), path, **settings)


def test_the_diagram_shows_all_there_is(housed: Housed, pages: Pages) -> None:
    """Every entity, every key and every index of the table is a node, and every key has its line."""
    page = _open(housed, pages, DESK, f"/design/{TABLE}")
    told = DESK.table(TABLE)

    for each in told.entities:
        expect(page.get_by_role("button", name=re.compile(rf"^Entity {each.name}, "))).to_be_visible()
    for index in told.indexes:
        expect(
            page.get_by_role("button", name=re.compile(rf"^Global index {re.escape(index.name)}, "))
        ).to_be_visible()
    keys = sum(1 + len(each.keys) for each in told.entities)
    expect(page.locator("li.design-node.key")).to_have_count(keys)
    expect(page.locator(".design-lines path")).to_have_count(keys)
    expect(page.locator("li.design-node.key").first).to_contain_text("TICKET#{ticket_id}")


def test_what_belongs_to_a_node_lights_up(housed: Housed, pages: Pages) -> None:
    """Pointing at an index dims what it does not hold, and arrow keys go along the lines."""
    page = _open(housed, pages, DESK, f"/design/{TABLE}")
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
    "deletion-unprotected": deletion_unprotected,
    "few-partitions": few_partitions,
    "numbers-as-text": numbers_as_text,
    "policy-misses-index": policy_misses_index,
    "scanned-pattern": scanned_pattern,
}


@pytest.mark.parametrize("name", CASES)
def test_a_badge_leads_to_its_finding_and_a_difference(name: str, housed: Housed, pages: Pages) -> None:
    """From the badge on the node to the finding, its remedy as lines that come and go, and the rule's page."""
    case = CASES[name]
    production = "?production=yes" if getattr(case, "PRODUCTION", False) else ""
    page = _open(housed, pages, case.FOUND, f"/design{production}")
    page.locator(".design-badge").first.wait_for()
    found = page.locator(".drawer .design-finding", has=page.get_by_label(f"Rule {name}"))
    for badge in page.locator(".design-badge").all():
        badge.click()
        page.locator(".drawer .design-finding").first.wait_for()
        if found.count():
            break
        page.keyboard.press("Escape")

    first = found.first
    if first.get_by_role("button", name="Show the remedy").count():
        first.get_by_role("button", name="Show the remedy").click()

    expect(first.locator(".diff .plus, .diff .minus").first).to_be_visible()
    expect(first.get_by_text("Ends")).to_be_visible()
    first.get_by_label(f"Rule {name}").click()
    expect(page.get_by_role("dialog", name=name).get_by_role("heading", name="Instead")).to_be_visible()


def test_a_remedy_that_stands_alone_is_open_and_can_be_closed(housed: Housed, pages: Pages) -> None:
    """Of one finding the remedy is shown at once; hiding it hides it, and showing it shows it again."""
    unused = design(table(entity("User", text("user_id"), pk="USER#{user_id}"), indexes=[_BY_MAIL]))
    page = _open(housed, pages, unused, "/design?node=index:shop/by_mail")
    drawer = page.locator(".drawer")
    expect(drawer.locator(".diff")).to_be_visible()

    drawer.get_by_role("button", name="Hide the remedy").click()

    expect(drawer.locator(".diff")).to_have_count(0)
    drawer.get_by_role("button", name="Show the remedy").click()
    expect(drawer.locator(".diff")).to_be_visible()


def test_a_table_of_which_only_indexes_are_known_is_drawn(housed: Housed, pages: Pages) -> None:
    """Without entities the indexes are drawn, each with what is known of it."""
    page = _open(housed, pages, design(table(indexes=[_BY_MAIL])))

    expect(page.get_by_text("Nothing is said of what lives in it")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Global index by_mail, "))).to_be_visible()
    page.get_by_role("button", name=re.compile("^Global index by_mail, ")).click()
    expect(page.locator(".drawer")).to_contain_text("GSI1PK")


def test_what_belongs_to_no_table_is_told_of_the_design(housed: Housed, pages: Pages) -> None:
    """The design's own sheet has the questions, the policies and where they are asked; a node of nothing says so."""
    page = _open(housed, pages, DESK, f"/design/{TABLE}?node=design")
    sheet = page.locator(".drawer")

    expect(sheet.get_by_role("heading", name="Questions without a query class")).to_be_visible()
    expect(sheet).to_contain_text(DESK.needs[0].title)
    expect(sheet).to_contain_text(DESK.policies[0].name)
    page.goto(page.url.replace("node=design", "node=index%3Anone"))
    expect(page.locator(".drawer")).to_contain_text("no node of this name")


def test_what_takes_a_person_shows_the_rules_words(housed: Housed, pages: Pages) -> None:
    """Where no change of the design does it, the rule's own example and what to do instead are shown."""
    page = _open(housed, pages, table_per_entity.FOUND, "/design?tab=findings&only=table-per-entity")

    page.get_by_role("button", name="Show the remedy").first.click()

    expect(page.get_by_text("This takes a person")).to_be_visible()
    expect(page.get_by_role("heading", name="Instead")).to_be_visible()


def test_an_altered_design_is_looked_at_and_kept(housed: Housed, pages: Pages) -> None:
    """The design with a remedy in it can be looked at, judged again and downloaded; the studio's own is one press away."""
    unprotected = design(
        table(entity("User", text("user_id"), pk="USER#{user_id}"), deletion_protection=False)
    )
    page = _open(housed, pages, unprotected, "/design?tab=findings&production=yes&only=deletion-unprotected")
    page.get_by_role("button", name="Show the remedy").click()

    page.get_by_role("button", name="Look at the altered design").click()

    expect(page.get_by_text("You look at the design with the remedy of deletion-unprotected")).to_be_visible()
    expect(
        page.get_by_text("Nothing found by these filters").or_(page.get_by_text("Nothing found"))
    ).to_be_visible()
    page.get_by_role("button", name="Back to the studio's own").click()
    expect(page.locator(".design-finding")).to_have_count(1)
    page.get_by_role("button", name="Show the remedy").click()
    with page.expect_download() as kept:
        page.get_by_role("button", name="Download design.json").click()
    assert json.loads(kept.value.path().read_text())["tables"][0]["settings"]["deletion_protection"] is True


def test_findings_are_narrowed_by_the_url(housed: Housed, pages: Pages) -> None:
    """Severity and rule are in the address, so that a reload shows the same."""
    page = _open(housed, pages, DESK, "/design?tab=findings")
    page.get_by_role("radio", name=re.compile("^Errors")).click()
    page.get_by_label("Rule", exact=True).select_option("stale-index-key")
    expect(page.locator(".design-finding.error")).to_have_count(2)

    page.reload()

    expect(page.locator(".design-finding.error")).to_have_count(2)
    assert "only=stale-index-key" in page.url
    page.get_by_text("Every rule there is").click()
    expect(page.locator(".design-rules li")).to_have_count(len(RULES))
    page.get_by_role("button", name="two-orders").last.click()
    expect(page.get_by_role("dialog", name="two-orders")).to_be_visible()


def test_the_solver_makes_its_offer(housed: Housed, pages: Pages) -> None:
    """The offer has a price beside the present one, reasons for each choice, and the module that declares it."""
    page = _open(housed, pages, SHOP, "/design?tab=solver")

    expect(page.get_by_text("A month with the offer")).to_be_visible(timeout=15_000)
    expect(page.get_by_text("Simple Key").first).to_be_visible()
    page.get_by_role("radio", name="Python").click()
    expect(page.get_by_label("model.py")).to_contain_text("class User(Entity")


def test_an_offer_is_shown_under_its_own_style_alone(housed: Housed, pages: Pages) -> None:
    """While another style is solved, the offer of the last one is not shown for it; a style that is none is the first."""
    page = _open(housed, pages, SHOP, "/design?tab=solver&style=none")
    expect(page.get_by_role("radio", name="Fewest indexes")).to_be_checked()
    expect(page.get_by_text("A month with the offer")).to_be_visible(timeout=15_000)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/design/solve", hold)

    page.get_by_role("radio", name="Templates").click()

    expect(page.get_by_text("Solving")).to_be_attached()
    expect(page.get_by_text("A month with the offer")).to_have_count(0)
    held[0].continue_()
    expect(page.get_by_text("A month with the offer")).to_be_visible(timeout=15_000)


def test_what_was_not_held_against_the_table_is_said(housed: Housed, pages: Pages) -> None:
    """A table that stands as it is declared is so as far as it was looked at; a lost answer is a problem, not silence."""
    studio_server = housed(design=DESK)
    page = pages(studio_server, f"/design/{TABLE}")
    expect(page.get_by_text("The table is not there")).to_be_visible()
    page.route("**/api/design/drift", lambda route: route.fulfill(json={"tables": [NOTED]}))

    page.reload()

    expect(page.get_by_text("as far as it was looked at")).to_be_visible()
    expect(page.get_by_text("What reads its stream is not looked at.")).to_be_visible()


NOTED = {
    "table": TABLE, "exists": True, "changes": [], "notes": ["What reads its stream is not looked at"], "problem": None,
}  # fmt: skip


def test_files_are_shown_and_a_workbench_model_comes_back(housed: Housed, pages: Pages) -> None:
    """Each tool's files are there; the Workbench model that is written is read again."""
    page = _open(housed, pages, SHOP, "/design?tab=infrastructure")
    page.get_by_role("tab", name="tables.tf").click()
    expect(page.get_by_label("tables.tf")).to_contain_text('resource "aws_dynamodb_table"')
    page.get_by_label("For").select_option("workbench")
    expect(page.get_by_label("model.json")).to_contain_text("ModelName")
    model = page.get_by_label("model.json").inner_text()

    page.get_by_role("button", name="Import…").click()
    page.get_by_label("Or paste its text").fill(model)
    page.get_by_role("button", name="Look at the design").click()

    expect(page.get_by_text(re.compile(r"You look at pasted text \(workbench\)"))).to_be_visible()
    page.get_by_role("tab", name="Diagram").click()
    expect(page.get_by_role("button", name=re.compile("^Global index by_mail"))).to_be_visible()


def test_an_imported_name_with_markup_is_text(housed: Housed, pages: Pages) -> None:
    """HTML in the names of a file is shown as it is written, on every tab, and nothing of it runs."""
    odd = design(
        table(entity(HTML, text("user_id", description=HTML), pk="USER#{user_id}"), label=HTML, name="shop")
    )
    page = _open(housed, pages, SHOP)
    page.get_by_role("button", name="Import…").click()
    page.locator("input[type=file]").set_input_files(
        FilePayload(
            name="odd.json", mimeType="application/json", buffer=json.dumps(write_document(odd)).encode()
        )
    )

    page.get_by_role("button", name="Look at the design").click()

    expect(page.locator("li.design-node.entity")).to_contain_text(HTML)
    page.locator("li.design-node.entity button").first.click()
    expect(page.locator(".drawer")).to_contain_text(HTML)
    page.keyboard.press("Escape")
    for name in ("Findings", "Targets", "Document", "Infrastructure"):
        page.get_by_role("tab", name=re.compile(f"^{name}")).click()
    assert page.locator("main img").count() == 0
    assert page.title() != "run"


def test_a_file_that_no_design_has_is_refused_in_the_dialog(
    housed: Housed, pages: Pages, tmp_path: Path
) -> None:
    """What is too large to be a design is told there, before it is sent, and what was pasted stays."""
    page = _open(housed, pages, SHOP)
    page.get_by_role("button", name="Import…").click()
    page.get_by_label("Or paste its text").fill("format: none")

    dump = tmp_path / "dump.json"
    dump.write_bytes(b" " * (9 * 1024 * 1024))
    page.locator("input[type=file]").set_input_files(dump)

    expect(page.get_by_text("The file is too large")).to_be_visible()
    expect(page.get_by_label("Or paste its text")).to_have_value("format: none")


def test_targets_have_a_reason_in_each_cell(housed: Housed, pages: Pages) -> None:
    """A cell tells what is otherwise there, as of when and by which source, and where the design needs it."""
    page = _open(housed, pages, DESK, f"/design/{TABLE}?tab=targets")

    page.get_by_role("button", name="a stream of the changes of a table on alternator: differs").click()

    expect(page.get_by_text(re.compile(r"As of \d{4}-\d\d-\d\d: "))).to_be_visible()
    expect(page.get_by_text("Where the design needs it")).to_be_visible()
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
        "?rule=two-orders",
    ],
)
def test_a_phone_shows_lists_and_nothing_overflows(
    path: str, theme: str, housed: Housed, pages: Pages
) -> None:
    """At 390 pixels the diagram is three lists; axe has nothing to say in either theme."""
    page = _open(
        housed, pages, DESK, f"/design/{TABLE}{path}", viewport=NARROW, has_touch=True, color_scheme=theme
    )
    page.wait_for_selector("#design-panel")
    expect(page.locator(".spinner")).to_have_count(0)

    assert not overflow(page)
    assert not accessibility_faults(page)
    if not path:
        expect(page.locator(".design-lines")).to_be_hidden()
        expect(page.get_by_role("button", name=re.compile("^Entity Ticket, "))).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_offer_fits_a_phone(theme: str, housed: Housed, pages: Pages) -> None:
    """The solver's offer at 390 pixels: nothing overflows, and axe has nothing to say."""
    page = _open(
        housed, pages, SHOP, "/design?tab=solver", viewport=NARROW, has_touch=True, color_scheme=theme
    )
    expect(page.get_by_text("A month with the offer")).to_be_visible(timeout=15_000)

    assert not overflow(page)
    assert not accessibility_faults(page)


@pytest.mark.parametrize("tab", ["document", "targets"])
def test_the_chosen_tab_is_in_sight_on_a_phone(tab: str, housed: Housed, pages: Pages) -> None:
    """A link to a tab far to the right scrolls the row of tabs to it, and the page stays where it is."""
    page = _open(housed, pages, SHOP, f"/design?tab={tab}", viewport=NARROW, has_touch=True)
    chosen = page.get_by_role("tablist", name="The design").locator("[aria-selected=true]")
    expect(chosen).to_have_text(tab.capitalize())

    expect(chosen).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    page.get_by_role("tab", name="Diagram").click()
    expect(page.get_by_role("tab", name="Diagram")).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("path", ["/design?tab=none", "/operations?tab=none", "/cost?view=none"])
def test_a_tab_that_is_none_shows_the_first(path: str, housed: Housed, pages: Pages) -> None:
    """An address of an older or mistyped tab shows the first one, chosen, reachable by the tabulator and by arrow keys."""
    page = _open(housed, pages, SHOP, path)
    first = page.get_by_role("tablist").first.get_by_role("tab").first

    expect(first).to_have_attribute("aria-selected", "true")
    expect(first).to_have_attribute("tabindex", "0")
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tablist").first.get_by_role("tab").nth(1)).to_be_focused()

"""Signing in to the studio beside a strict server, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tavola import connect
from tavola.backends.credentials import Credentials
from tests.apps.processes import start_command
from tests.browser.stage import NARROW, Stage, accessibility_faults, overflow
from tests.browser.studio.conftest import origin
from tests.server.directories import write_directory
from tests.studio.strict_studio import ADMIN, CLERK, USERS

ORDERS: dict[str, Any] = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass(frozen=True, slots=True)
class StrictServer:
    """`tavola serve --auth strict --studio`, as a process."""

    studio: str
    users: Path


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory, stage: Stage) -> Iterator[StrictServer]:
    """A strict server with one table and an item, its studio, and its log."""
    folder = tmp_path_factory.mktemp("strict")
    users = write_directory(folder / "iam.json", **USERS)
    options = ("--port", "0", "--studio", "--studio-port", "0", "--auth", "strict", "--iam", str(users))
    with start_command("serve", *options, "--access-log", str(folder / "access.log")) as started:
        with connect(started.startup["endpoint"], region="us-east-1", credentials=Credentials(*ADMIN)) as db:
            db.call("CreateTable", ORDERS)
            db.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": "o#1"}}})
        yield StrictServer(started.startup["studio"].rstrip("/"), users)


@pytest.fixture
def opened(stage: Stage, strict: StrictServer) -> Iterator[Callable[..., Page]]:
    """Open pages of new browsers; requests without a session are refused, and the browser logs that."""
    with ExitStack() as open_:

        def open_page(path: str = "", **settings: Any) -> Page:
            settings.setdefault("color_scheme", "light")
            page = open_.enter_context(stage.page(origin(strict.studio), trouble=True, **settings))
            stage.run(page.goto, strict.studio + path)
            return page

        yield open_page


def sign_in(page: Page, key: tuple[str, str]) -> None:
    """Fill in the form and send it."""
    page.get_by_label("Access key ID").fill(key[0])
    page.get_by_label("Secret access key").fill(key[1])
    page.get_by_role("button", name="Sign in").click()


def test_a_person_signs_in_and_out(stage: Stage, opened: Callable[..., Page]) -> None:
    """The form comes first, the page that was asked for after it, and the form again after sign-out."""
    page = opened("/data/Orders")
    expect(page.get_by_role("heading", name="Sign in to Tavola Studio")).to_be_visible()
    expect(page.get_by_label("Access key ID")).to_be_focused()
    assert "Orders" not in page.locator("body").inner_text()
    sign_in(page, ADMIN)

    expect(page.get_by_text("o#1").first).to_be_visible()
    expect(page.get_by_text("Signed in as")).to_contain_text("Signed in as")
    expect(page.locator(".shell-person")).to_contain_text("admin")
    page.reload()
    expect(page.get_by_text("o#1").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Tavola Studio")).to_be_visible()
    expect(page.get_by_text("Your session has ended")).to_have_count(0)
    assert page.context.cookies() == []


def test_the_keyboard_is_enough(stage: Stage, opened: Callable[..., Page]) -> None:
    """Typing a key, Tab, the secret and Enter signs in."""
    page = opened("/data/Orders")
    expect(page.get_by_label("Access key ID")).to_be_focused()
    page.keyboard.type(ADMIN[0])
    page.keyboard.press("Tab")
    page.keyboard.type(ADMIN[1])
    page.keyboard.press("Enter")

    expect(page.get_by_text("o#1").first).to_be_visible()


def test_mistakes_are_explained(stage: Stage, opened: Callable[..., Page]) -> None:
    """An empty field and a wrong secret each have a sentence; what was typed stays, and the secret is hidden."""
    page = opened()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Enter the access key ID.")).to_be_visible()
    expect(page.get_by_text("Enter the secret access key.")).to_be_visible()
    sign_in(page, (ADMIN[0], "wrong"))

    expect(page.get_by_role("alert")).to_contain_text("Sign-in failed")
    expect(page.get_by_label("Access key ID")).to_have_value(ADMIN[0])
    assert page.get_by_label("Secret access key").get_attribute("type") == "password"
    assert not page.context.cookies()


def test_a_denied_action_names_action_and_resource(stage: Stage, opened: Callable[..., Page]) -> None:
    """A person without the right reads on the page which action on which resource no policy allows."""
    page = opened("/operations/Orders")
    sign_in(page, CLERK)

    notice = page.get_by_role("alert").first
    expect(notice).to_contain_text("Access denied")
    expect(notice).to_contain_text("cloudtrail:LookupEvents")
    expect(notice).to_contain_text("user/clerk")


def test_an_ended_session_asks_again(stage: Stage, opened: Callable[..., Page], strict: StrictServer) -> None:
    """When the session ends on the server, the next request shows the form and says why; the page comes back after it."""
    page = opened("/data/Orders")
    sign_in(page, ADMIN)
    expect(page.get_by_text("o#1").first).to_be_visible()
    page.context.clear_cookies()
    page.get_by_role("link", name="Operations").click()

    expect(page.get_by_text("Your session has ended")).to_be_visible()
    sign_in(page, ADMIN)
    expect(page.locator(".shell-person")).to_contain_text("admin")


def test_another_person_sees_nothing_of_the_first(stage: Stage, opened: Callable[..., Page]) -> None:
    """After a change of person in one tab the page is loaded anew, so nothing of the first stays in it."""
    page = opened("/data/Orders")
    sign_in(page, ADMIN)
    expect(page.get_by_text("o#1").first).to_be_visible()
    page.evaluate("window.kept = true")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, CLERK)

    expect(page.locator(".shell-person")).to_contain_text("clerk")
    assert page.evaluate("window.kept") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_form_fits_and_is_accessible(
    stage: Stage, opened: Callable[..., Page], scheme: str, narrow: bool
) -> None:
    """In both themes and on a phone, nothing is cut off, and axe-core finds no fault, with an error shown too."""
    settings: dict[str, Any] = {"color_scheme": scheme}
    if narrow:
        settings["viewport"] = NARROW
    page = opened(**settings)
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    before = accessibility_faults(page)
    page.get_by_text("Temporary credentials").click()
    sign_in(page, ("AKIDNOBODY", "x"))
    expect(page.get_by_role("alert")).to_be_visible()

    assert before == accessibility_faults(page) == overflow(page) == []

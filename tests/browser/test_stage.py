"""The stage sees what it looks for: each kind of fault is planted once, and found."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.stage import NARROW, Stage, accessibility_faults, overflow
from tools.browser import Demo

POLICY = "default-src 'none'; script-src 'self'; img-src * data:"

PLANTED = {
    "another origin": (
        '<img alt="" src="http://elsewhere.invalid/x.png">',
        POLICY,
        "asked http://elsewhere.invalid",
    ),
    "an inline script": ("<script>1</script>", POLICY, "Content Security Policy"),
    "an inline style": ('<p style="color: red">x</p>', POLICY, "Content Security Policy"),
    "a script that fails": ("<script>throw new Error('planted')</script>", "", "planted"),
    "a file that is not there": ('<img alt="" src="/none.png">', "", "status of 404"),
}


def plant(page: Page, body: str, policy: str = "") -> None:
    """Go to a page with a fault, at an address of the demo's."""
    html = f"<!doctype html><html lang=en><title>Planted</title><link rel=icon href='data:,'><main><h1>x</h1>{body}</main>"
    headers = {"Content-Security-Policy": policy} if policy else {}
    page.route(
        "**/planted", lambda route: route.fulfill(content_type="text/html", body=html, headers=headers)
    )
    page.goto("/planted")


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_fault_of_a_page_is_found(stage: Stage, demo: Demo, kind: str) -> None:
    """A page that asks another origin, breaks the policy or fails in its script fails its test."""
    body, policy, response = PLANTED[kind]

    with pytest.raises(AssertionError, match=response), stage.page(demo.url) as page:
        plant(page, body, policy)


def test_a_sound_page_is_left_alone(stage: Stage, demo: Demo) -> None:
    """A page without a fault passes, and so does one that is itself a refusal."""
    with stage.page(demo.url) as page:
        plant(page, "<p>All is well.</p>", POLICY)
        assert not accessibility_faults(page)
        answer = page.goto("/gallery/ui/samples/none")

    assert answer is not None
    assert answer.status == 404


def test_planted_barriers_are_found(stage: Stage, demo: Demo) -> None:
    """A picture without words, grey on white, and a block wider than the screen are each found."""
    body = '<img src="data:,"><p style="color: #bbb; background: #fff">faint</p><div style="width: 900px">x</div>'
    with stage.page(demo.url, viewport=NARROW) as page:
        plant(page, body)
        result = " ".join(accessibility_faults(page))
        wide = overflow(page)

    assert "image-alt" in result
    assert "color-contrast" in result
    assert wide

"""What is in a table never runs, and what other sites do never counts: seen in a real browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.stage import Stage
from tests.browser.studio.conftest import StartStudio, origin
from tools.studio_server import ServedStudio

EVIL = "<img src=x onerror=\"window.ran='img'\"><script>window.ran='script'</script>"
LINK = "javascript:window.ran='link'"
ITEM = {
    EVIL: {"S": EVIL},
    "sk": {"S": LINK},
    '"><svg/onload=window.ran=1>': {"M": {EVIL: {"L": [{"S": LINK}, {"SS": [EVIL]}]}}},
    "{{7*7}}": {"S": "${window.ran='template'}"},
}
TABLE = {
    "TableName": "Evil",
    "KeySchema": [
        {"AttributeName": EVIL, "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": EVIL, "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


@pytest.fixture
def evil(start_studio: StartStudio) -> ServedStudio:
    """A studio on a table whose names and values are HTML, scripts and links that run."""
    studio_server = start_studio()
    studio_server.call("CreateTable", TABLE)
    studio_server.call("PutItem", {"TableName": "Evil", "Item": ITEM})
    return studio_server


@pytest.mark.parametrize("name", ["data", "patterns", "design", "heat", "cost", "time", "operations"])
def test_content_is_shown_and_never_run(evil: ServedStudio, pages: Callable[..., Page], name: str) -> None:
    """On no page does anything in a table become part of the page: no element, no script, no link that runs."""
    page = pages(evil, f"/{name}/Evil")
    expect(page.locator("main .page")).to_be_visible()
    page.wait_for_load_state("networkidle") if name != "time" else page.wait_for_load_state("load")

    assert page.evaluate("window.ran") is None
    assert page.locator("main img, main script, main a[href^='javascript']").count() == 0


def test_an_items_text_is_on_the_page_as_it_is(evil: ServedStudio, pages: Callable[..., Page]) -> None:
    """What looks like HTML is read as text, so nothing is hidden either."""
    page = pages(evil, "/data/Evil")

    expect(page.get_by_text(EVIL, exact=False).first).to_be_attached()
    assert page.evaluate("window.ran") is None


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A page of another site."""

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


ATTEMPTS = """async ([url, body]) => {
  const tried = async (settings, path) => {
    try { return (await fetch(url + path, settings)).type; } catch { return "refused"; }
  };
  return [
    await tried({}, "/api/session"),
    await tried({ mode: "no-cors" }, "/api/session"),
    await tried({ method: "POST", mode: "no-cors", body }, "/api/items/put"),
    await tried({ method: "POST", headers: { "X-Tavola-Token": "0" }, body }, "/api/items/put"),
    await tried({}, "/"),
  ];
}"""


def test_another_site_can_neither_read_nor_write(evil: ServedStudio, stage: Stage, elsewhere: str) -> None:
    """A page of another origin gets no answer that it could read, changes nothing, and cannot put the studio in a frame."""
    body = '{"table": "Evil", "item": {"planted": {"S": "x"}}}'
    context = stage.run(stage.browser.new_context)
    try:
        page = stage.run(context.new_page)
        stage.run(page.goto, elsewhere)
        response = stage.run(page.evaluate, ATTEMPTS, [evil.url, body])
        frame = (
            "url => new Promise(done => { const f = document.createElement('iframe'); f.src = url; f.onload = () => {"
            " try { done(f.contentDocument === null ? 'hidden' : 'blank') } catch { done('hidden') } };"
            " document.body.append(f) })"
        )
        framed = stage.run(page.evaluate, frame, evil.url + "/")
        inside = [each.url for each in page.frames if each.url.startswith(origin(evil.url))]
    finally:
        stage.run(context.close)

    assert set(response) <= {"refused", "opaque"}
    assert response[0] == response[3] == response[4] == "refused"
    assert framed in {"hidden", "blank"}
    assert not inside
    assert evil.call("Scan", {"TableName": "Evil"})["Count"] == 1

"""Studio: how soon its pages are there, and how much they bear; `python -m benchmarks.studio` writes studio.md.

Beside it stands dynamodb-admin, the page that most people have over a local table, on the same data in the same browser. The
times are the browser's own; each is the middle of several loads with an empty cache.
"""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from platform import machine, python_version

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.peers import PEERS, Unobtainable
from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.server.listener import running
from tools.browser import QUIET, chromium
from tools.studio_server import REGION, SCOPE, ServedStudio, serve_studio

PLACE = Path(__file__).with_name("studio.md")
ADMIN = "dynamodb-admin@5.3.3"
ITEMS = 1_000
MANY = 100_000
LOADS = 7
STREAM_PER_S = 500
STREAM_S = 20
TABLE = "Rows"


@dataclass(frozen=True, slots=True)
class Row:
    """A measurement as the page tells it."""

    what: str
    found: str
    most: str
    note: str = ""


def fill(engine: Engine, table: str, items: int) -> None:
    """Make a table of collections of ten."""
    names = ("pk", "sk")
    engine.call(
        "CreateTable",
        {
            "TableName": table,
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
            "KeySchema": [
                {"AttributeName": name, "KeyType": kind}
                for name, kind in zip(names, ("HASH", "RANGE"), strict=True)
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        },
        SCOPE,
    )
    for begin in range(0, items, 25):
        puts = [{"PutRequest": {"Item": item(number)}} for number in range(begin, min(begin + 25, items))]
        engine.call("BatchWriteItem", {"RequestItems": {table: puts}}, SCOPE)


def item(number: int) -> dict[str, dict[str, str]]:
    """Return one item of about 200 bytes."""
    return {
        "pk": {"S": f"CUSTOMER#{number // 10:06}"},
        "sk": {"S": f"ORDER#{number:08}"},
        "status": {"S": ("open", "paid", "sent")[number % 3]},
        "total": {"N": str(number)},
        "note": {"S": "a line about the order, as people write them, of some length" * 2},
    }


@dataclass(frozen=True, slots=True)
class Loaded:
    """One load of a page."""

    usable_ms: float
    bytes: int
    nodes: int


def load(browser: Browser, url: str, ready: str) -> Loaded:
    """Open a page in a browser that knows nothing; it is usable when what `ready` asks is true."""
    # Playwright waits by evaluating text, which the studio's policy forbids its own pages.
    context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: list[int] = []
    wire.on("Network.loadingFinished", lambda told: sizes.append(int(told["encodedDataLength"])))
    page.goto(url, wait_until="commit")
    page.wait_for_function(ready, polling="raf", timeout=60_000)
    usable = float(page.evaluate("performance.now()"))
    nodes = int(page.evaluate("document.querySelectorAll('*').length"))
    page.wait_for_load_state("networkidle")
    context.close()
    return Loaded(usable, sum(sizes), nodes)


def loads(browser: Browser, url: str, ready: str) -> Loaded:
    """Return the middle of several loads."""
    found = [load(browser, url, ready) for _ in range(LOADS)]
    return Loaded(
        statistics.median(each.usable_ms for each in found),
        round(statistics.median(each.bytes for each in found)),
        round(statistics.median(each.nodes for each in found)),
    )


OURS_READY = "document.querySelectorAll('main [role=row]').length > 5"
ADMIN_READY = "document.querySelectorAll('table tbody tr').length >= {count}"


@contextmanager
def admin(endpoint: str) -> Iterator[str]:
    """Serve dynamodb-admin over an endpoint while the block runs."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise Unobtainable("needs node and npm, which are not installed (Debian: nodejs npm)")
    folder = PEERS / "dynamodb-admin"
    program = folder / "node_modules" / ".bin" / "dynamodb-admin"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            (npm, "install", "--no-audit", "--no-fund", ADMIN), cwd=folder, capture_output=True, check=False
        )
        if done.returncode:
            raise Unobtainable(f"`npm install {ADMIN}` failed")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "DYNAMO_ENDPOINT": endpoint,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": SCOPE.account,
        "AWS_SECRET_ACCESS_KEY": "none",
    }
    command = (node, str(program), "--host", "127.0.0.1", "--port", str(port))
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with closing(socket.socket()) as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def measured_loads(browser: Browser) -> Iterator[Row]:
    """Measure the first load and a page of 1,000 rows, ours and the other's."""
    with closing(Engine.open()) as engine:
        fill(engine, TABLE, ITEMS)
        with serve_studio(engine, None) as studio_server:
            ours = loads(browser, f"{studio_server.url}/data/{TABLE}", OURS_READY)
            grid = rows_painted(browser, f"{studio_server.url}/data/{TABLE}")
        yield Row(
            "first load, packed", f"{ours.bytes / 1000:.0f} KB", "150 KB", "pages and the first 400 items"
        )
        yield Row(
            "first load until rows stand", f"{ours.usable_ms:.0f} ms", "1,000 ms", f"{ours.nodes} nodes"
        )
        yield Row(f"a page of {ITEMS:,} rows, from its arrival to the screen", f"{grid:.0f} ms", "150 ms")
        with running(engine) as endpoint:
            try:
                with admin(endpoint.url) as url:
                    first = loads(browser, f"{url}/tables/{TABLE}", ADMIN_READY.format(count=20))
                    all_ = loads(
                        browser, f"{url}/tables/{TABLE}?pageSize=1000", ADMIN_READY.format(count=ITEMS)
                    )
            except Unobtainable as error:
                yield Row("dynamodb-admin", "–", "–", str(error))
                return
        name = ADMIN.replace("@", " ")
        yield Row(f"{name}: first load, packed", f"{first.bytes / 1000:.0f} KB", "–", "its page of 25 items")
        yield Row(f"{name}: until rows stand", f"{first.usable_ms:.0f} ms", "–", f"{first.nodes} nodes")
        yield Row(
            f"{name}: until {ITEMS:,} rows stand", f"{all_.usable_ms:.0f} ms", "–", f"{all_.nodes} nodes"
        )


def rows_painted(browser: Browser, url: str) -> float:
    """Return how long the studio takes from the arrival of 1,000 rows until they are on the screen."""
    took = []
    for _ in range(LOADS):
        page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        page.goto(url)
        page.get_by_text(" of 1,000 read").wait_for()  # the first page of all is a smaller one
        page.evaluate("performance.clearMeasures()")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_function("performance.getEntriesByName('tavola:grid').length > 0")
        page.get_by_text("1,000 of 1,000 read").wait_for()
        took.append(float(page.evaluate("performance.getEntriesByName('tavola:grid').at(-1).duration")))
        page.close()
    return statistics.median(took)


def measured_scroll(browser: Browser) -> Row:
    """Measure scrolling through 100,000 items that were read whole."""
    with closing(Engine.open()) as engine:
        fill(engine, TABLE, MANY)
        with serve_studio(engine, None) as studio_server:
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            page.set_default_timeout(180_000)
            page.goto(f"{studio_server.url}/data/{TABLE}")
            began = time.monotonic()
            page.get_by_role("button", name="Read on to the end").click()
            confirm = page.get_by_role("dialog").get_by_role("button").last
            if page.get_by_role("dialog").count():
                confirm.click()
            page.get_by_text(f"{MANY:,} of {MANY:,} read").wait_for()
            read_s = time.monotonic() - began
            frames = page.evaluate(
                """async () => {
                  const box = document.querySelector('main .data-grid');
                  const frames = []; let last = performance.now();
                  for (let step = 0; step < 240; step += 1) {
                    box.scrollTop = (box.scrollHeight - box.clientHeight) * step / 240;
                    const now = await new Promise(requestAnimationFrame);
                    frames.push(now - last); last = now;
                  }
                  return frames.slice(1).sort((a, b) => a - b);
                }"""
            )
            nodes = page.evaluate("document.querySelectorAll('*').length")
            page.close()
    middle, late = frames[len(frames) // 2], frames[int(len(frames) * 0.99)]
    return Row(
        f"scrolling through {MANY:,} items, a frame",
        f"{middle:.0f} ms, p99 {late:.0f} ms",
        "smooth",
        f"{nodes:,} nodes; all read in {read_s:.1f} s",
    )


def measured_heat(browser: Browser) -> Row:
    """Measure the painting of a heat map of 1,000 keys in 600 seconds."""
    clock = ManualClock(1_790_000_000.0)
    with closing(Engine.open(clock=clock)) as engine:
        fill(engine, TABLE, 25)
        with serve_studio(engine, None) as studio_server:
            for _ in range(600):
                clock.advance(1.0)
                for number in range(0, 10_000, 10):
                    engine.execute("GetItem", _GET % number, SCOPE)
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            page.set_default_timeout(60_000)
            page.goto(f"{studio_server.url}/heat/{TABLE}")
            page.wait_for_function("performance.getEntriesByName('tavola:heat').length > 0")
            page.wait_for_timeout(3_000)
            found = page.evaluate(
                "performance.getEntriesByName('tavola:heat').map(each => [each.duration, each.detail])"
            )
            page.close()
    took = [duration for duration, _ in found]
    size = found[-1][1]
    return Row(
        f"heat map of {size['rows']:,} × {size['columns']}, painted",
        f"{statistics.median(took):.1f} ms, at most {max(took):.1f} ms",
        "50 ms",
        f"{len(took)} paintings",
    )


_GET = b'{"TableName":"Rows","Key":{"pk":{"S":"CUSTOMER#%06d"},"sk":{"S":"ORDER#0"}}}'


def measured_stream(browser: Browser) -> Row:
    """Measure how far the live page is behind while 500 changes a second come."""
    with closing(Engine.open()) as engine:
        fill(engine, TABLE, 25)
        with serve_studio(engine, None) as studio_server:
            page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            page.goto(f"{studio_server.url}/time/{TABLE}")
            page.get_by_text("Nothing has changed yet").wait_for()
            late, written = written_while_watched(studio_server, page)
            page.close()
    return Row(
        f"live stream at {STREAM_PER_S} changes/s for {STREAM_S} s",
        f"{statistics.median(late):,.0f} changes behind, at most {max(late):,}",
        "does not fall behind",
        f"{written:,} written, {written:,} seen",
    )


def written_while_watched(studio_server: ServedStudio, page: Page) -> tuple[list[int], int]:
    """Write at a steady rate; return how many changes the page had not seen at each look, and how many there were."""
    written = 0
    done = threading.Event()

    def write() -> None:
        nonlocal written
        began = time.monotonic()
        for number in range(STREAM_PER_S * STREAM_S):
            wait = began + number / STREAM_PER_S - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            changed = {**item(number % 500), "at": {"N": str(number)}}  # what writes nothing new is no change
            studio_server.call("PutItem", {"TableName": TABLE, "Item": changed})
            written = number + 1
        done.set()

    writing = threading.Thread(target=write)
    writing.start()
    late: list[int] = []
    while not done.is_set():
        page.wait_for_timeout(200)
        before = written
        late.append(max(0, before - _seen(page)))
    writing.join()
    page.wait_for_function(f"() => ({_SEEN})() >= {written}", timeout=20_000)
    return late, written


_SEEN = "() => Number((document.querySelector('main').innerText.match(/([\\d,]+) changes/) || ['', '0'])[1].replaceAll(',', ''))"


def _seen(page: Page) -> int:
    return int(page.evaluate(_SEEN))


def measured() -> str:
    """Run all of them and return the page."""
    program = chromium()
    if program is None:
        raise SystemExit("there is no Chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        version = browser.version
        rows = [
            *measured_loads(browser),
            measured_scroll(browser),
            measured_heat(browser),
            measured_stream(browser),
        ]
        browser.close()
    lines = [
        "# What the studio's pages take",
        "",
        f"Python {python_version()}, {machine()}, Chromium {version}, headless, server and browser on the same two cores; the middle of {LOADS} loads where nothing else is said. `python -m benchmarks.studio` makes this page.",
        "",
        "| What | Found | At most | |",
        "|---|---:|---:|---|",
        *(f"| {row.what} | {row.found} | {row.most} | {row.note} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PLACE.write_text(measured(), encoding="utf-8")

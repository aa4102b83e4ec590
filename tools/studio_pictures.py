"""Screenshots of the studio for the documentation: `python -m tools.studio_pictures`.

Every page, 1280 and 390 pixels wide, with the demo's tables after ten minutes of generated traffic: many tickets are read, some
more than others, and one is written repeatedly.
"""

from __future__ import annotations

import io
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from tavola.clock import SYSTEM_CLOCK, ManualClock
from tools.browser import QUIET, chromium
from tools.studio_server import ServedStudio, demo_declared, demo_design, seeded_engine, serve_studio

PICTURES = Path(__file__).parents[1] / "docs" / "pictures" / "studio"
BYTES_MAX = 120_000
TABLE = "prod-tickets-unified"
WIDE: ViewportSize = {"width": 1280, "height": 860}
NARROW: ViewportSize = {"width": 390, "height": 844}
TRAFFIC_S = 600
SEEDED_S = 120
READS_PER_S = 30


@dataclass(frozen=True, slots=True)
class View:
    """A view of the studio: its name, its path, and the steps before the screenshot."""

    name: str
    path: str
    go: Callable[[Page], None] = lambda page: None
    dark: bool = False


def _open_item(page: Page) -> None:
    page.locator("[role=row]", has_text="METADATA").first.dblclick()
    page.wait_for_selector("[role=dialog]")


def _palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("heat")


def _run(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Run")).first.click()
    page.wait_for_timeout(600)


VIEWS = (
    View("data", f"/data/{TABLE}"),
    View("data-item", f"/data/{TABLE}", _open_item),
    View("patterns", f"/patterns/{TABLE}", _run),
    View("matrix", f"/patterns/{TABLE}?view=coverage"),
    View("design", f"/design/{TABLE}"),
    View("findings", f"/design/{TABLE}?tab=findings"),
    View("solver", f"/design/{TABLE}?tab=solver"),
    View("targets", f"/design/{TABLE}?tab=targets"),
    View("heat", f"/heat/{TABLE}", dark=True),
    View("cost", "/cost"),
    View("history", f"/time/{TABLE}?from=start"),
    View("point-in-time", f"/time/{TABLE}?tab=past"),
    View("operations", "/operations"),
    View("expensive", "/operations?tab=expensive"),
    View("palette", f"/data/{TABLE}", _palette, dark=True),
)


def generate_traffic(studio_server: ServedStudio, clock: ManualClock, seconds: int = TRAFFIC_S) -> None:
    """Generate ten minutes of traffic: Zipf-distributed reads, steady writes, and one hot ticket."""
    chance = random.Random(7)
    items = studio_server.call("Scan", {"TableName": TABLE, "ProjectionExpression": "PK, SK"})["Items"]
    keys = [item for item in items if item["SK"]["S"] == "METADATA"]
    weights = [1 / (place + 1) for place in range(len(keys))]
    hot = keys[len(keys) // 2]
    for second in range(seconds):
        clock.advance(1.0)
        reads = READS_PER_S + (20 if 240 < second < 330 else 0)
        for key in chance.choices(keys, weights, k=reads):
            studio_server.call("GetItem", {"TableName": TABLE, "Key": key})
        for _ in range(4):
            update = {
                "TableName": TABLE,
                "Key": hot if chance.random() < 0.7 else chance.choice(keys),
                "UpdateExpression": "ADD seen :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}},
            }
            studio_server.call("UpdateItem", update)


def _settle(page: Page) -> None:
    """Wait until the page has loaded, and a little longer for charts."""
    page.wait_for_timeout(400)
    expect(page.locator("main .spinner")).to_have_count(0, timeout=60_000)
    page.wait_for_timeout(600)


def small(picture: bytes) -> bytes:
    """Return a screenshot with 256 colours, a third of the size."""
    from PIL import Image

    output = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
        output, "PNG", optimize=True
    )
    return output.getvalue()


def main() -> None:
    """Take the screenshots."""
    program = chromium()
    if program is None:
        sys.exit("there is no Chromium on this machine")
    PICTURES.mkdir(parents=True, exist_ok=True)
    clock = ManualClock(SYSTEM_CLOCK.now() + SEEDED_S)  # after the tables were created
    with (
        seeded_engine(clock=clock) as engine,
        serve_studio(engine, demo_design(), declared=demo_declared()) as studio_server,
        sync_playwright() as playwright,
    ):
        generate_traffic(studio_server, clock)
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        views = [view for view in VIEWS if not sys.argv[1:] or view.name in sys.argv[1:]]
        for view in views:
            for size in (WIDE, NARROW):
                context = browser.new_context(
                    viewport=size, color_scheme="dark" if view.dark else "light", reduced_motion="reduce"
                )
                page = context.new_page()
                page.goto(studio_server.url + view.path)
                page.wait_for_selector("main .page")
                _settle(page)
                view.go(page)
                _settle(page)
                screenshot = page.screenshot(animations="disabled")
                (PICTURES / f"{view.name}-{size['width']}.png").write_bytes(small(screenshot))
                context.close()
        browser.close()
    large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > BYTES_MAX]
    if large:
        sys.exit(f"too large to commit, over {BYTES_MAX:,} bytes: {', '.join(sorted(large))}")


if __name__ == "__main__":
    main()

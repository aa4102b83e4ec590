"""A browser and a demo for it to look at: what browser tests and the pictures of the guide share.

Chromium is looked for by name or given, and never downloaded. It asks nobody but this machine. The demo is the program itself, `tavola demo`, in
a process of its own on a file that is gone in the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--metrics-recording-only",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
TICKETS = 400
REVIEWS = 80
STOP_S = 15


def chromium(named: str | None = None) -> str | None:
    """Return the browser's program: the one that is named, or one that is found; None if there is none."""
    if named:
        return named
    return next((found for name in CHROMIUMS if (found := shutil.which(name))), None)


@dataclass(frozen=True, slots=True)
class Demo:
    """Where a demo listens."""

    url: str  # of the start page; each application is below it
    endpoint: str


@contextmanager
def running_demo(tickets: int = TICKETS, reviews: int = REVIEWS) -> Iterator[Demo]:
    """Run the demo on a new file while the block runs."""
    with tempfile.TemporaryDirectory(prefix="tavola-demo-") as folder:
        file = Path(folder) / "demo.db"
        command = [sys.executable, "-m", "tavola", "demo", str(file), "--json", "--sync", "off"]
        command += ["--port", "0", "--apps-port", "0", "--tickets", str(tickets), "--reviews", str(reviews)]
        with open(Path(folder) / "log", "w+", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                if not line:
                    log.seek(0)
                    raise RuntimeError(f"the demo did not start:\n{log.read()}")
                told = json.loads(line)
                yield Demo(told["url"], told["endpoint"])
            finally:
                process.terminate()
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                if process.stdout is not None:
                    process.stdout.close()

"""A process that serves has large pages of memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tavola.cli.launch import glibc_version, wants_large_pages


@pytest.mark.parametrize(
    ("arguments", "environment", "wanted"),
    [
        (["serve"], {}, True),
        (["serve", "shop.db", "--port", "0"], {"PATH": "/bin"}, True),
        (["demo"], {}, True),
        (["demo", "--fresh"], {}, True),
        (["serve", "--help"], {}, False),
        (["env"], {}, False),
        (["--version"], {}, False),
        ([], {}, False),
        (["serve"], {"GLIBC_TUNABLES": ""}, False),
        (["serve"], {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, False),
    ],
)
def test_only_a_server_starts_anew(arguments: list[str], environment: dict[str, str], wanted: bool) -> None:
    """Other commands are short, and whoever chose glibc's tunables keeps them."""
    assert wants_large_pages(arguments, environment) is wanted


def test_the_server_is_the_process_that_was_started() -> None:
    """It starts anew in its own place: the same process id, the tunables set, ended by the same signal."""
    environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}
    command = [sys.executable, "-m", "tavola", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        seen = Path(f"/proc/{process.pid}/environ")
        variables = seen.read_bytes().split(b"\0") if seen.exists() else []
        process.send_signal(signal.SIGTERM)

    assert told["port"] > 0
    assert process.returncode == 0
    offered = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if glibc_version() >= (2, 35) and offered.exists() and "[never]" not in offered.read_text():
        assert b"GLIBC_TUNABLES=glibc.malloc.hugetlb=1" in variables

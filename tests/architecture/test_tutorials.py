"""The tutorials can be followed: their files are saved, their edits are made, and their commands print what the page shows.

Three kinds of blocks take part, in the order of the page:

    ```python file=shop.py      is saved under that name
    ```diff edit=shop.py        replaces its lines without "+" by its lines without "-"
    ```console runnable         runs each line that starts with "$ "; "…" stands for any text, also over several lines
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.prose import Example, examples, output_pattern
from tests.architecture.server import serving
from tests.architecture.source_tree import PACKAGE, ROOT

ENDPOINT = "http://localhost:8000"
TUTORIALS = tuple(
    page
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))
    if "```console runnable" in page.read_text(encoding="utf-8")
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_a_tutorial_can_be_followed(page: Path, tmp_path: Path) -> None:
    """Each command succeeds or fails as the page says, and prints what the page shows."""
    with serving() as endpoint:
        differences = list(follow(examples(page.read_text(encoding="utf-8")), tmp_path, endpoint))

    assert not differences, "\n".join(differences)


def test_a_planted_difference_is_found(tmp_path: Path) -> None:
    """A command that prints something else is reported with its line; an edit changes the file that the next command runs."""
    text = (
        "```python file=a.py\nprint(1)\nprint(2)\n```\n"
        "```console runnable\n$ python a.py\n…\n2\n```\n"
        "```diff edit=a.py\n-print(1)\n+print(3)\n print(2)\n```\n"
        "```console runnable\n$ python a.py\n1\n…\n```\n"
    )

    assert list(follow(examples(text), tmp_path, ENDPOINT)) == [
        "line 15: `python a.py` printed\n3\n2\ninstead of\n1\n…\n"
    ]


def follow(blocks: tuple[Example, ...], folder: Path, endpoint: str) -> Iterator[str]:
    """Save, edit and run the blocks of a page in `folder`; yield where the output differs from the page."""
    for block in blocks:
        (name,) = [mark.partition("=")[2] for mark in block.marks if mark.startswith(("file=", "edit="))] or [
            ""
        ]
        if name and block.language == "diff":
            _edit(folder / name, block.text)
        elif name:
            (folder / name).write_text(block.text, encoding="utf-8")
        elif block.language == "console" and "runnable" in block.marks:
            yield from _compare(block, folder, endpoint)


def _edit(path: Path, diff: str) -> None:
    lines = diff.splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
    new = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} has not exactly one place for\n{diff}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def _compare(block: Example, folder: Path, endpoint: str) -> Iterator[str]:
    for command, shown in re.findall(r"^\$ ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", block.text, re.MULTILINE):
        printed = _run(command.replace(ENDPOINT, endpoint), folder).replace(endpoint, ENDPOINT)
        if not re.fullmatch(output_pattern(shown), printed):
            yield f"line {block.line}: `{command}` printed\n{printed}instead of\n{shown}"


def _run(command: str, folder: Path) -> str:
    """Run a command of this Python in `folder` and return what it printed, to both streams."""
    program, *arguments = shlex.split(command)
    assert program in {"python", "tavola"}, command
    result = subprocess.run(
        [sys.executable, *(["-m", "tavola"] if program == "tavola" else []), *arguments],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{folder}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return result.stdout

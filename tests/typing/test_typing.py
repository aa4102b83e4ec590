"""Type checkers know the model: what is right passes, and each mistake is seen before anything runs."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path

import pytest

from tavola import connect, connect_async
from tests.typing.checkers import (
    DESK,
    HERE,
    Mode,
    differences,
    failing,
    marked,
    mypy,
    pages,
    passing,
    pyright,
)

pytestmark = pytest.mark.slow  # a type checker a test: `make slow` runs it

MISTAKES_MIN = 45

PLANTED = """
from tests.client.desk import Ticket

Ticket.Key(ticket_id="t1")  # error: there is nothing wrong with it
Ticket.Key(tiket_id="t1")
Ticket.Key(tiket_id="t1")  # error: wrong argument
"""


@pytest.mark.timeout(300)
def test_mypy_sees_each_mistake_and_no_other(tmp_path: Path) -> None:
    """mypy --strict reports every marked line, and none besides."""
    paths = passing() + failing() + pages(tmp_path)

    found = list(differences("mypy", paths, mypy(paths)))

    assert not found, "\n".join(map(str, found))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_pyright_sees_each_mistake_and_no_other(mode: Mode, tmp_path: Path) -> None:
    """Pyright reports every marked line in its standard mode already, and no other line even in its strict one."""
    paths = passing() + failing() + pages(tmp_path)

    found = list(differences("pyright", paths, pyright(paths, mode, tmp_path)))

    assert not found, "\n".join(map(str, found))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_planted_fault_is_found(checker: str, tmp_path: Path) -> None:
    """A marked line that is fine, and a wrong one without a mark, are both differences."""
    path = tmp_path / "planted" / "bad_planted.py"
    path.parent.mkdir()
    path.write_text(PLANTED)

    if checker == "mypy":
        found = list(differences("mypy", [path], mypy([path])))
    else:
        found = list(differences("pyright", [path], pyright([path], "standard", tmp_path)))

    assert [report.line for report in found] == [4, 5]


@pytest.mark.timeout(300)
def test_pydantics_plugin_is_no_obstacle(tmp_path: Path) -> None:
    """Who has pydantic's plugin for mypy switched on can ask and write as all others do."""
    settings = tmp_path / "plugin.ini"
    settings.write_text("[mypy]\nplugins = pydantic.mypy\n")
    paths = [DESK, HERE / "ok_desk.py", HERE / "ok_together.py"]

    found = mypy(paths, settings)

    assert not found, "\n".join(map(str, found))


def test_there_are_mistakes_enough() -> None:
    """The mistakes are many, and few are seen by one checker alone."""
    who = [seen for path in failing() for seen in marked(path).values()]

    assert len(who) >= MISTAKES_MIN
    assert who.count("both") >= len(who) * 0.95


@pytest.mark.parametrize("path", sorted(HERE.glob("ok_*.py")), ids=lambda path: path.stem)
def test_what_passes_also_runs(path: Path) -> None:
    """What the checkers accept is no fiction: it runs on an engine, through both shells."""
    module = import_module(f"tests.typing.{path.stem}")
    with connect("memory:") as db:
        db.create_tables(*module.TABLES)
        module.use(db)

    async def run() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(*module.TABLES)
            await module.use_async(db)

    if hasattr(module, "use_async"):
        asyncio.run(run())

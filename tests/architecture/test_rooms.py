"""The rooms and their doors, and the package's own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module

import pytest

import tavola
from tests.architecture.house import PACKAGE, modules, read_module, rooms


@pytest.mark.parametrize("room", rooms())
def test_a_room_has_a_deed(room: str) -> None:
    """A room's door begins with its deed: its name, what it holds, and what it does not know."""
    door = PACKAGE / room / "__init__.py"
    assert door.exists(), f"{room} has no door"

    deed = ast.get_docstring(read_module(door).tree) or ""
    first, _, rest = deed.partition("\n")

    assert re.match(rf"(?i){room}: \S.*\.$", first), f"the deed of {room} begins with {first!r}"
    assert rest.strip(), f"the deed of {room} says neither what it holds nor what it does not know"


@pytest.mark.parametrize("room", rooms())
def test_a_door_offers_what_it_names(room: str) -> None:
    """Every name in a door's `__all__` is there, and once."""
    door = import_module(f"tavola.{room}")
    offered = list(getattr(door, "__all__", []))

    assert len(offered) == len(set(offered))
    assert not [name for name in offered if not hasattr(door, name)]


def test_a_door_holds_no_code() -> None:
    """A door imports and names; what works stands in a module of the room."""
    doors = [module for module in modules() if module.path.name == "__init__.py" and module.room]
    working = [
        f"{module.place}:{node.lineno}"
        for module in doors
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    assert not working


def test_the_public_names_resolve() -> None:
    """Each public name is fetched from its home when asked for, and an unknown one is refused as usual."""
    for name in tavola.__all__:
        assert getattr(tavola, name) is not None

    with pytest.raises(AttributeError, match="no attribute 'tabel'"):
        _ = tavola.tabel


def test_type_checkers_see_the_same_public_names() -> None:
    """The names fetched late, the names for type checkers and `__all__` are one list."""
    door = read_module(PACKAGE / "__init__.py").tree
    for_checkers = {
        (node.module, alias.asname or alias.name)
        for node in ast.walk(door)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tavola.")
        for alias in node.names
    }

    assert for_checkers == {(home, name) for name, home in tavola._HOMES.items()}
    assert set(tavola.__all__) == {*tavola._HOMES, "__version__"}


def test_importing_tavola_imports_nothing_else() -> None:
    """Pytest loads the package at start-up through the plugin, so its door must cost nothing."""
    script = (
        "import sys, tavola\n"
        "heavy = {'apsw', 'msgspec', 'botocore', 'uvloop', 'click', 'asyncio'}\n"
        "own = {name for name in sys.modules if name.startswith('tavola.')}\n"
        "sys.exit(' '.join(sorted(own | heavy & set(sys.modules))) or 0)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr

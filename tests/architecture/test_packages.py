"""Each package documents itself and exports what it names; the public names resolve."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module

import pytest

import tavola
from tests.architecture.source_tree import PACKAGE, modules, packages, read_module


@pytest.mark.parametrize("package", packages())
def test_a_package_describes_itself(package: str) -> None:
    """A package's docstring begins with its name and a sentence, then says what it contains and what it does not depend on."""
    init = PACKAGE / package / "__init__.py"
    assert init.exists(), f"{package} has no __init__.py"

    docstring = ast.get_docstring(read_module(init).tree) or ""
    first, _, rest = docstring.partition("\n")

    assert re.match(rf"(?i){package}: \S.*\.$", first), f"the docstring of {package} begins with {first!r}"
    assert rest.strip(), (
        f"the docstring of {package} has one line; say what it contains and what it does not know"
    )


@pytest.mark.parametrize("package", packages())
def test_a_package_exports_what_it_names(package: str) -> None:
    """Every name in `__all__` exists, and is listed once."""
    module = import_module(f"tavola.{package}")
    exported = list(getattr(module, "__all__", []))

    assert len(exported) == len(set(exported))
    assert not [name for name in exported if not hasattr(module, name)]


def test_an_init_module_defines_nothing() -> None:
    """An `__init__.py` imports and lists names; functions and classes belong to a module of the package."""
    inits = [module for module in modules() if module.path.name == "__init__.py" and module.package]
    definitions = [
        f"{module.file}:{node.lineno}"
        for module in inits
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name != "__getattr__"  # imports names on first use
    ]

    assert not definitions


def test_the_public_names_resolve() -> None:
    """Each public name is imported on first use, and an unknown one raises AttributeError."""
    for name in tavola.__all__:
        assert getattr(tavola, name) is not None

    with pytest.raises(AttributeError, match="no attribute 'tabel'"):
        _ = tavola.tabel


def test_type_checkers_see_the_same_public_names() -> None:
    """The lazily imported names, the names for type checkers and `__all__` are the same list."""
    init = read_module(PACKAGE / "__init__.py").tree
    for_checkers = {
        (node.module, alias.asname or alias.name)
        for node in ast.walk(init)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tavola.")
        for alias in node.names
    }

    assert for_checkers == {(home, name) for name, home in tavola._HOMES.items()}
    assert set(tavola.__all__) == {*tavola._HOMES, "__version__"}


def test_importing_tavola_imports_nothing_else() -> None:
    """Pytest imports the package at start-up through the plugin, so `import tavola` loads nothing else."""
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

"""What each rule of the house looks for in one module; every detector is tested with a planted fault.

Import-linter proves the direction of imports. These find what it cannot see: a room entered through its
wall, a second reader of the time, a print.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.house import PACKAGE, Finding, Module, nodes

LINES_MAX = 600

# Behind an extra, or behind what an engine in this process does not need: their room's door does not import them, so
# they are entered by name.
SIDE_DOORS = frozenset(
    {
        "tavola.backends.aws",
        "tavola.backends.mocking",
        "tavola.model.document",  # for tools alone, and dear to load
        "tavola.model.identity_cache",
        "tavola.model.sizes",  # beside document
        "tavola.model.overview",
        "tavola.client.differences",  # for tools that deploy a design
        "tavola.client.table_changes",
        "tavola.backends.http",
        "tavola.backends.async_http",
        "tavola.design.cost",  # the tools that judge a design, each with what it alone needs
        "tavola.design.lint",
        "tavola.design.simulation",
        "tavola.design.solver",
        "tavola.design.targets",
        "tavola.design.findings",
        "tavola.design.access_paths",
        "tavola.design.charts",
        "tavola.design.text",
        "tavola.iac.formats",  # the readers of others' files
    }
)

# Packages without a list of public names: protocol alone has 238. Their modules are imported directly, private
# names (with an underscore) excepted.
OPEN_PACKAGES = frozenset({"tavola.protocol", "tavola.expressions"})

# A package from outside, and the only modules or rooms that may know it. Nobody may know sqlite3: the
# stdlib's copy is whatever the machine has.
STRANGERS = {
    "apsw": ("tavola.engine.storage",),
    "sqlite3": (),
    "boto3": ("tavola.apps.shell.stores",),  # its client of S3, for who keeps blobs there
    "uvicorn": ("tavola.web",),
    "botocore": ("tavola.backends.aws", "tavola.backends.mocking"),
    "httptools": ("tavola.server", "tavola.backends"),
    "uvloop": ("tavola.server",),
    "isal": ("tavola.server",),
    "click": ("tavola.cli",),
    "rich": ("tavola.cli",),
    "matplotlib": ("tavola.design",),
    "hcl2": ("tavola.iac.formats",),
    "yaml": ("tavola.iac",),
    "pytest": ("tavola.pytest_plugin",),
    "hypothesis": (),
}

_TIME = frozenset(
    {
        *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "sleep")),
        *(f"time.{name}" for name in ("perf_counter", "perf_counter_ns", "process_time")),
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.datetime.today",
        "datetime.date.today",
    }
)
_CHANCE = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4"})
_CHANCE_MODULES = frozenset({"random", "secrets"})
_ENVIRONMENT = frozenset({"os.environ", "os.environb", "os.getenv", "os.putenv"})


def entered_by_the_wall(module: Module, package: Path = PACKAGE) -> Iterator[Finding]:
    """Give each import that reaches past another room's door, or for a private name behind it."""
    for node, target, names in _imports(module):
        parts = target.split(".")
        if parts[0] != package.name or len(parts) < 2 or parts[1] == module.room or target in SIDE_DOORS:
            continue
        if ".".join(parts[:2]) in OPEN_PACKAGES:
            for name in names:
                if name.startswith("_"):
                    yield module.find(node, f"{target}.{name} is private to its package")
            continue
        if len(parts) > 2:
            yield module.find(node, f"{target} is inside the room {parts[1]}; import from its door")
            continue
        inside = package / parts[1]
        for name in names:
            if f"{target}.{name}" in SIDE_DOORS:
                continue
            if name.startswith("_"):
                yield module.find(node, f"{target}.{name} is private to its room")
            elif (inside / f"{name}.py").exists() and name not in _offered(inside):
                yield module.find(node, f"{target}.{name} is a module inside a room; import from its door")


def met_a_stranger(module: Module) -> Iterator[Finding]:
    """Give each import of an outside package by a module that has no business with it."""
    for node, target, _ in _imports(module):
        allowed = STRANGERS.get(target.split(".")[0])
        if allowed is None or any(f"{module.name}.".startswith(f"{name}.") for name in allowed):
            continue
        yield module.find(node, f"{target} may be imported only by {', '.join(allowed) or 'nobody'}")


def read_the_time(module: Module) -> Iterator[Finding]:
    """Give each reading of a clock outside `tavola.clock`; a sleep counts, because it is a clock too."""
    if module.name != "tavola.clock":
        for node, name in _dotted_uses(module):
            if name in _TIME:
                yield module.find(node, f"{name}: take a Clock")


def read_chance(module: Module) -> Iterator[Finding]:
    """Give each reading of randomness outside `tavola.entropy`."""
    if module.name == "tavola.entropy":
        return
    for node, name in _dotted_uses(module):
        if name in _CHANCE:
            yield module.find(node, f"{name}: take an Entropy")
    for node, target, _ in _imports(module):
        if target in _CHANCE_MODULES:
            yield module.find(node, f"{target}: take an Entropy")


def read_the_environment(module: Module) -> Iterator[Finding]:
    """Give each look at the process's environment outside the command line."""
    if module.room != "cli":
        for node, name in _dotted_uses(module):
            if name in _ENVIRONMENT:
                yield module.find(node, f"{name}: settings are keyword arguments; cli reads the environment")


def printed(module: Module) -> Iterator[Finding]:
    """Give each call of print, and each write to a standard stream, outside `cli/output.py`."""
    if module.name == "tavola.cli.output":
        return
    for node in nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield module.find(node, "print: cli/output.py is the only one that prints")
    for node, name in _dotted_uses(module):
        if name in {"sys.stdout", "sys.stderr"} and module.room != "cli":
            yield module.find(node, f"{name}: cli/output.py is the only one that prints")


def grew_too_long(module: Module) -> Iterator[Finding]:
    """Give a module past 600 lines, unless a comment in its first lines says why: `# Long because …`."""
    lines = module.text.splitlines()
    if len(lines) > LINES_MAX and not any("Long because" in line for line in lines[:40]):
        yield Finding(module.place, len(lines), f"{len(lines)} lines; look for the second noun in it")


def lacks_a_docstring(module: Module) -> Iterator[Finding]:
    """Give a module that does not say what it owns."""
    if not (ast.get_docstring(module.tree) or "").strip():
        yield Finding(module.place, 1, "no docstring: say what this module owns")


def hides_a_cycle(module: Module) -> Iterator[Finding]:
    """Give each import of Tavola's own names that is only for the type checker.

    Such an import hides a cycle between packages. Two places load late on purpose and cannot hide one: the top-level
    package, and the command line, which nothing imports and whose commands load a package when they run.
    """
    if module.name == "tavola" or module.name.startswith("tavola.cli."):
        return
    for node in nodes(module):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for inner in node.body:
                if isinstance(inner, ast.ImportFrom) and (inner.module or "").split(".")[0] == "tavola":
                    yield module.find(
                        inner, f"{inner.module} is imported for types only, which hides a cycle"
                    )


@cache
def _imports(module: Module) -> tuple[tuple[ast.stmt, str, tuple[str, ...]], ...]:
    """Return each import as its node, the module it names and the names it takes from there."""
    return tuple(_each_import(module))


def _each_import(module: Module) -> Iterator[tuple[ast.stmt, str, tuple[str, ...]]]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, ()
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node, node.module, tuple(alias.name for alias in node.names)


@cache
def _dotted_uses(module: Module) -> tuple[tuple[ast.AST, str], ...]:
    """Return each use of an imported thing by its full name, whatever it was imported as."""
    return tuple(_each_use(module))


def _each_use(module: Module) -> Iterator[tuple[ast.AST, str]]:
    known: dict[str, str] = {}
    for node, target, names in _imports(module):
        if isinstance(node, ast.ImportFrom):
            aliases = {alias.name: alias.asname or alias.name for alias in node.names}
            for name in names:
                known[aliases[name]] = f"{target}.{name}"
                yield node, f"{target}.{name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                known[alias.asname or first] = alias.name if alias.asname else first
    for use in nodes(module):
        if isinstance(use, ast.Attribute):
            name = _spelled(use)
            first, _, rest = name.partition(".")
            if first in known:
                yield use, f"{known[first]}.{rest}"


def _spelled(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        before = _spelled(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


@cache
def _offered(room: Path) -> frozenset[str]:
    """Return the names in the `__all__` of a room's door."""
    door = room / "__init__.py"
    if not door.exists():
        return frozenset()
    for node in ast.parse(door.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()

"""Detectors: one function per rule that a module must follow; each is tested with a planted fault.

Import-linter proves the direction of imports. These find what it cannot see: an import of another package's private
name, a second reader of the clock, a print.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.architecture.source_tree import Finding, Module, nodes

LINES_MAX = 600

# Third-party libraries and the only modules or packages that may import them. sqlite3 is forbidden everywhere: the
# version in the standard library is whatever the machine has.
RESTRICTED_LIBRARIES = {
    "apsw": ("tavola.engine.storage",),
    "sqlite3": (),
    "boto3": ("tavola.apps.shell.stores",),  # its S3 client, for blobs kept in S3
    "uvicorn": ("tavola.web",),
    "botocore": ("tavola.backends.aws", "tavola.backends.mocking"),
    "httptools": ("tavola.server", "tavola.backends"),
    "uvloop": ("tavola.server",),
    "isal": ("tavola.server",),
    "click": ("tavola.cli",),
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
_RANDOMNESS = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4"})
_RANDOMNESS_MODULES = frozenset({"random", "secrets"})
_ENVIRONMENT = frozenset({"os.environ", "os.environb", "os.getenv", "os.putenv"})


def imports_private_names(module: Module) -> Iterator[Finding]:
    """Yield each import of another package's private module or name, which begins with an underscore."""
    for node, target, names in _imports(module):
        parts = target.split(".")
        if parts[0] != "tavola" or len(parts) < 2 or parts[1] == module.package:
            continue
        for name in (*parts[1:], *names):
            if name.startswith("_"):
                yield module.find(node, f"{target}: {name} is private to its package")


def imports_restricted_library(module: Module) -> Iterator[Finding]:
    """Yield each import of a restricted library by a module that may not use it."""
    for node, target, _ in _imports(module):
        allowed = RESTRICTED_LIBRARIES.get(target.split(".")[0])
        if allowed is None or any(f"{module.name}.".startswith(f"{name}.") for name in allowed):
            continue
        yield module.find(node, f"{target} may be imported only by {', '.join(allowed) or 'no module'}")


def reads_clock(module: Module) -> Iterator[Finding]:
    """Yield each use of the system clock outside `tavola.clock`; a sleep counts."""
    if module.name != "tavola.clock":
        for node, name in _dotted_uses(module):
            if name in _TIME:
                yield module.find(node, f"{name}: take a Clock")


def reads_randomness(module: Module) -> Iterator[Finding]:
    """Yield each use of randomness outside `tavola.entropy`."""
    if module.name == "tavola.entropy":
        return
    for node, name in _dotted_uses(module):
        if name in _RANDOMNESS:
            yield module.find(node, f"{name}: take an Entropy")
    for node, target, _ in _imports(module):
        if target in _RANDOMNESS_MODULES:
            yield module.find(node, f"{target}: take an Entropy")


def reads_environment(module: Module) -> Iterator[Finding]:
    """Yield each use of environment variables outside the command line."""
    if module.package != "cli":
        for node, name in _dotted_uses(module):
            if name in _ENVIRONMENT:
                yield module.find(node, f"{name}: settings are keyword arguments; cli reads the environment")


def prints(module: Module) -> Iterator[Finding]:
    """Yield each print, and each use of a standard stream, outside `cli/output.py`."""
    if module.name == "tavola.cli.output":
        return
    for node in nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield module.find(node, "print: only cli/output.py may print")
    for node, name in _dotted_uses(module):
        if name in {"sys.stdout", "sys.stderr"} and module.package != "cli":
            yield module.find(node, f"{name}: only cli/output.py may print")


def is_too_long(module: Module) -> Iterator[Finding]:
    """Yield a module of more than 600 lines, unless a comment at its top says why: `# Long because …`."""
    lines = module.text.splitlines()
    if len(lines) > LINES_MAX and not any("Long because" in line for line in lines[:40]):
        yield Finding(module.file, len(lines), f"{len(lines)} lines; split it by the second noun it owns")


def lacks_a_docstring(module: Module) -> Iterator[Finding]:
    """Yield a module without a docstring."""
    if not (ast.get_docstring(module.tree) or "").strip():
        yield Finding(module.file, 1, "no docstring: say what this module owns")


LAZY_IMPORTERS = {
    "tavola",
    "tavola.connections",
    "tavola.client.connection",
    "tavola.design.cost",
    "tavola.model",
}
LOADED_LATE = {"tavola.model.access", "tavola.model.consumers"}  # they import nothing that could import them


def hides_a_cycle(module: Module) -> Iterator[Finding]:
    """Yield each import of Tavola's own names that is only for the type checker.

    Such an import hides a cycle between packages. Some modules load others late on purpose, and type checkers need
    names before that: those in `LAZY_IMPORTERS`, and the commands of the command line, which nothing imports. Modules in
    `LOADED_LATE` may be imported for types by any module.
    """
    if module.name in LAZY_IMPORTERS or module.name.startswith("tavola.cli."):
        return
    for node in nodes(module):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for inner in node.body:
                if (
                    isinstance(inner, ast.ImportFrom)
                    and (inner.module or "").split(".")[0] == "tavola"
                    and inner.module not in LOADED_LATE
                ):
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
            name = _dotted_name(use)
            first, _, rest = name.partition(".")
            if first in known:
                yield use, f"{known[first]}.{rest}"


def _dotted_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        before = _dotted_name(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""

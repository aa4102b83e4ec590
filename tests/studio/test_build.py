"""The studio's build: its inputs, when it is repeated, and which Node runs it."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tavola.cli.settings import STUDIO_PORT
from tests.architecture.source_tree import ROOT
from tools import studio_build
from tools.studio_build import NODE_SINCE, Node, Places, Unbuilt, build, found_node, lint, lint_main, main

WEB = ROOT / "src" / "tavola" / "studio" / "web"
TYPES = "export interface Endpoints {}\n"


class Builder:
    """Replaces npm and Vite: records the commands and builds one file."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.ran: list[str] = []
        self.broken: str | None = None
        self.types = TYPES
        self.asked = 0

    def run(self, command: Sequence[str], where: Path) -> None:
        names = {"ci": "npm", "--outDir": "vite"}
        what = next(name for argument, name in names.items() if argument in command)
        self.ran.append(what)
        if what == self.broken:
            raise Unbuilt(f"{what} ended with 1")
        if what == "npm":
            (where / "node_modules").mkdir(exist_ok=True)
        if what == "vite":
            made = Path(command[command.index("--outDir") + 1])
            (made / "assets").mkdir(parents=True)
            (made / "index.html").write_text((where / "src" / "main.tsx").read_text())

    def typescript(self) -> str:
        self.asked += 1
        return self.types

    def build(self) -> bool:
        self.ran.clear()
        node = Node(Path("node"), ("npm",), "20.19.0")
        return build(self.places, self.typescript, find=lambda: node, run=self.run)


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """Sources of pages in a folder of their own."""
    package = tmp_path / "tavola"
    (package / "studio" / "web" / "src").mkdir(parents=True)
    (package / "studio" / "web" / "package-lock.json").write_text("{}")
    (package / "studio" / "web" / "src" / "main.tsx").write_text("first")
    (package / "studio" / "endpoint.py").write_text("")
    return Builder(Places(package / "studio" / "web", package / "studio" / "static", package))


def test_a_second_build_does_nothing(builder: Builder) -> None:
    """What was built is built; a second run neither runs a program nor asks Python for its types."""
    assert builder.build()
    assert builder.ran == ["npm", "vite"]

    assert not builder.build()
    assert builder.ran == []
    assert builder.asked == 1


@pytest.mark.parametrize(
    ("change", "ran"),
    [
        (lambda it: (it.places.web / "src" / "main.tsx").write_text("second"), ["vite"]),
        (
            lambda it: (it.places.web / "package-lock.json").write_text("{ }"),
            ["npm", "vite"],
        ),
        (lambda it: (it.places.static / "index.html").unlink(), ["vite"]),
        (lambda it: (it.places.static / ".stamp").write_text("torn"), ["vite"]),
        (lambda it: (it.places.web / "src" / "new.css").write_text("p{}"), ["vite"]),
    ],
)
def test_changed_inputs_are_rebuilt(
    builder: Builder, change: Callable[[Builder], object], ran: list[str]
) -> None:
    """A source, the lock file or a missing result is a reason; packages are fetched for another lock file alone."""
    builder.build()
    change(builder)

    assert builder.build()
    assert builder.ran == ran


def test_python_is_a_reason_if_its_types_change(builder: Builder) -> None:
    """A change of Python that leaves the API's types alone builds nothing; one that changes them does."""
    builder.build()
    (builder.places.package / "studio" / "endpoint.py").write_text("# another comment")
    assert not builder.build()

    builder.types = "export interface Endpoints { a: string }\n"
    (builder.places.package / "studio" / "endpoint.py").write_text("# another type")
    assert builder.build()
    assert (builder.places.web / "src" / "generated" / "api.ts").read_text() == builder.types


@pytest.mark.parametrize("broken", ["npm", "vite"])
def test_a_failed_build_keeps_the_previous_build(builder: Builder, broken: str) -> None:
    """Where a step fails, the pages of before are still there, and the next run tries again."""
    builder.build()
    (builder.places.web / "src" / "main.tsx").write_text("second")
    (builder.places.web / "package-lock.json").write_text("{ }")
    builder.broken = broken

    with pytest.raises(Unbuilt):
        builder.build()
    assert (builder.places.static / "index.html").read_text() == "first"

    builder.broken = None
    assert builder.build()
    assert (builder.places.static / "index.html").read_text() == "second"


# Lint.


def test_lint_installs_the_packages_and_runs_every_check(builder: Builder) -> None:
    """Types, unit tests, ESLint and Prettier are run, with the generated types and the packages of the lock file, installed once."""
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str], where: Path) -> None:
        (where / "node_modules").mkdir(exist_ok=True)
        commands.append(command)

    for _ in range(2):
        lint(
            builder.places, builder.typescript, find=lambda: Node(Path("node"), ("npm",), "20.19.0"), run=run
        )

    npm, *linters = [Path(command[1]).name for command in commands]
    assert npm == "ci"
    assert linters == ["tsc", "vitest.mjs", "eslint.js", "prettier.cjs"] * 2
    assert (builder.places.web / "src" / "generated" / "api.ts").read_text() == TYPES
    assert (WEB / "eslint.config.js").is_file()


@pytest.mark.parametrize(
    ("error", "if_possible", "code"),
    [
        (Unbuilt("no Node", tools=True), True, 0),
        (Unbuilt("no Node", tools=True), False, 1),
        (Unbuilt("eslint.js ended with 1"), True, 1),
    ],
)
def test_lint_fails_unless_only_its_tools_are_missing(
    error: Unbuilt, if_possible: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding always fails; missing tools fail unless the lint runs only if possible."""

    def fail(places: Places, typescript: object) -> None:
        raise error

    monkeypatch.setattr(studio_build, "lint", fail)

    assert lint_main(lambda: TYPES, if_possible=if_possible) == code


# Node.


def program(folder: Path, name: str, says: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho {says}\n")
    (folder / name).chmod(stat.S_IRWXU)


def wheel(tmp_path: Path) -> Path:
    program(tmp_path / "wheel" / "bin", "node", "v24.1.0")
    return tmp_path / "wheel"


def test_the_systems_node_comes_first(tmp_path: Path) -> None:
    """A Node on the PATH that is new enough is taken, with its own npm."""
    for name in ("node", "npm"):
        program(tmp_path / "bin", name, "v22.14.0")
    result = found_node(str(tmp_path / "bin"), fetch=lambda: False, wheel=lambda: wheel(tmp_path))

    assert result.version == "22.14.0"
    assert result.npm == (str(tmp_path / "bin" / "npm"),)


@pytest.mark.parametrize("says", ["v18.20.4", "v20.18.9", "nothing", None])
def test_an_old_node_gives_way_to_the_wheels(tmp_path: Path, says: str | None) -> None:
    """One that is too old, or none at all, is replaced by the wheel's."""
    (tmp_path / "bin").mkdir()
    if says is not None:
        for name in ("node", "npm"):
            program(tmp_path / "bin", name, says)
    result = found_node(str(tmp_path / "bin"), fetch=lambda: False, wheel=lambda: wheel(tmp_path))

    assert result.version == "24.1.0"
    assert result.npm[0] == str(result.program)


def test_a_wheel_is_fetched_where_none_is(tmp_path: Path) -> None:
    """Where there is no Node, the wheel is installed, once, and then used."""
    fetched: list[bool] = []

    def fetch() -> bool:
        fetched.append(True)
        return True

    result = found_node(str(tmp_path), fetch=fetch, wheel=lambda: wheel(tmp_path) if fetched else None)

    assert fetched == [True]
    assert result.version == "24.1.0"


@pytest.mark.parametrize(("if_possible", "code"), [(True, 0), (False, 1)])
def test_without_any_node_the_rest_goes_on(
    if_possible: bool, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What runs without pages is not held up, and it is said what is missing; `make studio` itself fails."""

    def nowhere(*_: object) -> bool:
        return bool(found_node("nowhere", fetch=lambda: False, wheel=lambda: None))

    monkeypatch.setattr(studio_build, "build", nowhere)

    assert main(lambda: TYPES, if_possible=if_possible) == code
    assert "Node 20.19 or newer is not installed" in capsys.readouterr().err


def test_a_page_that_is_wrong_is_a_failure_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that Vite rejects fails the build; only missing tools are tolerated."""

    def wrong(*_: object) -> bool:
        raise Unbuilt("vite.js ended with 1")

    monkeypatch.setattr(studio_build, "build", wrong)

    assert main(lambda: TYPES, if_possible=True) == 1


# What is committed.


def test_the_lock_file_names_no_registry() -> None:
    """A package is known by its name, version and hash; where it comes from is the machine's matter."""
    lock = json.loads((WEB / "package-lock.json").read_text("utf-8"))
    packages = {name: result for name, result in lock["packages"].items() if name}

    assert packages
    assert not [name for name, result in packages.items() if "resolved" in result]
    assert not [
        name for name, result in packages.items() if not result.get("integrity", "").startswith("sha512-")
    ]
    assert "omit-lockfile-registry-resolved=true" in (WEB / ".npmrc").read_text("utf-8")


def test_the_lock_file_is_whole() -> None:
    """What builds on one system builds on the others: the compiler's binaries for each of them are locked."""
    lock = json.loads((WEB / "package-lock.json").read_text("utf-8"))["packages"]
    expected = [
        f"@rolldown/binding-{system}" for system in ("linux-x64-gnu", "linux-arm64-gnu", "darwin-arm64")
    ]

    assert not [name for name in expected if f"node_modules/{name}" not in lock]


def test_the_pages_need_three_packages_alone() -> None:
    """What runs in a browser is Preact, its signals and uPlot; everything else only builds."""
    package = json.loads((WEB / "package.json").read_text("utf-8"))

    assert set(package["dependencies"]) == {"preact", "@preact/signals", "uplot"}
    lint = {
        "@babel/core",
        "@babel/eslint-parser",
        "@eslint/js",
        "eslint",
        "eslint-plugin-react-hooks",
        "prettier",
    }
    assert set(package["devDependencies"]) == {"typescript", "vite", "vitest"} | lint
    least = re.search(r"\d+", package["engines"]["node"])
    assert least is not None
    assert int(least[0]) == NODE_SINCE[0]


def test_the_development_server_uses_the_studios_port() -> None:
    """`npm run dev` forwards the API to the port on which `tavola studio` listens by default."""
    config = (WEB / "vite.config.ts").read_text("utf-8")

    assert f'?? "http://127.0.0.1:{STUDIO_PORT.default}/"' in config


def test_nothing_built_is_committed() -> None:
    """Built files, packages and generated types are left out of the repository, and `make clean` removes them."""
    ignored = (ROOT / ".gitignore").read_text("utf-8")
    clean = (ROOT / "Makefile").read_text("utf-8").partition("\nclean:")[2]

    for made in ("src/tavola/studio/static", "src/tavola/studio/web/src/generated"):
        assert f"/{made}/" in ignored
        assert made in clean
    assert "node_modules/" in ignored
    assert "node_modules" in clean

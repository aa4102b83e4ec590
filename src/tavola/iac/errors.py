"""Errors of infrastructure: plans, deployments, generated files and missing libraries."""

from __future__ import annotations

from tavola.errors import ErrorKind, TavolaError


class IacError(TavolaError):
    """An operation on infrastructure that cannot be carried out."""


class PlanError(IacError):
    """A design that has no valid infrastructure; names the place and the remedy."""

    code = "plan-refused"

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        super().__init__(f"{place}: {reason}")


class DeployError(IacError):
    """A change that `deploy` does not make, or not with these permissions; names the remedy."""

    code = "deploy-refused"

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        super().__init__(f"{table}: {reason}")


class FileNotOverwritten(IacError):
    """A file that Tavola did not write, or that was changed since, and therefore does not overwrite."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} {reason}; write elsewhere with --output, or overwrite it with --force")


class MissingLibrary(IacError):
    """A format needs a library that is not installed; it comes with the extra `tavola[design]`."""

    code = "library-missing"
    kind = ErrorKind.NOT_INSTALLED

    def __init__(self, what: str, package: str) -> None:
        self.package = package
        super().__init__(f"{what} needs {package}; install it with pip install 'tavola[design]'")

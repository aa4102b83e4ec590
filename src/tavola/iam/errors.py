"""The errors of IAM: unreadable directories, unknown or duplicate names, refused roles."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class IamError(TavolaError):
    """The base class of errors about users, roles and policies."""


class DirectoryRefused(IamError):
    """The directory is invalid; carries the reason and its location."""

    remedy = "Mend it at the place that is named; nothing was changed."

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{reason} ({place})" if place else reason)


class NotInDirectory(IamError):
    """The directory has no such name."""

    kind = ErrorKind.NOT_FOUND
    remedy = "See who there is with `tavola iam list`."


class AlreadyInDirectory(IamError):
    """The directory already has that name."""

    kind = ErrorKind.IN_USE
    remedy = "Choose another name, or remove what has it with `tavola iam remove`."


class DirectoryUnreadable(IamError):
    """The directory file cannot be read or written."""

    kind = ErrorKind.NOT_FOUND
    remedy = "Name a file that is there with --iam; `tavola iam init` makes one."


class DocumentUnreadable(IamError):
    """A policy or request file cannot be read; `option` is the command-line option that named it."""

    kind = ErrorKind.NOT_FOUND

    def __init__(self, path: Path, option: str, reason: str) -> None:
        self.path = path
        self.option = option
        self.remedy = f"Name a file that can be read with {option}."
        super().__init__(f"{path} cannot be read: {reason}")


class AssumeRefused(IamError):
    """The role does not trust the principal that wants to assume it."""

    kind = ErrorKind.DENIED
    remedy = "Change the role's trust policy or the session, or leave --by out."

"""The errors of IAM: unreadable directories, unknown or duplicate names, denied roles."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class IamError(TavolaError):
    """The base class of errors about users, roles and policies."""


class InvalidDirectory(IamError):
    """The directory is invalid; carries the reason and its location."""

    code = "directory-refused"
    remedy = "Fix the entry named above; nothing was changed."

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{reason} ({place})" if place else reason)


class NotInDirectory(IamError):
    """The directory has no such name."""

    kind = ErrorKind.NOT_FOUND
    remedy = "List users, groups and roles with `tavola iam list`."


class AlreadyInDirectory(IamError):
    """The directory already has that name."""

    kind = ErrorKind.IN_USE
    remedy = "Choose another name, or remove the existing entry with `tavola iam remove`."


class DirectoryFileError(IamError):
    """The directory file cannot be read or written."""

    code = "directory-unreadable"
    kind = ErrorKind.NOT_FOUND
    remedy = "Give an existing file with --iam, or create one with `tavola iam init`."


class PolicyFileError(IamError):
    """A policy or request file cannot be read; `option` is the command-line option that named it."""

    code = "document-unreadable"
    kind = ErrorKind.NOT_FOUND

    def __init__(self, path: Path, option: str, reason: str) -> None:
        self.path = path
        self.option = option
        self.remedy = f"Give a readable file with {option}."
        super().__init__(f"cannot read {path}: {reason}")


class AssumeRoleDenied(IamError):
    """The role does not trust the principal that wants to assume it."""

    code = "assume-refused"
    kind = ErrorKind.DENIED
    remedy = "Change the role's trust policy or the session, or omit --by."

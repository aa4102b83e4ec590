"""What the iam room refuses: a directory that cannot be read, a name that is not in it."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import ErrorKind, TavolaError


class IamError(TavolaError):
    """Something about users, roles or their policies that cannot be."""


class DirectoryRefused(IamError):
    """A directory that cannot be read: what is wrong with it, and at which place in it."""

    remedy = "Mend it at the place that is named; nothing was changed."

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{reason} ({place})" if place else reason)


class NotInDirectory(IamError):
    """A name that nobody in the directory has."""

    kind = ErrorKind.NOT_FOUND
    remedy = "See who there is with `tavola iam list`."


class AlreadyInDirectory(IamError):
    """A name that somebody in the directory has already."""

    kind = ErrorKind.IN_USE
    remedy = "Choose another name, or remove what has it with `tavola iam remove`."


class DirectoryUnreadable(IamError):
    """A file that cannot be read or written."""

    kind = ErrorKind.NOT_FOUND
    remedy = "Name a file that is there with --iam; `tavola iam init` makes one."


class DocumentUnreadable(IamError):
    """A file with a policy or a request that cannot be read; `option` is what named it."""

    kind = ErrorKind.NOT_FOUND

    def __init__(self, path: Path, option: str, reason: str) -> None:
        self.path = path
        self.option = option
        self.remedy = f"Name a file that can be read with {option}."
        super().__init__(f"{path} cannot be read: {reason}")


class AssumeRefused(IamError):
    """A role that the one who asks may not take on."""

    kind = ErrorKind.DENIED
    remedy = "Change the role's trust policy or the session, or leave --by out."

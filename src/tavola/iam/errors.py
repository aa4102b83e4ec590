"""What the iam room refuses: a directory that cannot be read, a name that is not in it."""

from __future__ import annotations

from pathlib import Path

from tavola.errors import TavolaError


class IamError(TavolaError):
    """Something about users, roles or their policies that cannot be."""


class DirectoryRefused(IamError):
    """A directory that cannot be read: what is wrong with it, and at which place in it."""

    def __init__(self, reason: str, place: str = "") -> None:
        self.reason = reason
        self.place = place
        super().__init__(f"{reason} ({place})" if place else reason)


class NotInDirectory(IamError):
    """A name that nobody in the directory has."""


class AlreadyInDirectory(IamError):
    """A name that somebody in the directory has already."""


class DirectoryUnreadable(IamError):
    """A file that cannot be read or written."""


class DocumentUnreadable(IamError):
    """A file with a policy or a request that cannot be read; `option` is what named it."""

    def __init__(self, path: Path, option: str, reason: str) -> None:
        self.path = path
        self.option = option
        super().__init__(f"{path} cannot be read: {reason}")


class AssumeRefused(IamError):
    """A role that the one who asks may not take on."""

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
    """The caller may not assume the role; `reason` is for the owner of the directory and not for the caller."""

    code = "assume-refused"
    kind = ErrorKind.DENIED
    remedy = "Change the role's trust policy or the user's policies, or omit --by."

    def __init__(self, message: str, reason: str) -> None:
        self.message = message
        self.reason = reason
        super().__init__(f"{message}: {reason}")


class SessionRefused(IamError):
    """The parameters of a role session break a rule; `aws_code` is AWS's code for it."""

    code = "session-refused"

    def __init__(self, aws_code: str, message: str) -> None:
        self.aws_code = aws_code
        self.message = message
        super().__init__(message)


class SessionKeyMissing(IamError):
    """The directory has no key that signs session tokens."""

    code = "session-key-missing"
    remedy = "Run: tavola iam revoke-sessions --iam FILE"

    def __init__(self) -> None:
        super().__init__(
            "the IAM file has no session_key, which signs session tokens; `tavola iam revoke-sessions` creates one"
        )

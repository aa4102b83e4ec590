"""Principals: users, account roots and role sessions, with the condition keys they provide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tavola.iam.patterns import Values

PrincipalKind: TypeAlias = Literal["root", "user", "session"]

_TYPES = {"root": "Account", "user": "User", "session": "AssumedRole"}


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, an account's root, or a role session, as found when the request was signed."""

    account: str
    kind: PrincipalKind
    name: str  # of the user or role; "root"
    arn: str
    id: str  # the value of aws:userid
    tags: tuple[tuple[str, str], ...] = ()
    role_arn: str | None = None  # of a session
    session_key: str | None = None  # the access key of a session
    issued_at_s: float | None = None  # of a session

    @property
    def account_arn(self) -> str:
        """The ARN with which policies name the whole account."""
        return f"arn:aws:iam::{self.account}:root"

    def condition_keys(self) -> dict[str, Values]:
        """Return the condition keys that are the same for all requests of the principal."""
        known: dict[str, Values] = {
            "aws:principalaccount": (self.account,),
            "aws:principalarn": (self.role_arn or self.arn,),
            "aws:principalisawsservice": ("false",),
            "aws:principaltype": (_TYPES[self.kind],),
            "aws:userid": (self.id,),
            "aws:viaawsservice": ("false",),
        }
        if self.kind == "user":
            known["aws:username"] = (self.name,)
        if self.issued_at_s is not None:
            known["aws:tokenissuetime"] = (f"{self.issued_at_s:.0f}",)
        for key, value in self.tags:
            name = f"aws:principaltag/{key.lower()}"
            known[name] = (*known.get(name, ()), value)
        return known


def user_arn(account: str, name: str) -> str:
    """Return the ARN of a user."""
    return f"arn:aws:iam::{account}:user/{name}"


def role_arn(account: str, name: str) -> str:
    """Return the ARN of a role."""
    return f"arn:aws:iam::{account}:role/{name}"


def session_arn(account: str, role: str, session: str) -> str:
    """Return the ARN of a role session."""
    return f"arn:aws:sts::{account}:assumed-role/{role}/{session}"

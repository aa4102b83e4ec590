"""Principals: who asks, under which names, and what a policy may know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tavola.iam.patterns import Values

PrincipalKind: TypeAlias = Literal["root", "user", "session"]

_TYPES = {"root": "Account", "user": "User", "session": "AssumedRole"}


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, an account's root, or a session of a role, as the directory knew it when it signed."""

    account: str
    kind: PrincipalKind
    name: str  # of the user or the role; "root"
    arn: str
    id: str  # what aws:userid says
    tags: tuple[tuple[str, str], ...] = ()
    role_arn: str | None = None  # of a session
    session_key: str | None = None  # the access key by which the directory knows a session
    issued_at_s: float | None = None  # of a session

    @property
    def account_arn(self) -> str:
        """The name under which a policy speaks of the whole account."""
        return f"arn:aws:iam::{self.account}:root"

    def known(self) -> dict[str, Values]:
        """Return the condition keys that are the same for each of the principal's requests."""
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
    """Return the ARN of a session that somebody has of a role."""
    return f"arn:aws:sts::{account}:assumed-role/{role}/{session}"

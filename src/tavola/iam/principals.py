"""Principals: users, account roots, role sessions and web identities, with the condition keys they provide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tavola.iam.patterns import Values
from tavola.iam.role_sessions import RoleSession

PrincipalKind: TypeAlias = Literal["root", "user", "session", "federated"]

_TYPES = {"root": "Account", "user": "User", "session": "AssumedRole", "federated": "FederatedUser"}


@dataclass(frozen=True, slots=True)
class Principal:
    """The sender of a request: a user, an account's root, or a role session.

    A `federated` principal is the holder of a web identity token, which can only assume a role.
    """

    account: str
    kind: PrincipalKind
    name: str  # of the user, role or identity provider; "root"
    arn: str
    id: str  # the value of aws:userid
    tags: tuple[tuple[str, str], ...] = ()
    role_arn: str | None = None  # of a session
    session: RoleSession | None = None  # None for a role without credentials, as `explain` uses it
    identity_keys: tuple[
        tuple[str, Values], ...
    ] = ()  # condition keys of a web identity; names in lower case

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
        if self.session is not None:
            known["aws:tokenissuetime"] = (str(self.session.issued_at_s),)
        known.update(self.identity_keys)
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


def provider_arn(account: str, issuer: str) -> str:
    """Return the ARN of a web identity provider; it contains the issuer's URL without its scheme."""
    return f"arn:aws:iam::{account}:oidc-provider/{issuer_name(issuer)}"


def issuer_name(issuer: str) -> str:
    """Return an issuer's URL without its scheme, as ARNs and condition keys contain it."""
    return issuer.partition("://")[2]

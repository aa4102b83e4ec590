"""What tests of the iam room share: tables that are only described, and a directory in a few words."""

from __future__ import annotations

from typing import Any

from tavola.clock import ManualClock
from tavola.iam import Account, ConnectionProperties, Directory, Guard, Guards, User
from tavola.protocol.arns import Scope
from tavola.protocol.resources import TableFacts

ACCOUNT = "111122223333"
OTHER = "444455556666"
SCOPE = Scope(ACCOUNT, "us-east-1")
ARN = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/Orders"
STREAM = f"{ARN}/stream/2024-01-01T00:00:00.000"
NOW_S = 1_700_000_000.0


class Tables:
    """One table called Orders, described and empty."""

    def __init__(self, **more: Any) -> None:
        self.known = TableFacts(
            arn=ARN,
            hash="pk",
            range="sk",
            types={"pk": "S", "sk": "S", "whose": "S", "day": "N", "site": "S"},
            indexes={"ByOwner": (("whose",), ("sk",)), "BySite": (("site", "day"), ())},
            **{"tags": {"env": "prod"}, **more},
        )

    def facts(self, name_or_arn: str) -> TableFacts | None:
        return self.known if name_or_arn in ("Orders", ARN) else None

    def iterator_stream(self, iterator: str) -> str | None:
        return STREAM if iterator == "an iterator" else None


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    """Return a policy; a statement is about every action and resource unless it says otherwise."""
    every = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {**{k: v for k, v in every.items() if f"Not{k}" not in statement}, **statement}
            for statement in statements
        ],
    }


def directory(*statements: dict[str, Any], **user: Any) -> Directory:
    """Return a directory of which alice is the one user, with these statements."""
    inline = {"own": policy(*statements)} if statements else {}
    return Directory({ACCOUNT: Account(users={"alice": User(inline=inline, **user)})})


def guard(
    *statements: dict[str, Any], circumstances: ConnectionProperties | None = None, **user: Any
) -> Guard:
    """Return the guard of a user alice with these statements."""
    found = directory(*statements, **user)
    return Guards(ManualClock(NOW_S)).guard(
        found, found.user(ACCOUNT, "alice"), SCOPE, circumstances or ConnectionProperties()
    )

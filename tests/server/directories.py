"""A directory of users and roles for tests, as the file that `--iam` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from tavola.iam import RoleSession, SessionSigner

ACCOUNT = "111122223333"
READER = ("AKIDREADER", "reader/secret")
WRITER = ("AKIDWRITER", "writer/secret")
OTHER_ACCOUNT = ("AKIDSTRANGER", "stranger/secret")  # of another account
SESSION_KEY = "5e" * 32
SESSION_ENDS_S = 4_000_000_000


def session_of(name: str, **changed: Any) -> tuple[str, str, str]:
    """Return the credentials of a session of the role `batch`."""
    session = RoleSession(ACCOUNT, "batch", "", name, "ASIASESSION", 1_600_000_000, SESSION_ENDS_S)
    issued = SessionSigner(bytes.fromhex(SESSION_KEY)).issue(msgspec.structs.replace(session, **changed))
    return issued.session.key_id, issued.secret, issued.token


SESSION = session_of("nightly")


def allowing(*actions: str, resource: str = "*") -> dict[str, Any]:
    """Return a policy that allows actions on a resource."""
    statement = {
        "Effect": "Allow",
        "Action": [f"dynamodb:{action}" for action in actions],
        "Resource": resource,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def user(key: tuple[str, str], *policies: dict[str, Any], active: bool = True) -> dict[str, Any]:
    """Return a user with one key and inline policies."""
    inline = {f"p{number}": policy for number, policy in enumerate(policies)}
    return {"inline": inline, "keys": [{"id": key[0], "secret": key[1], "active": active}]}


def write_directory(path: Path, **changed: dict[str, Any]) -> Path:
    """Write a directory:

    a reader, a writer, the role of SESSION, a user of another account; and the `changed` users.
    """
    users = {
        "reader": user(READER, allowing("GetItem", "Query")),
        "writer": user(WRITER, allowing("*")),
        **changed,
    }
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    role = {"trust": trust, "inline": {"p": allowing("GetItem", "ListTables")}}
    accounts = {
        ACCOUNT: {
            "users": {name: value for name, value in users.items() if value},
            "roles": {"batch": role},
        },
        "444455556666": {"users": {"stranger": user(OTHER_ACCOUNT, allowing("*"))}},
    }
    path.write_text(json.dumps({"tavola_iam": 1, "session_key": SESSION_KEY, "accounts": accounts}))
    return path

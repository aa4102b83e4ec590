"""Condition keys: what AWS has is known, in any case; what it has not is found, with what may be meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.iam import GLOBAL_KEYS, parse_directory, unknown_keys


def told(
    condition: dict[str, Any], resource: str = "*", version: str = "2012-10-17"
) -> list[tuple[str, str | None]]:
    """Return what is found unknown in a policy of one statement."""
    statement = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": resource, "Condition": condition}
    account = {"policies": {"P": {"Version": version, "Statement": [statement]}}}
    directory = parse_directory(json.dumps({"tavola_iam": 1, "accounts": {"0" * 12: account}}))
    return [(key, meant) for _, key, meant in unknown_keys(directory)]


def test_what_aws_has_is_known() -> None:
    """All global keys, those of tags with any tag, and keys of others, which nobody here can judge."""
    names = (
        *GLOBAL_KEYS,
        "AWS:USERNAME",
        "aws:ResourceTag/x",
        "dynamodb:leadingkeys",
        "www.amazon.com:user_id",
    )

    assert (
        told(
            {"StringEquals": dict.fromkeys(names, "${www.amazon.com:user_id}")},
            "arn:aws:dynamodb:*:*:${aws:PrincipalTag/t}",
        )
        == []
    )


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("aws:usrname", "aws:username"),
        ("aws:SourceIP4", "aws:SourceIp"),
        ("aws:RequestTags/team", "aws:RequestTag/team"),
        ("aws:PrincipalTag/", None),
        ("aws:entirely-other", None),
    ],
)
def test_what_it_has_not_is_found(key: str, meant: str | None) -> None:
    """With the key that is nearest, if one is near."""
    assert told({"StringEquals": {key: "x"}}) == [
        (key, meant or (None if "other" in key else "aws:PrincipalTag/"))
    ]


def test_variables_are_keys_too() -> None:
    """In a resource and in a condition; a policy of the older version has none."""
    condition = {"StringEquals": {"aws:userid": "${aws:usrid}"}}
    resource = "arn:aws:dynamodb:*:*:table/${dynamodb:LeadingKey}"

    assert told(condition, resource) == [
        ("dynamodb:leadingkey", "dynamodb:LeadingKeys"),
        ("aws:usrid", "aws:userid"),
    ]
    assert told(condition, resource, "2008-10-17") == []

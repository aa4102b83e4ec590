"""Policy documents: what is read, what is refused, and where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.protocol.policy_documents import PolicyKind, PolicyRefused, parse_policy, render_policy

ALLOW = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}
LEADING = {"dynamodb:LeadingKeys": "a"}


def _policy(*statements: dict[str, Any], **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements), **more})


def _with(**members: Any) -> str:
    return _policy(ALLOW, {**ALLOW, **members})


def _conditioned(operator: str, keys: Any) -> str:
    return _with(Condition={operator: keys})


# the document, what is said, and the place
REFUSED = [
    ("{", "invalid Json", "line 1, column 2"),
    ("", "invalid Json", "line 1, column 1"),
    ('{"Statement": [NaN]}', "invalid Json", "NaN"),
    ("[" * 100_000, "invalid Json", "recursion"),
    ("[]", "expected an object", "the policy"),
    (_policy(ALLOW, Extra=1), "unknown member 'Extra'", "the policy"),
    (_policy(ALLOW, Version="2020-01-01"), "Version must be", "Version"),
    (_policy(ALLOW, Id=1), "Id must be a string", "Id"),
    ('{"Version": "2012-10-17"}', "Missing required field Statement", "the policy"),
    (_policy(), "Statement is empty!", "Statement"),
    ('{"Statement": "Allow"}', "an object or a list", "Statement"),
    ('{"Statement": [7]}', "expected an object", "Statement[0]"),
    (_with(Sid=1), "Sid must be a string", "Statement[1].Sid"),
    (_policy({**ALLOW, "Sid": "a"}, {**ALLOW, "Sid": "a"}), "not unique", "Statement[1].Sid"),
    (_with(Effect="Maybe"), "Effect must be Allow or Deny", "Statement[1].Effect"),
    (_policy({"Action": "*", "Resource": "*"}), "Missing required field Effect", "Statement[0]"),
    (_policy({"Effect": "Allow", "Resource": "*"}), "Missing required field Action", "Statement[0]"),
    (_policy({"Effect": "Allow", "Action": "*"}), "Missing required field Resource", "Statement[0]"),
    (_with(NotAction="*"), "exclude each other", "Statement[1]"),
    (_with(NotResource="*"), "exclude each other", "Statement[1]"),
    (_with(Action="GetItem"), "'GetItem' is not an action", "Statement[1].Action"),
    (_with(Action=[]), "at least one", "Statement[1].Action"),
    (_with(Action=["dynamodb:GetItem", 7]), "expected a string", "Statement[1].Action[1]"),
    (_with(Resource="table/Orders"), "is not an ARN", "Statement[1].Resource"),
    (
        _with(Resource="arn:aws:dynamodb:*:*:table/${aws:username"),
        "needs a closing `}`",
        "Statement[1].Resource",
    ),
    (_with(Resource="arn:${username}"), "is not a variable", "Statement[1].Resource"),
    (_with(Principal="*"), "must not have a Principal", "Statement[1]"),
    (_with(Condition=[]), "an object of operators", "Statement[1].Condition"),
    (_conditioned("StringLik", LEADING), "did you mean StringLike?", "Statement[1].Condition.StringLik"),
    (_conditioned("ForSome:StringLike", LEADING), "neither", "Statement[1].Condition.ForSome:StringLike"),
    (_conditioned("NullIfExists", LEADING), "Null tests", "Statement[1].Condition.NullIfExists"),
    (_conditioned("ForAllValues:Null", LEADING), "Null tests", "Statement[1].Condition.ForAllValues:Null"),
    (_conditioned("StringLike", "a"), "an object of condition keys", "Statement[1].Condition.StringLike"),
    (
        _conditioned("StringLike", {"dynamodb:LeadingKey": "a"}),
        "did you mean dynamodb:LeadingKeys?",
        "Statement[1].Condition.StringLike",
    ),
    (
        _conditioned("StringLike", {"LeadingKeys": "a"}),
        "not a condition key",
        "Statement[1].Condition.StringLike",
    ),
    *(
        (
            _conditioned(operator, {"aws:x": value}),
            f"is not {form}",
            f"Statement[1].Condition.{operator}.aws:x",
        )
        for operator, value, form in (
            ("NumericEquals", "many", "a number"),
            ("NumericEquals", "1e5", "a number"),
            ("DateLessThan", "yesterday", "an ISO 8601 time"),
            ("DateLessThan", "2024-13-01", "an ISO 8601 time"),
            ("Bool", "yes", "true or false"),
            ("Null", "maybe", "true or false"),
            ("BinaryEquals", "?", "base64"),
            ("IpAddress", "10.0.0.0/99", "an IP address"),
            ("ArnLike", "Orders", "an ARN"),
        )
    ),
    (
        _conditioned("StringLike", {"aws:x": [{}]}),
        "a string, number",
        "Statement[1].Condition.StringLike.aws:x",
    ),
    (_conditioned("StringLike", {"aws:x": []}), "at least one", "Statement[1].Condition.StringLike.aws:x"),
    (
        '{"Statement": {"Effect": "Deny", "Effect": "Allow", "Action": "*", "Resource": "*"}}',
        "'Effect' occurs twice",
        "Statement[0]",
    ),
    (
        (
            '{"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:x": true, '
            '"aws:x": false}}}}'
        ),
        "'aws:x' occurs twice",
        "Statement[0].Condition.Bool",
    ),
]


@pytest.mark.parametrize(("text", "reason", "place"), REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, reason: str, place: str) -> None:
    """A policy is refused with what is wrong and where, so that it can be corrected."""
    with pytest.raises(PolicyRefused) as refused:
        parse_policy(text, "identity")

    assert reason in refused.value.reason
    assert place in refused.value.place
    assert place in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "members", "reason"),
    [
        ("resource", {}, "Missing required field Principal"),
        ("resource", {"Principal": "*", "NotPrincipal": "*"}, "exclude each other"),
        ("resource", {"NotPrincipal": "*"}, "NotPrincipal requires Deny"),
        ("resource", {"Principal": {"AWS": "arn:aws:iam::111122223333:user/*"}}, "is not a principal"),
        ("resource", {"Principal": {"AWS": "alice"}}, "is not a principal"),
        ("resource", {"Principal": "111122223333"}, "expected an object"),
        ("resource", {"Principal": {"Person": "x"}}, "unknown member"),
        ("resource", {"Principal": {}}, "at least one"),
        ("trust", {"Principal": "*"}, "must not have a Resource"),
    ],
)
def test_principals_belong_to_resources_and_roles(
    kind: PolicyKind, members: dict[str, Any], reason: str
) -> None:
    """A policy on a resource or role says whom it is about, by exact names."""
    with pytest.raises(PolicyRefused, match=reason):
        parse_policy(_policy({**ALLOW, **members}), kind)


def test_a_policy_is_rendered_in_one_form() -> None:
    """Whatever the order and the spaces, a policy reads back with its members in one order and lists of one as one."""
    text = """
    { "Statement": { "Resource": ["*"], "Action": ["dynamodb:GetItem"], "Principal": {"AWS": ["111122223333",
      "arn:aws:iam::111122223333:root"]}, "Effect": "allow", "Condition": {"Bool": {"aws:SecureTransport": true},
      "ForAllValues:StringLikeIfExists": {"dynamodb:LeadingKeys": ["a", "b"]}}, "Sid": "One" } }
    """

    rendered = render_policy(parse_policy(text, "resource"))

    assert rendered == (
        '{"Version":"2008-10-17","Statement":[{"Sid":"One","Effect":"Allow","Principal":{"AWS":'
        '"arn:aws:iam::111122223333:root"},"Action":"dynamodb:GetItem","Resource":"*","Condition":{"Bool":'
        '{"aws:SecureTransport":"true"},"ForAllValues:StringLikeIfExists":{"dynamodb:LeadingKeys":["a","b"]}}}]}'
    )
    assert render_policy(parse_policy(rendered, "resource")) == rendered


def test_the_older_version_has_no_variables() -> None:
    """In a policy of 2008, or of no version, a dollar sign is one; what looks like a broken variable is text."""
    statement = {**ALLOW, "Resource": "arn:aws:dynamodb:*:*:table/${"}

    document = parse_policy(_policy(statement, Version="2008-10-17"), "identity")

    assert not document.has_variables
    with pytest.raises(PolicyRefused):
        parse_policy(_policy(statement), "identity")

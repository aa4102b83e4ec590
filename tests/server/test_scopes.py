"""Whose tables a request means."""

from __future__ import annotations

import pytest

from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.server.dispatch import _scopes, scope_of_request

SIGNED = "AWS4-HMAC-SHA256 Credential={}, SignedHeaders=host;x-amz-date, Signature=00ff"


def _scope(credential: str) -> Scope:
    return scope_of_request({b"authorization": SIGNED.format(credential).encode()}, b"/")


@pytest.mark.parametrize(
    ("key", "account"),
    [
        ("123456789012", "123456789012"),
        ("ASIAQNZGKIQY56JQ7WML", "029608264753"),
        ("AKIAIOSFODNN7EXAMPLE", "000000000000"),  # AWS's example; from before keys carried an account
        ("AKIAQNZGKIQY56JQ7WM", "000000000000"),  # too short
        ("AKIAQNZGKIQY56JQ7W0L", "000000000000"),  # 0 is no letter of base32
        ("akiaqnzgkiqy56jq7wml", "000000000000"),
        ("12345678901", "000000000000"),
        ("tavola", "000000000000"),
        ("", "000000000000"),
    ],
)
def test_an_access_key_names_an_account(key: str, account: str) -> None:
    """Twelve digits are an account, an AWS key contains one, any other key means the default."""
    assert _scope(f"{key}/20261115/eu-west-1/dynamodb/aws4_request").account == account


def test_the_region_is_the_credentials() -> None:
    """Region and account come from the credential's scope."""
    assert _scope("123456789012/20261115/eu-west-1/dynamodb/aws4_request") == Scope(
        "123456789012", "eu-west-1"
    )
    assert _scope("test/20261115/localhost/dynamodb/aws4_request") == Scope("000000000000", "localhost")


@pytest.mark.parametrize(
    "authorization",
    [
        b"",
        b"Bearer x",
        b"AWS4-HMAC-SHA256",
        b"AWS4-HMAC-SHA256 Credential=",
        b"AWS4-HMAC-SHA256 Credential=,",
        b"AWS4-HMAC-SHA256 Credential=a/b",
        b"AWS4-HMAC-SHA256 Credential=a/b/Not_A_Region/d/e",
        b"AWS4-HMAC-SHA256 Credential=a/b/../d/e",
        b"AWS4-HMAC-SHA256 Credential=a/b/\xff\xfe/d/e",
        b"AWS4-HMAC-SHA256 Credential=a/b/" + b"x" * 64 + b"/d/e",
    ],
)
def test_an_unreadable_credential_means_the_default(authorization: bytes) -> None:
    """A header without a usable credential is accepted, and means the default scope."""
    assert scope_of_request({b"authorization": authorization}, b"/") == DEFAULT_SCOPE


def test_without_a_credential_the_scope_is_the_default() -> None:
    """A request that is not signed is accepted."""
    assert scope_of_request({}, b"/") == DEFAULT_SCOPE
    assert scope_of_request({}, b"/?Action=x") == DEFAULT_SCOPE


def test_a_presigned_url_has_its_scope_in_the_query() -> None:
    """The credential may be a query parameter, percent-encoded."""
    url = b"/?X-Amz-Credential=111122223333%2F20261115%2Fap-south-1%2Fdynamodb%2Faws4_request&X-Amz-Date=x"

    assert scope_of_request({}, url) == Scope("111122223333", "ap-south-1")


def test_the_parts_of_the_header_may_come_in_any_order() -> None:
    """The credential is found at any position."""
    header = (
        b"AWS4-HMAC-SHA256 SignedHeaders=host, Credential=1/2/eu-west-1/dynamodb/aws4_request, Signature=0"
    )

    assert scope_of_request({b"authorization": header}, b"/").region == "eu-west-1"


def test_the_cache_is_bounded() -> None:
    """Many different credentials take bounded memory, and so does a long one."""
    for number in range(3000):
        _scope(f"{number}/20261115/eu-west-1/dynamodb/aws4_request")
    _scope("x" * 10_000)

    assert len(_scopes) <= 1024
    assert all(len(prefix) <= 256 for prefix in _scopes)

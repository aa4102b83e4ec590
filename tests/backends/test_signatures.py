"""Our signatures against botocore's signer, and against our own strict server."""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tavola.backends.configuration import parse_address
from tavola.backends.errors import CredentialsMissing
from tavola.backends.signatures import Signer, SigningKey
from tavola.clock import ManualClock
from tavola.protocol.instants import AS_OF_HEADER
from tavola.protocol.operations import OPERATIONS
from tavola.server.sigv4 import Verifier

AS_OF = "2026-01-02T03:04:05.000006Z"


@dataclass(frozen=True)
class Sent:
    """A parsed outgoing request."""

    head: str
    headers: dict[str, str]
    body: bytes


def taken_apart(message: bytes) -> Sent:
    """Return the first line, the headers by their lower-case names, and the body."""
    head, _, body = message.partition(b"\r\n\r\n")
    first, *lines = head.decode("ascii").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Sent(first, {name.lower(): value for name, _, value in pairs}, body)


def signed_by_botocore(key: SigningKey, url: str, region: str, at_s: float, sent: Sent) -> dict[str, str]:
    """Return the headers of the same request as botocore signs it."""
    names = ("content-type", "x-amz-target", "user-agent", AS_OF_HEADER)
    headers = {name: sent.headers[name] for name in names if name in sent.headers}
    request = AWSRequest("POST", f"{url}/", headers, sent.body)
    moment = datetime.fromtimestamp(at_s, UTC)
    with patch("botocore.auth.get_current_datetime", lambda: moment):
        SigV4Auth(Credentials(key.id, key.secret, key.token), "dynamodb", region).add_auth(request)
    return {name.lower(): str(value) for name, value in request.headers.items()}


def test_signatures_are_botocores() -> None:
    """Over many requests, keys, tokens, hosts, regions, days and bodies, the signature is the one botocore makes."""
    chance = Random(20261116)
    text = string.ascii_letters + string.digits + "/+="
    targets = [operation.target for operation in OPERATIONS.values()]
    for _ in range(300):
        key = SigningKey(
            "".join(chance.choices(string.ascii_uppercase + string.digits, k=chance.randint(1, 40))),
            "".join(chance.choices(text + "äЖ 😀", k=chance.randint(1, 120))),
            chance.choice([None, "".join(chance.choices(text, k=chance.randint(1, 900)))]),
        )
        url = chance.choice(
            [
                *("http://localhost:8000", "https://dynamodb.eu-west-1.amazonaws.com", "http://[::1]:8000"),
                *("https://127.0.0.1:8443", "http://shop:80", "https://Shop.Example:443", "https://shop:80"),
                *("http://localhost:4566/dynamodb", "https://shop/a-b/c.d~e_f/v%201"),
            ]
        )
        region = chance.choice(["us-east-1", "eu-west-1", "cn-north-1", "local"])
        headers = chance.choice([{}, {AS_OF_HEADER: AS_OF}])
        clock = ManualClock(chance.uniform(1_000_000_000, 3_000_000_000))
        address = parse_address(url)
        signer = Signer(address.header, region, headers, path=address.path, clock=clock)
        for _ in range(3):
            body = chance.randbytes(chance.choice([0, 1, 63, 64, 400, 5000]))
            sent = taken_apart(signer.sign(key, chance.choice(targets).encode(), body))
            expected = signed_by_botocore(key, url, region, int(clock.now()), sent)

            assert sent.head == f"POST {address.path} HTTP/1.1"
            assert sent.headers["authorization"] == expected["authorization"]
            assert sent.headers["x-amz-date"] == expected["x-amz-date"]
            assert sent.headers.get("x-amz-security-token") == expected.get("x-amz-security-token")
            assert int(sent.headers["content-length"]) == len(sent.body) == len(body)
            clock.advance(chance.choice([0.0, 0.5, 1.0, 3600.0, 86_400.0]))


@dataclass(frozen=True)
class Held:
    """A credential as a verifier expects it."""

    secret: str
    token: str | None = None
    expires_at_s: float | None = None
    active: bool = True


@dataclass
class Directory:
    """Where the verifier looks keys up."""

    held: dict[str, Held] = field(default_factory=dict)

    def credential(self, key_id: str, token: bytes | None, /) -> Held | None:
        """Return what belongs to a key."""
        return self.held.get(key_id)


def test_the_strict_server_is_convinced() -> None:
    """Our verifier accepts what our signer writes, with and without a session's token and a moment."""
    clock = ManualClock()
    lasting, passing = (
        SigningKey("AKIDEXAMPLE", "secret"),
        SigningKey("ASIAEXAMPLE", "other/secret", "token=="),
    )
    directory = Directory({"AKIDEXAMPLE": Held("secret"), "ASIAEXAMPLE": Held("other/secret", "token==")})
    verifier = Verifier(directory, clock)
    for headers in ({}, {AS_OF_HEADER: AS_OF}):
        signer = Signer("localhost:8000", "eu-west-1", headers, clock=clock)
        for key in (lasting, passing, lasting):
            for body in (b"{}", b'{"TableName":"T01"}'):
                sent = taken_apart(signer.sign(key, b"DynamoDB_20120810.GetItem", body))
                fields = {name.encode(): value.encode() for name, value in sent.headers.items()}

                assert sent.head == "POST / HTTP/1.1"
                assert verifier.verify(b"/", fields, sent.body).key_id == key.id
                clock.advance(40_000)


def test_cached_signing_keys_are_distinguished() -> None:
    """A new secret under the same name, or a new day, has another signing key."""
    clock = ManualClock()
    signer = Signer("localhost", "us-east-1", clock=clock)

    def signature(key: SigningKey) -> str:
        return taken_apart(signer.sign(key, b"T", b"{}")).headers["authorization"]

    first = signature(SigningKey("AKID", "one"))
    assert signature(SigningKey("AKID", "one")) == first
    assert signature(SigningKey("AKID", "two")) != first
    assert signature(SigningKey("AKID", "one", "token")) != first
    assert signature(SigningKey("AKID", "one")) == first
    clock.advance(86_400)
    assert signature(SigningKey("AKID", "one")) != first


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (SigningKey("AKID\n", "secret"), "access key"),
        (SigningKey("AK ID", "secret"), "access key"),
        (SigningKey("AKIÄ", "secret"), "access key"),
        (SigningKey("AKID", "secret", "token\r\nX-Evil: 1"), "session token"),
    ],
)
def test_a_key_that_would_break_the_head_is_refused(key: SigningKey, what: str) -> None:
    """A line break that a file had beside a key is reported, and not sent."""
    with pytest.raises(CredentialsMissing, match=f"the {what} contains a space, a line break"):
        Signer("localhost", "us-east-1").sign(key, b"T", b"{}")

"""The caller of a request, as far as it is known."""

from __future__ import annotations

from tavola.protocol.arns import Scope
from tavola.server.callers import Peer
from tavola.server.dispatch import OpenCallers

HEADER = b"AWS4-HMAC-SHA256 Credential=%b/20261101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=%b"


def _fields(
    key: bytes = b"AKIDEXAMPLE", agent: bytes | None = b"a/1", signature: bytes = b"0" * 64
) -> dict[bytes, bytes]:
    fields = {b"authorization": HEADER % (key, signature)}
    return fields if agent is None else {**fields, b"user-agent": agent}


def test_a_caller_is_met_again() -> None:
    """The same key and program on a connection are one caller, whatever the signature; another is another."""
    callers, peer = OpenCallers(), Peer("192.0.2.7")
    first = callers.admit(b"/", _fields(), b"", peer)

    assert callers.admit(b"/", _fields(signature=b"1" * 64), b"", peer) is first
    assert callers.admit(b"/", _fields(agent=b"b/2"), b"", peer) is not first
    assert callers.admit(b"/", _fields(b"AKIDOTHER"), b"", peer) is not first
    assert callers.admit(b"/", _fields(), b"", Peer("192.0.2.8")) is not first


def test_an_open_server_believes_what_it_is_reported() -> None:
    """Account and region are the credential's; the identity is unknown."""
    caller = OpenCallers().admit(b"/", _fields(b"111122223333"), b"", Peer("192.0.2.7", secure=True))

    assert caller.scope == Scope("111122223333", "eu-west-1")
    assert caller.identity == {"type": "Unknown", "accountId": "111122223333", "accessKeyId": "111122223333"}
    assert (caller.address, caller.secure, caller.agent, caller.guard) == ("192.0.2.7", True, "a/1", None)


def test_only_plausible_access_keys_are_reported() -> None:
    """A secret sent instead of an access key is not logged, nor is a long or odd string."""
    for result in (b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", b"k" * 33, b"a+b", b"\xff\xfe", b""):
        identity = OpenCallers().admit(b"/", _fields(result), b"", Peer()).identity
        assert len(identity.get("accessKeyId", "")) <= 13, identity  # the part before the first slash
    assert "accessKeyId" not in OpenCallers().admit(b"/", {}, b"", Peer()).identity
    url = b"/?X-Amz-Credential=AKIDEXAMPLE%2F20261101%2Feu-west-1%2Fdynamodb%2Faws4_request"
    assert OpenCallers().admit(url, {}, b"", Peer()).identity["accessKeyId"] == "AKIDEXAMPLE"


def test_an_agent_is_bounded_and_printable() -> None:
    """The name of a program cannot break a line or fill a file."""
    caller = OpenCallers().admit(b"/", _fields(agent=b"a\x00\x1b[31m" + b"x" * 9000), b"", Peer())

    assert len(caller.agent) == 256
    assert caller.agent.isprintable()
    assert OpenCallers().admit(b"/", _fields(agent=None), b"", Peer()).agent == ""


def test_callers_of_one_connection_are_bounded() -> None:
    """A client that changes its key with every request takes bounded memory."""
    callers, peer = OpenCallers(), Peer()
    for number in range(100):
        callers.admit(b"/", _fields(b"KEY%d" % number), b"", peer)

    assert len(peer.callers) <= 16

"""Which names and which pages a server responds to."""

from __future__ import annotations

import pytest

from tavola.protocol.faults import ValidationFault
from tavola.server.hosts import Hosts


def _refused(hosts: Hosts, host: str | None, origin: str | None = None) -> str | None:
    result = {b"host": host, b"origin": origin}
    fault = hosts.refusal({name: value.encode() for name, value in result.items() if value is not None})
    return None if fault is None else fault.message


@pytest.mark.parametrize(
    "host",
    [
        *(
            "localhost",
            "localhost:8000",
            "LOCALHOST:8000",
            "localhost.",
            "app.localhost:8000",
            "127.0.0.1:8000",
        ),
        *("192.0.2.7", "[::1]:8000", "[2001:db8::7]", "db.internal:8000", "DB.Internal", None),
    ],
)
def test_this_machine_has_many_names(host: str | None) -> None:
    """A server on loopback responds to localhost, to addresses and to its configured names."""
    hosts = Hosts("127.0.0.1", ["db.internal"])

    assert _refused(hosts, host) is None
    assert _refused(hosts, host) is None  # and from the cache


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "xlocalhost",
    ],
)
def test_a_name_of_others_is_refused(host: str) -> None:
    """A foreign host name is refused, and the refusal says how to allow it."""
    result = _refused(Hosts("127.0.0.1"), host)

    assert result is not None
    assert "--allow-host" in result
    assert host.partition(":")[0] in result


@pytest.mark.parametrize(
    "host", ["", "[::1]evil.com", "localhost:abc", "localhost, localhost", "user@localhost"]
)
def test_a_malformed_host_is_refused_everywhere(host: str) -> None:
    """What is not exactly a host is a 400 on every address, also on a server that verifies signatures."""
    for hosts in (Hosts("127.0.0.1"), Hosts("0.0.0.0"), Hosts("127.0.0.1", verified=True)):
        for _ in range(2):  # and not from the cache
            fault = hosts.refusal({b"host": host.encode()})
            assert isinstance(fault, ValidationFault)
            assert host in str(fault)


@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0"])
def test_an_admitted_page_is_let_in(listening: str) -> None:
    """A page of an admitted site is accepted, others and its own under a foreign host name are not."""
    hosts = Hosts(listening, origins=["http://localhost:3000"])

    assert _refused(hosts, "localhost:8000", "http://localhost:3000") is None
    assert _refused(hosts, "localhost:8000", "http://localhost:8000") is None
    for origin in ("http://localhost:3001", "https://localhost:3000", "http://localhost", "null", "*"):
        assert "--cors" in (_refused(hosts, "localhost:8000", origin) or ""), origin
    rebound = _refused(hosts, "evil.example:8000", "http://localhost:3000")
    assert (rebound is None) is (listening == "0.0.0.0")


def test_any_origin_is_admitted_only_with_signatures() -> None:
    """`*` admits every page of a server that verifies signatures, and no page of another one."""
    for verified in (True, False):
        hosts = Hosts("127.0.0.1", verified=verified, origins=["*"])
        assert (_refused(hosts, "localhost:8000", "http://any.example") is None) is verified
        assert (_refused(hosts, "localhost:8000", "null") is None) is verified


def test_other_addresses_are_reached_by_any_name() -> None:
    """A server that other machines reach cannot know its host names, so it accepts any."""
    for hosts in (
        Hosts("0.0.0.0"),
        Hosts("192.0.2.7"),
        Hosts("db.internal"),
        Hosts("127.0.0.1", verified=True),
    ):
        assert _refused(hosts, "dynamodb:8000") is None
        assert _refused(hosts, "whatever.example") is None


@pytest.mark.parametrize("listening", ["127.0.0.1", "0.0.0.0"])
def test_a_page_must_be_the_servers_own(listening: str) -> None:
    """A request with an Origin comes from a page: its own name is let in, and no one else's anywhere."""
    hosts = Hosts(listening, ["db.internal"])

    assert _refused(hosts, "localhost:8000", "http://localhost:8000") is None
    assert _refused(hosts, "db.internal", "https://DB.internal") is None
    for host, origin in (
        ("localhost:8000", "http://evil.example"),
        ("localhost:8000", "http://localhost:3000"),
        ("localhost:8000", "null"),
        ("localhost:8000", ""),
        ("localhost:8000", "file://localhost:8000"),
        ("evil.example:8000", "http://evil.example:8000"),  # DNS rebinding
        (None, "http://evil.example"),
    ):
        assert "web page" in (_refused(hosts, host, origin) or ""), (host, origin)


def test_a_name_once_seen_does_not_help_a_page() -> None:
    """That a program used a name does not make it the server's own for pages."""
    hosts = Hosts("0.0.0.0")
    assert _refused(hosts, "evil.example") is None

    assert _refused(hosts, "evil.example", "http://evil.example") is not None


def test_names_that_were_seen_take_bounded_memory() -> None:
    """Many invented names take bounded memory."""
    hosts = Hosts("0.0.0.0")
    for number in range(2000):
        _refused(hosts, f"name-{number}")

    assert len(hosts.known) <= 256

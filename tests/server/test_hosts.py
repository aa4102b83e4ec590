"""Which names and which pages a server responses to."""

from __future__ import annotations

import pytest

from tavola.host_names import is_loopback
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


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        *((name, True) for name in ("127.0.0.1", "127.8.0.9", "::1", "localhost", "x.localhost")),
        *((name, False) for name in ("0.0.0.0", "::", "", "192.0.2.7", "db.internal")),
    ],
)
def test_only_this_machine_reaches_a_loopback(host: str, alone: bool) -> None:
    """Only this machine reaches loopback addresses and their names."""
    assert is_loopback(host) is alone

"""Hosts and origins: exactly what the RFCs define, and nothing that merely begins like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.host_names import HostAddress, is_loopback, parse_host, parse_origin


@pytest.mark.parametrize(
    ("text", "name", "port"),
    [
        ("localhost", "localhost", None),
        ("LocalHost:8000", "localhost", 8000),
        ("localhost.", "localhost", None),
        ("localhost:", "localhost", None),
        ("db_1.internal:65535", "db_1.internal", 65535),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]", "::1", None),
        ("[::1]:8000", "::1", 8000),
        ("[0:0:0:0:0:0:0:1]", "::1", None),
        ("[2001:DB8::7]:80", "2001:db8::7", 80),
        (" localhost \t", "localhost", None),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", None),
    ],
)
def test_a_host_is_a_name_or_an_address_with_an_optional_port(text: str, name: str, port: int | None) -> None:
    """A valid Host has one reading: lower case, no final dot, no brackets."""
    assert parse_host(text) == HostAddress(name, port)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", ":", ":8000", ".", "..", "a..b", ".a", "a b", "a\tb", "a,b", "localhost, evil.com"),
        *(
            "[::1]evil.com",
            "[::1].evil.com",
            "[::1",
            "::1",
            "::1]",
            "[]",
            "[localhost]",
            "[127.0.0.1]",
            "[::g]",
        ),
        *("[fe80::1%25eth0]", "[::1]:x", "[[::1]]", "[::1]:80:80"),
        *(
            "localhost:abc",
            "localhost:80:80",
            "localhost:-1",
            "localhost:+1",
            "localhost:65536",
            "localhost:123456",
        ),
        *(
            "localhost:8 0",
            "localhost:٣",
            "ｌocalhost",
            "user@localhost",
            "http://localhost",
            "localhost/",
            "localhost?x",
        ),
        *("localhost#x", "a%00b", "a\0b", "a\nb", "*", "a" * 64, "a." * 127 + "a"),
    ],
)
def test_what_is_not_exactly_a_host_is_none(text: str) -> None:
    """A value with anything before, after or inside that a host does not have is refused as a whole."""
    assert parse_host(text) is None


@given(st.text(st.sampled_from("[]:.%@/ \tlocahst127-_é\0"), max_size=12))
def test_an_accepted_host_is_all_of_the_text(text: str) -> None:
    """Whatever is accepted can be written back to the same text, apart from case, dot and brackets."""
    host = parse_host(text)
    if host is None:
        return
    rest = text.strip(" \t").lower()
    if host.port is not None:
        rest, _, digits = rest.rpartition(":")
        assert int(digits) == host.port
    rest = rest.removesuffix(":").removesuffix(".")

    assert rest == host.name or (rest.startswith("[") and rest.endswith("]") and ":" in host.name)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("http://localhost:3000", "http://localhost:3000"),
        ("HTTPS://Shop.Example", "https://shop.example"),
        ("http://localhost:80", "http://localhost"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_an_origin_is_a_scheme_and_a_host(text: str, canonical: str) -> None:
    """An origin of the web has one canonical form."""
    assert str(parse_origin(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "null",
            "*",
            "localhost",
            "//localhost",
            "http:/localhost",
            "http://",
            "http:// ",
            "http://localhost:",
        ),
        *(
            "http://localhost/",
            "http://localhost/x",
            "http://localhost?x",
            "http://user@localhost",
            "ftp://localhost",
        ),
        *("file://", "http://[::1]evil.com", "http://localhost:abc", "http://localhost http://evil.com"),
    ],
)
def test_what_is_not_exactly_an_origin_is_none(text: str) -> None:
    """Opaque origins, other schemes, and URLs with more than an origin are no site."""
    assert parse_origin(text) is None


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost", "localhost", True),
        ("http://localhost:80", "localhost", True),
        ("https://localhost", "localhost:443", True),
        ("http://LOCALHOST:8000", "localhost.:8000", True),
        ("http://localhost:8000", "localhost", False),
        ("https://localhost", "localhost:80", False),
        ("http://localhost:8000", "127.0.0.1:8000", False),
    ],
)
def test_a_page_belongs_to_the_address_it_was_loaded_from(origin: str, host: str, same: bool) -> None:
    """Name and port must be equal; a port that is left out is the default of the scheme."""
    site, address = parse_origin(origin), parse_host(host)

    assert site is not None
    assert address is not None
    assert site.is_served_at(address) is same


@pytest.mark.parametrize(
    ("text", "own"),
    [
        *((text, True) for text in ("localhost", "app.localhost", "127.0.0.1", "192.0.2.7", "[::1]")),
        *(
            (text, False)
            for text in ("evil.example", "xlocalhost", "127.1", "0x7f.1", "127.0.0.1.evil.example")
        ),
    ],
)
def test_only_addresses_and_localhost_are_of_this_machine(text: str, own: bool) -> None:
    """A name that a DNS server of others decides about is not this machine's."""
    host = parse_host(text)

    assert host is not None
    assert host.is_of_this_machine is own


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

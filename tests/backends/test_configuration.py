"""Configuration of an endpoint: resolved by botocore, or simple enough to do without it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.credentials import DeferredRefreshableCredentials, RefreshableCredentials
from botocore.exceptions import ClientError

import tavola
from tavola.backends.aws import AwsConfiguration
from tavola.backends.configuration import is_local, parse_address
from tavola.backends.errors import CredentialsMissing, EndpointUnreachable, EndpointUntrusted, ExtraMissing
from tavola.backends.signatures import SigningKey
from tavola.engine import Engine
from tavola.server.listener import running
from tests.backends.endpoints import SHELLS, deserted, echo, open_backend, scripted, serve_fixed
from tests.backends.test_embedded import KEY


@pytest.mark.parametrize(
    ("url", "host", "port", "header"),
    [
        ("http://localhost:8000/", "localhost", 8000, "localhost:8000"),
        ("http://Shop.Example", "shop.example", 80, "shop.example"),
        ("https://shop:443", "shop", 443, "shop"),
        ("https://shop:80", "shop", 80, "shop:80"),
        ("http://[::1]:8000", "::1", 8000, "[::1]:8000"),
        ("http://bücher.example:1", "bücher.example", 1, "xn--bcher-kva.example:1"),
    ],
)
def test_addresses(url: str, host: str, port: int, header: str) -> None:
    """A URL determines the address and the host name; the scheme's default port is omitted."""
    address = parse_address(url)

    assert (address.host, address.port, address.header) == (host, port, header)
    assert address.secure == url.startswith("https")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h/db/v1/", "/db/v1/"),
        ("http://h/a b", "/a%20b/"),
        ("http://h/a%20b", "/a%20b/"),
        ("http://h/é", "/%C3%A9/"),
    ],
)
def test_a_path_is_sent_as_a_request_line_can_hold_it(url: str, path: str) -> None:
    """Spaces and non-ASCII letters are percent-encoded once; the path sent is the path signed."""
    assert parse_address(url).path == path


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://h/a//b", "//"),
        ("http://h/a/../b", r"\.\."),
        ("http://h/./b", r"contains //, \."),
        ("http://h/x?y=1", "query"),
        ("http://h/x#y", "fragment"),
        ("http://ann:secret@h/x", "user"),
    ],
)
def test_unsupported_parts_of_a_url_are_refused(url: str, why: str) -> None:
    """No part of a URL is dropped silently, and the refusal does not repeat a password."""
    with pytest.raises(EndpointUnreachable, match=why) as refused:
        parse_address(url)

    assert "secret" not in str(refused.value)
    assert not refused.value.sent


@pytest.mark.parametrize(
    ("url", "local"),
    [
        *[("http://localhost:1", True), ("http://db.localhost:1", True), ("http://127.8.9.1:1", True)],
        *[("http://[::1]:1", True), ("http://10.0.0.1:1", False), ("http://localhost.example:1", False)],
    ],
)
def test_loopback_addresses_are_local(url: str, local: bool) -> None:
    """Loopback by name or number, and nothing that only looks like it."""
    assert is_local(url) == local


@pytest.fixture
def without_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which botocore is not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    for name in ("aws", "mocking"):
        monkeypatch.delitem(sys.modules, f"tavola.backends.{name}", raising=False)
        monkeypatch.delattr(f"tavola.backends.{name}", raising=False)


@pytest.mark.usefixtures("without_botocore")
def test_a_server_on_this_machine_needs_no_botocore() -> None:
    """It is called with a dummy key and the default region, or with the configured ones."""
    with Engine.open() as engine, running(engine) as served:
        with tavola.connect(served.url) as connection:
            assert connection.call("ListTables") == {"TableNames": []}
            assert "botocore.session" not in sys.modules
    with serve_fixed() as fixed:
        with tavola.connect(fixed.url, region="eu-west-1", account="123456789012", timeout_s=5) as connection:
            connection.call("ListTables")
        assert "Credential=123456789012/" in fixed.requests[0][0]["Authorization"]
        assert "/eu-west-1/dynamodb/" in fixed.requests[0][0]["Authorization"]


@pytest.mark.usefixtures("without_botocore")
@pytest.mark.parametrize(
    ("target", "settings"),
    [("http://10.0.0.1:8000", {}), ("aws:eu-west-1", {}), ("http://localhost:8000", {"profile": "shop"})],
)
def test_a_missing_botocore_is_reported(target: str, settings: dict[str, Any]) -> None:
    """Another machine, AWS and a profile need botocore, blocking or on a loop."""
    with pytest.raises(ExtraMissing, match="pip install"):
        tavola.connect(target, **settings)
    with pytest.raises(ExtraMissing, match="pip install"):
        tavola.connect_async(target, **settings)


def credentials(minutes: float, name: str) -> dict[str, str]:
    """Return a provider's credentials that expire in `minutes`."""
    ends = datetime.now(UTC) + timedelta(minutes=minutes)
    return {"access_key": name, "secret_key": "s", "token": "t", "expiry_time": ends.isoformat()}


def test_credentials_that_end_are_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore decides when to renew them, and is called at most once a second."""
    renewals = [credentials(5, "SECOND"), credentials(60, "THIRD")]
    made = RefreshableCredentials.create_from_metadata(
        credentials(5, "FIRST"), lambda: renewals.pop(0), "test"
    )
    configuration = AwsConfiguration(endpoint="http://localhost:1")
    monkeypatch.setattr(configuration, "_credentials", made)

    assert configuration.cached_key() is None
    assert configuration.key() == SigningKey("SECOND", "s", "t")
    assert configuration.key() == SigningKey("SECOND", "s", "t")
    assert configuration.cached_key() == SigningKey("SECOND", "s", "t")
    monkeypatch.setattr("tavola.backends.aws.KEY_S_MAX", 0.0)
    configuration._key = (SigningKey("SECOND", "s", "t"), 0.0)
    assert configuration.cached_key() is None
    assert configuration.key() == SigningKey("THIRD", "s", "t")
    assert configuration.cached_key() == SigningKey("THIRD", "s", "t")
    assert renewals == []


def test_credentials_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the credentials service is reported as a Tavola error, not as botocore's."""

    def refuse() -> dict[str, str]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "AssumeRole")

    configuration = AwsConfiguration(endpoint="http://localhost:1")
    monkeypatch.setattr(configuration, "_credentials", DeferredRefreshableCredentials(refuse, "assume-role"))

    with pytest.raises(CredentialsMissing, match="not you"):
        configuration.key()


def test_permanent_credentials_are_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key from the environment is resolved at the first call."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    configuration = AwsConfiguration(endpoint="http://localhost:1")
    assert configuration.cached_key() is None
    key = configuration.key()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    assert configuration.key() is key
    assert configuration.cached_key() is key


@pytest.mark.parametrize("shell", SHELLS)
def test_a_proxy_is_gone_through(monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """HTTP_PROXY is used, signed for the endpoint; NO_PROXY bypasses it; a missing proxy is reported."""
    with serve_fixed() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        with open_backend(shell, AwsConfiguration(endpoint="http://shop.example:8000")) as backend:
            assert backend.call("GetItem", KEY) == {}
        assert proxy.requests[0][0]["Host"] == "shop.example:8000"
        assert (
            "SignedHeaders=content-type;host;x-amz-date;x-amz-target" in proxy.requests[0][0]["Authorization"]
        )

        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with scripted(echo) as script, open_backend(shell, AwsConfiguration(endpoint=script.url)) as backend:
            assert backend.call("GetItem", KEY) == KEY
        assert len(proxy.requests) == 1
    with deserted() as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("http_proxy", url)
        with open_backend(shell, AwsConfiguration(endpoint="http://shop.example:8000")) as backend:
            with pytest.raises(EndpointUnreachable) as caught:
                backend.call("GetItem", KEY)
    assert not caught.value.sent


def test_an_endpoint_that_is_configured_and_no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS_ENDPOINT_URL without a scheme is reported."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "localhost:8000")
    with pytest.raises(EndpointUnreachable, match="localhost:8000") as caught:
        AwsConfiguration(region="eu-west-1").resolve("dynamodb")
    assert not caught.value.sent

    with pytest.raises(EndpointUnreachable, match="not a URL"):
        parse_address("ftp://localhost")


def test_a_path_that_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint behind a path is called there, as botocore does."""
    with scripted(echo) as script:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"{script.url}/dynamodb")
        with open_backend("waiting", AwsConfiguration(region="eu-west-1", account="123456789012")) as backend:
            assert backend.call("GetItem", KEY) == KEY

    assert script.requests[0].startswith(b"POST /dynamodb/ HTTP/1.1\r\n")


def test_a_bundle_that_is_configured_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing AWS_CA_BUNDLE is named."""
    monkeypatch.setenv("AWS_CA_BUNDLE", "missing.pem")
    with open_backend("waiting", AwsConfiguration(endpoint="https://localhost:1")) as backend:
        with pytest.raises(EndpointUntrusted, match=r"missing\.pem cannot be read"):
            backend.call("ListTables", {})

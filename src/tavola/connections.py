"""`connect` and `connect_async`: from a target such as "memory:" or "aws:eu-west-1" to a connection.

This module chooses and configures the backend. Each backend is imported only for a target that needs it: a program that
talks to AWS loads neither the engine nor SQLite.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct

from tavola.backends.credentials import Credentials
from tavola.backends.errors import extra_missing
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope
from tavola.protocol.message_style import MessageStyle

if (
    TYPE_CHECKING
):  # loaded when something is connected to: the client for all, the engine for `memory:` and `file:` alone
    from tavola.client.context import Context
    from tavola.client.retries import RetryPolicy
    from tavola.engine import Buckets, Engine
    from tavola.handles import AsyncConnection, Connection
    from tavola.model import Table

FORMS = '"memory:", "file:PATH", "http://HOST:PORT", "https://HOST" or "aws:REGION"'

_REGION = re.compile(r"[a-z0-9-]{1,63}")
_ACCOUNT = re.compile(r"[0-9]{12}")


class EngineSettings(TypedDict, total=False):
    """What an engine of one's own can be told; see `Engine.open`."""

    clock: Clock
    entropy: Entropy
    sync: str
    wording: MessageStyle
    cache_mb: int
    table_delay_ms: int
    ttl_interval_s: float
    key: str
    emulate: str
    buckets: str | os.PathLike[str] | Buckets


class ClientSettings(TypedDict, total=False):
    """What the client of entities can be told.

    `table_names` says what tables are called here that the model calls otherwise, by class, class name or name in the
    model; `table_prefix` what stands before the names of all others. `cursor_secret` signs page cursors; without it they
    hold in this process alone. `retry_policy` says how long throttles are waited out.
    """

    table_names: Mapping[str, str] | Mapping[type[Table], str] | Mapping[str | type[Table], str]
    table_prefix: str
    cursor_secret: bytes
    retry_policy: RetryPolicy


class Settings(EngineSettings, ClientSettings, total=False):
    """What `connect` takes besides; `profile` is botocore's, `timeout_s` how long an answer may take.

    `credentials` are whose requests they are, in place of whom botocore finds configured.
    """

    profile: str
    credentials: Credentials
    timeout_s: float


ENGINE_SETTINGS = frozenset(EngineSettings.__annotations__)
_CLIENT = frozenset(ClientSettings.__annotations__)
_ENDPOINT = frozenset(Settings.__annotations__) - ENGINE_SETTINGS - _CLIENT


class ConnectionRefused(TavolaError):
    """A target or setting that cannot be connected with."""

    kind = ErrorKind.USAGE
    remedy = "Name a server with --endpoint, or the file of a store with --store."


def connect(
    target: str | Engine,
    *,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[Settings],
) -> Connection:
    """Return a connection to "memory:", "file:PATH", "http://HOST:PORT", "https://HOST" or "aws:REGION".

    An `Engine` that is open may stand for the target: closing the connection leaves it open for others.

    `region` and `account` say whose tables are meant: us-east-1 and 000000000000 unless given. At a URL,
    both are what botocore finds configured unless given, and an account is given as the access key, which
    is how local servers tell accounts apart. On AWS the region is in the target ("aws:" takes botocore's)
    and the account is that of the credentials.

    The client takes `table_names`, `table_prefix`, `cursor_secret`, `retry_policy`, `clock` and `entropy`; an endpoint also
    `profile`, `credentials` and `timeout_s`; an engine in this process also `sync`, `cache_mb`, `table_delay_ms`, `ttl_interval_s`, `key`,
    `emulate`, `buckets` and `wording` (see `Engine.open`).
    """
    from tavola.handles import Connection  # noqa: PLC0415 - loads the client

    context, settings = _client_context(target, region, settings)
    resolved = _resolve_target(target, region, account, settings)
    if isinstance(resolved, _Embedded):
        from tavola.backends.embedded import EmbeddedBackend  # noqa: PLC0415 - loads the engine

        backend = EmbeddedBackend(resolved.engine, resolved.scope, owned=resolved.owned)
        return Connection(backend, _name_of(target), context)
    from tavola.backends.http import HttpBackend  # noqa: PLC0415 - loads sockets

    return Connection(HttpBackend(resolved.configuration, **resolved.settings), _name_of(target), context)


def connect_async(
    target: str | Engine,
    *,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[Settings],
) -> AsyncConnection:
    """Return a connection for a program on an event loop; target and settings are those of `connect`.

    It is used on one loop, asyncio's own or uvloop. An engine in this process answers on the loop itself.
    """
    from tavola.handles import AsyncConnection  # noqa: PLC0415 - loads the client

    context, settings = _client_context(target, region, settings)
    resolved = _resolve_target(target, region, account, settings)
    if isinstance(resolved, _Embedded):
        from tavola.backends.embedded import AsyncEmbeddedBackend  # noqa: PLC0415 - loads the engine

        backend = AsyncEmbeddedBackend(resolved.engine, resolved.scope, owned=resolved.owned)
        return AsyncConnection(backend, _name_of(target), context)
    from tavola.backends.async_http import AsyncHttpBackend  # noqa: PLC0415 - loads sockets

    http = AsyncHttpBackend(resolved.configuration, **resolved.settings)
    return AsyncConnection(http, _name_of(target), context)


def _name_of(target: str | Engine) -> str:
    return target if isinstance(target, str) else "an engine of this process"


def _client_context(target: str | Engine, region: str | None, settings: Settings) -> tuple[Context, Settings]:
    """Return what the client is told, and the settings that are left for the engine or the endpoint."""
    from tavola.client.context import Context  # noqa: PLC0415 - as above
    from tavola.client.retries import RetryPolicy  # noqa: PLC0415 - as above

    entropy = settings.get("entropy", SYSTEM_ENTROPY)
    engine = _engine_in(target)
    clock = SYSTEM_CLOCK if engine is None else engine.clock
    named = target if isinstance(target, str) else ""
    context = Context(
        names=settings.get("table_names", {}),
        prefix=settings.get("table_prefix", ""),
        clock=settings.get("clock", clock),
        entropy=entropy,
        secret=settings.get("cursor_secret", b""),
        retry_policy=settings.get("retry_policy") or RetryPolicy(entropy=entropy),
        region=region or (named.removeprefix("aws:") if named.startswith("aws:") else None),
    )
    here = named.startswith(("memory:", "file:"))
    own = _CLIENT if here else _CLIENT | {"clock", "entropy"}  # elsewhere they are the client's alone
    rest: Any = {name: value for name, value in settings.items() if name not in own}
    return context, rest


class _Embedded(Struct, frozen=True):
    """A target in this process."""

    engine: Engine
    scope: Scope
    owned: bool


class _Remote(Struct, frozen=True):
    """A target over HTTP; its configuration is one that the backends take, and loads what they need."""

    configuration: Any
    settings: dict[str, Any]


def _resolve_target(
    target: str | Engine, region: str | None, account: str | None, settings: Settings
) -> _Embedded | _Remote:
    """Return what a target names; refuse what is none, and what does not apply to it."""
    check_scope(region, account)
    engine = _engine_in(target)
    if engine is not None:
        _check_open(settings)
        return _Embedded(engine, scope_of(region, account), owned=False)
    if not isinstance(target, str):
        raise ConnectionRefused(f"{target!r} is no target; give {FORMS}, or an engine that is open")
    scheme, colon, rest = target.partition(":")
    if colon and scheme == "memory" and not rest:
        return _open_embedded(target, None, region, account, settings)
    if colon and scheme == "file":
        return _open_embedded(target, _path_of(target, rest), region, account, settings)
    if scheme in {"http", "https"} and rest.startswith("//"):
        return _configure_remote(target, _url_of(target), region, account, settings)
    if colon and scheme == "aws" and (not rest or _REGION.fullmatch(rest)):
        if region is not None:
            raise ConnectionRefused(f'region does not apply to {target}; name it there: "aws:{region}"')
        if account is not None:
            raise ConnectionRefused(f"account does not apply to {target}; the credentials decide it")
        return _configure_remote(target, None, rest or None, None, settings)
    raise ConnectionRefused(f"{target!r} is no target; give {FORMS}")


def _engine_in(target: object) -> Engine | None:
    """Return the target if it is an engine, without loading the engine for targets that are text."""
    if isinstance(target, str):
        return None
    from tavola.engine import Engine  # noqa: PLC0415 - loaded already if the target is one

    return target if isinstance(target, Engine) else None


def _open_embedded(
    target: str, path: Path | None, region: str | None, account: str | None, settings: Settings
) -> _Embedded:
    check_settings(target, settings, ENGINE_SETTINGS)
    from tavola.engine import Engine  # noqa: PLC0415 - only a target in this process loads it

    engine = Engine.open(path, **engine_options(settings))
    return _Embedded(engine, scope_of(region, account), owned=True)


def scope_of(region: str | None, account: str | None) -> Scope:
    return Scope(account or DEFAULT_SCOPE.account, region or DEFAULT_SCOPE.region)


def _check_open(settings: Mapping[str, object]) -> None:
    """Refuse what can only be told where an engine is opened, and what is told to an endpoint."""
    for name in settings:
        if name in ENGINE_SETTINGS:
            raise ConnectionRefused(
                f"{name} does not apply to an engine that is open already; give it to Engine.open"
            )
    check_settings("an engine of this process", settings, _CLIENT | {"clock", "entropy"})


def _configure_remote(
    target: str, endpoint: str | None, region: str | None, account: str | None, settings: Settings
) -> _Remote:
    check_settings(target, settings, _ENDPOINT)
    rest: dict[str, Any] = {
        name: value for name, value in settings.items() if name not in {"profile", "credentials"}
    }
    credentials = settings.get("credentials")
    if credentials is not None and (account is not None or "profile" in settings):
        other = "profile" if account is None else "account"
        raise ConnectionRefused(f"credentials and {other} both say who asks {target}; give one of them")
    if settings.get("timeout_s", 1.0) <= 0:
        raise ConnectionRefused("timeout_s is how many seconds an answer may take; give more than 0")
    try:
        from tavola.backends.aws import AwsConfiguration  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        missing = extra_missing(error, f'connect("{target}")')
        from tavola.backends.http import LocalConfiguration, is_local  # noqa: PLC0415 - as above

        if endpoint is None or not is_local(endpoint) or "profile" in settings:
            raise missing from error
        return _Remote(
            LocalConfiguration(endpoint, region=region, account=account, credentials=credentials), rest
        )
    profile = settings.get("profile")
    found = AwsConfiguration(
        region=region, endpoint=endpoint, account=account, profile=profile, credentials=credentials
    )
    return _Remote(found, rest)


def engine_options(settings: Settings | EngineSettings) -> Any:
    """Return the settings for `Engine.open`, as keyword arguments that a type checker cannot follow."""
    return dict(settings)


def check_settings(target: str, settings: Mapping[str, object], apply: frozenset[str]) -> None:
    for name in settings:
        if name not in apply:
            raise ConnectionRefused(
                f"{name} does not apply to {target}; what does: region, account, {', '.join(sorted(apply))}"
                if name in ENGINE_SETTINGS | _ENDPOINT
                else f"there is no setting {name}; there are: "
                f"region, account, {', '.join(sorted(ENGINE_SETTINGS | _ENDPOINT | _CLIENT))}"
            )


def check_scope(region: str | None, account: str | None) -> None:
    if region is not None and not _REGION.fullmatch(region):
        raise ConnectionRefused(f"{region!r} is no region; give one such as eu-west-1")
    if account is not None and not _ACCOUNT.fullmatch(account):
        raise ConnectionRefused(f"{account!r} is no account; give twelve digits such as 123456789012")


def _path_of(target: str, rest: str) -> Path:
    if rest.startswith("//"):  # as a URL: file:///var/lib/shop.db
        host, slash, path = rest[2:].partition("/")
        rest = slash + path if not host else ""
    if not rest:
        raise ConnectionRefused(
            f'{target!r} names no file of this machine; give "file:shop.db" or "file:/var/lib/shop.db"'
        )
    return Path(rest).expanduser()


def _url_of(target: str) -> str:
    try:
        parts = urlsplit(target)
        usable = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or parts.path not in {"", "/"} or parts.query or parts.fragment or parts.username:
        raise ConnectionRefused(
            f'{target!r} is no endpoint; give scheme, host and port alone, such as "http://localhost:8000"'
        )
    return target.rstrip("/")


__all__ = [
    "FORMS",
    "ClientSettings",
    "ConnectionRefused",
    "Credentials",
    "EngineSettings",
    "Settings",
    "connect",
    "connect_async",
]

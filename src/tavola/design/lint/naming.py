"""Naming: what the names in a design say, where nothing else says it.

A name is no proof, so rules ask it only for what people call by few words: production, the time an item expires at,
somebody's session, an answer that is kept for a while, a process that serves everybody.
"""

from __future__ import annotations

import re

from tavola.model.document import EntityDesign, FieldDesign, TableDesign

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PRODUCTION = frozenset({"prod", "production", "live"})
_STAGES = frozenset({"environment", "env", "stage"})
_ENDS = frozenset({"expires", "expire", "expiry", "expiration"})
_ENDINGS = frozenset({"at", "on", "time", "date", "timestamp", "epoch", "s", "seconds", "ms", "millis"})
_LIVES = (("ttl",), ("time", "to", "live"))
_PEOPLE = frozenset({"user", "username", "account", "principal", "operator", "customer", "member"})
_SESSIONS = frozenset(
    {
        ("session",),
        *((word, "session") for word in ("user", "login", "auth", "web", "client", "browser", "customer")),
        *((word, "token") for word in ("auth", "session", "login", "access", "refresh")),
    }
)
FEW_VALUED_NAMES = frozenset(  # what fields are called that have few values
    """
    status state stage phase type kind category priority severity level country region language currency channel gender active enabled
    """.split()
)
_SERVING = frozenset(
    """
    service services backend server worker workers job jobs consumer projector agent agents admin admins operator staff reader writer
    keeper founder
    """.split()
)


def split_words(name: str) -> tuple[str, ...]:
    """Return the words of a name in small letters, however they are joined: `expiresAt`, `EXPIRES_AT`."""
    return tuple(found.lower() for found in _WORD.findall(name))


def is_production(table: TableDesign) -> bool:
    """Tell whether a table says that it is in production: by its tag for the environment, else by its name."""
    told = [value for key, value in table.settings.tags.items() if key.lower() in _STAGES]
    if told:
        return any(_PRODUCTION & set(split_words(value)) for value in told)
    return bool({"prod", "production"} & set(split_words(table.name)))


def is_time_to_live(field: FieldDesign) -> bool:
    """Tell whether a field is called by DynamoDB's own word for the time at which an item is deleted."""
    told = split_words(field.attribute)
    return _is_time(field) and any(
        told[: len(name)] == name and set(told[len(name) :]) <= _ENDINGS for name in _LIVES
    )


def is_expiry(field: FieldDesign) -> bool:
    """Tell whether a field is a time and called as an item's own end is, or as that of what it is about: a card's, a coupon's."""
    told = split_words(field.attribute)
    named = bool(told) and told[0] in _ENDS and set(told[1:]) <= _ENDINGS
    return is_time_to_live(field) or (named and _is_time(field))


def _is_time(field: FieldDesign) -> bool:
    return "N" in field.tags or field.type.endswith("datetime") or field.key_kind == "datetime"


def serves_all_tenants(name: str) -> bool:
    """Tell whether a policy is called as that of a process, or of people, who work for every tenant."""
    return bool(_SERVING & set(split_words(name)))


def temporary_kind(entity: EntityDesign) -> str | None:
    """Return what an entity is that is only of use for a time, in a word; None: it is nothing of the kind."""
    literals = [
        segment
        for source in (entity.key.hash if entity.key is not None else ())
        if source.template is not None
        for segment in source.template.segments
        if isinstance(segment, str)
    ]
    told = {word for text in (entity.name, entity.tag, *literals) for word in split_words(text)}
    if told & {"idempotency", "idempotent"}:
        return "an idempotency key"
    if told & {"cache", "cached", "caches"}:
        return "a cached answer"
    return "a session" if _is_session(entity, literals) else None


def _is_session(entity: EntityDesign, literals: list[str]) -> bool:
    """Tell whether an entity is somebody's session: called so, or keyed so, and not a lesson or a log of logins.

    One that has a time in its key is an event, of which there are to be many.
    """
    if not any(_PEOPLE & set(split_words(field.name)) for field in entity.fields):
        return False
    keyed = () if entity.key is None else entity.key.fields
    if any(
        field.name in keyed and (field.key_kind or field.type) in ("date", "datetime")
        for field in entity.fields
    ):
        return False
    called = split_words(entity.name)
    if called in _SESSIONS:
        return True
    return "session" not in called and [split_words(text) for text in literals] == [("session",)]

"""What names in a design suggest, where the design does not declare it.

A name proves nothing, so rules rely on it only for things with few usual names: production, the expiry time of an item, a
login session, a cached answer, a process that serves all tenants.
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
FEW_VALUED_NAMES = frozenset(  # fields with these names usually have few values
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
    """Return the words of a name in lower case: of `expiresAt` and `EXPIRES_AT` alike `expires`, `at`."""
    return tuple(part.lower() for part in _WORD.findall(name))


def is_production(table: TableDesign) -> bool:
    """Return whether a table is a production table, by its environment tag or else by its name."""
    stages = [value for key, value in table.settings.tags.items() if key.lower() in _STAGES]
    if stages:
        return any(_PRODUCTION & set(split_words(value)) for value in stages)
    return bool({"prod", "production"} & set(split_words(table.name)))


def is_time_to_live(field: FieldDesign) -> bool:
    """Return whether a field is a time named like DynamoDB's TTL attribute."""
    name_words = split_words(field.attribute)
    return _is_time(field) and any(
        name_words[: len(name)] == name and set(name_words[len(name) :]) <= _ENDINGS for name in _LIVES
    )


def is_expiry(field: FieldDesign) -> bool:
    """Return whether a field is a time named like an expiry: of the item, or of what it describes, such as a coupon."""
    name_words = split_words(field.attribute)
    named = bool(name_words) and name_words[0] in _ENDS and set(name_words[1:]) <= _ENDINGS
    return is_time_to_live(field) or (named and _is_time(field))


def _is_time(field: FieldDesign) -> bool:
    return "N" in field.tags or field.type.endswith("datetime") or field.key_kind == "datetime"


def serves_all_tenants(name: str) -> bool:
    """Return whether a policy is named like one of a process or of staff that works for all tenants."""
    return bool(_SERVING & set(split_words(name)))


def temporary_kind(entity: EntityDesign) -> str | None:
    """Return what kind of temporary data an entity is, as a plural for messages; None if it is not."""
    literals = [
        segment
        for source in (entity.key.hash if entity.key is not None else ())
        if source.template is not None
        for segment in source.template.segments
        if isinstance(segment, str)
    ]
    name_words = {word for text in (entity.name, entity.tag, *literals) for word in split_words(text)}
    if name_words & {"idempotency", "idempotent"}:
        return "idempotency keys"
    if name_words & {"cache", "cached", "caches"}:
        return "cached responses"
    return "sessions" if _is_session(entity, literals) else None


def _is_session(entity: EntityDesign, literals: list[str]) -> bool:
    """Return whether an entity is a login session, by its name or key, and not a lesson or a log of logins.

    An entity with a time in its key is an event, not a session.
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

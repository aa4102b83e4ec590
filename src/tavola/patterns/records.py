"""Records: the three entities of a versioned record (current, version, audit row), checked when they are declared.

The current item is in the indexes and replaced by each change. Each change adds a version and an audit row, which are never
rewritten; so they must not be in an index that queries by state, where an old version would match forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from tavola.model import Attr, Entity, EntityShape, PrimaryKey, Query, attr, shape_of
from tavola.patterns.audit import (
    CHAIN_DIGEST,
    AuditEntry,
    ChangeKind,
    Difference,
    differences,
    digest_values,
    index_keys,
    secret_name,
    shorten_differences,
    stored_values,
)
from tavola.patterns.recipe import RecipeRefused, key_class

NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # when a record changed that was never stored

# Fields that each change sets itself
_OWN = frozenset({"version", "changed_at", "changed_by", "chain_digest"})


class Versioned(Entity):
    """Base of a versioned record: put its fields in a subclass that the current entity and the versions share."""

    version: Attr[int] = attr(default=0)  # 0: not stored yet
    changed_at: Attr[datetime] = attr(default=NEVER)
    changed_by: Attr[str] = attr(default="")
    # Digest of this version's audit row, if rows are chained
    chain_digest: Attr[str | None] = attr(default=None)


R = TypeVar("R", bound=Versioned)
V = TypeVar("V", bound=Versioned)
A = TypeVar("A", bound=AuditEntry)
E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class Edit:
    """Who made a change, when and why."""

    kind: ChangeKind
    by: str
    why: str
    at: datetime
    more: Mapping[str, Any]  # the caller's own fields in the audit row
    restored: int | None = None


class Records(Generic[R, V, A]):
    """The three entities of one versioned record, with their keys and queries."""

    def __init__(self, current: type[R], version: type[V], audit: type[A]) -> None:
        self.current, self.version, self.audit = current, version, audit
        self.shapes = shape_of(current), shape_of(version), shape_of(audit)
        shape = self.shapes[0]
        if shape.key is None:
            raise RecipeRefused(
                current.__name__, "it is the current one of each record; declare its table and Key"
            )
        self.parts = shape.key.partition  # the fields that identify a record
        ttl = shape.home.settings.ttl
        self._life = frozenset(n for n, f in shape.fields.items() if f.attribute == ttl)
        self._not_content = _OWN | self._life
        _check(self.shapes, self.parts)
        self.key = key_class(current, *self.parts)
        self.version_key = key_class(version, *self.parts, "version")
        self.audit_key = key_class(audit, *self.parts, "version")
        self.versions = self._version_query(version)
        self.history = self._version_query(audit)
        self.by_actor = _query(audit, ("actor",), "at")

    def identity(self, record: R | PrimaryKey[R]) -> dict[str, Any]:
        """Return the fields that identify a record, as arguments of its keys."""
        return {name: record.__dict__[name] for name in self.parts}

    def key_of(self, record: R) -> PrimaryKey[R]:
        """Return the key of the current item."""
        return self.key(**self.identity(record))

    def version_row(self, record: R | PrimaryKey[R], version: int) -> PrimaryKey[V]:
        """Return the key of one version."""
        return self.version_key(**self.identity(record), version=version)

    def audit_row(self, record: R | PrimaryKey[R], version: int) -> PrimaryKey[A]:
        """Return the key of the audit row of one version."""
        return self.audit_key(**self.identity(record), version=version)

    def describe(self, record: R | PrimaryKey[R]) -> str:
        """Return the name of a record for error messages."""
        parts = ", ".join(f"{name}={value!r}" for name, value in self.identity(record).items())
        return f"{self.current.__name__} {parts}"

    def content(self, record: R | V) -> dict[str, Any]:
        """Return a record's own stored fields, without those that each change sets and without its expiry."""
        return stored_values(shape_of(type(record)), record, self._not_content)

    def validate(self, record: R | V) -> R:
        """Return a validated current record, made from an edited one or from a version."""
        return self.current.model_validate(_values(record), by_name=True)

    def life(self, record: R) -> dict[str, Any]:
        """Return the field with a record's expiry; empty in a table without time to live."""
        return {name: record.__dict__[name] for name in self._life}

    def make_items(
        self, before: R | None, after: R, edit: Edit, *, chained: bool, secret: bytes | None
    ) -> tuple[R, V, A]:
        """Return the items of a change: the current one, the version and the audit row."""
        if before is not None and self.identity(before) != self.identity(after):
            raise RecipeRefused(
                self.current.__name__, f"{', '.join(self.parts)} identifies a record and cannot be edited"
            )
        number = 1 if before is None else before.version + 1
        # If the clock was set back, a change still gets no earlier time than the one before it.
        at = edit.at if before is None else max(edit.at, before.changed_at)
        version_fields = {"version": number, "changed_at": at, "changed_by": edit.by, "chain_digest": None}
        values = _values(after) | version_fields
        current = self.current.model_validate(values, by_name=True)
        version = self.version.model_validate(values, by_name=True)
        content = stored_values(self.shapes[1], version, CHAIN_DIGEST)
        changes: tuple[Difference, ...] = ()
        if before is not None:
            after_content = {name: value for name, value in content.items() if name not in self._not_content}
            changes = differences(self.content(before), after_content)
        entry = self.audit(
            **self.identity(current), version=number, kind=edit.kind, actor=edit.by, at=at, why=edit.why,
            restored=edit.restored, differences=shorten_differences(changes), **edit.more,
        )  # fmt: skip
        if chained:
            entry.undigested = index_keys(self.shapes[2])
            entry.content = digest_values(self.shapes[1], content, secret)
            entry.previous = None if before is None else before.chain_digest
            entry.signed_by = secret_name(secret)
            entry.chain_digest = digest_values(
                self.shapes[2], stored_values(self.shapes[2], entry, CHAIN_DIGEST), secret
            )
            current.chain_digest = version.chain_digest = entry.chain_digest
        return current, version, entry

    def _version_query(self, entity: type[E]) -> type[Query[E]]:
        query = _query(entity, self.parts, "version", table=True)
        if query is None:
            raise RecipeRefused(
                entity.__name__,
                f"it is read in order; declare a query on=Key with {', '.join(self.parts)} and version: Sort[int]",
            )
        return query


def _values(record: Versioned) -> dict[str, Any]:
    """Return a record's fields as Python values."""
    return {name: record.__dict__[name] for name in type(record).model_fields}


def _query(
    entity: type[E], parts: tuple[str, ...], first: str, *, table: bool = False
) -> type[Query[E]] | None:
    """Return the query of an entity with these arguments that sorts by `first`; None if it has none."""
    for name, pattern in shape_of(entity).patterns.items():
        matches = pattern.sorts[:1] == (first,) and (not table or pattern.key.index is None)
        if matches and set(pattern.partition) == set(parts):
            query: type[Query[E]] = getattr(entity, name)
            return query
    return None


def _check(shapes: tuple[EntityShape, EntityShape, EntityShape], parts: tuple[str, ...]) -> None:
    """Refuse entities that could not keep the guarantees of versioned records."""
    current, version, audit = shapes
    name = version.entity.__name__
    if "version" in parts:
        raise RecipeRefused(
            f"{current.entity.__name__}.Key", "it names the current one; leave version out of it"
        )
    for shape in (version, audit):
        if not shape.immutable:
            raise RecipeRefused(
                shape.entity.__name__, "its items are never written again; declare it with immutable=True"
            )
    current_fields, version_fields = (
        {n: (f.attribute, f.annotation) for n, f in s.fields.items()} for s in (current, version)
    )
    if current_fields != version_fields:
        different = ", ".join(
            sorted(
                n
                for n in current_fields.keys() | version_fields.keys()
                if current_fields.get(n) != version_fields.get(n)
            )
        )
        raise RecipeRefused(
            name,
            f"{different} is not the same field as in {current.entity.__name__}; declare the fields in a base of both",
        )
    if version.keys:
        index = next(n for n, pattern in version.patterns.items() if pattern.key.index is not None)
        raise RecipeRefused(
            f"{name}.{index}",
            f"old versions would answer there for ever; declare the query in {current.entity.__name__}, whose items "
            "are the current ones",
        )
    if version.uniques or current.lock is not None:
        raise RecipeRefused(
            name,
            "a unique value would be taken by its own older versions, and the version is the lock; declare unique "
            f"fields in {current.entity.__name__} alone, and no lock",
        )
    absent = [n for n in parts if n not in audit.fields]
    if absent:
        raise RecipeRefused(
            audit.entity.__name__, f"it lacks {', '.join(absent)}, which identifies the record; add it"
        )

"""Audit: one row per change with who, when, why and what; and a hash chain that reveals tampering.

A row lists the differences field by field, down into documents and lists. Chained rows each contain the digest of the row
before and the digest of the version they describe:

    row 1 ── digest₁ ──► row 2 (previous = digest₁, content = digest of version 2) ── digest₂ ──► row 3 …

So altering, removing or inserting a row breaks the chain from there on. With a secret the digests are HMACs, and the chain
cannot be rebuilt without it. `DigestReader` checks single items against digests that are stored elsewhere. A digest covers all
stored attributes except keys; index keys follow from the fields and are compared with them instead.

What it gives up: removing the newest rows is not visible from the chain alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from hmac import new as hmac
from json import dumps
from re import compile as pattern
from typing import Any, Generic, Literal

from pydantic import BaseModel, ConfigDict

from tavola.client.stored import get_stored, stale_attributes
from tavola.model import Attr, Entity, EntityShape, ItemUnreadable, PrimaryKey, attr, decode_plain, shape_of
from tavola.patterns.digests import digest_of
from tavola.patterns.recipe import D_co, PatternProgram, Recipe, call_client, recipe_method

VALUE_BYTES_MAX = 1024  # a longer value is not repeated in the audit row: the versions hold it
ROW_BYTES_MAX = 64 * 1024  # size of a row's differences; beyond it they list paths without values

_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_FIELD = pattern(r"[.\[]")  # ends a field's name in a path
_ABSENT: Any = object()

CHAIN_DIGEST = frozenset({"chain_digest"})  # a digest cannot cover itself

ChangeKind = Literal["created", "changed", "restored"]


class Difference(BaseModel):
    """A difference between two versions at one path; values are as stored."""

    model_config = ConfigDict(frozen=True)

    path: str  # such as status, cost.monthly, findings[2].title
    kind: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None
    omitted: bool = False  # the values are too long to repeat here; the versions hold them

    def __str__(self) -> str:
        if self.omitted:
            return f"{self.path} {self.kind}"
        if self.kind == "changed":
            return f"{self.path}: {self.before!r} → {self.after!r}"
        return f"{self.path} {self.kind}: {self.after if self.kind == 'added' else self.before!r}"


class AuditEntry(Entity, immutable=True):
    """One change of a record; subclass it with a table, the record's key fields, and a key of these and version."""

    version: Attr[int]  # created by this change
    kind: Attr[ChangeKind]
    actor: Attr[str]
    at: Attr[datetime]
    why: Attr[str] = attr(default="")
    restored: Attr[int | None] = attr(default=None)  # the version whose content was restored
    differences: Attr[list[Difference]] = attr(default_factory=list)
    content: Attr[str | None] = attr(default=None)  # the digest of the version, if rows are chained
    undigested: Attr[set[str]] = attr(default_factory=set)  # index key attributes: an index may come and go
    previous: Attr[str | None] = attr(default=None)  # the chain digest of the row before
    signed_by: Attr[str | None] = attr(default=None)  # names the secret, if the digest is an HMAC
    chain_digest: Attr[str | None] = attr(default=None)  # covers everything else in the row


@dataclass(frozen=True, slots=True)
class HistoryProblem:
    """Something that differs from what was written."""

    version: int
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying a record; true if there are no problems."""

    versions: int  # how many were ever written
    chained_from: int | None  # the first version with a chained audit row
    # Of the last row; stored elsewhere, it later proves that the chain was not replaced
    chain_digest: str | None
    problems: tuple[HistoryProblem, ...]

    def __bool__(self) -> bool:
        return not self.problems


def secret_name(secret: bytes | None) -> str | None:
    """Return a short name that identifies a secret without revealing it."""
    return (
        None if secret is None else hmac(secret, b"tavola.patterns: which secret", "sha256").hexdigest()[:12]
    )


def stored_digest(entity: Entity) -> str:
    """Return the digest of an entity as it will be stored; `DigestReader.read` computes the same from the stored item.

    A field added to the entity later, which old items lack, does not change the digest.
    """
    shape = shape_of(type(entity))
    return digest_values(shape, stored_values(shape, entity, frozenset()), None)


def stored_values(shape: EntityShape, entity: Entity, without: frozenset[str]) -> dict[str, Any]:
    """Return an entity's fields as they are stored, decoded to plain values; absent values are left out."""
    values: dict[str, Any] = {}
    for name, field in shape.fields.items():
        value = entity.__dict__[name]
        if name not in without and value is not None:
            encoded = field.encode(value)
            if encoded:  # an empty set is absent
                values[name] = decode_plain(encoded)
    return values


def digest_values(shape: EntityShape, values: Mapping[str, Any], secret: bytes | None) -> str:
    """Return the digest of an entity from its `stored_values`."""
    return digest_of({shape.fields[name].attribute: value for name, value in values.items()}, secret)


def digest_item(
    shape: EntityShape, item: Mapping[str, Any], without: frozenset[str], secret: bytes | None
) -> str:
    """Return the digest of a stored item, unknown attributes included, without its keys and type tag."""
    settings = shape.home.settings
    reserved = {*settings.key_names, settings.tag, "_version"} | index_keys(shape)
    if "undigested" in shape.fields:
        reserved |= set(item.get(shape.fields["undigested"].attribute, {}).get("SS", ()))
    reserved -= shape.by_attribute.keys()
    reserved |= {shape.fields[name].attribute for name in without}
    values = {name: decode_plain(value) for name, value in item.items() if name not in reserved}
    return digest_of(values, secret)


def index_keys(shape: EntityShape) -> set[str]:
    """Return the attributes that exist only because of an entity's indexes."""
    return {source.attribute for key in shape.keys for source in key.written}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the differences by path, in the order of the names."""
    return tuple(_between("", before, after))


def _between(path: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            yield from _between(_inside(path, name), before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        for position in range(max(len(before), len(after))):
            yield from _between(
                f"{path}[{position}]",
                before[position] if position < len(before) else _ABSENT,
                after[position] if position < len(after) else _ABSENT,
            )
    elif before is _ABSENT:
        yield Difference(path=path, kind="added", after=after)
    elif after is _ABSENT:
        yield Difference(path=path, kind="removed", before=before)
    elif not _same(before, after):
        yield Difference(path=path, kind="changed", before=before, after=after)


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _inside(path: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        return f"{path}[{dumps(name)}]"
    return f"{path}.{name}" if path else name


def shorten_differences(differences: Sequence[Difference]) -> list[Difference]:
    """Return differences that fit into a row: without long values, then without values, then one per field."""
    short = [_without_values(difference) if _long(difference) else difference for difference in differences]
    if sum(map(_bytes, short)) > ROW_BYTES_MAX:
        short = [_without_values(difference) for difference in differences]
    if sum(map(_bytes, short)) > ROW_BYTES_MAX:
        fields = dict.fromkeys(_FIELD.split(difference.path, maxsplit=1)[0] for difference in differences)
        short = [Difference(path=name, kind="changed", omitted=True) for name in fields]
    return short


def _long(difference: Difference) -> bool:
    return any(len(repr(value)) > VALUE_BYTES_MAX for value in (difference.before, difference.after))


def _without_values(difference: Difference) -> Difference:
    return Difference(path=difference.path, kind=difference.kind, omitted=True)


def _bytes(difference: Difference) -> int:
    """Return the approximate size of a difference in an item."""
    return 64 + len(difference.path) + len(repr(difference.before)) + len(repr(difference.after))


class HistoryCheck:
    """Checks the versions of a record in order and collects the problems."""

    def __init__(
        self,
        shapes: tuple[EntityShape, EntityShape, EntityShape],
        secret: bytes | None,
        *,
        chained: bool,
        keep: int | None,
        last: int,
    ) -> None:
        self._shapes = shapes
        self._secret = secret
        self._chained = chained
        self._kept_from = 1 if keep is None else last - keep + 1
        self._last = last
        self._version: Mapping[str, Any] | None = None  # the item checked last
        self._chain_digest: str | None = None  # of the row before
        self._chained_from: int | None = None
        self._problems: list[HistoryProblem] = []

    def check_version(
        self, number: int, version: Mapping[str, Any] | None, entry: Mapping[str, Any] | None
    ) -> None:
        """Check the stored items of one version and its audit row."""
        self._version = version
        if version is None and number >= self._kept_from:
            self._wrong(number, "the version is gone")
        if entry is None:
            self._wrong(number, "its audit row is gone")
        elif self._chained:
            self._link(number, entry)

    def _link(self, number: int, entry: Mapping[str, Any]) -> None:
        shape = self._shapes[2]
        digest, previous, content = (
            _text(shape, entry, name) for name in ("chain_digest", "previous", "content")
        )
        if digest is None and self._chained_from is None:
            return  # it was written before rows were chained
        if self._chained_from is None:
            self._chained_from = number
        signer = _text(shape, entry, "signed_by")
        if signer is not None and signer != secret_name(self._secret):
            self._wrong(number, "its audit row was signed with a different secret")
        else:
            self._check_digests(number, entry, digest, content)
        if previous != self._chain_digest:
            self._wrong(number, "its audit row does not follow the one before")
        self._chain_digest = digest

    def _check_digests(
        self, number: int, entry: Mapping[str, Any], digest: str | None, content: str | None
    ) -> None:
        shape = self._shapes[2]
        if digest is None:
            self._wrong(number, "its audit row has no digest")
        elif digest_item(shape, entry, CHAIN_DIGEST, self._secret) != digest:
            self._wrong(number, "its audit row was altered")
        elif set(misplaced_index_keys(shape, entry)) & set(
            entry.get(shape.fields["undigested"].attribute, {}).get("SS", ())
        ):
            self._wrong(number, "its audit row has another place in an index than its fields say")
        version = self._version
        if (
            version is not None
            and digest_item(self._shapes[1], version, CHAIN_DIGEST, self._secret) != content
        ):
            self._wrong(number, "the version was altered")

    def add_stray(self, number: int, *, version: bool) -> None:
        """Report a row of the history that no change of the current record can have written."""
        what = "a version" if version else "an audit row"
        if number > self._last:
            self._wrong(number, f"there is {what} past the current record")
        else:
            self._wrong(number, f"there is {what} under a key of none")

    def check_current(self, item: Mapping[str, Any]) -> None:
        """Check the current record, after the last version."""
        shape = self._shapes[0]
        if self._version is not None:
            # Index keys are the current record's own, including those of a removed index.
            fields = shape.by_attribute.keys() | (
                self._version.keys() - _key_attributes(shape, self._shapes[1])
            )
            if differences(_plain(self._version, fields), _plain(item, fields)):
                self._wrong(self._last, "the current record is not its last version")
            elif misplaced_index_keys(shape, item):
                self._wrong(
                    self._last, "the current record has another place in an index than its fields say"
                )
        if self._chained and _text(shape, item, "chain_digest") != self._chain_digest:
            self._wrong(self._last, "the digest of the current record differs from the last audit row's")

    def result(self) -> Verification:
        return Verification(self._last, self._chained_from, self._chain_digest, tuple(self._problems))

    def _wrong(self, number: int, what: str) -> None:
        self._problems.append(HistoryProblem(number, what))


def misplaced_index_keys(shape: EntityShape, item: Mapping[str, Any]) -> list[str]:
    """Return the index key attributes that do not match an item's fields; none if the item is unreadable."""
    try:
        return stale_attributes(shape.entity, dict(item))
    except ItemUnreadable:
        return []


def _text(shape: EntityShape, item: Mapping[str, Any], field: str) -> str | None:
    text = item.get(shape.fields[field].attribute, {}).get("S")
    return None if text is None else str(text)


def _key_attributes(*shapes: EntityShape) -> set[str | None]:
    """Return the attributes that hold an item's key, type and schema version."""
    return {
        name
        for shape in shapes
        for name in (*shape.home.settings.key_names, shape.home.settings.tag, "_version")
    }


def _plain(item: Mapping[str, Any], names: Set[str | None]) -> dict[str, Any]:
    return {name: decode_plain(value) for name, value in item.items() if name in names}


@dataclass(frozen=True, slots=True)
class StoredDigest:
    """An item as it is stored now."""

    digest: str  # equals `stored_digest` of the written entity, if the item is unchanged
    misplaced_keys: tuple[str, ...]  # index key attributes that do not match its fields


class DigestReader(Recipe[D_co], Generic[D_co]):
    """Reads items as they are stored, to compare them with digests taken when they were written."""

    @recipe_method
    def read(self, keys: Sequence[PrimaryKey[Any]]) -> PatternProgram[list[StoredDigest | None]]:
        """Return the digests of the stored items with these keys, in order; None for a missing item."""
        items = yield from call_client(lambda db: db.run(get_stored(db.context, keys)))
        return [_describe_stored(key, item) for key, item in zip(keys, items, strict=True)]


def _describe_stored(key: PrimaryKey[Any], item: dict[str, Any] | None) -> StoredDigest | None:
    if item is None:
        return None
    shape = shape_of(type(key).__get_pattern__().owner)
    return StoredDigest(digest_item(shape, item, frozenset(), None), tuple(misplaced_index_keys(shape, item)))

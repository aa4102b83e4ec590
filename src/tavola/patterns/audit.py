"""Audit: one row per change with who, when, why and what; and a hash chain that reveals tampering.

A row lists the differences field by field, down into documents and lists. Chained rows each contain the seal of the row
before and the digest of the version they describe:

    row 1 ── seal₁ ──► row 2 (previous = seal₁, content = digest of version 2) ── seal₂ ──► row 3 …

So altering, removing or inserting a row breaks the chain from there on. With a secret the seals are HMACs, and nobody
without it can rebuild the chain. `Seals` checks single items against digests that are stored elsewhere. A digest covers all
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

from tavola.client.stored import get_stored, misplaced
from tavola.model import Attr, Entity, ItemUnreadable, PrimaryKey, Shape, attr, decode_plain, shape_of
from tavola.patterns.digests import digest_of
from tavola.patterns.recipe import D_co, PatternProgram, Recipe, call_client, recipe_method

VALUE_BYTES_MAX = 1024  # a longer value is not repeated in the audit row: the versions hold it
ROW_BYTES_MAX = 64 * 1024  # what the differences of a row may come to; past that they tell places alone

_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_FIELD = pattern(r"[.\[]")  # what ends a field's name in a path
_ABSENT: Any = object()

SEAL = frozenset({"seal"})  # what a seal cannot cover

ChangeKind = Literal["created", "changed", "restored"]


class Difference(BaseModel):
    """What is not the same in two versions at one place; values are as they are stored."""

    model_config = ConfigDict(frozen=True)

    path: str  # such as status, cost.monthly, findings[2].title
    kind: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None
    omitted: bool = False  # the values are too long to be repeated here; the versions hold them

    def __str__(self) -> str:
        if self.omitted:
            return f"{self.path} {self.kind}"
        if self.kind == "changed":
            return f"{self.path}: {self.before!r} → {self.after!r}"
        return f"{self.path} {self.kind}: {self.after if self.kind == 'added' else self.before!r}"


class AuditEntry(Entity, immutable=True):
    """One change of a record; subclass it with a table, the record's key fields, and a key of these and version."""

    version: Attr[int]  # that the change made
    kind: Attr[ChangeKind]
    actor: Attr[str]
    at: Attr[datetime]
    why: Attr[str] = attr(default="")
    restored: Attr[int | None] = attr(default=None)  # the version whose content came back
    differences: Attr[list[Difference]] = attr(default_factory=list)
    content: Attr[str | None] = attr(default=None)  # the digest of the version, where rows are chained
    unsealed: Attr[set[str]] = attr(default_factory=set)  # attributes of index keys, which may come and go
    previous: Attr[str | None] = attr(default=None)  # the seal of the row before
    sealed_by: Attr[str | None] = attr(default=None)  # which secret it was sealed with, where one was
    seal: Attr[str | None] = attr(default=None)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that differs from what was written."""

    version: int
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at a whole record found; true if nothing is wrong with it."""

    versions: int  # how many there have been
    chained_from: int | None  # the first version whose audit row is sealed
    seal: (
        str | None
    )  # of the last row; kept elsewhere, it shows later that even a whole chain was not replaced
    problems: tuple[Problem, ...]

    def __bool__(self) -> bool:
        return not self.problems


def secret_name(secret: bytes | None) -> str | None:
    """Return what tells one secret from another, and nothing else of it."""
    return (
        None if secret is None else hmac(secret, b"tavola.patterns: which secret", "sha256").hexdigest()[:12]
    )


def stored_digest(entity: Entity) -> str:
    """Return the digest of an entity as it will be stored; `Seals.look` finds the same of what stands in the table.

    A field that the entity gets later, and that old items do not have, changes nothing.
    """
    shape = shape_of(type(entity))
    return seal_of(shape, stored_values(shape, entity, frozenset()), None)


def stored_values(shape: Shape, entity: Entity, without: frozenset[str]) -> dict[str, Any]:
    """Return an entity's fields as they are stored, decoded to plain values; what is absent is left out."""
    values: dict[str, Any] = {}
    for name, field in shape.fields.items():
        value = entity.__dict__[name]
        if name not in without and value is not None:
            encoded = field.encode(value)
            if encoded:  # an empty set is absent
                values[name] = decode_plain(encoded)
    return values


def seal_of(shape: Shape, told: Mapping[str, Any], secret: bytes | None) -> str:
    """Return the digest of what will be stored of an entity, given what `stored_values` tells of it."""
    return digest_of({shape.fields[name].attribute: value for name, value in told.items()}, secret)


def seal_in(shape: Shape, item: Mapping[str, Any], without: frozenset[str], secret: bytes | None) -> str:
    """Return the same of an item as it stands, with whatever else is in it; its keys and tag are left out."""
    settings = shape.home.settings
    reserved = {*settings.key_names, settings.tag, "_version"} | index_keys(shape)
    if "unsealed" in shape.fields:
        reserved |= set(item.get(shape.fields["unsealed"].attribute, {}).get("SS", ()))
    reserved -= shape.by_attribute.keys()
    reserved |= {shape.fields[name].attribute for name in without}
    told = {name: decode_plain(value) for name, value in item.items() if name not in reserved}
    return digest_of(told, secret)


def index_keys(shape: Shape) -> set[str]:
    """Return the attributes that are written for an entity's indexes alone."""
    return {source.attribute for key in shape.keys for source in key.written}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return what is not the same, place by place, in the order of the names."""
    return tuple(_between("", before, after))


def _between(path: str, before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            yield from _between(_inside(path, name), before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        for at in range(max(len(before), len(after))):
            yield from _between(
                f"{path}[{at}]",
                before[at] if at < len(before) else _ABSENT,
                after[at] if at < len(after) else _ABSENT,
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


def shorten_differences(told: Sequence[Difference]) -> list[Difference]:
    """Return differences that fit into a row: without long values, then without values, then by field alone."""
    short = [_without_values(each) if _long(each) else each for each in told]
    if sum(map(_bytes, short)) > ROW_BYTES_MAX:
        short = [_without_values(each) for each in told]
    if sum(map(_bytes, short)) > ROW_BYTES_MAX:
        fields = dict.fromkeys(_FIELD.split(each.path, maxsplit=1)[0] for each in told)
        short = [Difference(path=name, kind="changed", omitted=True) for name in fields]
    return short


def _long(told: Difference) -> bool:
    return any(len(repr(value)) > VALUE_BYTES_MAX for value in (told.before, told.after))


def _without_values(told: Difference) -> Difference:
    return Difference(path=told.path, kind=told.kind, omitted=True)


def _bytes(told: Difference) -> int:
    """Return about how much a difference takes in an item."""
    return 64 + len(told.path) + len(repr(told.before)) + len(repr(told.after))


class Walk:
    """A walk along the versions of a record, from the first on, that notes what is not as it was written."""

    def __init__(
        self,
        shapes: tuple[Shape, Shape, Shape],
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
        self._version: Mapping[str, Any] | None = None  # the last one, as it stands
        self._seal: str | None = None  # of the row before
        self._chained_from: int | None = None
        self._problems: list[Problem] = []

    def one(self, number: int, version: Mapping[str, Any] | None, entry: Mapping[str, Any] | None) -> None:
        """Look at one version and its audit row, as items."""
        self._version = version
        if version is None and number >= self._kept_from:
            self._wrong(number, "the version is gone")
        if entry is None:
            self._wrong(number, "its audit row is gone")
        elif self._chained:
            self._link(number, entry)

    def _link(self, number: int, entry: Mapping[str, Any]) -> None:
        shape = self._shapes[2]
        seal, previous, content = (_text(shape, entry, name) for name in ("seal", "previous", "content"))
        if seal is None and self._chained_from is None:
            return  # it was written before rows were chained
        if self._chained_from is None:
            self._chained_from = number
        by = _text(shape, entry, "sealed_by")
        if by is not None and by != secret_name(self._secret):
            self._wrong(number, "its audit row was sealed with another secret than the one given here")
        else:
            self._check_seals(number, entry, seal, content)
        if previous != self._seal:
            self._wrong(number, "its audit row does not follow the one before")
        self._seal = seal

    def _check_seals(
        self, number: int, entry: Mapping[str, Any], seal: str | None, content: str | None
    ) -> None:
        shape = self._shapes[2]
        if seal is None:
            self._wrong(number, "its audit row has no seal")
        elif seal_in(shape, entry, SEAL, self._secret) != seal:
            self._wrong(number, "its audit row was altered")
        elif set(misplaced_index_keys(shape, entry)) & set(
            entry.get(shape.fields["unsealed"].attribute, {}).get("SS", ())
        ):
            self._wrong(number, "its audit row has another place in an index than its fields say")
        version = self._version
        if version is not None and seal_in(self._shapes[1], version, SEAL, self._secret) != content:
            self._wrong(number, "the version was altered")

    def astray(self, number: int, *, version: bool) -> None:
        """Note an item of the history that no change of the current record can have made."""
        what = "a version" if version else "an audit row"
        if number > self._last:
            self._wrong(number, f"there is {what} past the current record")
        else:
            self._wrong(number, f"there is {what} under a key of none")

    def current(self, item: Mapping[str, Any]) -> None:
        """Look at the current record, after the last version."""
        shape = self._shapes[0]
        if self._version is not None:
            # Its index keys are its own, also those of an index that is no more.
            fields = shape.by_attribute.keys() | (self._version.keys() - _places(shape, self._shapes[1]))
            if differences(_plain(self._version, fields), _plain(item, fields)):
                self._wrong(self._last, "the current record is not its last version")
            elif misplaced_index_keys(shape, item):
                self._wrong(
                    self._last, "the current record has another place in an index than its fields say"
                )
        if self._chained and _text(shape, item, "seal") != self._seal:
            self._wrong(self._last, "the current record has another seal than the last audit row")

    def over(self) -> Verification:
        """Return what was found."""
        return Verification(self._last, self._chained_from, self._seal, tuple(self._problems))

    def _wrong(self, number: int, what: str) -> None:
        self._problems.append(Problem(number, what))


def misplaced_index_keys(shape: Shape, item: Mapping[str, Any]) -> list[str]:
    """Return the attributes of index keys that are not what an item's fields say; none where it cannot be read."""
    try:
        return misplaced(shape.entity, dict(item))
    except ItemUnreadable:
        return []


def _text(shape: Shape, item: Mapping[str, Any], field: str) -> str | None:
    told = item.get(shape.fields[field].attribute, {}).get("S")
    return None if told is None else str(told)


def _places(*shapes: Shape) -> set[str | None]:
    """Return the attributes that say where and what an item is."""
    told = [shape.home.settings for shape in shapes]
    return {name for settings in told for name in (*settings.key_names, settings.tag, "_version")}


def _plain(item: Mapping[str, Any], names: Set[str | None]) -> dict[str, Any]:
    return {name: decode_plain(value) for name, value in item.items() if name in names}


@dataclass(frozen=True, slots=True)
class Seen:
    """An item as it is stored now."""

    digest: str  # equals `stored_digest` of the written entity, if the item is unchanged
    astray: tuple[str, ...]  # index key attributes that do not match its fields


class Seals(Recipe[D_co], Generic[D_co]):
    """Reads items as they are stored, to compare them with digests taken when they were written."""

    @recipe_method
    def look(self, keys: Sequence[PrimaryKey[Any]]) -> PatternProgram[list[Seen | None]]:
        """Return the stored items with these keys, in order; None where there is none."""
        items = yield from call_client(lambda db: db.run(get_stored(db.context, keys)))
        return [_describe_stored(key, item) for key, item in zip(keys, items, strict=True)]


def _describe_stored(key: PrimaryKey[Any], item: dict[str, Any] | None) -> Seen | None:
    if item is None:
        return None
    shape = shape_of(type(key).__compiled__().owner)
    return Seen(seal_in(shape, item, frozenset(), None), tuple(misplaced_index_keys(shape, item)))

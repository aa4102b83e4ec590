"""Binding: from an entity's declarations to its shape, refusing what cannot work.

Everything is checked that can be known without an item: that templates name fields, that what may be absent
feeds only sparse indexes, that what a pattern gives is in its index, that no two entities of a table can meet
on one key. Each refusal names the class, the part and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tavola.keys import BoundTemplate, Template, TemplateRefused, part_for
from tavola.model.access import WritePattern
from tavola.model.admission import admit, distinct_keys
from tavola.model.attributes import AttrOptions
from tavola.model.base import EntityBase
from tavola.model.converters import Converter, field_converter, placed
from tavola.model.errors import ModelError, ValueNotStorable
from tavola.model.part_types import check_part_types, word_of
from tavola.model.queries import Declared, PrimaryKey, Query
from tavola.model.shapes import SHARD, FieldShape, KeyShape, Pattern, Shape, Source, plain
from tavola.model.tables import Index, Table
from tavola.model.uniques import bind_uniques
from tavola.model.views import check_whole
from tavola.values import Value

_KEY_TAGS = frozenset({"S", "N", "B"})


def field_shapes(cls: type[EntityBase], table: type[Table] | None) -> dict[str, FieldShape]:
    """Return an entity's fields; the one that is the table's time to live is written as epoch seconds."""
    ttl = None if table is None else table.settings.ttl
    shapes: dict[str, FieldShape] = {}
    for name, info in cls.__dict__["__pydantic_fields__"].items():
        options = next((m for m in info.metadata if isinstance(m, AttrOptions)), AttrOptions())
        attribute = options.name or name
        place = f"{cls.__name__}.{name}"
        try:
            converter = field_converter(info)
        except ValueNotStorable as error:
            raise placed(error, place) from None
        if attribute == ttl:
            converter = _expiry_converter(place, converter)
        if (
            converter.nullable
            and not info.is_required()
            and (info.default_factory or info.default is not None)
        ):
            raise ModelError(
                place,
                "it may be None, which is stored as absence, and absence would read as its default; let the default "
                "be None, or leave None out of the type",
            )
        if options.lock and converter.key_kind != "int":
            raise ModelError(place, "lock=True is for an int, which counts the item's writes")
        if options.lock and (other := next((o.name for o in shapes.values() if o.lock), None)):
            raise ModelError(place, f"{other} is the lock already; an item has one")
        if options.lock and converter.nullable:
            raise ModelError(place, "lock=True counts the item's writes, and cannot be None; make it an int")
        if options.lock and info.is_required():
            raise ModelError(place, "lock=True needs default=0: an item that was never written")
        shapes[name] = FieldShape(
            name,
            attribute,
            info.annotation,
            converter,
            required=info.is_required(),
            lock=options.lock,
            unique=options.unique,
            within=options.within,
            default=None if info.is_required() or info.default_factory is not None else info.default,
        )
    attributes: dict[str, str] = {}
    for shape in shapes.values():
        if shape.attribute in attributes:
            other = attributes[shape.attribute]
            raise ModelError(
                f"{cls.__name__}.{shape.name}",
                f"{other} is stored as {shape.attribute!r} as well; give one of them another attr(name=…)",
            )
        attributes[shape.attribute] = shape.name
    return shapes


def _expiry_converter(place: str, converter: Converter) -> Converter:
    """Return how a time to live is written: whole epoch seconds, which is all that DynamoDB looks at."""
    if converter.tags == frozenset({"N"}):
        return converter
    if converter.key_kind != "datetime":
        raise ModelError(
            place, "it is the table's time to live; its type is datetime, or int for epoch seconds"
        )

    def encode(value: datetime) -> Value:
        if value.tzinfo is None:
            raise ValueNotStorable(place, f"{value!r} has no zone; give one, such as datetime.now(UTC)")
        return {"N": str(int(value.timestamp()))}

    def decode(value: Value) -> datetime:
        return datetime.fromtimestamp(int(value["N"]), UTC)

    return Converter(
        encode=encode,
        decode=decode,
        tags=frozenset({"N"}),
        nullable=converter.nullable,
        kind="expiry",
        word="datetime",
    )


def bind(
    cls: type[EntityBase],
    table: type[Table] | None,
    nested: Mapping[str, type],
    *,
    tag: str,
    version: int,
    upgrades: Mapping[int, Callable[..., Any]],
    policy: str,
    writes: tuple[WritePattern, ...],
    immutable: bool = False,
) -> Shape:
    """Return the shape of an entity, and make it known to its table."""
    fields = field_shapes(cls, table)
    shape = Shape(
        tag, cls, table, fields, None, {}, version, dict(upgrades), policy, writes, immutable=immutable
    )
    shape.by_attribute = {found.attribute: found for found in fields.values()}
    shape.absences = tuple(
        (found.name, found.absent)
        for found in fields.values()
        if found.absent is not None or (found.nullable and found.required)
    )
    shape.lock = next((found for found in fields.values() if found.lock), None)
    keys = [(name, found) for name, found in nested.items() if issubclass(found, PrimaryKey)]
    if len(keys) > 1:
        raise ModelError(cls.__name__, f"{keys[0][0]} and {keys[1][0]} are both a PrimaryKey; leave one out")
    if not keys:
        if nested:
            raise ModelError(
                cls.__name__, "it has patterns and no Key; declare class Key(PrimaryKey[…], pk=…)"
            )
        shape.table = None
        return shape
    assert table is not None
    binder = _Binder(cls, table, fields)
    name, key = keys[0]
    shape.key = key.__pattern__ = binder.primary(name, key.__declared__)
    for name, found in nested.items():
        if issubclass(found, Query):
            pattern = binder.query(name, found.__declared__, shape.key, key)
            shape.patterns[name] = found.__pattern__ = pattern
            if pattern.result == cls.__name__:
                check_whole(pattern, shape)
    shape.keys = distinct_keys(cls, shape.patterns)
    bind_uniques(shape)
    admit(shape)
    return shape


class _Binder:
    """Binds the keys and queries of one entity."""

    def __init__(self, cls: type[EntityBase], table: type[Table], fields: dict[str, FieldShape]) -> None:
        self.cls = cls
        self.table = table
        self.fields = fields

    def primary(self, name: str, declared: Declared) -> Pattern:
        place = f"{self.cls.__name__}.{name}"
        settings = self.table.settings
        pk, sk = declared.pk, declared.sk
        if isinstance(pk, tuple) or isinstance(sk, tuple):
            raise ModelError(
                place, "a table's key has one attribute for each template; give texts, not tuples"
            )
        self._check_types(place, declared)
        if declared.result != self.cls.__name__:
            raise ModelError(
                place,
                f'it is the key of {self.cls.__name__}, and says PrimaryKey["{declared.result}"]; write '
                f'PrimaryKey["{self.cls.__name__}"]',
            )
        if declared.sorts:
            raise ModelError(
                place,
                f"{', '.join(declared.sorts)} is a sort part, and a key is given whole; leave sort() out, and "
                "ask for a range with a Query(…, on=Key)",
            )
        if sk is not None and settings.range is None:
            raise ModelError(
                place, f"{self.table.__name__} has no sort key, so sk={sk!r} has no place; leave it out"
            )
        own = {found.attribute: found.name for found in self.fields.values()}
        word = self.cls.__name__.upper()
        if pk is None:
            native = own.get(settings.hash)
            rest = () if settings.range is None else (own.get(settings.range),)
            hashed = (native,) if native else tuple(n for n in declared.partition if n not in rest)
            pk = f"{{{native}}}" if native else self._joined(word, hashed)
        if sk is None and settings.range is not None:
            native = own.get(settings.range)
            used = self._parsed(place, pk).fields
            more = tuple(n for n in declared.partition if n not in used)
            sk = f"{{{native}}}" if native else self._joined(word, more)
        if declared.shards is not None and declared.shards.by != "hash":
            raise ModelError(
                place,
                f"a table's key is found again by its hash; shards by {declared.shards.by} suit an index",
            )
        hash_ = self._source(place, settings.hash, pk, sharded=declared.shards is not None)
        range_ = () if sk is None or settings.range is None else (self._source(place, settings.range, sk),)
        sources = (hash_, *range_)
        needed = tuple(dict.fromkeys(n for source in sources for n in source.fields if n != SHARD))
        self._check_parts(place, declared.partition, needed, "arguments")
        for told in needed:
            if self.fields[told].nullable:
                raise ModelError(place, f"{told} may be None, and a key is never absent; make it required")
        shards = declared.shards
        if shards is not None:
            self._check_fields(place, shards.of, "Shards(of=…)")
            beyond = [told for told in shards.of if told not in needed]
            if beyond:
                raise ModelError(
                    place,
                    f"Shards(of=…) names {beyond[0]}, which is no part of the key, so an item could not be found by "
                    "its key; name parts of the key, or leave of= out",
                )
        key = KeyShape(None, (hash_,), range_, False, (), shards, frozenset(needed), tuple(
            source for source in sources if source.field is None
        ))  # fmt: skip
        return Pattern(name, self.cls, key, declared.partition, (), declared.access, False, self.cls.__name__)

    def query(self, name: str, declared: Declared, primary: Pattern, own_key: type) -> Pattern:
        place = f"{self.cls.__name__}.{name}"
        on = declared.on
        self._check_types(place, declared)
        index = on if isinstance(on, Index) else None
        if on is None:
            raise ModelError(
                place, "which index is it on? Write on=Table.index, or on=Key for the table itself"
            )
        if index is None and not (isinstance(on, type) and issubclass(on, PrimaryKey | Table)):
            raise ModelError(
                place, f"on={on!r} is no index and no Key; write on={self.table.__name__}.index, or on=Key"
            )
        if index is not None and index.table is not self.table:
            owner = "no table" if index.table is None else index.table.__name__
            raise ModelError(
                place,
                f"{index.label} is of {owner}, and {self.cls.__name__} lives in {self.table.__name__}; take an index of its "
                "own table",
            )
        if index is None and on is not own_key and on is not self.table:
            raise ModelError(
                place,
                f"on={on.__qualname__.rpartition('<locals>.')[2]} is not of {self.cls.__name__}; write "
                f"on={own_key.__name__}",
            )
        if index is None:
            if declared.pk is not None or declared.sk is not None:
                raise ModelError(
                    place, "on the table itself the templates are the Key's; leave pk and sk out"
                )
            if declared.sparse or declared.members or declared.shards is not None:
                raise ModelError(
                    place,
                    "sparse=, members= and shards= are of an index, and it is on the table itself; leave them out, "
                    "or say shards= of the Key",
                )
            base = primary.key
            hash_, range_, shards = base.hash, base.range, base.shards
            members: tuple[Any, ...] = ()
            key = base
        else:
            hash_, range_ = self._index_sources(place, index, declared, primary)
            shards = declared.shards
            members = self._members(place, declared.members)
            key = self._index_key(place, index, hash_, range_, declared, members, primary)
        partition = tuple(dict.fromkeys(n for source in hash_ for n in source.fields if n != SHARD))
        if shards is not None and shards.by == "time":
            asked = tuple(n for n in partition if n not in declared.sorts)
        else:
            asked = partition
        sorts = tuple(dict.fromkeys(n for source in range_ for n in source.fields if n not in asked))
        for told in declared.partition:
            if told in sorts:
                raise ModelError(
                    place, f"{told} is part of the sort key, and no argument; write {told}: Sort[…] = sort()"
                )
        self._check_parts(place, declared.partition, asked, "arguments")
        if declared.sorts != sorts[: len(declared.sorts)]:
            self._check_parts(place, declared.sorts, sorts, "sort parts")
            raise ModelError(place, f"declare its sort parts in the order of the key: {', '.join(sorts)}")
        if declared.hydrate and (index is None or index.projection == "ALL"):
            raise ModelError(place, "hydrate=True has nothing to fetch: everything is there; leave it out")
        if declared.hydrate and declared.result != self.cls.__name__:
            raise ModelError(
                place,
                f"hydrate=True fetches whole items, and it gives {declared.result}; write "
                f'Query["{self.cls.__name__}"], or leave hydrate out',
            )
        pattern = Pattern(
            name, self.cls, key, declared.partition, sorts, declared.access, declared.hydrate, declared.result
        )
        return pattern

    def _index_sources(
        self, place: str, index: Index, declared: Declared, primary: Pattern
    ) -> tuple[tuple[Source, ...], tuple[Source, ...]]:
        hash_texts = self._texts(place, index.hash, declared.pk, declared.partition, "pk", index, primary)
        word = self.cls.__name__.upper()
        range_texts = self._texts(place, index.range, declared.sk, declared.sorts, "sk", index, primary, word)
        sharded = declared.shards is not None
        if sharded and len(index.hash) > 1:
            raise ModelError(
                place,
                f"{index.label} is keyed by the item's own attributes, which no shard can be added to; leave shards "
                "out, or take an index with one pk and a template",
            )
        hash_ = tuple(
            self._source(place, attribute, text, sharded=sharded, shards=declared.shards, primary=primary)
            for attribute, text in zip(index.hash, hash_texts, strict=True)
        )
        range_ = tuple(
            self._source(place, attribute, text, primary=primary)
            for attribute, text in zip(index.range, range_texts, strict=True)
        )
        return hash_, range_

    def _texts(
        self,
        place: str,
        attributes: tuple[str, ...],
        told: str | tuple[str, ...] | None,
        parts: tuple[str, ...],
        word: str,
        index: Index,
        primary: Pattern,
        prefix: str = "",
    ) -> tuple[str | None, ...]:
        """Return the template of each key attribute; None: it is the table key's own."""
        own = {found.attribute: found.name for found in self.fields.values()}
        base = {source.attribute for source in primary.key.sources}
        if isinstance(told, tuple):
            if len(told) != len(attributes):
                raise ModelError(
                    place,
                    f"{word}={told!r} names {len(told)} fields, and {index.label} has {len(attributes)} there "
                    f"({', '.join(attributes)}); name one for each, or give a template for one",
                )
            return tuple(text if "{" in text else f"{{{text}}}" for text in told)
        if told is not None:
            if not attributes:
                raise ModelError(
                    place, f"{index.label} has no sort key, so sk={told!r} has no place; leave it out"
                )
            if attributes[0] in base:
                raise ModelError(
                    place,
                    f"{index.label} is keyed by {attributes[0]!r}, which the table's key writes already; leave "
                    f"{word} out",
                )
            if len(attributes) != 1:
                raise ModelError(
                    place,
                    f"{index.label}'s {word} is of {len(attributes)} attributes ({', '.join(attributes)}), not of "
                    f"a template; leave {word} out, or give a tuple of their names",
                )
            return (told,)
        if not attributes:
            return ()
        if len(attributes) > 1 or all(attribute in own or attribute in base for attribute in attributes):
            for attribute in attributes:
                if attribute not in own and attribute not in base:
                    raise ModelError(
                        place,
                        f"{index.label} is keyed by {attribute!r}, and {self.cls.__name__} has no such attribute; add a field of "
                        f"this name, or say {word}= with what shall be written there",
                    )
            return tuple(None if attribute in base else f"{{{own[attribute]}}}" for attribute in attributes)
        if not parts and word == "pk":
            raise ModelError(place, "it needs a pk: a template, or arguments to make one of")
        if word == "pk":
            delimiter = self.table.settings.delimiter
            return (delimiter.join(f"{part.upper()}{delimiter}{{{part}}}" for part in parts),)
        return (self._joined(prefix, parts),)

    def _index_key(
        self,
        place: str,
        index: Index,
        hash_: tuple[Source, ...],
        range_: tuple[Source, ...],
        declared: Declared,
        members: tuple[tuple[str, tuple[Any, ...]], ...],
        primary: Pattern,
    ) -> KeyShape:
        shards = declared.shards
        names = [n for source in (*hash_, *range_) for n in source.fields if n != SHARD]
        if shards is not None:
            self._check_fields(place, shards.of, "Shards(of=…)")
            names += shards.of
        fields = frozenset(names) | {name for name, _ in members}
        if not declared.sparse:
            for told in sorted(set(names)):
                if self.fields[told].nullable:
                    raise ModelError(
                        place,
                        f"{told} may be None, and then the item is in no index; say so with sparse=True",
                    )
        if members and all(source.field is not None for source in (*hash_, *range_)):
            raise ModelError(
                place,
                "members= works on keys that Tavola writes, and this index is keyed by the item's own attributes, so "
                "it holds every item that has them; leave members out, or take an index with templates",
            )
        base = {source.attribute for source in primary.key.sources}
        written = tuple(s for s in (*hash_, *range_) if s.field is None and s.attribute not in base)
        return KeyShape(index, hash_, range_, declared.sparse, members, shards, fields, written)

    def _joined(self, word: str, names: tuple[str, ...]) -> str:
        """Return a template of a word and the fields after it."""
        return self.table.settings.delimiter.join([word, *(f"{{{name}}}" for name in names)])

    def _parsed(self, place: str, text: str) -> Template:
        try:
            return Template.parse(text, self.table.settings.delimiter)
        except TemplateRefused as error:
            raise ModelError(place, str(error)) from error

    def _check_types(self, place: str, declared: Declared) -> None:
        check_part_types(place, self.cls, self.fields, declared.types, declared.scope, declared.sorts)

    def _members(self, place: str, told: Mapping[str, Any]) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        self._check_fields(place, tuple(told), "members=")
        members = []
        for name, allowed in told.items():
            values = allowed if isinstance(allowed, tuple | list | set | frozenset) else (allowed,)
            for value in values:
                if value is not None and not self.fields[name].takes(value):
                    raise ModelError(
                        place,
                        f"members= wants {name} to be {value!r}, which is no {word_of(self.fields[name].annotation)}, so "
                        "no item would be in the index; give a value that it can have",
                    )
            members.append((name, tuple(map(plain, values))))
        return tuple(members)

    def _source(
        self,
        place: str,
        attribute: str,
        text: str | None,
        *,
        sharded: bool = False,
        shards: Any = None,
        primary: Pattern | None = None,
    ) -> Source:
        if text is None:
            assert primary is not None
            return next(source for source in primary.key.sources if source.attribute == attribute)
        own = self.fields.get(text[1:-1]) if text.startswith("{") and text.endswith("}") else None
        if own is not None and own.attribute == attribute and not sharded:
            if len(own.converter.tags) != 1 or not own.converter.tags <= _KEY_TAGS:
                raise ModelError(
                    place,
                    f"{own.name} is stored as {' or '.join(sorted(own.converter.tags))}, and a key is one of text (S), "
                    "number (N) and binary (B); give the field such a type",
                )
            return Source(attribute, (own.name,), next(iter(own.converter.tags)), own, None)
        taken = next((found for found in self.fields.values() if found.attribute == attribute), None)
        if taken is not None:
            raise ModelError(
                place,
                f"the key attribute {attribute!r} would be written by {text!r} and by the field {taken.name}; "
                f'make the template "{{{taken.name}}}", or rename one of them',
            )
        if sharded:
            time = shards is not None and shards.by == "time"
            text += self.table.settings.delimiter + (
                f"{{{shards.of[0]}:{shards.bucket}}}" if time else f"{{{SHARD}:04}}"
            )
        template = self._template(place, text, sharded)
        return Source(attribute, template.fields, "S", None, template)

    def _template(self, place: str, text: str, sharded: bool) -> BoundTemplate:
        try:
            parsed = Template.parse(text, self.table.settings.delimiter)
            parts = {SHARD: part_for("int")} if sharded else {}
            for name in parsed.fields:
                if name in parts:
                    continue
                found = self.fields.get(name)
                if found is None:
                    known = ", ".join(sorted(self.fields))
                    raise ModelError(
                        place,
                        f"{text!r} names {name!r}, and {self.cls.__name__} has no such field; it has {known}",
                    )
                if found.converter.key_kind is None:
                    raise ModelError(
                        place,
                        f"{name} is {word_of(found.annotation)}, which cannot be part of a key's text; text, int, "
                        "Decimal, datetime, date, bool, enums and UUIDs can",
                    )
                parts[name] = part_for(found.converter.key_kind, choices=found.converter.choices)
            return parsed.bind(parts)
        except TemplateRefused as error:
            raise ModelError(place, str(error)) from error

    def _check_parts(self, place: str, declared: tuple[str, ...], needed: tuple[str, ...], word: str) -> None:
        absent = [name for name in needed if name not in declared]
        if absent:
            raise ModelError(
                place, f"its key is made of {', '.join(absent)} too; declare it among the {word}"
            )
        beyond = [name for name in declared if name not in needed]
        if beyond:
            raise ModelError(
                place,
                f"{beyond[0]} is among its {word}, and no template has it there; leave it out, or put it into the "
                "template",
            )

    def _check_fields(self, place: str, names: tuple[str, ...], word: str) -> None:
        for name in names:
            if name not in self.fields:
                raise ModelError(
                    place,
                    f"{word} names {name!r}, and {self.cls.__name__} has no such field; it has "
                    f"{', '.join(self.fields)}",
                )

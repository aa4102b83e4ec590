"""Binding of keys: an entity's primary key and queries, from their classes to shapes.

A `KeyBinder` does what both have in common: it finds where each key attribute comes from, a template or a field, and refuses a
template that names fields which a key's text cannot hold, arguments that are not those of the templates, and an attribute with
two writers.

- A primary key (`bind_primary`) is never absent and identifies its item, so each of its fields has a value and is in it whole.
- A query (`bind_query`) reads the table or an index by its key there. Fields that may be absent are only in keys of sparse indexes,
  and the arguments of a query are the fields of its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.keys import BoundTemplate, Template, TemplateRefused, part_for
from tavola.model.errors import ModelError
from tavola.model.part_types import check_part_types, word_of
from tavola.model.queries import KeyDeclaration, PrimaryKey
from tavola.model.shapes import SHARD, EntityBase, FieldShape, KeyShape, KeySource, Pattern, enum_value
from tavola.model.tables import KEY_TAGS, Index, Shards, Table

Members = tuple[tuple[str, tuple[Any, ...]], ...]


class KeyBinder:
    """Binds one key or query class of an entity; `place` is how its refusals name it."""

    def __init__(
        self, cls: type[EntityBase], table: type[Table], fields: dict[str, FieldShape], name: str
    ) -> None:
        self.cls = cls
        self.table = table
        self.fields = fields
        self.name = name
        self.place = f"{cls.__name__}.{name}"
        self.own = {field.attribute: field.name for field in fields.values()}

    def refusal(self, problem: str) -> ModelError:
        """Return the error for the class that is being bound."""
        return ModelError(self.place, problem)

    def source(
        self, attribute: str, text: str, *, shards: Shards | None = None, sharded: bool = False
    ) -> KeySource:
        """Return where a key attribute comes from: the field of its name, or a template."""
        own = self.fields.get(text[1:-1]) if text.startswith("{") and text.endswith("}") else None
        if own is not None and own.attribute == attribute and not sharded:
            if len(own.converter.tags) != 1 or not own.converter.tags <= KEY_TAGS:
                raise self.refusal(
                    f"{own.name} is stored as {' or '.join(sorted(own.converter.tags))}, but a key is a string (S), "
                    "number (N) or binary (B); use one of these types"
                )
            return KeySource(attribute, (own.name,), next(iter(own.converter.tags)), own, None)
        taken = self.own.get(attribute)
        if taken is not None:
            raise self.refusal(
                f"the key attribute {attribute!r} would be written by {text!r} and by the field {taken}; "
                f'make the template "{{{taken}}}", or rename one of them'
            )
        if sharded:
            time = shards is not None and shards.by == "time"
            text += self.table.settings.delimiter + (
                f"{{{shards.of[0]}:{shards.bucket}}}" if time and shards else f"{{{SHARD}:04}}"
            )
        template = self._template(text, sharded)
        return KeySource(attribute, template.fields, "S", None, template)

    def _template(self, text: str, sharded: bool) -> BoundTemplate:
        parsed = self.parse_template(text)
        parts = {SHARD: part_for("int")} if sharded else {}
        try:
            for name in parsed.fields:
                if name in parts:
                    continue
                field = self.fields.get(name)
                if field is None:
                    known = ", ".join(sorted(self.fields))
                    raise self.refusal(
                        f"{text!r} names {name!r}, and {self.cls.__name__} has no such field; it has {known}"
                    )
                if field.converter.key_kind is None:
                    raise self.refusal(
                        f"{name} is {word_of(field.annotation)}, which cannot be part of a key's text; text, int, "
                        "Decimal, datetime, date, bool, enums and UUIDs can"
                    )
                parts[name] = part_for(field.converter.key_kind, choices=field.converter.choices)
            return parsed.bind(parts)
        except TemplateRefused as error:
            raise self.refusal(str(error)) from error

    def parse_template(self, text: str) -> Template:
        """Return a template's structure."""
        try:
            return Template.parse(text, self.table.settings.delimiter)
        except TemplateRefused as error:
            raise self.refusal(str(error)) from error

    def template_of_fields(self, names: tuple[str, ...]) -> str:
        """Return a template of the entity's name and the fields after it."""
        word = self.cls.__name__.upper()
        return self.table.settings.delimiter.join([word, *(f"{{{name}}}" for name in names)])

    def check_types(self, declared: KeyDeclaration) -> None:
        """Refuse parts whose type differs from their field's."""
        check_part_types(self.place, self.cls, self.fields, declared.types, declared.scope, declared.sorts)

    def check_parts(self, declared: tuple[str, ...], needed: tuple[str, ...], word: str) -> None:
        """Refuse parts that are not those of the templates."""
        absent = [name for name in needed if name not in declared]
        if absent:
            raise self.refusal(f"the key also depends on {', '.join(absent)}; declare it among the {word}")
        beyond = [name for name in declared if name not in needed]
        if beyond:
            raise self.refusal(
                f"{beyond[0]} is among its {word}, but not in that template; remove it, or add it to the "
                "template"
            )

    def check_fields(self, names: tuple[str, ...], word: str) -> None:
        """Refuse names that are not fields."""
        for name in names:
            if name not in self.fields:
                raise self.refusal(
                    f"{word} names {name!r}, and {self.cls.__name__} has no such field; it has "
                    f"{', '.join(self.fields)}"
                )


def bind_primary(binder: KeyBinder, declared: KeyDeclaration) -> Pattern:
    """Return the key of an entity in its table; refuse what cannot be one."""
    cls, settings = binder.cls, binder.table.settings
    binder.check_types(declared)
    if declared.result != cls.__name__:
        raise binder.refusal(
            f'this is the key of {cls.__name__}, but declares PrimaryKey["{declared.result}"]; write '
            f'PrimaryKey["{cls.__name__}"]'
        )
    if declared.sorts:
        raise binder.refusal(
            f"{', '.join(declared.sorts)} is a sort part, but a primary key has only arguments; remove sort() and "
            "use a Query(…, on=Key) for ranges"
        )
    pk, sk = _texts(binder, declared)
    hash_ = binder.source(settings.hash, pk, sharded=declared.shards is not None)
    range_ = () if sk is None or settings.range is None else (binder.source(settings.range, sk),)
    sources = (hash_, *range_)
    needed = tuple(dict.fromkeys(n for source in sources for n in source.fields if n != SHARD))
    binder.check_parts(declared.partition, needed, "arguments")
    for name in needed:
        if binder.fields[name].nullable:
            raise binder.refusal(f"{name} may be None, but a primary key is always present; make it required")
    _check_whole(binder, sources)
    if declared.shards is not None:
        _check_shards(binder, declared.shards, needed)
    if declared.access is not None:
        declared.access.check(binder.place)
    written = tuple(source for source in sources if source.field is None)
    key = KeyShape(None, (hash_,), range_, False, (), declared.shards, frozenset(needed), written)
    return Pattern(binder.name, cls, key, declared.partition, (), declared.access, False, cls.__name__)


def _texts(binder: KeyBinder, declared: KeyDeclaration) -> tuple[str, str | None]:
    """Return the templates of the key's two attributes; missing ones are derived from fields or argument names."""
    settings = binder.table.settings
    pk, sk = declared.pk, declared.sk
    if isinstance(pk, tuple) or isinstance(sk, tuple):
        raise binder.refusal("a primary key has one attribute per template; use strings, not tuples")
    if sk is not None and settings.range is None:
        raise binder.refusal(f"{binder.table.__name__} has no sort key; remove sk={sk!r}")
    if pk is None:
        native = binder.own.get(settings.hash)
        rest = () if settings.range is None else (binder.own.get(settings.range),)
        pk = (
            f"{{{native}}}"
            if native
            else binder.template_of_fields(tuple(n for n in declared.partition if n not in rest))
        )
    if sk is None and settings.range is not None:
        native = binder.own.get(settings.range)
        used = binder.parse_template(pk).fields
        sk = (
            f"{{{native}}}"
            if native
            else binder.template_of_fields(tuple(n for n in declared.partition if n not in used))
        )
    return pk, sk


def _check_whole(binder: KeyBinder, sources: tuple[KeySource, ...]) -> None:
    """Refuse a field that the key contains only in part: items that differ in the rest would have the same key."""
    cut = [source.template.lossy_fields for source in sources if source.template is not None]
    for name in sorted(frozenset().union(*cut)):
        is_stored_whole = any(
            name in source.fields and (source.template is None or name not in source.template.lossy_fields)
            for source in sources
        )
        if not is_stored_whole:
            raise binder.refusal(
                f"the key contains only part of {name}, so items that differ in the rest would have the "
                f"same key and overwrite each other; add the full {{{name}}} to the key, or store the part "
                "in its own field"
            )


def _check_shards(binder: KeyBinder, shards: Shards, needed: tuple[str, ...]) -> None:
    if shards.by != "hash":
        raise binder.refusal(
            f"a primary key needs shards by hash, so that items can be found; shards by {shards.by} "
            "are for indexes"
        )
    if shards.reading is not None:
        raise binder.refusal(
            "reading= is for an index whose number of shards changes. A primary key cannot change, "
            "so items written with the old number would not be found; remove it, and copy the items "
            "to change the number"
        )
    binder.check_fields(shards.of, "Shards(of=…)")
    beyond = [name for name in shards.of if name not in needed]
    if beyond:
        raise binder.refusal(
            f"Shards(of=…) names {beyond[0]}, which is not part of the key, so an item could not be "
            "found by its key; name parts of the key, or remove of="
        )


def bind_query(binder: KeyBinder, declared: KeyDeclaration, primary: Pattern, own_key: type) -> Pattern:
    """Return the pattern of a query class; refuse a query that its table or index cannot answer."""
    binder.check_types(declared)
    index = _index_of(binder, declared, own_key)
    if index is None:
        _check_on_table(binder, declared)
        key = primary.key
    else:
        key = _index_key(binder, index, declared, primary)
    arguments = tuple(dict.fromkeys(n for source in key.hash for n in source.fields if n != SHARD))
    if key.shards is not None and key.shards.by == "time":
        arguments = tuple(n for n in arguments if n not in declared.sorts)
    sorts = tuple(dict.fromkeys(n for source in key.range for n in source.fields if n not in arguments))
    _check_asked(binder, declared, arguments, sorts)
    _check_given(binder, declared, index)
    return Pattern(
        binder.name, binder.cls, key, declared.partition, sorts, declared.access, declared.hydrate, declared.result,
    )  # fmt: skip


def _index_of(binder: KeyBinder, declared: KeyDeclaration, own_key: type) -> Index | None:
    """Return the index that a query is on, None for the table itself."""
    on, table = declared.on, binder.table.__name__
    if on is None:
        raise binder.refusal("the index is missing; write on=Table.index, or on=Key for the table itself")
    if isinstance(on, Index):
        if on.table is not binder.table:
            owner = "no table" if on.table is None else on.table.__name__
            raise binder.refusal(
                f"{on.label} belongs to {owner}, but {binder.cls.__name__} is in {table}; use an index of that "
                "table"
            )
        return on
    if not (isinstance(on, type) and issubclass(on, PrimaryKey | Table)):
        raise binder.refusal(f"on={on!r} is neither an index nor a Key; write on={table}.index, or on=Key")
    if on is not own_key and on is not binder.table:
        raise binder.refusal(
            f"on={on.__qualname__.rpartition('<locals>.')[2]} does not belong to {binder.cls.__name__}; write "
            f"on={own_key.__name__}"
        )
    return None


def _check_on_table(binder: KeyBinder, declared: KeyDeclaration) -> None:
    if declared.pk is not None or declared.sk is not None:
        raise binder.refusal("a query on the table itself uses the templates of Key; remove pk and sk")
    if declared.sparse or declared.members or declared.shards is not None:
        raise binder.refusal(
            "sparse=, members= and shards= apply to an index, but this query is on the table itself; "
            "remove them, or set shards= on Key"
        )


def _check_asked(
    binder: KeyBinder, declared: KeyDeclaration, arguments: tuple[str, ...], sorts: tuple[str, ...]
) -> None:
    for name in declared.partition:
        if name in sorts:
            raise binder.refusal(
                f"{name} is part of the sort key, not an argument; write {name}: Sort[…] = sort()"
            )
    binder.check_parts(declared.partition, arguments, "arguments")
    if declared.sorts != sorts[: len(declared.sorts)]:
        binder.check_parts(declared.sorts, sorts, "sort parts")
        raise binder.refusal(f"declare the sort parts in the order of the key: {', '.join(sorts)}")


def _check_given(binder: KeyBinder, declared: KeyDeclaration, index: Index | None) -> None:
    """Refuse options that do not fit the index: needless `hydrate`, consistent reads of a global index, an unprojected TTL."""
    cls = binder.cls.__name__
    if declared.access is not None:
        declared.access.check(binder.place)
    if declared.hydrate and (index is None or index.projection == "ALL"):
        raise binder.refusal("hydrate=True is not needed: the index projects all attributes; remove it")
    if declared.hydrate and declared.result != cls:
        raise binder.refusal(
            f"hydrate=True fetches full items, but the query returns {declared.result}; write "
            f'Query["{cls}"], or remove hydrate'
        )
    if index is None:
        return
    if declared.access is not None and declared.access.consistent and not index.local:
        raise binder.refusal(
            f"{index.label} is a global index, which does not support consistent reads; remove consistent=True from its "
            "access pattern, or query the table or a local index"
        )
    ttl = binder.table.settings.ttl
    if ttl in binder.own and not declared.hydrate and not index.holds(ttl):
        raise binder.refusal(
            f"{index.label} does not project {ttl!r}, the time to live, so expired items would be returned; project it, "
            f'or fetch full items: Query["{cls}"] with hydrate=True'
        )


def _index_key(binder: KeyBinder, index: Index, declared: KeyDeclaration, primary: Pattern) -> KeyShape:
    hash_, range_ = _sources(binder, index, declared, primary)
    members = _members(binder, declared.members)
    shards = declared.shards
    names = [n for source in (*hash_, *range_) for n in source.fields if n != SHARD]
    if shards is not None:
        binder.check_fields(shards.of, "Shards(of=…)")
        names += shards.of
    if not declared.sparse:
        for name in sorted(set(names)):
            if binder.fields[name].nullable:
                raise binder.refusal(
                    f"{name} may be None, and such an item is not in the index; declare sparse=True"
                )
    if members and all(source.field is not None for source in (*hash_, *range_)):
        raise binder.refusal(
            "members= needs index keys that Tavola writes, but this index is keyed by the item's own "
            "attributes and contains every item that has them; remove members, or use an index with "
            "templates"
        )
    fields = frozenset(names) | {name for name, _ in members}
    base = {source.attribute for source in primary.key.sources}
    written = tuple(s for s in (*hash_, *range_) if s.field is None and s.attribute not in base)
    return KeyShape(index, hash_, range_, declared.sparse, members, shards, fields, written)


def _sources(
    binder: KeyBinder, index: Index, declared: KeyDeclaration, primary: Pattern
) -> tuple[tuple[KeySource, ...], tuple[KeySource, ...]]:
    """Return the sources of an index's partition and sort attributes."""
    base = {source.attribute: source for source in primary.key.sources}
    halves = (
        ("pk", index.hash, declared.pk, declared.partition),
        ("sk", index.range, declared.sk, declared.sorts),
    )
    texts = [_templates(binder, index, base, *half) for half in halves]
    sharded = declared.shards is not None
    if sharded and len(index.hash) > 1:
        raise binder.refusal(
            f"{index.label} is keyed by the item's own attributes, to which a shard cannot be added; remove "
            "shards, or use an index with one pk and a template"
        )
    hash_ = tuple(
        base[attribute]
        if text is None
        else binder.source(attribute, text, shards=declared.shards, sharded=sharded)
        for attribute, text in zip(index.hash, texts[0], strict=True)
    )
    range_ = tuple(
        base[attribute] if text is None else binder.source(attribute, text)
        for attribute, text in zip(index.range, texts[1], strict=True)
    )
    return hash_, range_


def _templates(
    binder: KeyBinder,
    index: Index,
    base: Mapping[str, KeySource],
    word: str,
    attributes: tuple[str, ...],
    declared: str | tuple[str, ...] | None,
    parts: tuple[str, ...],
) -> tuple[str | None, ...]:
    """Return the template of each attribute of one half; None: it is the table key's own."""
    if declared is not None:
        return _declared_templates(binder, index, base, word, attributes, declared)
    if not attributes:
        return ()
    own = binder.own
    if len(attributes) > 1 or all(attribute in own or attribute in base for attribute in attributes):
        for attribute in attributes:
            if attribute not in own and attribute not in base:
                raise binder.refusal(
                    f"{index.label} is keyed by {attribute!r}, but {binder.cls.__name__} has no such attribute; add a field with "
                    f"this name, or set {word}= to the fields to use"
                )
        return tuple(None if attribute in base else f"{{{own[attribute]}}}" for attribute in attributes)
    if word == "sk":
        return (binder.template_of_fields(parts),)
    if not parts:
        raise binder.refusal("pk is missing: add a template, or arguments to build one from")
    delimiter = binder.table.settings.delimiter
    return (delimiter.join(f"{part.upper()}{delimiter}{{{part}}}" for part in parts),)


def _declared_templates(
    binder: KeyBinder,
    index: Index,
    base: Mapping[str, KeySource],
    word: str,
    attributes: tuple[str, ...],
    declared: str | tuple[str, ...],
) -> tuple[str | None, ...]:
    """Return the templates that a query declares for one half of the key, one for each attribute."""
    if isinstance(declared, tuple):
        if len(declared) != len(attributes):
            raise binder.refusal(
                f"{word}={declared!r} names {len(declared)} fields, and {index.label} has {len(attributes)} there "
                f"({', '.join(attributes)}); name one field per attribute, or use a template for one"
            )
        return tuple(text if "{" in text else f"{{{text}}}" for text in declared)
    if not attributes:
        raise binder.refusal(f"{index.label} has no sort key; remove sk={declared!r}")
    if attributes[0] in base:
        raise binder.refusal(
            f"{index.label} is keyed by {attributes[0]!r}, which the table's key already writes; remove "
            f"{word}"
        )
    if len(attributes) != 1:
        raise binder.refusal(
            f"{index.label}'s {word} consists of {len(attributes)} attributes ({', '.join(attributes)}), not of "
            f"a template; remove {word}, or use a tuple of field names"
        )
    return (declared,)


def _members(binder: KeyBinder, declared: Mapping[str, Any]) -> Members:
    binder.check_fields(tuple(declared), "members=")
    members = []
    for name, allowed in declared.items():
        field = binder.fields[name]
        values = allowed if isinstance(allowed, tuple | list | set | frozenset) else (allowed,)
        for value in values:
            if value is not None and not field.accepts(value):
                raise binder.refusal(
                    f"members= requires {name} to be {value!r}, which is not a valid "
                    f"{word_of(field.annotation)}, so no item would be in the index; use a value that the "
                    "field can have"
                )
        members.append((name, tuple(map(enum_value, values))))
    return tuple(members)

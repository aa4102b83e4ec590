"""Short builders for designs, so that a case says what it is about and nothing else.

    BY_STATUS = gsi("by_status", "GSI1PK", "GSI1SK")
    FOUND = design(
        table(
            entity(
                "Ticket", text("ticket_id"), choice("status", "NEW", "DONE"), moment("created_at"),
                pk="TICKET#{ticket_id}",
                keys=[key(BY_STATUS, "STATUS#{status}", "{created_at}")],
                patterns=[query("ByStatus", BY_STATUS, "status", "created_at", per_second=10)],
                writes=[put(per_second=5), update("status", per_second=2)],
            ),
            indexes=[BY_STATUS],
        )
    )

A table is called Shop, its key is pk and sk; an entity without a sort key template gets `META`. A key's text without
braces that is a field's name is that field itself, so that `pk="ticket_id"` is a table keyed by its own attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from tavola.keys import Template
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Membership,
    Need,
    PatternDesign,
    Shards,
    SourceDesign,
    TableDesign,
    TableSettings,
    WritePattern,
)

T = TypeVar("T")

_ACCESS = {name for name in AccessPattern.__dataclass_fields__ if name != "title"}


def text(name: str, **more: Any) -> FieldDesign:
    """A field of text."""
    return _field(name, "text", "S", "text", more)


def number(name: str, **more: Any) -> FieldDesign:
    """A field of whole numbers."""
    return _field(name, "int", "N", "int", more)


def decimal(name: str, **more: Any) -> FieldDesign:
    """A field of decimal numbers."""
    return _field(name, "decimal", "N", "decimal", more)


def bare_number(name: str, **more: Any) -> FieldDesign:
    """A number as a foreign design writes it into its keys: as text, as it stands."""
    return _field(name, "int", "N", "text", more)


def moment(name: str, **more: Any) -> FieldDesign:
    """A field of times."""
    return _field(name, "datetime", "S", "datetime", more)


def date(name: str, **more: Any) -> FieldDesign:
    """A field of dates."""
    return _field(name, "date", "S", "date", more)


def choice(name: str, *choices: str, **more: Any) -> FieldDesign:
    """A field with few values."""
    return _field(name, "enum", "S", "text", {"choices": choices, **more})


def listed(name: str, **more: Any) -> FieldDesign:
    """A field of lists of text."""
    return _field(name, "list[text]", "L", None, more)


def gsi(name: str, pk: str | Sequence[str], sk: str | Sequence[str] = (), **more: Any) -> IndexDesign:
    """A global index; several attributes of a key are given as a list."""
    return _index(name, pk, sk, local=False, more=more)


def lsi(name: str, sk: str, **more: Any) -> IndexDesign:
    """A local index of a table whose partition key is pk."""
    return _index(name, more.pop("pk", "pk"), sk, local=True, more=more)


def key(
    index: IndexDesign, pk: str | Sequence[str] = (), sk: str | Sequence[str] = (), **more: Any
) -> KeyDesign:
    """An entity's key in an index: templates, or of a native index nothing; `members={"status": ["NEW"]}`, `shards=4`."""
    hash_ = _many(pk) or index.hash
    range_ = _many(sk) or (index.range if not _many(pk) else ())
    return KeyDesign(
        index.name,
        tuple(_unresolved_source(name, template) for name, template in zip(index.hash, hash_, strict=True)),
        tuple(
            _unresolved_source(name, template) for name, template in zip(index.range, range_, strict=False)
        ),
        sparse=more.get("sparse", False),
        members=tuple(
            Membership(name, tuple(None if value is None else {"S": value} for value in values))
            for name, values in more.get("members", {}).items()
        ),
        shards=_shards(more.get("shards")),
    )


def query(
    name: str,
    index: IndexDesign | None,
    partition: str | Sequence[str] = (),
    sorts: str | Sequence[str] = (),
    **more: Any,
) -> PatternDesign:
    """A query class on an index, or with None on the table; rates, sizes and `reads` are its access pattern's."""
    return PatternDesign(
        name,
        None if index is None else index.name,
        _many(partition),
        _many(sorts),
        more.get("result", ""),
        more.get("hydrate", False),
        access(name, **{word: value for word, value in more.items() if word in _ACCESS}),
    )


def access(title: str, **more: Any) -> AccessPattern:
    """How often and of how much."""
    return AccessPattern(title, **more)


def put(title: str = "put it", **more: Any) -> WritePattern:
    """A write of whole items."""
    return WritePattern(title, "put", **more)


def update(*changes: str, title: str = "change it", **more: Any) -> WritePattern:
    """A write that changes some fields."""
    return WritePattern(title, "update", changes, **more)


def delete(title: str = "delete it", **more: Any) -> WritePattern:
    """A write that removes items."""
    return WritePattern(title, "delete", **more)


def entity(
    name: str,
    *fields: FieldDesign,
    pk: str,
    sk: str | None = "META",
    keys: Sequence[KeyDesign] = (),
    patterns: Sequence[PatternDesign] = (),
    writes: Sequence[WritePattern] = (),
    shards: int | Shards | None = None,
    **more: Any,
) -> EntityDesign:
    """An entity whose own key is made of these templates; attributes are given when its table is made.

    Its primary pattern is called Key; its further arguments are `primary={"per_second": …}`.
    """
    hash_ = (_unresolved_source("pk", pk),)
    range_ = () if sk is None else (_unresolved_source("sk", sk),)
    own = KeyDesign(None, hash_, range_, shards=_shards(shards))
    made = EntityDesign(name, name.lower(), fields, own, tuple(keys), writes=tuple(writes))
    made = _resolve_sources(made, {})
    assert made.key is not None, "it was given one above"
    key_fields = [
        tuple(each for source in part for each in source.fields) for part in (made.key.hash, made.key.range)
    ]
    primary = query("Key", None, *key_fields, result=name, **more.pop("primary", {}))
    results = tuple(_with_result(pattern, name) for pattern in patterns)
    return _replace(made, primary=primary, patterns=results, **more)


def view(name: str, *fields: FieldDesign) -> EntityDesign:
    """What a pattern gives of an entity."""
    return EntityDesign(name, name.lower(), fields)


def collection(name: str, partition: str, *members: str, **more: Any) -> CollectionDesign:
    """Several entities in one query."""
    template = Template.parse(partition)
    estimates = {word: more.pop(word) for word in list(more) if word in _ACCESS}
    return CollectionDesign(
        name,
        more.pop("index", None),
        template,
        more.pop("prefix", ""),
        template.fields,
        tuple(MemberDesign(member.lower(), member, many=True) for member in members),
        access(name, **estimates),
    )


def table(
    *entities: EntityDesign,
    label: str = "Shop",
    name: str | None = None,
    indexes: Sequence[IndexDesign] = (),
    collections: Sequence[CollectionDesign] = (),
    consumers: Sequence[Any] = (),
    pk: str = "pk",
    sk: str | None = "sk",
    foreign: bool = False,
    **settings: Any,
) -> TableDesign:
    """A table; further words are its settings. `pk` and `sk` are the attributes of its key."""
    defaults: dict[str, Any] = {
        "name": name or label.lower(), "hash": pk, "range": sk, "ttl": None, "tag": "_entity", "delimiter": "#", "stream": None,
        "recovery": True, "recovery_days": 35, "encryption": None, "table_class": "STANDARD", "deletion_protection": True,
        "read_units": None, "write_units": None,
    }  # fmt: skip
    names = {"pk": pk} | ({} if sk is None else {"sk": sk})
    made = tuple(_resolve_sources(found, names) for found in entities)
    types: dict[str, Any] = {
        source.attribute: source.tag
        for found in made
        for each in (found.key, *found.keys)
        if each is not None
        for source in each.sources
    }
    for attribute in (pk, *([sk] if sk else []), *(each for index in indexes for each in index.attributes)):
        types.setdefault(attribute, "S")
    return TableDesign(
        label,
        TableSettings(**{**defaults, **settings}),
        types,
        tuple(indexes),
        made,
        tuple(collections),
        consumers=tuple(consumers),
        foreign=foreign,
    )


def design(*tables: TableDesign, needs: Sequence[Need] = (), **more: Any) -> Design:
    """A whole design; `views`, `policies` and `ignores` besides."""
    return Design(
        tables,
        tuple(more.get("views", ())),
        tuple(needs),
        tuple(more.get("policies", ())),
        tuple(more.get("ignores", ())),
    )


def _field(name: str, word: str, tag: str, kind: str | None, more: dict[str, Any]) -> FieldDesign:
    members = {
        "attribute": name,
        "type": word,
        "tags": (tag,),
        "key_kind": kind,
        "required": not more.get("nullable"),
        **more,
    }
    return FieldDesign(name, **members)


def _index(
    name: str, pk: str | Sequence[str], sk: str | Sequence[str], *, local: bool, more: dict[str, Any]
) -> IndexDesign:
    native = not (isinstance(pk, str) and isinstance(sk, str | tuple) and (isinstance(sk, str) or not sk))
    return IndexDesign(name, name, local, _many(pk), _many(sk), more.get("projection", "ALL"), native)


def _many(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _unresolved_source(attribute: str, template: str) -> SourceDesign:
    """Return a key source whose fields and type `_resolve_sources` sets, once the entity's fields are known."""
    return SourceDesign(attribute, "S", template=Template.parse(template))


def _shards(shards: int | Shards | None) -> Shards | None:
    return Shards(shards) if isinstance(shards, int) else shards


def _with_result(pattern: PatternDesign, entity_name: str) -> PatternDesign:
    return pattern if pattern.result else _replace(pattern, result=entity_name)


def _resolve_sources(entity_: EntityDesign, names: dict[str, str]) -> EntityDesign:
    """Return an entity whose key sources name their fields, and whose own key uses the table's attributes."""

    def resolve(unresolved: SourceDesign) -> SourceDesign:
        attribute = names.get(unresolved.attribute, unresolved.attribute)
        by_name = {field.name: field for field in entity_.fields}
        plain = None if unresolved.template is None else by_name.get(unresolved.template.source)
        if plain is not None:
            return SourceDesign(plain.attribute if names else attribute, _tag(plain), field=plain.name)
        return _replace(unresolved, attribute=attribute)

    def resolve_key(unresolved: KeyDesign) -> KeyDesign:
        return _replace(
            unresolved, hash=tuple(map(resolve, unresolved.hash)), range=tuple(map(resolve, unresolved.range))
        )

    assert entity_.key is not None, "an entity of a table has a key"
    return _replace(entity_, key=resolve_key(entity_.key), keys=tuple(map(resolve_key, entity_.keys)))


def _tag(field: FieldDesign) -> Any:
    return field.tags[0]


def _replace(value: T, **changes: Any) -> T:
    return cast(T, replace(cast(Any, value), **changes))

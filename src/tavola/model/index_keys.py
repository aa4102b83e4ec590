"""Index keys: what an entity's query asks, bound from its class, with the entity's key in the index it is on.

What may be absent feeds only sparse indexes; what a query is asked with is what its key is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.model.key_sources import KeyBinder
from tavola.model.part_types import word_of
from tavola.model.queries import KeyDeclaration, PrimaryKey
from tavola.model.shapes import SHARD, KeyShape, KeySource, Pattern, enum_value
from tavola.model.tables import Index, Table

Members = tuple[tuple[str, tuple[Any, ...]], ...]


def bind_query(binder: KeyBinder, declared: KeyDeclaration, primary: Pattern, own_key: type) -> Pattern:
    """Return what a query class asks; refuse what its table or index cannot answer."""
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
        raise binder.refusal("which index is it on? Write on=Table.index, or on=Key for the table itself")
    if isinstance(on, Index):
        if on.table is not binder.table:
            owner = "no table" if on.table is None else on.table.__name__
            raise binder.refusal(
                f"{on.label} is of {owner}, and {binder.cls.__name__} lives in {table}; take an index of its "
                "own table"
            )
        return on
    if not (isinstance(on, type) and issubclass(on, PrimaryKey | Table)):
        raise binder.refusal(f"on={on!r} is no index and no Key; write on={table}.index, or on=Key")
    if on is not own_key and on is not binder.table:
        raise binder.refusal(
            f"on={on.__qualname__.rpartition('<locals>.')[2]} is not of {binder.cls.__name__}; write "
            f"on={own_key.__name__}"
        )
    return None


def _check_on_table(binder: KeyBinder, declared: KeyDeclaration) -> None:
    if declared.pk is not None or declared.sk is not None:
        raise binder.refusal("on the table itself the templates are the Key's; leave pk and sk out")
    if declared.sparse or declared.members or declared.shards is not None:
        raise binder.refusal(
            "sparse=, members= and shards= are of an index, and it is on the table itself; leave them out, "
            "or say shards= of the Key"
        )


def _check_asked(
    binder: KeyBinder, declared: KeyDeclaration, arguments: tuple[str, ...], sorts: tuple[str, ...]
) -> None:
    for name in declared.partition:
        if name in sorts:
            raise binder.refusal(
                f"{name} is part of the sort key, and no argument; write {name}: Sort[…] = sort()"
            )
    binder.check_parts(declared.partition, arguments, "arguments")
    if declared.sorts != sorts[: len(declared.sorts)]:
        binder.check_parts(declared.sorts, sorts, "sort parts")
        raise binder.refusal(f"declare its sort parts in the order of the key: {', '.join(sorts)}")


def _check_given(binder: KeyBinder, declared: KeyDeclaration, index: Index | None) -> None:
    """Refuse what the index cannot give: whole items that need no fetching, a strong read, items that are over."""
    cls = binder.cls.__name__
    if declared.access is not None:
        declared.access.check(binder.place)
    if declared.hydrate and (index is None or index.projection == "ALL"):
        raise binder.refusal("hydrate=True has nothing to fetch: everything is there; leave it out")
    if declared.hydrate and declared.result != cls:
        raise binder.refusal(
            f"hydrate=True fetches whole items, and it gives {declared.result}; write "
            f'Query["{cls}"], or leave hydrate out'
        )
    if index is None:
        return
    if declared.access is not None and declared.access.consistent and not index.local:
        raise binder.refusal(
            f"{index.label} is a global index, which is never read consistently; leave consistent=True out of its "
            "access pattern, or ask the table or a local index"
        )
    ttl = binder.table.settings.ttl
    if ttl in binder.own and not declared.hydrate and not index.holds(ttl):
        raise binder.refusal(
            f"{index.label} does not hold {ttl!r}, the time to live, so items would be given that are over; project it "
            f'there, or give whole items: Query["{cls}"] with hydrate=True'
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
        for told in sorted(set(names)):
            if binder.fields[told].nullable:
                raise binder.refusal(
                    f"{told} may be None, and then the item is in no index; say so with sparse=True"
                )
    if members and all(source.field is not None for source in (*hash_, *range_)):
        raise binder.refusal(
            "members= works on keys that Tavola writes, and this index is keyed by the item's own attributes, so "
            "it holds every item that has them; leave members out, or take an index with templates"
        )
    fields = frozenset(names) | {name for name, _ in members}
    base = {source.attribute for source in primary.key.sources}
    written = tuple(s for s in (*hash_, *range_) if s.field is None and s.attribute not in base)
    return KeyShape(index, hash_, range_, declared.sparse, members, shards, fields, written)


def _sources(
    binder: KeyBinder, index: Index, declared: KeyDeclaration, primary: Pattern
) -> tuple[tuple[KeySource, ...], tuple[KeySource, ...]]:
    """Return where the two halves of an index's key come from."""
    base = {source.attribute: source for source in primary.key.sources}
    halves = (
        ("pk", index.hash, declared.pk, declared.partition),
        ("sk", index.range, declared.sk, declared.sorts),
    )
    texts = [_templates(binder, index, base, *half) for half in halves]
    sharded = declared.shards is not None
    if sharded and len(index.hash) > 1:
        raise binder.refusal(
            f"{index.label} is keyed by the item's own attributes, which no shard can be added to; leave shards "
            "out, or take an index with one pk and a template"
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
                    f"{index.label} is keyed by {attribute!r}, and {binder.cls.__name__} has no such attribute; add a field of "
                    f"this name, or say {word}= with what shall be written there"
                )
        return tuple(None if attribute in base else f"{{{own[attribute]}}}" for attribute in attributes)
    if word == "sk":
        return (binder.template_of_fields(parts),)
    if not parts:
        raise binder.refusal("it needs a pk: a template, or arguments to make one of")
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
    """Return the templates that a query gives for one half, one for each attribute there."""
    if isinstance(declared, tuple):
        if len(declared) != len(attributes):
            raise binder.refusal(
                f"{word}={declared!r} names {len(declared)} fields, and {index.label} has {len(attributes)} there "
                f"({', '.join(attributes)}); name one for each, or give a template for one"
            )
        return tuple(text if "{" in text else f"{{{text}}}" for text in declared)
    if not attributes:
        raise binder.refusal(f"{index.label} has no sort key, so sk={declared!r} has no place; leave it out")
    if attributes[0] in base:
        raise binder.refusal(
            f"{index.label} is keyed by {attributes[0]!r}, which the table's key writes already; leave "
            f"{word} out"
        )
    if len(attributes) != 1:
        raise binder.refusal(
            f"{index.label}'s {word} is of {len(attributes)} attributes ({', '.join(attributes)}), not of "
            f"a template; leave {word} out, or give a tuple of their names"
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
                    f"members= wants {name} to be {value!r}, which is no {word_of(field.annotation)}, so "
                    "no item would be in the index; give a value that it can have"
                )
        members.append((name, tuple(map(enum_value, values))))
    return tuple(members)

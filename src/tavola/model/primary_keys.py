"""Primary keys: an entity's key in its table, bound from its class.

A key is never absent and tells its item from every other, so each field in it has a value and stands in it whole.
"""

from __future__ import annotations

from tavola.model.key_sources import KeyBinder
from tavola.model.queries import KeyDeclaration
from tavola.model.shapes import SHARD, KeyShape, KeySource, Pattern
from tavola.model.tables import Shards


def bind_primary(binder: KeyBinder, declared: KeyDeclaration) -> Pattern:
    """Return the key of an entity in its table; refuse what cannot be one."""
    cls, settings = binder.cls, binder.table.settings
    binder.check_types(declared)
    if declared.result != cls.__name__:
        raise binder.refusal(
            f'it is the key of {cls.__name__}, and says PrimaryKey["{declared.result}"]; write '
            f'PrimaryKey["{cls.__name__}"]'
        )
    if declared.sorts:
        raise binder.refusal(
            f"{', '.join(declared.sorts)} is a sort part, and a key is given whole; leave sort() out, and "
            "ask for a range with a Query(…, on=Key)"
        )
    pk, sk = _texts(binder, declared)
    hash_ = binder.source(settings.hash, pk, sharded=declared.shards is not None)
    range_ = () if sk is None or settings.range is None else (binder.source(settings.range, sk),)
    sources = (hash_, *range_)
    needed = tuple(dict.fromkeys(n for source in sources for n in source.fields if n != SHARD))
    binder.check_parts(declared.partition, needed, "arguments")
    for name in needed:
        if binder.fields[name].nullable:
            raise binder.refusal(f"{name} may be None, and a key is never absent; make it required")
    _check_whole(binder, sources)
    if declared.shards is not None:
        _check_shards(binder, declared.shards, needed)
    if declared.access is not None:
        declared.access.check(binder.place)
    written = tuple(source for source in sources if source.field is None)
    key = KeyShape(None, (hash_,), range_, False, (), declared.shards, frozenset(needed), written)
    return Pattern(binder.name, cls, key, declared.partition, (), declared.access, False, cls.__name__)


def _texts(binder: KeyBinder, declared: KeyDeclaration) -> tuple[str, str | None]:
    """Return the templates of the key's two attributes, those left out made of fields or of the arguments' names."""
    settings = binder.table.settings
    pk, sk = declared.pk, declared.sk
    if isinstance(pk, tuple) or isinstance(sk, tuple):
        raise binder.refusal("a table's key has one attribute for each template; give texts, not tuples")
    if sk is not None and settings.range is None:
        raise binder.refusal(
            f"{binder.table.__name__} has no sort key, so sk={sk!r} has no place; leave it out"
        )
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
    """Refuse a field of which the key tells only a part: items that differ in the rest would be one."""
    cut = [source.template.lossy_fields for source in sources if source.template is not None]
    for name in sorted(frozenset().union(*cut)):
        whole = any(
            name in source.fields and (source.template is None or name not in source.template.lossy_fields)
            for source in sources
        )
        if not whole:
            raise binder.refusal(
                f"it tells only a part of {name}, so items that differ in the rest would have one key, and overwrite "
                f"each other; put {{{name}}} whole into the key too, or give the part a field of its own"
            )


def _check_shards(binder: KeyBinder, shards: Shards, needed: tuple[str, ...]) -> None:
    if shards.by != "hash":
        raise binder.refusal(f"a table's key is found again by its hash; shards by {shards.by} suit an index")
    if shards.reading is not None:
        raise binder.refusal(
            "reading= is for an index whose shards change in number: a table's key cannot move, so items under the "
            "old number would neither be got nor replaced; leave it out, and copy the items to change the number"
        )
    binder.check_fields(shards.of, "Shards(of=…)")
    beyond = [name for name in shards.of if name not in needed]
    if beyond:
        raise binder.refusal(
            f"Shards(of=…) names {beyond[0]}, which is no part of the key, so an item could not be found by "
            "its key; name parts of the key, or leave of= out"
        )

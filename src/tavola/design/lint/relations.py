"""Link items: items that connect two things, and the direction in which they can be found."""

from __future__ import annotations

from tavola.design.access_paths import key_parts
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, Need


def linked_fields(entity: EntityDesign) -> tuple[str, str] | None:
    """Return the two fields that an entity links, the partition's first; None if it is no link.

    `USER#{follower}` with `FOLLOWS#{followed}` is a link: both fields identify things, neither is a time or a number.
    """
    if entity.key is None:
        return None
    over, under = key_parts(entity.key.hash), key_parts(entity.key.range)
    if len(over) != 1 or len(under) != 1 or over[0].field == under[0].field:
        return None
    pair = over[0].field, under[0].field
    plain = all(
        field.key_kind in ("text", "uuid") and field.tags == ("S",) and field.choices is None
        for field in map(entity.field, pair)
    )
    return pair if plain else None


def is_reverse_lookup(context: LintContext, need: Need) -> bool:
    """Return whether a need looks for links by their second field, which no key has first."""
    home = context.entities_by_name.get(need.entities[0])
    pair = None if home is None else linked_fields(home[1])
    return pair is not None and pair[1] in need.equal_fields and pair[0] not in need.equal_fields

"""Former guards: those that a stored item may have, whatever its unique fields were when it was written.

An item of this schema tells its guards by its fields. One of an older schema may have claimed its values under another
name or as another type, and one that somebody else wrote may hold what its field cannot. Then every key is given under
which the value could have been claimed. To release one that is not there does no harm, and one of another's is not released.
What is found under none of them (a field that was renamed and stored under a name of its own) `verify_keys` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import product
from typing import Any

from tavola.client.marshalling import VERSION, plain_values, version_of
from tavola.client.uniques import Guard, guard_of, guards_of
from tavola.keys import BoundTemplate, KeyPartRefused, Part, Template, part_for
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.model import UNIQUE_ATTRIBUTE, ItemUnreadable, Shape, Unique
from tavola.values import Item

LEFTOVERS_MAX = 8  # attributes without a field that are tried as what a unique field was called


def former_guards(shape: Shape, item: Item | None, primary: Item) -> dict[str, Guard]:
    """Return the guards that a stored item may have, by their keys; None has none."""
    if item is None or not shape.uniques or UNIQUE_ATTRIBUTE in item:
        return {}
    outdated = version_of(shape, item) != shape.version
    guards: dict[str, Guard] = {}
    try:
        guards = guards_of(shape, item, primary)
    except (ItemUnreadable, KeyPartRefused):
        pass  # what is stored does not fit the fields
    else:
        if not outdated:
            return guards
    values = plain_values(shape, item)
    names: list[str] = []
    if outdated:
        names = sorted(values.keys() - shape.fields.keys() - _own(shape))[:LEFTOVERS_MAX]
    for unique in shape.uniques:
        for name in (unique.field, *names):
            for text in _texts(unique, name, values):
                if text not in guards:
                    guards[text] = guard_of(shape, name, values[name], text, item, primary)
    return guards


def _own(shape: Shape) -> set[str | None]:
    """Return the attributes that are no fields of anybody's: keys, the tag and the version."""
    table = shape.home
    keys = {name for index in table.indexes for name in index.attributes}
    return {*table.settings.key_names, table.settings.tag, VERSION, *keys}


def _texts(unique: Unique, name: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Give the keys under which a value could have been claimed, by each kind that it could have been of."""
    forms = [list(_forms(values.get(each))) for each in (*unique.within, name)]
    for chosen in product(*forms):
        told: dict[str, Any] = {"entity": unique.entity, "unique": name}
        told |= {f"part{number}": value for number, (_, value) in enumerate(chosen)}
        template = _template(
            unique.template.source, unique.template.delimiter, tuple(kind for kind, _ in chosen)
        )
        try:
            text = template.render(told)
        except KeyPartRefused:
            continue
        if len(text.encode()) <= RANGE_KEY_BYTES_MAX:
            yield text
        else:
            yield unique.long.render({**told, "digest": sha256(text.encode()).hexdigest()})


def _forms(value: Any) -> Iterator[tuple[str, Any]]:
    """Give the kinds of key part that a plain value could have been, with the value as each has it."""
    if isinstance(value, bool):
        yield "bool", value
    elif isinstance(value, int | Decimal):
        if value == int(value):
            yield "int", int(value)
        yield "decimal", Decimal(value)
    elif isinstance(value, str):
        yield "text", value
        for kind, read in (("datetime", datetime.fromisoformat), ("date", date.fromisoformat)):
            try:
                yield kind, read(value)
            except ValueError:
                continue


@lru_cache(maxsize=256)
def _template(source: str, delimiter: str, kinds: tuple[str, ...]) -> BoundTemplate:
    """Return the template of guards' keys with parts of other kinds."""
    parts: dict[str, Part] = {"entity": part_for("text"), "unique": part_for("text")}
    parts |= {f"part{number}": part_for(kind) for number, kind in enumerate(kinds)}
    return Template.parse(source, delimiter).bind(parts)

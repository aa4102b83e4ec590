"""Comparing: conditions that a key decides only roughly, decided once more on the items that came back.

A template may drop digits, and a sort key takes one condition where a need has two: some items then come that nobody asked
for. They were read and are paid for, and are not in the answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, TableDesign
from tavola.studio.asking.entering import read_of, value_of
from tavola.studio.asking.questions import Question, Stretch
from tavola.studio.problems import Refused
from tavola.studio.types import Item

_COMPARED: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "between": lambda value, low, high: bool(low <= value <= high),
    "begins_with": lambda value, start: str(value).startswith(str(start)),
}


def meets(value: Any, stretch: Stretch) -> bool:
    """Tell whether a value of a field lies in a stretch of it."""
    operands = (comparable(stretch.field, operand) for operand in stretch.operands)
    return bool(_COMPARED[stretch.operator](value, *operands))


def comparable(field: FieldDesign, operand: Any) -> Any:
    """Return an operand as it compares: a number that a key has as text is a number again."""
    return value_of(field, operand) if isinstance(operand, str) else operand


def narrowest(stretches: Sequence[Stretch]) -> tuple[Stretch, tuple[Stretch, ...]]:
    """Return the one stretch that a key can be asked with for several of a field, and those that it does not decide alone."""
    if len(stretches) == 1:
        return stretches[0], ()
    starts = [each for each in stretches if each.operator == "begins_with"]
    if starts:
        return starts[0], tuple(stretches)
    field = stretches[0].field

    def place(operand: Any) -> Any:
        return comparable(field, operand)

    lows = [each.operands[0] for each in stretches if each.operator in (">", ">=", "between")]
    highs = [each.operands[-1] for each in stretches if each.operator in ("<", "<=", "between")]
    if lows and highs:
        asked = Stretch(field, "between", (max(lows, key=place), min(highs, key=place)))
    elif lows:
        asked = Stretch(field, ">=", (max(lows, key=place),))
    else:
        asked = Stretch(field, "<=", (min(highs, key=place),))
    return asked, tuple(stretches)


def comparer(
    entity: EntityDesign, key: KeyDesign, asked: Sequence[Question], rough: Collection[str]
) -> Callable[[Item], bool] | None:
    """Return what decides on an item whether it was asked for; None where its key has decided."""
    checks = [_checks(each, rough) for each in asked]
    if not any(checks):
        return None

    def accepts(item: Item) -> bool:
        return any(all(_met(entity, key, check, item) for check in each) for each in checks)

    return accepts


def check_told(table: TableDesign, key: KeyDesign, entity: EntityDesign, rough: Collection[str]) -> None:
    """Refuse to compare what neither an index's key nor its entries tell: the answer would have items nobody asked for."""
    index = None if key.index is None else table.index(key.index)
    if index is None or index.projection == "ALL":
        return
    held = {*table.settings.key_names, *index.attributes}
    held |= set() if index.projection == "KEYS_ONLY" else set(index.projection)
    absent = sorted(name for name in rough if entity.field(name).attribute not in held)
    if absent:
        raise Refused(
            "parameter-rough",
            f"{', '.join(absent)} cannot be compared on {index.name}",
            f"The key of {index.name} has {', '.join(absent)} without its last digits, and its entries do not have it either.",
            "Ask with a value that the key tells whole, or project the field.",
        )


def _checks(asked: Question, rough: Collection[str]) -> tuple[Stretch, ...]:
    fixed = [
        Stretch(asked.entity.field(name), "=", (asked.fixed[name],)) for name in rough if name in asked.fixed
    ]
    stretch = asked.stretch
    ranges = [stretch] if stretch is not None and stretch.field.name in rough else []
    return (*fixed, *ranges, *asked.held)


def _met(entity: EntityDesign, key: KeyDesign, check: Stretch, item: Item) -> bool:
    value = _value(entity, key, check.field, item)
    return value is None or meets(value, check)  # what is fetched first is compared when it is there


def _value(entity: EntityDesign, key: KeyDesign, field: FieldDesign, item: Item) -> Any:
    """Return a field's value in an item, or in an index entry that has it in its key alone."""
    stored = item.get(field.attribute)
    if stored is not None:
        return read_of(field, stored)
    for source in key.sources:
        bound, text = entity.bound(source), item.get(source.attribute, {}).get("S")
        if bound is not None and text is not None and field.name not in bound.lossy_fields:
            told = (bound.read(text) or {}).get(field.name)
            if told is not None:
                return told
    return None

"""Stretches: the ranges of a need, with values to ask for, and what they hold of; from the need's own words."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.model.converters import converter_for
from tavola.model.document import EntityDesign, Need
from tests.design.solver.items import TYPES, Row, value_of

_TEMPLATE = {
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "between": "between",
    "begins_with": "begins_with",
}
NATIVE = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "between": "BETWEEN", "begins_with": "begins_with"}
STRETCHES = frozenset(_TEMPLATE)
COMPARED: dict[str, Callable[..., bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "between": lambda value, low, high: bool(low <= value <= high),
    "begins_with": lambda value, start: str(value).startswith(start),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a field's values that a need asks for: as a query says it."""

    field: str
    operator: str  # as templates call it
    operands: tuple[Any, ...]


def operands_of(need: Need, rows: list[Row], entity: EntityDesign) -> dict[str, tuple[Any, ...]]:
    """Return what each range of a need is compared with: its own value, or one from the middle of what there is."""
    told: dict[str, tuple[Any, ...]] = {}
    for given in need.where:
        if given.operator not in STRETCHES:
            continue
        field = entity.field(given.field)
        if given.value is not None:
            values = given.value["L"] if given.operator == "between" else [given.value]
            found = tuple(converter_for(TYPES[field.key_kind or field.type]).decode(each) for each in values)
        else:
            there = sorted(row.values[given.field] for row in rows if row.values[given.field] is not None)
            there = there or [value_of(field, step)[0] for step in range(4)]
            low, high = there[len(there) // 3], there[2 * len(there) // 3]
            found = {
                "<": (high,), "<=": (high,), ">": (low,), ">=": (low,), "between": (low, high),
                "begins_with": (str(low)[:-1],),
            }[given.operator]  # fmt: skip
        told[f"{given.field} {given.operator}"] = found
    return told


def stretch_of(need: Need, name: str | None, operands: Mapping[str, tuple[Any, ...]]) -> Stretch | None:
    """Return the range of a need as one query asks for it: both ends of a field are one stretch."""
    told = [given for given in need.where if given.field == name and given.operator in STRETCHES]
    if name is None or not told:
        return None
    if len(told) == 1:
        word = told[0].operator
        return Stretch(name, _TEMPLATE[word], operands[f"{name} {word}"])
    ends = sorted(operands[f"{name} {given.operator}"][0] for given in told)
    return Stretch(name, "between", tuple(ends))


def ended(need: Need) -> bool:
    """Tell whether a need leaves out an end that a query between two values has in."""
    fields = [given.field for given in need.where if given.operator in STRETCHES]
    return len(fields) > len(set(fields))


def within(row: Row, stretch: Stretch) -> bool:
    value = row.values[stretch.field]
    word = next(word for word, name in _TEMPLATE.items() if name == stretch.operator)
    return value is not None and COMPARED[word](value, *stretch.operands)

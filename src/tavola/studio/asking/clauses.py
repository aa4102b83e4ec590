"""Clauses: the conditions of a request, as DynamoDB takes them and as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tavola.studio.types import AttributeValue

_TEXT_MAX = 120


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of an attribute."""

    attribute: str
    operator: str  # = < <= > >= BETWEEN begins_with IN contains exists
    operands: tuple[AttributeValue, ...] = ()

    def __str__(self) -> str:
        return _spelled(self, self.attribute, [shown(operand) for operand in self.operands])


def expressed(key: Sequence[Clause], filters: Sequence[Clause]) -> dict[str, Any]:
    """Return the members of a request that say these conditions."""
    names: dict[str, str] = {}
    values: dict[str, AttributeValue] = {}
    body: dict[str, Any] = {}
    for member, clauses in (("KeyConditionExpression", key), ("FilterExpression", filters)):
        told = []
        for clause in clauses:
            name = next((held for held, of in names.items() if of == clause.attribute), f"#{len(names)}")
            names[name] = clause.attribute
            operands = []
            for operand in clause.operands:
                operands.append(f":{len(values)}")
                values[operands[-1]] = operand
            told.append(_spelled(clause, name, operands))
        if told:
            body[member] = " AND ".join(told)
    if names:
        body["ExpressionAttributeNames"] = names
    if values:
        body["ExpressionAttributeValues"] = values
    return body


def told(clauses: Sequence[Clause]) -> str:
    """Return conditions as a person reads them."""
    return " AND ".join(map(str, clauses))


def shown(value: AttributeValue) -> str:
    """Return a value as a condition shows it, cut short."""
    [(tag, held)] = value.items()
    text = str(held)
    # What ends a range of texts is the last character there is, which no font has.
    text = text.replace("\U0010ffff", "…")
    text = text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
    return text if tag == "N" else f'"{text}"'


def _spelled(clause: Clause, name: str, operands: Sequence[str]) -> str:
    match clause.operator:
        case "BETWEEN":
            return f"{name} BETWEEN {operands[0]} AND {operands[1]}"
        case "begins_with" | "contains":
            return f"{clause.operator}({name}, {operands[0]})"
        case "IN":
            return f"{name} IN ({', '.join(operands)})"
        case "exists":
            return f"attribute_exists({name})"
        case _:
            return f"{name} {clause.operator} {operands[0]}"

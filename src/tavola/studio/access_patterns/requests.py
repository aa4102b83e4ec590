"""The values entered for a pattern, key conditions, and the requests they become."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign
from tavola.studio.access_patterns.input_values import parse_value, to_attribute
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue, Item

_TEXT_MAX = 120


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison of an attribute."""

    attribute: str
    operator: str  # = < <= > >= BETWEEN begins_with IN contains exists
    operands: tuple[AttributeValue, ...] = ()

    def __str__(self) -> str:
        return _render_clause(self, self.attribute, [format_operand(operand) for operand in self.operands])


def render_conditions(key: Sequence[Clause], filters: Sequence[Clause]) -> dict[str, Any]:
    """Return the request parameters for key conditions and filters."""
    names: dict[str, str] = {}
    values: dict[str, AttributeValue] = {}
    body: dict[str, Any] = {}
    for member, clauses in (("KeyConditionExpression", key), ("FilterExpression", filters)):
        rendered = []
        for clause in clauses:
            name = next(
                (attribute for attribute, of in names.items() if of == clause.attribute), f"#{len(names)}"
            )
            names[name] = clause.attribute
            operands = []
            for operand in clause.operands:
                operands.append(f":{len(values)}")
                values[operands[-1]] = operand
            rendered.append(_render_clause(clause, name, operands))
        if rendered:
            body[member] = " AND ".join(rendered)
    if names:
        body["ExpressionAttributeNames"] = names
    if values:
        body["ExpressionAttributeValues"] = values
    return body


def describe_clauses(clauses: Sequence[Clause]) -> str:
    """Return conditions as text."""
    return " AND ".join(map(str, clauses))


def format_operand(value: AttributeValue) -> str:
    """Return a value as text, truncated."""
    [(tag, content)] = value.items()
    text = str(content)
    # The upper end of a text range is the last Unicode character, which no font has.
    text = text.replace("\U0010ffff", "…")
    text = text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
    return text if tag == "N" else f'"{text}"'


def _render_clause(clause: Clause, name: str, operands: Sequence[str]) -> str:
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


Order = Literal["merged", "in turn"]

WORDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "between": "between", "begins_with": "begins_with"}


@dataclass(frozen=True, slots=True)
class EnteredValue:
    """The value entered for one parameter; `until` is the upper end of a between."""

    name: str
    value: str = ""
    operator: str = "="
    until: str = ""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The order, limit and consistency of a run."""

    newest_first: bool = False
    limit: int | None = None
    consistent: bool = False


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request, with its conditions as text."""

    body: Mapping[str, Any]
    condition: str
    filter: str = ""


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """The requests of a run."""

    operation: str
    requests: tuple[OutgoingRequest, ...]
    order: Order = "in turn"
    sort_attributes: tuple[str, ...] = ()  # by which the results of several requests are merged
    limit: int | None = None
    newest_first: bool = False
    fetches_items: bool = False  # whole items are fetched for the entries of an index
    accepts: Callable[[Item], bool] | None = None  # drops items that an inexact key condition matches
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldRange:
    """A range of one field's values."""

    field: FieldDesign
    operator: str
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KeyQuery:
    """A query against one key: fixed fields, a range of one more, and filters."""

    table: TableDesign
    entity: EntityDesign
    key: KeyDesign
    fixed: Mapping[str, Any]
    field_range: FieldRange | None = None
    filters: tuple[Clause, ...] = ()
    grain: Mapping[str, Any] = field(default_factory=dict)  # the time bucket that selects the partition
    checks: tuple[FieldRange, ...] = ()  # ranges to check on the returned items


def require_value(entered: Mapping[str, EnteredValue], name: str) -> str:
    """Return the entered value for a part of the partition key, which must be given with `=`."""
    if name not in entered:
        raise RequestRefused(
            "parameter-missing",
            f"{name} is missing",
            f"The key contains {name}.",
            f"Enter a value for {name}.",
        )
    if entered[name].operator != "=":
        raise RequestRefused(
            "parameter-refused", f"{name} allows only =", f"{name} is part of the partition key.", "Choose =."
        )
    return entered[name].value


def parse_range(field: FieldDesign, entered: EnteredValue) -> FieldRange:
    """Return the entered range of a field."""
    if entered.operator not in WORDS:
        raise RequestRefused(
            "parameter-refused",
            f"Unknown comparison {entered.operator}",
            f"A sort key allows =, {', '.join(WORDS)}.",
            "Choose one of them.",
        )
    texts = [entered.value]
    if entered.operator == "between":
        if entered.until == "":
            raise RequestRefused(
                "parameter-missing",
                f"{entered.name} needs a second value",
                "“between” needs a lower and an upper bound.",
                f"Enter the upper bound of {entered.name}, or choose >= instead.",
            )
        texts.append(entered.until)
    return FieldRange(field, entered.operator, tuple(parse_key_part(field, text) for text in texts))


def parse_key_part(field: FieldDesign, text: str) -> Any:
    """Return a value as templates accept it; a number that other code stores as text stays as entered."""
    value = parse_value(field, text)
    return text.strip() if field.key_kind == "text" and not isinstance(value, str) else value


def render_key_attribute(
    entity: EntityDesign, source: SourceDesign, values: Mapping[str, Any]
) -> AttributeValue:
    """Return the value of a key attribute rendered from field values."""
    bound = entity.bind_template(source)
    if bound is not None:
        return {"S": bound.render(values)}
    assert source.field is not None
    return to_attribute(entity.field(source.field), values[source.field])


def sort_value(value: AttributeValue) -> Any:
    """Return a key value that sorts as DynamoDB sorts its type."""
    [(tag, content)] = value.items()
    if tag == "N":
        return Decimal(content)
    return b64decode(content) if tag == "B" and isinstance(content, str) else content

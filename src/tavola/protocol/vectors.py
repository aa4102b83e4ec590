"""The request of SearchVectors, and checks of vector indexes.

AWS serves SearchVectors from a separate endpoint, whose deserializer reports line and column. Its body errors are
produced here; the other errors where those of other requests are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Annotated, Any, NoReturn

import msgspec

from tavola.limits import (
    SEARCH_RESULTS_MAX,
    VECTOR_DIMENSIONS_MAX,
    VECTOR_FILTERS_MAX,
    VECTOR_HASHES_MAX,
    VECTOR_INDEXES_MAX,
)
from tavola.protocol.faults import SerializationFault, ValidationFault
from tavola.protocol.fields import (
    AttributeMap,
    AttributeValue,
    DataTableName,
    ExpressionNames,
    IndexName,
    NameInvalid,
    PageLimit,
    ReturnConsumedCapacity,
    Shape,
    is_data_table,
    is_index,
    names_without_expression,
    values_without_expression,
)
from tavola.protocol.message_style import MessageStyle, layer_of
from tavola.protocol.tables import VectorIndex, VectorIndexUpdate

_INVALID = "One or more parameter values were invalid: "
_EXPECTED = {"TableName": "a string", "IndexName": "a string", "SearchVector": "a sequence", "TopK": "i32"}
_scan = JSONDecoder().raw_decode


class SearchVectorsRequest(Shape, frozen=True, kw_only=True):
    """The request of SearchVectors."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    table_name: DataTableName
    index_name: IndexName
    search_vector: Annotated[
        list[AttributeValue], msgspec.Meta(min_length=1, max_length=VECTOR_DIMENSIONS_MAX)
    ]
    top_k: PageLimit
    search_condition_expression: str | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None


def check_search(request: SearchVectorsRequest, wording: MessageStyle) -> None:
    """Refuse a search that is invalid for any index."""
    if not is_data_table(request.table_name) or not is_index(request.index_name):
        raise NameInvalid
    if request.top_k > SEARCH_RESULTS_MAX:
        raise ValidationFault(
            f"Provided TopK value '{request.top_k}' is out of valid range. The value must be between 1 and "
            f"{SEARCH_RESULTS_MAX} inclusive"
        )
    if request.search_condition_expression is None:
        if request.expression_attribute_names is not None and request.projection_expression is None:
            raise ValidationFault(names_without_expression())
        if request.expression_attribute_values is not None:
            raise ValidationFault(
                values_without_expression(layer_of("SearchVectors", wording), "SearchConditionExpression")
            )


def check_body(body: bytes) -> None:
    """Raise the search endpoint's error for a body with a missing member or a wrong type.

    The endpoint reads from left to right and reports the line and column it has reached.
    """
    try:
        text = body.decode()
        members, end = _members(text)
    except (UnicodeDecodeError, JSONDecodeError, RecursionError):
        raise SerializationFault from None
    for name, (value, reached) in members.items():
        expected = _EXPECTED.get(name)
        if expected is not None and not _is(expected, value):
            raise SerializationFault(
                f"invalid type: {_describe_value(value)}, expected {expected} at {_line_and_column(text, reached)}"
            )
    for name in _EXPECTED:
        if name not in members:
            raise ValidationFault(f"missing field `{name}` at {_line_and_column(text, end)}")


def _members(text: str) -> tuple[dict[str, tuple[Any, int]], int]:
    """Return an object's members, each with the end position of its value, and the end of the object."""
    members: dict[str, tuple[Any, int]] = {}
    at = _skip(text, 0, "{")
    while not text.startswith("}", at):
        name, at = _scan(text, at)
        at = _skip(text, at, ":")
        value, at = _scan(text, at)
        members[str(name)] = (value, at)
        at = _blank(text, at)
        if not text.startswith("}", at):
            at = _skip(text, at, ",")
    return members, at + 1


def _blank(text: str, offset: int) -> int:
    while offset < len(text) and text[offset] in " \t\r\n":
        offset += 1
    return offset


def _skip(text: str, offset: int, sign: str) -> int:
    offset = _blank(text, offset)
    if not text.startswith(sign, offset):
        raise JSONDecodeError(f"no {sign}", text, offset)
    return _blank(text, offset + 1)


def _is(expected: str, value: Any) -> bool:
    match expected:
        case "a string":
            return isinstance(value, str)
        case "a sequence":
            return isinstance(value, list)
        case _:
            return isinstance(value, int) and not isinstance(value, bool)


def _describe_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{str(value).lower()}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f'string "{value}"'
        case list():
            return "sequence"
        case _:
            return "map"


def _line_and_column(text: str, end: int) -> str:
    line = text.count("\n", 0, end)
    column = len(text[text.rfind("\n", 0, end) + 1 : end].encode())
    return f"line {line + 1} column {column}"


def check_vector_indexes(indexes: Sequence[VectorIndex], defined: Sequence[str], on_demand: bool) -> None:
    """Refuse vector indexes that are invalid for a new table."""
    if not indexes:
        _refuse("List of VectorIndexes is empty")
    check_billing(on_demand)
    if len(indexes) > VECTOR_INDEXES_MAX:
        _refuse(f"VectorIndex count exceeds the per-table limit of {VECTOR_INDEXES_MAX}")
    for index in indexes:
        check_vector_index(index, defined)
    check_dimensions((index.vector_attribute.attribute_name, index.dimensions) for index in indexes)


def check_vector_updates(updates: Sequence[VectorIndexUpdate], defined: Sequence[str]) -> None:
    """Refuse vector index updates that are invalid for any table."""
    for update in updates:
        if update.create is None and update.delete is None:
            _refuse("One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must not be null")
        if update.create is not None and update.delete is not None:
            _refuse("Only one vector index action is allowed per VectorIndexUpdate object")
        if update.create is not None:
            check_vector_index(update.create, defined)


def check_vector_index(index: VectorIndex, defined: Sequence[str]) -> None:
    """Refuse an invalid vector index; `defined` are the attributes that the request defines."""
    if not 1 <= index.dimensions <= VECTOR_DIMENSIONS_MAX:
        _refuse(f"Number of dimensions must be between 1 and {VECTOR_DIMENSIONS_MAX} inclusive.")
    schema = index.search_schema or ()
    names = [element.attribute_name for element in schema]
    if not set(names) <= set(defined):
        _refuse("One element in SearchSchema is not defined in attribute definitions")
    kinds: Counter[str] = Counter(element.search_schema_element_type for element in schema)
    for kind, most in (("HASH", VECTOR_HASHES_MAX), ("INLINE_FILTER", VECTOR_FILTERS_MAX)):
        if kinds[kind] > most:
            _refuse(f"The SearchSchema exceeds the maximum allowed number of {kind} attributes: {most}")
    if len(set(names)) < len(names):
        _refuse("The SearchSchema contains multiple attributes with the same name")
    attribute = index.vector_attribute.attribute_name
    if attribute in defined:
        _refuse(
            f"Conflicting attribute definition for '{attribute}'. An attribute cannot be defined in "
            "AttributeDefinitions when used as a VectorAttribute."
        )


def check_billing(on_demand: bool) -> None:
    """Refuse vector indexes on a table with provisioned capacity."""
    if not on_demand:
        _refuse("Vector indexes are only supported for PAY_PER_REQUEST tables")


def check_dimensions(indexed: Iterable[tuple[str, int]]) -> None:
    """Refuse a vector attribute that is indexed with two different dimensions."""
    seen: dict[str, int] = {}
    for attribute, dimensions in indexed:
        if seen.setdefault(attribute, dimensions) != dimensions:
            _refuse(
                f"Conflicting attribute definition for '{attribute}'. All VectorIndexes on the same vector "
                "attribute must use the same dimensions."
            )


def check_vector_attribute(attribute: str, dimensions: int, keys: Mapping[str, tuple[str, str]]) -> None:
    """Refuse a key attribute as a vector; `keys` maps a table's keys to type and kind."""
    if attribute in keys:
        type_, kind = keys[attribute]
        _refuse(
            "Attributes cannot be redefined. Please check that your attribute has the same type as previously "
            f"defined. Existing schema: Schema:[SchemaElement: key{{{attribute}:{type_}:{kind}}}] New schema: "
            f"VectorIndexSchema:[VectorAttribute: key{{{attribute}:L:{dimensions}}}]"
        )


def _refuse(rule: str) -> NoReturn:
    raise ValidationFault(_INVALID + rule)

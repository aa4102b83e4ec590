"""Read access patterns of awslabs' schema: as needs with their route, or as writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.source_values import ValueReader, as_plain_data, as_text, show_value
from tavola.model.document import (
    AccessPattern,
    EntityDesign,
    Given,
    KeyDesign,
    Need,
    Route,
    TableDesign,
    WritePattern,
)

READS = {
    "getitem": "get",
    "query": "query",
    "scan": "scan",
    "batchgetitem": "batch_get",
    "transactgetitems": "batch_get",
}
WRITES = {
    "putitem": "put",
    "updateitem": "update",
    "deleteitem": "delete",
    "batchwriteitem": "put",
    "transactwriteitems": "put",
}
RANGES = ("begins_with", "between", ">=", "<=", ">", "<", "=")
_FILTERS = {
    **{each: each for each in RANGES},
    "in": "in",
    "contains": "contains",
    "attribute_exists": "exists",
}


@dataclass(frozen=True, slots=True)
class SchemaPattern:
    """An access pattern of a file, with its entity."""

    title: str
    raw: Mapping[str, Any]
    table: TableDesign
    entity: EntityDesign

    @property
    def operation(self) -> str:
        """The operation's name without capitals and signs."""
        return (as_text(self.raw.get("operation")) or "").replace("_", "").lower()

    @property
    def description(self) -> str:
        """What people call it."""
        return as_text(self.raw.get("description")) or self.title


def list_parameters(raw: Mapping[str, Any], read: ValueReader, place: str) -> Iterator[tuple[str, bool]]:
    """Give the parameters of a pattern, and whether each is a whole entity."""
    for each in read.objects(raw.get("parameters"), place):
        name = as_text(each.get("name"))
        if name:
            yield name, as_text(each.get("type")) == "entity" or "entity_type" in each


def read_need(pattern: SchemaPattern, report: ImportReport) -> Need | None:
    """Return a pattern that reads as a need; None of one that writes, or cannot be told."""
    place = f"{pattern.entity.name}.{pattern.title}"
    operation = READS.get(pattern.operation)
    if operation is None:
        if pattern.operation not in WRITES:
            report.add(
                place,
                f"{show_value(pattern.raw.get('operation'))} is no operation that is known; it is left out",
            )
        return None
    index = as_text(pattern.raw.get("index_name"))
    key = pattern.entity.key_on(index)
    if key is None:
        report.add(place, f"{pattern.entity.name} has no key in {index}, so the pattern is left out")
        return None
    read = ValueReader(report)
    list(list_parameters(pattern.raw, read, place))  # what a key wants follows from the key
    filters, unsupported, used = _filters(pattern, read, place)
    known = {field.name for field in pattern.entity.fields}
    for each in filters:
        if each.field not in known:
            report.add(place, f"it filters by {each.field}, which is no field; left out")
    filters = [each for each in filters if each.field in known]
    if unsupported:
        report.add(
            place, f"its filter compares with {', '.join(unsupported)}, which a need cannot say; left out"
        )
    conditions: list[Given] = []
    keys: list[Given] = []
    order: tuple[str, ...] = ()
    if operation != "scan":
        conditions, keys, order = _conditions(pattern, key, operation, used, read, place)
    conditions += [each for each in filters if each.field not in {one.field for one in conditions}]
    attributes = {field.name: field.attribute for field in pattern.entity.fields}
    route = Route(
        cast(Any, operation),
        index,
        tuple(keys),
        tuple(Given(attributes.get(each.field, each.field), each.operator) for each in filters),
    )
    access = AccessPattern(
        pattern.description,
        consistent=read.flag(pattern.raw.get("consistent_read"), f"{place}.consistent_read"),
        filters=tuple(each.field for each in filters),
        descending=pattern.raw.get("scan_index_forward", True) is False,
    )
    single = as_text(pattern.raw.get("return_type")) == "single_entity"
    return Need(
        pattern.title, _entities(pattern, key), tuple(conditions), order, access, single=single, route=route
    )


def _entities(pattern: SchemaPattern, key: KeyDesign) -> tuple[str, ...]:
    """Return what comes back: of mixed data, every entity that the same partition may hold."""
    if as_text(pattern.raw.get("return_type")) != "mixed_data":
        return (pattern.entity.name,)
    partition = [source.template and source.template.source for source in key.hash]
    names = [pattern.entity.name]
    for other in pattern.table.entities:
        own = other.key_on(key.index)
        if own is not None and [each.template and each.template.source for each in own.hash] == partition:
            names.append(other.name)
    return tuple(dict.fromkeys(names))


def _conditions(
    pattern: SchemaPattern, key: KeyDesign, operation: str, used: set[str], read: ValueReader, place: str
) -> tuple[list[Given], list[Given], tuple[str, ...]]:
    """Return what is asked for by fields, by key attributes, and the fields that the answer is sorted by."""
    partition = list(dict.fromkeys(name for source in key.hash for name in source.fields))
    sorts = [name for source in key.range for name in source.fields if name not in partition]
    sorts = list(dict.fromkeys(sorts))
    conditions = [Given(name) for name in partition]
    keys = [Given(source.attribute) for source in key.hash]
    if operation != "query":
        keys += [Given(source.attribute) for source in key.range]
        return [*conditions, *(Given(name) for name in sorts)], keys, ()
    range_operator = as_text(pattern.raw.get("range_condition"))
    if range_operator is not None and range_operator not in RANGES:
        read.report.add(place, f"{show_value(range_operator)} is no condition on a sort key; it is left out")
        range_operator = None
    parameters = [name for name, whole in list_parameters(pattern.raw, read, place) if not whole]
    extra = [name for name in parameters if name not in partition and name not in used]
    if range_operator is None:
        equal = [name for name in sorts if name in extra]
        fixed = len(equal) if equal == sorts[: len(equal)] else 0
        conditions += [Given(name) for name in equal]
    else:
        fixed = max(0, len(extra) - (2 if range_operator == "between" else 1))
        fixed = min(fixed, max(0, len(sorts) - 1))
        conditions += [Given(name) for name in sorts[:fixed]]
        if sorts:
            conditions.append(Given(sorts[fixed], cast(Any, range_operator)))
    keys += _range_keys(key, sorts[:fixed], range_operator)
    if range_operator is None and as_text(pattern.raw.get("return_type")) == "mixed_data":
        return conditions, keys[: len(key.hash)], ()
    return conditions, keys, tuple(sorts[fixed:])


def _range_keys(key: KeyDesign, fixed: list[str], operator: str | None) -> Iterator[Given]:
    """Give the conditions on sort attributes: equality while all their fields are given, then the comparison."""
    for source in key.range:
        if source.fields and all(name in fixed for name in source.fields):
            yield Given(source.attribute)
            continue
        if operator is not None:
            yield Given(source.attribute, cast(Any, operator))
        elif source.template is not None and (fixed or isinstance(source.template.segments[0], str)):
            yield Given(source.attribute, "begins_with" if source.fields else "=")
        return


def _filters(
    pattern: SchemaPattern, read: ValueReader, place: str
) -> tuple[list[Given], list[str], set[str]]:
    """Return the conditions of a filter, the operators that a need has not, and the parameters they use."""
    raw = pattern.raw.get("filter_expression")
    if raw is None:
        return [], [], set()
    if isinstance(raw, str):
        read.report.add(place, f"the filter {raw!r} is left out, as it is text")
        return [], [], set()
    filters: list[Given] = []
    unsupported: list[str] = []
    used: set[str] = set()
    expression = read.object(raw, place)
    logical_operator = as_text(expression.get("logical_operator")) or "AND"
    conditions = read.objects(expression.get("conditions"), place)
    if logical_operator.upper() != "AND" and len(conditions) > 1:
        as_plain_data(expression)  # it is read, to the last member, and told as a whole
        read.report.add(
            place, f"its filter joins conditions by {logical_operator}, which a need cannot say; left out"
        )
        return [], [], {name for each in conditions for name in _parameters(each, read, place)}
    for each in conditions:
        field = as_text(each.get("field")) or ""
        operator_name = as_text(each.get("operator")) or as_text(each.get("function")) or "="
        used |= set(_parameters(each, read, place))
        operator = _FILTERS.get(operator_name)
        if operator is None or each.get("function") == "size":
            unsupported.append(operator_name)
        elif field:
            filters.append(Given(field, cast(Any, operator)))
    return filters, unsupported, used


def _parameters(condition: Mapping[str, Any], read: ValueReader, place: str) -> Iterator[str]:
    for name in ("param", "param2", "params"):
        yield from read.texts(condition.get(name), place)


def read_write(pattern: SchemaPattern, report: ImportReport) -> WritePattern | None:
    """Return a pattern that writes; None of one that reads."""
    kind = WRITES.get(pattern.operation)
    if kind is None:
        return None
    key = pattern.entity.key
    assert key is not None, "what lives in a table has a key"
    names = [
        name for name, whole in list_parameters(pattern.raw, ValueReader(report), pattern.title) if not whole
    ]
    fields = {field.name for field in pattern.entity.fields}
    changed = [name for name in names if name in fields and name not in key.fields]
    return WritePattern(
        pattern.description,
        cast(Any, kind),
        tuple(changed) if kind == "update" else (),
        transactional=pattern.operation == "transactwriteitems",
        conditional=bool(pattern.raw.get("condition_expression")),
    )

"""SearchVectors, and the definition, change and description of vector indexes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tavola.engine.catalog import IndexDefinition, StoredTable, TableDefinition
from tavola.engine.nearest import Matrix, VectorHit, matrix_of, pack
from tavola.engine.operations.call import (
    OperationCall,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_projection,
)
from tavola.engine.store_time import CurrentTime
from tavola.engine.vectors import Vector, VectorDefinition
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.plans import compile_condition
from tavola.expressions.projections import CompiledProjection, project
from tavola.expressions.search_conditions import SearchClause, search_clauses
from tavola.limits import VECTOR_INDEXES_MAX, VECTOR_REQUEST_BYTES_MIN
from tavola.protocol.arns import index_arn
from tavola.protocol.faults import (
    LimitExceededFault,
    ResourceInUseFault,
    ResourceNotFoundFault,
    ValidationFault,
)
from tavola.protocol.tables import CreateVectorIndexAction, UpdateTableRequest, VectorIndex
from tavola.protocol.vectors import (
    SearchVectorsRequest,
    check_billing,
    check_dimensions,
    check_vector_attribute,
)
from tavola.values import Item, NumberRefused, Value, canonical_number, decode_item, item_size, tag_of

_FIELD = "Invalid SearchConditionExpression: SearchConditionExpression "
_INVALID_VALUES = (
    "Search vector contains invalid values. All values in the search vector must be a 32-bit floating-point "
    "number attribute"
)
# Bytes that AWS counts for a search, as measured: by the dimensions of the index, and per result.
_BYTES_PER_DIMENSION = 30.6875
_BYTES_PER_RESULT = 65
_BYTES_PER_FLOAT = 4


def search_vectors(call: OperationCall, request: SearchVectorsRequest) -> bytes:
    """Return the entries of a vector index nearest to a vector."""
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    projection = parse_projection(call, request, bindings)
    condition, clauses = _condition(call, request, bindings)
    check_placeholders_used(call, bindings, (projection, condition))
    table = call.table(request.table_name)
    vector = _find_vector_index(call, table, request.index_name)
    query = _query(request.search_vector, vector)
    filters = _required_values(vector, condition, clauses, bindings)
    check_scalar_keys(table, projection)
    matrix = matrix_of(table, vector)
    call.record_access(table, vector.name, None)  # a search is counted in its own bytes, not in units
    results: list[dict[str, Any]] = []
    cost = _BYTES_PER_DIMENSION * vector.dimensions
    for hit in matrix.search(query, request.top_k, filters):
        row = table.rows.get(hit.key)
        assert row is not None, "every index entry has a row in its table"
        projected = vector.projection_of(decode_item(row[0]))
        item = _render_hit(vector, projected, hit, matrix, projection)
        results.append({"Item": item, "Score": hit.score})
        floats = vector.dimensions if vector.attribute in item else 0
        cost += _BYTES_PER_RESULT + item_size(projected) + _BYTES_PER_FLOAT * floats
    members: dict[str, Any] = {"SearchResults": results}
    if capacity_mode(request.return_consumed_capacity) is not None:
        members["ConsumedCapacity"] = {"VectorSearchRequestBytes": max(float(VECTOR_REQUEST_BYTES_MIN), cost)}
    return encode(members)


def _condition(
    call: OperationCall, request: SearchVectorsRequest, bindings: Bindings
) -> tuple[CompiledCondition | None, tuple[SearchClause, ...]]:
    text = request.search_condition_expression
    if text is None:
        return None, ()
    try:
        condition = compile_condition(text, bindings, field="SearchConditionExpression")
        return condition, search_clauses(condition)
    except ExpressionError as error:
        raise call.expression_fault(error) from error


def _find_vector_index(call: OperationCall, table: StoredTable, name: str) -> Vector:
    vector = next((vector for vector in table.vectors if vector.name == name), None)
    if vector is not None and vector.definition.filled_to is not None:
        raise ValidationFault(f"Cannot search backfilling vector index: {name}")
    if vector is None or vector.definition.ready_at_s > call.services.time.elapsed_s():
        raise ValidationFault(f"The table does not have the specified index: {name}")
    return vector


def _query(numbers: Sequence[Value], vector: Vector) -> bytes:
    try:
        if any(set(number) != {"N"} for number in numbers):
            raise ValidationFault(_INVALID_VALUES)
        packed = pack(float(canonical_number(number["N"])) for number in numbers)
    except (NumberRefused, OverflowError, TypeError, AttributeError):
        raise ValidationFault(_INVALID_VALUES) from None
    if len(numbers) != vector.dimensions:
        raise ValidationFault(
            f"Input search vector dimension {len(numbers)} does not match vector index dimension "
            f"{vector.dimensions}"
        )
    return packed


def _required_values(
    vector: Vector, condition: CompiledCondition | None, clauses: Sequence[SearchClause], bindings: Bindings
) -> Mapping[str, Value]:
    """Return the required value of each search attribute; errors are raised in AWS's order."""
    for clause in clauses:
        if clause.name not in vector.types:
            raise ValidationFault(
                "SearchConditionExpression must not contain any attributes that is not in SearchSchema. "
                f"Invalid attribute: {clause.name}"
            )
    if any(clause.nested for clause in clauses):
        raise ValidationFault(f"{_FIELD}cannot have conditions on nested attributes")
    required = {clause.name: bindings.values[clause.value] for clause in clauses}
    if len(required) < len(clauses):
        raise ValidationFault(f"{_FIELD}must only contain one condition per attribute")
    if vector.hash is not None and vector.hash not in required:
        raise ValidationFault(
            "SearchConditionExpression must be provided when SearchSchema has a HASH key"
            if condition is None
            else "SearchConditionExpression must have all HASH attributes in configured SearchSchema"
        )
    for name, value in required.items():
        if tag_of(value) != vector.types[name]:
            raise ValidationFault(
                f"Type of '{name}' attribute in SearchConditionExpression ({tag_of(value)}) does not match "
                f"type in search schema ({vector.types[name]})"
            )
    if vector.hash is not None:
        tag, content = next(iter(required[vector.hash].items()))
        if not content:
            raise ValidationFault(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
                f"contain an empty {'string' if tag == 'S' else 'binary'} value. Key: {vector.hash}"
            )
    return required


def _render_hit(
    vector: Vector, projected: Item, hit: VectorHit, matrix: Matrix, projection: CompiledProjection | None
) -> Item:
    """Return an item of the result; its vector only if requested by name, as the index's floats."""
    if projection is None:
        return projected
    if vector.attribute in projection.attributes and (
        vector.projected is None or vector.attribute in vector.projected
    ):
        numbers = [{"N": canonical_number(text)} for text in matrix.vector(hit.key)]
        projected = projected | {vector.attribute: {"L": numbers}}
    return project(projection, projected)


def vector_definition(index: VectorIndex, slot: int, **state: Any) -> VectorDefinition:
    """Return the stored definition of a requested vector index."""
    assert index.projection.projection_type is not None, "`parse` refuses an index without a projection"
    return VectorDefinition(
        name=index.index_name,
        slot=slot,
        attribute=index.vector_attribute.attribute_name,
        dimensions=index.dimensions,
        distance=index.distance_function,
        projection=index.projection.projection_type,
        named=tuple(index.projection.non_key_attributes or ()),
        schema=tuple(
            (element.attribute_name, element.search_schema_element_type)
            for element in index.search_schema or ()
        ),
        **state,
    )


def apply_vector_updates(
    call: OperationCall, definition: TableDefinition, request: UpdateTableRequest
) -> TableDefinition:
    """Return a definition with vector indexes added and removed as requested."""
    for update in request.vector_index_updates or ():
        if update.create is not None:
            definition = _with_vector(call, definition, update.create, request)
            continue
        assert update.delete is not None, "`parse` refuses an empty update"
        name = update.delete.index_name
        remaining = tuple(vector for vector in definition.vectors if vector.name != name)
        if len(remaining) == len(definition.vectors):
            raise ResourceNotFoundFault()
        definition = msgspec.structs.replace(definition, vectors=remaining).with_types(definition.types)
    if definition.vectors:
        check_billing(definition.billing == "PAY_PER_REQUEST")
    return definition


def _with_vector(
    call: OperationCall,
    definition: TableDefinition,
    action: CreateVectorIndexAction,
    request: UpdateTableRequest,
) -> TableDefinition:
    name, store_s = action.index_name, call.services.time.elapsed_s()
    existing: tuple[IndexDefinition | VectorDefinition, ...] = (*definition.indexes, *definition.vectors)
    for existing_vector in existing:
        if existing_vector.name == name:
            if existing_vector.filled_to is not None or existing_vector.ready_at_s > store_s:
                raise ResourceInUseFault(
                    "Attempt to change a resource which is still in use: Index is being created.  Table: "
                    f"{definition.name} Index: {name}"
                )
            raise ValidationFault("Attempting to create an index which already exists")
    check_billing(definition.billing == "PAY_PER_REQUEST")
    if len(definition.vectors) >= VECTOR_INDEXES_MAX:
        raise LimitExceededFault(
            "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of "
            f"{VECTOR_INDEXES_MAX}"
        )
    attribute = action.vector_attribute.attribute_name
    keys = {definition.hash: (definition.types[definition.hash], "HASH")}
    if definition.range is not None:
        keys[definition.range] = (definition.types[definition.range], "RANGE")
    check_vector_attribute(attribute, action.dimensions, keys)
    dimensions = [(vector.attribute, vector.dimensions) for vector in definition.vectors]
    check_dimensions([*dimensions, (attribute, action.dimensions)])
    types = {
        definition.attribute_name: definition.attribute_type
        for definition in request.attribute_definitions or ()
    }
    slot = definition.slots + 1
    added = vector_definition(action, slot, filled_to=0, ready_at_s=store_s + call.services.table_delay_s)
    changed = msgspec.structs.replace(definition, vectors=(*definition.vectors, added), slots=slot)
    return changed.with_types({**types, **definition.types})


def describe_vector(
    table: StoredTable, vector: Vector, now: CurrentTime, *, creating: bool = False
) -> dict[str, Any]:
    """Return the description of a vector index; `creating` as in the response to CreateTable."""
    definition = vector.definition
    is_active = is_vector_active(definition, now.store_s)
    ready = table.definition.ready_at_s <= now.store_s and is_active and not creating
    described = vector_info(definition) | {
        "IndexStatus": "ACTIVE" if ready else "CREATING",
        "IndexSizeBytes": table.counts.index_bytes.get(definition.slot, 0),
        "ItemCount": table.counts.index_items.get(definition.slot, 0),
        "IndexArn": index_arn(table.scope, table.name, definition.name),
    }
    if definition.filled_to is not None:
        described["Backfilling"] = True
    return described


def vector_info(definition: VectorDefinition) -> dict[str, Any]:
    """Return the settings of a vector index, for descriptions of tables and backups."""
    projection: dict[str, Any] = {"ProjectionType": definition.projection}
    if definition.named:
        projection["NonKeyAttributes"] = list(definition.named)
    info: dict[str, Any] = {
        "IndexName": definition.name,
        "VectorAttribute": {"AttributeName": definition.attribute},
        "Projection": projection,
        "Dimensions": definition.dimensions,
        "DistanceFunction": definition.distance,
    }
    if definition.schema:
        info["SearchSchema"] = [
            {"AttributeName": name, "SearchSchemaElementType": kind} for name, kind in definition.schema
        ]
    return info


def is_vector_active(definition: VectorDefinition, store_s: float) -> bool:
    """Return whether a vector index is complete and no longer CREATING."""
    return definition.filled_to is None and definition.ready_at_s <= store_s

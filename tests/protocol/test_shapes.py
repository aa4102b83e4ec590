"""The declared shapes are those of the service model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore
import pytest

from tavola.protocol.operations import OPERATIONS
from tavola.protocol.shapes import (
    BooleanNode,
    BytesNode,
    IntegerNode,
    ListNode,
    MapNode,
    Node,
    StructureMember,
    StructureNode,
    TextNode,
    TimeNode,
    describe_shape,
)
from tavola.protocol.tables import CreateTableRequest

_DATA = Path(botocore.__file__).parent / "data"
_SERVED = sorted(OPERATIONS)

# Where AWS answers otherwise than its own model says, and we follow the answer.
_REQUIRED_BY_ANSWER = {
    "CreateTable.AttributeDefinitions",  # optional in the model, for replicas of other accounts
    "CreateTable.KeySchema",
}
_REFUSED_IN_OTHER_WORDS = {
    "TagResource.ResourceArn",  # "Invalid TableArn"
    "UntagResource.ResourceArn",
    "ListTagsOfResource.ResourceArn",
    "ExportTableToPointInTime.TableArn",  # "tableArn is not a valid ARN"
    "ListExports.TableArn",  # a table that is not there has nothing to be listed
    "ListImports.TableArn",
    "StartBulkPutItems.TableName",
    "CreateTable.Tags[].Key",  # "The Tag Key provided is invalid, Key: null"
    "CreateTable.Tags[].Value",
    "TagResource.Tags[].Key",
    "TagResource.Tags[].Value",
    "CreateTable.TableClass",  # "Invalid table-class parameter provided."
    "UpdateTable.TableClass",
}
_COUNTED_BY_ANSWER = {
    "CreateTable.KeySchema",  # no more than two on a table or a local index
    "CreateTable.LocalSecondaryIndexes[].KeySchema",
    "ImportTable.TableCreationParameters.KeySchema",
    "RestoreTableFromBackup.LocalSecondaryIndexOverride[].KeySchema",
    "RestoreTableToPointInTime.LocalSecondaryIndexOverride[].KeySchema",
}
_LENGTHS_ELSEWHERE = {
    "BackupName",
    "AttributeName",  # the values room measures names, in bytes
    "TagKeyString",  # "The Tag Key provided is invalid"
    "TagValueString",
    "ResourceArnString",
    "TableArn",
    "TableName",
    "IndexName",
}


def _model(service: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(
        gzip.decompress((_DATA / service / "2012-08-10" / "service-2.json.gz").read_bytes())
    )
    return loaded


@pytest.fixture(scope="module")
def model() -> dict[str, Any]:
    """DynamoDB's service model."""
    return _model("dynamodb")


def test_every_operation_of_both_services_is_known(model: dict[str, Any]) -> None:
    """What is not served is still known by name."""
    streams = _model("dynamodbstreams")

    assert {o.name for o in OPERATIONS.values() if o.service == "dynamodb"} == set(model["operations"])
    assert {o.name for o in OPERATIONS.values() if o.service == "streams"} == set(streams["operations"])
    assert OPERATIONS["GetItem"].target == f"{model['metadata']['targetPrefix']}.GetItem"
    assert OPERATIONS["GetRecords"].target == f"{streams['metadata']['targetPrefix']}.GetRecords"


@pytest.mark.parametrize("operation", [name for name in _SERVED if OPERATIONS[name].service != "tavola"])
def test_a_request_has_the_models_members(model: dict[str, Any], operation: str) -> None:
    """Every member of a request is declared, with the model's type, enum, count and presence."""
    request = OPERATIONS[operation].request
    assert request is not None
    if OPERATIONS[operation].service == "streams":
        model = _model("dynamodbstreams")
    shape = model["operations"][operation]["input"]["shape"]

    differences = list(_compare(model["shapes"], shape, describe_shape(request), operation, set()))

    assert differences == []


def test_a_member_that_is_forgotten_is_found(model: dict[str, Any]) -> None:
    """The comparison sees a member that is missing, one that is made up, and one of another type."""
    whole = describe_shape(CreateTableRequest)
    short = StructureNode(
        whole.name, {name: member for name, member in whole.members.items() if name != "Tags"}
    )
    long = StructureNode(
        whole.name, whole.members | {"Nonsense": StructureMember("Nonsense", BooleanNode(), required=False)}
    )
    wrong = StructureNode(
        whole.name, whole.members | {"Tags": StructureMember("Tags", BooleanNode(), required=False)}
    )

    found = [
        list(_compare(model["shapes"], "CreateTableInput", structure, "CreateTable", set()))
        for structure in (short, long, wrong)
    ]

    assert found == [
        ["CreateTable: members {'Tags'}"],
        ["CreateTable: members {'Nonsense'}"],
        ["CreateTable.Tags: flag for list"],
    ]


def _compare(
    shapes: dict[str, Any], name: str, node: Node, path: str, seen: set[tuple[str, str]]
) -> Iterator[str]:
    """Yield where a declared node is not what the model's shape says."""
    shape = shapes[name]
    match node:
        case StructureNode():
            yield from _compare_members(shapes, name, node, path, seen)
        case ListNode():
            if shape["type"] != "list":
                yield f"{path}: list for {shape['type']}"
                return
            if path not in _COUNTED_BY_ANSWER and (node.count_min, node.count_max) != _range(shape):
                yield f"{path}: {node.count_min}..{node.count_max} elements for {_range(shape)}"
            yield from _compare(shapes, shape["member"]["shape"], node.element, f"{path}[]", seen)
        case MapNode():
            if shape["type"] != "map":
                yield f"{path}: map for {shape['type']}"
                return
            if (node.count_min, node.count_max) != _range(shape):
                yield f"{path}: {node.count_min}..{node.count_max} entries for {_range(shape)}"
            yield from _compare(shapes, shape["value"]["shape"], node.value, f"{path}{{}}", seen)
        case TextNode():
            if shape["type"] != "string":
                yield f"{path}: text for {shape['type']}"
            if set(node.words) != set(shape.get("enum", ())) and path not in _REFUSED_IN_OTHER_WORDS:
                yield f"{path}: {node.words} for {shape.get('enum')}"
            bounds = (node.characters_min, node.characters_max)
            if name not in _LENGTHS_ELSEWHERE and bounds != _range(shape):
                yield f"{path}: {bounds} characters for {_range(shape)}"
            elsewhere = "SourceArn" in path or path in _REFUSED_IN_OTHER_WORDS
            if name in {"TableArn", "IndexName"} and node.name is None and not elsewhere:
                yield f"{path}: no rule for a name"
        case IntegerNode():
            if shape["type"] != node.java.lower():
                yield f"{path}: {node.java} for {shape['type']}"
            if (node.value_min, node.value_max) != _range(shape):
                yield f"{path}: {node.value_min}..{node.value_max} for {_range(shape)}"
        case TimeNode():
            if shape["type"] not in ("timestamp", "double"):
                yield f"{path}: moment for {shape['type']}"
        case BooleanNode():
            if shape["type"] != "boolean":
                yield f"{path}: flag for {shape['type']}"
        case BytesNode():
            if shape["type"] != "blob":
                yield f"{path}: blob for {shape['type']}"


def _compare_members(
    shapes: dict[str, Any], name: str, node: StructureNode, path: str, seen: set[tuple[str, str]]
) -> Iterator[str]:
    shape = shapes[name]
    if (name, node.name) in seen:
        return
    seen.add((name, node.name))
    if shape["type"] != "structure":
        yield f"{path}: structure for {shape['type']}"
        return
    if node.name != name and path not in OPERATIONS:
        yield f"{path}: called {node.name}, not {name}"
    if set(node.members) != set(shape["members"]):
        yield f"{path}: members {set(node.members) ^ set(shape['members'])}"
        return
    for member in node.members.values():
        place = f"{path}.{member.name}"
        required = member.name in shape.get("required", ())
        if member.required != required and place not in _REQUIRED_BY_ANSWER | _REFUSED_IN_OTHER_WORDS:
            yield f"{place}: required {member.required} for {required}"
        yield from _compare(shapes, shape["members"][member.name]["shape"], member.node, place, seen)


def _range(shape: dict[str, Any]) -> tuple[int | None, int | None]:
    return shape.get("min"), shape.get("max")


def test_members_stand_in_the_order_of_their_declaration() -> None:
    """The order in which AWS reports members is the order of the fields."""
    declared = [member for member in describe_shape(CreateTableRequest).members if member in _FIRST_OF_CREATE]

    assert declared == _FIRST_OF_CREATE


_FIRST_OF_CREATE = [
    "AttributeDefinitions",
    "TableName",
    "BillingMode",
    "ProvisionedThroughput",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
]

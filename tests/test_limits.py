"""The limits are those of the service model, where the model states them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import botocore
import pytest

from tavola import limits

_MODEL = Path(botocore.__file__).parent / "data/dynamodb/2012-08-10/service-2.json.gz"


@pytest.fixture(scope="module")
def shapes() -> dict[str, Any]:
    """The shapes of DynamoDB's service model."""
    loaded: dict[str, Any] = json.loads(gzip.decompress(_MODEL.read_bytes()))["shapes"]
    return loaded


@pytest.mark.parametrize(
    ("shape", "bound", "limit"),
    [
        ("TableName", "min", limits.TABLE_NAME_CHARACTERS_MIN),
        ("TableName", "max", limits.TABLE_NAME_CHARACTERS_MAX),
        ("IndexName", "min", limits.INDEX_NAME_CHARACTERS_MIN),
        ("IndexName", "max", limits.INDEX_NAME_CHARACTERS_MAX),
        ("TableArn", "max", limits.TABLE_ARN_CHARACTERS_MAX),
        ("ResourceArnString", "max", limits.RESOURCE_ARN_CHARACTERS_MAX),
        ("AttributeName", "max", limits.ATTRIBUTE_NAME_BYTES_MAX),
        ("KeySchemaAttributeName", "max", limits.KEY_ATTRIBUTE_NAME_BYTES_MAX),
        ("NonKeyAttributeNameList", "max", limits.PROJECTED_ATTRIBUTES_MAX),
        ("KeyList", "max", limits.BATCH_GET_KEYS_MAX),
        ("WriteRequests", "max", limits.BATCH_WRITE_REQUESTS_MAX),
        ("TransactWriteItemList", "max", limits.TRANSACTION_ACTIONS_MAX),
        ("ClientRequestToken", "max", limits.TRANSACTION_TOKEN_CHARACTERS_MAX),
        ("ListTablesInputLimit", "max", limits.LIST_TABLES_MAX),
        ("ScanTotalSegments", "max", limits.SCAN_SEGMENTS_MAX),
        ("TagKeyString", "max", limits.TAG_KEY_CHARACTERS_MAX),
        ("TagValueString", "max", limits.TAG_VALUE_CHARACTERS_MAX),
    ],
)
def test_a_limit_is_the_models(shapes: dict[str, Any], shape: str, bound: str, limit: int) -> None:
    """A number that the service model states has no second value here."""
    assert shapes[shape][bound] == limit


def test_every_limit_is_a_positive_number_but_the_smallest_exponent() -> None:
    """A limit counts something."""
    stated = {name: value for name, value in vars(limits).items() if name.isupper() and name[0] != "_"}

    assert {name for name, value in stated.items() if value <= 0} == {"NUMBER_EXPONENT_MIN"}

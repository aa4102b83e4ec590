"""Types of request members, with their constraints, and the rules that several operations share.

A request Struct declares its members in the order in which AWS reports violations. The decoder enforces lengths,
ranges, enums and presence at no cost. Names of tables and indexes are checked by the `is_…` functions, because a
cached lookup costs a fifteenth of the decoder's regular expression. `shapes` reads the same declarations to produce
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, TypeAlias, get_args

import msgspec
from msgspec import Struct

from tavola.limits import (
    BATCH_GET_KEYS_MAX,
    BATCH_WRITE_REQUESTS_MAX,
    INDEX_NAME_CHARACTERS_MAX,
    INDEX_NAME_CHARACTERS_MIN,
    KEY_ATTRIBUTE_NAME_BYTES_MAX,
    KEY_SCHEMA_ELEMENTS_MAX,
    LIST_TABLES_MAX,
    PROJECTED_ATTRIBUTES_MAX,
    SCAN_SEGMENTS_MAX,
    TABLE_NAME_CHARACTERS_MAX,
    TABLE_NAME_CHARACTERS_MIN,
    TRANSACTION_ACTIONS_MAX,
    TRANSACTION_TOKEN_CHARACTERS_MAX,
)
from tavola.protocol.arns import is_table_arn
from tavola.protocol.message_style import MessageStyle, ValidationLayer

NAME_PATTERN = "[a-zA-Z0-9_.-]+"  # as AWS prints it
_name = re.compile(NAME_PATTERN)


class Shape(
    msgspec.Struct,
    rename="pascal",
    kw_only=True,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=False,
):
    """A structure of the API: AWS's members in snake case, None if absent.

    `msgspec.to_builtins(shape)` returns it with AWS's names, without absent members.
    """


class NameRule(Struct, frozen=True):
    """The rule for a table's or index's name; `arn`: a table ARN is accepted as well."""

    characters_min: int
    characters_max: int
    arn: bool
    alone: bool = False  # the control plane checks this member before all others


class NameInvalid(Exception):
    """A decoded name violates its rule, which the decoder does not check."""


_DATA_TABLE = NameRule(1, TABLE_NAME_CHARACTERS_MAX, arn=True)
_CONTROL_TABLE = NameRule(TABLE_NAME_CHARACTERS_MIN, TABLE_NAME_CHARACTERS_MAX, arn=True, alone=True)
_NEW_TABLE = NameRule(TABLE_NAME_CHARACTERS_MIN, TABLE_NAME_CHARACTERS_MAX, arn=False, alone=True)
_START_TABLE = NameRule(TABLE_NAME_CHARACTERS_MIN, TABLE_NAME_CHARACTERS_MAX, arn=False)
_BATCH_TABLE = NameRule(TABLE_NAME_CHARACTERS_MIN, TABLE_NAME_CHARACTERS_MAX, arn=True)
_INDEX = NameRule(INDEX_NAME_CHARACTERS_MIN, INDEX_NAME_CHARACTERS_MAX, arn=False)


def fits(rule: NameRule, name: str) -> bool:
    """Return whether a name follows its rule."""
    if _name.fullmatch(name) is not None:
        return rule.characters_min <= len(name) <= rule.characters_max
    return rule.arn and is_table_arn(name)


@lru_cache(maxsize=4096)
def is_data_table(name: str) -> bool:
    """Return whether the data plane accepts a TableName; cached, since programs use few tables."""
    return fits(_DATA_TABLE, name)


@lru_cache(maxsize=4096)
def is_batch_table(name: str) -> bool:
    """Return whether a batch accepts a table name."""
    return fits(_BATCH_TABLE, name)


@lru_cache(maxsize=4096)
def is_index(name: str) -> bool:
    """Return whether a name is a valid index name."""
    return fits(_INDEX, name)


@lru_cache(maxsize=4096)
def is_control_table(name: str) -> bool:
    """Return whether the control plane accepts a TableName."""
    return fits(_CONTROL_TABLE, name)


def is_new_table(name: str) -> bool:
    """Return whether a table may be created with this name."""
    return fits(_NEW_TABLE, name)


def is_start_table(name: str) -> bool:
    """Return whether ListTables accepts this ExclusiveStartTableName."""
    return fits(_START_TABLE, name)


class NamesTable(Protocol):
    """A request with a TableName."""

    @property
    def table_name(self) -> str | None:
        """The name or ARN of a table."""
        ...


def check_table_name(request: NamesTable, wording: MessageStyle) -> None:
    """Refuse an invalid TableName, in a control plane request that needs no other check."""
    if request.table_name is not None and not is_control_table(request.table_name):
        raise NameInvalid


def check_nothing(request: Shape, wording: MessageStyle) -> None:
    """Accept a request whose members are only checked one by one."""


def _name_meta(rule: NameRule) -> msgspec.Meta:
    return msgspec.Meta(extra={"name": rule})


# Names: plain strings to the decoder, checked by the functions above.
DataTableName: TypeAlias = Annotated[str, _name_meta(_DATA_TABLE)]
ControlTableName: TypeAlias = Annotated[str, _name_meta(_CONTROL_TABLE)]
NewTableName: TypeAlias = Annotated[str, _name_meta(_NEW_TABLE)]
StartTableName: TypeAlias = Annotated[str, _name_meta(_START_TABLE)]
BatchTableName: TypeAlias = Annotated[str, _name_meta(_BATCH_TABLE)]
IndexName: TypeAlias = Annotated[str, _name_meta(_INDEX)]
# Indexes are rarely defined or changed, so here the decoder may check the pattern.
DefinedIndexName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        min_length=INDEX_NAME_CHARACTERS_MIN,
        max_length=INDEX_NAME_CHARACTERS_MAX,
        pattern=rf"\A{NAME_PATTERN}\Z",
        extra={"name": _INDEX},
    ),
]
KeyAttributeName: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=KEY_ATTRIBUTE_NAME_BYTES_MAX)
]
ClientRequestToken: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=1, max_length=TRANSACTION_TOKEN_CHARACTERS_MAX)
]

# Attribute values: checked later, by `tavola.values`, and only once.
AttributeValue: TypeAlias = Annotated[dict[str, Any], msgspec.Meta(title="AttributeValue")]
AttributeMap: TypeAlias = dict[str, AttributeValue]
AttributeNames: TypeAlias = Annotated[list[str], msgspec.Meta(min_length=1)]
ExpressionNames: TypeAlias = dict[str, str]

# Enums, in AWS's print order.
ReturnConsumedCapacity: TypeAlias = Literal["INDEXES", "TOTAL", "NONE"]
ReturnItemCollectionMetrics: TypeAlias = Literal["SIZE", "NONE"]
ReturnValue: TypeAlias = Literal["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"]
ReturnValuesOnConditionCheckFailure: TypeAlias = Literal["ALL_OLD", "NONE"]
Select: TypeAlias = Literal["SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"]
ConditionalOperator: TypeAlias = Literal["OR", "AND"]
ComparisonOperator: TypeAlias = Literal[
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
]
AttributeAction: TypeAlias = Literal["ADD", "PUT", "DELETE"]
ScalarAttributeType: TypeAlias = Literal["B", "N", "S"]
KeyType: TypeAlias = Literal["HASH", "RANGE"]
ProjectionType: TypeAlias = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
BillingMode: TypeAlias = Literal["PROVISIONED", "PAY_PER_REQUEST"]
TableClass: TypeAlias = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
TABLE_CLASSES: tuple[str, ...] = get_args(TableClass)
StreamViewType: TypeAlias = Literal["OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"]
SSEType: TypeAlias = Literal["AES256", "KMS"]
SettingsReplicationMode: TypeAlias = Literal["ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES"]
MultiRegionConsistency: TypeAlias = Literal["EVENTUAL", "STRONG"]
DisassociationMode: TypeAlias = Literal["WAIT_FOR_REPLICATION"]
VectorDistanceFunction: TypeAlias = Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]
SearchSchemaElementType: TypeAlias = Literal["HASH", "INLINE_FILTER"]

# Numbers: AWS's messages distinguish 32 from 64 bits.
INTEGER_MAX = 2**31 - 1  # limits of AWS's types; larger numbers do not deserialize
LONG_MAX = 2**63 - 1
_INTEGER = {"java": "Integer"}
PageLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=INTEGER_MAX, extra=_INTEGER)]
ListTablesLimit: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LIST_TABLES_MAX, extra=_INTEGER)]
TotalSegments: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=SCAN_SEGMENTS_MAX, extra=_INTEGER)]
Segment: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SCAN_SEGMENTS_MAX - 1, extra=_INTEGER)]
PositiveLong: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=LONG_MAX)]
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-LONG_MAX - 1, le=LONG_MAX)]

# Times, in seconds since the epoch, with fractions.
MOMENT_S_MAX = 10**11  # about the year 5100
Timestamp: TypeAlias = Annotated[float, msgspec.Meta(ge=-MOMENT_S_MAX, le=MOMENT_S_MAX)]

# Lengths of lists and maps.
TABLE_KEY_SCHEMA = msgspec.Meta(min_length=1, max_length=KEY_SCHEMA_ELEMENTS_MAX)
INDEX_KEY_SCHEMA = msgspec.Meta(min_length=1)
NON_KEY_ATTRIBUTES = msgspec.Meta(min_length=1, max_length=PROJECTED_ATTRIBUTES_MAX)
BATCH_KEYS = msgspec.Meta(min_length=1, max_length=BATCH_GET_KEYS_MAX)
BATCH_GET_TABLES = msgspec.Meta(
    min_length=1, max_length=BATCH_GET_KEYS_MAX, extra={"required": "BatchGetItem"}
)
BATCH_WRITE_TABLES = msgspec.Meta(
    min_length=1, max_length=BATCH_WRITE_REQUESTS_MAX, extra={"required": "BatchWriteItem"}
)
BATCH_WRITES = msgspec.Meta(min_length=1, max_length=BATCH_WRITE_REQUESTS_MAX)
TRANSACTION = msgspec.Meta(min_length=1, max_length=TRANSACTION_ACTIONS_MAX)
ONE_OR_MORE = msgspec.Meta(min_length=1)

# Expression parameters and the legacy parameters they replaced exclude each other, and placeholders require an
# expression: the same rules for every operation.
NamedParameters = Iterable[tuple[str, object]]  # AWS's parameter name and the value sent


def mixed_parameters_error(legacy: NamedParameters, expressions: NamedParameters) -> str | None:
    """Return AWS's message if both kinds of parameter are used."""
    old = [name for name, value in legacy if value is not None]
    new = [name for name, value in expressions if value is not None]
    if not old or not new:
        return None
    return (
        "Can not use both expression and non-expression parameters in the same request: "
        f"Non-expression parameters: {{{', '.join(old)}}} Expression parameters: {{{', '.join(new)}}}"
    )


def names_without_expression() -> str:
    """Return AWS's message for names without an expression."""
    return "ExpressionAttributeNames can only be specified when using expressions"


def values_without_expression(style: ValidationLayer, *expressions: str) -> str:
    """Return AWS's message for values without an expression; the classic layer lists the missing ones."""
    text = "ExpressionAttributeValues can only be specified when using expressions"
    if style == "modern":
        return text
    return f"{text}: {' and '.join(expressions)} {'are' if len(expressions) > 1 else 'is'} null"

"""Requests of export, import and bulk load, and the checks that need no table or file."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tavola.limits import (
    BUCKET_NAME_CHARACTERS_MAX,
    BULK_WRITE_UNITS_MIN,
    CSV_HEADER_CHARACTERS_MAX,
    CSV_HEADERS_MAX,
    OBJECT_PREFIX_CHARACTERS_MAX,
    TABLE_ARN_CHARACTERS_MAX,
    TRANSFER_ARN_CHARACTERS_MAX,
    TRANSFER_ARN_CHARACTERS_MIN,
    TRANSFER_TOKEN_CHARACTERS_MIN,
    TRANSFERS_LISTED_MAX,
)
from tavola.protocol.arns import is_table_arn, parse_resource_arn
from tavola.protocol.definitions import check_create
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    LONG_MAX,
    TABLE_KEY_SCHEMA,
    AttributeMap,
    BillingMode,
    ExpressionNames,
    NewTableName,
    Shape,
    Timestamp,
    is_control_table,
)
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.tables import (
    AttributeDefinition,
    CreateTableRequest,
    GlobalSecondaryIndex,
    KeySchemaElement,
    OnDemandThroughput,
    ProvisionedThroughput,
    SSESpecification,
    VectorIndex,
)

_INVALID = "One or more parameter values were invalid: "


def _matching(pattern: str, length_min: int | None = None, length_max: int | None = None) -> msgspec.Meta:
    """Return a constraint that matches the whole text; messages show `pattern` as AWS writes it."""
    return msgspec.Meta(
        min_length=length_min,
        max_length=length_max,
        pattern=rf"\A(?:{pattern})\Z",
        extra={"pattern": pattern},
    )


ClientToken: TypeAlias = Annotated[str, _matching(r"^[^\$]+$")]
BucketName: TypeAlias = Annotated[
    str, _matching(r"^[a-z0-9A-Z]+[\.\-\w]*[a-z0-9A-Z]+$", length_max=BUCKET_NAME_CHARACTERS_MAX)
]
BucketOwner: TypeAlias = Annotated[str, _matching("[0-9]{12}")]
ObjectPrefix: TypeAlias = Annotated[str, msgspec.Meta(max_length=OBJECT_PREFIX_CHARACTERS_MAX)]
EncryptionKey: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
TransferTableArn: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=TABLE_ARN_CHARACTERS_MAX)]
TransferArn: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=TRANSFER_ARN_CHARACTERS_MIN, max_length=TRANSFER_ARN_CHARACTERS_MAX)
]
TransferPage: TypeAlias = Annotated[
    int, msgspec.Meta(ge=1, le=TRANSFERS_LISTED_MAX, extra={"java": "Integer"})
]
CsvDelimiter: TypeAlias = Annotated[str, _matching(r"[,;:|\t ]", 1, 1)]
CsvHeader: TypeAlias = Annotated[
    str, _matching(r"[\x20-\x21\x23-\x2B\x2D-\x7E]*", 1, CSV_HEADER_CHARACTERS_MAX)
]
_TOKEN = "([0-9a-f]{16})+"
ImportsToken: TypeAlias = Annotated[str, _matching(_TOKEN, TRANSFER_TOKEN_CHARACTERS_MIN, 1024)]
BulkToken: TypeAlias = Annotated[str, _matching(_TOKEN, 1, 1024)]
BulkWriteUnits: TypeAlias = Annotated[int, msgspec.Meta(ge=BULK_WRITE_UNITS_MIN, le=LONG_MAX)]

# In AWS's print order, where it is known.
S3SseAlgorithm: TypeAlias = Literal["AES256", "KMS"]
ExportFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION"]
ExportType: TypeAlias = Literal["FULL_EXPORT", "INCREMENTAL_EXPORT"]
ExportViewType: TypeAlias = Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"]
InputFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION", "CSV"]
BulkInputFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION"]
InputCompressionType: TypeAlias = Literal["ZSTD", "NONE", "GZIP"]
BulkOutputType: TypeAlias = Literal["ERROR", "CONDITION_CHECK_FAILURE"]
PerformanceTier: TypeAlias = Literal["STANDARD", "ACCELERATED"]


class IncrementalExportSpecification(Shape, frozen=True, kw_only=True):
    """The period of an incremental export (start inclusive, end exclusive) and the images it contains."""

    export_from_time: Timestamp | None = None
    export_to_time: Timestamp | None = None
    export_view_type: ExportViewType | None = None


class FilterSpecification(Shape, frozen=True, kw_only=True):
    """Which items are exported, and which of their attributes."""

    filter_expression: str | None = None
    projection_expression: str | None = None
    key_condition_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None
    expression_attribute_values: AttributeMap | None = None


class ExportTableToPointInTimeRequest(Shape, frozen=True, kw_only=True):
    """The request of ExportTableToPointInTime."""

    table_arn: TransferTableArn
    export_time: Timestamp | None = None
    client_token: ClientToken | None = None
    s3_bucket: BucketName
    s3_bucket_owner: BucketOwner | None = None
    s3_prefix: ObjectPrefix | None = None
    s3_sse_algorithm: S3SseAlgorithm | None = None
    s3_sse_kms_key_id: EncryptionKey | None = None
    export_format: ExportFormat | None = None
    export_type: ExportType | None = None
    incremental_export_specification: IncrementalExportSpecification | None = None
    filter_specification: FilterSpecification | None = None


class DescribeExportRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeExport."""

    export_arn: TransferArn


class ListExportsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListExports."""

    table_arn: TransferTableArn | None = None
    max_results: TransferPage | None = None
    next_token: str | None = None


class S3BucketSource(Shape, frozen=True, kw_only=True):
    """The location of an import's files."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: BucketName
    s3_key_prefix: ObjectPrefix | None = None


class CsvOptions(Shape, frozen=True, kw_only=True):
    """How CSV is parsed: delimiter, and column names if the files have no header."""

    delimiter: CsvDelimiter | None = None
    header_list: Annotated[list[CsvHeader], msgspec.Meta(min_length=1, max_length=CSV_HEADERS_MAX)] | None = (
        None
    )


class InputFormatOptions(Shape, frozen=True, kw_only=True):
    """The format options of an import's files."""

    csv: CsvOptions | None = None


class TableCreationParameters(Shape, frozen=True, kw_only=True):
    """The table that an import creates."""

    table_name: NewTableName
    attribute_definitions: list[AttributeDefinition]
    key_schema: Annotated[list[KeySchemaElement], TABLE_KEY_SCHEMA]
    billing_mode: BillingMode | None = None
    provisioned_throughput: ProvisionedThroughput | None = None
    on_demand_throughput: OnDemandThroughput | None = None
    sse_specification: SSESpecification | None = msgspec.field(name="SSESpecification", default=None)
    global_secondary_indexes: list[GlobalSecondaryIndex] | None = None
    vector_indexes: list[VectorIndex] | None = None


class ImportTableRequest(Shape, frozen=True, kw_only=True):
    """The request of ImportTable."""

    client_token: ClientToken | None = None
    s3_bucket_source: S3BucketSource
    input_format: InputFormat
    input_format_options: InputFormatOptions | None = None
    input_compression_type: InputCompressionType | None = None
    table_creation_parameters: TableCreationParameters


class DescribeImportRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeImport."""

    import_arn: TransferArn


class ListImportsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListImports."""

    table_arn: TransferTableArn | None = None
    page_size: TransferPage | None = None
    next_token: ImportsToken | None = None


class InputS3Configuration(Shape, frozen=True, kw_only=True):
    """The location and format of a bulk load's files."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: BucketName
    s3_key_prefix: ObjectPrefix | None = None
    input_format: BulkInputFormat
    input_compression_type: InputCompressionType | None = None


class OutputS3Configuration(Shape, frozen=True, kw_only=True):
    """The location and content of a bulk load's report."""

    s3_bucket_owner: BucketOwner | None = None
    s3_bucket: BucketName | None = None
    s3_key_prefix: ObjectPrefix | None = None
    s3_sse_algorithm: S3SseAlgorithm | None = None
    s3_sse_kms_key_id: EncryptionKey | None = None
    output_type: list[BulkOutputType]


class StartBulkPutItemsRequest(Shape, frozen=True, kw_only=True):
    """The request of StartBulkPutItems."""

    client_token: ClientToken | None = None
    input_s3_configuration: InputS3Configuration
    output_s3_configuration: OutputS3Configuration
    table_name: TransferTableArn
    max_write_request_units: BulkWriteUnits | None = None
    performance_tier: PerformanceTier | None = None


class DescribeBulkOperationRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeBulkOperation."""

    bulk_operation_arn: TransferArn


class CancelBulkOperationRequest(Shape, frozen=True, kw_only=True):
    """The request of CancelBulkOperation."""

    bulk_operation_arn: TransferArn


class ListBulkOperationsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListBulkOperations."""

    max_results: TransferPage | None = None
    next_token: BulkToken | None = None


def check_export(request: ExportTableToPointInTimeRequest, wording: MessageStyle) -> None:
    """Reject an invalid table ARN, and contradictory settings."""
    if not is_table_arn(request.table_arn):
        if parse_resource_arn(request.table_arn) is not None:
            raise ValidationFault("Invalid Request: Table ARN is invalid.")
        raise ValidationFault(f"{_INVALID}tableArn is not a valid ARN")
    _check_key(request.s3_sse_algorithm, request.s3_sse_kms_key_id)
    period = request.incremental_export_specification
    incremental = request.export_type == "INCREMENTAL_EXPORT"
    if period is not None and not incremental:
        if request.export_type is None:
            raise ValidationFault(
                "Invalid Request: Export Type expected to be Incremental Export when incremental export "
                "specification is provided"
            )
        raise ValidationFault(
            "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not "
            "be provided"
        )
    if incremental and period is None:
        raise ValidationFault(
            "Invalid Request: Incremental Export Specification expected when export type is set as "
            "Incremental Export"
        )
    if period is not None and period.export_from_time is None:
        raise ValidationFault(
            "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification"
        )
    specification = request.filter_specification
    if specification is not None and not msgspec.to_builtins(specification):
        raise ValidationFault(
            "Invalid Request: Invalid FilterSpecification: The specification can not be empty"
        )


def check_describe_export(request: DescribeExportRequest, wording: MessageStyle) -> None:
    """Reject an invalid export ARN."""
    check_transfer_arn(request.export_arn, "export")


def check_describe_import(request: DescribeImportRequest, wording: MessageStyle) -> None:
    """Reject an invalid import ARN."""
    check_transfer_arn(request.import_arn, "import")


def check_bulk_arn(
    request: DescribeBulkOperationRequest | CancelBulkOperationRequest, wording: MessageStyle
) -> None:
    """Reject an invalid bulk operation ARN."""
    check_transfer_arn(request.bulk_operation_arn, "bulk-operation")


def check_transfer_arn(arn: str, kind: str) -> None:
    """Reject an ARN of another kind of resource."""
    parts = parse_resource_arn(arn)
    if parts is None or parts.kind != kind:
        noun = {"export": "Export", "import": "Import"}.get(kind, "Bulk Operation")
        raise ValidationFault(f"Invalid {noun} ARN")


def check_import(request: ImportTableRequest, wording: MessageStyle) -> None:
    """Reject an invalid table definition, and options of another format."""
    options = request.input_format_options
    if options is not None and options.csv is not None and request.input_format != "CSV":
        raise ValidationFault(
            "Invalid Request: Unsupported InputFormatOptions for the given input format: "
            f"{request.input_format}."
        )
    check_create(create_table_request(request.table_creation_parameters), wording)


def create_table_request(parameters: TableCreationParameters) -> CreateTableRequest:
    """Return the CreateTable request for the table that an import creates."""
    return msgspec.convert(msgspec.to_builtins(parameters), CreateTableRequest)


def check_bulk(request: StartBulkPutItemsRequest, wording: MessageStyle) -> None:
    """Reject an invalid table name, and an encryption key without encryption."""
    if not is_control_table(request.table_name):
        raise ValidationFault(f"{_INVALID}TableName is not a valid table name or ARN")
    output = request.output_s3_configuration
    _check_key(output.s3_sse_algorithm, output.s3_sse_kms_key_id)
    if not output.output_type:
        raise ValidationFault(f"{_INVALID}OutputType must be ERROR, CONDITION_CHECK_FAILURE or both")


def _check_key(algorithm: str | None, key: str | None) -> None:
    if key is not None and algorithm != "KMS":
        raise ValidationFault("Invalid Request: KMS Key Id is not supported for this encryption type")

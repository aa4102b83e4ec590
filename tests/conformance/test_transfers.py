"""Exports, imports and bulk loads: tables to files of a bucket and back."""

from __future__ import annotations

import gzip
import hashlib
import json
import uuid
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import Answer, Backend
from tests.conformance.requests import (
    OOM,
    TRIES_MAX,
    Refusal,
    item,
    items_of,
    put,
    refused,
    table_request,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
Fresh = Callable[[], str]
SendRaw = Callable[..., Answer]

EVERY_TYPE: list[dict[str, Any]] = [
    item(pk="text", s="é😀\n\t\"'\\ \0", empty={"S": ""}),
    item(pk="numbers", n=0, big={"N": "9" * 38}, small={"N": "0." + "0" * 129 + "1"}, minus={"N": "-1.50"}),
    item(pk="binary", b={"B": b"\x00\xff"}, none={"B": b""}),
    item(pk="flags", yes={"BOOL": True}, no={"BOOL": False}, nil={"NULL": True}),
    item(pk="sets", ss={"SS": ["b", "a"]}, ns={"NS": ["2", "1.5"]}, bs={"BS": [b"x", b"y"]}),
    item(pk="nested", m={"M": {"a b": {"L": [{"M": {"'": {"N": "1"}}}, {"L": []}]}}}, l={"L": []}),
    item(pk="names", **{"null": "x", "$ion_1_0": "y", "1": "z", "ключ": "w"}),
]


@pytest.fixture
def bucket(backend: Backend) -> Path:
    """A bucket that no one else uses."""
    if backend.buckets is None:
        pytest.skip("S3 of AWS is not a folder")
    folder = backend.buckets / f"b-{uuid.uuid4().hex}"
    folder.mkdir()
    return folder


def recoverable(client: DynamoDBClient, name: str) -> str:
    """Enable point-in-time recovery, and return the table's ARN."""
    client.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    return client.describe_table(TableName=name)["Table"]["TableArn"]


def settled(describe: Callable[..., Any], status: str, **arn: str) -> dict[str, Any]:
    """Return the description once the transfer has ended."""
    for _ in range(TRIES_MAX):
        answer = describe(**arn)
        (found,) = (each for name, each in answer.items() if name != "ResponseMetadata")
        if found[status] not in ("IN_PROGRESS", "CANCELLING"):
            described: dict[str, Any] = found
            return described
    raise AssertionError(f"{arn} does not end")


def export(client: DynamoDBClient, arn: str, bucket: Path, **more: Any) -> dict[str, Any]:
    """Export a table to the end."""
    begun = client.export_table_to_point_in_time(TableArn=arn, S3Bucket=bucket.name, **more)
    return settled(client.describe_export, "ExportStatus", ExportArn=begun["ExportDescription"]["ExportArn"])


def importing(bucket: Path, prefix: str, name: str, keys: str = "pk", **more: Any) -> dict[str, Any]:
    """Return the request of an import; indexes and the like are said as for `table_request`."""
    described = {key: more.pop(key) for key in ("gsi",) if key in more}
    return {
        "S3BucketSource": {"S3Bucket": bucket.name, "S3KeyPrefix": prefix},
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": table_request(name, keys, **described),
        **more,
    }


def imported(client: DynamoDBClient, request: dict[str, Any]) -> dict[str, Any]:
    """Import a table to the end."""
    begun = client.import_table(**request)["ImportTableDescription"]
    assert begun["ImportStatus"] == "IN_PROGRESS"
    return settled(client.describe_import, "ImportStatus", ImportArn=begun["ImportArn"])


def loading(bucket: Path, prefix: str, table: str, **more: Any) -> dict[str, Any]:
    """Return the request of a bulk load that reports everything."""
    source = {"S3Bucket": bucket.name, "S3KeyPrefix": prefix, "InputFormat": "DYNAMODB_JSON"}
    output = {
        "S3Bucket": bucket.name,
        "S3KeyPrefix": "out",
        "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
    }
    return {
        "TableName": table,
        "InputS3Configuration": source | more.pop("source", {}),
        "OutputS3Configuration": output,
        **more,
    }


def loaded(client: DynamoDBClient, request: dict[str, Any]) -> dict[str, Any]:
    """Load items in bulk to the end."""
    begun = client.start_bulk_put_items(**request)["BulkOperationDescription"]
    return settled(
        client.describe_bulk_operation, "BulkOperationStatus", BulkOperationArn=begun["BulkOperationArn"]
    )


def write_lines(path: Path, *lines: str) -> None:
    """Write a file of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def row(**attributes: Any) -> str:
    """Return an item as a line of DynamoDB JSON."""
    return json.dumps({"Item": item(**attributes)})


def by_key(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items with their sets in order, by their key."""
    for each in found:
        for value in each.values():
            for tag in ("SS", "NS", "BS"):
                if tag in value:
                    value[tag] = sorted(value[tag])
    return sorted(found, key=lambda each: str(each["pk"]))


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
def test_an_export_can_be_imported(
    client: DynamoDBClient, tables: Tables, fresh: Fresh, bucket: Path, format_: Any
) -> None:
    """Every type, name and number is unchanged."""
    name, copy = tables(), fresh()
    put(client, name, *EVERY_TYPE)

    done = export(client, recoverable(client, name), bucket, ExportFormat=format_, S3Prefix="exp")
    data = done["ExportManifest"].replace("manifest-summary.json", "data/")
    request = importing(bucket, data, copy, InputFormat=format_, InputCompressionType="GZIP")
    back = imported(client, request)

    assert (back["ImportStatus"], back["ImportedItemCount"], back["ErrorCount"]) == ("COMPLETED", 7, 0)
    found = by_key(items_of(client.scan, TableName=copy))
    assert found == by_key(items_of(client.scan, TableName=name))
    client.delete_table(TableName=copy)


def test_an_export_has_the_files_of_aws(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """Two manifests with their sums, an empty sign of the beginning, and gzipped data."""
    name = tables()
    put(client, name, item(pk="a"), item(pk="b"))

    done = export(client, recoverable(client, name), bucket, S3Prefix="my/exports/")

    folder = bucket / "my/exports/AWSDynamoDB" / done["ExportArn"].rpartition("/")[2]
    assert done["ExportManifest"] == f"{folder.relative_to(bucket)}/manifest-summary.json"
    assert (done["ItemCount"], done["S3SseAlgorithm"], done["ExportFormat"]) == (2, "AES256", "DYNAMODB_JSON")
    assert (folder / "_started").read_bytes() == b""
    for manifest in ("manifest-summary", "manifest-files"):
        text = (folder / f"{manifest}.json").read_bytes()
        assert (folder / f"{manifest}.md5").read_text() == b64encode(hashlib.md5(text).digest()).decode()
    summary = json.loads((folder / "manifest-summary.json").read_text())
    assert (summary["version"], summary["itemCount"], summary["exportArn"]) == (
        "2020-06-30",
        2,
        done["ExportArn"],
    )
    entries = [json.loads(line) for line in (bucket / summary["manifestFilesS3Key"]).read_text().splitlines()]
    lines: list[Any] = []
    for entry in entries:
        data = (bucket / entry["dataFileS3Key"]).read_bytes()
        assert entry["md5Checksum"] == b64encode(hashlib.md5(data).digest()).decode()
        lines += map(json.loads, gzip.decompress(data).splitlines())
    assert sorted(lines, key=str) == [{"Item": {"pk": {"S": "a"}}}, {"Item": {"pk": {"S": "b"}}}]


def test_an_empty_table_is_exported_to_an_empty_file(
    client: DynamoDBClient, tables: Tables, bucket: Path
) -> None:
    """There is a data file even so, as on AWS, which has one for each partition."""
    done = export(client, recoverable(client, tables()), bucket)

    (data,) = bucket.rglob("*.json.gz")
    assert gzip.decompress(data.read_bytes()) == b""
    assert done["ItemCount"] == 0


def test_an_export_may_be_of_some_items_and_attributes(
    client: DynamoDBClient, tables: Tables, bucket: Path, send_raw: SendRaw
) -> None:
    """A filter, a projection and a key condition restrict the export."""
    name = tables("pk sk:N")
    for number in range(6):
        put(client, name, item(pk=f"p{number % 2}", sk=number, x=number, y=number))
    arn = recoverable(client, name)
    selection = {
        "KeyConditionExpression": "pk = :p AND sk > :s",
        "FilterExpression": "#x <> :x",
        "ProjectionExpression": "sk, y",
        "ExpressionAttributeNames": {"#x": "x"},
        "ExpressionAttributeValues": {":p": {"S": "p1"}, ":s": {"N": "1"}, ":x": {"N": "5"}},
    }

    begun = send_raw(
        "ExportTableToPointInTime",
        {"TableArn": arn, "S3Bucket": bucket.name, "FilterSpecification": selection},
    )
    described = begun.body["ExportDescription"]
    settled(client.describe_export, "ExportStatus", ExportArn=described["ExportArn"])
    lines = [
        line for file in bucket.rglob("*.gz") for line in gzip.decompress(file.read_bytes()).splitlines()
    ]
    bad = send_raw(
        "ExportTableToPointInTime",
        {"TableArn": arn, "S3Bucket": bucket.name, "FilterSpecification": {"FilterExpression": "a ="}},
    )
    empty = send_raw(
        "ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": bucket.name, "FilterSpecification": {}}
    )

    assert described["FilterSpecification"] == selection
    assert [json.loads(line) for line in lines] == [{"Item": {"sk": {"N": "3"}, "y": {"N": "3"}}}]
    assert (bad.code, (bad.text or "")[:46]) == (
        "ValidationException",
        "Invalid FilterExpression: Syntax error; token:",
    )
    assert empty.text == "Invalid Request: Invalid FilterSpecification: The specification can not be empty"


def test_an_export_needs_recovery(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """Without point-in-time recovery an export is refused, whatever the bucket."""
    name = tables()
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]

    for place in (bucket.name, "nowhere"):
        assert refused(client.export_table_to_point_in_time, TableArn=arn, S3Bucket=place) == Refusal(
            "PointInTimeRecoveryUnavailableException",
            f"Point in time recovery is not enabled for table '{name}'",
            _any(),
        )


def test_an_export_is_of_a_table_of_ones_own(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """The ARN must be a table's, of this account, in this region."""
    arn = recoverable(client, tables())

    def error(named: str) -> tuple[str, str]:
        found = refused(client.export_table_to_point_in_time, TableArn=named, S3Bucket=bucket.name)
        return found.code, found.message

    missing = arn.rpartition("/")[0] + "/nowhere"
    assert error("orders") == ("ValidationException", f"{OOM}tableArn is not a valid ARN")
    assert error(f"{arn}/index/x") == ("ValidationException", "Invalid Request: Table ARN is invalid.")
    assert error(missing) == ("TableNotFoundException", f"Table not found: {missing}")
    elsewhere = arn.replace("us-east-1", "eu-west-1")
    assert error(elsewhere) == ("TableNotFoundException", f"Table not found: {elsewhere}")
    assert error(arn.replace("000000000000", "111111111111")) == ("AccessDeniedException", "Access is denied")


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        ({"ExportTime": 1.0}, "InvalidExportTimeException", "Export Time is invalid"),
        ({"ExportTime": 4e9}, "InvalidExportTimeException", "Export Time is invalid"),
        (
            {"S3SseKmsKeyId": "k"},
            "ValidationException",
            "Invalid Request: KMS Key Id is not supported for this encryption type",
        ),
        (
            {"IncrementalExportSpecification": {"ExportFromTime": 1}},
            "ValidationException",
            (
                "Invalid Request: Export Type expected to be Incremental Export when incremental export "
                "specification is provided"
            ),
        ),
        (
            {"ExportType": "FULL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": 1}},
            "ValidationException",
            (
                "Invalid Request: When Export Type is Full Export , Incremental Export Specification should not "
                "be provided"
            ),
        ),
        (
            {"ExportType": "INCREMENTAL_EXPORT"},
            "ValidationException",
            (
                "Invalid Request: Incremental Export Specification expected when export type is set as "
                "Incremental Export"
            ),
        ),
        (
            {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {}},
            "ValidationException",
            "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification",
        ),
        (
            {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": 1}},
            "InvalidExportTimeException",
            (
                "Incremental export period from time cannot be less than the table creation time : "
                "1970-01-01T00:00:01Z"
            ),
        ),
        (
            {
                "ExportType": "INCREMENTAL_EXPORT",
                "IncrementalExportSpecification": {"ExportFromTime": 1, "ExportToTime": 4e9},
            },
            "InvalidExportTimeException",
            "Incremental export period to time cannot be greater than the current time : 2096-10-02T07:06:40Z",
        ),
        (
            {"S3BucketOwner": "me"},
            "ValidationException",
            (
                "1 validation error detected: Value 'me' at 's3BucketOwner' failed to satisfy constraint: Member "
                "must satisfy regular expression pattern: [0-9]{12}"
            ),
        ),
    ],
)
def test_an_export_that_contradicts_itself_is_refused(
    client: DynamoDBClient,
    tables: Tables,
    bucket: Path,
    send_raw: SendRaw,
    request_: Any,
    code: str,
    text: str,
) -> None:
    """In AWS's words."""
    arn = recoverable(client, tables())

    answer = send_raw("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": bucket.name, **request_})

    assert (answer.code, answer.text) == (code, text)


def test_an_export_to_nowhere_fails_later(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """The request is accepted, as on AWS; the description has the reason of the failure."""
    arn = recoverable(client, tables())

    done = export(client, arn, bucket.with_name("no-such-bucket"))

    assert (done["ExportStatus"], done["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert done["FailureMessage"].startswith("The specified bucket does not exist")
    assert "ExportManifest" not in done


@pytest.mark.parametrize("prefix", ["../up", "/etc", "a/../../b", "a\0b", ".."])
def test_nothing_leads_out_of_a_bucket(
    client: DynamoDBClient, tables: Tables, bucket: Path, send_raw: SendRaw, prefix: str
) -> None:
    """Neither an export, nor an import, nor a bulk load; and no bucket is a path."""
    name = tables()
    arn = recoverable(client, name)
    export_ = {"TableArn": arn, "S3Bucket": bucket.name, "S3Prefix": prefix}
    bulk = loading(bucket, prefix, name)

    answers = [
        send_raw("ExportTableToPointInTime", export_),
        send_raw("ImportTable", importing(bucket, prefix, "another")),
        send_raw("StartBulkPutItems", bulk),
        send_raw(
            "StartBulkPutItems",
            loading(bucket, "x", name)
            | {"OutputS3Configuration": {"S3KeyPrefix": prefix, "OutputType": ["ERROR"]}},
        ),
        send_raw("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": prefix}),
        send_raw(
            "ImportTable", importing(Path(prefix), "x", "another") | {"S3BucketSource": {"S3Bucket": prefix}}
        ),
    ]

    assert [answer.code for answer in answers] == ["ValidationException"] * 6


def test_a_token_makes_one_export(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """The same request again returns the same export; a different one with its token is refused."""
    arn = recoverable(client, tables())
    request: Any = {"TableArn": arn, "S3Bucket": bucket.name, "ClientToken": uuid.uuid4().hex}

    first = client.export_table_to_point_in_time(**request)["ExportDescription"]
    second = client.export_table_to_point_in_time(**request)["ExportDescription"]
    other = refused(client.export_table_to_point_in_time, **request, S3Prefix="x")
    done = settled(client.describe_export, "ExportStatus", ExportArn=first["ExportArn"])
    third = client.export_table_to_point_in_time(**request)["ExportDescription"]

    assert second["ExportArn"] == first["ExportArn"] == third["ExportArn"]
    assert third["ExportStatus"] == done["ExportStatus"] == "COMPLETED"
    assert (other.code, other.message) == (
        "ExportConflictException",
        "Export conflict: Duplicate request detected with conflicting parameters",
    )
    assert len(list(bucket.rglob("manifest-summary.json"))) == 1


def test_a_transfer_is_described_to_its_owner(
    client: DynamoDBClient, backend: Backend, tables: Tables, bucket: Path
) -> None:
    """A transfer of another account or region and an invalid ARN have different errors."""
    done = export(client, recoverable(client, tables()), bucket)
    arn: str = done["ExportArn"]
    other_account = backend.client(account="111111111111")

    def error(call: Callable[..., Any], **named: str) -> tuple[str, str]:
        found = refused(call, **named)
        return found.code, found.message

    missing = arn[:-1] + ("0" if arn[-1] != "0" else "1")
    assert error(client.describe_export, ExportArn=missing) == (
        "ExportNotFoundException",
        f"Export not found: Export not found: {missing}",
    )
    assert error(client.describe_export, ExportArn=arn.replace("us-east-1", "eu-west-1")) == (
        "ExportNotFoundException",
        "Export not found: Invalid export arn",
    )
    assert error(client.describe_export, ExportArn=arn.replace("/export/", "/import/")) == (
        "ValidationException",
        "Invalid Export ARN",
    )
    assert error(other_account.describe_export, ExportArn=arn) == (
        "AccessDeniedException",
        "Access is denied",
    )
    assert error(client.describe_import, ImportArn=arn) == ("ValidationException", "Invalid Import ARN")
    import_arn = arn.replace("/export/", "/import/")
    assert error(client.describe_import, ImportArn=import_arn)[0] == "ImportNotFoundException"
    bulk_arn = arn.replace("/export/", "/bulk-operation/")
    for call in (client.describe_bulk_operation, client.cancel_bulk_operation):
        assert error(call, BulkOperationArn=bulk_arn)[0] == "ResourceNotFoundException"
    assert other_account.list_exports()["ExportSummaries"] == []
    other_account.close()


def test_lists_are_paged_with_separate_tokens(
    client: DynamoDBClient, backend: Backend, tables: Tables, bucket: Path, send_raw: SendRaw
) -> None:
    """The newest comes first; a token of another list, or another owner, is no token."""
    arn = recoverable(client, tables())
    made = [export(client, arn, bucket)["ExportArn"] for _ in range(3)]
    other_account = backend.client(account="111111111111")

    first = client.list_exports(TableArn=arn, MaxResults=2)
    second = client.list_exports(TableArn=arn, NextToken=first["NextToken"])
    found = [each["ExportArn"] for each in (*first["ExportSummaries"], *second["ExportSummaries"])]
    token = first["NextToken"]
    others = [
        refused(client.list_imports, NextToken=token),
        refused(client.list_bulk_operations, NextToken=token),
        refused(other_account.list_exports, NextToken=token),
        refused(client.list_exports, NextToken="0" * 112),
    ]
    other_account.close()

    assert sorted(found) == sorted(made)
    assert {each["ExportStatus"] for each in first["ExportSummaries"]} == {"COMPLETED"}
    assert {each["ExportType"] for each in first["ExportSummaries"]} == {"FULL_EXPORT"}
    assert "NextToken" not in second
    assert {error.code for error in others} == {"ValidationException"}
    assert others[0].message == f"Invalid Request: Provided nextToken is invalid: {token}"
    assert send_raw("ListExports", {"MaxResults": 26}).code == "ValidationException"


def test_an_import_fills_indexes_too(client: DynamoDBClient, fresh: Fresh, bucket: Path) -> None:
    """The table is ACTIVE with its items and their entries; its id is the one that was reported first."""
    name = fresh()
    write_lines(bucket / "in/1.json", *(row(pk=f"p{n}", g=f"g{n % 3}") for n in range(300)))

    done = imported(client, importing(bucket, "in", name, gsi={"by-g": "g"}))

    table = client.describe_table(TableName=name)["Table"]
    assert (done["ImportStatus"], done["ProcessedItemCount"], done["ImportedItemCount"]) == (
        "COMPLETED",
        300,
        300,
    )
    assert done["ProcessedSizeBytes"] == (bucket / "in/1.json").stat().st_size
    assert (table["TableStatus"], table["TableId"], table["ItemCount"]) == ("ACTIVE", done["TableId"], 300)
    found = items_of(
        client.query,
        TableName=name,
        IndexName="by-g",
        KeyConditionExpression="g = :g",
        ExpressionAttributeValues={":g": {"S": "g1"}},
    )
    assert len(found) == 100
    client.delete_table(TableName=name)


def test_a_bad_row_fails_an_import_but_imports_the_others(
    client: DynamoDBClient, fresh: Fresh, bucket: Path, backend: Backend
) -> None:
    """An invalid row or an unreadable line is reported and skipped."""
    name = fresh()
    write_lines(bucket / "in/1.json", row(pk="a"), row(no="key"), row(pk=5), row(pk="b"))
    write_lines(bucket / "in/2.json", row(pk="c"), "{nonsense", row(pk="e"))
    write_lines(bucket / "in/3.json", row(pk="d"))

    done = imported(client, importing(bucket, "in/", name))

    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert done["FailureMessage"] == (
        "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs "
        "for more details."
    )
    assert (done["ProcessedItemCount"], done["ImportedItemCount"], done["ErrorCount"]) == (8, 5, 3)
    assert {each["pk"]["S"] for each in items_of(client.scan, TableName=name)} == {"a", "b", "c", "d", "e"}
    assert backend.buckets is not None
    log = backend.buckets / ".logs/aws-dynamodb/imports" / done["ImportArn"].rpartition("/")[2] / "error"
    result = [json.loads(line) for line in log.read_text().splitlines()]
    assert result[0] == {
        "itemS3Pointer": {"bucket": bucket.name, "key": "in/1.json", "itemIndex": 1},
        "importArn": done["ImportArn"],
        "errorMessages": [f"{OOM}Missing the key pk in the item"],
    }
    assert result[1]["errorMessages"] == [f"{OOM}Type mismatch for key pk expected: S actual: N"]
    assert result[2]["itemS3Pointer"] == {"bucket": bucket.name, "key": "in/2.json", "itemIndex": 1}
    client.delete_table(TableName=name)


def test_an_import_from_nowhere_makes_no_table(client: DynamoDBClient, fresh: Fresh, bucket: Path) -> None:
    """An empty prefix is different: the table is created, and empty."""
    name, other = fresh(), fresh()

    nowhere = imported(client, importing(bucket.with_name("no-such-bucket"), "", name))
    empty = imported(client, importing(bucket, "nothing/", other))

    assert (nowhere["ImportStatus"], nowhere["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert refused(client.describe_table, TableName=name).code == "ResourceNotFoundException"
    assert empty["ImportStatus"] == "COMPLETED"
    assert client.describe_table(TableName=other)["Table"]["TableStatus"] == "ACTIVE"
    client.delete_table(TableName=other)


@pytest.mark.parametrize("compression", ["GZIP", "ZSTD"])
def test_a_file_that_is_not_compressed_as_said_is_one_error(
    client: DynamoDBClient, fresh: Fresh, bucket: Path, compression: str
) -> None:
    """It is found out when it is read, and not before."""
    name = fresh()
    write_lines(bucket / "in/1.json", row(pk="a"), row(pk="b"))

    done = imported(client, importing(bucket, "in/", name, InputCompressionType=compression))

    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert (done["ProcessedItemCount"], done["ImportedItemCount"], done["ErrorCount"]) == (1, 0, 1)
    client.delete_table(TableName=name)


def test_compressed_files_are_imported(client: DynamoDBClient, fresh: Fresh, bucket: Path) -> None:
    """Zstandard, with the extra that reads it."""
    from tavola.engine.transfer import load_zstd

    name = fresh()
    (bucket / "in").mkdir()
    (bucket / "in/1.zst").write_bytes(load_zstd().compress(f"{row(pk='a')}\n{row(pk='b')}".encode()))

    done = imported(client, importing(bucket, "in/", name, InputCompressionType="ZSTD"))

    assert (done["ImportStatus"], done["ImportedItemCount"]) == ("COMPLETED", 2)
    client.delete_table(TableName=name)


def test_csv_is_imported_with_a_header_or_without(client: DynamoDBClient, fresh: Fresh, bucket: Path) -> None:
    """Keys have their types, the rest are strings, and empty columns are absent."""
    first, second = fresh(), fresh()
    write_lines(bucket / "a.csv", "pk,sk,name,n", 'x,1,"Ann, the ""first""",5', "y,2,,")
    write_lines(bucket / "b.csv", "x;1;Ann", "y;two;Bob")
    options = {"Csv": {"Delimiter": ";", "HeaderList": ["pk", "sk", "name"]}}

    with_header = imported(client, importing(bucket, "a.csv", first, "pk sk:N", InputFormat="CSV"))
    without = imported(
        client,
        importing(bucket, "b.csv", second, "pk sk:N", InputFormat="CSV", InputFormatOptions=options),
    )

    assert with_header["ImportStatus"] == "COMPLETED"
    assert "InputFormatOptions" not in with_header
    assert by_key(items_of(client.scan, TableName=first)) == [
        {"pk": {"S": "x"}, "sk": {"N": "1"}, "name": {"S": 'Ann, the "first"'}, "n": {"S": "5"}},
        {"pk": {"S": "y"}, "sk": {"N": "2"}},
    ]
    assert (without["ImportedItemCount"], without["ErrorCount"]) == (1, 1)
    assert without["InputFormatOptions"] == options
    for name in (first, second):
        client.delete_table(TableName=name)


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"InputFormatOptions": {"Csv": {"Delimiter": ","}}},
            "Invalid Request: Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON.",
        ),
        (
            {"InputCompressionType": "BZIP2"},
            (
                "1 validation error detected: Value 'BZIP2' at 'inputCompressionType' failed to satisfy constraint: "
                "Member must satisfy enum value set: [ZSTD, NONE, GZIP]"
            ),
        ),
        (
            {"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": ";;"}}},
            (
                "2 validation errors detected: Value ';;' at 'inputFormatOptions.csv.delimiter' failed to satisfy "
                "constraint: Member must satisfy regular expression pattern: [,;:|\\t ]; Value ';;' at "
                "'inputFormatOptions.csv.delimiter' failed to satisfy constraint: Member must have length less than "
                "or equal to 1"
            ),
        ),
    ],
)
def test_an_import_that_contradicts_itself_is_refused(
    bucket: Path, send_raw: SendRaw, more: Any, text: str
) -> None:
    """In AWS's words, and before anything is made."""
    answer = send_raw("ImportTable", importing(bucket, "x", "never-made", **more))

    assert (answer.code, answer.text) == ("ValidationException", text)


def test_an_import_makes_only_a_table_that_could_be_made(bucket: Path, send_raw: SendRaw) -> None:
    """The same rules as CreateTable's, reported alike."""
    request = importing(bucket, "x", "never-made")
    del request["TableCreationParameters"]["BillingMode"]

    answer = send_raw("ImportTable", request)

    assert (answer.code, answer.text) == (
        "ValidationException",
        f"{OOM}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
    )


def test_an_import_needs_a_new_name(
    client: DynamoDBClient, tables: Tables, fresh: Fresh, bucket: Path
) -> None:
    """An existing table refuses the import, also if the same request is repeated after its end."""
    name, other = tables(), fresh()
    write_lines(bucket / "in/1.json", row(pk="a"))
    request = importing(bucket, "in/", other, ClientToken=uuid.uuid4().hex)

    taken = refused(client.import_table, **importing(bucket, "in/", name))
    done = imported(client, request)
    again = refused(client.import_table, **request)
    client.delete_table(TableName=other)
    gone = client.import_table(**request)["ImportTableDescription"]
    conflict = refused(
        client.import_table, **importing(bucket, "in/", fresh(), ClientToken=request["ClientToken"])
    )

    assert (taken.code, taken.message) == ("ResourceInUseException", f"Table already exists: {name}")
    assert (again.code, again.message) == ("ResourceInUseException", f"Table already exists: {other}")
    assert (gone["ImportArn"], gone["ImportStatus"]) == (done["ImportArn"], "COMPLETED")
    assert (conflict.code, conflict.message) == (
        "ImportConflictException",
        "Import conflict: Duplicate request detected with conflicting parameters",
    )
    assert [
        each["ImportArn"] for each in client.list_imports(TableArn=done["TableArn"])["ImportSummaryList"]
    ] == [done["ImportArn"]]


def test_imports_are_paged(client: DynamoDBClient, fresh: Fresh, bucket: Path) -> None:
    """The tokens have the form that SDKs require."""
    names = [fresh() for _ in range(3)]
    made = [imported(client, importing(bucket, "x/", name))["ImportArn"] for name in names]

    found: list[str] = []
    token: dict[str, Any] = {}
    while True:
        page = client.list_imports(PageSize=1, **token)
        found += [each["ImportArn"] for each in page["ImportSummaryList"]]
        if "NextToken" not in page or len(found) > 200:
            break
        token = {"NextToken": page["NextToken"]}
        assert len(page["NextToken"]) >= 112
        assert len(page["NextToken"]) % 16 == 0

    assert [arn for arn in found if arn in made] == made[::-1]
    for name in names:
        client.delete_table(TableName=name)


def test_a_bulk_load_writes_to_an_existing_table(
    client: DynamoDBClient, tables: Tables, bucket: Path
) -> None:
    """Stored items are replaced; a row's own condition is checked first; refusals are reported."""
    name = tables(gsi={"by-g": "g"})
    put(client, name, item(pk="a", old="1"), item(pk="b", old="1"))
    conditional = json.dumps(
        {
            "Item": item(pk="b", new="1"),
            "ConditionExpression": "#o = :o",
            "ExpressionAttributeNames": {"#o": "old"},
            "ExpressionAttributeValues": {":o": {"S": "2"}},
        }
    )
    write_lines(
        bucket / "in/1.json",
        row(pk="a", new="1"),
        conditional,
        row(pk="c", g="x"),
        row(no="key"),
        json.dumps({"Item": item(pk="d"), "ConditionExpression": "a ="}),
    )

    done = loaded(client, loading(bucket, "in/", name))

    assert done["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (done["ProcessedItemCount"], done["FailedItemCount"]) == (5, 2)
    assert done["ProcessedInputBytes"] == done["TotalInputBytes"] == (bucket / "in/1.json").stat().st_size
    assert done["BulkOperationUsage"][0]["Table"]["BulkPutBytes"] == len("panew1k") + len("pkcgx") - 0
    assert set(done["BulkOperationUsage"][0]["GlobalSecondaryIndexes"]) == {"by-g"}
    assert by_key(items_of(client.scan, TableName=name)) == [
        item(pk="a", new="1"),
        item(pk="b", old="1"),
        item(pk="c", g="x"),
    ]
    folder = bucket / "out/AWSDynamoDB" / done["BulkOperationArn"].rpartition("/")[2]
    reports = {
        kind: [
            json.loads(line)
            for line in gzip.decompress((folder / kind / "report.json.gz").read_bytes()).splitlines()
        ]
        for kind in ("ERROR", "CONDITION_CHECK_FAILURE")
    }
    assert [each["ItemIndex"] for each in reports["ERROR"]] == [3, 4]
    assert reports["CONDITION_CHECK_FAILURE"][0]["ExistingItem"] == item(pk="b", old="1")
    assert json.loads((folder / "manifest.json").read_text())["processedItemCount"] == 5


def test_a_condition_that_fails_is_no_error_of_a_bulk_load(
    client: DynamoDBClient, tables: Tables, bucket: Path
) -> None:
    """The load is COMPLETED without an error."""
    name = tables()
    put(client, name, item(pk="a"))
    line = json.dumps({"Item": item(pk="a", x="1"), "ConditionExpression": "attribute_not_exists(pk)"})
    write_lines(bucket / "in/1.json", line)

    done = loaded(client, loading(bucket, "in/", name))

    assert (done["BulkOperationStatus"], done["FailedItemCount"], done["ProcessedItemCount"]) == (
        "COMPLETED",
        0,
        1,
    )
    assert items_of(client.scan, TableName=name) == [item(pk="a")]


def test_a_token_makes_one_bulk_load(client: DynamoDBClient, tables: Tables, bucket: Path) -> None:
    """As for transactions, another payload under the token is a mismatch."""
    name = tables()
    request = loading(bucket, "in/", name, ClientToken=uuid.uuid4().hex)

    first = loaded(client, request)
    second = client.start_bulk_put_items(**request)["BulkOperationDescription"]
    other = refused(client.start_bulk_put_items, **(request | {"PerformanceTier": "ACCELERATED"}))
    late = refused(client.cancel_bulk_operation, BulkOperationArn=first["BulkOperationArn"])
    listed = client.list_bulk_operations()["BulkOperationsSummaryList"]

    assert second["BulkOperationArn"] == first["BulkOperationArn"]
    assert (first["BulkOperationStatus"], first["PerformanceTier"]) == ("COMPLETED", "STANDARD")
    assert other.code == "IdempotentParameterMismatchException"
    assert late.code == "ValidationException"
    assert first["BulkOperationArn"] in [each["BulkOperationArn"] for each in listed]


def test_a_bulk_load_needs_a_table_and_buckets(
    client: DynamoDBClient, tables: Tables, bucket: Path, send_raw: SendRaw
) -> None:
    """A missing table is refused at once, a missing bucket fails the load."""
    name = tables()

    missing = refused(client.start_bulk_put_items, **loading(bucket, "", "nowhere"))
    nowhere = loaded(client, loading(bucket.with_name("no-such-bucket"), "", name))
    slow = send_raw("StartBulkPutItems", loading(bucket, "", name, MaxWriteRequestUnits=1023))
    nothing = send_raw(
        "StartBulkPutItems", loading(bucket, "", name) | {"OutputS3Configuration": {"OutputType": []}}
    )

    assert missing.code == "ResourceNotFoundException"
    assert (nowhere["BulkOperationStatus"], nowhere["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert "greater than or equal to 1024" in str(slow.text)
    assert "OutputType" in str(nothing.text)


class _Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def _any() -> Any:
    return _Anything()

"""Laws of moving data: what is written and read again is what it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.engine import Engine
from tavola.engine.transfer.csv_rows import DELIMITERS, Columns, read_csv
from tavola.engine.transfer.errors import TextMalformed
from tavola.engine.transfer.ion import decode_ion, encode_ion
from tavola.engine.transfer.lines import TransferRow, full_line, read_ion, read_json
from tavola.values import admit_item, encode_item
from tests.properties.strategies import ITEMS, TEXT

_READ = {"DYNAMODB_JSON": read_json, "ION": read_ion}
_TABLE: dict[str, Any] = {
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@given(item=ITEMS)
def test_an_item_comes_back_from_ion(item: dict[str, Any]) -> None:
    """Every name, type and number; what is read is admitted as any item is."""
    admit_item(item)

    members, _ = decode_ion(encode_ion({"Item": item}) + "\n")

    assert members is not None
    read = members["Item"]["M"]
    admit_item(read)
    assert read == item


@given(text=st.text(st.sampled_from("${}[]:,.'\"\\ \nabdeItem019+-_/*nulltrue::"), max_size=60))
def test_no_text_breaks_the_reader_of_ion(text: str) -> None:
    """It is a struct, nothing, or malformed."""
    try:
        members, end = decode_ion(text)
    except TextMalformed:
        return
    assert members is None or 0 < end <= len(text)


@given(
    items=st.lists(ITEMS, max_size=4),
    format_=st.sampled_from(["DYNAMODB_JSON", "ION"]),
    cut=st.integers(1, 50),
)
def test_lines_are_read_whatever_pieces_they_come_in(items: list[Any], format_: Any, cut: int) -> None:
    """A reader is given more until a row is whole, and finds the same rows."""
    for item in items:
        admit_item(item)
    text = b"".join(full_line(format_, encode_item(item)) for item in items)
    found: list[Any] = []
    at = 0
    have = 0
    while True:
        span = _READ[format_](text[:have], at, last=have >= len(text))
        if span is not None:
            assert isinstance(span.row, TransferRow)
            admit_item(span.row.item)
            found.append(span.row.item)
            at = span.end
        elif have >= len(text):
            break
        else:
            have += cut

    assert found == items


_FIELD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=8)


@given(
    rows=st.lists(st.lists(_FIELD, min_size=3, max_size=3), max_size=5), delimiter=st.sampled_from(DELIMITERS)
)
def test_what_python_writes_as_csv_is_read(rows: list[list[str]], delimiter: str) -> None:
    """Quoted as they need to be, all fields come back; those that are empty are no attributes."""
    rows = [row for row in rows if any(row)]
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    data = out.getvalue().encode()
    columns = Columns(("a", "b", "c"), delimiter)

    found: list[Any] = []
    at = 0
    while (span := read_csv(data, at, columns, last=True)) is not None:
        assert isinstance(span.row, TransferRow)
        found.append(span.row.item)
        at = span.end

    assert found == [
        {name: {"S": field} for name, field in zip("abc", row, strict=True) if field} for row in rows
    ]


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
@settings(max_examples=15, deadline=None)
@given(
    items=st.lists(ITEMS, max_size=6), keys=st.lists(TEXT.filter(bool), min_size=6, max_size=6, unique=True)
)
def test_an_exported_table_can_be_imported(format_: str, items: list[Any], keys: list[str]) -> None:
    """All of it, through the engine and its files."""
    with TemporaryDirectory() as folder, Engine.open(buckets=folder, sync="off") as engine:
        (Path(folder) / "bucket").mkdir()
        arn = engine.call("CreateTable", _TABLE | {"TableName": "source"})["TableDescription"]["TableArn"]
        for item, key in zip(items, keys, strict=False):
            engine.call("PutItem", {"TableName": "source", "Item": {**item, "pk": {"S": key}}})
        recovery = {"PointInTimeRecoveryEnabled": True}
        switch = {"TableName": "source", "PointInTimeRecoverySpecification": recovery}
        engine.call("UpdateContinuousBackups", switch)
        export = {"TableArn": arn, "S3Bucket": "bucket", "ExportFormat": format_}
        begun = engine.call("ExportTableToPointInTime", export)["ExportDescription"]
        id_ = begun["ExportArn"].rpartition("/")[2]
        started = engine.call(
            "ImportTable",
            {
                "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": f"AWSDynamoDB/{id_}/data/"},
                "InputFormat": format_,
                "InputCompressionType": "GZIP",
                "TableCreationParameters": _TABLE | {"TableName": "target"},
            },
        )["ImportTableDescription"]

        done = engine.call("DescribeImport", {"ImportArn": started["ImportArn"]})["ImportTableDescription"]
        source, target = (engine.call("Scan", {"TableName": name})["Items"] for name in ("source", "target"))
        assert done["ImportStatus"] == "COMPLETED"
        assert target == source

"""Names of AWS, made and read."""

from __future__ import annotations

import pytest

from tavola.protocol.arns import (
    ResourceArn,
    Scope,
    backup_arn,
    export_arn,
    import_arn,
    index_arn,
    is_table_arn,
    parse_resource_arn,
    scope_of,
    stream_arn,
    table_arn,
    table_name_of,
)

_HOME = Scope(account="123456789012", region="eu-west-2")
_TABLE = "arn:aws:dynamodb:eu-west-2:123456789012:table/Orders"


def test_an_arn_names_the_region_the_account_and_the_table() -> None:
    """What hangs on a table is named below it."""
    assert table_arn(_HOME, "Orders") == _TABLE
    assert index_arn(_HOME, "Orders", "by-day") == f"{_TABLE}/index/by-day"
    assert (
        stream_arn(_HOME, "Orders", "2026-11-15T22:00:00.000") == f"{_TABLE}/stream/2026-11-15T22:00:00.000"
    )
    assert backup_arn(_HOME, "Orders", "01-a") == f"{_TABLE}/backup/01-a"
    assert export_arn(_HOME, "Orders", "01-a") == f"{_TABLE}/export/01-a"
    assert import_arn(_HOME, "Orders", "01-a") == f"{_TABLE}/import/01-a"


def test_a_table_is_known_by_its_name_or_its_arn() -> None:
    """Nearly every TableName takes either."""
    assert table_name_of("Orders") == "Orders"
    assert table_name_of(_TABLE) == "Orders"
    assert scope_of(_TABLE) == _HOME
    assert scope_of("Orders") is None


@pytest.mark.parametrize(
    "text",
    [
        "Orders",
        "arn:aws:dynamodb:eu-west-2:123456789012:table/ab",
        f"{_TABLE}/index/by-day",
        "arn:aws:s3:::b",
        "",
    ],
)
def test_only_a_tables_own_arn_is_one(text: str) -> None:
    """The ARN of an index, of another service or with a short name is no table's."""
    assert not is_table_arn(text)


@pytest.mark.parametrize(
    ("text", "kind", "label"),
    [
        (_TABLE, "table", None),
        (f"{_TABLE}/index/by-day", "index", "by-day"),
        (f"{_TABLE}/stream/2026-11-15T22:00:00.000", "stream", "2026-11-15T22:00:00.000"),
    ],
)
def test_an_arn_is_read_back_in_its_parts(text: str, kind: str, label: str | None) -> None:
    """Reading undoes writing."""
    assert parse_resource_arn(text) == ResourceArn("aws", _HOME, "Orders", kind, label)


def test_a_text_that_is_no_arn_has_no_parts() -> None:
    """A malformed ARN is for the caller to refuse."""
    assert parse_resource_arn("a:b:c:d:e:f/g") is None

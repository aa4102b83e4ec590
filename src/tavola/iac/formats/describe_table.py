"""DescribeTable: what `aws dynamodb describe-table` printed, alone, in a list, or with what was asked beside it.

TTL and point-in-time recovery are answers of their own. They are found in the same list, or in the same object:
an answer of one table belongs to the table before it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from tavola.iac.formats.import_result import FormatRefused, ImportReport, ImportResult
from tavola.iac.formats.source_values import as_text, report_unread, track
from tavola.iac.formats.table_definitions import NO_ENTITIES, give_tables_unique_names, read_table
from tavola.model.document import Design, TableDesign

FORMAT = "describe-table"
_NOT_DESIGN = frozenset(  # what is so of a standing table, and would be of no other
    (
        *("TableArn", "TableId", "TableStatus", "CreationDateTime", "ItemCount", "TableSizeBytes"),
        *("LatestStreamArn", "LatestStreamLabel", "IndexArn", "IndexStatus", "IndexSizeBytes", "Backfilling"),
        *("LastUpdateToPayPerRequestDateTime", "LastUpdateDateTime", "NumberOfDecreasesToday", "SSEType"),
        *(
            "LastIncreaseDateTime",
            "LastDecreaseDateTime",
            "ReplicaStatus",
            "GlobalTableVersion",
            "ReplicaArn",
        ),
        *(
            "ContinuousBackupsStatus",
            "EarliestRestorableDateTime",
            "LatestRestorableDateTime",
            "ReplicaTableClassSummary",
        ),
        *(
            "ResponseMetadata",
            "NextToken",
            "Status",
            "ReplicaStatusDescription",
            "InaccessibleEncryptionDateTime",
        ),
    )
)
_SEPARATE_SETTINGS = (  # as CreateTable would have it, the command that tells it, and what a design calls it
    ("TimeToLiveSpecification", "describe-time-to-live", "ttl"),
    ("PointInTimeRecoverySpecification", "describe-continuous-backups", "recovery"),
    ("Tags", "list-tags-of-resource", "tags"),
)
_ANSWERS = ("Table", "TableDescription", "TimeToLiveDescription", "ContinuousBackupsDescription", "Tags")


def is_description(raw: Any) -> bool:
    """Tell whether data is a table's description or the body of CreateTable, or a list with one."""
    if isinstance(raw, list):
        return any(map(is_description, raw))
    if not isinstance(raw, Mapping):
        return False
    return any(isinstance(raw.get(name), Mapping) for name in _ANSWERS[:2]) or (
        "TableName" in raw and isinstance(raw.get("KeySchema"), list)
    )


def read_description(raw: Any) -> ImportResult:
    """Return the design of the tables that are described."""
    report = ImportReport()
    answers = track(raw if isinstance(raw, list) else [raw])
    bodies = list(_bodies(answers, report))
    if not bodies:
        raise FormatRefused("there is no description of a table in it; name the output of describe-table")
    tables = give_tables_unique_names([_table(body, place, report) for place, body in bodies], report)
    for place, body in bodies:
        for word, call, _ in _SEPARATE_SETTINGS:
            if word not in body:
                report.add(
                    place,
                    f"{call} is not in it, so its setting is unknown; put its output behind it, into one list",
                )
    several = isinstance(raw, list)
    for at, answer in enumerate(answers):
        report_unread(answer, f"[{at}]" if several else "", report, ignore=_NOT_DESIGN)
    report.add("", NO_ENTITIES)
    return ImportResult(Design(tables), report.notes, FORMAT)


def _table(body: Mapping[str, Any], place: str, report: ImportReport) -> TableDesign:
    """Return a table; what other operations tell of it, and were not asked for, is unknown."""
    table = read_table(body, place, report)
    unknown = tuple(setting for word, _, setting in _SEPARATE_SETTINGS if word not in body)
    settings = replace(table.settings, unknown=(*table.settings.unknown, *unknown))
    return replace(table, settings=settings)


def _bodies(answers: list[Any], report: ImportReport) -> Iterator[tuple[str, ChainMap[str, Any]]]:
    """Give each table as CreateTable would have it, with its place."""
    current: tuple[str, ChainMap[str, Any]] | None = None
    for at, answer in enumerate(answers):
        place = f"[{at}]"
        if not isinstance(answer, Mapping):
            report.add(place, "it is no answer about a table, so it is left out")
            continue
        described = next(
            (answer[name] for name in _ANSWERS[:2] if isinstance(answer.get(name), Mapping)), None
        )
        if described is None and "KeySchema" in answer:
            described = answer
        if described is not None:
            if current is not None:
                yield current
            current = (as_text(described.get("TableName")) or place, _body(described))
        if current is None:
            report.add(place, "no table stands before it that it could be about, so it is left out")
            continue
        _add_settings(answer, current[1])
    if current is not None:
        yield current


def _body(described: Mapping[str, Any]) -> ChainMap[str, Any]:
    body: dict[str, Any] = {}
    billing = described.get("BillingModeSummary")
    if isinstance(billing, Mapping):
        body["BillingMode"] = billing.get("BillingMode")
    elif "BillingMode" not in described:
        body["BillingMode"] = "PROVISIONED"  # a description says it of the other mode alone
    summary = described.get("TableClassSummary")
    if isinstance(summary, Mapping):
        body["TableClass"] = summary.get("TableClass")
    encryption = described.get("SSEDescription")
    if isinstance(encryption, Mapping):
        body["SSESpecification"] = {
            "SSEEnabled": encryption.get("Status") in ("ENABLED", "ENABLING", "UPDATING"),
            "KMSMasterKeyId": encryption.get("KMSMasterKeyArn"),
        }
    return ChainMap(body, cast(Any, described))


def _add_settings(answer: Mapping[str, Any], body: ChainMap[str, Any]) -> None:
    """Put what other operations answered about a table to its definition."""
    ttl = answer.get("TimeToLiveDescription")
    if isinstance(ttl, Mapping):
        body["TimeToLiveSpecification"] = {
            "Enabled": ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"),
            "AttributeName": ttl.get("AttributeName"),
        }
    backups = answer.get("ContinuousBackupsDescription")
    if isinstance(backups, Mapping):
        recovery = backups.get("PointInTimeRecoveryDescription")
        description = recovery if isinstance(recovery, Mapping) else {}
        body["PointInTimeRecoverySpecification"] = {
            "PointInTimeRecoveryEnabled": description.get("PointInTimeRecoveryStatus") == "ENABLED",
            "RecoveryPeriodInDays": description.get("RecoveryPeriodInDays"),
        }
    tags = answer.get("Tags")
    if isinstance(tags, list):
        body["Tags"] = tags

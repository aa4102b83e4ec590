"""Read the output of `aws dynamodb describe-table`, alone or in a list with the output of related commands.

describe-time-to-live, describe-continuous-backups and list-tags-of-resource are separate responses. They may be merged into the
same object or follow in the same list: such a response belongs to the table before it.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult
from tavola.iac.formats.source_values import as_text, report_unread, track
from tavola.iac.formats.table_definitions import NO_ENTITIES, give_tables_unique_names, read_table
from tavola.model.document import Design, TableDesign

FORMAT = "describe-table"
_NOT_DESIGN = frozenset(  # the state of a deployed table, which is no part of its definition
    """
    TableArn TableId TableStatus CreationDateTime ItemCount TableSizeBytes LatestStreamArn
    LatestStreamLabel IndexArn IndexStatus IndexSizeBytes Backfilling LastUpdateToPayPerRequestDateTime
    LastUpdateDateTime NumberOfDecreasesToday SSEType LastIncreaseDateTime LastDecreaseDateTime
    ReplicaStatus GlobalTableVersion ReplicaArn ContinuousBackupsStatus EarliestRestorableDateTime
    LatestRestorableDateTime ReplicaTableClassSummary ResponseMetadata NextToken Status
    ReplicaStatusDescription InaccessibleEncryptionDateTime
    """.split()
)
_SEPARATE_SETTINGS = (  # member in CreateTable's style, the command that prints it, the design's name
    ("TimeToLiveSpecification", "describe-time-to-live", "ttl"),
    ("PointInTimeRecoverySpecification", "describe-continuous-backups", "recovery"),
    ("Tags", "list-tags-of-resource", "tags"),
)
_RESPONSES = ("Table", "TableDescription", "TimeToLiveDescription", "ContinuousBackupsDescription", "Tags")


def is_description(raw: Any) -> bool:
    """Return whether data is a table description or a CreateTable body, or a list with one."""
    if isinstance(raw, list):
        return any(map(is_description, raw))
    if not isinstance(raw, Mapping):
        return False
    return any(isinstance(raw.get(name), Mapping) for name in _RESPONSES[:2]) or (
        "TableName" in raw and isinstance(raw.get("KeySchema"), list)
    )


def read_description(raw: Any) -> ImportResult:
    """Return the design of the tables that are description."""
    report = ImportReport()
    responses = track(raw if isinstance(raw, list) else [raw])
    bodies = list(_bodies(responses, report, single=not isinstance(raw, list)))
    if not bodies:
        raise FormatError("no table description found; expected the output of aws dynamodb describe-table")
    tables = give_tables_unique_names([_table(body, place, report) for place, body in bodies], report)
    for place, body in bodies:
        for word, call, _ in _SEPARATE_SETTINGS:
            if word not in body:
                report.add(
                    place,
                    f"the output of {call} is missing, so this setting is unknown; add that output to the file, in a list after the table",
                )
    is_list = isinstance(raw, list)
    for position, response in enumerate(responses):
        report_unread(response, f"[{position}]" if is_list else "", report, ignore=_NOT_DESIGN)
    report.add("", NO_ENTITIES)
    return ImportResult(Design(tables), report.notes, FORMAT)


def _table(body: Mapping[str, Any], place: str, report: ImportReport) -> TableDesign:
    """Return a table; settings whose separate response is missing are recorded as unknown."""
    table = read_table(body, place, report)
    unknown = tuple(setting for word, _, setting in _SEPARATE_SETTINGS if word not in body)
    settings = replace(table.settings, unknown=(*table.settings.unknown, *unknown))
    return replace(table, settings=settings)


def _bodies(
    responses: list[Any], report: ImportReport, *, single: bool
) -> Iterator[tuple[str, ChainMap[str, Any]]]:
    """Yield the place and the CreateTable body of each table."""
    current: tuple[str, ChainMap[str, Any]] | None = None
    for position, response in enumerate(responses):
        place = "Table" if single else f"[{position}]"
        if not isinstance(response, Mapping):
            report.add(place, "ignored: not a response of describe-table or a related command")
            continue
        description = next(
            (response[name] for name in _RESPONSES[:2] if isinstance(response.get(name), Mapping)), None
        )
        if description is None and "KeySchema" in response:
            description = response
        if description is not None:
            if current is not None:
                yield current
            current = (as_text(description.get("TableName")) or place, _body(description))
        if current is None:
            report.add(place, "ignored: no table precedes it")
            continue
        _add_settings(response, current[1])
    if current is not None:
        yield current


def _body(description: Mapping[str, Any]) -> ChainMap[str, Any]:
    body: dict[str, Any] = {}
    billing = description.get("BillingModeSummary")
    if isinstance(billing, Mapping):
        body["BillingMode"] = billing.get("BillingMode")
    elif "BillingMode" not in description:
        body["BillingMode"] = "PROVISIONED"  # DescribeTable states only the on-demand mode
    summary = description.get("TableClassSummary")
    if isinstance(summary, Mapping):
        body["TableClass"] = summary.get("TableClass")
    encryption = description.get("SSEDescription")
    if isinstance(encryption, Mapping):
        body["SSESpecification"] = {
            "SSEEnabled": encryption.get("Status") in ("ENABLED", "ENABLING", "UPDATING"),
            "KMSMasterKeyId": encryption.get("KMSMasterKeyArn"),
        }
    return ChainMap(body, cast(Any, description))


def _add_settings(response: Mapping[str, Any], body: ChainMap[str, Any]) -> None:
    """Add the settings of a separate response to a table's body."""
    ttl = response.get("TimeToLiveDescription")
    if isinstance(ttl, Mapping):
        body["TimeToLiveSpecification"] = {
            "Enabled": ttl.get("TimeToLiveStatus") in ("ENABLED", "ENABLING"),
            "AttributeName": ttl.get("AttributeName"),
        }
    backups = response.get("ContinuousBackupsDescription")
    if isinstance(backups, Mapping):
        recovery = backups.get("PointInTimeRecoveryDescription")
        description = recovery if isinstance(recovery, Mapping) else {}
        body["PointInTimeRecoverySpecification"] = {
            "PointInTimeRecoveryEnabled": description.get("PointInTimeRecoveryStatus") == "ENABLED",
            "RecoveryPeriodInDays": description.get("RecoveryPeriodInDays"),
        }
    tags = response.get("Tags")
    if isinstance(tags, list):
        body["Tags"] = tags

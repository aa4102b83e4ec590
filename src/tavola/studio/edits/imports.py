"""Write parsed records to a table and report every record that was not written.

A record whose key exists is rejected, skipped or replaced, as the user chose. DynamoDB decides that in the conditional write
itself, so "refuse" and "skip" never lose a concurrent write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tavola.errors import TavolaError
from tavola.limits import BATCH_WRITE_REQUESTS_MAX
from tavola.protocol.faults import ConditionalCheckFailedFault
from tavola.studio.edits.files import ParsedRecord
from tavola.studio.edits.requests import call_with_retries, put_new
from tavola.studio.edits.selections import get_items
from tavola.studio.edits.validation import key_issues, size_issues, validate_item
from tavola.studio.edits.writes import response_units
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio
from tavola.studio.table_layouts import TableLayout
from tavola.values import Item

ImportMode = Literal["refuse", "replace", "skip"]
"""What to do with a record whose key exists: report it as failed, replace the item, or skip the record."""

_CONCURRENCY = 16
_TRIES = 8
_FIRST_DELAY_S = 0.05


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A record that was not written: its line, the reason, and its source text, so that nothing is lost."""

    line: int
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class ReadyRecord:
    """A valid record."""

    line: int
    item: Item
    source: str


@dataclass(slots=True)
class ImportTally:
    """The result of writing the records of a piece."""

    written: int = 0
    skipped: int = 0
    units: float = 0.0
    failures: list[ImportFailure] = field(default_factory=list)


def validate_records(
    layout: TableLayout, records: Sequence[ParsedRecord]
) -> tuple[list[ReadyRecord], list[ImportFailure]]:
    """Return the valid records, and the others with the reason."""
    ready: list[ReadyRecord] = []
    failures: list[ImportFailure] = []
    for record in records:
        if record.item is None:
            failures.append(ImportFailure(record.line, record.error, record.source))
            continue
        admission = validate_item(record.item)
        issues = [*admission.issues]
        if not issues:
            issues += [*key_issues(layout, admission.item), *size_issues(admission.bytes)]
        if issues:
            failures.append(ImportFailure(record.line, str(issues[0]), record.source))
        else:
            ready.append(ReadyRecord(record.line, admission.item, record.source))
    return ready, failures


async def existing_keys(
    studio: Studio, layout: TableLayout, ready: Sequence[ReadyRecord]
) -> set[tuple[str, ...]]:
    """Return the identities of records whose keys exist in the table."""
    keys = [layout.key_of(record.item) for record in ready]
    items, _ = await get_items(studio.db, layout, keys, consistent=False, bare=True)
    return {layout.identity_of(item) for item in items}


async def write_records(
    studio: Studio, layout: TableLayout, ready: Sequence[ReadyRecord], mode: ImportMode
) -> ImportTally:
    """Write records one by one or in batches; failures are recorded and do not stop the import."""
    tally = ImportTally()
    if mode == "replace":
        for batch in _group_records(layout, ready, BATCH_WRITE_REQUESTS_MAX):
            await _replace(studio, layout, batch, tally)
        return tally
    for group in _group_records(layout, ready, _CONCURRENCY):
        outcomes = await asyncio.gather(*(_put(studio, layout, record, tally) for record in group))
        for record, reason in zip(group, outcomes, strict=True):
            if reason is None and mode == "skip":
                tally.skipped += 1
            elif reason != "":
                message = reason or "An item with this key already exists; it was not changed."
                tally.failures.append(ImportFailure(record.line, message, record.source))
    return tally


def _group_records(
    layout: TableLayout, ready: Sequence[ReadyRecord], size_max: int
) -> list[list[ReadyRecord]]:
    """Return consecutive groups without duplicate keys, so that duplicates are written in file order."""
    groups: list[list[ReadyRecord]] = []
    identities: set[tuple[str, ...]] = set()
    for record in ready:
        identity = layout.identity_of(record.item)
        if not groups or len(groups[-1]) == size_max or identity in identities:
            groups.append([])
            identities = set()
        groups[-1].append(record)
        identities.add(identity)
    return groups


async def _put(studio: Studio, layout: TableLayout, record: ReadyRecord, tally: ImportTally) -> str | None:
    """Write a new item; return "" if written, None if the key exists, else the error."""
    request = put_new(layout.table, record.item, layout.schema.names[0])
    del request["ReturnValuesOnConditionCheckFailure"]
    request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        answer = await call_with_retries(studio.db, "PutItem", request)
    except ConditionalCheckFailedFault:
        return None
    except TavolaError as error:
        return _describe_error(error)
    tally.written += 1
    tally.units += response_units(answer)
    return ""


async def _replace(studio: Studio, layout: TableLayout, batch: list[ReadyRecord], tally: ImportTally) -> None:
    lines = {layout.identity_of(record.item): record for record in batch}
    pending: list[dict[str, Any]] = [{"PutRequest": {"Item": record.item}} for record in batch]
    reason = "Throttled: import this record again."
    for attempt in range(_TRIES):
        try:
            request = {"RequestItems": {layout.table: pending}, "ReturnConsumedCapacity": "TOTAL"}
            answer = await call_with_retries(studio.db, "BatchWriteItem", request)
        except TavolaError as error:
            reason = _describe_error(error)
            break
        before = len(pending)
        pending = answer.get("UnprocessedItems", {}).get(layout.table, [])
        tally.written += before - len(pending)
        tally.units += response_units(answer)
        if not pending:
            return
        await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
    for undone in pending:
        returned_record = lines[layout.identity_of(undone["PutRequest"]["Item"])]
        tally.failures.append(ImportFailure(returned_record.line, reason, returned_record.source))


def _describe_error(error: TavolaError) -> str:
    problem = problem_of(error)
    return f"{problem.title}: {problem.detail}"

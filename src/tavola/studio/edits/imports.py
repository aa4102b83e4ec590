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
"""What becomes of a record whose key is taken: it is refused and told, it takes the place, or it is passed over."""

_CONCURRENCY = 16
_TRIES = 8
_FIRST_DELAY_S = 0.05


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A record that was not written: its line, why, and the record itself, so that nothing is lost."""

    line: int
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class ReadyRecord:
    """A record that DynamoDB would take."""

    line: int
    item: Item
    source: str


@dataclass(slots=True)
class ImportTally:
    """What became of the records of a piece."""

    written: int = 0
    skipped: int = 0
    units: float = 0.0
    failures: list[ImportFailure] = field(default_factory=list)


def validate_records(
    layout: TableLayout, records: Sequence[ParsedRecord]
) -> tuple[list[ReadyRecord], list[ImportFailure]]:
    """Return the records that DynamoDB would take, and the others with the reason."""
    ready: list[ReadyRecord] = []
    failures: list[ImportFailure] = []
    for record in records:
        if record.item is None:
            failures.append(ImportFailure(record.line, record.error, record.source))
            continue
        admission = validate_item(record.item)
        flaws = [*admission.issues]
        if not flaws:
            flaws += [*key_issues(layout, admission.item), *size_issues(admission.bytes)]
        if flaws:
            place = ".".join(flaws[0].path)
            reason = f"{place}: {flaws[0].text}" if place else flaws[0].text
            failures.append(ImportFailure(record.line, reason, record.source))
        else:
            ready.append(ReadyRecord(record.line, admission.item, record.source))
    return ready, failures


async def existing_keys(
    studio: Studio, layout: TableLayout, ready: Sequence[ReadyRecord]
) -> set[tuple[str, ...]]:
    """Return the places of records whose keys are taken."""
    keys = [layout.key_of(each.item) for each in ready]
    items, _ = await get_items(studio.db, layout, keys, consistent=False, bare=True)
    return {layout.identity_of(item) for item in items}


async def write_records(
    studio: Studio, layout: TableLayout, ready: Sequence[ReadyRecord], mode: ImportMode
) -> ImportTally:
    """Write records, each for itself or in batches; what fails is told and the rest goes on."""
    tally = ImportTally()
    if mode == "replace":
        for batch in _batches(layout, ready):
            await _replace(studio, layout, batch, tally)
        return tally
    for wave in _waves(layout, ready):
        outcomes = await asyncio.gather(*(_put(studio, layout, each, tally) for each in wave))
        for each, reason in zip(wave, outcomes, strict=True):
            if reason is None and mode == "skip":
                tally.skipped += 1
            elif reason != "":
                message = reason or "An item with this key is there already; it was left as it is."
                tally.failures.append(ImportFailure(each.line, message, each.source))
    return tally


def _waves(layout: TableLayout, ready: Sequence[ReadyRecord]) -> list[list[ReadyRecord]]:
    """Return the records in runs that have no key twice, so that of two the first in the file is the first written."""
    return _runs(layout, ready, _CONCURRENCY)


def _batches(layout: TableLayout, ready: Sequence[ReadyRecord]) -> list[list[ReadyRecord]]:
    return _runs(layout, ready, BATCH_WRITE_REQUESTS_MAX)


def _runs(layout: TableLayout, ready: Sequence[ReadyRecord], most: int) -> list[list[ReadyRecord]]:
    runs: list[list[ReadyRecord]] = []
    identities: set[tuple[str, ...]] = set()
    for each in ready:
        place = layout.identity_of(each.item)
        if not runs or len(runs[-1]) == most or place in identities:
            runs.append([])
            identities = set()
        runs[-1].append(each)
        identities.add(place)
    return runs


async def _put(studio: Studio, layout: TableLayout, each: ReadyRecord, tally: ImportTally) -> str | None:
    """Write a record where none is; return "" if it was, None if the key is taken, else the reason."""
    request = put_new(layout.table, each.item, layout.schema.names[0])
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
    lines = {layout.identity_of(each.item): each for each in batch}
    pending: list[dict[str, Any]] = [{"PutRequest": {"Item": each.item}} for each in batch]
    reason = "Throttled: the table took no more; import this record again."
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
        each = lines[layout.identity_of(undone["PutRequest"]["Item"])]
        tally.failures.append(ImportFailure(each.line, reason, each.source))


def _describe_error(error: TavolaError) -> str:
    problem = problem_of(error)
    return f"{problem.title}: {problem.detail}"

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
from tavola.studio.edits.files import Parsed
from tavola.studio.edits.layouts import Layout
from tavola.studio.edits.requests import put_new
from tavola.studio.edits.retries import patiently
from tavola.studio.edits.selections import get_items
from tavola.studio.edits.validation import admit, key_flaws, size_flaws
from tavola.studio.edits.writes import units_in
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio
from tavola.values import Item

ImportMode = Literal["refuse", "replace", "skip"]
"""What becomes of a record whose key is taken: it is refused and told, it takes the place, or it is passed over."""

_ABREAST = 16
_TRIES = 8
_FIRST_DELAY_S = 0.05


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A record that was not written: its line, why, and the record itself, so that nothing is lost."""

    line: int
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A record that DynamoDB would take."""

    line: int
    item: Item
    source: str


@dataclass(slots=True)
class Tally:
    """What became of the records of a piece."""

    written: int = 0
    skipped: int = 0
    units: float = 0.0
    failures: list[ImportFailure] = field(default_factory=list)


def judge(layout: Layout, records: Sequence[Parsed]) -> tuple[list[Ready], list[ImportFailure]]:
    """Return the records that DynamoDB would take, and the others with the reason."""
    ready: list[Ready] = []
    failures: list[ImportFailure] = []
    for record in records:
        if record.item is None:
            failures.append(ImportFailure(record.line, record.flaw, record.source))
            continue
        admission = admit(record.item)
        flaws = [*admission.flaws]
        if not flaws:
            flaws += [*key_flaws(layout, admission.item), *size_flaws(admission.bytes)]
        if flaws:
            place = ".".join(flaws[0].path)
            reason = f"{place}: {flaws[0].text}" if place else flaws[0].text
            failures.append(ImportFailure(record.line, reason, record.source))
        else:
            ready.append(Ready(record.line, admission.item, record.source))
    return ready, failures


async def existing(studio: Studio, layout: Layout, ready: Sequence[Ready]) -> set[tuple[str, ...]]:
    """Return the places of records whose keys are taken."""
    keys = [layout.key_of(each.item) for each in ready]
    found, _ = await get_items(studio.db, layout, keys, consistent=False, bare=True)
    return {layout.place_of(item) for item in found}


async def load(studio: Studio, layout: Layout, ready: Sequence[Ready], mode: ImportMode) -> Tally:
    """Write records, each for itself or in batches; what fails is told and the rest goes on."""
    tally = Tally()
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
                told = reason or "An item with this key is there already; it was left as it is."
                tally.failures.append(ImportFailure(each.line, told, each.source))
    return tally


def _waves(layout: Layout, ready: Sequence[Ready]) -> list[list[Ready]]:
    """Return the records in runs that have no key twice, so that of two the first in the file is the first written."""
    return _runs(layout, ready, _ABREAST)


def _batches(layout: Layout, ready: Sequence[Ready]) -> list[list[Ready]]:
    return _runs(layout, ready, BATCH_WRITE_REQUESTS_MAX)


def _runs(layout: Layout, ready: Sequence[Ready], most: int) -> list[list[Ready]]:
    runs: list[list[Ready]] = []
    seen: set[tuple[str, ...]] = set()
    for each in ready:
        place = layout.place_of(each.item)
        if not runs or len(runs[-1]) == most or place in seen:
            runs.append([])
            seen = set()
        runs[-1].append(each)
        seen.add(place)
    return runs


async def _put(studio: Studio, layout: Layout, each: Ready, tally: Tally) -> str | None:
    """Write a record where none is; return "" if it was, None if the key is taken, else the reason."""
    request = put_new(layout.table, each.item, layout.schema.names[0])
    del request["ReturnValuesOnConditionCheckFailure"]
    request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        answer = await patiently(studio.db, "PutItem", request)
    except ConditionalCheckFailedFault:
        return None
    except TavolaError as error:
        return _told(error)
    tally.written += 1
    tally.units += units_in(answer)
    return ""


async def _replace(studio: Studio, layout: Layout, batch: list[Ready], tally: Tally) -> None:
    lines = {layout.place_of(each.item): each for each in batch}
    left: list[dict[str, Any]] = [{"PutRequest": {"Item": each.item}} for each in batch]
    reason = "Throttled: the table took no more; import this record again."
    for attempt in range(_TRIES):
        try:
            request = {"RequestItems": {layout.table: left}, "ReturnConsumedCapacity": "TOTAL"}
            answer = await patiently(studio.db, "BatchWriteItem", request)
        except TavolaError as error:
            reason = _told(error)
            break
        before = len(left)
        left = answer.get("UnprocessedItems", {}).get(layout.table, [])
        tally.written += before - len(left)
        tally.units += units_in(answer)
        if not left:
            return
        await asyncio.sleep(_FIRST_DELAY_S * 2**attempt)
    for undone in left:
        each = lines[layout.place_of(undone["PutRequest"]["Item"])]
        tally.failures.append(ImportFailure(each.line, reason, each.source))


def _told(error: TavolaError) -> str:
    problem = problem_of(error)
    return f"{problem.title}: {problem.detail}"

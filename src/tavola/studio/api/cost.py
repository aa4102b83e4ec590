"""The monthly cost of the design as declared and with its sliders moved, and the calculator without a design.

Sums are the documents that `tavola cost --json` prints, from the same functions, so page and command line agree to the cent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tavola.design.cost import (
    DOCUMENT,
    Assumptions,
    CostReport,
    Sliders,
    TableDemand,
    access_ids,
    apply_sliders,
    book_notes,
    calculate,
    calculation_document,
    compare_with_document,
    compute_curves,
    render_csv,
    render_document,
)
from tavola.model.document import write_document
from tavola.prices import books, labelled_book, load_book
from tavola.protocol.faults import ResourceNotFoundFault
from tavola.studio.cost import (
    DEFAULT_REGION,
    AskCalculation,
    AskCost,
    assumptions_of,
    book_of,
    command_of,
    costing_of,
    design_for,
    number,
    region_of,
    shared_words,
    sliders_of,
    writable,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio
from tavola.studio.types import Document

_SCHEMA = "tavola.cost/1"
_CALCULATION = "tavola.cost-calculation/1"
_TABLES_MAX = 500  # that are described for their vector indexes


@dataclass(frozen=True, slots=True)
class CostAnswer:
    """A month as declared, and with its numbers turned: each as `tavola cost --json` prints it."""

    declared: Document
    altered: Document
    rests: bool  # nothing is turned: the two are one
    ids: tuple[str, ...]  # of the access patterns of either, in their order
    command: str  # that prints the altered one; "" where no one command can
    saved: bool  # the command is about the design document that `/cost/design` gives


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one way of paying costs at each factor."""

    name: str
    totals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CostMeeting:
    """At about how many times the traffic another way of paying becomes the cheaper one."""

    below: str
    above: str
    factor: float


@dataclass(frozen=True, slots=True)
class CostCurves:
    """Each way of paying against the traffic, 1 being what the sliders say."""

    factors: tuple[float, ...]
    per_second: float
    currency: str
    book: str
    lines: tuple[CostLine, ...]
    meetings: tuple[CostMeeting, ...]


@dataclass(frozen=True, slots=True)
class CalculationAnswer:
    """What rates need and cost, as `tavola cost --reads … --json` prints it."""

    document: Document
    command: str


@dataclass(frozen=True, slots=True)
class AskCostOptions:
    """What there is to choose from."""


@dataclass(frozen=True, slots=True)
class KnownBook:
    """A price book: of a region and a date, or with the label of the document that it retells."""

    title: str
    region: str
    date: str
    label: str | None


@dataclass(frozen=True, slots=True)
class CostOptions:
    """The books there are, the tables of the design, and whose prices are taken unless one is chosen."""

    books: tuple[KnownBook, ...]
    region: str
    designs: tuple[str, ...]  # that it was started with, where they are several
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskVectors:
    """The vector indexes of the tables as they stand."""


@dataclass(frozen=True, slots=True)
class VectorBytes:
    """A vector index: what it holds, by its own count and by its dimensions."""

    table: str
    index: str
    dimensions: int
    items: int
    bytes: int
    vector_bytes: int  # of the vectors alone, in floats of 32 bits


@dataclass(frozen=True, slots=True)
class VectorList:
    """Every vector index of the tables; no price book has a price for them yet."""

    indexes: tuple[VectorBytes, ...]


@dataclass(frozen=True, slots=True)
class CostFile:
    """A file to save."""

    name: str
    text: str


async def cost(studio: Studio, asked: AskCost) -> CostAnswer:
    """Return a month as declared and as turned, and the command line that prints the same."""
    return await studio.work(_answer, studio, asked)


async def curve(studio: Studio, asked: AskCost) -> CostCurves:
    """Return what each way of paying costs from a hundredth to a hundred times the traffic."""
    return await studio.work(_curves, studio, asked)


async def calculated(studio: Studio, asked: AskCalculation) -> CalculationAnswer:
    """Return what rates need and cost, without a design."""
    return await studio.work(_calculated, studio, asked)


async def options(studio: Studio, asked: AskCostOptions) -> CostOptions:
    """Return what there is to choose from."""
    told = tuple(KnownBook(each.title, each.region, each.date.isoformat(), each.label) for each in books())
    tables = () if studio.design is None else tuple(table.name for table in studio.design.tables)
    designs = tuple(each.name for each in studio.declared) if len(studio.declared) > 1 else ()
    return CostOptions(told, region_of(studio), designs, tables)


async def vectors(studio: Studio, asked: AskVectors) -> VectorList:
    """Return the vector indexes that the tables have now, with their bytes."""
    found: list[VectorBytes] = []
    for name in await _table_names(studio):
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except ResourceNotFoundFault:
            continue  # it was deleted just now
        for index in described.get("VectorIndexes", ()):
            items = int(index.get("ItemCount", 0))
            held = items * int(index["Dimensions"]) * 4
            found.append(
                VectorBytes(
                    name, index["IndexName"], index["Dimensions"], items, index.get("IndexSizeBytes", 0), held
                )
            )
    return VectorList(tuple(found))


async def _table_names(studio: Studio) -> list[str]:
    """Return the names of the tables, of a great many the first."""
    names: list[str] = []
    asked: dict[str, Any] = {"Limit": 100}
    while len(names) < _TABLES_MAX:
        answer = await studio.db.call("ListTables", asked)
        names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            break
        asked["ExclusiveStartTableName"] = answer["LastEvaluatedTableName"]
    return names


async def as_file(studio: Studio, asked: AskCost) -> CostFile:
    """Return the altered month as rows, as `tavola cost --csv` prints it."""
    costing = await studio.work(_altered, studio, asked)
    return CostFile("cost.csv", render_csv(costing))


async def as_design(studio: Studio, asked: AskCost) -> CostFile:
    """Return the altered design as a document, for `tavola cost altered.json` to be asked about."""
    design = apply_sliders(design_for(studio, asked), sliders_of(asked))
    if not writable(design):
        raise Refused(
            "design-unwritable",
            "This is no one document",
            "Entities of its tables are called alike, or name one of a table that is left out.",
            "Choose one of the designs.",
            status=409,
        )
    return CostFile("altered.json", json.dumps(write_document(design), indent=2, ensure_ascii=False) + "\n")


def _answer(studio: Studio, asked: AskCost) -> CostAnswer:
    design, sliders = design_for(studio, asked), sliders_of(asked)
    declared = _document(costing_of(studio, asked, Sliders()))
    altered = declared if sliders.is_unchanged else _document(costing_of(studio, asked, sliders))
    command, saved = command_of(studio, asked, design, rests=sliders.is_unchanged)
    ids = access_ids(design)
    idle = len(altered["access_patterns"]) - len(
        ids
    )  # capacity that nobody asks for has a bill, and is no pattern
    return CostAnswer(declared, altered, sliders.is_unchanged, (*ids, *[""] * idle), command, saved)


def _document(costing: CostReport) -> dict[str, Any]:
    return {"schema": _SCHEMA, **render_document(costing)}


def _altered(studio: Studio, asked: AskCost) -> CostReport:
    return costing_of(studio, asked, sliders_of(asked))


def _curves(studio: Studio, asked: AskCost) -> CostCurves:
    design, sliders = design_for(studio, asked), sliders_of(asked)
    book, _ = book_of(studio, asked.assumptions)
    found = compute_curves(
        apply_sliders(design, sliders), assumptions_of(asked.assumptions, design, sliders), book
    )
    return CostCurves(
        found.factors,
        found.per_second,
        next((price.currency for price in book.prices.values()), "USD"),
        book.title,
        tuple(CostLine(line.name, tuple(f"{total:.4f}" for total in line.totals)) for line in found.lines),
        tuple(CostMeeting(each.cheaper_below, each.cheaper_above, each.factor) for each in found.meetings),
    )


def _calculated(studio: Studio, asked: AskCalculation) -> CalculationAnswer:
    book, today = book_of(studio, asked)
    demand = TableDemand(
        asked.reads,
        asked.writes,
        asked.item_kb,
        asked.storage_gb,
        asked.hours_per_day,
        consistent=not asked.eventual,
        indexes=asked.indexes,
    )
    assumptions = Assumptions(
        table_class=asked.table_class,
        target=asked.target,
        hours_per_day=asked.hours_per_day,
        free_tier=asked.free_tier,
        backups=asked.backups,
    )
    told: Any = ()
    if book.label == DOCUMENT:
        told = compare_with_document(demand, labelled_book(DOCUMENT), load_book(DEFAULT_REGION))
    document = calculation_document(calculate(demand, book, assumptions), told, book_notes(book, today))
    words = ["tavola cost", f"--reads {number(asked.reads)}", f"--writes {number(asked.writes)}"]
    words += [] if asked.item_kb == 1 else [f"--item-kb {number(asked.item_kb)}"]
    words += [f"--storage-gb {number(asked.storage_gb)}"] if asked.storage_gb else []
    words += [f"--indexes {asked.indexes}"] if asked.indexes else []
    words += ["--eventual"] if asked.eventual else []
    words += shared_words(asked, region_of(studio))
    return CalculationAnswer({"schema": _CALCULATION, **document}, " ".join(words))


ENDPOINTS = (
    Endpoint("POST", "/cost", cost),
    Endpoint("POST", "/cost/curve", curve),
    Endpoint("POST", "/cost/calculate", calculated),
    Endpoint("POST", "/cost/csv", as_file),
    Endpoint("POST", "/cost/design", as_design),
    Endpoint("GET", "/cost/options", options),
    Endpoint("GET", "/cost/vectors", vectors),
)

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
    CostCurves,
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
    CalculationRequest,
    CostRequest,
    compute_cost,
    cost_command,
    default_region,
    find_prices,
    format_number,
    is_writable,
    select_design,
    shared_options,
    to_assumptions,
)
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import Document, NoParameters

_SCHEMA = "tavola.cost/1"
_CALCULATION = "tavola.cost-calculation/1"
_TABLES_MAX = 500  # that are described for their vector indexes


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """A month as declared, and with its numbers turned: each as `tavola cost --json` prints it."""

    declared: Document
    altered: Document
    is_unchanged: bool  # nothing is turned: the two are one
    ids: tuple[str, ...]  # of the access patterns of either, in their order
    command: str  # that prints the altered one; "" where no one command can
    saved: bool  # the command is about the design document that `/cost/design` gives


@dataclass(frozen=True, slots=True)
class PricedCurves:
    """The cost of each payment option over a range of traffic, and the prices it was computed with."""

    curves: CostCurves  # factor 1 is the position of the sliders
    currency: str
    book: str


@dataclass(frozen=True, slots=True)
class CalculatedCost:
    """What rates need and cost, as `tavola cost --reads … --json` prints it."""

    document: Document
    command: str


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


async def list_options(studio: Studio, params: NoParameters) -> CostOptions:
    """Return what there is to choose from."""
    known_books = tuple(
        KnownBook(each.title, each.region, each.date.isoformat(), each.label) for each in books()
    )
    tables = () if studio.design is None else tuple(table.name for table in studio.design.tables)
    designs = tuple(each.name for each in studio.declared) if len(studio.declared) > 1 else ()
    return CostOptions(known_books, default_region(studio), designs, tables)


async def list_vector_indexes(studio: Studio, params: NoParameters) -> VectorList:
    """Return the vector indexes that the tables have now, with their bytes."""
    indexes: list[VectorBytes] = []
    for name in await _table_names(studio):
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except ResourceNotFoundFault:
            continue  # it was deleted just now
        for index in described.get("VectorIndexes", ()):
            items = int(index.get("ItemCount", 0))
            vector_bytes = items * int(index["Dimensions"]) * 4
            indexes.append(
                VectorBytes(
                    name,
                    index["IndexName"],
                    index["Dimensions"],
                    items,
                    index.get("IndexSizeBytes", 0),
                    vector_bytes,
                )
            )
    return VectorList(tuple(indexes))


async def _table_names(studio: Studio) -> list[str]:
    """Return the names of the tables, of a great many the first."""
    names: list[str] = []
    params: dict[str, Any] = {"Limit": 100}
    while len(names) < _TABLES_MAX:
        answer = await studio.db.call("ListTables", params)
        names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            break
        params["ExclusiveStartTableName"] = answer["LastEvaluatedTableName"]
    return names


def export_csv(studio: Studio, params: CostRequest) -> CostFile:
    """Return the altered month as rows, as `tavola cost --csv` prints it."""
    return CostFile("cost.csv", render_csv(compute_cost(studio, params, params.sliders)))


def export_design(studio: Studio, params: CostRequest) -> CostFile:
    """Return the altered design as a document for `tavola cost altered.json`."""
    design = apply_sliders(select_design(studio, params), params.sliders)
    if not is_writable(design):
        raise RequestRefused(
            "design-unwritable",
            "This is no one document",
            "Entities of its tables are called alike, or name one of a table that is left out.",
            "Choose one of the designs.",
            status=409,
        )
    return CostFile("altered.json", json.dumps(write_document(design), indent=2, ensure_ascii=False) + "\n")


def monthly_cost(studio: Studio, params: CostRequest) -> MonthlyCost:
    """Return the monthly cost as declared and as altered, and the command that prints the same."""
    design, sliders = select_design(studio, params), params.sliders
    declared = _document(compute_cost(studio, params, Sliders()))
    altered = declared if sliders.is_unchanged else _document(compute_cost(studio, params, sliders))
    command, saved = cost_command(studio, params, design, is_unchanged=sliders.is_unchanged)
    ids = access_ids(design)
    idle = len(altered["access_patterns"]) - len(
        ids
    )  # capacity that nobody asks for has a bill, and is no pattern
    return MonthlyCost(declared, altered, sliders.is_unchanged, (*ids, *[""] * idle), command, saved)


def _document(costing: CostReport) -> dict[str, Any]:
    return {"schema": _SCHEMA, **render_document(costing)}


def cost_curves(studio: Studio, params: CostRequest) -> PricedCurves:
    """Return the cost of each payment option from a hundredth to a hundred times the traffic."""
    design, sliders = select_design(studio, params), params.sliders
    book, _ = find_prices(studio, params.assumptions)
    curves = compute_curves(
        apply_sliders(design, sliders), to_assumptions(params.assumptions, design, sliders), book
    )
    return PricedCurves(curves, next((price.currency for price in book.prices.values()), "USD"), book.title)


def calculate_cost(studio: Studio, params: CalculationRequest) -> CalculatedCost:
    """Return the capacity that request rates need and what it costs, without a design."""
    book, today = find_prices(studio, params)
    demand = TableDemand(
        params.reads,
        params.writes,
        params.item_kb,
        params.storage_gb,
        params.hours_per_day,
        consistent=not params.eventual,
        indexes=params.indexes,
    )
    assumptions = Assumptions(
        table_class=params.table_class,
        target=params.target,
        hours_per_day=params.hours_per_day,
        free_tier=params.free_tier,
        backups=params.backups,
    )
    comparison: Any = ()
    if book.label == DOCUMENT:
        comparison = compare_with_document(demand, labelled_book(DOCUMENT), load_book(DEFAULT_REGION))
    document = calculation_document(calculate(demand, book, assumptions), comparison, book_notes(book, today))
    words = [
        "tavola cost",
        f"--reads {format_number(params.reads)}",
        f"--writes {format_number(params.writes)}",
    ]
    words += [] if params.item_kb == 1 else [f"--item-kb {format_number(params.item_kb)}"]
    words += [f"--storage-gb {format_number(params.storage_gb)}"] if params.storage_gb else []
    words += [f"--indexes {params.indexes}"] if params.indexes else []
    words += ["--eventual"] if params.eventual else []
    words += shared_options(params, default_region(studio))
    return CalculatedCost({"schema": _CALCULATION, **document}, " ".join(words))


ENDPOINTS = (
    Endpoint("POST", "/cost", monthly_cost),
    Endpoint("POST", "/cost/curve", cost_curves),
    Endpoint("POST", "/cost/calculate", calculate_cost),
    Endpoint("POST", "/cost/csv", export_csv),
    Endpoint("POST", "/cost/design", export_design),
    Endpoint("GET", "/cost/options", list_options),
    Endpoint("GET", "/cost/vectors", list_vector_indexes),
)

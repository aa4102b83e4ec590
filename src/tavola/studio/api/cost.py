"""The monthly cost of the design as declared and with its sliders moved, and the calculator without a design.

Sums are the documents that `tavola cost --json` prints, from the same functions, so page and command line agree to the cent.
"""

from __future__ import annotations

import json
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
from tavola.studio.types import ApiMessage, Document, NoParameters, TextFile

_SCHEMA = "tavola.cost/1"
_CALCULATION = "tavola.cost-calculation/1"
_TABLES_MAX = 500  # searched for vector indexes


class MonthlyCost(ApiMessage):
    """The monthly cost as declared and with the sliders applied, each as `tavola cost --json` prints it."""

    declared: Document
    altered: Document
    is_unchanged: bool  # no slider is moved, so both are equal
    ids: tuple[str, ...]  # of the access patterns, in the same order in both
    command: str  # that prints `altered`; empty if no single command can
    saved: bool  # the command reads the design document that `/cost/design` returns


class PricedCurves(ApiMessage):
    """The cost of each capacity mode over a range of traffic, and the prices it was computed with."""

    curves: CostCurves  # factor 1 is the position of the sliders
    currency: str
    book: str


class CalculatedCost(ApiMessage):
    """The capacity and cost of request rates, as `tavola cost --reads … --json` prints it."""

    document: Document
    command: str


class KnownBook(ApiMessage):
    """A price book: for a region and date, or with the label of the document it quotes."""

    title: str
    region: str
    date: str
    label: str | None


class CostOptions(ApiMessage):
    """The choices for a cost estimate: price books, default region, designs and tables."""

    books: tuple[KnownBook, ...]
    region: str
    designs: tuple[str, ...]  # empty unless the studio was started with several
    tables: tuple[str, ...]


class VectorBytes(ApiMessage):
    """A vector index and its size, as reported and as computed from its dimensions."""

    table: str
    index: str
    dimensions: int
    items: int
    bytes: int
    vector_bytes: int  # of the vectors alone, as 32-bit floats


class VectorList(ApiMessage):
    """The vector indexes of all tables; no price book has prices for them yet."""

    indexes: tuple[VectorBytes, ...]


async def list_options(studio: Studio, params: NoParameters) -> CostOptions:
    """Return the choices for a cost estimate."""
    known_books = tuple(
        KnownBook(book.title, book.region, book.date.isoformat(), book.label) for book in books()
    )
    tables = () if studio.design is None else tuple(table.name for table in studio.design.tables)
    designs = (
        tuple(declared_design.name for declared_design in studio.declared) if len(studio.declared) > 1 else ()
    )
    return CostOptions(known_books, default_region(studio), designs, tables)


async def list_vector_indexes(studio: Studio, params: NoParameters) -> VectorList:
    """Return the vector indexes of the live tables, with their sizes."""
    indexes: list[VectorBytes] = []
    for name in await _table_names(studio):
        try:
            described = (await studio.db.call("DescribeTable", {"TableName": name}))["Table"]
        except ResourceNotFoundFault:
            continue  # deleted in the meantime
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
    """Return the names of all tables, or of the first few hundred."""
    names: list[str] = []
    params: dict[str, Any] = {"Limit": 100}
    while len(names) < _TABLES_MAX:
        answer = await studio.db.call("ListTables", params)
        names += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            break
        params["ExclusiveStartTableName"] = answer["LastEvaluatedTableName"]
    return names


def export_csv(studio: Studio, params: CostRequest) -> TextFile:
    """Return the altered month as CSV, as `tavola cost --csv` prints it."""
    return TextFile("cost.csv", render_csv(compute_cost(studio, params, params.sliders)))


def export_design(studio: Studio, params: CostRequest) -> TextFile:
    """Return the modified design as a document for `tavola cost modified.json`."""
    design = apply_sliders(select_design(studio, params), params.sliders)
    if not is_writable(design):
        raise RequestRefused(
            "design-unwritable",
            "These tables cannot be written as one design",
            "Two tables have entities of the same name, or an entity refers to a table that is left out.",
            "Choose a single design.",
            status=409,
        )
    return TextFile("modified.json", json.dumps(write_document(design), indent=2, ensure_ascii=False) + "\n")


def monthly_cost(studio: Studio, params: CostRequest) -> MonthlyCost:
    """Return the monthly cost as declared and as altered, and the command that prints the same."""
    design, sliders = select_design(studio, params), params.sliders
    declared = _document(compute_cost(studio, params, Sliders()))
    altered = declared if sliders.is_unchanged else _document(compute_cost(studio, params, sliders))
    command, saved = cost_command(studio, params, design, is_unchanged=sliders.is_unchanged)
    ids = access_ids(design)
    idle = len(altered["access_patterns"]) - len(ids)  # unused capacity is billed too, without a pattern
    return MonthlyCost(declared, altered, sliders.is_unchanged, (*ids, *[""] * idle), command, saved)


def _document(costing: CostReport) -> dict[str, Any]:
    return {"schema": _SCHEMA, **render_document(costing)}


def cost_curves(studio: Studio, params: CostRequest) -> PricedCurves:
    """Return the cost of each capacity mode from a hundredth to a hundred times the traffic."""
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

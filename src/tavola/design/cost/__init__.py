"""Cost: what a design will ask of DynamoDB in a month, and what that is in money.

Holds the sizes of items, the units of each access, the traffic that rates make of them, and the bill of a
month under each way of paying. Knows prices by their book alone. Nothing is measured here: what a design
does not say is guessed, and said to be a guess.
"""

from tavola.design.cost.assumptions import HOURS_PER_MONTH, Assumptions, CostRefused
from tavola.design.cost.break_even import BreakEven, break_evens
from tavola.design.cost.calculation_report import calculation_csv, calculation_document, calculation_text
from tavola.design.cost.calculator import DOCUMENT, EXAMPLE, Calculation, Demand, Step, Sums, calculate, steps
from tavola.design.cost.capacity import (
    IndexEffect,
    Units,
    collection_units,
    index_effects,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.design.cost.charts import draw_chart
from tavola.design.cost.cost_report import BOOK_DAYS_MAX, Costing, book_notes, cost_of
from tavola.design.cost.curves import FACTORS, Curves, curves
from tavola.design.cost.month import Bill, Capacity, Line, Month, estimate
from tavola.design.cost.payment_options import Way, recommendation, ways
from tavola.design.cost.report import as_csv, as_document, as_text
from tavola.design.cost.savings import Saving, savings
from tavola.design.cost.sliders import Consistency, Sliders, Transactions, access_ids, turned
from tavola.design.cost.traffic import Access, Flow, accesses, flows
from tavola.model.sizes import item_bytes

__all__ = [
    "BOOK_DAYS_MAX",
    "DOCUMENT",
    "EXAMPLE",
    "FACTORS",
    "HOURS_PER_MONTH",
    "Access",
    "Assumptions",
    "Bill",
    "BreakEven",
    "Calculation",
    "Capacity",
    "Consistency",
    "CostRefused",
    "Costing",
    "Curves",
    "Demand",
    "Flow",
    "IndexEffect",
    "Line",
    "Month",
    "Saving",
    "Sliders",
    "Step",
    "Sums",
    "Transactions",
    "Units",
    "Way",
    "access_ids",
    "accesses",
    "as_csv",
    "as_document",
    "as_text",
    "book_notes",
    "break_evens",
    "calculate",
    "calculation_csv",
    "calculation_document",
    "calculation_text",
    "collection_units",
    "cost_of",
    "curves",
    "draw_chart",
    "estimate",
    "flows",
    "index_effects",
    "item_bytes",
    "need_units",
    "pattern_units",
    "recommendation",
    "savings",
    "steps",
    "turned",
    "ways",
    "write_pattern_units",
]

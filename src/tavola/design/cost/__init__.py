"""Cost: what a design will ask of DynamoDB in a month, and what that is in money.

Holds the sizes of items, the units of each access, the traffic that rates make of them, and the bill of a
month under each way of paying. Knows prices by their book alone. Nothing is measured here: what a design
does not say is guessed, and said to be a guess.
"""

from tavola.design.cost.assumptions import HOURS_PER_MONTH, Assumptions, CostRefused
from tavola.design.cost.break_even import BreakEven, break_evens
from tavola.design.cost.calculation_report import calculation_csv, calculation_document, calculation_text
from tavola.design.cost.calculator import (
    DOCUMENT,
    EXAMPLE,
    Calculation,
    ComparisonStep,
    CostBreakdown,
    TableDemand,
    calculate,
    compare_with_document,
)
from tavola.design.cost.capacity import (
    IndexEffect,
    RequestUnits,
    collection_units,
    index_effects,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.design.cost.charts import draw_chart
from tavola.design.cost.cost_report import BOOK_DAYS_MAX, CostReport, book_notes, report_cost
from tavola.design.cost.curves import FACTORS, CostCurves, compute_curves
from tavola.design.cost.month import AccessBill, BillLine, MonthlyBill, ProvisionedCapacity, estimate_month
from tavola.design.cost.payment_options import PaymentOption, payment_options, recommend_payment
from tavola.design.cost.report import render_csv, render_document, render_text
from tavola.design.cost.savings import Saving, savings
from tavola.design.cost.sliders import Consistency, Sliders, Transactions, access_ids, apply_sliders
from tavola.design.cost.traffic import PlaceTraffic, RatedAccess, rated_accesses, traffic_by_place
from tavola.model.sizes import item_bytes

__all__ = [
    "BOOK_DAYS_MAX",
    "DOCUMENT",
    "EXAMPLE",
    "FACTORS",
    "HOURS_PER_MONTH",
    "AccessBill",
    "Assumptions",
    "BillLine",
    "BreakEven",
    "Calculation",
    "ComparisonStep",
    "Consistency",
    "CostBreakdown",
    "CostCurves",
    "CostRefused",
    "CostReport",
    "IndexEffect",
    "MonthlyBill",
    "PaymentOption",
    "PlaceTraffic",
    "ProvisionedCapacity",
    "RatedAccess",
    "RequestUnits",
    "Saving",
    "Sliders",
    "TableDemand",
    "Transactions",
    "access_ids",
    "apply_sliders",
    "book_notes",
    "break_evens",
    "calculate",
    "calculation_csv",
    "calculation_document",
    "calculation_text",
    "collection_units",
    "compare_with_document",
    "compute_curves",
    "draw_chart",
    "estimate_month",
    "index_effects",
    "item_bytes",
    "need_units",
    "pattern_units",
    "payment_options",
    "rated_accesses",
    "recommend_payment",
    "render_csv",
    "render_document",
    "render_text",
    "report_cost",
    "savings",
    "traffic_by_place",
    "write_pattern_units",
]

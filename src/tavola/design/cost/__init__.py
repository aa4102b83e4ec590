"""The cost model: what a design costs in a month, and what would make it cheaper.

Everything is computed from the design; nothing is measured and no table is read. The steps:

    item sizes          bytes of an item and of its entry in each index (`tavola.model.sizes`)
      -> capacity       read and write units of one request, at the table and at each index that it touches
      -> traffic        units per second: the units of each access pattern times its declared rate and peak
      -> load           traffic and stored gigabytes of each table and index, before any price
      -> month          the bill: load times prices, for one payment option
      -> reports        payment options compared, break-even points, savings, cost curves

Counted: read and write request units or provisioned capacity by the hour, what transactions and index key changes add,
replicated writes of global tables, storage, point-in-time recovery, backups, stream reads; minus reserved capacity and
the free tier if asked for. Not counted: data transfer, traffic between regions, DAX, Lambda, taxes.

Units are DynamoDB's: a read unit is 4 KB strongly consistent (half for eventual reads, double in a transaction), a write
unit is 1 KB (double in a transaction). A month has 730 hours, as in AWS's calculator. Money is `Decimal`.

Prices come from a dated price book of one region (`tavola.prices`), never from the network. Where a design does not
declare a size, the model guesses it from field types and says so in a note. A pattern without a rate costs nothing and
is listed. A saving is always the difference between two computed months, never a rule of thumb.
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

"""The cost model: what a design costs in a month, and what would make it cheaper.

Everything is computed from the design; nothing is measured and no table is read. The steps:

    item sizes          bytes of an item and of its entry in each index (`tavola.model.sizes`)
      -> capacity       read and write units of one request, at the table and at each index that it touches
      -> traffic        units per second: the units of each access pattern times its declared rate and peak
      -> load           traffic and stored gigabytes of each table and index, before any price
      -> month          the bill: load times prices, for one payment option
      -> reports        payment options compared, break-even points, savings, cost curves

Included: read and write request units or provisioned capacity by the hour, what transactions and index key changes add,
replicated writes of global tables, storage, point-in-time recovery, backups, stream reads; minus reserved capacity and
the free tier if requested. Not included: data transfer, traffic between regions, DAX, Lambda, taxes.

Units are DynamoDB's: a read unit is 4 KB strongly consistent (half for eventual reads, double in a transaction), a write
unit is 1 KB (double in a transaction). A month has 730 hours, as in AWS's calculator. Money is `Decimal`.

Prices come from a dated price book of one region (`tavola.prices`), never from the network. Where a design does not
declare a size, the model estimates it from field types and says so in a note. A pattern without a rate costs nothing and
is listed. A saving is always the difference between two computed months, never a rule of thumb.

Names are imported on first use: the linter needs capacities only, and no bill.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tavola.design.cost.assumptions import HOURS_PER_MONTH, Assumptions, CostError
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
    from tavola.design.cost.cost_savings import CostSaving, savings
    from tavola.design.cost.month import (
        AccessBill,
        BillLine,
        MonthlyBill,
        ProvisionedCapacity,
        estimate_month,
    )
    from tavola.design.cost.payments import (
        FACTORS,
        BreakEven,
        CostCurves,
        PaymentOption,
        break_evens,
        compute_curves,
        payment_options,
        recommend_payment,
    )
    from tavola.design.cost.report import render_csv, render_document, render_text
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
    "CostError",
    "CostReport",
    "CostSaving",
    "IndexEffect",
    "MonthlyBill",
    "PaymentOption",
    "PlaceTraffic",
    "ProvisionedCapacity",
    "RatedAccess",
    "RequestUnits",
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

_NAMES = {
    "tavola.design.cost.assumptions": "Assumptions CostError HOURS_PER_MONTH",
    "tavola.design.cost.calculation_report": "calculation_csv calculation_document calculation_text",
    "tavola.design.cost.calculator": (
        "Calculation ComparisonStep CostBreakdown DOCUMENT EXAMPLE TableDemand calculate "
        "compare_with_document"
    ),
    "tavola.design.cost.capacity": (
        "IndexEffect RequestUnits collection_units index_effects need_units pattern_units write_pattern_units"
    ),
    "tavola.design.cost.charts": "draw_chart",
    "tavola.design.cost.cost_report": "BOOK_DAYS_MAX CostReport book_notes report_cost",
    "tavola.design.cost.cost_savings": "CostSaving savings",
    "tavola.design.cost.month": "AccessBill BillLine MonthlyBill ProvisionedCapacity estimate_month",
    "tavola.design.cost.payments": (
        "BreakEven CostCurves FACTORS PaymentOption break_evens compute_curves payment_options "
        "recommend_payment"
    ),
    "tavola.design.cost.report": "render_csv render_document render_text",
    "tavola.design.cost.sliders": "Consistency Sliders Transactions access_ids apply_sliders",
    "tavola.design.cost.traffic": "PlaceTraffic RatedAccess rated_accesses traffic_by_place",
    "tavola.model.sizes": "item_bytes",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value

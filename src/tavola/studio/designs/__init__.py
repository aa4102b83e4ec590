"""What the design page shows: a design linted once, drawn as a diagram, altered, and compared line by line.

Knows designs and the tools that judge them; no requests and no tables.
"""

from tavola.studio.designs.analysis import (
    DesignAnalysis,
    DiffLine,
    design_names,
    design_of_table,
    design_text,
    diff_lines,
    find_analysis,
    finding_id,
    monthly_cost_of,
    studio_analysis,
)
from tavola.studio.designs.diagram import TablePicture, draw_tables, node_id

__all__ = [
    "DesignAnalysis",
    "DiffLine",
    "TablePicture",
    "design_names",
    "design_of_table",
    "design_text",
    "diff_lines",
    "draw_tables",
    "find_analysis",
    "finding_id",
    "monthly_cost_of",
    "node_id",
    "studio_analysis",
]

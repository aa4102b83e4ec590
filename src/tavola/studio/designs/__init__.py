"""What the design page shows: a design linted once, drawn as a diagram, altered, and compared line by line.

Knows designs and the tools that judge them; no requests and no tables.
"""

from tavola.studio.designs.analysis import (
    Subject,
    design_text,
    design_with,
    finding_id,
    month_of,
    own_subject,
    subject_names,
    subject_of,
)
from tavola.studio.designs.diagram import TablePicture, node_of, picture_of
from tavola.studio.designs.text_diff import DesignLine, changed_lines

__all__ = [
    "DesignLine",
    "Subject",
    "TablePicture",
    "changed_lines",
    "design_text",
    "design_with",
    "finding_id",
    "month_of",
    "node_of",
    "own_subject",
    "picture_of",
    "subject_names",
    "subject_of",
]

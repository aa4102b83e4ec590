"""Designing: what the design page shows, before it is an answer: a design judged once, drawn, altered, and told line by line.

Knows designs and the judges of them; no request and no table.
"""

from tavola.studio.designing.lines import DesignLine, changed_lines
from tavola.studio.designing.picture import TablePicture, node_of, picture_of
from tavola.studio.designing.subject import (
    Subject,
    design_text,
    design_with,
    finding_id,
    month_of,
    own_subject,
    subject_names,
    subject_of,
)

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

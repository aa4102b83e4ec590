"""Formats: designs that people already have, read from the files of other tools, and written for two of them.

CloudFormation, Terraform, NoSQL Workbench, DescribeTable, OneTable's and awslabs' schema become a `Design`, with a report of what
was guessed, left out or not said. Knows no command line and no network; reads the files that it is given.

A door of its own, entered by name: YAML and HCL are read with libraries that are extras.
"""

from tavola.iac.formats.errors import FileMissing, FormatRefused, FormatUnknown
from tavola.iac.formats.format_detection import read_design, read_design_text
from tavola.iac.formats.import_result import FormatNote, ImportResult, SampleItem
from tavola.iac.formats.onetable_writer import write_onetable
from tavola.iac.formats.workbench_writer import write_workbench

__all__ = [
    "FileMissing",
    "FormatNote",
    "FormatRefused",
    "FormatUnknown",
    "ImportResult",
    "SampleItem",
    "read_design",
    "read_design_text",
    "write_onetable",
    "write_workbench",
]

"""Read designs from the files of other tools, and write them for two of those.

CloudFormation, Terraform, NoSQL Workbench, DescribeTable, OneTable and awslabs' schemas become a `Design` with a report of what was guessed, left
out or not stated. The package reads the files it is given and knows no command line and no network.

It is imported by name only: YAML and HCL are read with libraries from the extra `tavola[design]`.
"""

from tavola.iac.formats.format_detection import read_design, read_design_text
from tavola.iac.formats.import_result import (
    DesignFileNotFound,
    FormatError,
    FormatNote,
    ImportResult,
    SampleItem,
    UnknownFormat,
)
from tavola.iac.formats.onetable_writer import write_onetable
from tavola.iac.formats.workbench_writer import write_workbench

__all__ = [
    "DesignFileNotFound",
    "FormatError",
    "FormatNote",
    "ImportResult",
    "SampleItem",
    "UnknownFormat",
    "read_design",
    "read_design_text",
    "write_onetable",
    "write_workbench",
]

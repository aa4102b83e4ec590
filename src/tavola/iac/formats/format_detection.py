"""Detect the format of a file by its content, and read the design in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tavola.iac.formats.cloudformation import is_cloudformation, read_cloudformation
from tavola.iac.formats.describe_table import is_description, read_description
from tavola.iac.formats.errors import FormatRefused, FormatUnknown
from tavola.iac.formats.file_text import FILE_BYTES_MAX, parse_json, parse_yaml, read_text
from tavola.iac.formats.hcl import parse_hcl
from tavola.iac.formats.import_result import ImportResult
from tavola.iac.formats.mcp_data_model import is_mcp_data_model, read_mcp_data_model
from tavola.iac.formats.mcp_schema import is_mcp_schema, read_mcp_schema
from tavola.iac.formats.onetable import is_onetable, read_onetable
from tavola.iac.formats.terraform import is_terraform, read_terraform
from tavola.iac.formats.terraform_folder import read_terraform_folder
from tavola.iac.formats.terraform_plan import is_terraform_plan, read_terraform_plan
from tavola.iac.formats.unique_names import give_entities_unique_names
from tavola.iac.formats.workbench import is_workbench, read_workbench
from tavola.model.document import FORMAT, DocumentRefused, check_references, read_document

KNOWN = (
    "a CloudFormation template, Terraform's HCL or its plan as JSON, a NoSQL Workbench model, "
    "the output of describe-table, a OneTable schema, or awslabs' schema.json"
)
_HCL = re.compile(
    r"(?m)^[ \t]*(?:resource|data|variable|module|provider|output)[ \t]+\"[^\"\n]*\"|^(?:locals|terraform)[ \t]*\{"
)
_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], ImportResult]], ...] = (
    (is_workbench, read_workbench),
    (is_onetable, read_onetable),
    (is_terraform_plan, read_terraform_plan),
    (is_mcp_schema, read_mcp_schema),
    (is_mcp_data_model, read_mcp_data_model),
    (is_cloudformation, read_cloudformation),
    (is_description, read_description),
)


def read_design(path: str | Path) -> ImportResult:
    """Return the design in a foreign file or a folder of Terraform files; FormatRefused with the place if there is none.

    The format is detected from the content. What the format does not say is left empty and reported.
    """
    place = Path(path)

    def reads() -> ImportResult:
        if place.is_dir():
            return read_terraform_folder(place)
        return _of_text(read_text(place), place.suffix.lower())

    return _read(reads, str(path))


def read_design_text(text: str, name: str = "") -> ImportResult:
    """Return the design in a text, for example one that was pasted; its name helps to detect the format."""
    if len(text.encode()) > FILE_BYTES_MAX:
        raise FormatRefused(f"it has more than {FILE_BYTES_MAX:,} bytes, which no design has", file=name)
    if not text.strip("\ufeff \t\r\n"):
        raise FormatRefused("it is empty; give the text of a design", file=name)
    return _read(lambda: _of_text(text.lstrip("\ufeff"), Path(name).suffix.lower()), name)


def _read(reads: Callable[[], ImportResult], name: str) -> ImportResult:
    try:
        imported = give_entities_unique_names(reads())
        check_references(imported.design)
    except FormatRefused as refused:
        raise refused.within(name) from refused
    except RecursionError as error:
        raise FormatRefused("it is nested too deep; name the file of a design", file=name) from error
    except DocumentRefused as refused:
        raise FormatRefused(f"what it says makes no design: {refused}; mend it there", file=name) from refused
    return imported


def _of_text(text: str, suffix: str) -> ImportResult:
    start = text.lstrip()[:1]
    if suffix in (".tf", ".hcl", ".tfvars") or (start not in ("{", "[") and _HCL.search(text)):
        block = parse_hcl(text)
        if not is_terraform(block):
            raise FormatRefused("it has no block of Terraform's; name a file with a resource in it")
        return read_terraform([block])
    raw = parse_json(text) if start in ("{", "[") and suffix not in (".yaml", ".yml") else parse_yaml(text)
    return _of_data(raw)


def _of_data(raw: Any) -> ImportResult:
    if isinstance(raw, Mapping) and raw.get("format") == FORMAT:
        return ImportResult(read_document(dict(raw)), (), FORMAT)
    for recognises, reads in _READERS:
        if recognises(raw):
            return reads(raw)
    raise FormatUnknown(f"it is no design that is known here; name {KNOWN}")

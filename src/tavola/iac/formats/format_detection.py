"""Detect the format of a file by its content, and read the design in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tavola.iac.formats.cloudformation import is_cloudformation, read_cloudformation
from tavola.iac.formats.describe_table import is_description, read_description
from tavola.iac.formats.file_text import FILE_BYTES_MAX, parse_json, parse_yaml, read_text
from tavola.iac.formats.hcl import parse_hcl
from tavola.iac.formats.import_result import FormatError, FormatNote, ImportResult, UnknownFormat
from tavola.iac.formats.mcp_data_model import is_mcp_data_model, read_mcp_data_model
from tavola.iac.formats.mcp_schema import is_mcp_schema, read_mcp_schema
from tavola.iac.formats.onetable import is_onetable, read_onetable
from tavola.iac.formats.terraform import is_terraform, read_terraform, read_terraform_folder
from tavola.iac.formats.terraform_resources import is_terraform_plan, read_terraform_plan
from tavola.iac.formats.workbench import is_workbench, read_workbench
from tavola.model.document import (
    FORMAT,
    DocumentRefused,
    PatternDesign,
    TableDesign,
    check_references,
    read_document,
)


def give_entities_unique_names(imported: ImportResult) -> ImportResult:
    """Return an import whose entity names are unique; a repeated name gets its table's label as a prefix, and a note."""
    used_names: set[str] = set()
    tables: list[TableDesign] = []
    notes: list[FormatNote] = []
    names: dict[tuple[str, str], str] = {}
    for table in imported.design.tables:
        taken = sorted({entity.name for entity in table.entities} & used_names)
        new_names = {name: f"{table.label}_{name}" for name in taken}
        notes += [
            FormatNote(
                table.label,
                f"an earlier table has an entity {name!r} too; this one is imported as {new_name!r}",
            )
            for name, new_name in new_names.items()
        ]
        names |= {(table.name, name): new_name for name, new_name in new_names.items()}
        tables.append(_rename_entities(table, new_names) if new_names else table)
        used_names |= {entity.name for entity in tables[-1].entities}
    if not names:
        return imported
    return replace(
        imported,
        design=replace(imported.design, tables=tuple(tables)),
        report=(*imported.report, *notes),
        samples=tuple(
            replace(sample, entity=names.get((sample.table, sample.entity), sample.entity))
            for sample in imported.samples
        ),
    )


def _rename_entities(table: TableDesign, names: Mapping[str, str]) -> TableDesign:
    def rename_result(original: PatternDesign) -> PatternDesign:
        return replace(original, result=names.get(original.result, original.result))

    return replace(
        table,
        entities=tuple(
            replace(
                entity,
                name=names.get(entity.name, entity.name),
                primary=None if entity.primary is None else rename_result(entity.primary),
                patterns=tuple(map(rename_result, entity.patterns)),
            )
            for entity in table.entities
        ),
        collections=tuple(
            replace(
                original,
                members=tuple(
                    replace(member, entity=names.get(member.entity, member.entity))
                    for member in original.members
                ),
            )
            for original in table.collections
        ),
        consumers=tuple(
            replace(original, writes=tuple(names.get(name, name) for name in original.writes))
            for original in table.consumers
        ),
    )


KNOWN = (
    "CloudFormation templates, Terraform files and plans (terraform show -json), NoSQL Workbench models, "
    "describe-table output, OneTable schemas, schema.json and dynamodb_data_model.json of awslabs, and Tavola designs"
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
    """Return the design in a file of another tool or a folder of Terraform files; FormatError if there is none.

    The format is detected from the content. What the format does not say is left empty and reported.
    """
    file = Path(path)

    def read() -> ImportResult:
        if file.is_dir():
            return read_terraform_folder(file)
        return _read_text_format(read_text(file), file.suffix.lower())

    return _read_checked(read, str(path))


def read_design_text(text: str, name: str = "") -> ImportResult:
    """Return the design in a text, for example one that was pasted; its name helps to detect the format."""
    if len(text.encode()) > FILE_BYTES_MAX:
        raise FormatError(f"the text is larger than {FILE_BYTES_MAX:,} bytes", file=name)
    if not text.strip("\ufeff \t\r\n"):
        raise FormatError("the text is empty", file=name)
    return _read_checked(lambda: _read_text_format(text.lstrip("\ufeff"), Path(name).suffix.lower()), name)


def _read_checked(read: Callable[[], ImportResult], name: str) -> ImportResult:
    try:
        imported = give_entities_unique_names(read())
        check_references(imported.design)
    except FormatError as refused:
        raise refused.within(name) from refused
    except RecursionError as error:
        raise FormatError("nested too deeply", file=name) from error
    except DocumentRefused as refused:
        raise FormatError(str(refused), file=name) from refused
    return imported


def _read_text_format(text: str, suffix: str) -> ImportResult:
    if suffix == ".py":
        raise FormatError("a Python file is a design already; pass it to `tavola lint` or `tavola design`")
    start = text.lstrip()[:1]
    if suffix in (".tf", ".hcl", ".tfvars") or (start not in ("{", "[") and _HCL.search(text)):
        block = parse_hcl(text)
        if not is_terraform(block):
            raise FormatError("no Terraform block found; expected resource, module, variable or locals")
        return read_terraform([block])
    raw = parse_json(text) if start in ("{", "[") and suffix not in (".yaml", ".yml") else parse_yaml(text)
    return _read_data(raw)


def _read_data(raw: Any) -> ImportResult:
    if isinstance(raw, Mapping) and raw.get("format") == FORMAT:
        return ImportResult(read_document(dict(raw)), (), FORMAT)
    for is_format, read in _READERS:
        if is_format(raw):
            return read(raw)
    raise UnknownFormat(f"unknown file format. Tavola reads {KNOWN}")

"""Folders of Terraform's: the files that make one configuration, and the values that lie beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tavola.iac.formats.errors import FormatRefused
from tavola.iac.formats.file_text import parse_json, read_text
from tavola.iac.formats.hcl import Evaluator, HclBlock, parse_hcl
from tavola.iac.formats.import_result import ImportReport, ImportResult
from tavola.iac.formats.terraform import read_terraform

FILES_MAX = 500
_OVERRIDES = ("override.tf", "_override.tf")


def read_terraform_folder(folder: Path) -> ImportResult:
    """Return the design of the tables that the files of a folder make; those that are not read are told."""
    report = ImportReport()
    paths = sorted(folder.glob("*.tf"))
    if not paths:
        raise FormatRefused(
            "there is no file ending in .tf in the folder; name a folder of Terraform's, or a file"
        )
    if len(paths) > FILES_MAX:
        raise FormatRefused(
            f"there are more than {FILES_MAX} files in the folder; name the folder of one design"
        )
    for path in (each for each in paths if each.name.endswith(_OVERRIDES)):
        report.add(path.name, "what it overrides is not followed; a plan (`terraform show -json`) has it")
    for path in sorted(folder.glob("*.tf.json")):
        report.add(path.name, "Terraform in JSON is not read; a plan (`terraform show -json`) has it")
    blocks = [_hcl(path) for path in paths if not path.name.endswith(_OVERRIDES)]
    settings = {name: value for path in _settings(folder) for name, value in _values(path)}
    return read_terraform(blocks, settings, report)


def _settings(folder: Path) -> Iterator[Path]:
    """Give the files of values that Terraform takes by itself, the last the strongest."""
    own = [folder / "terraform.tfvars", folder / "terraform.tfvars.json"]
    yield from (path for path in own if path.exists())
    yield from sorted([*folder.glob("*.auto.tfvars"), *folder.glob("*.auto.tfvars.json")])


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".json":
        try:
            found = parse_json(read_text(path))
        except FormatRefused as refused:
            raise refused.within(str(path)) from refused
        if not isinstance(found, Mapping):
            raise FormatRefused("it is no object of values; mend it", file=str(path))
        yield from found.items()
        return
    block = _hcl(path)
    evaluator = Evaluator(_no_reference)
    for name, node in block.attributes.items():
        yield name, evaluator.value(node, block.text)


def _hcl(path: Path) -> HclBlock:
    try:
        return parse_hcl(read_text(path, may_be_empty=True))
    except FormatRefused as refused:
        raise refused.within(str(path)) from refused


def _no_reference(steps: tuple[str, ...]) -> Any:
    raise KeyError(steps)

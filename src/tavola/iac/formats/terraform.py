"""Read the tables of Terraform files, with the resources connected to them.

Variables have their defaults or the values of `terraform.tfvars`; locals and references between resources are followed. Modules are not, except
the registry's `dynamodb-table`.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tavola.iac.formats.file_text import parse_json, read_text
from tavola.iac.formats.hcl import Evaluator, HclBlock, follow_steps, parse_hcl
from tavola.iac.formats.hcl_functions import check_size
from tavola.iac.formats.import_result import FormatError, ImportReport, ImportResult
from tavola.iac.formats.related_resources import stream_arn, table_arn
from tavola.iac.formats.source_values import (
    LazyValues,
    Unresolved,
    ValueReader,
    as_text,
    parse_switch,
    python_label,
    report_unread,
    show_value,
    track,
)
from tavola.iac.formats.terraform_resources import (
    DOCUMENT,
    TABLE,
    TerraformResource,
    design_of_resources,
    render_policy_json,
)

_SOURCE = re.compile(
    r"(?:(?:app|registry)\.terraform\.io/)?terraform-aws-modules/dynamodb-table/aws"
    r"|(?:git::)?(?:https://|ssh://git@|git@)?github\.com[/:]terraform-aws-modules/terraform-aws-dynamodb-table(?:\.git)?(?:\?.*)?"
)
_SAME = tuple(
    """
    name hash_key range_key read_capacity write_capacity stream_enabled stream_view_type table_class
    deletion_protection_enabled tags
    """.split()
)
_SCALING = {"Read": "autoscaling_read", "Write": "autoscaling_write"}
_BESIDE = ("source", "version", "providers", "depends_on", "count", "for_each", "timeouts", "region")


def is_registry_module(source: str) -> bool:
    """Return whether a module's source is the registry's `dynamodb-table` module."""
    return _SOURCE.fullmatch(source) is not None


def expand_registry_module(
    values: Mapping[str, Any], label: str, place: str, report: ImportReport
) -> Iterator[TerraformResource]:
    """Yield the table that a call of the registry's module creates, and its auto scaling targets."""
    if parse_switch(values.get("create_table", True)) is False:
        report.add(place, "create_table is false; not imported")
        return
    name = values.get("name")
    if name is None:
        report.add(place, "name is missing; using the address as the table's name")
        name = place
    arguments = {
        **{argument: values.get(argument) for argument in _SAME},
        "name": name,
        "billing_mode": values.get("billing_mode") or "PAY_PER_REQUEST",
        "attribute": values.get("attributes"),
        "global_secondary_index": values.get("global_secondary_indexes"),
        "local_secondary_index": values.get("local_secondary_indexes"),
        "replica": values.get("replica_regions"),
        "ttl": [{"attribute_name": values.get("ttl_attribute_name"), "enabled": values.get("ttl_enabled")}],
        "point_in_time_recovery": [
            {
                "enabled": values.get("point_in_time_recovery_enabled"),
                "recovery_period_in_days": values.get("point_in_time_recovery_period_in_days"),
            }
        ],
        "server_side_encryption": [
            {
                "enabled": values.get("server_side_encryption_enabled"),
                "kms_key_arn": values.get("server_side_encryption_kms_key_arn"),
            }
        ],
    }
    yield TerraformResource(TABLE, label, place, track(arguments))
    if parse_switch(values.get("autoscaling_enabled")):
        yield from _scaling_resources(values, as_text(name) or "", label, place, ValueReader(report))
    report_unread(values, place, report, ignore=_BESIDE)


def _scaling_resources(
    values: Mapping[str, Any], name: str, label: str, place: str, read: ValueReader
) -> Iterator[TerraformResource]:
    defaults = read.object(values.get("autoscaling_defaults"), f"{place}.autoscaling_defaults")
    for word, argument in _SCALING.items():
        where = f"{place}.{argument}"
        own = read.object(values.get(argument), where)
        if not own:
            continue
        settings = ChainMap(dict(own), dict(defaults))
        target = {"resource_id": f"table/{name}", "scalable_dimension": f"dynamodb:table:{word}CapacityUnits"}
        bounds = {
            "min_capacity": settings.get("min_capacity", values.get(f"{word.lower()}_capacity")),
            "max_capacity": settings.get("max_capacity"),
        }
        tracking = [{"target_value": settings.get("target_value", 70)}]
        yield TerraformResource("aws_appautoscaling_target", label, where, track({**target, **bounds}))
        policy = {**target, "target_tracking_scaling_policy_configuration": tracking}
        yield TerraformResource("aws_appautoscaling_policy", label, where, track(policy))


FILES_MAX = 500
_OVERRIDES = ("override.tf", "_override.tf")


def read_terraform_folder(folder: Path) -> ImportResult:
    """Return the design of the tables in a folder of Terraform files; files that are not read are noted."""
    report = ImportReport("a block")
    paths = sorted(folder.glob("*.tf"))
    if not paths:
        raise FormatError("the folder contains no .tf file")
    if len(paths) > FILES_MAX:
        raise FormatError(
            f"the folder contains more than {FILES_MAX} .tf files; import a smaller folder or a plan (terraform show -json)"
        )
    for path in (path for path in paths if path.name.endswith(_OVERRIDES)):
        report.add(
            path.name, "override files are not read; import a plan (terraform show -json) to include them"
        )
    for path in sorted(folder.glob("*.tf.json")):
        report.add(
            path.name,
            "Terraform files in JSON are not read; import a plan (terraform show -json) to include them",
        )
    blocks = [_hcl(path) for path in paths if not path.name.endswith(_OVERRIDES)]
    settings = {name: value for path in _settings(folder) for name, value in _values(path)}
    return read_terraform(blocks, settings, report)


def _settings(folder: Path) -> Iterator[Path]:
    """Yield the tfvars files that Terraform loads by itself; later files override earlier ones."""
    variable_files = [folder / "terraform.tfvars", folder / "terraform.tfvars.json"]
    yield from (path for path in variable_files if path.exists())
    yield from sorted([*folder.glob("*.auto.tfvars"), *folder.glob("*.auto.tfvars.json")])


def _values(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".json":
        try:
            document = parse_json(read_text(path))
        except FormatError as refused:
            raise refused.within(str(path)) from refused
        if not isinstance(document, Mapping):
            raise FormatError("expected an object of variable values", file=str(path))
        yield from document.items()
        return
    block = _hcl(path)
    evaluator = Evaluator(_no_reference)
    for name, node in block.attributes.items():
        yield name, evaluator.value(node, block.text)


def _hcl(path: Path) -> HclBlock:
    try:
        return parse_hcl(read_text(path, may_be_empty=True), str(path))
    except FormatError as refused:
        raise refused.within(str(path)) from refused


def _no_reference(steps: tuple[str, ...]) -> Any:
    raise KeyError(steps)


FORMAT = "terraform"
INSTANCES_MAX = 200  # of one resource, by count or for_each


def is_terraform(block: HclBlock) -> bool:
    """Return whether a file of HCL is Terraform configuration."""
    kinds = {inner.kind for inner in block.blocks}
    return bool(
        kinds & {"resource", "module", "variable", "locals", "terraform", "provider", "data", "output"}
    )


def read_terraform(
    files: Sequence[HclBlock], settings: Mapping[str, Any] | None = None, report: ImportReport | None = None
) -> ImportResult:
    """Return the design of the tables in the files of one configuration; `settings` are values of variables."""
    report = report or ImportReport("a block")
    module = _Configuration(files, report, settings or {})
    return design_of_resources(list(module.resources()), report, FORMAT)


class _Configuration:
    """The named blocks of a configuration, and the values that references to them have."""

    def __init__(self, files: Sequence[HclBlock], report: ImportReport, settings: Mapping[str, Any]) -> None:
        self.report = report
        self.blocks = [block for file in files for block in file.blocks]
        self.evaluator = Evaluator(self.look_up)
        self.settings = settings
        self.variables = {block.labels[0]: block for block in self.blocks if _is(block, "variable", 1)}
        self.locals = {
            name: (node, block.text)
            for block in self.blocks
            if block.kind == "locals"
            for name, node in block.attributes.items()
        }
        self.named: dict[tuple[str, ...], HclBlock] = {}
        for block in self.blocks:
            if _is(block, "resource", 2) or _is(block, "data", 2):
                if (block.kind, *block.labels) in self.named:
                    report.add(".".join(block.labels), "declared twice; using the last")
                self.named[block.kind, *block.labels] = block
        self._once = LazyValues()

    def resources(self) -> Iterator[TerraformResource]:
        """Yield each instance of the resources that a design can describe."""
        for (kind, type_, name), block in self.named.items():
            if kind == "data" and type_ != DOCUMENT:
                if type_ == TABLE:
                    self.report.add(
                        f"data.{type_}.{name}",
                        "a data source refers to a table of another configuration; not imported",
                    )
                continue
            if not type_.startswith(("aws_dynamodb", "aws_lambda", "aws_iam", "aws_appautoscaling")):
                continue
            place = f"{type_}.{name}" if kind == "resource" else f"data.{type_}.{name}"
            for key, scope in self._instances(block, place):
                values = self.arguments(block, scope)
                label, full_name = _instance_names(name, place, key)
                if kind == "data":
                    values = {"json": render_policy_json(values, self.report, place)}
                if type_ == TABLE and values.get("name") is None:
                    self.report.add(full_name, "name is missing; using the address as the table's name")
                    values["name"] = full_name
                yield TerraformResource(type_, label, full_name, track(values), block.file, block.line)
        for block in self.blocks:
            if _is(block, "module", 1):
                yield from self._module(block)

    def arguments(self, block: HclBlock, scope: Mapping[str, Any]) -> dict[str, Any]:
        """Return a block's evaluated arguments; nested blocks become lists of objects."""
        evaluated: dict[str, Any] = {
            name: self.evaluator.value(node, block.text, scope) for name, node in block.attributes.items()
        }
        for inner in block.blocks:
            for kind, values in self._blocks(inner, scope):
                evaluated.setdefault(kind, [])
                if isinstance(evaluated[kind], list):
                    evaluated[kind].append(values)
        return check_size(evaluated)  # type: ignore[no-any-return]

    def _blocks(self, inner: HclBlock, scope: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        if inner.kind != "dynamic" or len(inner.labels) != 1:
            yield inner.kind, self.arguments(inner, scope)
            return
        kind = inner.labels[0]
        content = next((block for block in inner.blocks if block.kind == "content"), None)
        iterator = inner.attributes.get("iterator")
        name = kind if iterator is None else _bare(iterator)
        pairs = self._pairs(inner.attributes.get("for_each"), inner, scope)
        if content is None or pairs is None:
            self.report.add(
                f"line {inner.line}",
                f"for_each of the dynamic block {kind!r} cannot be resolved; not imported",
            )
            return
        for key, value in pairs:
            yield kind, self.arguments(content, {**scope, name: {"key": key, "value": value}})

    def _pairs(self, node: Any, block: HclBlock, scope: Mapping[str, Any]) -> list[tuple[Any, Any]] | None:
        """Return the keys and values of a for_each; None if they cannot be resolved."""
        match None if node is None else self.evaluator.value(node, block.text, scope):
            case Mapping() as found:
                pairs: list[tuple[Any, Any]] = list(found.items())
            case list() as found:
                pairs = [
                    (element if isinstance(element, str) else position, element)
                    for position, element in enumerate(found)
                ]
            case None if node is not None:
                pairs = []
            case _:
                return None
        if len(pairs) > INSTANCES_MAX:
            raise FormatError(
                f"for_each has {len(pairs)} elements; Tavola reads at most {INSTANCES_MAX}",
                f"line {block.line}",
                block.file,
            )
        return pairs

    def _instances(self, block: HclBlock, place: str) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
        """Yield the key of each instance (None without count and for_each) and its `each` or `count` object."""
        if "for_each" in block.attributes:
            pairs = self._pairs(block.attributes["for_each"], block, {})
            if pairs is None:
                self.report.add(place, "for_each cannot be resolved; imported once")
                pairs = [(Unresolved("${each.key}"), Unresolved("${each.value}"))]
            for key, value in pairs:
                yield as_text(key), {"each": {"key": key, "value": value}}
            return
        if "count" in block.attributes:
            count = self.evaluator.value(block.attributes["count"], block.text)
            if not isinstance(count, int) or isinstance(count, bool) or count > INSTANCES_MAX:
                self.report.add(
                    place,
                    f"count is {show_value(count)}; expected a number up to {INSTANCES_MAX}; imported once",
                )
                count = 1
            if count < 1:
                self.report.add(place, "count is 0 with the default variables; not imported")
            for position in range(count):
                yield None if count == 1 else str(position), {"count": {"index": position}}
            return
        yield None, {}

    def look_up(self, steps: tuple[str, ...]) -> Any:
        """Return the value of a reference; KeyError if only the deployment knows it."""
        match steps:
            case ("var", name, *rest):
                return follow_steps(self._once(f"var.{name}", lambda: self._variable(name)), tuple(rest))
            case ("local", name, *rest):
                node, text = self.locals[name]
                return follow_steps(
                    self._once(f"local.{name}", lambda: self.evaluator.value(node, text)), tuple(rest)
                )
            case ("data", type_, name, *rest):
                block = self.named["data", type_, name]
                if type_ == DOCUMENT and rest == ["json"]:
                    return self._once(
                        ".".join(steps),
                        lambda: render_policy_json(self.arguments(block, {}), self.report, name),
                    )
                raise KeyError(steps)
            case (type_, name, *rest):
                return self._attribute(type_, name, rest)
            case _:
                raise KeyError(steps)

    def _attribute(self, type_: str, name: str, rest: list[str]) -> Any:
        block = self.named["resource", type_, name]
        place = f"{type_}.{name}"
        scope: Mapping[str, Any] = {}
        if "count" in block.attributes or "for_each" in block.attributes:
            key = rest[0] if rest else ""
            scope = self._instance(block, key, place)
            place, rest = f"{place}[{key}]", rest[1:]
        if not rest:
            raise KeyError(name)
        argument = rest[0]
        if type_ == TABLE and argument in ("id", "arn", "stream_arn", "name"):
            table_name = self._argument(block, "name", scope, place)
            return _table_attribute(argument, place if table_name is None else table_name)
        if argument not in block.attributes:
            raise KeyError(argument)
        return follow_steps(self._argument(block, argument, scope, place), tuple(rest[1:]))

    def _argument(self, block: HclBlock, argument: str, scope: Mapping[str, Any], place: str) -> Any:
        node = block.attributes.get(argument)
        return self._once(
            f"{place}.{argument}",
            lambda: None if node is None else self.evaluator.value(node, block.text, scope),
        )

    def _instance(self, block: HclBlock, key: str, place: str) -> Mapping[str, Any]:
        """Return the `each` or `count` object of one instance of a resource; KeyError if there is no such instance."""
        if "count" in block.attributes:
            if not (key.isascii() and key.isdigit() and len(key) < 6):
                raise KeyError(key)
            return {"count": {"index": int(key)}}
        pairs = self._once(f"{place}.for_each", lambda: self._pairs(block.attributes["for_each"], block, {}))
        if pairs is None:
            return {"each": {"key": key, "value": Unresolved("${each.value}")}}
        return {"each": {"key": key, "value": {str(name): value for name, value in pairs}[key]}}

    def _variable(self, name: str) -> Any:
        if name in self.settings:
            return self.settings[name]
        block = self.variables.get(name)
        if block is None or "default" not in block.attributes:
            why = "not declared in these files" if block is None else "no default value"
            self.report.add(f"var.{name}", f"{why}; left as ${{var.{name}}}")
            return Unresolved(f"${{var.{name}}}")
        return self.evaluator.value(block.attributes["default"], block.text)

    def _module(self, block: HclBlock) -> Iterator[TerraformResource]:
        """Yield the table of a call of the registry's module; note any other module."""
        name = block.labels[0]
        place = f"module.{name}"
        source = block.attributes.get("source")
        address = as_text(None if source is None else self.evaluator.value(source, block.text)) or ""
        if not is_registry_module(address):
            self.report.add(
                place,
                f"module source {address or '(none)'} is not read; import a plan (terraform show -json) to include it",
            )
            return
        for key, scope in self._instances(block, place):
            label, full_name = _instance_names(name, place, key)
            yield from expand_registry_module(
                track(self.arguments(block, scope)), label, full_name, self.report
            )


def _instance_names(name: str, place: str, key: str | None) -> tuple[str, str]:
    """Return the label and the place of an instance."""
    return (name, place) if key is None else (python_label(f"{name}_{key}"), f"{place}[{key}]")


def _table_attribute(argument: str, name: Any) -> Any:
    """Return the value of a table's attribute: its name, or an ARN with an unresolved region and account."""
    if argument in ("id", "name"):
        return name
    text = as_text(name) or ""
    return Unresolved(table_arn(text) if argument == "arn" else stream_arn(text))


def _is(block: HclBlock, kind: str, labels: int) -> bool:
    return block.kind == kind and len(block.labels) == labels


def _bare(node: Any) -> str:
    """Return the identifier that an expression consists of."""
    while hasattr(node, "children") and node.children:
        node = node.children[0]
    return str(node)

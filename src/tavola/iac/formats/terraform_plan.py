"""Read the output of `terraform show -json`, for a plan or a state.

A plan omits values that are unknown before it is applied, such as the ARN of a stream; its configuration says which resource they come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tavola.iac.formats.import_result import FormatRefused, ImportReport, ImportResult
from tavola.iac.formats.related_resources import stream_arn, table_arn
from tavola.iac.formats.source_values import Unresolved, as_text, track
from tavola.iac.formats.terraform_resources import (
    DOCUMENT,
    TABLE,
    TerraformResource,
    design_of_resources,
    render_policy_json,
)

FORMAT = "terraform-json"
_INDEX = re.compile(r"\[[^\]]*\]")


def is_terraform_plan(raw: Any) -> bool:
    """Tell whether data is a plan or a state of Terraform's."""
    return isinstance(raw, Mapping) and any(
        isinstance(raw.get(name), Mapping) and "root_module" in raw[name]
        for name in ("planned_values", "values")
    )


def read_terraform_plan(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of the tables that a plan will make or a state has."""
    report = ImportReport()
    told = raw.get("planned_values", raw.get("values"))
    root = told.get("root_module") if isinstance(told, Mapping) else None
    if not isinstance(root, Mapping):
        raise FormatRefused("its root_module is no object; make it again with `terraform show -json`")
    found = list(_resources(root, report))
    prior = raw.get("prior_state")  # where a plan has the data that is known already
    values = prior.get("values") if isinstance(prior, Mapping) else None
    before = values.get("root_module") if isinstance(values, Mapping) else None
    known = {each.place for each in found}
    found += [
        each
        for each in (_resources(before, report) if isinstance(before, Mapping) else ())
        if each.kind == DOCUMENT and each.place not in known
    ]
    configuration = raw.get("configuration")
    top = configuration.get("root_module") if isinstance(configuration, Mapping) else None
    wiring = _Wiring(dict(_references(top, "")), found)
    resources = [replace(each, values=track({**wiring.filled(each), **each.values})) for each in found]
    return design_of_resources(resources, report, FORMAT)


def _resources(module: Mapping[str, Any], report: ImportReport) -> Iterator[TerraformResource]:
    several = module.get("resources")
    for each in several if isinstance(several, list) else ():
        values = each.get("values") if isinstance(each, Mapping) else None
        if not isinstance(values, Mapping) or not isinstance(each.get("type"), str):
            report.add("resources", "one of them is no resource with values, so it is left out")
            continue
        name = as_text(each.get("name")) or "table"
        index = as_text(each.get("index"))
        place = as_text(each.get("address")) or name
        present = {argument: value for argument, value in values.items() if value is not None}
        if each["type"] == TABLE:
            if each.get("mode") == "data":
                report.add(place, "it is a table of another configuration; left out")
                continue
            if not as_text(present.get("name")):
                report.add(place, "its name is not known before it is made; its address is taken")
                present["name"] = place
        if each["type"] == DOCUMENT and "json" not in present:
            present["json"] = render_policy_json(present, report, place)
        yield TerraformResource(each["type"], name if index is None else f"{name}_{index}", place, present)
    inner = module.get("child_modules")
    for child in inner if isinstance(inner, list) else ():
        if isinstance(child, Mapping):
            yield from _resources(child, report)


def _references(module: Any, prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give each resource of a configuration by its address, without numbers, with the expressions of its arguments."""
    several = module.get("resources") if isinstance(module, Mapping) else None
    for each in several if isinstance(several, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("expressions"), Mapping):
            yield f"{prefix}{each.get('address')}", each["expressions"]
    calls = module.get("module_calls") if isinstance(module, Mapping) else None
    for name, call in calls.items() if isinstance(calls, Mapping) else ():
        if isinstance(call, Mapping):
            yield from _references(call.get("module"), f"{prefix}module.{name}.")


@dataclass(frozen=True, slots=True)
class _Wiring:
    """Which resource an argument comes from that a plan does not know yet."""

    expressions: Mapping[str, Mapping[str, Any]]
    resources: list[TerraformResource]

    def filled(self, resource: TerraformResource) -> dict[str, Any]:
        """Return arguments that a plan does not know yet and its configuration says by reference."""
        found: dict[str, Any] = {}
        bare = _INDEX.sub("", resource.place)
        module = resource.place.rpartition(f"{resource.kind}.")[0]
        for argument, expression in self.expressions.get(bare, {}).items():
            references = expression.get("references") if isinstance(expression, Mapping) else None
            told = (
                [each for each in references if isinstance(each, str)] if isinstance(references, list) else []
            )
            if argument not in resource.values and told:
                found[argument] = self._meant(argument, told, module)
        return found

    def _meant(self, argument: str, references: list[str], module: str) -> Any:
        """Return what an argument will be: of a table or a policy's document, else as its reference is spelt."""
        first = references[0]
        address, _, attribute = first.rpartition(".")
        for each in self.resources:
            if f"{module}{address}" not in (each.place, _INDEX.sub("", each.place)):
                continue
            if each.kind == DOCUMENT and attribute == "json":
                return each.values.get("json")
            if each.kind == TABLE and argument != "policy":
                name = as_text(each.values.get("name")) or ""
                whole = {"arn": table_arn(name), "stream_arn": stream_arn(name)}
                return Unresolved(whole[attribute]) if attribute in whole else name
        return Unresolved(f"${{{first}}}")

"""Evaluate CloudFormation's intrinsic functions as far as the template determines them.

A parameter has its default. What only the deployment knows stays in the text as `${Name}` and is reported where it decides something. An
undecidable condition is taken as true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.related_resources import stream_arn, table_arn
from tavola.iac.formats.source_values import (
    LazyValues,
    Unresolved,
    as_plain_data,
    as_text,
    as_text_part,
    is_resolved,
    join_parts,
    show_value,
)

TABLES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable")


class _NoValue:
    """The value of `AWS::NoValue`: the property that has it is removed."""


NO_VALUE = _NoValue()


class Resolver:
    """The names of one template and their values."""

    def __init__(self, template: Mapping[str, Any], report: ImportReport) -> None:
        self.report = report
        self.parameters = _section(template, "Parameters")
        self.mappings = _section(template, "Mappings")
        self.conditions = _section(template, "Conditions")
        self.resources = _section(template, "Resources")
        self._within = LazyValues()
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::If": self._if,
            "Fn::FindInMap": self._find_in_map,
            "Fn::ToJsonString": self._json,
        }

    def value(self, raw: Any) -> Any:
        """Return a value with every intrinsic function in it evaluated."""
        if isinstance(raw, Mapping):
            if len(raw) == 1:
                name = next(iter(raw))
                if name in self._functions:
                    return self._functions[name](raw[name])
                if name.startswith("Fn::"):
                    return self._unknown(name, raw[name])
            evaluated = ((name, self.value(member)) for name, member in raw.items())
            return {name: member for name, member in evaluated if member is not NO_VALUE}
        if isinstance(raw, list):
            return [member for member in map(self.value, raw) if member is not NO_VALUE]
        return raw

    def properties(self, logical: str) -> dict[str, Any]:
        """Return a resource's evaluated properties."""
        evaluated = self._within(
            f"Resources.{logical}", lambda: self.value(self.resources[logical].get("Properties"))
        )
        return evaluated if isinstance(evaluated, dict) else {}

    def table_name(self, logical: str) -> str:
        """Return a table's name, or its logical id if CloudFormation generates the name."""
        return as_text(self._table_name(logical)) or logical

    def _table_name(self, logical: str) -> str | Unresolved:
        properties = self.resources[logical].get("Properties")
        name = properties.get("TableName") if isinstance(properties, Mapping) else None
        return (
            as_text_part(self._within(f"Resources.{logical}.TableName", lambda: self.value(name))) or logical
        )

    def holds(self, name: Any, place: str) -> bool:
        """Evaluate a condition by its name; one that cannot be evaluated counts as true, and is noted."""
        outcome = self._condition(name)
        if outcome is None:
            self.report.add(
                place, f"condition {show_value(name)} cannot be evaluated from the template; using true"
            )
            return True
        return outcome

    def _condition(self, name: Any) -> bool | None:
        if not isinstance(name, str):
            return None
        outcome: bool | None = self._within(
            f"Conditions.{name}", lambda: self._decide(self.conditions.get(name))
        )
        return outcome

    def _ref(self, name: Any) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if not isinstance(name, str):
            return self._unknown("Ref", name)
        if name.startswith("AWS::"):
            return Unresolved(f"${{{name}}}")
        if name in self.parameters:
            return self._parameter(name)
        resource = self.resources.get(name)
        if isinstance(resource, Mapping):
            return self._table_name(name) if resource.get("Type") in TABLES else Unresolved(f"${{{name}}}")
        self.report.add(f"Ref {name}", "no parameter or resource with this name")
        return Unresolved(f"${{{name}}}")

    def _parameter(self, name: str) -> Any:
        parameter = self.parameters[name]
        default = parameter.get("Default") if isinstance(parameter, Mapping) else None
        kind = str(parameter.get("Type")) if isinstance(parameter, Mapping) else ""
        if default is None or kind.startswith("AWS::SSM"):
            self.report.add(f"Parameters.{name}", f"no default value; left as ${{{name}}}")
            return Unresolved(f"${{{name}}}")
        if isinstance(default, Mapping):
            return self._unknown(name, default)
        if "List" in kind and isinstance(default, str):
            return [element.strip() for element in default.split(",")]
        return default

    def _get_att(self, raw: Any) -> Any:
        several = raw.split(".", 1) if isinstance(raw, str) else self.value(raw)
        parts = [as_text(element) or "" for element in several] if isinstance(several, list) else []
        if len(parts) < 2:
            return self._unknown("Fn::GetAtt", raw)
        logical, attribute = parts[0], ".".join(parts[1:])
        resource = self.resources.get(logical)
        if isinstance(resource, Mapping) and resource.get("Type") in TABLES:
            if attribute == "Arn":
                return Unresolved(table_arn(self.table_name(logical)))
            if attribute == "StreamArn":
                return Unresolved(stream_arn(self.table_name(logical)))
        return Unresolved(f"${{{logical}.{attribute}}}")

    def _sub(self, raw: Any) -> Any:
        text, own = (raw, {}) if isinstance(raw, str) else (None, {})
        if (
            isinstance(raw, list)
            and len(raw) == 2
            and isinstance(raw[0], str)
            and isinstance(raw[1], Mapping)
        ):
            text, own = raw[0], {name: self.value(member) for name, member in raw[1].items()}
        if text is None:
            return self._unknown("Fn::Sub", raw)
        parts: list[str | Unresolved] = []
        position = 0
        while (start := text.find("${", position)) >= 0:
            end = text.find("}", start)
            if end < 0:
                break
            parts.append(text[position:start])
            name = text[start + 2 : end].strip()
            if name.startswith("!"):
                parts.append(f"${{{name[1:]}}}")
            else:
                value = own[name] if name in own else self._get_att(name) if "." in name else self._ref(name)
                part = as_text_part(value)
                parts.append(Unresolved(f"${{{name}}}") if part is None else part)
            position = end + 1
        return join_parts([*parts, text[position:]])

    def _join(self, raw: Any) -> Any:
        evaluated = self.value(raw)
        match evaluated:
            case [str(delimiter), list(parts)]:
                texts = [part for raw_part in parts if (part := as_text_part(raw_part)) is not None]
                if len(texts) == len(parts):
                    return join_parts([piece for text in texts for piece in (delimiter, text)][1:])
            case _:
                pass
        return self._unknown("Fn::Join", raw)

    def _select(self, raw: Any) -> Any:
        match self.value(raw):
            case [index, list(several)]:
                digits = as_text(index) or ""
                if digits.isascii() and digits.isdigit() and len(digits) < 6 and int(digits) < len(several):
                    return several[int(digits)]
            case _:
                pass
        return self._unknown("Fn::Select", raw)

    def _split(self, raw: Any) -> Any:
        match self.value(raw):
            case [str(delimiter), str(text)] if delimiter:
                return text.split(delimiter)
            case _:
                pass
        return self._unknown("Fn::Split", raw)

    def _if(self, raw: Any) -> Any:
        if isinstance(raw, list) and len(raw) == 3:
            if all(isinstance(condition, bool) for condition in raw[1:]) and self._condition(raw[0]) is None:
                return Unresolved(f"${{{raw[0]}}}")  # true or false, known only at deployment
            return self.value(raw[1] if self.holds(raw[0], f"Conditions.{raw[0]}") else raw[2])
        return self._unknown("Fn::If", raw)

    def _find_in_map(self, raw: Any) -> Any:
        evaluated = self.value(raw)
        if isinstance(evaluated, list) and len(evaluated) >= 3:
            value: Any = self.mappings
            for step in evaluated[:3]:
                value = value.get(as_text(step)) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return self._unknown("Fn::FindInMap", raw)

    def _json(self, raw: Any) -> str | Unresolved:
        value = self.value(raw)
        text = json.dumps(as_plain_data(value))
        return text if is_resolved(value) else Unresolved(text)

    def _unknown(self, name: str, raw: Any) -> Unresolved:
        self.report.add(name, f"{show_value(raw)} cannot be resolved from the template; left as ${{{name}}}")
        return Unresolved(f"${{{name}}}")

    def _decide(self, raw: Any) -> bool | None:
        match raw:
            case {"Condition": name}:
                return self._condition(name)
            case {"Fn::Equals": [left, right]}:
                one, other = self.value(left), self.value(right)
                if not (is_resolved(one) and is_resolved(other)):
                    return None
                return as_text(one) == as_text(other) if as_text(one) is not None else bool(one == other)
            case {"Fn::Not": [inner]}:
                result = self._decide(inner)
                return None if result is None else not result
            case {"Fn::And": list(several)}:
                results = [self._decide(condition) for condition in several]
                return False if False in results else None if None in results else True
            case {"Fn::Or": list(several)}:
                results = [self._decide(condition) for condition in several]
                return True if True in results else None if None in results else False
            case _:
                return None


def _section(template: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = template.get(name)
    return section if isinstance(section, Mapping) else {}

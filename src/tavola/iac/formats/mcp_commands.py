"""Commands of the AWS CLI that awslabs' models give for an access pattern: what they ask for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Path,
    ValueRef,
)
from tavola.expressions.parser import parse_condition
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.sample_items import key_text
from tavola.iac.formats.unresolved import as_text
from tavola.iac.formats.value_reader import show_value
from tavola.model.document import Given

COMMAND_MAX = 20_000  # characters
_CALLS = {"begins_with": "begins_with", "contains": "contains", "attribute_exists": "exists"}


@dataclass(frozen=True, slots=True)
class CliCommand:
    """The options of a command that say what is asked."""

    options: Mapping[str, str]
    place: str
    report: ImportReport

    @classmethod
    def parse(cls, text: str, place: str, report: ImportReport) -> CliCommand:
        """Return the command in a text; one without options, and a note, if there is none."""
        words: list[str] = []
        if len(text) > COMMAND_MAX:
            report.add(place, f"its command is longer than {COMMAND_MAX:,} characters, and is left out")
        else:
            try:
                words = shlex.split(text)
            except ValueError as error:
                report.add(place, f"its command cannot be taken apart ({error}), and is left out")
        options: dict[str, str] = {}
        for at, word in enumerate(words):
            if word.startswith("--"):
                name, _, value = word.partition("=")
                following = words[at + 1] if at + 1 < len(words) else ""
                options[name] = value or ("" if following.startswith("--") else following)
        return cls(options, place, report)

    def data(self, option: str) -> Mapping[str, Any]:
        """Return an option that is an object in JSON; an empty one, and a note, if it is none."""
        told = self.options.get(option, "{}")
        try:
            found = json.loads(told)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, Mapping):
            self.report.add(self.place, f"{option} is {show_value(told)}, and no object in JSON; left out")
            return {}
        return found

    def conditions(self, option: str) -> list[tuple[Given, str | None]]:
        """Return the conditions of an expression, each with the text that its value is, where it says one."""
        text = self.options.get(option)
        if not text:
            return []
        try:
            tree = parse_condition(text).tree
        except ExpressionError as error:
            self.report.add(self.place, f"{option} is none that can be parsed ({error}); left out")
            return []
        found: list[tuple[Given, str | None]] = []
        for part in tree.parts if isinstance(tree, And) else (tree,):
            told = self._given(part)
            if told is None:
                self.report.add(self.place, f"a part of {option} is none that a need can say; left out")
            else:
                found.append(told)
        return found

    def _given(self, node: ConditionNode) -> tuple[Given, str | None] | None:
        match node:
            case Comparison("=" | "<" | "<=" | ">" | ">=" as operator, Path() as path, right):
                return self._made(path, operator, right)
            case Between(Path() as path, _, _):
                return self._made(path, "between", None)
            case InList(Path() as path, _):
                return self._made(path, "in", None)
            case FunctionCall(name, (Path() as path, *rest)) if name in _CALLS:
                return self._made(path, _CALLS[name], rest[0] if rest else None)
            case _:
                return None

    def _made(self, path: Path, operator: str, value: Any) -> tuple[Given, str | None] | None:
        if len(path.steps) != 1 or isinstance(path.steps[0], int):
            return None
        step = path.steps[0]
        name = step if isinstance(step, str) else self._name(step.name)
        told = (
            self.data("--expression-attribute-values").get(value.name)
            if isinstance(value, ValueRef)
            else None
        )
        text = key_text(cast(Any, told)) if isinstance(told, Mapping) and len(told) == 1 else None
        return Given(name, cast(Any, operator)), text

    def _name(self, placeholder: str) -> str:
        return as_text(self.data("--expression-attribute-names").get(placeholder)) or placeholder


def typed_values(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give the attributes of a key or an item that have a type and a content."""
    for name, value in raw.items():
        if isinstance(value, Mapping) and len(value) == 1:
            yield name, value

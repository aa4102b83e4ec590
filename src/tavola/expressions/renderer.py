"""Trees to text, names and values of a request.

A name is written out if DynamoDB allows it and becomes a placeholder otherwise: reserved words, keywords, and names
with other characters. A literal always becomes a placeholder. One renderer serves all expressions of a request, so
equal names and values share their placeholders.
"""

from __future__ import annotations

import re

from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Arithmetic,
    Between,
    Comparison,
    ConditionNode,
    Delete,
    FunctionCall,
    InList,
    Literal,
    NameRef,
    Not,
    Operand,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    Step,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.reserved import is_reserved
from tavola.values import Value

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SECTIONS = {Set: "SET", Remove: "REMOVE", Add: "ADD", Delete: "DELETE"}


class Renderer:
    """Renders the expressions of one request; `names` and `values` collect their placeholders."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        self._placeholders: dict[str, str] = {}

    def condition(self, tree: ConditionNode) -> str:
        """Return a condition, filter or key condition as text."""
        match tree:
            case And(parts):
                return " AND ".join(self._part(part, (And, Or)) for part in parts)
            case Or(parts):
                return " OR ".join(self._part(part, (Or,)) for part in parts)
            case Not(part):
                return f"NOT {self._part(part, (And, Or))}"
            case Comparison(operator, left, right):
                return f"{self._operand(left)} {operator} {self._operand(right)}"
            case Between(operand, lower, upper):
                bounds = f"{self._operand(lower)} AND {self._operand(upper)}"
                return f"{self._operand(operand)} BETWEEN {bounds}"
            case InList(operand, choices):
                return f"{self._operand(operand)} IN ({', '.join(map(self._operand, choices))})"
            case FunctionCall():
                return self._operand(tree)

    def update(self, tree: UpdateNode) -> str:
        """Return an update as text, with a section for each kind of action."""
        sections: dict[str, list[str]] = {}
        for action in tree.actions:
            sections.setdefault(_SECTIONS[type(action)], []).append(self._action(action))
        return " ".join(f"{section} {', '.join(actions)}" for section, actions in sections.items())

    def projection(self, tree: ProjectionNode) -> str:
        """Return a projection as text."""
        return ", ".join(map(self._path, tree.paths))

    def _part(self, part: ConditionNode, enclosed: tuple[type, ...]) -> str:
        text = self.condition(part)
        return f"({text})" if isinstance(part, enclosed) else text

    def _action(self, action: Action) -> str:
        path = self._path(action.path)
        match action:
            case Set(_, Arithmetic(operator, left, right)):
                return f"{path} = {self._operand(left)} {operator} {self._operand(right)}"
            case Set(_, value):
                assert not isinstance(value, Arithmetic)
                return f"{path} = {self._operand(value)}"
            case Remove():
                return path
            case Add(_, amount) | Delete(_, amount):
                return f"{path} {self._operand(amount)}"

    def _operand(self, operand: Operand) -> str:
        match operand:
            case Path():
                return self._path(operand)
            case ValueRef(name):
                return name
            case Literal(value):
                return self._value(value)
            case FunctionCall(function, operands):
                return f"{function}({', '.join(map(self._operand, operands))})"
            case Truth():
                raise AssertionError("an expression has no condition for an operand")

    def _path(self, path: Path) -> str:
        first, *rest = path.steps
        return self._step(first) + "".join(
            f"[{step}]" if isinstance(step, int) else f".{self._step(step)}" for step in rest
        )

    def _step(self, step: Step) -> str:
        if isinstance(step, NameRef):
            return step.name
        name = str(step)
        # REMOVE is a keyword but not a reserved word.
        if _BARE.fullmatch(name) and not is_reserved(name) and name.upper() != "REMOVE":
            return name
        if name not in self._placeholders:
            placeholder = f"#n{len(self.names)}"
            self._placeholders[name] = placeholder
            self.names[placeholder] = name
        return self._placeholders[name]

    def _value(self, value: Value) -> str:
        for placeholder, known in self.values.items():
            if known == value:
                return placeholder
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

"""Application of updates: an item and an update give a new item.

Every right side and every list index refers to the item before the update, whatever the order of actions. Values that
the update does not touch are shared by both items.

Values are shared and not copied, so `SET a = l` costs the same for every `l`. Only `list_append` makes a list, and one
request may do that more than a hundred times. So building stops when the lists that are set have more elements than an item
can hold. The rest of the update is then only checked, with lists that are not joined: every other reason to refuse an update
comes before its size, as if the item had been built.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from tavola.expressions.errors import UpdateRefused
from tavola.expressions.nodes import (
    Action,
    Add,
    Arithmetic,
    DeleteElements,
    FunctionCall,
    Literal,
    Operand,
    Path,
    Remove,
    Set,
    Truth,
    UpdateNode,
    ValueRef,
)
from tavola.expressions.paths import PathTree, Steps, compile_reader, steps_of, tree_of
from tavola.expressions.projections import Pick, compile_picker
from tavola.limits import ITEM_BYTES_MAX
from tavola.values import Item, NumberRefused, Value, add_numbers, subtract_numbers, union

Values = Mapping[str, Value]
Read = Callable[[Item, Values], Value]
# Arguments: the current value at a path, the whole item, the values. Result: the new value, None to remove it.
Change = Callable[[Value | None, Item, Values], Value | None]

INVALID_PATH = "The document path provided in the update expression is invalid for update"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
NO_ATTRIBUTE = "The provided expression refers to an attribute that does not exist in the item"

_SETS = ("SS", "NS", "BS")
_ELEMENTS_MAX = ITEM_BYTES_MAX  # in all lists of an item: each element counts at least one byte


class CompiledUpdate(Struct, frozen=True):
    """A compiled update, and the attributes and placeholders it uses."""

    tree: UpdateNode
    change: Callable[[Item, Values, bool], Item]
    touched: tuple[Steps, ...]
    attributes: frozenset[str]  # top-level attributes read or written
    written: frozenset[str]  # top-level attributes written
    nested: frozenset[str]  # attributes that a path goes into with `.` or `[]`
    removes_only: bool  # REMOVE and DELETE only: does not create a missing item
    names_used: frozenset[str]
    values_used: frozenset[str]
    copied: frozenset[str] = frozenset()  # top-level attributes set to the value of another one


class AppliedUpdate(NamedTuple):
    """The new item, and the paths that the update wrote."""

    item: Item
    touched: tuple[Steps, ...]


def apply(update: CompiledUpdate, item: Item, values: Values, *, exists: bool = True) -> AppliedUpdate:
    """Return the updated item; the old one is not changed.

    `exists=False` means that `item` is only the key of a missing item: DynamoDB then ignores a REMOVE whose parent
    is missing, which it otherwise refuses.
    """
    return AppliedUpdate(update.change(item, values, exists), update.touched)


def written_part(item: Item, applied: AppliedUpdate) -> Item | None:
    """Return the written paths of the old or new item, for UPDATED_OLD and UPDATED_NEW; None if empty.

    Paths are looked up as written in either image. So an element set past the end of a list is not returned, and
    one that moved into a removed position is; DynamoDB does the same.
    """
    return _picker(applied.touched)(item) or None


@lru_cache(maxsize=1024)
def _picker(touched: tuple[Steps, ...]) -> Pick:
    return compile_picker(touched)


def compile_change(tree: UpdateNode, *, legacy: bool = False) -> Callable[[Item, Values, bool], Item]:
    """Return the function that builds the new item.

    `legacy` uses the rules and messages of AttributeUpdates.
    """
    change = _compile(tree, legacy, joins=True)

    def change_item(item: Item, values: Values, exists: bool) -> Item:
        try:
            return change(item, values, exists)
        except _TooManyElements:
            _compile(tree, legacy, joins=False)(item, values, exists)
            raise UpdateRefused(UPDATE_TOO_LARGE) from None

    return change_item


class _TooManyElements(Exception):
    """The lists that an update sets have more elements than an item can hold."""


def _compile(tree: UpdateNode, legacy: bool, *, joins: bool) -> Callable[[Item, Values, bool], Item]:
    """Return the function that builds the new item; without `joins` it only checks, because the item is too large."""
    elements_max = _ELEMENTS_MAX if joins else sys.maxsize
    ends = tuple((steps_of(action.path), _change(action, legacy, joins)) for action in tree.actions)
    if all(len(steps) == 1 for steps, _ in ends):
        return _flat(tuple((str(steps[0]), change) for steps, change in ends), elements_max)
    branches = tree_of(ends)

    def apply_tree(item: Item, values: Values, exists: bool) -> Item:
        return _UpdateWalk(item, values, exists, elements_max).members(item, branches)

    return apply_tree


def _flat(changes: tuple[tuple[str, Change], ...], elements_max: int) -> Callable[[Item, Values, bool], Item]:
    def apply_flat(item: Item, values: Values, exists: bool) -> Item:
        new = item.copy()
        elements = 0  # of the lists that are set
        for name, change in changes:
            value = change(item.get(name), item, values)
            if value is None:
                new.pop(name, None)
                continue
            new[name] = value
            if "L" in value:
                elements += len(value["L"])
                if elements > elements_max:
                    raise _TooManyElements
        return new

    return apply_flat


class _UpdateWalk:
    """One application of a tree of changes."""

    __slots__ = ("elements_left", "exists", "item", "values")

    def __init__(self, item: Item, values: Values, exists: bool, elements_max: int) -> None:
        self.item = item
        self.values = values
        self.exists = exists
        self.elements_left = elements_max  # that lists may still have

    def members(self, members: dict[str, Value], tree: PathTree) -> dict[str, Value]:
        new = members.copy()
        for name, branch in tree.items():
            value = self.change_value(members.get(name), branch)
            if value is None:
                new.pop(name, None)
            else:
                new[name] = value
        return new

    def elements(self, elements: list[Value], tree: PathTree) -> list[Value]:
        new: list[Value | None] = list(elements)
        for index, branch in tree.items():
            if index < len(elements):
                new[index] = self.change_value(elements[index], branch)
            else:
                new.append(self.change_value(None, branch))
        return [element for element in new if element is not None]

    def change_value(self, value: Value | None, branch: Any) -> Value | None:
        """Return the new form of a value: replaced if a path ends here, otherwise changed inside."""
        if not isinstance(branch, dict):
            changed: Value | None = branch(value, self.item, self.values)
            if changed is not None and "L" in changed:
                self.elements_left -= len(changed["L"])
                if self.elements_left < 0:
                    raise _TooManyElements
            return changed
        indexed = isinstance(next(iter(branch)), int)
        content = None if value is None else value.get("L" if indexed else "M")
        if content is None:
            if not self.exists and _only_removes(branch):
                return value
            raise UpdateRefused(INVALID_PATH)
        if indexed:
            return {"L": self.elements(content, branch)}
        return {"M": self.members(content, branch)}


def _only_removes(branch: PathTree) -> bool:
    pending = [branch]
    while pending:
        for end in pending.pop().values():
            if isinstance(end, dict):
                pending.append(end)
            elif end is not _nothing:
                return False
    return True


def _nothing(current: Value | None, item: Item, values: Values) -> None:
    """The result of REMOVE."""


def _change(action: Action, legacy: bool, joins: bool) -> Change:
    match action:
        case Set(_, value):
            read = _value(value, joins)
            return lambda current, item, values: read(item, values)
        case Remove():
            return _nothing
        case Add(_, amount):
            return _adding(_operand(amount, joins), legacy)
        case DeleteElements(_, amount):
            return _deleting(_operand(amount, joins), legacy)


def _mismatch(legacy: bool) -> UpdateRefused:
    return UpdateRefused("Type mismatch for attribute to update" if legacy else WRONG_TYPE)


def _adding(amount: Read, legacy: bool) -> Change:
    def add(current: Value | None, item: Item, values: Values) -> Value | None:
        value = amount(item, values)
        if current is None:
            return value
        for tag, more in value.items():
            stored = current.get(tag)
            if stored is None:
                break
            if tag == "N":
                return {"N": _calculate(add_numbers, stored, more)}
            if tag == "L" and legacy:
                return {"L": stored + more}
            if tag in _SETS:
                return {tag: union(tag, stored, more)}
        raise _mismatch(legacy)

    return add


def _deleting(amount: Read, legacy: bool) -> Change:
    def delete(current: Value | None, item: Item, values: Values) -> Value | None:
        if current is None:
            return None
        for tag, less in amount(item, values).items():
            stored = current.get(tag)
            if stored is not None and tag in _SETS:
                gone = set(less)
                left = [member for member in stored if member not in gone]
                return {tag: left} if left else None
        raise _mismatch(legacy)

    return delete


def _calculate(operation: Callable[[str, str], str], left: str, right: str) -> str:
    try:
        return operation(left, right)
    except NumberRefused as refused:
        raise UpdateRefused(str(refused)) from refused


def _value(value: Operand | Arithmetic, joins: bool) -> Read:
    if not isinstance(value, Arithmetic):
        return _operand(value, joins)
    left, right = _operand(value.left, joins), _operand(value.right, joins)
    operation = add_numbers if value.operator == "+" else subtract_numbers

    def calculate(item: Item, values: Values) -> Value:
        a, b = left(item, values).get("N"), right(item, values).get("N")
        if a is None or b is None:
            raise UpdateRefused(WRONG_TYPE)
        return {"N": _calculate(operation, a, b)}

    return calculate


def _operand(operand: Operand, joins: bool) -> Read:
    match operand:
        case ValueRef(name):
            return lambda item, values: values[name]
        case Literal(value):
            return lambda item, values: value
        case Path():
            return _read_attribute(steps_of(operand))
        case FunctionCall("if_not_exists", (Path() as path, fallback)):
            return _if_not_exists(steps_of(path), _operand(fallback, joins))
        case FunctionCall("list_append", (first, second)):
            return _list_append(_operand(first, joins), _operand(second, joins), joins)
        case FunctionCall() | Truth():
            raise AssertionError("the checker lets only functions with a value be used as operands")


def _read_attribute(steps: Steps) -> Read:
    at = compile_reader(steps)

    def read(item: Item, values: Values) -> Value:
        value = at(item)
        if value is None:
            raise UpdateRefused(NO_ATTRIBUTE)
        return value

    return read


def _if_not_exists(steps: Steps, fallback: Read) -> Read:
    at = compile_reader(steps)

    def read(item: Item, values: Values) -> Value:
        value = at(item)
        return fallback(item, values) if value is None else value

    return read


def _list_append(first: Read, second: Read, joins: bool) -> Read:
    def read(item: Item, values: Values) -> Value:
        head, tail = first(item, values).get("L"), second(item, values).get("L")
        if head is None or tail is None:
            raise UpdateRefused(WRONG_TYPE)
        return {"L": head + tail if joins else head}

    return read

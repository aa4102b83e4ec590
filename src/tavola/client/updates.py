"""Index-key maintenance: an update rewrites every index key that depends on the changed fields.

Index keys are templates over several fields, such as `TICKET#{status}#{created_at}`, stored as ordinary attributes. A plain
UpdateItem that sets `status` would leave the stored key stale, and queries by it would miss the item. So each update works
out which keys its fields occur in, and for each key whether all its fields are known without reading:

    known = fields set or removed by the update + fields of the item's key + fields that `when` fixes to a value

    all known ──► one UpdateItem sets the fields and the rewritten keys              (1 request)
    otherwise ──► GetItem, apply the changes here, UpdateItem with the new keys,     (2 requests)
                  conditional on the fields that were read being unchanged
                       └─ condition fails ──► work it out again from the item in the response, no further read

Keys are never stale because a key is written only from values that hold at the moment of the write: they come from the
request itself, from the condition, or from a read that the condition proves current. The fields that a change computes its
value from (`add`, `set_if_absent`) are part of that condition. An entity with stale="refuse" raises `UpdateNeedsMore` instead
of reading.

An item that an update creates is complete: required fields are demanded, and defaults of fields that occur in index keys
are stored. Not handled here: items written by other programs; `verify_keys` finds and repairs those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as Set_
from dataclasses import dataclass
from typing import Any

from tavola.client.arguments import check_changes, check_condition
from tavola.client.context import Context
from tavola.client.errors import UpdateNeedsMore
from tavola.client.marshalling import values_in
from tavola.client.requests import unchanged
from tavola.client.writes import named
from tavola.expressions.errors import UpdateRefused
from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Comparison,
    ConditionNode,
    Delete,
    FunctionCall,
    Literal,
    Path,
    Remove,
    Set,
    UpdateNode,
)
from tavola.expressions.updates import compile_change
from tavola.expressions.walks import paths_of
from tavola.model import (
    Change,
    Condition,
    FieldShape,
    ItemUnreadable,
    KeyShape,
    ModelError,
    Shape,
    enum_value,
)
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, Value

CHANGED_TWICE = "is changed twice in one update; DynamoDB takes one change of an attribute"


@dataclass(frozen=True, slots=True)
class Planned:
    """An update that is ready: its actions, and what must hold besides the caller's condition."""

    actions: tuple[Action, ...]
    guards: tuple[ConditionNode, ...]


class PreparedUpdate:
    """What a set of changes of one entity means for its index keys."""

    def __init__(
        self,
        shape: Shape,
        keys: Mapping[str, Any],
        changes: Sequence[Change[Any]],
        when: Condition[Any] | None,
        creating: bool = False,
    ) -> None:
        self.shape = shape
        self.keys = keys
        self.changes = tuple(changes)
        check_condition(shape, when, "update")
        check_changes(shape, changes)
        self.touched = frozenset(change.field for change in changes)
        self._check()
        self.known = self._known(keys, when)
        self.fills = self._fills() if creating else {}
        # An item that the update may make needs all its keys, also those that follow from its key or from defaults.
        self.affected = tuple(k for k in shape.keys if k.written and (creating or k.fields & self.touched))
        self.unsettled = tuple(key for key in self.affected if not self._settled(key))

    @property
    def what(self) -> str:
        """How errors name the item."""
        return named(self.shape, self.keys)

    def _check(self) -> None:
        name = self.shape.entity.__name__
        seen: set[str] = set()
        for change in self.changes:
            if change.field in self.shape.key_fields:
                raise ModelError(
                    f"{name}.{change.field}",
                    "it is part of the item's key, which cannot change; create the new item and delete the old one",
                )
            if self.shape.fields[change.field].lock:
                raise ModelError(
                    f"{name}.{change.field}",
                    "it counts the item's writes, and is raised by every one of them",
                )
            if change.whole and change.field in seen:
                raise ModelError(f"{name}.{change.field}", CHANGED_TWICE)
            seen.add(change.field)

    def _known(self, keys: Mapping[str, Any], when: Condition[Any] | None) -> dict[str, Any]:
        """Return the fields whose values after the update are known without reading."""
        known = {name: enum_value(value) for name, value in keys.items()}
        if when is not None:
            for attribute, value in _equalities(when.node):
                field = self.shape.by_attribute.get(attribute)
                if field is not None and field.name not in self.touched:
                    _note(known, field, value)
        for change in self.changes:
            if not change.whole:
                continue
            field = self.shape.fields[change.field]
            match change.action:
                case Set(_, Literal(value)):
                    _note(known, field, value)
                case Remove():
                    _note(known, field, None)
                case _:
                    known.pop(field.name, None)
        return known

    def _fills(self) -> dict[str, Action]:
        """Return what a new item needs besides the changes, by field; refuse what would be no whole item.

        Defaults of fields that indexes are made of are stored, unless there is a value: an index of the item's own
        attributes does not hold an item that lacks one, and a default that is made when asked for is another each time.
        """
        shape = self.shape
        given = {change.field for change in self.changes if not isinstance(change.action, Remove | Delete)}
        absent = [
            name
            for name, field in shape.fields.items()
            if field.is_required and name not in given and name not in self.keys
        ]
        if absent:
            raise ModelError(
                f"{shape.entity.__name__}.{absent[0]}",
                "it is required, and with create=True the update may make an item that lacks it and could not be read; "
                "set it too, such as with set_if_absent(), or create() the item first",
            )
        fills: dict[str, Action] = {}
        for name in sorted(
            {name for key in shape.keys for name in key.fields} - self.touched - self.keys.keys()
        ):
            field = shape.fields[name]
            default = field.new_default(self.known)
            encoded = None if default is None else field.encode(default)
            if encoded:
                path = Path((field.attribute,))
                fills[name] = Set(path, FunctionCall("if_not_exists", (path, Literal(encoded))))
        return fills

    def _settled(self, key: KeyShape) -> bool:
        """Return whether a key's new value follows from what is known; a shard at random is kept where it is."""
        if key.fields.isdisjoint(self.touched) and key.shards is not None and key.shards.by == "random":
            return False
        return self._out(key) or key.fields <= self.known.keys()

    def _out(self, key: KeyShape) -> bool:
        """Return whether the item surely is not in an index after the update."""
        if any(name in self.known and self.known[name] not in allowed for name, allowed in key.members):
            return True
        return key.sparse and any(name in self.known and self.known[name] is None for name in key.needed)

    def bare(self) -> tuple[Action, ...]:
        """Return the changes alone, for an item that is written whole."""
        return (*(change.action for change in self.changes), *self._lock())

    def ready(self, primary: Item, context: Context) -> Planned:
        """Return the update from what is known; every affected key must be settled."""
        if self.unsettled:
            key = self.unsettled[0]
            absent = tuple(sorted(key.fields - self.known.keys()))
            assert key.index is not None
            raise UpdateNeedsMore(self.what, key.index.label, absent)
        actions = self._actions()
        for key in self.affected:
            actions += self._rewritten(key, {} if self._out(key) else self.known, primary, context)
        return Planned((*actions, *self._lock()), ())

    def ready_on(self, item: Item, primary: Item, context: Context) -> Planned:
        """Return the update worked out on an item as it was read, guarded by what was read."""
        actions = self._actions()
        after = changed(actions, item) | primary
        fields = self.shape.fields
        touched = self.touched | {name for name in self.fills if fields[name].attribute not in item}
        guarded: set[str] = set()
        for key in self.affected:
            values = self.known
            if item and key.fields.isdisjoint(touched):
                continue
            if key in self.unsettled:
                told = {name: value for name, value in self.known.items() if name in key.fields}
                values = values_in(self.shape, after, key.fields) | told
                unknown = key.fields - self.known.keys()
                guarded |= {fields[name].attribute for name in unknown} | read_by(self.changes, unknown)
            elif self._out(key):
                values = {}
            actions += self._rewritten(key, values, primary, context)
        fixed = {fields[name].attribute for name in self.shape.key_fields}
        guards = tuple(unchanged(item, attribute) for attribute in sorted(guarded - fixed))
        return Planned((*actions, *self._lock()), guards)

    def _actions(self) -> list[Action]:
        return [*(change.action for change in self.changes), *self.fills.values()]

    def _rewritten(
        self, key: KeyShape, values: Mapping[str, Any], primary: Item, context: Context
    ) -> list[Action]:
        attributes = self.shape.index_attributes(key, values, primary, context.chance) if values else None
        if attributes is None:
            return [Remove(Path((source.attribute,))) for source in key.written]
        return [Set(Path((name,)), Literal(value)) for name, value in attributes.items()]

    def _lock(self) -> tuple[Action, ...]:
        lock = self.shape.lock
        return () if lock is None else (Add(Path((lock.attribute,)), Literal({"N": "1"})),)


def read_by(changes: Sequence[Change[Any]], fields: Set_[str]) -> frozenset[str]:
    """Return the attributes that changes of some fields look at, their own and those that they take a value from."""
    return frozenset(
        str(path.steps[0])
        for change in changes
        if change.field in fields
        for path in paths_of(UpdateNode((change.action,)))
    )


def changed(actions: Sequence[Action], item: Item | None) -> Item:
    """Return what an update makes of an item; what DynamoDB would refuse is refused as it does."""
    try:
        return compile_change(UpdateNode(tuple(actions)))(item or {}, {}, True)
    except UpdateRefused as error:
        raise ValidationFault(str(error)) from error


def _note(known: dict[str, Any], field: FieldShape, value: Value | None) -> None:
    """Note what a field will read as that is stored as a value, or is absent; nothing where nobody can tell."""
    known.pop(field.name, None)
    if value is None and field.has_default_factory:
        return
    try:
        known[field.name] = enum_value(field.value_in({} if value is None else {field.attribute: value}))
    except ItemUnreadable:
        return  # a condition may ask for what no entity holds


def _equalities(node: ConditionNode) -> list[tuple[str, Value | None]]:
    """Return the attributes that a condition fixes, when it holds, and to what; None: to being absent."""
    match node:
        case And(parts):
            return [found for part in parts for found in _equalities(part)]
        case Comparison("=", Path((str() as name,)), Literal(value)):
            return [(name, value)]
        case FunctionCall("attribute_not_exists", (Path((str() as name,)),)):
            return [(name, None)]
        case _:
            return []

"""Index-key maintenance: an update rewrites every index key that depends on the changed fields.

Index keys are templates over several fields, such as `TICKET#{status}#{created_at}`, stored as ordinary attributes. A plain
UpdateItem that sets `status` would leave the stored key stale, and queries by it would miss the item. So each update
determines which keys its fields occur in, and for each key whether all its fields are known without reading:

    known = fields set or removed by the update + fields of the item's key + fields that `when` fixes to a value

    all known ──► one UpdateItem sets the fields and the rewritten keys              (1 request)
    otherwise ──► GetItem, apply the changes here, UpdateItem with the new keys,     (2 requests)
                  conditional on the fields that were read being unchanged
                       └─ condition fails ──► repeat with the item from the response, no further read

Keys are never stale because a key is written only from values that hold at the moment of the write: they come from the
request itself, from the condition, or from a read that the condition proves current. The fields that a change computes its
value from (`add`, `set_if_absent`) are part of that condition. An entity with stale="refuse" raises `UpdateIncomplete` instead
of reading.

An item that an update creates is complete: required fields must be given, and defaults of fields that occur in index keys
are stored. Not handled here: items written by other programs; `verify_keys` finds and repairs those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as Set_
from typing import Any

from tavola.client.context import Context
from tavola.client.errors import UpdateIncomplete
from tavola.client.marshalling import describe_item, describe_type, values_in
from tavola.client.requests import check_condition, unchanged_node
from tavola.expressions.errors import UpdateRefused
from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    Literal,
    Path,
    Remove,
    Set,
    UpdateNode,
)
from tavola.expressions.paths import paths_of
from tavola.expressions.updates import compile_change
from tavola.model import (
    Change,
    Condition,
    EntityShape,
    FieldShape,
    ItemUnreadable,
    KeyShape,
    ModelError,
    Operand,
    enum_value,
    fields_apply_to,
)
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, Value

CHANGED_TWICE = "is changed twice in one update; DynamoDB allows one change of an attribute"

# With the conditions that they depend on
UpdateActions = tuple[tuple[Action, ...], tuple[ConditionNode, ...]]


class IndexKeyUpdate:
    """The index keys that a set of changes affects, and which of them can be rewritten without reading the item."""

    def __init__(
        self,
        shape: EntityShape,
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
        self._check_fields()
        self.known = self._known_values(keys, when)
        self.defaults = self._default_actions() if creating else {}
        # An item that the update may create needs all its index keys, also those made of key fields or defaults.
        self.affected = tuple(k for k in shape.keys if k.written and (creating or k.fields & self.touched))
        self.undetermined = tuple(key for key in self.affected if not self._is_determined(key))

    @property
    def what(self) -> str:
        """The name of the item in error messages."""
        return describe_item(self.shape, self.keys)

    def _check_fields(self) -> None:
        name = self.shape.entity.__name__
        seen: set[str] = set()
        for change in self.changes:
            if change.field in self.shape.key_fields:
                raise ModelError(
                    f"{name}.{change.field}",
                    "it is part of the primary key, which cannot change; create a new item and delete the old one",
                )
            if self.shape.fields[change.field].lock:
                raise ModelError(
                    f"{name}.{change.field}",
                    "it is the lock, which every write increments; do not change it yourself",
                )
            if change.whole and change.field in seen:
                raise ModelError(f"{name}.{change.field}", CHANGED_TWICE)
            seen.add(change.field)

    def _known_values(self, keys: Mapping[str, Any], when: Condition[Any] | None) -> dict[str, Any]:
        """Return the fields whose values after the update are known without reading."""
        known = {name: enum_value(value) for name, value in keys.items()}
        if when is not None:
            for attribute, value in _equalities(when.node):
                field = self.shape.by_attribute.get(attribute)
                if field is not None and field.name not in self.touched:
                    _set_known(known, field, value)
        for change in self.changes:
            if not change.whole:
                continue
            field = self.shape.fields[change.field]
            match change.action:
                case Set(_, Literal(value)):
                    _set_known(known, field, value)
                case Remove():
                    _set_known(known, field, None)
                case _:
                    known.pop(field.name, None)
        return known

    def _default_actions(self) -> dict[str, Action]:
        """Return actions that store defaults in an item the update may create, by field; refuse if a required field is absent.

        Defaults of fields that occur in index keys are stored unless there is a value: an index on the field itself omits
        items without it, and a default factory returns another value at each read.
        """
        shape = self.shape
        set_names = {
            change.field for change in self.changes if not isinstance(change.action, Remove | DeleteElements)
        }
        absent = [
            name
            for name, field in shape.fields.items()
            if field.is_required and name not in set_names and name not in self.keys
        ]
        if absent:
            raise ModelError(
                f"{shape.entity.__name__}.{absent[0]}",
                "it is required, but update(create=True) could create an item without it, which could not be read; "
                "set it as well, for example with set_if_absent(), or create() the item first",
            )
        defaults: dict[str, Action] = {}
        for name in sorted(
            {name for key in shape.keys for name in key.fields} - self.touched - self.keys.keys()
        ):
            field = shape.fields[name]
            default = field.new_default(self.known)
            encoded = None if default is None else field.encode(default)
            if encoded:
                path = Path((field.attribute,))
                defaults[name] = Set(path, FunctionCall("if_not_exists", (path, Literal(encoded))))
        return defaults

    def _is_determined(self, key: KeyShape) -> bool:
        """Return whether the new key is known without reading; a random shard of an unchanged key must be kept."""
        if key.fields.isdisjoint(self.touched) and key.shards is not None and key.shards.by == "random":
            return False
        return self._leaves_index(key) or key.fields <= self.known.keys()

    def _leaves_index(self, key: KeyShape) -> bool:
        """Return whether the item is certainly not in the index after the update."""
        if any(name in self.known and self.known[name] not in allowed for name, allowed in key.members):
            return True
        return key.sparse and any(name in self.known and self.known[name] is None for name in key.needed)

    def field_actions(self) -> tuple[Action, ...]:
        """Return the changes without index keys, for an item that is then written as a whole."""
        return (*(change.action for change in self.changes), *self._lock_action())

    def actions_from_known(self, primary: Item, context: Context) -> UpdateActions:
        """Return the actions of the update without reading the item; raise `UpdateIncomplete` if that is not possible."""
        if self.undetermined:
            key = self.undetermined[0]
            absent = tuple(sorted(key.fields - self.known.keys()))
            assert key.index is not None
            raise UpdateIncomplete(self.what, key.index.label, absent)
        actions = self._actions()
        for key in self.affected:
            values = {} if self._leaves_index(key) else self.known
            actions += self._key_actions(key, values, primary, context)
        return (*actions, *self._lock_action()), ()

    def actions_from_item(self, item: Item, primary: Item, context: Context) -> UpdateActions:
        """Return the actions of the update for an item that was read, and the conditions that it is unchanged."""
        actions = self._actions()
        after = apply_actions(actions, item) | primary
        fields = self.shape.fields
        touched = self.touched | {name for name in self.defaults if fields[name].attribute not in item}
        read: set[str] = set()  # attributes that new keys were computed from
        for key in self.affected:
            values = self.known
            if item and key.fields.isdisjoint(touched):
                continue
            if key in self.undetermined:
                known = {name: value for name, value in self.known.items() if name in key.fields}
                values = values_in(self.shape, after, key.fields) | known
                unknown = key.fields - self.known.keys()
                read |= {fields[name].attribute for name in unknown} | attributes_read_by(
                    self.changes, unknown
                )
            elif self._leaves_index(key):
                values = {}
            actions += self._key_actions(key, values, primary, context)
        fixed = {fields[name].attribute for name in self.shape.key_fields}
        conditions = tuple(unchanged_node(item, attribute) for attribute in sorted(read - fixed))
        return (*actions, *self._lock_action()), conditions

    def _actions(self) -> list[Action]:
        return [*(change.action for change in self.changes), *self.defaults.values()]

    def _key_actions(
        self, key: KeyShape, values: Mapping[str, Any], primary: Item, context: Context
    ) -> list[Action]:
        attributes = self.shape.index_attributes(key, values, primary, context.chance) if values else None
        if attributes is None:
            return [Remove(Path((source.attribute,))) for source in key.written]
        return [Set(Path((name,)), Literal(value)) for name, value in attributes.items()]

    def _lock_action(self) -> tuple[Action, ...]:
        lock = self.shape.lock
        return () if lock is None else (Add(Path((lock.attribute,)), Literal({"N": "1"})),)


def attributes_read_by(changes: Sequence[Change[Any]], fields: Set_[str]) -> frozenset[str]:
    """Return the attributes that changes of these fields read: their own, and those that they compute a value from."""
    return frozenset(
        str(path.steps[0])
        for change in changes
        if change.field in fields
        for path in paths_of(UpdateNode((change.action,)))
    )


def apply_actions(actions: Sequence[Action], item: Item | None) -> Item:
    """Return an item after update actions; raise what DynamoDB would if it rejects them."""
    try:
        return compile_change(UpdateNode(tuple(actions)))(item or {}, {}, True)
    except UpdateRefused as error:
        raise ValidationFault(str(error)) from error


def _set_known(known: dict[str, Any], field: FieldShape, value: Value | None) -> None:
    """Record the Python value that a field will have, stored as `value` or absent (None), if it can be determined."""
    known.pop(field.name, None)
    if value is None and field.has_default_factory:
        return
    try:
        known[field.name] = enum_value(field.value_in({} if value is None else {field.attribute: value}))
    except ItemUnreadable:
        return  # a condition may name a value that the field cannot hold


def _equalities(node: ConditionNode) -> list[tuple[str, Value | None]]:
    """Return the attributes that a condition fixes if it holds, with their values; None: the attribute is absent."""
    match node:
        case And(parts):
            return [pair for part in parts for pair in _equalities(part)]
        case Comparison("=", Path((str() as name,)), Literal(value)):
            return [(name, value)]
        case FunctionCall("attribute_not_exists", (Path((str() as name,)),)):
            return [(name, None)]
        case _:
            return []


def check_changes(shape: EntityShape, changes: Iterable[Any]) -> None:
    """Refuse values that are not changes, and changes of another entity."""
    name = shape.entity.__name__
    for change in changes:
        if not isinstance(change, Change):
            if isinstance(change, Condition):
                problem = "this is a condition; pass it as when="
            elif isinstance(change, Operand):
                problem = (
                    f"{change.field} alone does not say what to change; use {name}.{change.field}.set(…)"
                )
            else:
                problem = f"this is {describe_type(change)}"
            raise ModelError(f"{name}.update", f"it takes changes such as {name}.field.set(…): {problem}")
        if change.entity is not None and not fields_apply_to(shape.entity, change.entity):
            raise ModelError(
                f"{name}.update",
                f"{change.entity.__name__}.{change.field} belongs to another entity; pass changes of {name}",
            )

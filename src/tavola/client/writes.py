"""Writes: an intent, the request that it is prepared into, and the meaning of a refusal.

An `Intent` is one write as the caller asks for it, checked but not sent. A `PreparedWrite` turns it into an action of a request.

If index keys or guards of unique values depend on fields that the caller does not give, the item is read first, and the write
is conditional on what was read. If another writer was faster, that is not the caller's failure: the write is prepared again
from the stored item that the failed condition returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from tavola.client.context import Context
from tavola.client.errors import (
    ConditionFailed,
    ItemExists,
    ItemImmutable,
    ItemMissing,
    ItemSizeExceeded,
    LockConflict,
    UniqueViolation,
    is_item_too_large,
)
from tavola.client.marshalling import add_tag_and_version, describe_item, entity_of, item_of, resolve_target
from tavola.client.requests import (
    absent_node,
    add_condition,
    all_of,
    check_condition,
    current_version_nodes,
    exists_node,
    fault_item,
    ignoring_expired,
    is_expired,
    is_outdated,
    node_of,
    not_expired_node,
    not_newer_nodes,
    ttl_attribute,
    unchanged_nodes,
    with_absence_condition,
)
from tavola.client.rewrites import current_form
from tavola.client.unique_guards import (
    UniqueValueGuard,
    changes_guards,
    diff_guards,
    former_guards,
    guard_nodes,
    guards_of,
)
from tavola.client.updates import IndexKeyUpdate, apply_actions
from tavola.errors import TavolaError
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import Action, Comparison, ConditionNode, FunctionCall, Path, Set
from tavola.expressions.nodes import Literal as LiteralNode
from tavola.model import (
    OWNER_ATTRIBUTE,
    Change,
    Condition,
    Entity,
    EntityShape,
    ItemUnreadable,
    ModelError,
    PrimaryKey,
)
from tavola.protocol.faults import (
    CancellationReason,
    Fault,
    ItemCollectionSizeLimitExceededFault,
    ProvisionedThroughputExceededFault,
    ThrottlingFault,
    TransactionConflictFault,
    ValidationFault,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)

IntentKind = Literal["create", "put", "update", "delete", "check"]


class Intent(Generic[E]):
    """One write that a caller asks for; if a transaction fails, `failed[intent]` says why."""

    __slots__ = (
        "changes",
        "create_missing",
        "entity",
        "index_keys",
        "keys",
        "kind",
        "primary",
        "shape",
        "when",
    )

    def __init__(
        self,
        kind: IntentKind,
        target: PrimaryKey[E] | E,
        *,
        changes: Sequence[Change[Any]] = (),
        when: Condition[Any] | None = None,
        create_missing: bool = False,
        erase: bool = False,
    ) -> None:
        self.kind = kind
        self.shape, self.keys, self.entity = resolve_target(target)
        name = self.shape.entity.__name__
        if kind in ("create", "put") and self.entity is None:
            raise ModelError(f"{name}.{kind}", "it stores entities, not keys; pass an entity")
        check_condition(self.shape, when, kind)
        self.changes = tuple(changes)
        self.when = when
        self.create_missing = create_missing
        self.primary: Item = self.shape.primary(self.keys)
        if self.shape.immutable and kind in ("put", "update", "delete") and not (erase and kind == "delete"):
            raise ItemImmutable(self.what, kind)
        self.index_keys: IndexKeyUpdate | None = None
        if kind == "update":
            if not changes:
                raise ModelError(
                    f"{name}.update", "no change was passed; pass for example Ticket.status.set(…)"
                )
            self.index_keys = IndexKeyUpdate(self.shape, self.keys, changes, when, create_missing)

    @property
    def what(self) -> str:
        """The name of the item in error messages."""
        return describe_item(self.shape, self.keys)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.what}>"


FailureKind = Literal[
    "condition",  # the caller's condition did not hold
    "missing",  # the item to update or check does not exist
    "exists",  # the item to create exists already
    "lock",  # the item was written after the entity was read
    "unique",  # another item has a value that must be unique
    "conflict",  # another transaction was using the item at every attempt
    "throttled",  # there was too little capacity at every attempt
    "too_large",  # the item, or its item collection with local indexes, would exceed its size limit
    "invalid",  # DynamoDB rejects the change for the stored item
]


@dataclass(frozen=True, slots=True)
class WriteFailure(Generic[E]):
    """Why one write of a transaction failed."""

    intent: Intent[E]
    kind: FailureKind
    error: TavolaError  # what the same write by itself would have raised
    item: E | None = field(repr=False)  # the stored entity if a condition failed; None if there is none


# "stale": prepare the write again; None: it did not fail
Outcome = WriteFailure[Any] | Literal["stale"] | None

TRANSIENT_REASONS: dict[str, tuple[FailureKind, type[Fault]]] = {
    "TransactionConflict": ("conflict", TransactionConflictFault),
    "ProvisionedThroughputExceeded": ("throttled", ProvisionedThroughputExceededFault),
    "ThrottlingError": ("throttled", ThrottlingFault),
}


class PreparedWrite:
    """The write of one intent: what is known of the stored item, and the actions that it comes to."""

    def __init__(self, context: Context, intent: Intent[Any]) -> None:
        self.intent = intent
        self.shape = shape = intent.shape
        self.table_name = context.name_of(shape.home)
        self.changes_guards = bool(shape.uniques) and intent.kind != "check"
        if self.changes_guards and intent.kind == "update":
            self.changes_guards = changes_guards(shape, intent.changes)
        self.lock: ConditionNode | None = None
        if intent.entity is not None and intent.kind in ("put", "update", "delete"):
            self.lock = _lock_node(shape, intent.entity)
        self.item_is_known = False  # it was read, or a failed condition returned it
        self.item: Item | None = None  # as it was then; None: absent or expired
        self.foreign_guards: set[str] = set()  # guards that turned out to belong to other items
        # Set by `prepare`:
        self.action: dict[str, Any] = {}
        self.after: Item | None = None  # the item after an update, if it had to be computed here
        self.claims: list[UniqueValueGuard] = []
        self.releases: list[UniqueValueGuard] = []
        self._depends_on_item = False  # it is conditional on the item being as it was read

    @property
    def reads_first(self) -> bool:
        """Whether the item must be read before the write can be prepared."""
        if self.intent.kind == "create":
            return False
        update = self.intent.index_keys
        undetermined = update is not None and bool(update.undetermined) and self.shape.policy == "read"
        return undetermined or self.changes_guards

    def set_item(self, item: Item | None, now_s: float) -> None:
        """Take the stored item; an expired one counts as absent."""
        self.item_is_known = True
        self.item = None if item is None or is_expired(self.shape.home, item, now_s) else item

    def check_item(self, context: Context) -> WriteFailure[Any] | None:
        """Return why the write would fail, if the item that was read already shows it."""
        intent = self.intent
        if intent.kind == "update" and not intent.create_missing and self.item_is_known and self.item is None:
            return WriteFailure(intent, "missing", ItemMissing(intent.what), None)
        if self.item is None or not is_outdated(self.shape, self.item):
            return None
        # The stored attributes are those of an older schema, so conditions are evaluated here on the upgraded item.
        upgraded = current_form(self.shape, self.item, context)
        stored_entity = _entity_in(self.shape, self.item)
        if self.lock is not None and not compile_decider(self.lock)(upgraded, {}):
            return WriteFailure(intent, "lock", LockConflict(intent.what, stored_entity), stored_entity)
        when = node_of(intent.when)
        if when is not None and not compile_decider(when)(upgraded, {}):
            return WriteFailure(
                intent, "condition", ConditionFailed(intent.what, stored_entity), stored_entity
            )
        return None

    def prepare(self, context: Context, now_s: float) -> None:
        """Set the action and the guards, from what is known of the item."""
        self.claims, self.releases = [], []
        intent, shape = self.intent, self.shape
        if intent.kind == "update":
            self._prepare_update(context, now_s)
            return
        outdated = is_outdated(shape, self.item)
        old = former_guards(shape, self.item, intent.primary) if self.changes_guards else {}
        new: dict[str, UniqueValueGuard] = {}
        item_nodes = guard_nodes(shape, self.item, now_s) if self.reads_first else []
        full_condition = ignoring_expired(shape, all_of([node_of(intent.when), self.lock]), now_s)
        if self.item is not None and outdated:
            # `check_item` has evaluated the condition, so the write only requires that the item is unchanged
            full_condition, item_nodes = None, unchanged_nodes(shape, self.item)
        if intent.kind in ("create", "put"):
            assert intent.entity is not None
            item = _locked_item(shape, intent.entity, context)
            new = guards_of(shape, item, intent.primary) if self.changes_guards else {}
            if intent.kind == "create":
                self._depends_on_item = False
                request = {"TableName": self.table_name, "Item": item}
                self.action = {"Put": with_absence_condition(request, shape, now_s)}
            else:
                if not outdated:
                    newer = ignoring_expired(shape, all_of(not_newer_nodes(shape)), now_s)
                    item_nodes = item_nodes if newer is None else [*item_nodes, newer]
                self._set_action("Put", {"Item": item}, full_condition, item_nodes)
        elif intent.kind == "delete":
            self._set_action("Delete", {"Key": intent.primary}, full_condition, item_nodes)
        else:
            condition = full_condition or exists_node(shape, now_s)
            self._set_action("ConditionCheck", {"Key": intent.primary}, condition, item_nodes)
        if self.changes_guards:
            self.claims, self.releases = diff_guards(old, new)
        if outdated:
            self.claims = list(new.values())  # other fields may have been unique in the older schema

    def _prepare_update(self, context: Context, now_s: float) -> None:
        intent, update, shape = self.intent, self.intent.index_keys, self.shape
        assert update is not None
        if self.item is not None and is_outdated(shape, self.item):
            self._prepare_upgrade(self.item, update.field_actions(), context)
            return
        if update.undetermined and shape.policy == "read":
            actions, conditions = update.actions_from_item(self.item or {}, intent.primary, context)
        else:
            actions, conditions = update.actions_from_known(intent.primary, context)
        condition = all_of([node_of(intent.when), self.lock])
        creates = intent.create_missing and self.item_is_known and self.item is None
        if intent.create_missing:
            actions = (*actions, *_creation_actions(shape, intent.keys, intent.changes))
        if self.changes_guards or creates:
            self.after = apply_actions(actions, self.item) | intent.primary
        if creates:
            # An expired item may still be stored. A put replaces it, so that none of its attributes remain.
            condition = ignoring_expired(shape, condition, now_s)
            self._set_action("Put", {"Item": self.after}, condition, [absent_node(shape, now_s)])
        else:
            item_nodes = list(conditions)
            if self.changes_guards:
                item_nodes += guard_nodes(shape, self.item, now_s, intent.changes)
            item_nodes += current_version_nodes(shape, or_absent=intent.create_missing)
            if not intent.create_missing:
                condition = all_of([exists_node(shape, now_s), condition])
            elif (ttl := ttl_attribute(shape)) is not None:
                item_nodes.append(not_expired_node(ttl, now_s))
            self._set_action("Update", {"Key": intent.primary}, condition, item_nodes, actions)
        if self.changes_guards:
            old = former_guards(shape, self.item, intent.primary)
            self.claims, self.releases = diff_guards(old, guards_of(shape, self.after, intent.primary))

    def _prepare_upgrade(self, item: Item, actions: Sequence[Action], context: Context) -> None:
        """Prepare an update of an item of an older schema: a put of the whole item, upgraded and changed."""
        shape, primary = self.shape, self.intent.primary
        self.after = current_form(shape, apply_actions(actions, current_form(shape, item, context)), context)
        self._set_action("Put", {"Item": self.after}, None, unchanged_nodes(shape, item))
        new = guards_of(shape, self.after, primary)
        self.claims = list(new.values())  # other fields may have been unique in the older schema
        self.releases = diff_guards(former_guards(shape, item, primary), new)[1]

    def _set_action(
        self,
        verb: str,
        members: dict[str, Any],
        condition: ConditionNode | None,
        item_nodes: list[ConditionNode],
        actions: Sequence[Action] = (),
    ) -> None:
        self._depends_on_item = bool(item_nodes)
        request = {"TableName": self.table_name, **members}
        self.action = {verb: add_condition(request, all_of([condition, *item_nodes]), actions)}

    def outcome(self, reason: CancellationReason, now_s: float) -> Outcome:
        """Return what DynamoDB's reason for the write's own action means."""
        if reason.code != "ConditionalCheckFailed":
            return self._other_failure(reason)
        intent, shape = self.intent, self.shape
        stored = fault_item(reason.item)
        if stored is not None and is_expired(shape.home, stored, now_s):
            stored = None
        stored_entity = None if stored is None else _entity_in(shape, stored)
        if intent.kind == "create":
            return WriteFailure(intent, "exists", ItemExists(intent.what, stored_entity), stored_entity)
        needs_item = intent.kind == "update" and not intent.create_missing
        if stored is None and (needs_item or (intent.kind == "check" and intent.when is None)):
            return WriteFailure(intent, "missing", ItemMissing(intent.what), None)
        if is_outdated(shape, stored):
            self.set_item(stored, now_s)
            return "stale"
        if self.lock is not None and not compile_decider(self.lock)(stored or {}, {}):
            return WriteFailure(intent, "lock", LockConflict(intent.what, stored_entity), stored_entity)
        when = node_of(intent.when)
        if self._depends_on_item and (when is None or compile_decider(when)(stored or {}, {})):
            self.set_item(stored, now_s)
            return "stale"
        return WriteFailure(intent, "condition", ConditionFailed(intent.what, stored_entity), stored_entity)

    def guard_outcome(self, guard: UniqueValueGuard, *, claimed: bool, reason: CancellationReason) -> Outcome:
        """Return what DynamoDB's reason for the action on one of the guards means."""
        if reason.code != "ConditionalCheckFailed":
            return self._other_failure(reason)
        if not claimed:
            self.foreign_guards.add(guard.text)  # another item has the value, so this one must not release it
            return "stale"
        owner = (fault_item(reason.item) or {}).get(OWNER_ATTRIBUTE, {}).get("M")
        error = UniqueViolation(self.intent.what, guard.field, guard.value, owner)
        return WriteFailure(self.intent, "unique", error, None)

    def _other_failure(self, reason: CancellationReason) -> WriteFailure[Any] | None:
        if reason.code == "None":
            return None
        message = reason.message or reason.code
        transient = TRANSIENT_REASONS.get(reason.code)
        if transient is not None:
            kind, fault = transient
            return WriteFailure(self.intent, kind, fault(message), None)
        if reason.code == "ItemCollectionSizeLimitExceeded":
            return WriteFailure(self.intent, "too_large", ItemCollectionSizeLimitExceededFault(message), None)
        if is_item_too_large(message):
            return WriteFailure(self.intent, "too_large", ItemSizeExceeded(message), None)
        return WriteFailure(self.intent, "invalid", ValidationFault(message), None)

    def increment_lock(self) -> None:
        """Increment the lock of a stored entity, as the write did in the table."""
        lock, entity = self.shape.lock, self.intent.entity
        if lock is not None and entity is not None and self.intent.kind in ("create", "put"):
            entity.__dict__[lock.name] += 1


def _entity_in(shape: EntityShape, item: Item) -> Entity | None:
    """Return the entity in a stored item; None if it cannot be read, which is not the failure to report."""
    try:
        entity: Entity = entity_of(shape.entity, item)
    except ItemUnreadable:
        return None
    return entity


def _creation_actions(
    shape: EntityShape, keys: Mapping[str, Any], changes: Sequence[Change[Any]]
) -> list[Action]:
    """Return actions that make an item created by an update complete: key fields, tag and version."""
    item: Item = {}
    add_tag_and_version(shape, shape.home, item)
    native = {source.attribute for source in shape.key.key.sources} if shape.key else set()
    for name, value in keys.items():
        field = shape.fields[name]
        if field.attribute not in native:
            item[field.attribute] = field.encode(value)
    touched = {shape.fields[change.field].attribute for change in changes}
    return [Set(Path((name,)), LiteralNode(value)) for name, value in item.items() if name not in touched]


def _locked_item(shape: EntityShape, entity: Entity, context: Context) -> Item:
    """Return the item of an entity with its lock incremented."""
    item = item_of(shape, entity, context)
    if shape.lock is not None:
        item[shape.lock.attribute] = {"N": str(entity.__dict__[shape.lock.name] + 1)}
    return item


def _lock_node(shape: EntityShape, entity: Entity) -> ConditionNode | None:
    """Return the condition that the item was not written since the entity was read, None without a lock."""
    lock = shape.lock
    if lock is None:
        return None
    count = entity.__dict__[lock.name]
    if count == 0:
        return FunctionCall("attribute_not_exists", (Path((lock.attribute,)),))
    return Comparison("=", Path((lock.attribute,)), LiteralNode({"N": str(count)}))

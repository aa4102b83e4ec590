"""Intents: what a transaction is to do, one for each item, gathered before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

from tavola.client.arguments import check_condition
from tavola.client.batches import Place, place_of
from tavola.client.context import Context
from tavola.client.errors import ItemImmutable, TransactionRefused
from tavola.client.updates import PreparedUpdate
from tavola.client.writes import NO_CHANGE, keyed, named
from tavola.limits import TRANSACTION_ACTIONS_MAX, TRANSACTION_TOKEN_CHARACTERS_MAX
from tavola.model import Change, Condition, Entity, ModelError, PrimaryKey
from tavola.values import Item

E = TypeVar("E", bound=Entity)

IntentKind = Literal["create", "put", "update", "delete", "check"]


class Intent(Generic[E]):
    """One thing that a transaction is to do; where it cannot be done, `failed[intent]` says why."""

    __slots__ = (
        "changes",
        "create_missing",
        "entity",
        "keys",
        "kind",
        "plan",
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
        self.shape, self.keys, self.entity = keyed(target)
        if kind in ("create", "put") and self.entity is None:
            raise ModelError(f"{self.shape.entity.__name__}.{kind}", "it stores entities, not keys; give one")
        check_condition(self.shape, when, kind)
        self.changes = tuple(changes)
        self.when = when
        self.create_missing = create_missing
        self.primary: Item = self.shape.primary(self.keys)
        if self.shape.immutable and kind in ("put", "update", "delete") and not (erase and kind == "delete"):
            raise ItemImmutable(self.what, kind)
        self.plan: PreparedUpdate | None = None
        if kind == "update":
            if not changes:
                raise ModelError(f"{self.shape.entity.__name__}.update", NO_CHANGE)
            self.plan = PreparedUpdate(self.shape, self.keys, changes, when, create_missing)

    @property
    def what(self) -> str:
        """How errors name the item."""
        return named(self.shape, self.keys)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.what}>"


class Intents:
    """A transaction while it is being put together; nothing is asked before it is committed."""

    def __init__(self, context: Context, token: str | None = None) -> None:
        if token is not None and not 1 <= len(token) <= TRANSACTION_TOKEN_CHARACTERS_MAX:
            raise TransactionRefused(
                f"its token has {len(token)} characters; give 1 to {TRANSACTION_TOKEN_CHARACTERS_MAX}, such as a UUID"
            )
        self._context = context
        self._token = token
        self._intents: dict[Place, Intent[Any]] = {}
        self._over = False

    @property
    def intents(self) -> tuple[Intent[Any], ...]:
        """What is to be done, in the order in which it was told."""
        return tuple(self._intents.values())

    def create(self, entity: E) -> Intent[E]:
        """Store an entity that is not there yet; where it is, the transaction is cancelled with `exists`."""
        return self._added(Intent("create", entity))

    def put(self, entity: E, *, when: Condition[E] | None = None) -> Intent[E]:
        """Store an entity, over what may be there; `when` must hold of that."""
        return self._added(Intent("put", entity, when=when))

    def update(
        self,
        target: PrimaryKey[E] | E,
        *changes: Change[E],
        when: Condition[E] | None = None,
        create: bool = False,
    ) -> Intent[E]:
        """Change an item and every index key that depends on it; one that is not there cancels with `missing`.

        With `create` it is made of the key and the changes.
        """
        return self._added(Intent("update", target, changes=changes, when=when, create_missing=create))

    def delete(
        self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None, erase: bool = False
    ) -> Intent[E]:
        """Delete an item; one that is not there is no error, unless `when` says so.

        One of an immutable entity is deleted only with `erase`.
        """
        return self._added(Intent("delete", target, when=when, erase=erase))

    def check(self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None) -> Intent[E]:
        """Let the transaction be done only if a condition holds of an item; without one, only if it is there."""
        return self._added(Intent("check", target, when=when))

    def _added(self, made: Intent[E]) -> Intent[E]:
        if self._over:
            raise TransactionRefused(f"{made!r} comes too late, it was committed; begin another", [made])
        place = place_of(self._context.name_of(made.shape.home), made.primary)
        other = self._intents.get(place)
        if other is not None:
            raise TransactionRefused(
                f"{other!r} and {made!r} are of one item, of which DynamoDB takes one action; make them one",
                [other, made],
            )
        if len(self._intents) == TRANSACTION_ACTIONS_MAX:
            raise TransactionRefused(
                f"{made!r} would be number {TRANSACTION_ACTIONS_MAX + 1}, and DynamoDB takes "
                f"{TRANSACTION_ACTIONS_MAX}; split what need not be done together",
                [made],
            )
        self._intents[place] = made
        return made

    def _closed(self) -> tuple[Intent[Any], ...]:
        """Return what is to be done; nothing can be added from now on."""
        if self._over:
            raise TransactionRefused("it was committed already; begin another", self.intents)
        self._over = True
        return self.intents

"""Drafts: an intent worked out to what DynamoDB is asked, and judged by what it answers.

What must be known of an item to keep its index keys and guards right is read first, and the write holds only while
that is so. Where it is no longer so, that is nobody's failure: the draft is worked out again from the item that the
refusal brought.
"""

from __future__ import annotations

from typing import Any, Literal

from tavola.client.cancellations import Reason, ReasonKind
from tavola.client.context import Context
from tavola.client.errors import ConditionFailed, ItemExists, ItemMissing, LockLost, UniqueTaken
from tavola.client.intents import Intent
from tavola.client.marshalling import entity_of, expired, item_of
from tavola.client.requests import absent, all_of, as_seen, conditioned, node_of, there
from tavola.client.uniques import Guard, guards_of, moved, moves_guards, watched_nodes
from tavola.client.updates import UpdatePlan
from tavola.client.writes import founding, lock_node, locked_item, raise_lock, settle
from tavola.expressions import ConditionNode, UpdateNode, change_of, decider_of
from tavola.model import OWNER_ATTRIBUTE, Entity, ItemUnreadable
from tavola.protocol import (
    CancellationReason,
    Fault,
    ItemCollectionSizeLimitExceededFault,
    ProvisionedThroughputExceededFault,
    ThrottlingFault,
    TransactionConflictFault,
    ValidationFault,
)
from tavola.values import Item, decode_item

Verdict = Reason[Any] | Literal["stale"]

PASSING: dict[str, tuple[ReasonKind, type[Fault]]] = {
    "TransactionConflict": ("conflict", TransactionConflictFault),
    "ProvisionedThroughputExceeded": ("throttled", ProvisionedThroughputExceededFault),
    "ThrottlingError": ("throttled", ThrottlingFault),
}
_SIZE = "exceeded the maximum allowed size"


class Draft:
    """An intent on its way to being done."""

    def __init__(self, context: Context, intent: Intent[Any]) -> None:
        self.intent = intent
        self.shape = shape = intent.shape
        self.name = context.name_of(shape.home)
        self.plan: UpdatePlan | None = None
        self.moves = bool(shape.uniques)  # whether guards may have to come and go with it
        if intent.kind == "update":
            self.plan = UpdatePlan(shape, intent.keys, intent.changes, intent.when)
            self.moves = moves_guards(shape, intent.changes)
        elif intent.kind == "check":
            self.moves = False
        self.lock: ConditionNode | None = None
        if intent.entity is not None and intent.kind in ("put", "update", "delete"):
            self.lock = lock_node(shape, intent.entity)
        self.known = False  # whether the item was read, or brought by a refusal
        self.item: Item | None = None  # as it stood then; None: it did not, or had expired
        self.foreign: set[str] = set()  # guards that turned out to be of others
        # What it comes to, from `work_out`:
        self.action: dict[str, Any] = {}
        self.after: Item | None = None  # the item that an update makes, where it had to be worked out
        self.claims: list[Guard] = []
        self.releases: list[Guard] = []
        self._own = False  # whether it holds only while the item is as it was read

    @property
    def reads(self) -> bool:
        """Whether the item must be known before the draft can be worked out."""
        if self.intent.kind == "create":
            return False
        unsettled = self.plan is not None and bool(self.plan.unsettled) and self.shape.policy == "read"
        return unsettled or self.moves

    def learn(self, item: Item | None, now_s: float) -> None:
        """Take an item as it was found; one that has expired is none."""
        self.known = True
        self.item = None if item is None or expired(self.shape.home, item, now_s) else item

    def missing(self) -> Reason[Any] | None:
        """Return the reason where it is known already that there is nothing to change."""
        if self.intent.kind != "update" or self.intent.create_missing or not self.known or self.item is not None:
            return None
        return Reason(self.intent, "missing", ItemMissing(self.intent.what), None)

    def work_out(self, context: Context, now_s: float) -> None:
        """Make the action and the guards, from what is known."""
        self.claims, self.releases = [], []
        intent = self.intent
        if intent.kind == "update":
            return self._work_out_update(context, now_s)
        old = guards_of(self.shape, self.item, intent.primary) if self.moves else {}
        new: dict[str, Guard] = {}
        own = watched_nodes(self.shape, self.item, now_s) if self.reads else []
        wanted = as_seen(self.shape, all_of([node_of(intent.when), self.lock]), now_s)
        if intent.kind in ("create", "put"):
            assert intent.entity is not None
            item, _ = locked_item(self.shape, intent.entity, context)
            new = guards_of(self.shape, item, intent.primary) if self.moves else {}
            if intent.kind == "create":
                wanted = absent(self.shape, now_s)
            self._act("Put", {"Item": item}, wanted, own)
        elif intent.kind == "delete":
            self._act("Delete", {"Key": intent.primary}, wanted, own)
        else:
            self._act("ConditionCheck", {"Key": intent.primary}, wanted or there(self.shape, now_s), own)
        self.claims, self.releases = moved(old, new)
        return None

    def _work_out_update(self, context: Context, now_s: float) -> None:
        intent, plan, shape = self.intent, self.plan, self.shape
        assert plan is not None
        planned = settle(plan, self.item, intent.primary, context, create_missing=intent.create_missing)
        actions = planned.actions
        wanted = all_of([node_of(intent.when), self.lock])
        exists: ConditionNode | None = None
        if intent.create_missing:
            actions = (*actions, *founding(shape, intent.keys, intent.changes))
        else:
            exists = there(shape, now_s)
        if intent.create_missing or self.moves:
            self.after = change_of(UpdateNode(tuple(actions)))(self.item or {}, {}, True) | intent.primary
        if intent.create_missing and self.known and self.item is None:
            # What has expired may stand there still, and must not shine through: the item is made anew.
            assert self.after is not None
            own = [absent(shape, now_s)]
            self._act("Put", {"Item": self.after}, as_seen(shape, wanted, now_s), own)
        else:
            own = [*planned.guards, *(watched_nodes(shape, self.item, now_s) if self.moves else ())]
            if intent.create_missing and (unexpired := alive_or_absent(shape, now_s)) is not None:
                own.append(unexpired)
            self._act("Update", {"Key": intent.primary}, all_of([exists, wanted]), own, actions)
        if self.moves:
            assert self.after is not None
            old = guards_of(shape, self.item, intent.primary)
            self.claims, self.releases = moved(old, guards_of(shape, self.after, intent.primary))

"""Drafts: an intent worked out to what DynamoDB is asked, and judged by what it answers.

What must be known of an item to keep its index keys and guards right is read first, and the write holds only while
that is so. Where it is no longer so, that is nobody's failure: the draft is worked out again from the item that the
refusal brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tavola.client.cancellations import Reason, ReasonKind
from tavola.client.context import Context
from tavola.client.errors import (
    ConditionFailed,
    ItemExists,
    ItemMissing,
    ItemSizeExceeded,
    LockLost,
    UniqueTaken,
    too_large,
)
from tavola.client.expiry import absent, alive, as_seen, expired, there
from tavola.client.former_guards import former_guards
from tavola.client.intents import Intent
from tavola.client.marshalling import entity_of
from tavola.client.requests import all_of, conditioned, node_of, when_absent
from tavola.client.uniques import Guard, guards_of, moved, moves_guards, watched_nodes
from tavola.client.updates import changed
from tavola.client.upgrades import as_read, not_newer, of_this_schema, outdated, renewed
from tavola.client.writes import brought, founding, lock_node, locked_item, raise_lock
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import Action, ConditionNode
from tavola.model import OWNER_ATTRIBUTE, Entity, ItemUnreadable, Shape
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

Verdict = Reason[Any] | Literal["stale"]

PASSING: dict[str, tuple[ReasonKind, type[Fault]]] = {
    "TransactionConflict": ("conflict", TransactionConflictFault),
    "ProvisionedThroughputExceeded": ("throttled", ProvisionedThroughputExceededFault),
    "ThrottlingError": ("throttled", ThrottlingFault),
}


class PreparedWrite:
    """An intent on its way to being done."""

    def __init__(self, context: Context, intent: Intent[Any]) -> None:
        self.intent = intent
        self.shape = shape = intent.shape
        self.name = context.name_of(shape.home)
        self.moves = bool(shape.uniques)  # whether guards may have to come and go with it
        if intent.kind == "update":
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
        plan = self.intent.plan
        unsettled = plan is not None and bool(plan.unsettled) and self.shape.policy == "read"
        return unsettled or self.moves

    def learn(self, item: Item | None, now_s: float) -> None:
        """Take an item as it was found; one that has expired is none."""
        self.known = True
        self.item = None if item is None or expired(self.shape.home, item, now_s) else item

    def missing(self) -> Reason[Any] | None:
        """Return the reason where it is known already that there is nothing to change."""
        if (
            self.intent.kind != "update"
            or self.intent.create_missing
            or not self.known
            or self.item is not None
        ):
            return None
        return Reason(self.intent, "missing", ItemMissing(self.intent.what), None)

    def refused(self, context: Context) -> Reason[Any] | None:
        """Return the reason where an item of an older schema does not satisfy what is wanted, as it reads."""
        if self.item is None or not outdated(self.shape, self.item):
            return None
        seen = renewed(self.shape, self.item, context)
        found = found_in(self.shape, self.item)
        if self.lock is not None and not compile_decider(self.lock)(seen, {}):
            return Reason(self.intent, "lock", LockLost(self.intent.what, found), found)
        when = node_of(self.intent.when)
        if when is not None and not compile_decider(when)(seen, {}):
            return Reason(self.intent, "condition", ConditionFailed(self.intent.what, found), found)
        return None

    def work_out(self, context: Context, now_s: float) -> None:
        """Make the action and the guards, from what is known."""
        self.claims, self.releases = [], []
        intent = self.intent
        if intent.kind == "update":
            self._work_out_update(context, now_s)
            return
        old = former_guards(self.shape, self.item, intent.primary) if self.moves else {}
        new: dict[str, Guard] = {}
        own = watched_nodes(self.shape, self.item, now_s) if self.reads else []
        wanted = as_seen(self.shape, all_of([node_of(intent.when), self.lock]), now_s)
        if self.item is not None and outdated(self.shape, self.item):
            wanted, own = None, as_read(self.shape, self.item)  # `refused` has decided what was wanted
        if intent.kind in ("create", "put"):
            assert intent.entity is not None
            item = locked_item(self.shape, intent.entity, context)
            new = guards_of(self.shape, item, intent.primary) if self.moves else {}
            if intent.kind == "create":
                self._own = False
                self.action = {"Put": when_absent({"TableName": self.name, "Item": item}, self.shape, now_s)}
            else:
                if self.item is None or not outdated(self.shape, self.item):
                    newer = as_seen(self.shape, all_of(not_newer(self.shape)), now_s)
                    own = own if newer is None else [*own, newer]
                self._act("Put", {"Item": item}, wanted, own)
        elif intent.kind == "delete":
            self._act("Delete", {"Key": intent.primary}, wanted, own)
        else:
            self._act("ConditionCheck", {"Key": intent.primary}, wanted or there(self.shape, now_s), own)
        self.claims, self.releases = moved(old, new)
        if self.item is not None and outdated(self.shape, self.item):
            self.claims = list(new.values())  # the older schema may have kept other fields unique

    def _work_out_update(self, context: Context, now_s: float) -> None:
        intent, plan, shape = self.intent, self.intent.plan, self.shape
        assert plan is not None
        if self.item is not None and outdated(shape, self.item):
            self._work_out_upgrade(self.item, plan.bare(), context)
            return
        if plan.unsettled and shape.policy == "read":
            planned = plan.ready_on(self.item or {}, intent.primary, context)
        else:
            planned = plan.ready(intent.primary, context)
        actions = planned.actions
        wanted = all_of([node_of(intent.when), self.lock])
        if intent.create_missing:
            actions = (*actions, *founding(shape, intent.keys, intent.changes))
        if self.moves or (intent.create_missing and self.known and self.item is None):
            self.after = changed(actions, self.item) | intent.primary
        if intent.create_missing and self.known and self.item is None:
            # What has expired may stand there still, and must not shine through: the item is made anew.
            self._act("Put", {"Item": self.after}, as_seen(shape, wanted, now_s), [absent(shape, now_s)])
        else:
            own = [
                *planned.guards,
                *(watched_nodes(shape, self.item, now_s, intent.changes) if self.moves else ()),
            ]
            own += of_this_schema(shape, or_absent=intent.create_missing)
            if not intent.create_missing:
                wanted = all_of([there(shape, now_s), wanted])
            elif (ttl := shape.home.settings.ttl) is not None and ttl in shape.by_attribute:
                own.append(alive(ttl, now_s))
            self._act("Update", {"Key": intent.primary}, wanted, own, actions)
        if self.moves:
            old = former_guards(shape, self.item, intent.primary)
            self.claims, self.releases = moved(old, guards_of(shape, self.after, intent.primary))

    def _work_out_upgrade(self, item: Item, actions: Sequence[Action], context: Context) -> None:
        """Make the action of an update that meets an older schema: the whole item, upgraded and changed."""
        shape, primary = self.shape, self.intent.primary
        self.after = renewed(shape, changed(actions, renewed(shape, item, context)), context)
        self._act("Put", {"Item": self.after}, None, as_read(shape, item))
        new = guards_of(shape, self.after, primary)
        self.claims = list(new.values())  # the older schema may have kept other fields unique
        self.releases = moved(former_guards(shape, item, primary), new)[1]

    def _act(
        self,
        verb: str,
        what: dict[str, Any],
        wanted: ConditionNode | None,
        own: list[ConditionNode],
        actions: Sequence[Action] = (),
    ) -> None:
        self._own = bool(own)
        request = {"TableName": self.name, **what}
        self.action = {verb: conditioned(request, all_of([wanted, *own]), actions)}

    def judge(self, reason: CancellationReason, now_s: float) -> Verdict | None:
        """Return what the answer to the draft's own action comes to; "stale": it is to be worked out again."""
        if reason.code != "ConditionalCheckFailed":
            return self.judged(reason)
        stands = brought(reason.item)
        gone = stands is None or expired(self.shape.home, stands, now_s)
        seen: Item = {} if gone or stands is None else stands
        found = None if gone or stands is None else found_in(self.shape, stands)
        intent = self.intent
        if intent.kind == "create":
            return Reason(intent, "exists", ItemExists(intent.what, found), found)
        bare = intent.kind == "check" and intent.when is None
        if gone and (bare or (intent.kind == "update" and not intent.create_missing)):
            return Reason(intent, "missing", ItemMissing(intent.what), None)
        if not gone and outdated(self.shape, stands):
            self.learn(stands, now_s)
            return "stale"
        if self.lock is not None and not compile_decider(self.lock)(seen, {}):
            return Reason(intent, "lock", LockLost(intent.what, found), found)
        when = node_of(intent.when)
        if self._own and (when is None or compile_decider(when)(seen, {})):
            self.learn(stands, now_s)
            return "stale"
        return Reason(intent, "condition", ConditionFailed(intent.what, found), found)

    def judge_guard(self, guard: Guard, *, claimed: bool, reason: CancellationReason) -> Verdict | None:
        """Return what the answer to the action of one of the draft's guards comes to."""
        if reason.code != "ConditionalCheckFailed":
            return self.judged(reason)
        if not claimed:
            self.foreign.add(guard.text)  # another has the value, so it is not ours to give back
            return "stale"
        stands = brought(reason.item) or {}
        owner = stands.get(OWNER_ATTRIBUTE, {}).get("M")
        error = UniqueTaken(self.intent.what, guard.field, guard.value, owner)
        return Reason(self.intent, "unique", error, None)

    def judged(self, reason: CancellationReason) -> Reason[Any] | None:
        """Return what an answer comes to that tells of no condition."""
        if reason.code == "None":
            return None
        message = reason.message or reason.code
        passing = PASSING.get(reason.code)
        if passing is not None:
            kind, fault = passing
            return Reason(self.intent, kind, fault(message), None)
        if reason.code == "ItemCollectionSizeLimitExceeded":
            return Reason(self.intent, "too_large", ItemCollectionSizeLimitExceededFault(message), None)
        if too_large(message):
            return Reason(self.intent, "too_large", ItemSizeExceeded(message), None)
        return Reason(self.intent, "invalid", ValidationFault(message), None)

    def done(self) -> None:
        """Note in the entity that it was written."""
        if self.intent.kind in ("create", "put") and self.intent.entity is not None:
            raise_lock(self.shape, self.intent.entity)


def found_in(shape: Shape, item: Item) -> Entity | None:
    """Return the entity that an item is, None where it is none of this kind: that is not what went wrong."""
    try:
        found: Entity = entity_of(shape.entity, item)
    except ItemUnreadable:
        return None
    return found

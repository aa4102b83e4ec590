"""Transactions: several writes that are all done or not at all, and several reads of one moment, as steps.

A transaction carries a token that it keeps however often it is asked again, so that an answer that was lost is no second
write. What passes by itself is waited out: conflicts with other transactions, throttles. What was overtaken between its
read and its write is worked out again from the item that the refusal brought. A condition that does not hold is
never tried again: it is told, with the reason of each intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from tavola.client.batches import Place, get_items, place_of
from tavola.client.cancellations import Reason, TransactionCancelled, cancelled
from tavola.client.context import Context
from tavola.client.drafts import PASSING, PreparedWrite, Verdict
from tavola.client.effects import Call, Program, Sleep
from tavola.client.errors import TransactionRefused, UpdateContended
from tavola.client.expiry import expired
from tavola.client.intents import Intent
from tavola.client.marshalling import entity_of
from tavola.client.uniques import Guard, claim, release
from tavola.client.writes import CONTENTION_MAX, keyed
from tavola.errors import TavolaError
from tavola.limits import TRANSACTION_ACTIONS_MAX
from tavola.model import Entity, ModelError, PrimaryKey, Table
from tavola.protocol.faults import (
    CancellationReason,
    ConditionalCheckFailedFault,
    IdempotentParameterMismatchFault,
    TransactionCanceledFault,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)
E2 = TypeVar("E2", bound=Entity)
E3 = TypeVar("E3", bound=Entity)
E4 = TypeVar("E4", bound=Entity)
E5 = TypeVar("E5", bound=Entity)

_ALONE: dict[str, tuple[str, dict[str, Any]]] = {
    "Put": ("PutItem", {}),
    "Update": ("UpdateItem", {"ReturnValues": "ALL_NEW"}),
    "Delete": ("DeleteItem", {"ReturnValues": "ALL_OLD"}),
}
_GROWTHS_MAX = 6  # how often the pause before working something out again grows


def commit(context: Context, intents: Sequence[Intent[Any]], token: str | None = None) -> Program[None]:
    """Do everything that is intended, or nothing and say why; with no intents, nothing is asked."""
    if intents:
        yield from _perform(context, [PreparedWrite(context, intent) for intent in intents], token)


@dataclass(frozen=True, slots=True)
class _TransactAction:
    """One action of the request: whose it is, and the guard that it is about, if it is about one."""

    draft: PreparedWrite
    action: dict[str, Any]
    guard: Guard | None = None
    claimed: bool = False


def _perform(
    context: Context, drafts: Sequence[PreparedWrite], token: str | None, *, alone: bool = False
) -> Program[dict[str, Any]]:
    """Do some drafts together and return the answer; one that needs no guard may be done alone, for half the units."""
    yield from _read(context, [draft for draft in drafts if draft.reads])
    overtaken = passing = 0
    asked: list[_TransactAction] = []
    while True:
        if not asked:
            now_s = context.clock.now()
            asked = _assembled(context, drafts, now_s)
        try:
            if alone and len(asked) == 1:
                answer: dict[str, Any] = yield _single(asked[0].action)
                break
            token = token or context.entropy.uuid()
            actions = [each.action for each in asked]
            answer = yield Call("TransactWriteItems", {"TransactItems": actions, "ClientRequestToken": token})
            break
        except IdempotentParameterMismatchFault:
            if not overtaken:
                raise
            token = context.entropy.uuid()  # ours was remembered with what was cancelled
            continue
        except (TransactionCanceledFault, ConditionalCheckFailedFault) as fault:
            verdicts = _judged(drafts, asked, fault, now_s)
            failed = [verdict for verdict in verdicts if isinstance(verdict, Reason)]
            lasting = any(reason.kind not in ("conflict", "throttled") for reason in failed)
            if failed and (lasting or passing + 1 >= context.retry_policy.attempts_max):
                raise cancelled([v if isinstance(v, Reason) else None for v in verdicts]) from fault
            passing += bool(failed)
            if "stale" in verdicts:
                asked = []
                overtaken += 1
                if overtaken == CONTENTION_MAX:
                    told = [d.intent.what for d, v in zip(drafts, verdicts, strict=True) if v == "stale"]
                    raise UpdateContended(", ".join(told), CONTENTION_MAX) from fault
        yield Sleep(context.retry_policy.pause_s(min(max(passing, overtaken), _GROWTHS_MAX)))
    for draft in drafts:
        draft.done()
    return answer


def _single(action: dict[str, Any]) -> Call:
    """Return an action of a transaction as the operation that does it alone."""
    ((verb, request),) = action.items()
    operation, more = _ALONE[verb]
    return Call(operation, {**request, **more})


def _read(context: Context, drafts: Sequence[PreparedWrite]) -> Program[None]:
    """Let drafts know their items, as they are now."""
    tables: dict[type[Table], list[PreparedWrite]] = {}
    for draft in drafts:
        tables.setdefault(draft.shape.home, []).append(draft)
    for table, members in tables.items():
        if len(members) == 1:
            key = members[0].intent.primary
            answer = yield Call("GetItem", {"TableName": members[0].name, "Key": key, "ConsistentRead": True})
            items = [answer.get("Item")]
        else:
            items = yield from get_items(context, table, [draft.intent.primary for draft in members], True)
        now_s = context.clock.now()
        for draft, item in zip(members, items, strict=True):
            draft.learn(item, now_s)


def _assembled(context: Context, drafts: Sequence[PreparedWrite], now_s: float) -> list[_TransactAction]:
    """Return the actions of a request: those of the intents in their order, then those of their guards."""
    missing = [draft.missing() or draft.refused(context) for draft in drafts]
    if any(missing):
        raise cancelled(missing)
    for draft in drafts:
        draft.work_out(context, now_s)
    asked = [_TransactAction(draft, draft.action) for draft in drafts]
    asked += _guard_actions(drafts, now_s)
    if len(asked) > TRANSACTION_ACTIONS_MAX:
        raise TransactionRefused(
            f"it comes to {len(asked)} actions, the guards of unique values among them, and DynamoDB takes "
            f"{TRANSACTION_ACTIONS_MAX}; split what need not be done together",
            [draft.intent for draft in drafts],
        )
    return asked


def _guard_actions(drafts: Sequence[PreparedWrite], now_s: float) -> list[_TransactAction]:
    """Return one action for each guard; a value that one item gives and another takes changes hands in it."""
    takers: dict[Place, tuple[PreparedWrite, Guard]] = {}
    givers: dict[Place, list[tuple[PreparedWrite, Guard]]] = {}
    for draft in drafts:
        for guard in draft.claims:
            place = (draft.name, guard.text)
            if place in takers:
                other = takers[place][0].intent
                raise TransactionRefused(
                    f"{other!r} and {draft.intent!r} would both have one {guard.field}, which is unique",
                    [other, draft.intent],
                )
            takers[place] = (draft, guard)
        for guard in draft.releases:
            if guard.text not in draft.foreign:
                givers.setdefault((draft.name, guard.text), []).append((draft, guard))
    asked: list[_TransactAction] = []
    for place, (draft, guard) in takers.items():
        owners = [given.owner for _, given in givers.pop(place, ())]
        asked.append(_TransactAction(draft, claim(draft.name, guard, owners, now_s), guard, claimed=True))
    for given in givers.values():
        draft, guard = given[0]
        owners = [other.owner for _, other in given[1:]]
        asked.append(_TransactAction(draft, release(draft.name, guard, owners, now_s), guard))
    return asked


def _judged(
    drafts: Sequence[PreparedWrite],
    asked: Sequence[_TransactAction],
    fault: TransactionCanceledFault | ConditionalCheckFailedFault,
    now_s: float,
) -> list[Verdict | None]:
    """Return what a refusal comes to for each draft."""
    if isinstance(fault, ConditionalCheckFailedFault):
        reasons: Sequence[CancellationReason] = [
            CancellationReason("ConditionalCheckFailed", None, fault.extra.get("Item"))
        ]
    else:
        reasons = getattr(fault, "reasons", ())  # some endpoints tell none
    if not any(reason.code != "None" for reason in reasons):
        raise fault
    verdicts: dict[PreparedWrite, Verdict | None] = {}
    for each, reason in zip(asked, reasons, strict=False):
        draft = each.draft
        if each.guard is None:
            verdicts[draft] = draft.judge(reason, now_s)
        elif verdicts[draft] is None:
            # Of a draft that is to be worked out again, what its guards met is of no account.
            verdicts[draft] = draft.judge_guard(each.guard, claimed=each.claimed, reason=reason)
    return [verdicts.get(draft) for draft in drafts]


def write(context: Context, intent: Intent[E]) -> Program[Item | None]:
    """Do one intent by itself, with the guards of its unique values; return the item that it left, or deleted.

    Of a transaction DynamoDB returns no item: what was changed is read again, what was deleted is told as it
    was when it was read.
    """
    draft = PreparedWrite(context, intent)
    try:
        answer = yield from _perform(context, [draft], None, alone=True)
    except TransactionCancelled as error:
        raise error.failed[intent].error from error.__cause__
    if "Attributes" in answer or not (draft.claims or draft.releases):
        return answer.get("Attributes", draft.after)
    if intent.kind != "update":
        return draft.item
    told: dict[str, Any] = yield Call(
        "GetItem", {"TableName": draft.name, "Key": intent.primary, "ConsistentRead": True}
    )
    return told.get("Item", draft.after)


def existing(context: Context, entity: Entity, fault: ConditionalCheckFailedFault) -> TavolaError:
    """Return the error of a creation that was refused because of what is there."""
    draft = PreparedWrite(context, Intent("create", entity))
    (verdict,) = _judged([draft], [_TransactAction(draft, {})], fault, context.clock.now())
    assert isinstance(verdict, Reason)
    return verdict.error


@overload
def get_together(context: Context, keys: Iterable[PrimaryKey[E]], /) -> Program[list[E | None]]: ...
@overload
def get_together(context: Context, key: PrimaryKey[E], /) -> Program[tuple[E | None]]: ...
@overload
def get_together(
    context: Context, key: PrimaryKey[E], key2: PrimaryKey[E2], /
) -> Program[tuple[E | None, E2 | None]]: ...
@overload
def get_together(
    context: Context, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], /
) -> Program[tuple[E | None, E2 | None, E3 | None]]: ...
@overload
def get_together(
    context: Context, key: PrimaryKey[E], key2: PrimaryKey[E2], key3: PrimaryKey[E3], key4: PrimaryKey[E4], /
) -> Program[tuple[E | None, E2 | None, E3 | None, E4 | None]]: ...
@overload
def get_together(
    context: Context,
    key: PrimaryKey[E],
    key2: PrimaryKey[E2],
    key3: PrimaryKey[E3],
    key4: PrimaryKey[E4],
    key5: PrimaryKey[E5],
    /,
) -> Program[tuple[E | None, E2 | None, E3 | None, E4 | None, E5 | None]]: ...
def get_together(context: Context, *keys: Any) -> Program[Any]:
    """Return the entities with up to 100 keys as they are at one moment; None where there is none.

    Up to five keys give a tuple that has the type of each; an iterable of keys gives a list.
    """
    as_list = len(keys) == 1 and not isinstance(keys[0], PrimaryKey)
    if as_list:
        keys = tuple(keys[0])
    wanted: dict[Place, dict[str, Any]] = {}
    places: list[tuple[Any, Place]] = []
    for key in keys:
        shape, values, entity = keyed(key)
        if entity is not None:
            raise ModelError(
                shape.entity.__name__, f"get_together takes keys, such as {shape.entity.__name__}.Key(…)"
            )
        name, primary = context.name_of(shape.home), shape.primary(values)
        place = place_of(name, primary)
        places.append((shape, place))
        wanted[place] = {"Get": {"TableName": name, "Key": primary}}
    if not wanted:
        return [] if as_list else ()
    if len(wanted) > TRANSACTION_ACTIONS_MAX:
        raise TransactionRefused(
            f"it would read {len(wanted)} items, and DynamoDB reads {TRANSACTION_ACTIONS_MAX} at one moment; "
            "get_many() reads any number, each as it is when its turn comes"
        )
    found = dict(zip(wanted, (yield from _read_together(context, list(wanted.values()))), strict=True))
    now_s = context.clock.now()
    entities: list[Entity | None] = []
    for shape, place in places:
        item = found[place]
        gone = item is None or expired(shape.home, item, now_s)
        entities.append(None if gone or item is None else entity_of(shape.entity, item))
    return entities if as_list else tuple(entities)


def _read_together(context: Context, gets: list[dict[str, Any]]) -> Program[list[Item | None]]:
    attempt = 0
    while True:
        try:
            answer = yield Call("TransactGetItems", {"TransactItems": gets})
            return [found.get("Item") for found in answer["Responses"]]
        except TransactionCanceledFault as fault:
            attempt += 1
            reasons = [reason.code for reason in getattr(fault, "reasons", ())]
            lasting = not reasons or any(code != "None" and code not in PASSING for code in reasons)
            if lasting or attempt >= context.retry_policy.attempts_max:
                raise
        yield Sleep(context.retry_policy.pause_s(attempt))

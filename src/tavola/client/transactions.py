"""Transactions: several writes that are all made or none, and several reads at one moment.

A transaction keeps its token through all attempts, so repeating it after a lost response does not write twice. Transient
failures (conflicts with other transactions, throttling) are retried after a pause. If an item changed between its read and its
write, the write is prepared again from the stored item in the response. A failed condition is never retried: it is raised as
`TransactionCancelled`, with the failure of each intent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep
from tavola.client.errors import ItemExists, TransactionRefused, UpdateContended
from tavola.client.marshalling import entity_of, resolve_target
from tavola.client.requests import ItemId, is_expired, item_id
from tavola.client.retries import CONTENTION_MAX
from tavola.client.unique_guards import UniqueValueGuard, claim, release
from tavola.client.writes import TRANSIENT_REASONS, Intent, Outcome, PreparedWrite, WriteFailure
from tavola.errors import ErrorKind, TavolaError
from tavola.limits import TRANSACTION_ACTIONS_MAX, TRANSACTION_TOKEN_CHARACTERS_MAX
from tavola.model import Change, Condition, Entity, ModelError, PrimaryKey, Table
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

_SINGLE_OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "Put": ("PutItem", {}),
    "Update": ("UpdateItem", {"ReturnValues": "ALL_NEW"}),
    "Delete": ("DeleteItem", {"ReturnValues": "ALL_OLD"}),
}
_PAUSE_GROWTHS_MAX = 6  # how often the pause before preparing writes again grows


class Intents:
    """The writes of a transaction that is not committed yet; nothing is sent before that."""

    def __init__(self, context: Context, token: str | None = None) -> None:
        if token is not None and not 1 <= len(token) <= TRANSACTION_TOKEN_CHARACTERS_MAX:
            raise TransactionRefused(
                f"its token has {len(token)} characters; use 1 to {TRANSACTION_TOKEN_CHARACTERS_MAX}, such as a UUID"
            )
        self._context = context
        self._token = token
        self._intents: dict[ItemId, Intent[Any]] = {}
        self._is_closed = False

    @property
    def intents(self) -> tuple[Intent[Any], ...]:
        """The writes, in the order in which they were added."""
        return tuple(self._intents.values())

    def create(self, entity: E) -> Intent[E]:
        """Store a new entity; if its item exists, the transaction is cancelled with `exists`."""
        return self._add(Intent("create", entity))

    def put(self, entity: E, *, when: Condition[E] | None = None) -> Intent[E]:
        """Store an entity and replace the item that has its key, if any; `when` is checked against that item."""
        return self._add(Intent("put", entity, when=when))

    def update(
        self,
        target: PrimaryKey[E] | E,
        *changes: Change[E],
        when: Condition[E] | None = None,
        create: bool = False,
    ) -> Intent[E]:
        """Change an item and every index key that depends on it; if it does not exist, cancel with `missing`.

        With `create`, a missing item is created from the key and the changes.
        """
        return self._add(Intent("update", target, changes=changes, when=when, create_missing=create))

    def delete(
        self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None, erase: bool = False
    ) -> Intent[E]:
        """Delete an item; a missing item is not an error, unless `when` requires one.

        An item of an immutable entity is deleted only with `erase`.
        """
        return self._add(Intent("delete", target, when=when, erase=erase))

    def check(self, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None) -> Intent[E]:
        """Make the transaction depend on a condition on an item; without `when`, on its existence."""
        return self._add(Intent("check", target, when=when))

    def _add(self, intent: Intent[E]) -> Intent[E]:
        if self._is_closed:
            raise TransactionRefused(
                f"{intent!r} was added after the commit; start another transaction", [intent]
            )
        id_ = item_id(self._context.name_of(intent.shape.home), intent.primary)
        other = self._intents.get(id_)
        if other is not None:
            raise TransactionRefused(
                f"{other!r} and {intent!r} write the same item, and DynamoDB allows one action for each item; "
                "combine them",
                [other, intent],
            )
        if len(self._intents) == TRANSACTION_ACTIONS_MAX:
            raise TransactionRefused(
                f"{intent!r} is action number {TRANSACTION_ACTIONS_MAX + 1}, and DynamoDB allows "
                f"{TRANSACTION_ACTIONS_MAX}; split the transaction",
                [intent],
            )
        self._intents[id_] = intent
        return intent

    def _close(self) -> tuple[Intent[Any], ...]:
        """Return the writes; none can be added from now on."""
        if self._is_closed:
            raise TransactionRefused("it was committed already; start another transaction", self.intents)
        self._is_closed = True
        return self.intents


class WriteFailures(Mapping[Intent[Any], WriteFailure[Any]]):
    """The failures of a transaction by intent, each typed as its intent is."""

    def __init__(self, failures: Sequence[WriteFailure[Any] | None]) -> None:
        self._failures = {failure.intent: failure for failure in failures if failure is not None}

    def __getitem__(self, intent: Intent[E]) -> WriteFailure[E]:
        return self._failures[intent]

    def __iter__(self) -> Iterator[Intent[Any]]:
        return iter(self._failures)

    def __len__(self) -> int:
        return len(self._failures)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{intent!r}: {failure.kind}' for intent, failure in self._failures.items())}}}"


class TransactionCancelled(TavolaError):
    """A transaction failed and wrote nothing; `failed` says which intents failed, and why."""

    kind = ErrorKind.CONFLICT

    def __init__(self, reasons: Sequence[WriteFailure[Any] | None]) -> None:
        self.reasons = tuple(reasons)  # one for each intent, in order; None: that intent did not fail
        self.failed = WriteFailures(reasons)
        failures = "; ".join(f"{intent!r}: {failure.error}" for intent, failure in self.failed.items())
        TavolaError.__init__(self, f"The transaction was cancelled and nothing was written. {failures}")


class TransactionItemExists(TransactionCancelled, ItemExists):
    """A transaction whose only failure is one create of an item that exists already.

    It is also an `ItemExists`, with the stored entity as `found`: when a transaction is retried, this alone means that the
    first attempt succeeded.
    """

    def __init__(self, reasons: Sequence[WriteFailure[Any] | None]) -> None:
        only = next(reason for reason in reasons if reason is not None)
        self.what = only.intent.what
        self.found = only.item
        TransactionCancelled.__init__(self, reasons)


def transaction_error(reasons: Sequence[WriteFailure[Any] | None]) -> TransactionCancelled:
    """Return the error for the outcome of each intent, at least one of which failed."""
    failed = [reason for reason in reasons if reason is not None]
    assert failed, "a cancelled transaction has a reason"
    if len(failed) == 1 and failed[0].kind == "exists":
        return TransactionItemExists(reasons)
    return TransactionCancelled(reasons)


def commit(context: Context, intents: Sequence[Intent[Any]], token: str | None = None) -> Program[None]:
    """Make all writes, or raise why none was made; without intents, nothing is sent."""
    if intents:
        yield from _commit_writes(context, [PreparedWrite(context, intent) for intent in intents], token)


@dataclass(frozen=True, slots=True)
class _TransactAction:
    """One action of the request, the write it belongs to, and the guard that it claims or releases, if any."""

    write: PreparedWrite
    action: dict[str, Any]
    guard: UniqueValueGuard | None = None
    claimed: bool = False


def _commit_writes(
    context: Context, writes: Sequence[PreparedWrite], token: str | None, *, is_single: bool = False
) -> Program[dict[str, Any]]:
    """Make writes together and return the response; with `is_single`, one action is sent without a transaction, at half the cost."""
    yield from _read_items(context, [write for write in writes if write.reads_first])
    overtaken = retries = 0
    actions: list[_TransactAction] = []
    while True:
        if not actions:
            now_s = context.clock.now()
            actions = _prepare_actions(context, writes, now_s)
        try:
            if is_single and len(actions) == 1:
                response: dict[str, Any] = yield _single_call(actions[0].action)
                break
            token = token or context.entropy.uuid()
            request = {"TransactItems": [action.action for action in actions], "ClientRequestToken": token}
            response = yield Call("TransactWriteItems", request)
            break
        except IdempotentParameterMismatchFault:
            if not overtaken:
                raise
            token = context.entropy.uuid()  # the old token belongs to the actions of a cancelled attempt
            continue
        except (TransactionCanceledFault, ConditionalCheckFailedFault) as fault:
            outcomes = _outcomes(writes, actions, fault, now_s)
            failed = [outcome for outcome in outcomes if isinstance(outcome, WriteFailure)]
            lasting = any(failure.kind not in ("conflict", "throttled") for failure in failed)
            if failed and (lasting or retries + 1 >= context.retry_policy.attempts_max):
                reasons = [outcome if isinstance(outcome, WriteFailure) else None for outcome in outcomes]
                raise transaction_error(reasons) from fault
            retries += bool(failed)
            if "stale" in outcomes:
                actions = []
                overtaken += 1
                if overtaken == CONTENTION_MAX:
                    names = [w.intent.what for w, o in zip(writes, outcomes, strict=True) if o == "stale"]
                    raise UpdateContended(", ".join(names), CONTENTION_MAX) from fault
        yield Sleep(context.retry_policy.pause_s(min(max(retries, overtaken), _PAUSE_GROWTHS_MAX)))
    for write in writes:
        write.increment_lock()
    return response


def _single_call(action: dict[str, Any]) -> Call:
    """Return an action of a transaction as an operation of its own."""
    ((verb, request),) = action.items()
    operation, extra_members = _SINGLE_OPERATIONS[verb]
    return Call(operation, {**request, **extra_members})


def _read_items(context: Context, writes: Sequence[PreparedWrite]) -> Program[None]:
    """Read the current items of writes that depend on them."""
    tables: dict[type[Table], list[PreparedWrite]] = {}
    for write in writes:
        tables.setdefault(write.shape.home, []).append(write)
    for table, members in tables.items():
        if len(members) == 1:
            request = {"TableName": members[0].table_name, "Key": members[0].intent.primary}
            response = yield Call("GetItem", {**request, "ConsistentRead": True})
            items = [response.get("Item")]
        else:
            items = yield from get_items(context, table, [write.intent.primary for write in members], True)
        now_s = context.clock.now()
        for write, item in zip(members, items, strict=True):
            write.set_item(item, now_s)


def _prepare_actions(
    context: Context, writes: Sequence[PreparedWrite], now_s: float
) -> list[_TransactAction]:
    """Return the actions of the request: those of the intents in their order, then those on guards."""
    failures = [write.check_item(context) for write in writes]
    if any(failures):
        raise transaction_error(failures)
    for write in writes:
        write.prepare(context, now_s)
    actions = [_TransactAction(write, write.action) for write in writes]
    actions += _guard_actions(writes, now_s)
    if len(actions) > TRANSACTION_ACTIONS_MAX:
        raise TransactionRefused(
            f"it has {len(actions)} actions, including those on guards of unique values, and DynamoDB allows "
            f"{TRANSACTION_ACTIONS_MAX}; split the transaction",
            [write.intent for write in writes],
        )
    return actions


def _guard_actions(writes: Sequence[PreparedWrite], now_s: float) -> list[_TransactAction]:
    """Return one action for each guard; a value that one item releases and another claims changes owner in one action."""
    claims: dict[ItemId, tuple[PreparedWrite, UniqueValueGuard]] = {}
    releases: dict[ItemId, list[tuple[PreparedWrite, UniqueValueGuard]]] = {}
    for write in writes:
        for guard in write.claims:
            id_ = (write.table_name, guard.text)
            if id_ in claims:
                other = claims[id_][0].intent
                raise TransactionRefused(
                    f"{other!r} and {write.intent!r} would have the same {guard.field}, which must be unique",
                    [other, write.intent],
                )
            claims[id_] = (write, guard)
        for guard in write.releases:
            if guard.text not in write.foreign_guards:
                releases.setdefault((write.table_name, guard.text), []).append((write, guard))
    actions: list[_TransactAction] = []
    for id_, (write, guard) in claims.items():
        owners = [released.owner for _, released in releases.pop(id_, ())]
        action = claim(write.table_name, guard, owners, now_s)
        actions.append(_TransactAction(write, action, guard, claimed=True))
    for same_guard in releases.values():
        write, guard = same_guard[0]
        owners = [other.owner for _, other in same_guard[1:]]
        actions.append(_TransactAction(write, release(write.table_name, guard, owners, now_s), guard))
    return actions


def _outcomes(
    writes: Sequence[PreparedWrite],
    actions: Sequence[_TransactAction],
    fault: TransactionCanceledFault | ConditionalCheckFailedFault,
    now_s: float,
) -> list[Outcome]:
    """Return what a refusal means for each write."""
    if isinstance(fault, ConditionalCheckFailedFault):
        reasons: Sequence[CancellationReason] = [
            CancellationReason("ConditionalCheckFailed", None, fault.extra.get("Item"))
        ]
    else:
        reasons = getattr(fault, "reasons", ())  # some endpoints return none
    if not any(reason.code != "None" for reason in reasons):
        raise fault
    outcomes: dict[PreparedWrite, Outcome] = {}
    for action, reason in zip(actions, reasons, strict=False):
        write = action.write
        if action.guard is None:
            outcomes[write] = write.outcome(reason, now_s)
        elif outcomes[write] is None:  # for a write that is prepared again, its guards do not matter
            outcomes[write] = write.guard_outcome(action.guard, claimed=action.claimed, reason=reason)
    return [outcomes.get(write) for write in writes]


def write_intent(context: Context, intent: Intent[E]) -> Program[Item | None]:
    """Make one write with its guards, and return the item it left, or the one it deleted.

    A transaction returns no items: an updated item is read again, a deleted one is returned as it was read before.
    """
    write = PreparedWrite(context, intent)
    try:
        response = yield from _commit_writes(context, [write], None, is_single=True)
    except TransactionCancelled as error:
        raise error.failed[intent].error from error.__cause__
    if "Attributes" in response or not (write.claims or write.releases):
        return response.get("Attributes", write.after)
    if intent.kind != "update":
        return write.item
    request = {"TableName": write.table_name, "Key": intent.primary, "ConsistentRead": True}
    current: dict[str, Any] = yield Call("GetItem", request)
    return current.get("Item", write.after)


def create_error(context: Context, entity: Entity, fault: ConditionalCheckFailedFault) -> TavolaError:
    """Return the error of a create whose condition failed."""
    write = PreparedWrite(context, Intent("create", entity))
    (outcome,) = _outcomes([write], [_TransactAction(write, {})], fault, context.clock.now())
    assert isinstance(outcome, WriteFailure)
    return outcome.error


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
    gets: dict[ItemId, dict[str, Any]] = {}
    ids: list[tuple[Any, ItemId]] = []
    for key in keys:
        shape, values, entity = resolve_target(key)
        if entity is not None:
            raise ModelError(
                shape.entity.__name__, f"get_together takes keys, such as {shape.entity.__name__}.Key(…)"
            )
        name, primary = context.name_of(shape.home), shape.primary(values)
        id_ = item_id(name, primary)
        ids.append((shape, id_))
        gets[id_] = {"Get": {"TableName": name, "Key": primary}}
    if not gets:
        return [] if as_list else ()
    if len(gets) > TRANSACTION_ACTIONS_MAX:
        raise TransactionRefused(
            f"it would read {len(gets)} items, and DynamoDB reads at most {TRANSACTION_ACTIONS_MAX} in a transaction; "
            "get_many() reads any number, but not at one moment"
        )
    items = dict(zip(gets, (yield from _transact_get(context, list(gets.values()))), strict=True))
    now_s = context.clock.now()
    entities: list[Entity | None] = []
    for shape, id_ in ids:
        item = items[id_]
        present = item is not None and not is_expired(shape.home, item, now_s)
        entities.append(entity_of(shape.entity, item) if present and item is not None else None)
    return entities if as_list else tuple(entities)


def _transact_get(context: Context, gets: list[dict[str, Any]]) -> Program[list[Item | None]]:
    attempt = 0
    while True:
        try:
            response = yield Call("TransactGetItems", {"TransactItems": gets})
            return [member.get("Item") for member in response["Responses"]]
        except TransactionCanceledFault as fault:
            attempt += 1
            codes = [reason.code for reason in getattr(fault, "reasons", ())]
            lasting = not codes or any(code != "None" and code not in TRANSIENT_REASONS for code in codes)
            if lasting or attempt >= context.retry_policy.attempts_max:
                raise
        yield Sleep(context.retry_policy.pause_s(attempt))

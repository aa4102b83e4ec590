"""Batches: many gets, puts and deletes, split into requests as DynamoDB requires, with unprocessed members sent again.

Writes are taken from their iterable as needed and never held as a whole: about a hundred are pending at a time, each key
once, so that the later of two writes of one key wins and no request contains both. Up to four requests are in flight at
once if the backend allows it. Members that come back unprocessed are sent again before new ones, after a growing pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from tavola.client.backend import ResponseMissing
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep, call_concurrently
from tavola.client.errors import ItemImmutable
from tavola.client.marshalling import describe_item, entity_of, item_of, resolve_target, shape_of_entity
from tavola.client.requests import ItemId, is_expired, item_id
from tavola.errors import ErrorKind, TavolaError
from tavola.limits import BATCH_GET_KEYS_MAX, BATCH_WRITE_REQUESTS_MAX, REQUEST_BYTES_MAX
from tavola.model import Entity, EntityShape, ModelError, PrimaryKey, Table
from tavola.protocol.faults import Fault
from tavola.values import Item

E = TypeVar("E", bound=Entity)
E2 = TypeVar("E2", bound=Entity)
E3 = TypeVar("E3", bound=Entity)
E4 = TypeVar("E4", bound=Entity)
E5 = TypeVar("E5", bound=Entity)
W = TypeVar("W")

CONCURRENT_REQUESTS_MAX = 4
BYTES_MAX = REQUEST_BYTES_MAX - 64 * 1024  # of the writes in a request; the rest is for the JSON around them
NAMED_MAX = 3  # members that an error message names
PAUSE_GROWTHS_MAX = 8
SERVER_ERROR_STATUS = 500  # the lowest HTTP status of a failure of the service

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch or a scan has come."""

    done: int  # entities of a batch, or items scanned
    total: int | None  # None: unknown; for a table, from DescribeTable, which AWS updates every few hours
    unprocessed: int = 0  # members of a batch that will be sent again
    written: int = 0  # items that a scan has rewritten


ProgressReporter: TypeAlias = Callable[[Progress], object]


class BatchUnfinished(TavolaError):
    """A part of a batch was not processed despite retries; the cause, if any, says why."""

    code = "store-busy"
    kind = ErrorKind.THROTTLED

    def __init__(self, verb: str, done: int, left: Sequence[Any], cause: TavolaError | None = None) -> None:
        self.done = done
        self.left = tuple(left)  # entities and keys as they were passed; none after them was started
        names = ", ".join(_describe_member(member) for member in self.left[:NAMED_MAX])
        ending = f" and {len(self.left) - NAMED_MAX} more" if len(self.left) > NAMED_MAX else ""
        super().__init__(
            f"{len(self.left)} were not {verb} despite retries, and {done} were: {names}{ending}; "
            f"{_explain_cause(verb, cause)}"
        )


def _explain_cause(verb: str, cause: TavolaError | None) -> str:
    if isinstance(cause, ResponseMissing):
        unknown = "; some of them may have been written" if cause.sent and verb == "written" else ""
        return f"no response came ({cause}){unknown}: continue with .left when the endpoint responds again"
    if isinstance(cause, Fault) and cause.status >= SERVER_ERROR_STATUS:
        return f"the service failed ({cause}): continue later with .left"
    return "the table has too little capacity: continue later with .left"


def _describe_member(member: Any) -> str:
    if isinstance(member, dict):
        return str(member)
    shape, values, _ = resolve_target(member)
    return describe_item(shape, values)


@dataclass(frozen=True, slots=True)
class _Member(Generic[W]):
    """One member of a batch: the part of the request, and what the caller passed."""

    id: ItemId
    key: Item
    request: dict[str, Any]
    argument: W
    bytes: int = 0


def get_many(
    context: Context, keys: Iterable[PrimaryKey[E]], *, consistent: bool | None = None
) -> Program[list[E | None]]:
    """Return the entities with these keys, in the order of the keys, 100 to a request; None where there is none.

    Keys that DynamoDB leaves unprocessed are requested again; `BatchUnfinished` holds those that remain in the end.
    """
    entities: list[Entity | None] = []
    remaining = iter(keys)
    while window := list(islice(remaining, CONCURRENT_REQUESTS_MAX * BATCH_GET_KEYS_MAX)):
        members = []
        consistent_tables: set[str] = set()
        ids: list[tuple[EntityShape, ItemId]] = []
        for key in window:
            shape, values, entity = resolve_target(key)
            if entity is not None:
                raise ModelError(
                    shape.entity.__name__, f"get_many takes keys, such as {shape.entity.__name__}.Key(…)"
                )
            name, primary = context.name_of(shape.home), shape.primary(values)
            if consistent is None and shape.key is not None and shape.key.access is not None:
                consistent_tables |= {name} if shape.key.access.consistent else set()
            id_ = item_id(name, primary)
            ids.append((shape, id_))
            members.append(_Member(id_, primary, primary, key))
        items = yield from _get_members(context, members, consistent_tables, bool(consistent), len(entities))
        now_s = context.clock.now()
        for shape, id_ in ids:
            item = items.get(id_)
            present = item is not None and not is_expired(shape.home, item, now_s)
            entities.append(entity_of(shape.entity, item) if present and item is not None else None)
    return entities  # type: ignore[return-value]  # a shape does not know its class


@overload
def get_all(
    context: Context, k1: PrimaryKey[E], k2: PrimaryKey[E2], /, *, consistent: bool | None = None
) -> Program[tuple[E | None, E2 | None]]: ...
@overload
def get_all(
    context: Context,
    k1: PrimaryKey[E],
    k2: PrimaryKey[E2],
    k3: PrimaryKey[E3],
    /,
    *,
    consistent: bool | None = None,
) -> Program[tuple[E | None, E2 | None, E3 | None]]: ...
@overload
def get_all(
    context: Context,
    k1: PrimaryKey[E],
    k2: PrimaryKey[E2],
    k3: PrimaryKey[E3],
    k4: PrimaryKey[E4],
    /,
    *,
    consistent: bool | None = None,
) -> Program[tuple[E | None, E2 | None, E3 | None, E4 | None]]: ...
@overload
def get_all(
    context: Context,
    k1: PrimaryKey[E],
    k2: PrimaryKey[E2],
    k3: PrimaryKey[E3],
    k4: PrimaryKey[E4],
    k5: PrimaryKey[E5],
    /,
    *,
    consistent: bool | None = None,
) -> Program[tuple[E | None, E2 | None, E3 | None, E4 | None, E5 | None]]: ...
def get_all(context: Context, *keys: PrimaryKey[Any], consistent: bool | None = None) -> Program[Any]:
    """Return the entities with two to five keys of any classes as a tuple that has the type of each."""
    return tuple((yield from get_many(context, keys, consistent=consistent)))


def get_items(
    context: Context, table: type[Table], keys: Sequence[Item], consistent: bool
) -> Program[list[Item | None]]:
    """Return the items with keys of one table, in the order of the keys; None where there is none."""
    name = context.name_of(table)
    members = [_Member(item_id(name, key), key, key, key) for key in keys]
    items = yield from _get_members(context, members, set(), consistent, 0)
    return [items.get(member.id) for member in members]


def _get_members(
    context: Context,
    members: Sequence[_Member[Any]],
    consistent_tables: set[str],
    consistent: bool,
    done: int,
) -> Program[dict[ItemId, Item]]:
    """Return items by id; a key that occurs several times is requested once."""
    left = {member.id: member for member in members}
    count = len(left)
    items: dict[ItemId, Item] = {}
    retries = _BatchRetries(context, "read")
    while left:
        pending = list(left.values())
        chunks = [
            pending[position : position + BATCH_GET_KEYS_MAX]
            for position in range(0, len(pending), BATCH_GET_KEYS_MAX)
        ]
        calls = [Call("BatchGetItem", _get_request(chunk, consistent_tables, consistent)) for chunk in chunks]
        left = {}
        for chunk, response in zip(chunks, (yield from retries.send(calls, done)), strict=True):
            if response is None:
                left |= {member.id: member for member in chunk}
                continue
            key_names = {member.id[0]: tuple(member.key) for member in chunk}
            for name, table_items in response["Responses"].items():
                for item in table_items:
                    items[_id_of_item(name, key_names[name], item)] = item
            unprocessed = {
                _id_of_item(name, key_names[name], key)
                for name, keys in response.get("UnprocessedKeys", {}).items()
                for key in keys["Keys"]
            }
            left |= {member.id: member for member in chunk if member.id in unprocessed}
        yield from retries.pause(left, len(pending), done + count - len(left))
    return items


def _get_request(
    chunk: Sequence[_Member[Any]], consistent_tables: set[str], consistent: bool
) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for member in chunk:
        name = member.id[0]
        if name not in tables:
            tables[name] = {"Keys": []}
            if consistent or name in consistent_tables:
                tables[name]["ConsistentRead"] = True
        tables[name]["Keys"].append(member.request)
    return {"RequestItems": tables}


def put_many(
    context: Context, entities: Iterable[Entity], *, progress: ProgressReporter | None = None
) -> Program[int]:
    """Store entities unconditionally, 25 to a request, and return how many; existing items are replaced.

    They are read from the iterable as needed, so a generator of a million is never in memory as a whole. If two have
    the same key, the later one is stored.
    """
    return write_many(context, puts=entities, progress=progress)


def delete_many(
    context: Context, keys: Iterable[PrimaryKey[Any] | Entity], *, progress: ProgressReporter | None = None
) -> Program[int]:
    """Delete items, 25 to a request, and return the number of keys; missing items are not an error."""
    return write_many(context, deletes=keys, progress=progress)


def write_many(
    context: Context,
    *,
    puts: Iterable[Entity] = (),
    deletes: Iterable[PrimaryKey[Any] | Entity] = (),
    progress: ProgressReporter | None = None,
) -> Program[int]:
    """Store entities, then delete others, as `put_many` and `delete_many` do, in the same requests."""
    total = len(puts) + len(deletes) if isinstance(puts, Sized) and isinstance(deletes, Sized) else None
    members = chain(
        (_put_member(context, entity) for entity in puts), (_delete_member(context, key) for key in deletes)
    )
    return (yield from _BatchWriter(context, total, progress).write(members))


class _BatchRetries:
    """Sends rounds of batch requests, and gives up when several rounds in a row make no progress."""

    def __init__(self, context: Context, verb: str) -> None:
        self._policy = context.retry_policy
        self._verb = verb
        self._fruitless_rounds = 0
        self._exhausted: TavolaError | None = None  # an error that was retried already
        self._unknown: ResponseMissing | None = None  # the last write without a response

    def send(self, calls: Sequence[Call], done: int) -> Program[list[dict[str, Any] | None]]:
        """Return the response to each call, a few in flight at once; None: throttled despite retries, or no response."""
        responses: list[dict[str, Any] | None] = []
        for position in range(0, len(calls), CONCURRENT_REQUESTS_MAX):
            for response in (
                yield from call_concurrently(calls[position : position + CONCURRENT_REQUESTS_MAX])
            ):
                if not isinstance(response, TavolaError):
                    responses.append(response)
                elif isinstance(response, ResponseMissing) and response.sent and self._verb == "written":
                    self._unknown = response  # puts and deletes may be repeated without harm
                    responses.append(None)
                elif _is_transient(response):
                    self._exhausted = response
                    responses.append(None)
                else:
                    response.add_note(f"{done} were {self._verb} before it")
                    raise response
        return responses

    def pause(self, left: Mapping[ItemId, _Member[Any]], before: int, done: int) -> Program[None]:
        """Wait before the rest is sent again; raise `BatchUnfinished` after too many rounds without progress."""
        self._fruitless_rounds = self._fruitless_rounds + 1 if len(left) == before else 0
        if not left:
            return
        if self._exhausted is not None or self._fruitless_rounds >= self._policy.attempts_max:
            cause = self._exhausted or self._unknown
            raise BatchUnfinished(self._verb, done, [m.argument for m in left.values()], cause) from cause
        yield Sleep(self._policy.pause_s(min(self._fruitless_rounds + 1, PAUSE_GROWTHS_MAX)))


class _BatchWriter:
    """Writes members of a batch: those that are pending, and the number taken from the iterable."""

    def __init__(self, context: Context, total: int | None, progress: ProgressReporter | None) -> None:
        self._retries = _BatchRetries(context, "written")
        self._total = total
        self._progress = progress
        self._pending: dict[ItemId, _Member[Any]] = {}
        self._taken = 0

    def write(self, members: Iterator[_Member[Any]]) -> Program[int]:
        """Write all members, a hundred at a time; unprocessed ones are sent again before new ones."""
        while True:
            if not self._pending:
                self._take(members)
                if not self._pending:
                    return self._taken
            before = len(self._pending)
            yield from self._send()
            left = len(self._pending)
            done = self._taken - left
            if self._progress is not None:
                self._progress(Progress(done, self._total, left, done))
            yield from self._retries.pause(self._pending, before, done)

    def _take(self, members: Iterator[_Member[Any]]) -> None:
        bytes_ = 0
        for member in members:
            self._taken += 1
            replaced = self._pending.pop(member.id, None)  # the later of two writes is kept, and comes last
            bytes_ += member.bytes - (0 if replaced is None else replaced.bytes)
            self._pending[member.id] = member
            is_full = len(self._pending) >= CONCURRENT_REQUESTS_MAX * BATCH_WRITE_REQUESTS_MAX
            if is_full or bytes_ >= BYTES_MAX:
                return

    def _send(self) -> Program[None]:
        chunks = list(_chunks(self._pending.values()))
        calls = [Call("BatchWriteItem", _write_request(chunk)) for chunk in chunks]
        responses = yield from self._retries.send(calls, self._taken - len(self._pending))
        left: dict[ItemId, _Member[Any]] = {}
        for chunk, response in zip(chunks, responses, strict=True):
            if response is None:
                left |= {member.id: member for member in chunk}
                continue
            key_names = {member.id[0]: tuple(member.key) for member in chunk}
            unprocessed = {
                _id_of_item(
                    name,
                    key_names[name],
                    write["PutRequest"]["Item"] if "PutRequest" in write else write["DeleteRequest"]["Key"],
                )
                for name, writes in response.get("UnprocessedItems", {}).items()
                for write in writes
            }
            left |= {member.id: member for member in chunk if member.id in unprocessed}
        self._pending = left


def _chunks(members: Iterable[_Member[Any]]) -> Iterator[list[_Member[Any]]]:
    chunk: list[_Member[Any]] = []
    bytes_ = 0
    for member in members:
        if chunk and (len(chunk) == BATCH_WRITE_REQUESTS_MAX or bytes_ + member.bytes > BYTES_MAX):
            yield chunk
            chunk, bytes_ = [], 0
        chunk.append(member)
        bytes_ += member.bytes
    if chunk:
        yield chunk


def _write_request(chunk: Sequence[_Member[Any]]) -> dict[str, Any]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for member in chunk:
        tables.setdefault(member.id[0], []).append(member.request)
    return {"RequestItems": tables}


def _put_member(context: Context, entity: Entity) -> _Member[Entity]:
    shape = shape_of_entity(entity, "put_many")
    _check_batchable(shape, "put", entity)
    request = {"PutRequest": {"Item": item_of(shape, entity, context)}}
    primary = shape.primary(entity.__dict__)
    id_ = item_id(context.name_of(shape.home), primary)
    return _Member(id_, primary, request, entity, len(_encode(request)))


def _delete_member(context: Context, target: PrimaryKey[Any] | Entity) -> _Member[Any]:
    shape, values, entity = resolve_target(target)
    _check_batchable(shape, "delete", entity)
    primary = shape.primary(values)
    request = {"DeleteRequest": {"Key": primary}}
    id_ = item_id(context.name_of(shape.home), primary)
    return _Member(id_, primary, request, target, len(_encode(request)))


def _check_batchable(shape: EntityShape, verb: Literal["put", "delete"], entity: Entity | None) -> None:
    """Refuse writes that need a condition or a transaction, which a batch cannot have."""
    name = shape.entity.__name__
    if shape.immutable:
        raise ItemImmutable(name, verb)
    if shape.uniques:
        fields = ", ".join(unique.field for unique in shape.uniques)
        raise ModelError(
            name, f"{fields} must be unique, which needs a transaction; call {verb}() for each one"
        )
    if shape.lock is not None and entity is not None:
        remedy = f"call {verb}() for each one" + (", or delete by key" if verb == "delete" else "")
        raise ModelError(
            name, f"its lock ({shape.lock.name}) needs a condition, and a batch has no conditions; {remedy}"
        )


def _id_of_item(table_name: str, key_names: tuple[str, ...], item: Mapping[str, Any]) -> ItemId:
    return item_id(table_name, {attribute: item[attribute] for attribute in key_names})


def _is_transient(error: TavolaError) -> bool:
    """Return whether an error may pass with time: throttling despite retries, a server error, no response."""
    if isinstance(error, Fault):
        return error.retryable or error.status >= SERVER_ERROR_STATUS
    return isinstance(error, ResponseMissing)

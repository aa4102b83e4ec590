"""Batches: many gets, puts and deletes, split as DynamoDB wants them, with what was left undone asked again.

What is to be written is taken as it comes and never held: some hundred writes wait at a time, each key once, so
that the later of two writes of one key wins and no request has both. Four requests are under way at once where
the backend can. What comes back unprocessed goes out again before anything new, after a growing pause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from tavola.client.arguments import shape_of_entity
from tavola.client.backend import Unanswered
from tavola.client.context import Context
from tavola.client.effects import Call, CallGroup, Program, Sleep
from tavola.client.errors import ItemImmutable
from tavola.client.expiry import expired
from tavola.client.marshalling import entity_of, item_of
from tavola.client.progress import Progress, ProgressReporter
from tavola.client.writes import keyed, named
from tavola.errors import ErrorKind, TavolaError
from tavola.limits import BATCH_GET_KEYS_MAX, BATCH_WRITE_REQUESTS_MAX, REQUEST_BYTES_MAX
from tavola.model import Entity, ModelError, PrimaryKey, Shape, Table
from tavola.protocol.faults import Fault
from tavola.values import Item, canonical_number

E = TypeVar("E", bound=Entity)
E2 = TypeVar("E2", bound=Entity)
E3 = TypeVar("E3", bound=Entity)
E4 = TypeVar("E4", bound=Entity)
E5 = TypeVar("E5", bound=Entity)
W = TypeVar("W")

FLIGHT_MAX = 4  # requests under way at once
# Of the writes in a request; the rest is for what stands around them.
BYTES_MAX = REQUEST_BYTES_MAX - 64 * 1024
NAMED_MAX = 3
PAUSE_GROWTHS_MAX = 8
SERVER_FAILED = 500  # the first status that is the service's own failure

Place = tuple[str, str]  # a table's name here, and a key in it

_encode = msgspec.json.Encoder(order="sorted").encode


class BatchUnfinished(TavolaError):
    """A batch of which a part was left undone, however often it was asked; its cause says why, if an error does."""

    code = "store-busy"
    kind = ErrorKind.THROTTLED

    def __init__(self, verb: str, done: int, left: Sequence[Any], stopped: TavolaError | None = None) -> None:
        self.done = done
        self.left = tuple(left)  # the entities and keys as they were given; nothing after them was begun
        told = ", ".join(_told(each) for each in self.left[:NAMED_MAX])
        more = f" and {len(self.left) - NAMED_MAX} more" if len(self.left) > NAMED_MAX else ""
        super().__init__(
            f"{len(self.left)} were not {verb}, however often DynamoDB was asked, and {done} were: {told}{more}; "
            f"{_reason(verb, stopped)}"
        )


def _reason(verb: str, stopped: TavolaError | None) -> str:
    if isinstance(stopped, Unanswered):
        unknown = ", and whether some of them were is not known" if stopped.sent and verb == "written" else ""
        return f"no answer came ({stopped}){unknown}: go on with what is in .left once there is one"
    if isinstance(stopped, Fault) and stopped.status >= SERVER_FAILED:
        return f"the service failed ({stopped}): go on later with what is in .left"
    return "the table has less capacity than is asked of it: go on later with what is in .left"


def _told(given: Any) -> str:
    if isinstance(given, dict):
        return str(given)
    shape, values, _ = keyed(given)
    return named(shape, values)


@dataclass(frozen=True, slots=True)
class _Wanted(Generic[W]):
    """One member of a batch: as it is asked, and as it was given."""

    place: Place
    key: Item
    asked: dict[str, Any]
    given: W
    bytes: int = 0


def get_many(
    context: Context, keys: Iterable[PrimaryKey[E]], *, consistent: bool | None = None
) -> Program[list[E | None]]:
    """Return the entities with these keys, in the order of the keys, 100 to a request; None where there is none.

    Keys that DynamoDB leaves unprocessed are requested again; `BatchUnfinished` holds those that remain in the end.
    """
    found: list[Entity | None] = []
    given = iter(keys)
    while window := list(islice(given, FLIGHT_MAX * BATCH_GET_KEYS_MAX)):
        wanted = []
        firmly: set[str] = set()
        shapes: list[tuple[Shape, Place]] = []
        for key in window:
            shape, values, entity = keyed(key)
            if entity is not None:
                raise ModelError(
                    shape.entity.__name__, f"get_many takes keys, such as {shape.entity.__name__}.Key(…)"
                )
            name, primary = context.name_of(shape.home), shape.primary(values)
            if consistent is None and shape.key is not None and shape.key.access is not None:
                firmly |= {name} if shape.key.access.consistent else set()
            shapes.append((shape, place_of(name, primary)))
            wanted.append(_Wanted(shapes[-1][1], primary, primary, key))
        items = yield from _gotten(context, wanted, firmly, bool(consistent), len(found))
        now_s = context.clock.now()
        for shape, place in shapes:
            item = items.get(place)
            gone = item is None or expired(shape.home, item, now_s)
            found.append(None if gone or item is None else entity_of(shape.entity, item))
    return found  # type: ignore[return-value]  # a shape does not know its class


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
    """Return the items under keys of one table, in the order of the keys; None where there is none."""
    name = context.name_of(table)
    wanted = [_Wanted(place_of(name, key), key, key, key) for key in keys]
    found = yield from _gotten(context, wanted, set(), consistent, 0)
    return [found.get(each.place) for each in wanted]


def _gotten(
    context: Context, wanted: Sequence[_Wanted[Any]], firmly: set[str], consistent: bool, done: int
) -> Program[dict[Place, Item]]:
    """Return items by their place; each key is asked for once, however often it is wanted."""
    left = {each.place: each for each in wanted}
    count = len(left)
    found: dict[Place, Item] = {}
    rounds = _Rounds(context, "read")
    while left:
        asked = list(left.values())
        chunks = [asked[at : at + BATCH_GET_KEYS_MAX] for at in range(0, len(asked), BATCH_GET_KEYS_MAX)]
        calls = [Call("BatchGetItem", _get_request(chunk, firmly, consistent)) for chunk in chunks]
        left = {}
        for chunk, answer in zip(chunks, (yield from rounds.answers(calls, done)), strict=True):
            if answer is None:
                left |= {each.place: each for each in chunk}
                continue
            names = {each.place[0]: tuple(each.key) for each in chunk}
            for name, items in answer["Responses"].items():
                for item in items:
                    found[_place_in(name, names[name], item)] = item
            told = answer.get("UnprocessedKeys", {})
            undone = {_place_in(n, names[n], key) for n, asked in told.items() for key in asked["Keys"]}
            left |= {each.place: each for each in chunk if each.place in undone}
        yield from rounds.over(left, len(asked), done + count - len(left))
    return found


def _get_request(chunk: Sequence[_Wanted[Any]], firmly: set[str], consistent: bool) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for each in chunk:
        name = each.place[0]
        if name not in tables:
            tables[name] = {"Keys": []}
            if consistent or name in firmly:
                tables[name]["ConsistentRead"] = True
        tables[name]["Keys"].append(each.asked)
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
    """Delete items, 25 to a request, and return how many keys were given; items that do not exist are no error."""
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
    source = chain((_put(context, entity) for entity in puts), (_delete(context, key) for key in deletes))
    writer = _Writer(context, total, progress)
    return (yield from writer.write(source))


class _Rounds:
    """How often nothing came of a round of requests, and what stopped one."""

    def __init__(self, context: Context, verb: str) -> None:
        self._patience = context.retry_policy
        self._verb = verb
        self._fruitless = 0
        self._stopped: TavolaError | None = None  # what will not pass, for it was waited out already
        self._missed: Unanswered | None = None  # a write that no answer came to, the last of them

    def answers(self, calls: Sequence[Call], done: int) -> Program[list[dict[str, Any] | None]]:
        """Return what some calls came to, a few under way at once; None: throttled for longer than is waited, or no answer."""
        found: list[dict[str, Any] | None] = []
        for at in range(0, len(calls), FLIGHT_MAX):
            for answer in (yield from answers(calls[at : at + FLIGHT_MAX])):
                if not isinstance(answer, TavolaError):
                    found.append(answer)
                elif isinstance(answer, Unanswered) and answer.sent and self._verb == "written":
                    self._missed = answer  # done twice, puts and deletes come to the same: they go out again
                    found.append(None)
                elif _passing(answer):
                    self._stopped = answer
                    found.append(None)
                else:
                    answer.add_note(f"{done} were {self._verb} before it")
                    raise answer
        return found

    def over(self, left: Mapping[Place, _Wanted[Any]], before: int, done: int) -> Program[None]:
        """Wait before what is left is asked again; give up where nothing has come of it for too long."""
        self._fruitless = self._fruitless + 1 if len(left) == before else 0
        if not left:
            return
        if self._stopped is not None or self._fruitless >= self._patience.attempts_max:
            given = [each.given for each in left.values()]
            reason = self._stopped or self._missed
            raise BatchUnfinished(self._verb, done, given, reason) from reason
        yield Sleep(self._patience.pause_s(min(self._fruitless + 1, PAUSE_GROWTHS_MAX)))


class _Writer:
    """Writes on their way: what waits, and how many were taken."""

    def __init__(self, context: Context, total: int | None, progress: ProgressReporter | None) -> None:
        self._rounds = _Rounds(context, "written")
        self._total = total
        self._progress = progress
        self._waiting: dict[Place, _Wanted[Any]] = {}
        self._taken = 0

    def write(self, source: Iterator[_Wanted[Any]]) -> Program[int]:
        """Write everything, a hundred at a time; what is left of a round goes out again before anything new."""
        while True:
            if not self._waiting:
                self._take(source)
                if not self._waiting:
                    return self._taken
            before = len(self._waiting)
            yield from self._send()
            left = len(self._waiting)
            done = self._taken - left
            if self._progress is not None:
                self._progress(Progress(done, self._total, left, done))
            yield from self._rounds.over(self._waiting, before, done)

    def _take(self, source: Iterator[_Wanted[Any]]) -> None:
        bytes_ = 0
        for each in source:
            self._taken += 1
            replaced = self._waiting.pop(each.place, None)  # the later of two writes stands, and last
            bytes_ += each.bytes - (0 if replaced is None else replaced.bytes)
            self._waiting[each.place] = each
            if len(self._waiting) >= FLIGHT_MAX * BATCH_WRITE_REQUESTS_MAX or bytes_ >= BYTES_MAX:
                return

    def _send(self) -> Program[None]:
        chunks = list(_chunks(self._waiting.values()))
        calls = [Call("BatchWriteItem", _write_request(chunk)) for chunk in chunks]
        found = yield from self._rounds.answers(calls, self._taken - len(self._waiting))
        left: dict[Place, _Wanted[Any]] = {}
        for chunk, answer in zip(chunks, found, strict=True):
            if answer is None:
                left |= {each.place: each for each in chunk}
                continue
            names = {each.place[0]: tuple(each.key) for each in chunk}
            undone = {
                _place_in(
                    name,
                    names[name],
                    write["PutRequest"]["Item"] if "PutRequest" in write else write["DeleteRequest"]["Key"],
                )
                for name, writes in answer.get("UnprocessedItems", {}).items()
                for write in writes
            }
            left |= {each.place: each for each in chunk if each.place in undone}
        self._waiting = left


def _chunks(writes: Iterable[_Wanted[Any]]) -> Iterator[list[_Wanted[Any]]]:
    chunk: list[_Wanted[Any]] = []
    bytes_ = 0
    for each in writes:
        if chunk and (len(chunk) == BATCH_WRITE_REQUESTS_MAX or bytes_ + each.bytes > BYTES_MAX):
            yield chunk
            chunk, bytes_ = [], 0
        chunk.append(each)
        bytes_ += each.bytes
    if chunk:
        yield chunk


def _write_request(chunk: Sequence[_Wanted[Any]]) -> dict[str, Any]:
    tables: dict[str, list[dict[str, Any]]] = {}
    for each in chunk:
        tables.setdefault(each.place[0], []).append(each.asked)
    return {"RequestItems": tables}


def _put(context: Context, entity: Entity) -> _Wanted[Entity]:
    if not isinstance(entity, Entity):
        raise ModelError(type(entity).__name__, "it is no entity; put_many takes entities alone")
    shape = shape_of_entity(entity, "put_many")
    _check(shape, "put", entity)
    item = item_of(shape, entity, context)
    asked = {"PutRequest": {"Item": item}}
    primary = shape.primary(entity.__dict__)
    place = place_of(context.name_of(shape.home), primary)
    return _Wanted(place, primary, asked, entity, len(_encode(asked)))


def _delete(context: Context, target: PrimaryKey[Any] | Entity) -> _Wanted[Any]:
    shape, values, entity = keyed(target)
    _check(shape, "delete", entity)
    primary = shape.primary(values)
    asked = {"DeleteRequest": {"Key": primary}}
    place = place_of(context.name_of(shape.home), primary)
    return _Wanted(place, primary, asked, target, len(_encode(asked)))


def _check(shape: Shape, verb: Literal["put", "delete"], entity: Entity | None) -> None:
    """Refuse what must be written under a condition or together with other items; a batch can do neither."""
    name = shape.entity.__name__
    if shape.immutable:
        raise ItemImmutable(name, verb)
    if shape.uniques:
        told = ", ".join(unique.field for unique in shape.uniques)
        raise ModelError(
            name, f"{told} must be unique, which takes a transaction; {verb} it with {verb}(), one by one"
        )
    if shape.lock is not None and entity is not None:
        remedy = f"{verb} it with {verb}(), one by one" + (", or by its key" if verb == "delete" else "")
        raise ModelError(
            name,
            f"it is written only as it was read (its lock is {shape.lock.name}), and a batch has no conditions; "
            f"{remedy}",
        )


def place_of(name: str, key: Mapping[str, Any]) -> Place:
    """Return what tells two items apart: the table's name, and the key as text, its numbers in their one form."""
    told = {
        attribute: {"N": canonical_number(value["N"])} if "N" in value else value
        for attribute, value in key.items()
    }
    return name, _encode(told).decode()


def _place_in(name: str, attributes: tuple[str, ...], item: Mapping[str, Any]) -> Place:
    return place_of(name, {attribute: item[attribute] for attribute in attributes})


def answers(calls: Sequence[Call]) -> Program[list[dict[str, Any] | TavolaError]]:
    """Return what each of some calls came to, an answer or an error, asked at once where there are several."""
    if len(calls) > 1:
        return (yield CallGroup(tuple(calls)))  # type: ignore[no-any-return]  # what Together is answered with
    try:
        return [(yield calls[0])]
    except TavolaError as error:
        return [error]


def _passing(error: TavolaError) -> bool:
    """Return whether an error would pass by itself in time: a throttle that outlasted patience, no answer."""
    if isinstance(error, Fault):
        return error.retryable or error.status >= SERVER_FAILED
    return isinstance(error, Unanswered)

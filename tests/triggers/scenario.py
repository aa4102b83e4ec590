"""A trigger through everything at once, from a seed: splits, failures, crashes, restarts; and what went wrong.

A crash is an exception that nobody catches: out of the handler, before or after its effect, or out of the
checkpoint store, before or after its write. The trigger is then left as it is and a new one is made on the
same checkpoints, which is all that a killed process leaves behind.

Whether the handler reports failures or raises, and whether the mapping reads reports, are drawn independently: no pair
may lose a record. Each checkpoint that is stored is compared with what was handled until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec

from tavola.client.streams import Shard
from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.triggers import (
    DrainUnfinished,
    EventSourceMapping,
    MemoryCheckpoint,
    MemoryDeadLetters,
    Position,
    Trigger,
)
from tavola.triggers.events import stream_record
from tavola.triggers.outcomes import Failed, Outcome, Succeeded, read_response
from tavola.triggers.shard_consumer import ShardConsumer
from tests.triggers.fake import ARN, START_S, FakeStream

KEYS = tuple(f"key-{number}" for number in range(6))


class Crash(BaseException):
    """The process is no more."""


class CrashingCheckpoints(MemoryCheckpoint):
    """Loses the process now and then, before or after a write."""

    def __init__(self, random: Random, chance: float) -> None:
        super().__init__()
        self._random = random
        self.chance = chance
        self.observe: Callable[[Mapping[str, Any]], None] = lambda checkpoint: None

    def save(self, checkpoint: Mapping[str, Any]) -> None:
        """Keep positions, unless the process goes first."""
        crash = self._random.random() < self.chance
        if crash and self._random.random() < 0.5:
            raise Crash
        super().save(checkpoint)
        self.observe(checkpoint)
        if crash:
            raise Crash


@dataclass
class Writer:
    """Writes to a stream whose shards split and roll."""

    random: Random
    stream: FakeStream = field(default_factory=lambda: FakeStream(page=7))
    homes: dict[str, str] = field(default_factory=dict)  # the open shard of each key
    made: int = 0
    written: dict[str, list[int]] = field(default_factory=dict)

    def begin(self) -> None:
        """Open the first shards."""
        for name in self._names(2):
            self.stream.add(name)
            self.homes.update(dict.fromkeys(self.random.sample(KEYS, 3), name))
        for key in KEYS:
            self.homes.setdefault(key, next(iter(self.stream.shards))[-3:])

    def write(self, count: int, at_s: float) -> None:
        """Change items, and the shards now and then."""
        for _ in range(count):
            if self.random.random() < 0.05:
                self._split(self.random.choice(sorted(set(self.homes.values()))))
            key = self.random.choice(KEYS)
            number = self.stream.put(self.homes[key], key, at_s=at_s)
            self.written.setdefault(key, []).append(number)

    def _split(self, name: str) -> None:
        children = self._names(self.random.randint(1, 2))
        self.stream.finish(name)
        for child in children:
            self.stream.add(child, name)
        for key in sorted(key for key, home in self.homes.items() if home == name):
            self.homes[key] = self.random.choice(children)

    def _names(self, count: int) -> list[str]:
        self.made += count
        return [f"{number:03d}" for number in range(self.made - count, self.made)]


@dataclass
class Consumer:
    """A handler that fails and crashes by chance, and notes what it truly handled."""

    random: Random
    reports: bool
    poison: set[int]
    crash: float
    flaky: float
    handled: list[tuple[str, int]] = field(default_factory=list)
    lives: list[int] = field(default_factory=list)  # which trigger handled it
    life: int = 0
    sums: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, event: dict[str, Any], context: object) -> Any:
        rows = [
            (record["dynamodb"]["Keys"]["id"]["S"], int(record["dynamodb"]["SequenceNumber"]), record)
            for record in event["Records"]
        ]
        if self.random.random() < self.crash:
            raise Crash
        reported: list[dict[str, str]] = []
        done: list[tuple[str, int]] = []
        for key, number, record in rows:
            if number in self.poison or self.random.random() < self.flaky:
                if not self.reports:
                    raise ValueError(f"cannot handle {number}")
                reported.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
                break
            done.append((key, number))
        self.handled += done
        self.lives += [self.life] * len(done)
        response: dict[str, Any] = {"batchItemFailures": reported}
        if "state" in event:
            count = event["state"].get("count", 0) + len(done)
            response["state"] = {"count": count}
            if event["isFinalInvokeForWindow"]:
                self.sums[event["shardId"], event["window"]["start"]] = count
        if self.random.random() < self.crash:
            raise Crash
        return response


def run_scenario(seed: int, *, windows: bool = False) -> list[str]:
    """Run one scenario, and return what is wrong with how it went."""
    random = Random(seed)
    clock = ManualClock(START_S)
    writer = Writer(random)
    writer.begin()
    reports, reads = random.random() < 0.5, random.random() < 0.5
    bounded = not windows and random.random() < 0.5
    mapping = EventSourceMapping(
        batch_size=random.choice([1, 2, 5, 100]),
        maximum_batching_window_in_seconds=random.choice([0, 0, 3]),
        parallelization_factor=1 if windows else random.choice([1, 1, 2, 10]),
        bisect_batch_on_function_error=random.random() < 0.5,
        maximum_retry_attempts=random.choice([0, 1, 3]) if bounded else -1,
        report_batch_item_failures=reads,
        tumbling_window_in_seconds=20 if windows else 0,
        filter_criteria=[{"dynamodb": {"Keys": {"id": {"S": [{"anything-but": "key-5"}]}}}}],
    )
    consumer = Consumer(random, reports, set(), random.choice([0, 0.05]), random.choice([0, 0.1]))
    if bounded:
        consumer.poison = {random.randint(1, 80) for _ in range(4)}
    checkpoints = CrashingCheckpoints(random, random.choice([0, 0.05]))
    letters = MemoryDeadLetters()
    ahead: list[str] = []
    checkpoints.observe = lambda stored: ahead.extend(_passed_unhandled(stored, writer, consumer, letters))

    def made() -> Trigger:
        consumer.life += 1
        return Trigger(
            writer.stream,
            table="Orders",
            handler=consumer,
            mapping=mapping,
            checkpoints=checkpoints,
            dead_letters=letters,
            dead_letter_payload=True,
            clock=clock,
            entropy=SeededEntropy(seed),
        )

    trigger = made()
    for _ in range(12):
        writer.write(random.randint(0, 12), clock.now())
        clock.advance(random.choice([0, 0.3, 5]))
        try:
            for _ in range(random.randint(0, 6)):
                trigger.step()
        except Crash:
            trigger = made()
    _finish(trigger, made, clock, consumer)
    faults = [*ahead[:3], *_faults(writer, consumer, letters, mapping)]
    return [*faults, *(_sum_faults(writer, consumer) if windows else ())]


def _finish(trigger: Trigger, made: Any, clock: ManualClock, consumer: Consumer) -> None:
    """Let everything be handled that can be; bad luck ends."""
    clock.advance(1000)
    for patience in range(200):
        consumer.flaky = 0 if patience else consumer.flaky
        try:
            trigger.drain(10_000)
            return
        except Crash:
            trigger = made()
        except DrainUnfinished:
            continue


def _given_up(letters: MemoryDeadLetters) -> set[int]:
    return {
        int(record["dynamodb"]["SequenceNumber"])
        for document in letters.documents
        for record in document["payload"]["Records"]
    }


def _passed_unhandled(
    checkpoint: Mapping[str, Any], writer: Writer, consumer: Consumer, letters: MemoryDeadLetters
) -> Iterator[str]:
    """Compare a stored checkpoint with what is handled: it passes no record that failed, was reported, or was not tried."""
    settled = {number for _, number in consumer.handled} | _given_up(letters)
    positions = msgspec.convert(checkpoint["streams"][ARN], dict[str, Position], str_keys=True)
    for id_, position in positions.items():
        after = -1 if position.after is None else int(position.after)
        for record in writer.stream.shards[id_].records:
            row = stream_record(record, "id")
            beyond = int(position.queues.get(row.partition % position.factor, "-1"))
            passed = position.finished or row.number <= max(after, beyond)
            if passed and row.number not in settled and record["dynamodb"]["Keys"]["id"]["S"] != "key-5":
                yield f"a checkpoint has passed {row.number}, which is neither handled nor written down"


def _faults(
    writer: Writer, consumer: Consumer, letters: MemoryDeadLetters, mapping: EventSourceMapping
) -> Iterator[str]:
    given_up = _given_up(letters)
    repeats = consumer.reports and not mapping.report_batch_item_failures  # then the whole batch comes again
    handled = {number for _, number in consumer.handled}
    for key, numbers in writer.written.items():
        missing = set(numbers) - handled - given_up
        if key == "key-5":
            if set(numbers) & handled:
                yield f"{key} is filtered, and was handled"
        elif missing:
            yield f"{key} lost {sorted(missing)}"
    if mapping.maximum_retry_attempts == -1 and given_up:
        yield f"{sorted(given_up)} were given up with retries left"
    first: dict[str, list[int]] = {}
    seen: dict[int, int] = {}
    for (key, number), life in zip(consumer.handled, consumer.lives, strict=True):
        if number not in seen:
            first.setdefault(key, []).append(number)
        elif seen[number] == life and not repeats:
            yield f"{number} of {key} was handled twice without a restart"
        seen[number] = life
    for key, order in first.items():
        if order != sorted(order):
            yield f"{key} came out of order: {order}"


def _sum_faults(writer: Writer, consumer: Consumer) -> Iterator[str]:
    """States are kept with positions, so what windows counted is exact, crashes or not."""
    wanted = sum(len(numbers) for key, numbers in writer.written.items() if key != "key-5")
    if sum(consumer.sums.values()) != wanted:
        yield f"windows counted {sum(consumer.sums.values())} of {wanted}"


@contextmanager
def checkpoint_before_the_handler() -> Iterator[None]:
    """Plant a fault: a batch counts as done when it is handed over, and not when it is handled."""
    honest = Trigger._invoke

    def early(self: Trigger, consumer: ShardConsumer, task: Any) -> Any:
        due_tasks = consumer.due_tasks(self._clock.now(), flush=True)
        queue = next(queue for queue, due in due_tasks if due == task)
        consumer.mark_discarded(queue, task.segment.records)
        self._stream.save_position(consumer)
        return honest(self, consumer, task)

    with patch.object(Trigger, "_invoke", early):
        yield


@contextmanager
def children_before_their_parents() -> Iterator[None]:
    """Plant a fault: every shard is read at once."""

    def all_of_them(shards: tuple[Shard, ...], finished: set[str]) -> tuple[Shard, ...]:
        return tuple(shard for shard in reversed(shards) if shard.id not in finished)

    with patch("tavola.client.streams.readable_shards", all_of_them):
        yield


@contextmanager
def reports_are_ignored() -> Iterator[None]:
    """Plant a fault: a mapping that does not read reports takes them for success, as Lambda does."""

    def read(response: object, sequences: Sequence[str], **settings: bool) -> Outcome:
        outcome = read_response(response, sequences, **settings)
        return Succeeded() if isinstance(outcome, Failed) and outcome.unread else outcome

    with patch("tavola.triggers.functions.read_response", read):
        yield


@contextmanager
def failures_are_swallowed() -> Iterator[None]:
    """Plant a fault: the handler skips what it cannot handle and says nothing of it."""
    honest = Consumer.__call__

    def swallow(self: Consumer, event: dict[str, Any], context: object) -> Any:
        reported = self.reports
        self.reports = True
        try:
            return {**honest(self, event, context), "batchItemFailures": []}
        finally:
            self.reports = reported

    with patch.object(Consumer, "__call__", swallow):
        yield


@contextmanager
def success_at_any_price() -> Iterator[None]:
    """Plant a fault: what the handler raises is taken for success."""
    from tavola.triggers.outcomes import BatchDecision

    with patch(
        "tavola.triggers.partition_queues.decide",
        lambda segment, outcome, settings: BatchDecision(done=segment.records),
    ):
        yield

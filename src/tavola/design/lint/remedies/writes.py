"""Fixes that change a write pattern or a stream consumer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tavola.design.findings import Finding
from tavola.design.lint.index_writes import omits_index_key, templated_attributes
from tavola.design.lint.remedies.proposal import (
    Fixer,
    Proposal,
    consumer_at,
    put_consumer,
    put_write,
    write_at,
)
from tavola.model.document import Design

_RETRIES = 3


def _add_condition(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = write_at(design, finding)
    if found is not None:
        table, entity, write = found
        yield Proposal(
            put_write(design, table, entity, write, replace(write, conditional=True, creates=False)),
            "it holds only if the item is there (attribute_exists of its key); the caller is told where it is not",
        )


def _leave_transaction(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = write_at(design, finding)
    if found is not None:
        table, entity, write = found
        yield Proposal(
            put_write(design, table, entity, write, replace(write, transactional=False, together="")),
            f"{entity.name} is written by itself after the transaction, or from the stream: it may be a moment behind",
        )


def _write_index_keys(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the write with all index keys that depend on its fields, or that other puts write."""
    found = write_at(design, finding)
    if found is None:
        return
    table, entity, write = found
    changed = {*write.changes, *write.adds}
    missing: list[str] = []
    for key in entity.keys:
        if write.kind == "update":
            missing += [
                source.attribute
                for source in key.sources
                if source.template is not None and changed & set(source.fields)
            ]
        elif omits_index_key(table, entity, key, write):
            missing += sorted(templated_attributes(key))
    added = tuple(name for name in dict.fromkeys(missing) if name not in write.rewrites)
    if added:
        yield Proposal(
            put_write(design, table, entity, write, replace(write, rewrites=(*write.rewrites, *added))),
            f"it sets {' and '.join(added)} in the same request, which the code that writes it is to do",
        )


def _count_once(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = consumer_at(design, finding)
    if found is not None:
        yield Proposal(
            put_consumer(design, *found, idempotent=True),
            "a record that comes twice counts once: true once the handler writes a mark of each record in the same transaction "
            "(tavola.patterns.Projector does)",
        )


def _exclude_own_writes(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = consumer_at(design, finding)
    if found is None:
        return
    table, consumer = found
    tag = table.settings.tag
    counted = [entity.tag for entity in table.entities if entity.name not in consumer.writes]
    if tag is None or not counted:
        return
    filters = tuple({"dynamodb": {image: {tag: {"S": list(counted)}}}} for image in ("NewImage", "OldImage"))
    yield Proposal(
        put_consumer(design, table, consumer, filters=filters),
        "records of what it writes do not come to it; leave out of the list what it does not count from",
    )


def _receive_all_records(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = consumer_at(design, finding)
    if found is not None:
        yield Proposal(
            put_consumer(design, *found, events=("INSERT", "MODIFY", "REMOVE")),
            "it acts on new, changed and deleted items, which its handler is to do from the old and the new image",
        )
        yield Proposal(
            put_consumer(design, *found, events=("INSERT", "MODIFY", "REMOVE"), filters=()),
            "it gets every record; its handler leaves alone what it does not count",
        )


def _add_failure_path(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = consumer_at(design, finding)
    if found is not None:
        table, consumer = found
        retries = consumer.retries if consumer.retries >= 0 else _RETRIES
        yield Proposal(
            put_consumer(
                design,
                table,
                consumer,
                retries=retries,
                failures=consumer.failures or "sqs",
                bisect=consumer.bisect or not consumer.report_failures,
            ),
            f"after {retries} retries a failing batch is halved until the bad record is alone, and that goes to a queue",
        )


FIXERS: dict[str, Fixer] = {
    "consumer-counts-twice": _count_once,
    "consumer-feeds-itself": _exclude_own_writes,
    "consumer-misses-records": _receive_all_records,
    "consumer-without-failure-path": _add_failure_path,
    "forgotten-index-key": _write_index_keys,
    "ghost-item": _add_condition,
    "hot-transaction": _leave_transaction,
    "stale-index-key": _write_index_keys,
}

"""One change of an item as the page shows it, and the filter for a reader's changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.client.stream_changes import AnyChange, RawChange
from tavola.protocol.instants import parse_instant
from tavola.studio.changes.actors import Actors
from tavola.studio.differences import ItemDifference, compare_items
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import KeyReading, Recogniser, value_text
from tavola.studio.types import Item

Event = Literal["INSERT", "MODIFY", "REMOVE"]

_EVENTS: dict[str, Event] = {"inserted": "INSERT", "modified": "MODIFY", "removed": "REMOVE"}


@dataclass(frozen=True, slots=True)
class StreamChange:
    """One change of an item, with what it was and what it is as far as the stream has it."""

    event: Event
    entity: str | None
    keys: Item
    parts: tuple[KeyReading, ...]
    old: Item | None
    new: Item | None
    differences: tuple[ItemDifference, ...]
    total: int  # of the differences; not all may be told
    sequence: str
    shard: str
    at: float  # epoch seconds
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes a reader wants; what is empty asks for nothing."""

    events: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()
    prefix: str = ""  # that a key attribute begins with
    after: int = -1  # the sequence number past which
    since_s: float = 0.0


def parse_filter(events: str, entities: str, prefix: str, after: str, since: str) -> ChangeFilter:
    """Return what is wanted by the parameters of a question; lists are separated by commas."""
    named = frozenset(filter(None, (each.strip().upper() for each in events.split(","))))
    strangers = named - set(_EVENTS.values())
    if strangers:
        raise RequestRefused(
            "event-unknown",
            "There is no such event",
            f"{', '.join(sorted(strangers))} is none of INSERT, MODIFY and REMOVE.",
            "Name some of these three, or none for all.",
        )
    if after and not after.isdecimal():
        raise RequestRefused(
            "sequence-malformed",
            "That is no sequence number",
            f"{after!r} is not a number of a change in the stream.",
            "Copy one from a change that was shown.",
        )
    return ChangeFilter(
        named,
        frozenset(filter(None, (each.strip() for each in entities.split(",")))),
        prefix,
        int(after) if after else -1,
        parse_instant(since) / 1_000_000 if since else 0.0,
    )


class ChangeRenderer:
    """Makes changes of one table's records, of those that are wanted."""

    def __init__(self, recogniser: Recogniser, actors: Actors, wanted: ChangeFilter) -> None:
        self._recogniser = recogniser
        self._actors = actors
        self._wanted = wanted

    def render(self, change: AnyChange) -> StreamChange | None:
        """Return a change as it is shown; None: it is not wanted."""
        assert isinstance(change, RawChange), (
            "a table that is followed by its name has changes of items alone"
        )
        wanted, event = self._wanted, _EVENTS[change.kind]
        if wanted.events and event not in wanted.events:
            return None
        if int(change.sequence) <= wanted.after or change.at.timestamp() < wanted.since_s:
            return None
        if wanted.prefix and not any(
            value_text(value).startswith(wanted.prefix) for value in change.keys.values()
        ):
            return None
        image = {**change.keys, **(change.new or change.old or {})}
        entity = self._recogniser.recognise(image).entity
        if wanted.entities and (entity or "") not in wanted.entities:
            return None
        complete = event != "MODIFY" or (change.old is not None and change.new is not None)
        compared = compare_items(change.old, change.new) if complete else compare_items(None, None)
        return StreamChange(
            event=event,
            entity=entity,
            keys=change.keys,
            parts=self._recogniser.parse_keys(image),
            old=change.old,
            new=change.new,
            differences=compared.differences if event == "MODIFY" else (),
            total=compared.total,
            sequence=change.sequence,
            shard=change.origin.shard or "",
            at=change.at.timestamp(),
            actor=self._actors.actor(entity, change.old, change.new, expired=change.expired),
        )

"""What a Workbench model cannot hold of a design, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any

from tavola.iac.formats.entity_builder import FIELD_TYPES
from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.sample_keys import guess_delimiter
from tavola.iac.formats.value_reader import python_label
from tavola.iac.formats.workbench_entities import is_constant
from tavola.model.document import Design, EntityDesign, FieldDesign, KeyDesign, TableDesign

_SETTINGS = {
    "ttl": "TTL",
    "stream": "the stream",
    "recovery": "point-in-time recovery",
    "encryption": "the KMS key",
    "deletion_protection": "deletion protection",
    "tags": "tags",
    "replicas": "replicas",
}
_ENTITY = {
    "description": "its description",
    "immutable": "that its items are never written again",
    "items": "how many there are",
    "patterns": "access patterns",
    "writes": "writes",
}
_KNOWN_OF_FIELDS = ("name", "attribute", "type", "tags", "required", "nullable", "key_kind")


def note_losses(
    design: Design, sampled: Collection[str], report: ImportReport, *, guesses: bool = True
) -> None:
    """Tell what of a design a model has no place for; `sampled` are entities whose items are in it, and show more.

    Without `guesses` the model has the aliases that keys were guessed from, which are guessed from again.
    """
    for table in design.tables:
        _note_table(table, report)
        for entity in table.entities:
            _note_entity(table, entity, entity.name in sampled, report, guesses=guesses)
    for what, several in (
        ("needs", design.needs),
        ("policies", design.policies),
        ("ignored findings", design.ignores),
        ("views", design.views),
    ):
        if several:
            report.add("", f"a model has no place for {what}; {len(several)} left out")


def _note_table(table: TableDesign, report: ImportReport) -> None:
    settings = table.settings
    lost = [words for name, words in _SETTINGS.items() if getattr(settings, name)]
    if settings.table_class != "STANDARD":
        lost.append("the table class")
    if settings.recovery_days != 35:
        lost.append("how many days of recovery")
    if settings.tag is not None:
        lost.append("the attribute that tells entities apart")
    for what, several in (("stream consumers", table.consumers), ("collections", table.collections)):
        if several:
            lost.append(what)
    if table.description:
        lost.append("its description")
    if table.label != python_label(table.name):
        lost.append(f"the name {table.label}")
    if not table.foreign:
        lost.append("how Tavola writes and keeps its keys")
    aliases = [
        source.template.source if source.template is not None else source.field or ""
        for entity in table.entities
        if entity.key is not None
        for source in entity.key.sources
    ]
    if guess_delimiter(aliases) != settings.delimiter:
        lost.append(f"the delimiter {settings.delimiter}")
    if lost:
        report.add(table.name, f"a model has no place for {', '.join(lost)}; left out")
    for index in table.indexes:
        if index.local:
            report.add(index.name, "a model has no local indexes; it is left out")
        elif index.label != python_label(index.name, "index"):
            report.add(index.name, f"a model has no place for the name {index.label}; it is left out")


def _note_entity(
    table: TableDesign, entity: EntityDesign, sampled: bool, report: ImportReport, *, guesses: bool
) -> None:
    lost = [words for name, words in _ENTITY.items() if getattr(entity, name)]
    if entity.version != 1:
        lost.append("its schema's version")
    if entity.stale != "read":
        lost.append("what updates do that cannot know its keys")
    if entity.primary is not None and (entity.primary.access is not None or entity.primary.name != "Key"):
        lost.append("how often its key is asked for")
    ranges = () if entity.key is None else entity.key.range
    lost += [
        f"that {source.field} is a field"
        for source in ranges
        if source.field not in (None, source.attribute) and is_constant(source.field or "")
    ]
    if entity.name != python_label(entity.tag):
        lost.append("its tag")
    for key in (entity.key, *entity.keys):
        if key is not None:
            lost += _key_losses(key)
            lost += (
                ["that its key is a guess"] if guesses and any(each.guessed for each in key.sources) else []
            )
    shown = [each for key in entity.keys for each in _sample_only(table, key)]
    absent = [each.name for each in entity.fields if each.nullable or not each.required]
    if absent:
        shown.append(f"that {', '.join(absent)} may be absent")
    if sampled and shown:
        report.add(entity.name, f"its sample items alone show {', '.join(shown)}")
    elif shown:
        lost += shown
    typed = sorted({each.type for each in entity.fields if _has_own_type(each)})
    if typed:
        lost.append(f"the types {', '.join(typed)}")
    more = [each.name for each in entity.fields if _has_more_settings(each)]
    if more:
        lost.append(f"what else is said of {', '.join(more)}")
    if lost:
        report.add(entity.name, f"a model has no place for {', '.join(dict.fromkeys(lost))}; left out")


def _key_losses(key: KeyDesign) -> Iterable[str]:
    if key.shards is not None:
        yield "shards"
    if key.members:
        yield f"which values put it into {key.index}"


def _sample_only(table: TableDesign, key: KeyDesign) -> Iterable[str]:
    """Give what only the items of a model can show of a key."""
    if key.sparse:
        yield f"that it may be absent from {key.index}"
    for source in key.sources:
        if source.template is not None and source.attribute not in table.settings.key_names:
            yield f"the template of {source.attribute}, {source.template.source}"


def _has_own_type(field: FieldDesign) -> bool:
    return len(field.tags) != 1 or field.type != FIELD_TYPES.get(field.tags[0])


def _has_more_settings(field: FieldDesign) -> bool:
    meant: Any = FieldDesign("", "", "", ())
    return (field.name != field.attribute and not field.attribute.isidentifier()) or any(
        getattr(field, each.name) != getattr(meant, each.name)
        for each in fields(FieldDesign)
        if each.name not in _KNOWN_OF_FIELDS
    )

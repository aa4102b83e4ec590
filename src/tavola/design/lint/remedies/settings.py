"""Fixes that change a setting of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tavola.design.findings import Finding
from tavola.design.lint.naming import is_expiry
from tavola.design.lint.remedies.fields import epoch_seconds
from tavola.design.lint.remedies.proposal import Fixer, Proposal, field_at, put_field, put_settings, table_at
from tavola.model.document import Design, FieldDesign


def _protect_from_deletion(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is not None:
        yield Proposal(
            put_settings(design, table, deletion_protection=True),
            f"{table.label} is protected: DeleteTable is refused until somebody switches it off",
        )


def _enable_recovery(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is not None:
        days = table.settings.recovery_days
        yield Proposal(
            put_settings(design, table, recovery=True),
            f"any second of the last {days} days of {table.label} can be restored; it is paid by the size of the table",
        )


def _add_encryption_key(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is not None:
        alias = f"alias/{table.name}"
        yield Proposal(
            put_settings(design, table, encryption=alias),
            f"{table.label} is encrypted with {alias}, a key that is to be made before it, or by infrastructure (--kms-key new)",
        )


def _switch_to_on_demand(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is not None:
        yield Proposal(
            put_settings(design, table, read_units=None, write_units=None),
            f"{table.label} is paid on demand; with scaling=Scaling(…) it would stay provisioned and follow the traffic",
        )


def _stream_both_images(design: Design, finding: Finding) -> Iterator[Proposal]:
    table = table_at(design, finding)
    if table is not None:
        yield Proposal(
            put_settings(design, table, stream="NEW_AND_OLD_IMAGES"),
            "the stream carries an item as it was and as it is; on a table that stands it ends, and one with another ARN begins",
        )


def _match_ttl(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield both ways to match TTL and field: the table names the field's attribute, or the field takes the table's."""
    table, found = table_at(design, finding), field_at(design, finding)
    if table is None or table.settings.ttl is None:
        return
    if found is not None:
        _, entity, field = found
        yield Proposal(
            put_field(design, table, entity, _with_attribute(field, table.settings.ttl)),
            f"{entity.name}.{field.name} is stored as {table.settings.ttl}, and the item is deleted then; items that stand are to be "
            "written anew",
        )
        return
    for entity in table.entities:
        for field in entity.fields:
            if is_expiry(field):
                yield Proposal(
                    put_settings(design, table, ttl=field.attribute),
                    f"{table.label} expires items by {field.attribute}, which {entity.name} has",
                )
                yield Proposal(
                    put_field(design, table, entity, _with_attribute(field, table.settings.ttl)),
                    f"{entity.name}.{field.name} is stored as {table.settings.ttl}, by which {table.label} expires items",
                )
    yield Proposal(
        put_settings(design, table, ttl=None),
        f"{table.label} has no time to live, as no item of it has a time to end at",
    )


def _with_attribute(field: FieldDesign, attribute: str) -> FieldDesign:
    kept = field.type == "epoch-seconds" or field.tags == ("N",)
    return replace(field, attribute=attribute) if kept else epoch_seconds(field, attribute)


FIXERS: dict[str, Fixer] = {
    "deletion-unprotected": _protect_from_deletion,
    "encryption-missing": _add_encryption_key,
    "provisioned-without-scaling": _switch_to_on_demand,
    "recovery-missing": _enable_recovery,
    "stream-view-lacks": _stream_both_images,
    "ttl-unused": _match_ttl,
}

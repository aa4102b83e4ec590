"""Differences of a table that only infrastructure applies: replicas, auto scaling and stream consumers.

No request of `deploy` sets these, but a plan that did not mention them would read as "nothing changes". Two designs show all of
them; of a deployed table only the replicas are visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tavola.model.document import TableDesign
from tavola.protocol.arns import parse_resource_arn

_GLOBAL = (
    "CloudFormation has another type of resource for a table with replicas, and does not turn one into the other: the first replica is a "
    "replacement there, unless the table is imported into the stack anew"
)
_BY = "infrastructure does it, which tavola iac writes"


@dataclass(frozen=True, slots=True)
class InfrastructureChange:
    """A difference that infrastructure applies."""

    kind: str
    what: str
    removes: bool = False
    warnings: tuple[str, ...] = ()


def compare_infrastructure(was: TableDesign, now: TableDesign) -> list[InfrastructureChange]:
    """Return how a design differs from a former one in what infrastructure applies."""
    changes = list(_compare_regions(set(was.settings.replicas), set(now.settings.replicas)))
    before, after = was.settings.scaling, now.settings.scaling
    if before != after:
        description = (
            f"changes ({_list_differences(before, after)})"
            if before and after
            else "begins"
            if after
            else "ends"
        )
        warnings = () if before and after else tuple(_warn_of_index_moves(now, begins=after is not None))
        what = f"its auto scaling {description}: {_not_applied()}"
        changes.append(InfrastructureChange("scaling", what, after is None, warnings))
    former = {consumer.name: consumer for consumer in was.consumers}
    for consumer in now.consumers:
        if consumer.name not in former:
            changes.append(
                InfrastructureChange("consumer", f"{consumer.name} reads its stream: {_not_applied()}")
            )
        elif former[consumer.name] != consumer:
            description = _list_differences(former[consumer.name], consumer)
            what = f"{consumer.name}, which reads its stream, is set up otherwise ({description}): {_not_applied()}"
            changes.append(InfrastructureChange("consumer", what))
    names = {consumer.name for consumer in now.consumers}
    for name in former:
        if name not in names:
            what = f"{name} no longer reads its stream: {_not_applied()}"
            changes.append(InfrastructureChange("consumer", what, removes=True))
    if was.settings.encryption != now.settings.encryption and now.settings.encryption is not None:
        what = f"it is encrypted by {now.settings.encryption}, and was by {was.settings.encryption}: {_not_applied()}"
        changes.append(InfrastructureChange("encryption", what))
    return changes


def _list_differences(was: object, now: object) -> str:
    """Return the members that differ, with both values."""
    pairs = ((name, getattr(was, name), getattr(now, name)) for name in type(now).__dataclass_fields__)  # type: ignore[attr-defined]
    return ", ".join(
        f"{name} {_spell_value(one)} → {_spell_value(other)}" for name, one, other in pairs if one != other
    )


def _spell_value(value: object) -> str:
    text = json.dumps(value, default=list, ensure_ascii=False) if isinstance(value, tuple) else str(value)
    return text or "none"


def _warn_of_index_moves(table: TableDesign, *, begins: bool) -> Iterator[str]:
    """Yield what happens to indexes in Terraform, where those of a scaled table are separate resources."""
    names = [index.name for index in table.indexes if not index.local]
    if not names:
        return
    names_text = ", ".join(names)
    if begins:
        steps = f"import each ({names_text}) with terraform import before the apply"
    else:
        steps = f"take each ({names_text}) out of the state with terraform state rm before the apply"
    become = "resources of their own" if begins else "blocks of the table again"
    yield f"Under Terraform its indexes become {become}: {steps}, or they are dropped and made anew; tavola iac terraform prints the commands"


def compare_replicas(described: Mapping[str, Any] | None, now: TableDesign) -> list[InfrastructureChange]:
    """Return the replicas that differ in a deployed table; None: the table does not exist yet."""
    deployed: set[str] = set()
    declared = set(now.settings.replicas)
    if described is not None:
        deployed = {each["RegionName"] for each in described.get("Replicas", ())}
        arn = parse_resource_arn(described.get("TableArn", ""))
        home = {arn.scope.region} if arn is not None else set()
        deployed, declared = deployed - home, declared - home
    return list(_compare_regions(deployed, declared))


def list_unseen_settings(now: TableDesign) -> Iterator[str]:
    """Yield the settings of a design that cannot be read from a deployed table."""
    if now.settings.scaling is not None:
        yield f"Its auto scaling is neither looked at nor applied here: {_BY}"
    if now.consumers:
        names = ", ".join(consumer.name for consumer in now.consumers)
        yield f"What reads its stream ({names}) is neither looked at nor applied here: {_BY}"


def _not_applied() -> str:
    return f"not applied here, {_BY}"


def _compare_regions(deployed: set[str], declared: set[str]) -> Iterator[InfrastructureChange]:
    warnings = (_GLOBAL,) if bool(deployed) != bool(declared) else ()
    for region in sorted(declared - deployed):
        yield InfrastructureChange(
            "replica", f"it has a replica in {region}: {_not_applied()}", False, warnings
        )
    for region in sorted(deployed - declared):
        yield InfrastructureChange(
            "replica", f"its replica in {region} goes: {_not_applied()}", True, warnings
        )

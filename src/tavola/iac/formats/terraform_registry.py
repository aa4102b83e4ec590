"""The registry's module for tables, `terraform-aws-modules/dynamodb-table/aws`, as the resources that it makes."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from tavola.iac.formats.import_result import ImportReport
from tavola.iac.formats.terraform_resources import TABLE, TerraformResource
from tavola.iac.formats.tracked_mapping import report_unread, track
from tavola.iac.formats.unresolved import as_text
from tavola.iac.formats.value_reader import ValueReader, parse_switch

_SOURCE = re.compile(
    r"(?:(?:app|registry)\.terraform\.io/)?terraform-aws-modules/dynamodb-table/aws"
    r"|(?:git::)?(?:https://|ssh://git@|git@)?github\.com[/:]terraform-aws-modules/terraform-aws-dynamodb-table(?:\.git)?(?:\?.*)?"
)
_SAME = (
    *(
        "name",
        "hash_key",
        "range_key",
        "read_capacity",
        "write_capacity",
        "stream_enabled",
        "stream_view_type",
    ),
    *("table_class", "deletion_protection_enabled", "tags"),
)
_SCALING = {"Read": "autoscaling_read", "Write": "autoscaling_write"}
_BESIDE = ("source", "version", "providers", "depends_on", "count", "for_each", "timeouts", "region")


def is_registry_module(source: str) -> bool:
    """Tell whether a module's source is the registry's module for tables."""
    return _SOURCE.fullmatch(source) is not None


def expand_registry_module(
    values: Mapping[str, Any], label: str, place: str, report: ImportReport
) -> Iterator[TerraformResource]:
    """Give the table that a call of the module makes, and the targets of its auto scaling."""
    if parse_switch(values.get("create_table", True)) is False:
        report.add(place, "its create_table is false, so it makes no table; left out")
        return
    name = values.get("name")
    if name is None:
        report.add(place, "it says no name; its address is taken")
        name = place
    made = {
        **{argument: values.get(argument) for argument in _SAME},
        "name": name,
        "billing_mode": values.get("billing_mode") or "PAY_PER_REQUEST",
        "attribute": values.get("attributes"),
        "global_secondary_index": values.get("global_secondary_indexes"),
        "local_secondary_index": values.get("local_secondary_indexes"),
        "replica": values.get("replica_regions"),
        "ttl": [{"attribute_name": values.get("ttl_attribute_name"), "enabled": values.get("ttl_enabled")}],
        "point_in_time_recovery": [
            {
                "enabled": values.get("point_in_time_recovery_enabled"),
                "recovery_period_in_days": values.get("point_in_time_recovery_period_in_days"),
            }
        ],
        "server_side_encryption": [
            {
                "enabled": values.get("server_side_encryption_enabled"),
                "kms_key_arn": values.get("server_side_encryption_kms_key_arn"),
            }
        ],
    }
    yield TerraformResource(TABLE, label, place, track(made))
    if parse_switch(values.get("autoscaling_enabled")):
        yield from _scaling(values, as_text(name) or "", label, place, ValueReader(report))
    report_unread(values, place, report, ignore=_BESIDE)


def _scaling(
    values: Mapping[str, Any], name: str, label: str, place: str, read: ValueReader
) -> Iterator[TerraformResource]:
    meant = read.object(values.get("autoscaling_defaults"), f"{place}.autoscaling_defaults")
    for word, argument in _SCALING.items():
        told = read.object(values.get(argument), f"{place}.{argument}")
        if not told:
            continue
        own = ChainMap(dict(told), dict(meant))
        whose = {
            "resource_id": f"table/{name}",
            "scalable_dimension": f"dynamodb:table:{word}CapacityUnits",
        }
        fixed = values.get(f"{word.lower()}_capacity")
        bounds = {"min_capacity": own.get("min_capacity", fixed), "max_capacity": own.get("max_capacity")}
        aim = [{"target_value": own.get("target_value", 70)}]
        where = f"{place}.{argument}"
        yield TerraformResource("aws_appautoscaling_target", label, where, track({**whose, **bounds}))
        aimed = {**whose, "target_tracking_scaling_policy_configuration": aim}
        yield TerraformResource("aws_appautoscaling_policy", label, where, track(aimed))

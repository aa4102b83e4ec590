"""The tables of a module: keys, indexes, settings, encryption key and auto scaling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tavola.iac.identifiers import shorten
from tavola.iac.plan import (
    AWS_KEY,
    KEY_ACTIONS,
    OWN_KEY,
    CapacityKind,
    IndexPlan,
    InfrastructurePlan,
    TablePlan,
)
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, prefix_name
from tavola.iac.terraform.scope import (
    ACCOUNT,
    NAME_MAX,
    PARTITION,
    REGION,
    SUFFIX,
    ModuleNames,
    block,
    condition,
    data,
    document_json,
    principals,
    resource,
    statement,
    tag_entries,
)

_SCALED: tuple[tuple[str, CapacityKind], ...] = (("Read", "read"), ("Write", "write"))
_UNKNOWN = {  # settings that the source does not state, as the provider calls them: changes of them are ignored
    "ttl": "ttl",
    "recovery": "point_in_time_recovery",
    "deletion_protection": "deletion_protection_enabled",
    "encryption": "server_side_encryption",
    "tags": "tags",
    "table_class": "table_class",
}


def table_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield the encryption key, then each table with its scaling."""
    if plan.makes_key:
        yield from _key_blocks(plan, scope)
    for key in dict.fromkeys(table.key for table in plan.tables):
        if key is not None and key not in (OWN_KEY, AWS_KEY) and not key.startswith("arn:"):
            yield data("aws_kms_key", scope.id("key", key), ("key_id", key))
    for table in plan.tables:
        yield resource("aws_dynamodb_table", scope.id("table", table.name), *_table(table, scope))
        if table.scaling is not None:
            yield from (_separate_index(table, index, scope) for index in table.global_indexes)
            yield from _scaling(table, None, scope)
            for index in table.global_indexes:
                yield from _scaling(table, index, scope)


def _table(table: TablePlan, scope: ModuleNames) -> Iterator[Entry]:
    yield "name", prefix_name(table.name)
    yield "billing_mode", "PAY_PER_REQUEST" if table.on_demand else "PROVISIONED"
    if table.read_units is not None and table.write_units is not None:
        yield "read_capacity", table.read_units
        yield "write_capacity", table.write_units
    yield "hash_key", table.hash
    if table.range is not None:
        yield "range_key", table.range
    yield "table_class", table.table_class
    if "deletion_protection" not in table.unknown:
        yield "deletion_protection_enabled", table.deletion_protection
    if table.stream is not None:
        yield "stream_enabled", True
        yield "stream_view_type", table.stream
    inline = table.scaling is None
    for name in _attributes(table, inline):
        yield block("attribute", ("name", name), ("type", table.attributes[name]))
    if inline:
        for index in table.global_indexes:
            yield block("global_secondary_index", *_global_index(table, index))
    for index in table.local_indexes:
        entries = (("name", index.name), ("range_key", index.range[0]), *_projection(index))
        yield block("local_secondary_index", *entries)
    if table.ttl is not None:
        yield block("ttl", ("attribute_name", table.ttl), ("enabled", True))
    if table.recovery_days is not None:
        yield block(
            "point_in_time_recovery", ("enabled", True), ("recovery_period_in_days", table.recovery_days)
        )
    if table.key is not None:
        kms_arguments = () if table.key == AWS_KEY else (("kms_key_arn", scope.key(table.key)),)
        yield block("server_side_encryption", ("enabled", True), *kms_arguments)
    yield from (block("replica", *_replica(table, region)) for region in table.replicas)
    yield from tag_entries(table.tags)
    yield block("lifecycle", *_lifecycle(table))


def _lifecycle(table: TablePlan) -> Iterator[Entry]:
    yield "prevent_destroy", True
    scaled = ["read_capacity", "write_capacity"] if table.scaling or "scaling" in table.unknown else []
    ignored = [*scaled, *(_UNKNOWN[word] for word in table.unknown if word in _UNKNOWN)]
    if ignored:
        yield "ignore_changes", [HclExpression(word) for word in ignored]


def _attributes(table: TablePlan, inline: bool) -> Iterator[str]:
    """Yield the key attributes that belong in the table's block; others there would show up as changes forever."""
    local = {name for index in table.local_indexes for name in (*index.hash, *index.range)}
    for name in table.attributes:
        if inline or name in local or name in (table.hash, table.range):
            yield name


def _global_index(table: TablePlan, index: IndexPlan) -> Iterator[Entry]:
    yield "name", index.name
    yield from _projection(index)
    if table.read_units is not None and table.write_units is not None:
        yield "read_capacity", table.read_units
        yield "write_capacity", table.write_units
    for name, kind in table.schema(index):
        yield block("key_schema", ("attribute_name", name), ("key_type", kind))


def _projection(index: IndexPlan) -> Iterator[Entry]:
    yield "projection_type", index.projection
    if index.projection == "INCLUDE":
        yield "non_key_attributes", list(index.included)


def _replica(table: TablePlan, region: str) -> Iterator[Entry]:
    yield "region_name", region
    if table.key is not None and table.key != AWS_KEY:
        yield "kms_key_arn", HclExpression(f'var.replica_kms_key_arns["{region}"]')
    yield "point_in_time_recovery", table.recovery_days is not None
    yield "deletion_protection_enabled", table.deletion_protection
    yield "propagate_tags", True


def _separate_index(table: TablePlan, index: IndexPlan, scope: ModuleNames) -> OutputBlock:
    """Return an auto scaled index as a separate resource, so that Terraform can ignore its changing capacity."""
    assert table.read_units is not None, "a scaled table has initial units"
    assert table.write_units is not None, "a scaled table has initial units"
    index_block = resource(
        "aws_dynamodb_global_secondary_index",
        scope.index(table.name, index),
        ("table_name", scope.table(table.name, "name")),
        ("index_name", index.name),
        *(
            block(
                "key_schema",
                ("attribute_name", name),
                ("attribute_type", table.attributes[name]),
                ("key_type", kind),
            )
            for name, kind in table.schema(index)
        ),
        block("projection", *_projection(index)),
        block(
            "provisioned_throughput",
            ("read_capacity_units", table.read_units),
            ("write_capacity_units", table.write_units),
        ),
        block("lifecycle", ("ignore_changes", [HclExpression("provisioned_throughput")])),
    )
    return replace(
        index_block,
        remarks=(
            "If the table exists already, import the index before the first apply, or it is dropped and created again (put var.prefix before the name):",
            f"  {import_index(table, index, scope)}",
        ),
    )


def import_index(table: TablePlan, index: IndexPlan, scope: ModuleNames) -> str:
    """Return the command that imports an existing index as a separate resource."""
    address = f"aws_dynamodb_global_secondary_index.{scope.index(table.name, index)}"
    return f"terraform import {address} '{table.name},{index.name}'"


def _scaling(table: TablePlan, index: IndexPlan | None, scope: ModuleNames) -> Iterator[OutputBlock]:
    scaling = table.scaling
    assert scaling is not None, "only a scaled table has targets"
    resource_id = f"table/${{{scope.table(table.name, 'name').text}}}"
    kind = "table"
    words: tuple[str, ...] = (table.name,)
    if index is not None:
        index_name = f"aws_dynamodb_global_secondary_index.{scope.index(table.name, index)}.index_name"
        resource_id, kind, words = f"{resource_id}/index/${{{index_name}}}", "index", (table.name, index.name)
    for title, word in _SCALED:
        least, most, _ = table.capacity_range(word)
        name = scope.id("scaling", *words, word)
        target = f"aws_appautoscaling_target.{name}"
        yield resource(
            "aws_appautoscaling_target",
            name,
            ("service_namespace", "dynamodb"),
            ("resource_id", HclExpression(f'"{resource_id}"')),
            ("scalable_dimension", f"dynamodb:{kind}:{title}CapacityUnits"),
            ("min_capacity", least),
            ("max_capacity", most),
        )
        yield resource(
            "aws_appautoscaling_policy",
            name,
            ("name", f"{word}-utilization"),
            ("policy_type", "TargetTrackingScaling"),
            *(
                (same, HclExpression(f"{target}.{same}"))
                for same in ("service_namespace", "resource_id", "scalable_dimension")
            ),
            block(
                "target_tracking_scaling_policy_configuration",
                ("target_value", scaling.target),
                block(
                    "predefined_metric_specification",
                    ("predefined_metric_type", f"DynamoDB{title}CapacityUtilization"),
                ),
            ),
        )


def _key_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield a key with yearly rotation, usable only through DynamoDB by principals that may use the tables."""
    document = scope.document("table", "key")
    root = HclExpression(f'"arn:${{{PARTITION.text}}}:iam::${{{ACCOUNT.text}}}:root"')
    through = HclExpression(f'"dynamodb.${{{REGION.text}}}.${{{SUFFIX.text}}}"')
    yield data(
        "aws_iam_policy_document",
        document,
        statement(
            ("sid", "KeyAdministration"),
            ("actions", ["kms:*"]),
            ("resources", ["*"]),
            principals("AWS", root),
        ),
        statement(
            ("sid", "ThroughDynamoDB"),
            ("actions", list(KEY_ACTIONS)),
            ("resources", ["*"]),
            principals("AWS", "*"),
            condition("StringEquals", "kms:CallerAccount", ACCOUNT),
            condition("StringEquals", "kms:ViaService", through),
        ),
    )
    yield resource(
        "aws_kms_key",
        "tables",
        ("description", "Encrypts the tables."),
        ("enable_key_rotation", True),
        ("policy", document_json(document)),
        *tag_entries(plan.tags),
        block("lifecycle", ("prevent_destroy", True)),
    )
    yield resource(
        "aws_kms_alias",
        "tables",
        ("name", HclExpression(f'"alias/${{var.prefix}}{shorten(plan.tables[0].name, NAME_MAX)}-tables"')),
        ("target_key_id", HclExpression("aws_kms_key.tables.key_id")),
    )

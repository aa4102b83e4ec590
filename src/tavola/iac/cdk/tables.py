"""Tables of a stack, and the key that encrypts them."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cdk.python_text import (
    PythonCall,
    PythonCode,
    Value,
    format_string,
    render_assignment,
    render_text,
)
from tavola.iac.cdk.scope import SELF, StackNames, prefix_name
from tavola.iac.plan import AWS_KEY, OWN_KEY, IndexPlan, InfrastructurePlan, TablePlan

_TYPES = {"S": "STRING", "N": "NUMBER", "B": "BINARY"}
_REGION, _ACCOUNT, _PARTITION = (
    PythonCode("self.region"),
    PythonCode("self.account"),
    PythonCode("self.partition"),
)


def table_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Give the lines that make the tables, and before them the key."""
    if plan.makes_key:
        yield render_assignment("self.table_key", _key(), 2)
    for table in plan.tables:
        yield render_assignment(scope.table(table.name), _table(table, scope), 2)


def _table(table: TablePlan, scope: StackNames) -> PythonCall:
    named: dict[str, Value] = {
        "table_name": prefix_name(table.name),
        "partition_key": _attribute(table, table.hash),
    }
    if table.range is not None:
        named["sort_key"] = _attribute(table, table.range)
    named["billing"] = _billing(table)
    if table.global_indexes:
        named["global_secondary_indexes"] = [_global_index(table, index) for index in table.global_indexes]
    if table.local_indexes:
        named["local_secondary_indexes"] = [_local_index(table, index) for index in table.local_indexes]
    if table.ttl is not None:
        named["time_to_live_attribute"] = table.ttl
    if table.stream is not None:
        views = {"NEW_IMAGE": "NEW_IMAGE", "OLD_IMAGE": "OLD_IMAGE", "KEYS_ONLY": "KEYS_ONLY"}
        named["dynamo_stream"] = PythonCode(
            f"dynamodb.StreamViewType.{views.get(table.stream, 'NEW_AND_OLD_IMAGES')}"
        )
    if table.recovery_days is not None:
        named["point_in_time_recovery_specification"] = PythonCall(
            "dynamodb.PointInTimeRecoverySpecification",
            named={"point_in_time_recovery_enabled": True, "recovery_period_in_days": table.recovery_days},
        )
    if table.key is not None:
        named["encryption"] = _encryption(table, scope)
    word = "STANDARD_INFREQUENT_ACCESS" if table.table_class != "STANDARD" else "STANDARD"
    named["table_class"] = PythonCode(f"dynamodb.TableClass.{word}")
    if "deletion_protection" not in table.unknown:
        named["deletion_protection"] = table.deletion_protection
    named["removal_policy"] = PythonCode("cdk.RemovalPolicy.RETAIN")
    if table.replicas:
        named["replicas"] = [
            PythonCall("dynamodb.ReplicaTableProps", named={"region": region}) for region in table.replicas
        ]
    if table.tags:
        named["tags"] = [
            PythonCall("cdk.CfnTag", named={"key": key, "value": value}) for key, value in table.tags.items()
        ]
    return PythonCall("dynamodb.TableV2", (SELF, scope.id(table.name, "table")), named)


def _attribute(table: TablePlan, name: str) -> PythonCall:
    kind = PythonCode(f"dynamodb.AttributeType.{_TYPES[table.attributes[name]]}")
    return PythonCall("dynamodb.Attribute", named={"name": name, "type": kind})


def _billing(table: TablePlan) -> PythonCall:
    if table.on_demand:
        return PythonCall("dynamodb.Billing.on_demand")
    return PythonCall(
        "dynamodb.Billing.provisioned",
        named={"read_capacity": _capacity(table, "read"), "write_capacity": _capacity(table, "write")},
    )


def _capacity(table: TablePlan, word: str) -> PythonCall:
    """Return units of reads or writes; a `TableV2` scales its writes always, between the same units if nothing else is said."""
    units = table.read_units if word == "read" else table.write_units
    scaling = table.scaling
    if scaling is None and word == "read":
        return PythonCall("dynamodb.Capacity.fixed", (units,))
    least, most, target = units, units, 70
    if scaling is not None:
        reads, writes = (scaling.read_min, scaling.read_max), (scaling.write_min, scaling.write_max)
        least, most = reads if word == "read" else writes
        target = scaling.target
    return PythonCall(
        "dynamodb.Capacity.autoscaled",
        named={
            "min_capacity": least,
            "max_capacity": most,
            "seed_capacity": units,
            "target_utilization_percent": target,
        },
    )


def _global_index(table: TablePlan, index: IndexPlan) -> PythonCall:
    named: dict[str, Value] = {"index_name": index.name}
    for word, names in (("partition_key", index.hash), ("sort_key", index.range)):
        if len(names) == 1:
            named[word] = _attribute(table, names[0])
        elif names:
            named[f"{word}s"] = [_attribute(table, name) for name in names]
    return PythonCall("dynamodb.GlobalSecondaryIndexPropsV2", named=named | _projection(index))


def _local_index(table: TablePlan, index: IndexPlan) -> PythonCall:
    named: dict[str, Value] = {"index_name": index.name, "sort_key": _attribute(table, index.range[0])}
    return PythonCall("dynamodb.LocalSecondaryIndexProps", named=named | _projection(index))


def _projection(index: IndexPlan) -> dict[str, Value]:
    told: dict[str, Value] = {"projection_type": PythonCode(f"dynamodb.ProjectionType.{index.projection}")}
    if index.projection == "INCLUDE":
        told["non_key_attributes"] = list(index.included)
    return told


def _encryption(table: TablePlan, scope: StackNames) -> PythonCall:
    key = table.key
    if key == AWS_KEY or key is None:
        return PythonCall("dynamodb.TableEncryptionV2.aws_managed_key")
    found: Value = PythonCode("self.table_key")
    if key != OWN_KEY:
        found = _found_key(key, scope.id(table.name, "key"))
    keys: dict[PythonCode, Value] = {}
    if table.replicas:
        keys = {
            PythonCode(render_text(region)): PythonCode(f"{scope.replica_key(region)}.value_as_string")
            for region in table.replicas
        }
    return PythonCall("dynamodb.TableEncryptionV2.customer_managed_key", (found, *((keys,) if keys else ())))


def _found_key(key: str, id_: str) -> PythonCall:
    if key.startswith("alias/"):
        return PythonCall("kms.Alias.from_alias_name", (SELF, id_, key))
    if key.startswith("arn:"):
        return PythonCall("kms.Key.from_key_arn", (SELF, id_, key))
    arn = format_string("arn:", _PARTITION, ":kms:", _REGION, ":", _ACCOUNT, f":key/{key}")
    return PythonCall("kms.Key.from_key_arn", (SELF, id_, arn))


def _key() -> PythonCall:
    """Return a key that turns every year, and that whoever may use the tables uses through DynamoDB and not otherwise."""
    actions = ["Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "CreateGrant", "DescribeKey"]
    root = PythonCall(
        "iam.PolicyStatement",
        named={
            "sid": "Keepers",
            "principals": [PythonCall("iam.AccountRootPrincipal")],
            "actions": ["kms:*"],
            "resources": ["*"],
        },
    )
    through = PythonCall(
        "iam.PolicyStatement",
        named={
            "sid": "ThroughDynamoDB",
            "principals": [PythonCall("iam.AnyPrincipal")],
            "actions": [f"kms:{action}" for action in actions],
            "resources": ["*"],
            "conditions": {
                "StringEquals": {
                    "kms:CallerAccount": _ACCOUNT,
                    "kms:ViaService": format_string("dynamodb.", _REGION, ".", PythonCode("self.url_suffix")),
                }
            },
        },
    )
    return PythonCall(
        "kms.Key",
        (SELF, "TableKey"),
        {
            "description": "Encrypts the tables.",
            "enable_key_rotation": True,
            "removal_policy": PythonCode("cdk.RemovalPolicy.RETAIN"),
            "policy": PythonCall("iam.PolicyDocument", named={"statements": [root, through]}),
        },
    )

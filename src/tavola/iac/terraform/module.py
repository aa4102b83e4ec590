"""The files of a plan's module: versions, variables, resources and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tavola.iac.files import sign, signature_line
from tavola.iac.plan import AWS_KEY, InfrastructurePlan, portable_tags
from tavola.iac.terraform.access import endpoint_blocks, policy_blocks
from tavola.iac.terraform.alarms import alarm_blocks
from tavola.iac.terraform.consumers import code_variable, consumer_blocks, policies_variable
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, Value, render_blocks
from tavola.iac.terraform.scope import ModuleNames, block, data
from tavola.iac.terraform.tables import import_index, table_blocks

_SEPARATE = "apart:"


def index_steps(plan: InfrastructurePlan, before: frozenset[str] | None) -> Iterator[str]:
    """Yield the steps for each table whose indexes became separate resources or blocks again since `before` (None: unknown)."""
    scope = ModuleNames()
    for table in plan.tables:
        was = before is not None and f"{_SEPARATE}{table.name}" in before
        if table.has_separate_indexes == was:
            continue
        indexes = [(index, scope.index(table.name, index)) for index in table.global_indexes]
        if table.has_separate_indexes:
            commands = "; ".join(import_index(table, index, scope) for index, _ in indexes)
            yield (
                f"{table.name}: it is auto scaled, so its indexes are resources of their own; if the table exists already, run this "
                f"before the first apply, or they are dropped and made anew: {commands}"
            )
        elif indexes:
            commands = "; ".join(
                f"terraform state rm aws_dynamodb_global_secondary_index.{name}" for _, name in indexes
            )
            yield (
                f"{table.name}: it is no longer auto scaled, so its indexes are blocks of the table again; run this before the next "
                f"apply, or they are dropped and made anew: {commands}"
            )


PROVIDER = "6.29"  # the first with keys of several attributes
PROVIDER_INDEXES = "6.44"  # the first with indexes as separate resources, not experimental


def terraform_files(plan: InfrastructurePlan) -> dict[str, str]:
    """Return the files of a plan's module, by name."""
    return {name: _render_signed(plan, blocks) for name, blocks in _parts(plan).items() if blocks}


def render_terraform(plan: InfrastructurePlan) -> str:
    """Render a plan's module as one file."""
    return _render_signed(plan, [each for blocks in _parts(plan).values() for each in blocks])


def _render_signed(plan: InfrastructurePlan, blocks: list[OutputBlock]) -> str:
    line = signature_line("terraform", plan.names, plan.contents)
    return sign(f"# {line[0].upper()}{line[1:]}.\n\n{render_blocks(blocks)}")


def _parts(plan: InfrastructurePlan) -> dict[str, list[OutputBlock]]:
    scope = ModuleNames()
    for table in plan.tables:
        scope.id("table", table.name)
    parts = {
        "versions.tf": [_versions(plan)],
        "variables.tf": list(_variables(plan, scope)),
        "tables.tf": [*_account_data(plan), *table_blocks(plan, scope)],
        "consumers.tf": [
            each
            for consumer in plan.consumers
            for each in consumer_blocks(consumer, scope, portable_tags(plan.table(consumer.table).tags))
        ],
        "policies.tf": list(policy_blocks(plan, scope)),
        "alarms.tf": list(alarm_blocks(plan, scope)),
        "network.tf": list(endpoint_blocks(plan, scope)) if plan.endpoint else [],
        "outputs.tf": list(_outputs(plan, scope)),
    }
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for each in (each for blocks in parts.values() for each in blocks):
        assert (each.kind, each.labels) not in seen, f"two blocks are called {each.kind} {each.labels}"
        seen.add((each.kind, each.labels))
    return parts


def _versions(plan: InfrastructurePlan) -> OutputBlock:
    version = PROVIDER_INDEXES if any(table.has_separate_indexes for table in plan.tables) else PROVIDER
    aws: dict[str, Value] = {"source": "hashicorp/aws", "version": f">= {version}"}
    return block("terraform", ("required_version", ">= 1.5"), block("required_providers", ("aws", aws)))


def _variables(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    description = "What all names begin with, such as dev-, so that one account has the module several times."
    allowed = block(
        "validation",
        ("condition", HclExpression('can(regex("^[A-Za-z0-9_-]{0,20}$", var.prefix))')),
        ("error_message", "A prefix is 20 letters, digits, _ and - at most."),
    )
    prefix = _variable("prefix", description, "string", "")
    yield replace(prefix, body=(*prefix.body, allowed))
    created = [consumer for consumer in plan.consumers if not consumer.existing_function]
    if created:
        yield _variable("code_bucket", "The bucket that holds the code of the functions.", "string")
    for consumer in created:
        description = f"The zip file of {consumer.function} in that bucket."
        yield _variable(code_variable(consumer, scope), description, "string")
        description = f"Policies of what {consumer.function} does besides."
        yield _variable(policies_variable(consumer, scope), description, "list(string)", HclExpression("[]"))
    if any(table.replicas and table.key not in (None, AWS_KEY) for table in plan.tables):
        description = "The ARN of the KMS key that encrypts the replicas, by region."
        yield _variable("replica_kms_key_arns", description, "map(string)")
    if plan.alarms:
        description = "The SNS topics that alarms tell; without one they tell nobody."
        yield _variable("alarm_topic_arns", description, "list(string)", HclExpression("[]"))
    if plan.endpoint:
        yield _variable("vpc_id", "The network from which the tables are used.", "string")
        yield _variable("route_table_ids", "The route tables of the subnets that use them.", "list(string)")


def _variable(name: str, description: str, kind: str, default: Value | None = None) -> OutputBlock:
    body: list[Entry] = [("description", description), ("type", HclExpression(kind))]
    if default is not None:
        body.append(("default", default))
    return OutputBlock("variable", (name,), tuple(body))


def _account_data(plan: InfrastructurePlan) -> Iterator[OutputBlock]:
    """Yield the data sources about the account, if something refers to them."""
    if plan.makes_key:
        yield data("aws_partition", "current")
    if plan.makes_key or plan.endpoint:
        yield data("aws_caller_identity", "current")
        yield data("aws_region", "current")


def _outputs(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    arns: dict[str, Value] = {table.name: scope.table(table.name, "arn") for table in plan.tables}
    yield _output("table_arns", "The tables, by name.", arns)
    streams: dict[str, Value] = {
        table.name: scope.table(table.name, "stream_arn") for table in plan.tables if table.stream is not None
    }
    if streams:
        yield _output("stream_arns", "The streams, by the name of their table.", streams)
    policies: dict[str, Value] = {
        policy.name: HclExpression(f"aws_iam_policy.{scope.id('policy', policy.name)}.arn")
        for policy in plan.policies
    }
    if policies:
        yield _output("policy_arns", "The policies, by role.", policies)
    queues: dict[str, Value] = {
        consumer.function: scope.destination(consumer.function, "sqs", "url")
        for consumer in plan.consumers
        if consumer.created_destination == "sqs"
    }
    if queues:
        yield _output("failure_queue_urls", "The queues of what functions failed at.", queues)
    if plan.makes_key:
        yield _output("key_arn", "The key that encrypts the tables.", HclExpression("aws_kms_key.tables.arn"))


def _output(name: str, description: str, value: Value) -> OutputBlock:
    return OutputBlock("output", (name,), (("description", description), ("value", value)))

"""Access to a module's tables: policies by role, and a VPC endpoint."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.grants import ONLY_OVER_TLS, Grant
from tavola.iac.identifiers import shorten
from tavola.iac.plan import InfrastructurePlan
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, Value, append_text, prefix_name
from tavola.iac.terraform.scope import ACCOUNT, REGION, ModuleNames, block, data, resource, tag_entries

NAME_MAX = 60  # of a table within an IAM name, which has at most 128 characters


def statement(*body: Entry) -> OutputBlock:
    """Return a statement of a policy document."""
    return OutputBlock("statement", (), body)


def grant_statement(grant: Grant, scope: ModuleNames, *principals: OutputBlock) -> OutputBlock:
    """Return a grant as a statement."""
    resources: list[Value] = [scope.arn(reference) for reference in grant.references]
    effect: tuple[Entry, ...] = () if grant.effect == "Allow" else (("effect", grant.effect),)
    return statement(
        ("sid", grant.sid),
        *effect,
        ("actions", list(grant.actions)),
        ("resources", resources),
        *principals,
        *(
            block("condition", ("test", each.operator), ("variable", each.key), ("values", list(each.values)))
            for each in grant.conditions
        ),
    )


def policy_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield a policy for each role; the account attaches it to principals."""
    base_name = shorten(plan.tables[0].name, NAME_MAX)
    for policy in plan.policies:
        name, document = scope.id("policy", policy.name), scope.document(policy.name)
        grants = (grant_statement(grant, scope) for grant in policy.grants)
        yield data("aws_iam_policy_document", document, *grants)
        yield resource(
            "aws_iam_policy",
            name,
            ("name", prefix_name(f"{base_name}-{policy.name}")),
            ("description", policy.description),
            ("policy", HclExpression(f"data.aws_iam_policy_document.{document}.json")),
            *tag_entries(plan.tags),
        )


def endpoint_blocks(plan: InfrastructurePlan, scope: ModuleNames) -> Iterator[OutputBlock]:
    """Yield a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
    """
    arns = [scope.table(table.name, "arn") for table in plan.tables]
    everyone = block("principals", ("type", "*"), ("identifiers", ["*"]))
    resources: list[Value] = [each for arn in arns for each in (arn, append_text(arn, "/*"))]
    document = scope.document("tables", "endpoint")
    this_account = block(
        "condition", ("test", "StringEquals"), ("variable", "aws:PrincipalAccount"), ("values", [ACCOUNT])
    )
    statements = [
        statement(
            ("sid", "TheseTables"),
            ("actions", ["dynamodb:*"]),
            ("resources", resources),
            everyone,
            this_account,
        )
    ]
    if plan.unscoped_actions:
        actions: list[Value] = list(plan.unscoped_actions)
        statements.append(
            statement(
                ("sid", "OfNoTable"), ("actions", actions), ("resources", ["*"]), everyone, this_account
            )
        )
    yield data(
        "aws_iam_policy_document",
        document,
        *statements,
        grant_statement(ONLY_OVER_TLS, scope, everyone),
    )
    yield resource(
        "aws_vpc_endpoint",
        "tables",
        ("vpc_id", HclExpression("var.vpc_id")),
        ("service_name", HclExpression(f'"com.amazonaws.${{{REGION.text}}}.dynamodb"')),
        ("vpc_endpoint_type", "Gateway"),
        ("route_table_ids", HclExpression("var.route_table_ids")),
        ("policy", HclExpression(f"data.aws_iam_policy_document.{document}.json")),
        *tag_entries(plan.tags),
    )

"""Access to a template's tables: policies by role, and a VPC endpoint."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cloudformation.scope import (
    Node,
    TemplateNames,
    attribute,
    literal_text,
    ref,
    substitute,
    tags_property,
)
from tavola.iac.grants import ONLY_OVER_TLS, VERSION, render_statement
from tavola.iac.plan import InfrastructurePlan

VPC = "VpcId"
ROUTES = "RouteTableIds"


def policy_resources(plan: InfrastructurePlan, scope: TemplateNames) -> Iterator[tuple[str, Node]]:
    """Yield a managed policy for each role; the account attaches it to principals. CloudFormation has no tags for policies."""
    for policy in plan.policies:
        statements = [render_statement(grant, scope.arn) for grant in policy.grants]
        yield (
            scope.id(policy.name, "policy"),
            {
                "Type": "AWS::IAM::ManagedPolicy",
                "Properties": {
                    "Description": literal_text(policy.description),
                    "PolicyDocument": {"Version": VERSION, "Statement": statements},
                },
            },
        )


def endpoint_parameters() -> Iterator[tuple[str, Node]]:
    """Yield the parameters for the endpoint's network."""
    yield VPC, {"Type": "AWS::EC2::VPC::Id", "Description": "The network from which the tables are used."}
    yield (
        ROUTES,
        {
            "Type": "CommaDelimitedList",
            "Description": "The route tables of the subnets that use them.",
        },
    )


def endpoint_resource(plan: InfrastructurePlan, scope: TemplateNames) -> Node:
    """Return a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
    """
    ids = [scope.table(table.name) for table in plan.tables]
    this_account = {"StringEquals": {"aws:PrincipalAccount": ref("AWS::AccountId")}}
    allowed: Node = {
        "Sid": "TheseTables",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "dynamodb:*",
        "Resource": [
            resource for id_ in ids for resource in (attribute(id_, "Arn"), substitute(f"${{{id_}.Arn}}/*"))
        ],
        "Condition": this_account,
    }
    statements: list[Node] = [allowed]
    if plan.unscoped_actions:
        statements.append(
            {
                "Sid": "OfNoTable",
                "Effect": "Allow",
                "Principal": "*",
                "Action": list(plan.unscoped_actions),
                "Resource": "*",
                "Condition": this_account,
            }
        )
    statements.append(render_statement(ONLY_OVER_TLS, scope.arn) | {"Principal": "*"})
    return {
        "Type": "AWS::EC2::VPCEndpoint",
        "Properties": {
            "VpcEndpointType": "Gateway",
            "ServiceName": substitute("com.amazonaws.${AWS::Region}.dynamodb"),
            "VpcId": ref(VPC),
            "RouteTableIds": ref(ROUTES),
            "PolicyDocument": {"Version": VERSION, "Statement": statements},
            **tags_property(plan.tags),
        },
    }

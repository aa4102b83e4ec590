"""Access of a template: policies by role, and the endpoint that keeps traffic in a private network."""

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
    """Give a managed policy for each role; who has the role is for the account to say. CloudFormation has no tags for them."""
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
    """Give the parameters that say which network the endpoint is for."""
    yield VPC, {"Type": "AWS::EC2::VPC::Id", "Description": "The network from which the tables are used."}
    yield (
        ROUTES,
        {
            "Type": "CommaDelimitedList",
            "Description": "The route tables of the subnets that use them.",
        },
    )


def endpoint_resource(plan: InfrastructurePlan, scope: TemplateNames) -> Node:
    """Return a gateway endpoint through which this account reaches these tables, over TLS, and nothing else.

    What a policy of the plan allows of no table in particular, such as a list of backups, goes through as well.
    """
    ids = [scope.table(table.name) for table in plan.tables]
    ours = {"StringEquals": {"aws:PrincipalAccount": ref("AWS::AccountId")}}
    allowed: Node = {
        "Sid": "TheseTables",
        "Effect": "Allow",
        "Principal": "*",
        "Action": "dynamodb:*",
        "Resource": [
            resource for id_ in ids for resource in (attribute(id_, "Arn"), substitute(f"${{{id_}.Arn}}/*"))
        ],
        "Condition": ours,
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
                "Condition": ours,
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

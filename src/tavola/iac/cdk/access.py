"""Access of a stack: policies by role, and the endpoint that keeps traffic in a private network."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cdk.python_text import (
    PythonCall,
    PythonCode,
    Value,
    format_string,
    render_assignment,
    render_statement,
)
from tavola.iac.cdk.scope import SELF, StackNames
from tavola.iac.grants import ONLY_OVER_TLS, Grant, render_conditions
from tavola.iac.plan import InfrastructurePlan


def grant_statement(grant: Grant, scope: StackNames, **more: Value) -> PythonCall:
    """Return what a grant allows or refuses, as a statement."""
    resources: list[Value] = [scope.arn(reference) for reference in grant.references]
    effect: dict[str, Value] = {} if grant.effect == "Allow" else {"effect": PythonCode("iam.Effect.DENY")}
    named: dict[str, Value] = {
        "sid": grant.sid, **effect, **more, "actions": list(grant.actions), "resources": resources
    }  # fmt: skip
    if grant.conditions:
        named["conditions"] = {
            operator: dict(keys.items()) for operator, keys in render_conditions(grant).items()
        }
    return PythonCall("iam.PolicyStatement", named=named)


def policy_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Give the lines that make a managed policy for each role; who has the role is for the account to say."""
    for policy in plan.policies:
        statements: list[Value] = [grant_statement(grant, scope) for grant in policy.grants]
        made = PythonCall(
            "iam.ManagedPolicy",
            (SELF, scope.id(policy.name, "policy")),
            {"description": policy.description, "statements": statements},
        )
        yield render_assignment(scope.name(policy.name, "policy"), made, 2)


def endpoint_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Give the lines that make a gateway endpoint through which this account reaches these tables, over TLS, and nothing else.

    What a policy of the plan allows of no table in particular, such as a list of backups, goes through as well.
    """
    text = "The network from which the tables are used."
    vpc = PythonCall("cdk.CfnParameter", (SELF, "VpcId"), {"type": "AWS::EC2::VPC::Id", "description": text})
    text = "The route tables of the subnets that use them."
    routes = PythonCall(
        "cdk.CfnParameter", (SELF, "RouteTableIds"), {"type": "CommaDelimitedList", "description": text}
    )
    yield render_assignment("vpc_id", vpc, 2)
    yield render_assignment("route_table_ids", routes, 2)
    arns = [PythonCode(f"{scope.table(table.name)}.table_arn") for table in plan.tables]
    resources: list[Value] = [each for arn in arns for each in (arn, format_string(arn, "/*"))]
    everyone: list[Value] = [PythonCall("iam.AnyPrincipal")]
    ours: dict[str, Value] = {"StringEquals": {"aws:PrincipalAccount": PythonCode("self.account")}}
    allowed: list[tuple[str, list[Value], list[Value]]] = [("TheseTables", ["dynamodb:*"], resources)]
    if plan.unscoped_actions:
        allowed.append(("OfNoTable", list(plan.unscoped_actions), ["*"]))
    statements: list[Value] = [
        PythonCall(
            "iam.PolicyStatement",
            named={
                "sid": sid,
                "principals": everyone,
                "actions": actions,
                "resources": told,
                "conditions": ours,
            },
        )
        for sid, actions, told in allowed
    ]
    statements.append(grant_statement(ONLY_OVER_TLS, scope, principals=everyone))
    policy = PythonCall("iam.PolicyDocument", named={"statements": statements})
    yield render_statement(
        PythonCall(
            "ec2.CfnVPCEndpoint",
            (SELF, scope.id("tables", "endpoint")),
            {
                "vpc_endpoint_type": "Gateway",
                "service_name": format_string("com.amazonaws.", PythonCode("self.region"), ".dynamodb"),
                "vpc_id": PythonCode("vpc_id.value_as_string"),
                "route_table_ids": PythonCode("route_table_ids.value_as_list"),
                "policy_document": policy,
            },
        ),
        2,
    )

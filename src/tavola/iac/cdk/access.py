"""Access to a stack's tables: policies by role, and a VPC endpoint."""

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
    """Return a grant as a statement."""
    resources: list[Value] = [scope.arn(reference) for reference in grant.references]
    effect: dict[str, Value] = {} if grant.effect == "Allow" else {"effect": PythonCode("iam.Effect.DENY")}
    arguments: dict[str, Value] = {
        "sid": grant.sid, **effect, **more, "actions": list(grant.actions), "resources": resources
    }  # fmt: skip
    if grant.conditions:
        arguments["conditions"] = {
            operator: dict(keys.items()) for operator, keys in render_conditions(grant).items()
        }
    return PythonCall("iam.PolicyStatement", named=arguments)


def policy_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create a managed policy for each role; the account attaches it to principals."""
    for policy in plan.policies:
        statements: list[Value] = [grant_statement(grant, scope) for grant in policy.grants]
        managed_policy = PythonCall(
            "iam.ManagedPolicy",
            (SELF, scope.id(policy.name, "policy")),
            {"description": policy.description, "statements": statements},
        )
        yield render_assignment(scope.name(policy.name, "policy"), managed_policy, 2)


def endpoint_lines(plan: InfrastructurePlan, scope: StackNames) -> Iterator[str]:
    """Yield the lines that create a gateway endpoint that permits only this account and these tables, over TLS.

    It also permits actions that a policy of the plan allows without naming a table, such as listing backups.
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
    this_account: dict[str, Value] = {"StringEquals": {"aws:PrincipalAccount": PythonCode("self.account")}}
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
                "resources": targets,
                "conditions": this_account,
            },
        )
        for sid, actions, targets in allowed
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

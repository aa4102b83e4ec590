"""Access of a stack: policies by role, and the endpoint that keeps traffic in a private network."""

from __future__ import annotations

from collections.abc import Iterator

from tavola.iac.cdk.python_text import Call, Code, Value, assigned, formatted, statement
from tavola.iac.cdk.scope import SELF, Scope
from tavola.iac.grants import ONLY_OVER_TLS, Grant, render_conditions
from tavola.iac.plan import InfrastructurePlan


def grant_statement(grant: Grant, scope: Scope, **more: Value) -> Call:
    """Return what a grant allows or refuses, as a statement."""
    resources: list[Value] = [scope.arn(reference) for reference in grant.references]
    effect: dict[str, Value] = {} if grant.effect == "Allow" else {"effect": Code("iam.Effect.DENY")}
    named: dict[str, Value] = {
        "sid": grant.sid, **effect, **more, "actions": list(grant.actions), "resources": resources
    }  # fmt: skip
    if grant.conditions:
        named["conditions"] = {
            operator: dict(keys.items()) for operator, keys in render_conditions(grant).items()
        }
    return Call("iam.PolicyStatement", named=named)


def policy_lines(plan: InfrastructurePlan, scope: Scope) -> Iterator[str]:
    """Give the lines that make a managed policy for each role; who has the role is for the account to say."""
    for policy in plan.policies:
        statements: list[Value] = [grant_statement(grant, scope) for grant in policy.grants]
        made = Call(
            "iam.ManagedPolicy",
            (SELF, scope.id(policy.name, "policy")),
            {"description": policy.description, "statements": statements},
        )
        yield assigned(scope.name(policy.name, "policy"), made, 2)


def endpoint_lines(plan: InfrastructurePlan, scope: Scope) -> Iterator[str]:
    """Give the lines that make a gateway endpoint through which this account reaches these tables, over TLS, and nothing else.

    What a policy of the plan allows of no table in particular, such as a list of backups, goes through as well.
    """
    text = "The network from which the tables are used."
    vpc = Call("cdk.CfnParameter", (SELF, "VpcId"), {"type": "AWS::EC2::VPC::Id", "description": text})
    text = "The route tables of the subnets that use them."
    routes = Call(
        "cdk.CfnParameter", (SELF, "RouteTableIds"), {"type": "CommaDelimitedList", "description": text}
    )
    yield assigned("vpc_id", vpc, 2)
    yield assigned("route_table_ids", routes, 2)
    arns = [Code(f"{scope.table(table.name)}.table_arn") for table in plan.tables]
    resources: list[Value] = [each for arn in arns for each in (arn, formatted(arn, "/*"))]
    everyone: list[Value] = [Call("iam.AnyPrincipal")]
    ours: dict[str, Value] = {"StringEquals": {"aws:PrincipalAccount": Code("self.account")}}
    allowed: list[tuple[str, list[Value], list[Value]]] = [("TheseTables", ["dynamodb:*"], resources)]
    if plan.unscoped_actions:
        allowed.append(("OfNoTable", list(plan.unscoped_actions), ["*"]))
    statements: list[Value] = [
        Call(
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
    policy = Call("iam.PolicyDocument", named={"statements": statements})
    yield statement(
        Call(
            "ec2.CfnVPCEndpoint",
            (SELF, scope.id("tables", "endpoint")),
            {
                "vpc_endpoint_type": "Gateway",
                "service_name": formatted("com.amazonaws.", Code("self.region"), ".dynamodb"),
                "vpc_id": Code("vpc_id.value_as_string"),
                "route_table_ids": Code("route_table_ids.value_as_list"),
                "policy_document": policy,
            },
        ),
        2,
    )

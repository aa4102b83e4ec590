"""References between the constructs of one stack."""

from __future__ import annotations

from tavola.iac.cdk.python_text import PythonCall, PythonCode, Value, format_string
from tavola.iac.grants import ANYWHERE, EVERYTHING, Grant, ResourceReference, render_conditions
from tavola.iac.identifiers import Identifiers, pascal, python_name

SELF = PythonCode("self")
# Attributes of every stack, and the attribute of the encryption key.
_TAKEN = tuple(
    "account artifact_id availability_zones bundling_required dependencies environment nested nested_stack_parent "
    "nested_stack_resource node notification_arns partition region stack_id stack_name synthesizer table_key tags "
    "template_file template_options termination_protection to_string url_suffix".split()
)


def prefix_name(text: str, before: str = "") -> PythonCode:
    """Return a name with the stack's prefix before it."""
    return format_string(before, PythonCode("prefix"), text)


def parameter(id_: str, description: str, **more: Value) -> PythonCall:
    """Return a parameter of the stack."""
    return PythonCall("cdk.CfnParameter", (SELF, id_), {**more, "description": description})


class StackNames:
    """The attributes and construct ids of a plan's resources."""

    def __init__(self) -> None:
        self._names = Identifiers(python_name, taken=_TAKEN)
        self._ids = Identifiers(pascal)

    def name(self, *words: str) -> str:
        """Return the stack attribute for some words."""
        return f"self.{self._names.of(*words)}"

    def id(self, *words: str) -> str:
        """Return the id of a construct."""
        return self._ids.of(*words)

    def table(self, name: str) -> str:
        """Return the attribute that holds a table."""
        return self.name(name)

    def function(self, name: str) -> str:
        """Return the attribute that holds a function."""
        return self.name(name, "function")

    def failures(self, function: str) -> str:
        """Return the attribute that holds a function's failure destination."""
        return self.name(function, "failures")

    def replica_key(self, region: str) -> str:
        """Return the attribute that holds the parameter for a region's key."""
        return self.name("replica", "key", region)

    def arn(self, reference: ResourceReference) -> Value:
        """Return the ARN of a table, index, stream or backup."""
        if reference == ANYWHERE:
            return EVERYTHING
        table = self.table(reference.table)
        match reference.part:
            case "table":
                return PythonCode(f"{table}.table_arn")
            case "stream":
                return PythonCode(f"{table}.table_stream_arn")
            case _:
                return format_string(
                    PythonCode(f"{table}.table_arn"), str(reference).removeprefix(reference.table)
                )


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

"""References between the resources of one template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from tavola.iac.grants import ANYWHERE, EVERYTHING, ResourceReference
from tavola.iac.identifiers import Identifiers, pascal

Node: TypeAlias = dict[str, Any]

PREFIX = "NamePrefix"
# Ids that names must avoid
FIXED = (
    "CodeBucket",
    "AlarmTopicArn",
    "VpcId",
    "RouteTableIds",
    "HasAlarmTopic",
    PREFIX,
)


RETAIN = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def resource(type_: str, properties: Node, **attributes: str) -> Node:
    """Return a resource; `attributes` are its own, such as its deletion policy."""
    return {"Type": type_, **attributes, "Properties": properties}


def parameter(description: str, type_: str = "String", **more: str) -> Node:
    """Return a parameter of the template."""
    return {"Type": type_, **more, "Description": description}


def ref(name: str) -> Node:
    """Refer to a parameter or to a resource's own name."""
    return {"Ref": name}


def attribute(resource: str, name: str) -> Node:
    """Refer to an attribute of a resource."""
    return {"Fn::GetAtt": [resource, name]}


def substitute(text: str) -> Node:
    """Return a text in which CloudFormation replaces `${…}`."""
    return {"Fn::Sub": text}


def prefix_name(text: str, before: str = "") -> Node:
    """Return a name after the prefix parameter of the stack."""
    return substitute(f"{before}${{{PREFIX}}}{text}")


def tags_property(tags: Mapping[str, str]) -> Node:
    """Return the tags of a resource as a property; empty if there are no tags."""
    entries = [{"Key": literal_text(key), "Value": literal_text(value)} for key, value in tags.items()]
    return {"Tags": entries} if entries else {}


def literal_text(text: str) -> str | Node:
    """Return a text as it is, even if it contains `${…}`."""
    if "${" not in text:
        return text
    first, *rest = text.split("${")
    return {"Fn::Join": ["", [f"{first}$", *(f"{{{part}$" for part in rest[:-1]), f"{{{rest[-1]}"]]}


class TemplateNames:
    """The logical ids of a plan's resources."""

    def __init__(self) -> None:
        self._ids = Identifiers(pascal, taken=FIXED)

    def id(self, *words: str) -> str:
        """Return the logical id for some words."""
        return self._ids.of(*words)

    def table(self, name: str) -> str:
        """Return the logical id of a table."""
        return self.id(name, "table")

    def function(self, name: str) -> str:
        """Return the logical id of a function, by its name in Lambda."""
        return self.id(name, "function")

    def destination(self, function: str) -> str:
        """Return the logical id of a function's failure destination."""
        return self.id(function, "failures")

    @property
    def key(self) -> str:
        """The logical id of the key that the plan creates."""
        return self.id("table", "key")

    def arn(self, reference: ResourceReference) -> str | Node:
        """Return the ARN of a table, index, stream or backup."""
        if reference == ANYWHERE:
            return EVERYTHING
        table = self.table(reference.table)
        match reference.part:
            case "table":
                return attribute(table, "Arn")
            case "stream":
                return attribute(table, "StreamArn")
            case _:
                return substitute(f"${{{table}.Arn}}{str(reference).removeprefix(reference.table)}")

"""References between the resources of one module."""

from __future__ import annotations

from collections.abc import Mapping

from tavola.iac.grants import ANYWHERE, EVERYTHING, Grant, ResourceReference
from tavola.iac.identifiers import Identifiers, snake
from tavola.iac.plan import OWN_KEY, IndexPlan
from tavola.iac.terraform.hcl import Entry, HclExpression, OutputBlock, Value, append_text

PARTITION = HclExpression("data.aws_partition.current.partition")
ACCOUNT = HclExpression("data.aws_caller_identity.current.account_id")
REGION = HclExpression("data.aws_region.current.region")
SUFFIX = HclExpression("data.aws_partition.current.dns_suffix")
NAME_MAX = 60  # of a table within an IAM name, which has at most 128 characters


def resource(kind: str, name: str, *body: Entry) -> OutputBlock:
    """Return a resource."""
    return OutputBlock("resource", (kind, name), body)


def data(kind: str, name: str, *body: Entry) -> OutputBlock:
    """Return a data source."""
    return OutputBlock("data", (kind, name), body)


def block(kind: str, *body: Entry) -> OutputBlock:
    """Return a block without labels."""
    return OutputBlock(kind, (), body)


def tag_entries(tags: Mapping[str, str]) -> tuple[Entry, ...]:
    """Return the tags of a resource as an entry; none if there are no tags."""
    return (("tags", dict(tags)),) if tags else ()


class ModuleNames:
    """The names of a plan's resources; each resource type has its own namespace."""

    def __init__(self) -> None:
        self._ids: dict[str, Identifiers] = {}

    def id(self, kind: str, *words: str) -> str:
        """Return the name of a resource among those of its kind."""
        return self._ids.setdefault(kind, Identifiers(snake)).of(*words)

    def table(self, name: str, attribute: str) -> HclExpression:
        """Refer to an attribute of a table."""
        return HclExpression(f"aws_dynamodb_table.{self.id('table', name)}.{attribute}")

    def document(self, *words: str) -> str:
        """Return the name of a policy document."""
        return self.id("document", *words)

    def index(self, table: str, index: IndexPlan) -> str:
        """Return the name of an index that is a separate resource."""
        return self.id("index", table, index.name)

    def function(self, name: str) -> str:
        """Return the name of a function and of everything created only for it."""
        return self.id("function", name)

    def destination(self, function: str, kind: str, attribute: str) -> HclExpression:
        """Refer to an attribute of a function's failure destination."""
        word = {"sqs": "aws_sqs_queue", "sns": "aws_sns_topic", "s3": "aws_s3_bucket"}[kind]
        return HclExpression(f"{word}.{self.function(function)}_failures.{attribute}")

    def key(self, key: str) -> Value:
        """Return the ARN of a key: the plan's own, or an existing one by ARN, alias or id."""
        if key == OWN_KEY:
            return HclExpression("aws_kms_key.tables.arn")
        return key if key.startswith("arn:") else HclExpression(f"data.aws_kms_key.{self.id('key', key)}.arn")

    def arn(self, reference: ResourceReference) -> Value:
        """Return the ARN of a table, index, stream or backup."""
        if reference == ANYWHERE:
            return EVERYTHING
        match reference.part:
            case "table":
                return self.table(reference.table, "arn")
            case "stream":
                return self.table(reference.table, "stream_arn")
            case _:
                suffix = str(reference).removeprefix(reference.table)
                return append_text(self.table(reference.table, "arn"), suffix)


def principals(kind: str, *identifiers: Value) -> OutputBlock:
    """Return the principals of a statement."""
    return block("principals", ("type", kind), ("identifiers", list(identifiers)))


def condition(test: str, variable: str, *values: Value) -> OutputBlock:
    """Return a condition of a statement."""
    return block("condition", ("test", test), ("variable", variable), ("values", list(values)))


def document_json(name: str) -> HclExpression:
    """Refer to the text of a policy document."""
    return HclExpression(f"data.aws_iam_policy_document.{name}.json")


def statement(*body: Entry) -> OutputBlock:
    """Return a statement of a policy document."""
    return OutputBlock("statement", (), body)


def grant_statement(grant: Grant, scope: ModuleNames, *others: OutputBlock) -> OutputBlock:
    """Return a grant as a statement; `others` come before its conditions."""
    resources: list[Value] = [scope.arn(reference) for reference in grant.references]
    effect: tuple[Entry, ...] = () if grant.effect == "Allow" else (("effect", grant.effect),)
    return statement(
        ("sid", grant.sid),
        *effect,
        ("actions", list(grant.actions)),
        ("resources", resources),
        *others,
        *(condition(each.operator, each.key, *each.values) for each in grant.conditions),
    )

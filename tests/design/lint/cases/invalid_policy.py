"""A policy with a mistyped condition key."""

from tavola.model.document import Policy
from tests.design.builders import design, entity, table, text
from tests.design.policies import allow, policy

_TABLE = table(entity("Order", text("order_id"), pk="ORDER#{order_id}"))


def _with(document):
    return design(_TABLE, policies=[Policy("app", document)])


FOUND = design(
    _TABLE, policies=[policy(allow("Query", "shop", when={"StringEquals": {"dynamodb:LeadingKey": "x"}}))]
)
PLACES = ["app"]
CLEAN = design(_TABLE, policies=[policy(allow("Query", "shop"))])
ALSO = {
    "no statement": _with({"Version": "2012-10-17"}),
    "an action without its service": _with(
        {"Statement": {"Effect": "Allow", "Action": "Query", "Resource": "*"}}
    ),
    "a statement that is none": _with({"Statement": ["Allow"]}),
}
ALSO_CLEAN = {
    "a bare statement": _with({"Effect": "Allow", "Action": "dynamodb:Query", "Resource": "*"}),
    "a template's references": _with(
        {
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "dynamodb:Query",
                    "Resource": [
                        {"Fn::GetAtt": ["Shop", "Arn"]},
                        {"Fn::Sub": "${Shop.Arn}/index/*"},
                        {"Fn::Join": ["/", [{"Ref": "ShopArn"}, "index", "*"]]},
                        "${aws_dynamodb_table.shop.arn}",
                    ],
                }
            ]
        }
    ),
    "a policy of the table itself": _with(
        {"Statement": [{"Effect": "Allow", "Principal": {"AWS": "111122223333"}, "Action": "dynamodb:Query", "Resource": "*"}]}
    ),
}  # fmt: skip

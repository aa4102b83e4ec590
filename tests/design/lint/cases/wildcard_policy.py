"""A policy that allows everything."""

from tests.design.builders import design, entity, table, text
from tests.design.policies import allow, deny, policy

_TABLE = table(entity("Order", text("order_id"), pk="ORDER#{order_id}"), name="shop-orders")


def _with(*statements):
    return design(_TABLE, policies=[policy(*statements)])


FOUND = _with(allow("dynamodb:*", "*"))
PLACES = ["app"]
CLEAN = _with(allow("GetItem Query", "shop-orders", "shop-orders/index/*"))
ALSO = {
    "every action on a template's table": _with(
        allow("dynamodb:*", "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/shop-orders")
    ),
    "every action": _with(allow("*", "shop-orders")),
    "every table": _with(allow("GetItem", "*")),
    "every table of DynamoDB": _with(allow("GetItem", "arn:aws:dynamodb:*:*:table/*")),
    "tables that begin alike": _with(allow("GetItem", "shop-*")),
    "who asks has a tag": _with(
        allow("DeleteTable PutItem", "*", when={"StringEquals": {"aws:PrincipalTag/team": "x"}})
    ),
    "deletes of any kind": _with(allow("dynamodb:Delete* dynamodb:GetItem", "shop-orders")),
    "whatever an item can suffer": _with(allow("dynamodb:*Item", "shop-orders")),
    "all actions but": _with(
        {
            "Effect": "Allow",
            "NotAction": "dynamodb:DeleteTable",
            "Resource": "arn:aws:dynamodb:*:*:table/shop-orders",
        }
    ),
    "all tables but": _with(
        {"Effect": "Allow", "Action": "dynamodb:GetItem", "NotResource": "arn:aws:dynamodb:*:*:table/other"}
    ),
}
ALSO_CLEAN = {
    "whatever describes": _with(allow("dynamodb:Describe* dynamodb:Get* dynamodb:List*", "shop-orders")),
    "a denial may be wide": _with(deny("dynamodb:*", "*")),
    "what has no resource": _with(allow("ListTables ListStreams DescribeLimits", "*")),
    "any region and account": _with(allow("GetItem", "arn:aws:dynamodb:*:*:table/shop-orders")),
    "other tables, which begin otherwise": _with(allow("GetItem PutItem", "shop-orders-restored-*")),
    "its streams": _with(allow("GetRecords", "shop-orders/stream/*")),
    "another service's": _with(
        allow("s3:GetObject", "arn:aws:s3:::bucket/*"), allow("logs:CreateLogGroup", "*")
    ),
    "a template's region, account and name": _with(
        allow(
            "GetItem",
            "arn:aws:dynamodb:${AWS::Region}:${AWS::AccountId}:table/shop-orders",
            "arn:aws:dynamodb:${var.region}:${data.me.account_id}:table/${var.name}/index/by_day",
        )
    ),
    "tables by their tags": _with(
        allow("GetItem", "*", when={"StringEquals": {"aws:ResourceTag/team": "shop"}})
    ),
}

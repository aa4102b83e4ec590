"""PynamoDB, on moto in this process or on an endpoint."""

from contextlib import nullcontext

from pynamodb.attributes import (
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model
from timing import TABLE, arguments, fields, report

told = arguments()


class ByCustomer(GlobalSecondaryIndex):
    """The index that every client keeps."""

    class Meta:
        """Where it is."""

        index_name = "by_customer"
        projection = AllProjection()
        billing_mode = "PAY_PER_REQUEST"

    gsi1pk = UnicodeAttribute(hash_key=True)
    gsi1sk = UnicodeAttribute(range_key=True)


class Ticket(Model):
    """The entity that every client stores."""

    class Meta:
        """Where it is."""

        table_name = TABLE
        host = told.endpoint
        region = "us-east-1"
        aws_access_key_id = "local"
        aws_secret_access_key = "local"
        billing_mode = "PAY_PER_REQUEST"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    gsi1pk = UnicodeAttribute()
    gsi1sk = UnicodeAttribute()
    by_customer = ByCustomer()
    ticket_id = UnicodeAttribute()
    customer_id = UnicodeAttribute()
    subject = UnicodeAttribute()
    body = UnicodeAttribute()
    status = UnicodeAttribute()
    channel = UnicodeAttribute()
    language = UnicodeAttribute()
    assignee = UnicodeAttribute()
    priority = NumberAttribute()
    replies = NumberAttribute()
    score = NumberAttribute()
    created_at = UTCDateTimeAttribute()
    updated_at = UTCDateTimeAttribute()
    tags = ListAttribute(of=UnicodeAttribute)
    address = MapAttribute()


def put(number: int) -> None:
    """Store one entity, its keys made by hand, which is how PynamoDB wants it."""
    item = fields(number)
    keys = {"pk": f"TICKET#{item['ticket_id']}", "sk": "TICKET"}
    keys |= {"gsi1pk": f"CUSTOMER#{item['customer_id']}", "gsi1sk": item["created_at"].isoformat()}
    Ticket(**keys, **item).save()


def main() -> None:
    """Time it."""
    if told.endpoint is None:
        from moto import mock_aws

        around = mock_aws()
    else:
        around = nullcontext()
    with around:
        Ticket.create_table(wait=True)
        report(put, lambda n: Ticket.get(f"TICKET#t{n:06}", "TICKET"), told.seconds)


if __name__ == "__main__":
    main()

"""PynamoDB, on moto in this process or on an endpoint."""

from contextlib import AbstractContextManager, nullcontext

from pynamodb.attributes import (
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

from benchmarks.clients.timing import TABLE, arguments, each, fields, name_of, report

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


def made(number: int) -> Ticket:
    """Return one entity, its keys made by hand, which is how PynamoDB wants it."""
    item = fields(number)
    keys = {"pk": f"TICKET#{item['ticket_id']}", "sk": "TICKET"}
    keys |= {"gsi1pk": f"CUSTOMER#{item['customer_id']}", "gsi1sk": item["created_at"].isoformat()}
    return Ticket(**keys, **item)


def main() -> None:
    """Time it."""
    around: AbstractContextManager[object] = nullcontext()
    if told.endpoint is None:
        from moto import mock_aws

        around = mock_aws()
    whole = made(0)
    with around:
        if told.create or told.endpoint is None:
            Ticket.create_table(wait=True)
        report(
            told,
            lambda n: made(n).save(),
            lambda n: Ticket.get(f"TICKET#{name_of(n)}", "TICKET"),
            both_ways=each(lambda _: Ticket.from_raw_data(whole.serialize())),
        )


if __name__ == "__main__":
    main()

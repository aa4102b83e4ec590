"""pydynox, whose core is Rust, on an endpoint, by its synchronous methods."""

from pydynox import DynamoDBClient, Model, ModelConfig
from pydynox.attributes import DatetimeAttribute, ListAttribute, MapAttribute, NumberAttribute, StringAttribute
from timing import TABLE, arguments, fields, report

told = arguments()
client = DynamoDBClient(
    region="us-east-1", access_key="local", secret_key="local", endpoint_url=told.endpoint
)


class Ticket(Model):
    """The entity that every client stores."""

    model_config = ModelConfig(table=TABLE, client=client)

    pk = StringAttribute(partition_key=True, template="TICKET#{ticket_id}")
    sk = StringAttribute(sort_key=True, template="TICKET")
    gsi1pk = StringAttribute(template="CUSTOMER#{customer_id}")
    gsi1sk = StringAttribute()
    ticket_id = StringAttribute()
    customer_id = StringAttribute()
    subject = StringAttribute()
    body = StringAttribute()
    status = StringAttribute()
    channel = StringAttribute()
    language = StringAttribute()
    assignee = StringAttribute()
    priority = NumberAttribute()
    replies = NumberAttribute()
    score = NumberAttribute()
    created_at = DatetimeAttribute()
    updated_at = DatetimeAttribute()
    tags = ListAttribute()
    address = MapAttribute()


def put(number: int) -> None:
    """Store one entity."""
    item = fields(number)
    Ticket(**item, gsi1sk=item["created_at"].isoformat()).sync_save()


def main() -> None:
    """Time it, on a table that another client has made."""
    report(put, lambda n: Ticket.sync_get(pk=f"TICKET#t{n:06}", sk="TICKET"), told.seconds)


if __name__ == "__main__":
    main()

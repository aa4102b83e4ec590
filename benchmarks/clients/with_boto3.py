"""boto3's resource API, with the keys written by hand; times stay the text they are stored as."""

from typing import Any

import boto3

from benchmarks.clients.timing import TABLE, arguments, create_table_request, each, fields, name_of, report


def stored(entity: dict[str, Any]) -> dict[str, Any]:
    """Return an entity as the resource API takes it: plain Python, with its keys."""
    item = dict(entity)
    for name in ("created_at", "updated_at"):
        item[name] = item[name].isoformat()
    item |= {"pk": f"TICKET#{item['ticket_id']}", "sk": "TICKET"}
    return item | {"gsi1pk": f"CUSTOMER#{item['customer_id']}", "gsi1sk": item["created_at"]}


def main() -> None:
    """Time it."""
    from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

    told = arguments()
    dynamodb = boto3.resource(
        "dynamodb",
        endpoint_url=told.endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    table = dynamodb.Table(TABLE)
    if told.create:
        dynamodb.create_table(**create_table_request()).wait_until_exists()
    whole = fields(0)
    serialize, deserialize = TypeSerializer().serialize, TypeDeserializer().deserialize

    def both_ways(_: int) -> object:
        typed = {name: serialize(value) for name, value in stored(whole).items()}
        return {name: deserialize(value) for name, value in typed.items()}

    report(
        told,
        lambda n: table.put_item(Item=stored(fields(n))),
        lambda n: table.get_item(Key={"pk": f"TICKET#{name_of(n)}", "sk": "TICKET"})["Item"],
        both_ways=each(both_ways),
    )


if __name__ == "__main__":
    main()

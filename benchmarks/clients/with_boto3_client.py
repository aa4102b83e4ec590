"""boto3's client, with keys and types written by hand: the least that botocore can be asked for."""

from typing import Any

import boto3

from benchmarks.clients.timing import TABLE, arguments, create_table_request, fields, name_of, report


def stored(number: int) -> dict[str, Any]:
    """Return an entity as DynamoDB takes it."""
    item: dict[str, Any] = {}
    for name, value in fields(number).items():
        if isinstance(value, str):
            item[name] = {"S": value}
        elif isinstance(value, int):
            item[name] = {"N": str(value)}
        elif isinstance(value, list):
            item[name] = {"L": [{"S": each} for each in value]}
        elif isinstance(value, dict):
            item[name] = {"M": {key: {"S": each} for key, each in value.items()}}
        else:
            item[name] = {"S": value.isoformat()}
    item |= {"pk": {"S": f"TICKET#{item['ticket_id']['S']}"}, "sk": {"S": "TICKET"}}
    return item | {"gsi1pk": {"S": f"CUSTOMER#{item['customer_id']['S']}"}, "gsi1sk": item["created_at"]}


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """Return what DynamoDB gave as plain Python."""
    found: dict[str, Any] = {}
    for name, typed in item.items():
        ((tag, value),) = typed.items()
        if tag == "N":
            found[name] = int(value)
        elif tag == "L":
            found[name] = [each["S"] for each in value]
        elif tag == "M":
            found[name] = {key: each["S"] for key, each in value.items()}
        else:
            found[name] = value
    return found


def main() -> None:
    """Time it."""
    told = arguments()
    client = boto3.client(
        "dynamodb",
        endpoint_url=told.endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    if told.create:
        client.create_table(**create_table_request())

    def get(number: int) -> object:
        key = {"pk": {"S": f"TICKET#{name_of(number)}"}, "sk": {"S": "TICKET"}}
        return plain(client.get_item(TableName=TABLE, Key=key)["Item"])

    report(told, lambda n: client.put_item(TableName=TABLE, Item=stored(n)), get)


if __name__ == "__main__":
    main()

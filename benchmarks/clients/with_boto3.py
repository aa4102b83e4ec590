"""boto3's resource API, with the keys written by hand."""

import boto3
from timing import TABLE, arguments, fields, report


def main() -> None:
    """Time it."""
    told = arguments()
    dynamodb = boto3.resource(
        "dynamodb",
        endpoint_url=told.endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    names = ("pk", "sk", "gsi1pk", "gsi1sk")
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_customer",
                "KeySchema": [
                    {"AttributeName": "gsi1pk", "KeyType": "HASH"},
                    {"AttributeName": "gsi1sk", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        BillingMode="PAY_PER_REQUEST",
    ).wait_until_exists()
    table = dynamodb.Table(TABLE)

    def put(number: int) -> None:
        item = fields(number)
        for name in ("created_at", "updated_at"):
            item[name] = item[name].isoformat()
        item |= {"pk": f"TICKET#{item['ticket_id']}", "sk": "TICKET"}
        item |= {"gsi1pk": f"CUSTOMER#{item['customer_id']}", "gsi1sk": item["created_at"]}
        table.put_item(Item=item)

    def get(number: int) -> object:
        return table.get_item(Key={"pk": f"TICKET#t{number:06}", "sk": "TICKET"})["Item"]

    report(put, get, told.seconds)


if __name__ == "__main__":
    main()

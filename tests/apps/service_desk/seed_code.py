"""The design document's own program, with boto3 and without Tavola, and its command that creates the table."""

from __future__ import annotations

import json
import shlex
from typing import Any

COMMAND = r"""
aws dynamodb create-table \
  --table-name poc-itsm-tickets \
  --attribute-definitions \
    AttributeName=ticket_id,AttributeType=S \
    AttributeName=caller_id,AttributeType=S \
    AttributeName=created_at,AttributeType=S \
  --key-schema \
    AttributeName=ticket_id,KeyType=HASH \
  --billing-mode PAY_PER_REQUEST \
  --global-secondary-indexes \
    "[{
      \"IndexName\": \"CallerIdIndex\",
      \"KeySchema\": [
        {\"AttributeName\": \"caller_id\", \"KeyType\": \"HASH\"},
        {\"AttributeName\": \"created_at\", \"KeyType\": \"RANGE\"}
      ],
      \"Projection\": {\"ProjectionType\": \"ALL\"}
    }]" \
  --tags \
    "[{\"Key\": \"Environment\", \"Value\": \"PoC\"}, {\"Key\": \"Project\", \"Value\": \"AI-L1-Support\"}]" \
  --region us-east-1
"""


def parse_command(command: str) -> dict[str, Any]:
    """Return the arguments of an AWS CLI command as boto3 takes them, without its region."""
    words = shlex.split(command.replace("\\\n", " "))
    assert words[:3] == ["aws", "dynamodb", "create-table"]
    options: dict[str, list[str]] = {}
    for word in words[3:]:
        if word.startswith("--"):
            options[word[2:]] = []
        else:
            options[list(options)[-1]].append(word)
    region = options.pop("region")
    assert region == ["us-east-1"]
    return {
        "".join(part.title() for part in name.split("-")): _value(words) for name, words in options.items()
    }


def _value(words: list[str]) -> Any:
    if words[0].startswith("["):
        return json.loads(words[0])
    if "=" in words[0]:
        return [dict(pair.split("=", 1) for pair in word.split(",")) for word in words]
    return words[0]


class Program:
    """The document's four operations, as it writes them."""

    def __init__(self, table: Any) -> None:
        self._table = table  # a boto3 resource

    def create(self, **changed: Any) -> dict[str, Any]:
        """Put the document's sample ticket with some changes."""
        item = {
            "ticket_id": "33567ee8-f182-4f8a-b03e-2f1515915471",
            "caller_id": "poc-user-001",
            "issue_description": "My laptop won't turn on",
            "status": "open",
            "created_at": "2026-02-09T12:20:25.343883Z",
            "updated_at": "2026-02-09T12:20:25.343883Z",
            "comments": [],
            **changed,
        }
        self._table.put_item(Item=item)
        return item

    def get(self, ticket_id: str) -> dict[str, Any] | None:
        """Get a ticket."""
        found: dict[str, Any] | None = self._table.get_item(Key={"ticket_id": ticket_id}).get("Item")
        return found

    def comment(self, ticket_id: str, comment_text: str, added_at: str) -> None:
        """Add a comment without checking that the ticket exists."""
        self._table.update_item(
            Key={"ticket_id": ticket_id},
            UpdateExpression="SET comments = list_append(if_not_exists(comments, :empty_list), :comment), "
            "updated_at = :timestamp",
            ExpressionAttributeValues={
                ":comment": [{"comment_text": comment_text, "added_at": added_at}],
                ":timestamp": added_at,
                ":empty_list": [],
            },
        )

    def recent(self, caller_id: str) -> list[dict[str, Any]]:
        """Query a caller's ten newest tickets."""
        found: list[dict[str, Any]] = self._table.query(
            IndexName="CallerIdIndex",
            KeyConditionExpression="caller_id = :caller_id",
            ExpressionAttributeValues={":caller_id": caller_id},
            ScanIndexForward=False,
            Limit=10,
        ).get("Items", [])
        return found

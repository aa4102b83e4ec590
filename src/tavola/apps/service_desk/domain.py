"""Limits and statuses of the service desk's tickets. Imports nothing of Tavola."""

from __future__ import annotations

RECENT_MAX = 10  # tickets on a page of a caller's list
CALLER_CHARACTERS_MAX = 128
TICKET_KB_MAX = 400  # DynamoDB's limit of an item, its comments included
TICKET_ID_BYTES_MAX = 2_048  # DynamoDB's limit of a partition key

OPEN = "open"  # the status of a new ticket; other programs may set others

"""Client: entities in, entities out, through one port.

Holds the `Backend` port and what grows on it. Knows no engine and no botocore: it sees an operation's name
and a request go out and a response come back, and cannot tell a file from a region. Why a port this
narrow: whatever meets it can be recorded, replayed and swapped.
"""

from tavola.client.backend import Backend, Remembering, RequestMalformed, encode_request
from tavola.client.versions import ItemVersion, item_versions

__all__ = [
    "Backend",
    "ItemVersion",
    "Remembering",
    "RequestMalformed",
    "encode_request",
    "item_versions",
]

"""TavolaError: what every error of Tavola is.

The families, each in the room that raises it:

    TavolaError
    ├── Fault                 protocol: an answer that DynamoDB defines (the same on every backend)
    ├── ValueRefused          values: an attribute value that DynamoDB does not accept
    ├── ValueMalformed        values: JSON that is no attribute value at all
    ├── KeyRefused            keys: an item or key that does not fit a key schema
    ├── ExpressionError       expressions: a text that does not parse, check or apply
    ├── StoreError            engine: the file cannot be opened, read or written
    ├── ConnectionRefused     connections: a target that cannot be connected to
    ├── RequestMalformed      client: a request that cannot be written as JSON
    ├── BackendError          backends: an endpoint that does not answer, or not as DynamoDB does
    └── ConnectionClosed      connections: a handle that was closed
"""

from __future__ import annotations


class TavolaError(Exception):
    """A sentence that a person can act on; the data behind it is on the error as attributes."""

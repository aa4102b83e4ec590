"""Server: the engine over HTTP, as AWS speaks it.

Holds the connections with their deadlines, the headers and checksums of an answer, the scope of a
credential, and the group in which writes of one moment commit together. Knows the engine by its
port (`Served`) and the operations by name; knows no entity and no table. Why no web framework: between
a socket and an engine that answers in microseconds it would be most of the cost.
"""

from tavola.server.errors import AddressInUse, AddressUnusable
from tavola.server.limits import ServerLimits
from tavola.server.listener import Endpoint, Server, running, serve
from tavola.server.port import Served

__all__ = [
    "AddressInUse",
    "AddressUnusable",
    "Endpoint",
    "Served",
    "Server",
    "ServerLimits",
    "running",
    "serve",
]

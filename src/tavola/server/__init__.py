"""Server: the engine over HTTP, as AWS speaks it.

Holds the connections with their deadlines, the headers and checksums of an answer, the proof of a signature,
the access log, and the group in which writes of one moment commit together. Knows the engine by its port
(`ServedEngine`), the operations by name and the policies by their guard; knows no entity and no table. Why no web
framework: between a socket and an engine that answers in microseconds it would be most of the cost.
"""

from tavola.server.access_log import AccessLog, key_hash, secret_path
from tavola.server.authorization import StrictCallers
from tavola.server.errors import (
    AccessLogUnusable,
    AddressInUse,
    AddressUnusable,
    CertificateUnusable,
    LogKeyMalformed,
    LogSecretUnreadable,
)
from tavola.server.hosts import is_loopback
from tavola.server.limits import ServerLimits
from tavola.server.listener import Endpoint, Server, allow_files, new_loop, running, serve
from tavola.server.log_files import files_of
from tavola.server.log_queries import (
    LogQuery,
    decision_of,
    hash_of_item,
    log_key,
    parse_moment,
    places_of,
    read_records,
)
from tavola.server.safeguards import Safeguards
from tavola.server.served_engine import ServedEngine
from tavola.server.tls import server_context

__all__ = [
    "AccessLog",
    "AccessLogUnusable",
    "AddressInUse",
    "AddressUnusable",
    "CertificateUnusable",
    "Endpoint",
    "LogKeyMalformed",
    "LogQuery",
    "LogSecretUnreadable",
    "Safeguards",
    "ServedEngine",
    "Server",
    "ServerLimits",
    "StrictCallers",
    "allow_files",
    "decision_of",
    "files_of",
    "hash_of_item",
    "is_loopback",
    "key_hash",
    "log_key",
    "new_loop",
    "parse_moment",
    "places_of",
    "read_records",
    "running",
    "secret_path",
    "serve",
    "server_context",
]

"""Server: the engine over HTTP, with the wire protocol of AWS.

Owns connections and their deadlines, response headers and checksums, SigV4 verification, the access log, and the queue
in which responses wait for a group commit. It uses the engine through `ServedEngine` and policies through a guard, and
knows nothing of entities or tables. There is no web framework, because it would cost more than the engine's own work
per request (docs/decisions/0018).
"""

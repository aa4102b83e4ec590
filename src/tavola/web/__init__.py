"""Web: what every browser application shares.

The guard in front of an application (host, origin, body size, headers, unexpected errors), problem responses, and serving
on a port. Knows no pages, tables or tickets; applications and studio bring those.
"""

from tavola.web.guard import (
    BODY_BYTES_MAX,
    CONTENT_SECURITY_POLICY,
    MEGABYTE,
    Guard,
    Upload,
    is_loopback,
    placed,
    put_under,
)
from tavola.web.problems import (
    HTTP_STATUSES,
    MEDIA_TYPE,
    URN,
    Problem,
    ProblemError,
    not_found,
    of_status,
    too_large,
    unexpected,
)
from tavola.web.serving import MAY_LEAVE, Address, AddressTaken, Serving, open_sockets, serve, serving

__all__ = [
    "BODY_BYTES_MAX",
    "CONTENT_SECURITY_POLICY",
    "HTTP_STATUSES",
    "MAY_LEAVE",
    "MEDIA_TYPE",
    "MEGABYTE",
    "URN",
    "Address",
    "AddressTaken",
    "Guard",
    "Problem",
    "ProblemError",
    "Serving",
    "Upload",
    "is_loopback",
    "not_found",
    "of_status",
    "open_sockets",
    "placed",
    "put_under",
    "serve",
    "serving",
    "too_large",
    "unexpected",
]

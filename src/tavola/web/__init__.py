"""Web: what every browser application shares.

The guard in front of an application (host, origin, body size, headers, unexpected errors), problem responses, and serving
on a port. Knows no pages, tables or tickets; applications and studio bring those.
"""

from tavola.web.guard import (
    BODY_BYTES_MAX,
    CONTENT_SECURITY_POLICY,
    MEGABYTE,
    RequestGuard,
    Upload,
    apply_base_path,
    describe_frames,
    is_loopback,
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
from tavola.web.serving import (
    CANCEL_ON_DISCONNECT,
    Address,
    AddressTaken,
    RunningServer,
    open_sockets,
    running_server,
    serve,
)

__all__ = [
    "BODY_BYTES_MAX",
    "CANCEL_ON_DISCONNECT",
    "CONTENT_SECURITY_POLICY",
    "HTTP_STATUSES",
    "MEDIA_TYPE",
    "MEGABYTE",
    "URN",
    "Address",
    "AddressTaken",
    "Problem",
    "ProblemError",
    "RequestGuard",
    "RunningServer",
    "Upload",
    "apply_base_path",
    "describe_frames",
    "is_loopback",
    "not_found",
    "of_status",
    "open_sockets",
    "running_server",
    "serve",
    "too_large",
    "unexpected",
]

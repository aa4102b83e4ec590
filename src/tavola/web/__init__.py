"""Web: what the applications and the studio share.

The request guard in front of an application, error responses, static files with compression, and serving on a port. It knows
no pages or tables.
"""

from tavola.web.guard import (
    BODY_BYTES_MAX,
    CONTENT_SECURITY_POLICY,
    MEGABYTE,
    RequestGuard,
    Upload,
    apply_base_path,
    describe_frames,
)
from tavola.web.problems import (
    HTTP_STATUSES,
    MEDIA_TYPE,
    URN,
    Problem,
    ProblemError,
    not_found,
    problem_for_status,
    too_large,
    unexpected_error,
)
from tavola.web.serving import (
    CANCEL_ON_DISCONNECT,
    AddressTaken,
    ListenAddress,
    RunningServer,
    open_sockets,
    running_server,
    serve,
)
from tavola.web.static import Compression, HashedFiles

__all__ = [
    "BODY_BYTES_MAX",
    "CANCEL_ON_DISCONNECT",
    "CONTENT_SECURITY_POLICY",
    "HTTP_STATUSES",
    "MEDIA_TYPE",
    "MEGABYTE",
    "URN",
    "AddressTaken",
    "Compression",
    "HashedFiles",
    "ListenAddress",
    "Problem",
    "ProblemError",
    "RequestGuard",
    "RunningServer",
    "Upload",
    "apply_base_path",
    "describe_frames",
    "not_found",
    "open_sockets",
    "problem_for_status",
    "running_server",
    "serve",
    "too_large",
    "unexpected_error",
]

"""Shell: what the faces of the three applications share.

Holds the FastAPI application before its routes (problems, guards, health, measures), pages and charts, the opened store, and
the task that follows a stream. Knows no ticket and no review.
"""

from tavola.apps.shell import charts
from tavola.apps.shell.application import Shell, new_application, problem_answer, shell_of, wants_page
from tavola.apps.shell.declarations import problems
from tavola.apps.shell.etags import etag_of, not_modified, require_match
from tavola.apps.shell.followers import Follower, StreamProjector, describe_cause
from tavola.apps.shell.pages import Link, Pages
from tavola.apps.shell.paging import Paged, next_query, page_response
from tavola.apps.shell.problems import field_errors, member_of, problem_of
from tavola.apps.shell.requests import (
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    cursor_of,
    idempotency_key,
    invalid_parameter,
    limit_of,
    parameters,
)
from tavola.apps.shell.responses import JSON, json_response, resource_path
from tavola.apps.shell.start import Mounted, Start, start_page
from tavola.apps.shell.stores import (
    OpenedStore,
    Secrets,
    Settings,
    SettingsRefused,
    opened_store,
    ready_tables,
)
from tavola.web import (
    Address,
    AddressTaken,
    ProblemError,
    RunningServer,
    Upload,
    not_found,
    running_server,
    serve,
    too_large,
)

__all__ = [
    "JSON",
    "Address",
    "AddressTaken",
    "Cursor",
    "Follower",
    "IdempotencyKey",
    "IfMatch",
    "Limit",
    "Link",
    "Mounted",
    "OpenedStore",
    "Paged",
    "Pages",
    "ProblemError",
    "RunningServer",
    "Secrets",
    "Settings",
    "SettingsRefused",
    "Shell",
    "Start",
    "StreamProjector",
    "Upload",
    "charts",
    "cursor_of",
    "describe_cause",
    "etag_of",
    "field_errors",
    "idempotency_key",
    "invalid_parameter",
    "json_response",
    "limit_of",
    "member_of",
    "new_application",
    "next_query",
    "not_found",
    "not_modified",
    "opened_store",
    "page_response",
    "parameters",
    "problem_answer",
    "problem_of",
    "problems",
    "ready_tables",
    "require_match",
    "resource_path",
    "running_server",
    "serve",
    "shell_of",
    "start_page",
    "too_large",
    "wants_page",
]

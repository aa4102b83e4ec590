"""Shell: what the applications share.

The FastAPI application that each starts from, pages and charts, REST conventions, error responses, the opened store, and the
task that follows a table's stream. It knows no tickets and no reviews.
"""

from tavola.apps.shell import charts
from tavola.apps.shell.application import Shell, new_application, problem_response, shell_of, wants_page
from tavola.apps.shell.followers import Follower, StreamProjector, describe_cause
from tavola.apps.shell.openapi import problems
from tavola.apps.shell.pages import Link, Pages
from tavola.apps.shell.problems import field_errors, member_of, problem_of
from tavola.apps.shell.rest import (
    JSON,
    Cursor,
    IdempotencyKey,
    IfMatch,
    Limit,
    Paged,
    PageQuery,
    cursor_of,
    etag_of,
    idempotency_key,
    invalid_parameter,
    json_response,
    limit_of,
    next_query,
    not_modified,
    page_response,
    parameters,
    require_match,
    resource_path,
)
from tavola.apps.shell.start import Mounted, Start, start_page
from tavola.apps.shell.stores import (
    AppSettings,
    OpenedStore,
    Secrets,
    SettingsRefused,
    ensure_tables,
    opened_store,
)
from tavola.web import (
    AddressTaken,
    ListenAddress,
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
    "AddressTaken",
    "AppSettings",
    "Cursor",
    "Follower",
    "IdempotencyKey",
    "IfMatch",
    "Limit",
    "Link",
    "ListenAddress",
    "Mounted",
    "OpenedStore",
    "PageQuery",
    "Paged",
    "Pages",
    "ProblemError",
    "RunningServer",
    "Secrets",
    "SettingsRefused",
    "Shell",
    "Start",
    "StreamProjector",
    "Upload",
    "charts",
    "cursor_of",
    "describe_cause",
    "ensure_tables",
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
    "problem_of",
    "problem_response",
    "problems",
    "require_match",
    "resource_path",
    "running_server",
    "serve",
    "shell_of",
    "start_page",
    "too_large",
    "wants_page",
]

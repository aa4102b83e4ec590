"""The access log, and explanations of access decisions.

Log records are returned as written, as `tavola log --json` prints them. An explanation is the document of `tavola iam explain
--json`, based on the live tables' keys, tags and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, TypeVar, cast

import msgspec

from tavola.client.connection import AsyncConnection
from tavola.errors import TavolaError
from tavola.iam import (
    ACTIONS,
    AccessExplanation,
    ConditionMisfit,
    ConnectionProperties,
    Directory,
    ExplainedDecision,
    Guards,
    NotInDirectory,
    Principal,
    UnknownConditionKey,
    explain_action,
    explain_request,
    render_explanation,
    unknown_actions,
    unknown_keys,
)
from tavola.protocol.arns import Scope, table_name_of
from tavola.protocol.operations import OPERATIONS
from tavola.protocol.resources import TableFacts
from tavola.studio.endpoint import SEE_POLICIES, SEE_REQUESTS, Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import LogQuery, Studio
from tavola.studio.table_layouts import parse_layout
from tavola.studio.types import ApiMessage, Document, NoParameters

R = TypeVar("R")
_TABLES_MAX = 100  # a transaction has at most 100 actions


class LiveFacts:
    """Table facts for access decisions, loaded from live tables when a decision needs them."""

    def __init__(self, db: AsyncConnection) -> None:
        self._db = db
        self._known: dict[str, TableFacts | None] = {}
        self._requested: dict[str, None] = {}

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return the facts of a table if they are loaded; otherwise note that they are needed."""
        name = table_name_of(name_or_arn)
        if name not in self._known:
            self._requested[name] = None
        return self._known.get(name)

    def iterator_stream(self, iterator: str) -> str | None:
        """Return None: only the engine that issued a shard iterator can read it."""
        return None

    async def resolve(self, decide: Callable[[], R]) -> R:
        """Call `decide` until all facts that it needs are loaded, and return its result."""
        while True:
            self._requested.clear()
            error: TavolaError | None = None
            answer: R | None = None
            try:
                answer = decide()
            except TavolaError as raised:
                error = raised  # possibly because a table is not loaded yet
            missing = tuple(self._requested)
            if not missing or len(self._known) >= _TABLES_MAX:
                if error is not None:
                    raise error
                return cast("R", answer)
            for name in missing:
                await self.load(name)

    async def load(self, name_or_arn: str) -> None:
        """Load the facts of a table; None if it does not exist."""
        name = table_name_of(name_or_arn)
        if name in self._known or name == "*":
            return
        try:
            described = (await self._db.call("DescribeTable", {"TableName": name}))["Table"]
        except TavolaError:
            self._known[name] = None
            return
        arn, layout = described["TableArn"], parse_layout(described)
        stream = described.get("LatestStreamArn")
        stream_policy = None if stream is None else await self._policy(stream)
        self._known[name] = TableFacts(
            arn=arn,
            hash=layout.table_target.hash[0],
            range=next(iter(layout.table_target.range), None),
            types=layout.types,
            indexes={index.index or "": (index.hash, index.range) for index in layout.indexes},
            tags=await self._tags(arn),
            policy=await self._policy(arn),
            stream_policies={} if stream_policy is None else {stream: stream_policy},
        )

    async def _tags(self, arn: str) -> dict[str, str]:
        try:
            answer = await self._db.call("ListTagsOfResource", {"ResourceArn": arn})
        except TavolaError:
            return {}
        return {tag["Key"]: tag["Value"] for tag in answer.get("Tags", ())}

    async def _policy(self, arn: str) -> str | None:
        try:
            answer: dict[str, Any] = await self._db.call("GetResourcePolicy", {"ResourceArn": arn})
        except TavolaError:
            return None  # DynamoDB reports a missing policy as a fault
        return answer.get("Policy")


_PAGE_MAX = 1000
_REACH_MAX = 20_000  # records that can be paged through with one set of filters


@dataclass(frozen=True, slots=True)
class LogRequest(LogQuery):
    """One page of the matching records, newest first; for further pages, `until_s` is that of the first page."""

    skip: int = 0  # records on earlier pages


class LogRow(ApiMessage):
    """A summary of a record, and the record itself."""

    time: str
    caller: str
    operation: str
    places: tuple[str, ...]  # tables, and `table/index` for index reads
    answer: str  # `ok`, or the error code
    decision: str
    decided_by: str
    took_ms: float | None
    reads: float
    writes: float
    record: Document


class LogPage(ApiMessage):
    """A page of records, newest first."""

    rows: tuple[LogRow, ...]
    more: bool
    deep: bool  # there are more records than can be paged through: use narrower filters
    until_s: float  # for the next page's request, so that new records do not shift the pages


async def read_log(studio: Studio, params: LogRequest) -> LogPage:
    """Return a page of the access log."""
    reader = studio.require_log()
    until_s = params.until_s if params.until_s is not None else studio.clock.now() + 1.0
    skip = max(0, min(params.skip, _REACH_MAX))
    limit = max(0, min(max(1, params.limit), _PAGE_MAX, _REACH_MAX - skip))
    filters: dict[str, Any] = {field.name: getattr(params, field.name) or None for field in fields(LogQuery)}
    query = LogQuery(**{**filters, "since_s": params.since_s, "until_s": until_s, "limit": skip + limit + 1})
    records = await studio.run_in_thread(lambda: list(islice(reader(query), skip, skip + limit + 1)))
    further = len(records) > limit
    deep = further and skip + limit >= _REACH_MAX
    return LogPage(tuple(_log_row(record) for record in records[:limit]), further and not deep, deep, until_s)


def _log_row(record: Mapping[str, Any]) -> LogRow:
    identity = record.get("userIdentity") or {}
    details = record.get("additionalEventData") or {}
    parameters = record.get("requestParameters") or {}
    units = details.get("consumed") or ()
    places = dict.fromkeys(
        place["tableName"] + (f"/{place['indexName']}" if "indexName" in place else "")
        for place in parameters.get("tables", (parameters,) if parameters else ())
        if "tableName" in place
    )
    answer = record.get("errorCode") or (f"{details['dropped']} dropped" if "dropped" in details else "ok")
    return LogRow(
        time=str(record.get("eventTime", "")),
        caller=identity.get("userName") or identity.get("arn") or identity.get("accessKeyId") or "",
        operation=str(record.get("eventName", "")),
        places=tuple(places),
        answer=str(answer),
        decision=str(details.get("decision") or ""),
        decided_by=str(details.get("decidedBy") or ""),
        took_ms=details.get("latencyMs"),
        reads=sum(unit.get("reads", 0.0) for unit in units),
        writes=sum(unit.get("writes", 0.0) for unit in units),
        record=record,
    )


class PrincipalRow(ApiMessage):
    """A user, role or root user with the names of its policies."""

    principal: Principal
    policies: tuple[str, ...]


class PrincipalList(ApiMessage):
    """The principals, operations and actions to choose from, and unknown names in policies."""

    principals: tuple[PrincipalRow, ...]
    operations: tuple[str, ...]
    actions: tuple[str, ...]
    warnings: tuple[str, ...]


async def list_principals(studio: Studio, params: NoParameters) -> PrincipalList:
    """Return the principals, operations and actions that can be explained."""
    directory = _load_directory(studio)
    rows: list[PrincipalRow] = []
    for number, account in sorted(directory.accounts.items()):
        principals = [directory.user(number, name) for name in sorted(account.users)]
        principals += [directory.role_session(number, name) for name in sorted(account.roles)]
        rows += (_principal_row(directory, principal) for principal in (*principals, directory.root(number)))
    unknown = [
        f"{place} names the action {action}, which DynamoDB does not have."
        for place, action in unknown_actions(directory)
    ]
    unknown += [
        f"{place} names the condition key {key}, which AWS does not have"
        + (f"; did you mean {suggestion}?" if suggestion else ".")
        for place, key, suggestion in unknown_keys(directory)
    ]
    return PrincipalList(tuple(rows), tuple(sorted(OPERATIONS)), tuple(sorted(ACTIONS)), tuple(unknown))


def _principal_row(directory: Directory, principal: Principal) -> PrincipalRow:
    return PrincipalRow(principal, tuple(policy.name for policy in directory.policies_of(principal).identity))


def _load_directory(studio: Studio) -> Directory:
    if studio.directory is None:
        raise RequestRefused(
            "directory-missing",
            "Access control is off",
            "The studio was started without an IAM file, so every request is allowed.",
            "Create one with `tavola iam init` and use it: tavola serve FILE --studio --iam iam.json",
            status=409,
        )
    return studio.directory()


class ExplainRequest(ApiMessage):
    """A principal with a request (`operation`, `request`), or with an action on a resource (`action`, `resource`)."""

    principal: str  # an ARN, or the name of a user or role
    account: str | None = None
    operation: str | None = None
    request: Document | None = None
    action: str | None = None
    resource: str | None = None  # a table's name, an ARN or *
    keys: tuple[str, ...] = ()  # partition-key values
    context: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # other condition keys
    source_ip: str | None = None
    secure: bool = True


async def explain_access(studio: Studio, params: ExplainRequest) -> AccessExplanation:
    """Return whether a principal may do something, and which statement decides."""
    directory = _load_directory(studio)
    account = params.account or (next(iter(directory.accounts)) if len(directory.accounts) == 1 else None)
    if account is None and not params.principal.startswith("arn:"):
        raise NotInDirectory(
            f"there are {len(directory.accounts)} accounts; give {params.principal} as an ARN"
        )
    principal = directory.principal(params.principal, account or "")
    scope = Scope(principal.account, studio.where.region or "us-east-1")
    properties = ConnectionProperties(source_ip=params.source_ip or None, secure=params.secure)
    guard = Guards(studio.clock).guard(directory, principal, scope, properties)
    facts = LiveFacts(studio.db)
    explained: tuple[ExplainedDecision, ...]
    if params.operation and params.request is not None:
        operation, body = params.operation, msgspec.json.encode(params.request)
        if operation.removeprefix("dynamodb:") not in OPERATIONS:
            raise RequestRefused(
                "operation-unknown", "Unknown operation", f"DynamoDB has no operation {operation}."
            )
        try:
            explained = await facts.resolve(lambda: explain_request(guard, operation, body, facts))
        except UnknownConditionKey as error:
            raise RequestRefused(
                "table-missing", "Table not found", str(error), "Choose an existing table.", status=404
            ) from error
        except ConditionMisfit as error:
            raise RequestRefused(
                "condition-misfit",
                "The key condition does not match the key",
                str(error),
                "Use the key attributes of the table or index that the request reads.",
            ) from error
    elif params.action and params.resource:
        await facts.load(params.resource)
        known = facts.facts(params.resource)
        explained = (
            explain_action(
                guard,
                params.action,
                params.resource,
                scope,
                keys=params.keys,
                context=params.context,
                facts=known,
            ),
        )
    else:
        raise RequestRefused(
            "question-missing",
            "Incomplete request",
            "The request has neither an operation with its parameters nor an action with a resource.",
            "Enter one of the two.",
        )
    return render_explanation(principal, explained)


ENDPOINTS = (
    Endpoint("GET", "/access/log", read_log, permission=SEE_REQUESTS),
    Endpoint("GET", "/access/principals", list_principals, permission=SEE_POLICIES),
    Endpoint("POST", "/access/explain", explain_access, permission=SEE_POLICIES),
)

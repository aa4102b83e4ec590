"""The access log, and explanations of access decisions.

Log records are returned as written, as `tavola log --json` prints them. An explanation is the document of `tavola iam explain
--json`, based on the live tables' keys, tags and policies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, Literal, TypeVar, cast

import msgspec

from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.iam import (
    ACTIONS,
    ConditionMisfit,
    ConnectionProperties,
    Directory,
    ExplainedDecision,
    Guards,
    KeyUnknown,
    NotInDirectory,
    Principal,
    explain_action,
    explain_request,
    render_explanation,
    unknown_actions,
    unknown_keys,
)
from tavola.protocol.arns import Scope
from tavola.protocol.operations import OPERATIONS
from tavola.protocol.resources import TableFacts
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import LogQuery, Studio
from tavola.studio.table_layouts import parse_layout
from tavola.studio.types import Document, NoParameters

R = TypeVar("R")
_TABLES_MAX = 100  # a transaction names no more


class LiveFacts:
    """The tables of a connection, as far as they were asked for."""

    def __init__(self, db: AsyncConnection) -> None:
        self._db = db
        self._known: dict[str, TableFacts | None] = {}
        self._requested: dict[str, None] = {}

    def facts(self, name_or_arn: str) -> TableFacts | None:
        """Return what is known of a table; what is not known yet is noted to be asked for."""
        name = _table(name_or_arn)
        if name not in self._known:
            self._requested[name] = None
        return self._known.get(name)

    def iterator_stream(self, iterator: str) -> str | None:
        """Return nothing: an iterator means something to the engine that gave it."""
        return None

    async def resolve(self, question: Callable[[], R]) -> R:
        """Return the answer to a question that asks for facts, once all that it asks for is known."""
        while True:
            self._requested.clear()
            error: TavolaError | None = None
            answer: R | None = None
            try:
                answer = question()
            except TavolaError as raised:
                error = raised  # it may be one of a table that is not known yet
            missing = tuple(self._requested)
            if not missing or len(self._known) >= _TABLES_MAX:
                if error is not None:
                    raise error
                return cast("R", answer)
            for name in missing:
                await self.load(name)

    async def load(self, name_or_arn: str) -> None:
        """Ask for a table; one that is not there is known to be none."""
        name = _table(name_or_arn)
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
            indexes={each.index or "": (each.hash, each.range) for each in layout.indexes},
            tags=await self._tags(arn),
            policy=await self._policy(arn),
            stream_policies={} if stream_policy is None else {stream: stream_policy},
        )

    async def _tags(self, arn: str) -> dict[str, str]:
        try:
            answer = await self._db.call("ListTagsOfResource", {"ResourceArn": arn})
        except TavolaError:
            return {}
        return {each["Key"]: each["Value"] for each in answer.get("Tags", ())}

    async def _policy(self, arn: str) -> str | None:
        try:
            answer: dict[str, Any] = await self._db.call("GetResourcePolicy", {"ResourceArn": arn})
        except TavolaError:
            return None  # there is none, which is told as a fault
        return answer.get("Policy")


def _table(name_or_arn: str) -> str:
    return name_or_arn.partition(":table/")[2].partition("/")[0] or name_or_arn


_PAGE_MAX = 1000
_REACH_MAX = 20_000  # records that one may page back through; further back a narrower question leads


@dataclass(frozen=True, slots=True)
class LogRequest(LogQuery):
    """One page of the matching records, newest first; for further pages, `until_s` is that of the first page."""

    skip: int = 0  # records on earlier pages


@dataclass(frozen=True, slots=True)
class LogRow:
    """A record in short, and as it is written."""

    time: str
    caller: str
    operation: str
    places: tuple[str, ...]  # tables, and indexes that were read
    answer: str  # ok, or the code of the fault
    decision: str
    decided_by: str
    took_ms: float | None
    reads: float
    writes: float
    record: Document


@dataclass(frozen=True, slots=True)
class LogPage:
    """Records, the newest first."""

    rows: tuple[LogRow, ...]
    more: bool
    deep: bool  # there are more than one may page back through: a narrower question leads further
    until_s: float  # to be given for the next page, so that records which come meanwhile do not shift it


async def read_log(studio: Studio, params: LogRequest) -> LogPage:
    """Return records of the access log."""
    reader = studio.log
    if reader is None:
        raise RequestRefused(
            "log-missing",
            "No access log is kept",
            "The studio was given no access log to read.",
            "Keep one: tavola serve FILE --studio --access-log access.log",
            status=409,
        )
    until_s = params.until_s if params.until_s is not None else studio.clock.now() + 1.0
    skip = max(0, min(params.skip, _REACH_MAX))
    limit = max(0, min(max(1, params.limit), _PAGE_MAX, _REACH_MAX - skip))
    filters: dict[str, Any] = {each.name: getattr(params, each.name) or None for each in fields(LogQuery)}
    query = LogQuery(**{**filters, "since_s": params.since_s, "until_s": until_s, "limit": skip + limit + 1})
    records = await studio.run_in_thread(lambda: list(islice(reader(query), skip, skip + limit + 1)))
    further = len(records) > limit
    deep = further and skip + limit >= _REACH_MAX
    return LogPage(tuple(_log_row(record) for record in records[:limit]), further and not deep, deep, until_s)


def _log_row(record: Mapping[str, Any]) -> LogRow:
    identity = record.get("userIdentity") or {}
    beside = record.get("additionalEventData") or {}
    parameters = record.get("requestParameters") or {}
    units = beside.get("consumed") or ()
    places = dict.fromkeys(
        place["tableName"] + (f"/{place['indexName']}" if "indexName" in place else "")
        for place in parameters.get("tables", (parameters,) if parameters else ())
        if "tableName" in place
    )
    answer = record.get("errorCode") or (f"{beside['dropped']} dropped" if "dropped" in beside else "ok")
    return LogRow(
        time=str(record.get("eventTime", "")),
        caller=identity.get("userName") or identity.get("arn") or identity.get("accessKeyId") or "",
        operation=str(record.get("eventName", "")),
        places=tuple(places),
        answer=str(answer),
        decision=str(beside.get("decision") or ""),
        decided_by=str(beside.get("decidedBy") or ""),
        took_ms=beside.get("latencyMs"),
        reads=sum(unit.get("reads", 0.0) for unit in units),
        writes=sum(unit.get("writes", 0.0) for unit in units),
        record=record,
    )


@dataclass(frozen=True, slots=True)
class PrincipalRow:
    """Somebody who may ask for something."""

    arn: str
    name: str
    account: str
    kind: Literal["user", "role", "root"]
    policies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Principals:
    """Who there is, which operations and actions there are, and what policies name that exists nowhere."""

    principals: tuple[PrincipalRow, ...]
    operations: tuple[str, ...]
    actions: tuple[str, ...]
    warnings: tuple[str, ...]


async def list_principals(studio: Studio, params: NoParameters) -> Principals:
    """Return the principals, operations and actions that can be explained."""
    directory = _load_directory(studio)
    rows: list[PrincipalRow] = []
    for number, account in sorted(directory.accounts.items()):
        principals = [directory.user(number, name) for name in sorted(account.users)]
        principals += [directory.role_session(number, name) for name in sorted(account.roles)]
        rows += (_principal_row(directory, each) for each in (*principals, directory.root(number)))
    unknown = [
        f"DynamoDB has no action {action}, which {place} names."
        for place, action in unknown_actions(directory)
    ]
    unknown += [
        f"AWS has no condition key {key}, which {place} names{f'; did you mean {suggestion}?' if suggestion else '.'}"
        for place, key, suggestion in unknown_keys(directory)
    ]
    return Principals(tuple(rows), tuple(sorted(OPERATIONS)), tuple(sorted(ACTIONS)), tuple(unknown))


def _principal_row(directory: Directory, principal: Principal) -> PrincipalRow:
    names = tuple(policy.name for policy in directory.policies_of(principal).identity)
    kind: Literal["user", "role", "root"] = "role" if principal.kind == "session" else principal.kind
    return PrincipalRow(principal.arn, principal.name, principal.account, kind, names)


def _load_directory(studio: Studio) -> Directory:
    if studio.directory is None:
        raise RequestRefused(
            "directory-missing",
            "There are no users and policies",
            "The studio was given no file of users, roles and policies, so everybody may do everything.",
            "Make one with `tavola iam init` and name it: tavola serve FILE --studio --iam iam.json",
            status=409,
        )
    return studio.directory()


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """May somebody make a request (`operation`, `request`), or do something to a resource (`action`, `resource`)?"""

    principal: str  # an ARN, or the name of a user or role
    account: str | None = None
    operation: str | None = None
    request: Document | None = None
    action: str | None = None
    resource: str | None = None  # a table's name, an ARN or *
    keys: tuple[str, ...] = ()  # partition-key values
    context: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # other condition keys
    source_ip: str | None = None
    secure: bool = True


@dataclass(frozen=True, slots=True)
class DecidingStatement:
    """A statement of a policy, and where it stands."""

    source: str
    policy: str
    statement: str
    sid: str | None
    effect: Literal["Allow", "Deny"]


@dataclass(frozen=True, slots=True)
class ConsideredStatement(DecidingStatement):
    """A statement that was considered, and its outcome."""

    outcome: str
    condition: str | None  # the place of the one that does not hold


@dataclass(frozen=True, slots=True)
class ExplainedAccess:
    """One action on one resource: whether it is allowed, by what, and what was considered."""

    action: str
    resource: str
    allowed: bool
    reason: str
    decided_by: DecidingStatement | None
    considered: tuple[ConsideredStatement, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision on all that a request touches."""

    schema: str
    principal: str
    allowed: bool
    accesses: tuple[ExplainedAccess, ...]


async def explain_access(studio: Studio, params: ExplainRequest) -> Explanation:
    """Return whether somebody may do something, and which statement decides."""
    directory = _load_directory(studio)
    account = params.account or (next(iter(directory.accounts)) if len(directory.accounts) == 1 else None)
    if account is None and not params.principal.startswith("arn:"):
        raise NotInDirectory(
            f"there are {len(directory.accounts)} accounts; name {params.principal} by its ARN"
        )
    principal = directory.principal(params.principal, account or "")
    scope = Scope(principal.account, studio.where.region or "us-east-1")
    here = ConnectionProperties(source_ip=params.source_ip or None, secure=params.secure)
    guard = Guards(studio.clock).guard(directory, principal, scope, here)
    facts = LiveFacts(studio.db)
    explained: tuple[ExplainedDecision, ...]
    if params.operation and params.request is not None:
        operation, body = params.operation, msgspec.json.encode(params.request)
        if operation.removeprefix("dynamodb:") not in OPERATIONS:
            raise RequestRefused(
                "operation-unknown", "There is no such operation", f"{operation} is none of DynamoDB's."
            )
        try:
            explained = await facts.resolve(lambda: explain_request(guard, operation, body, facts))
        except KeyUnknown as error:
            raise RequestRefused(
                "table-missing",
                "The table is not there",
                str(error),
                "Name a table that is there.",
                status=404,
            ) from error
        except ConditionMisfit as error:
            raise RequestRefused(
                "condition-misfit",
                "The key condition is on another key",
                str(error),
                "Compare it with the key of the table or index of the request.",
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
            "Nothing is asked",
            "Either an operation with its request, or an action with a resource, says what is asked.",
            "Give one of the two.",
        )
    document = {"schema": "tavola.iam.explain/1", **render_explanation(principal, explained)}
    return msgspec.convert(document, Explanation)


ENDPOINTS = (
    Endpoint("GET", "/access/log", read_log),
    Endpoint("GET", "/access/principals", list_principals),
    Endpoint("POST", "/access/explain", explain_access),
)

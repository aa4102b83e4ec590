"""What a signed-in person may do: for each endpoint and each person exactly what IAM allows, and each call is logged.

The endpoints are those that are registered, so a new one is covered when it is added: without a request here the suite fails,
and an endpoint that goes around the caller's rights is found by the calls that reach the engine without a line in the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tavola.backends.credentials import Credentials
from tavola.clock import SYSTEM_CLOCK
from tavola.connections import connect
from tavola.engine import Engine, ItemAccess
from tavola.iam import DirectoryFile
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.server.authorization import StrictCallers
from tavola.server.listener import running
from tavola.server.safeguards import Safeguards
from tavola.studio import ENDPOINTS, Endpoint, Studio
from tavola.studio.endpoint import SEE_POLICIES, SEE_REQUESTS
from tavola.studio.types import NoParameters
from tests.studio.strict_studio import (
    ACCOUNT,
    ADMIN,
    BARRED,
    CLERK,
    KEEPER,
    NOVICE,
    OTHER_ACCOUNT,
    REGION,
    Browser,
    LoggedCall,
    StrictStudio,
    strict_studio,
)

ORDER = {"pk": {"S": "ORDER#o001"}, "sk": {"S": "ORDER"}}
READING = {"meter": {"N": "1"}, "at": {"N": "1"}}
SOON = "2026-09-21T14:13:20Z"
QUESTION = {"table": "bookshop"}
SELECTION = {"table": "readings", "keys": [READING]}
DESIGN = "tests.studio.bookshop"
ARN = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/readings"
REQUESTS: Mapping[str, dict[str, Any]] = {
    "GET /session": {},
    "POST /samples": {},
    "GET /tables/describe": QUESTION,
    "GET /items/forms": QUESTION,
    "POST /tables/create": {"table": "bookshop"},
    "GET /changes": {"table": "none"},  # with a stream it has no end: see test_sign_in
    "POST /changes/stream": {"table": "readings"},
    "GET /changes/page": {"table": "readings"},
    "GET /changes/stream": QUESTION,
    "POST /items/get": {"table": "bookshop", "key": ORDER},
    "POST /items/measure": {"table": "readings", "item": READING},
    "POST /items/put": {"table": "readings", "item": {"meter": {"N": "8"}, "at": {"N": "8"}}},
    "POST /items/delete": {"table": "readings", "before": {"meter": {"N": "8"}, "at": {"N": "8"}}},
    "POST /items/undo": {
        "table": "readings",
        "before": {"meter": {"N": "9"}, "at": {"N": "9"}},
        "after": None,
    },
    "POST /bulk/preview": {"selection": SELECTION, "action": {"kind": "delete"}},
    "POST /bulk/run": {"selection": SELECTION, "action": {"kind": "delete"}},
    "GET /export": {"table": "readings", "form": "json"},
    "POST /export": {"selection": SELECTION, "form": "json"},
    "POST /import/check": {"table": "readings", "text": '{"meter": 7, "at": 7}\n', "form": "json"},
    "POST /import/run": {
        "table": "readings",
        "text": '{"meter": 7, "at": 7}\n',
        "form": "json",
        "last": True,
    },
    "POST /past": {"table": "readings", "on": True},
    "POST /past/restore": {"table": "readings", "to": "restored"},
    "GET /past/restore": {"table": "readings"},
    "GET /past/backups": {"table": "readings"},
    "POST /past/backups": {"table": "readings", "name": "kept"},
    "POST /past/backups/restore": {"arn": f"{ARN}/backup/01700000000000-00000000", "to": "again"},
    "GET /past": {"table": "readings"},
    "POST /past/history": {"table": "readings", "key": READING},
    "POST /past/then": {"table": "readings", "key": READING, "then": SOON},
    "POST /past/put-back": {"table": "readings", "key": READING, "at": SOON},
    "POST /browse/plan": QUESTION,
    "POST /browse/page": {"question": QUESTION},
    "POST /browse/collection": {"table": "bookshop", "key": ORDER},
    "POST /browse/members": {"table": "bookshop", "index": "by_price", "keys": [ORDER]},
    "POST /browse/statement": {"table": "readings", "statement": 'SELECT * FROM "readings"'},
    "POST /browse/statement-plan": {"table": "readings", "statement": 'SELECT * FROM "readings"'},
    "POST /browse/code": QUESTION,
    "POST /browse/item-code": {"table": "bookshop", "key": ORDER},
    "GET /patterns": {},
    "GET /patterns/example": {"pattern": "bookshop/Order.Key"},
    "GET /patterns/forecast": {"pattern": "bookshop/Order.Key"},
    "GET /patterns/coverage": {},
    "POST /patterns/plan": {
        "pattern": "bookshop/Order.Key",
        "values": [{"name": "order_id", "value": "o001"}],
    },
    "POST /patterns/run": {
        "pattern": "bookshop/Order.Key",
        "values": [{"name": "order_id", "value": "o001"}],
    },
    "GET /operations": {},
    "GET /operations/expensive-requests": {},
    "GET /operations/failed-calls": {},
    "POST /operations/replay": {"operation": "GetItem", "request": {"TableName": "bookshop", "Key": ORDER}},
    "POST /operations/sample": {"table": "readings"},
    "GET /operations/limits": {},
    "GET /access/log": {},
    "GET /access/principals": {},
    "POST /access/explain": {"principal": "clerk", "action": "dynamodb:GetItem", "resource": "bookshop"},
    "GET /heat": QUESTION,
    "GET /heat/cell": {"table": "bookshop", "layout": "none", "row": 0, "from_s": 0, "to_s": 1},
    "GET /heat/hottest": QUESTION,
    "POST /heat/simulate": {"hours": 0.01, "table": "readings"},
    "GET /heat/simulate/progress": {"run": "none"},
    "POST /heat/simulate/end": {"run": "none"},
    "POST /design": {},
    "POST /design/findings": {},
    "GET /design/rules": {},
    "POST /design/remedy": {"finding": "unused-index-0"},
    "POST /design/drift": {},
    "POST /design/document": {},
    "POST /design/solve": {"alternatives": 1},
    "POST /design/infrastructure": {"form": "terraform"},
    "POST /design/import": {"text": "x"},
    "GET /design/live": {"table": "readings"},
    "POST /design/targets": {},
    "POST /cost": {},
    "POST /cost/curve": {},
    "POST /cost/calculate": {},
    "POST /cost/csv": {},
    "POST /cost/design": {},
    "GET /cost/options": {},
    "GET /cost/vectors": {},
}
REFUSED = {  # by these requests, whoever sends them
    "GET /changes": "ResourceNotFoundException",
    "POST /past/backups/restore": "BackupNotFoundException",
    "POST /past/put-back": "item-missing",
    "GET /heat/cell": "map-gone",
    "POST /heat/simulate": "simulation-refused",
    "POST /design/remedy": "finding-unknown",
    "POST /design/import": "import-refused",
}
PEOPLE = {"admin": ADMIN, "keeper": KEEPER, "clerk": CLERK, "novice": NOVICE, "barred": BARRED}
STUDIO_EVENTS = {"LookupEvents", "SimulatePrincipalPolicy"}
SLOW = {"POST /design/solve", "POST /heat/simulate"}  # no request of theirs reaches a table


@dataclass(frozen=True, slots=True)
class EngineCall:
    """A call that the engine executed."""

    operation: str
    scope: Scope
    body: bytes


class EngineCalls:
    """An observer: every call that reached the engine."""

    def __init__(self) -> None:
        self.calls: list[EngineCall] = []

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Keep a call."""
        self.calls.append(EngineCall(operation, scope, body))


@dataclass(frozen=True, slots=True)
class Visit:
    """One endpoint called by one person: the response, what reached the engine, and what was logged."""

    status: int
    problem: dict[str, Any] | None
    text: str
    executed: list[EngineCall]
    logged: list[LoggedCall]

    @property
    def unlogged(self) -> int:
        """The number of calls that the engine executed without a record of the person."""
        return len(self.executed) - sum(call.operation not in STUDIO_EVENTS for call in self.logged)

    @property
    def denials(self) -> list[str]:
        """The messages of the calls that no policy allowed."""
        return [
            str(call.fault)
            for call in self.logged
            if call.fault is not None and call.fault.code == "AccessDeniedException"
        ]


def visit(strict: StrictStudio, browser: Browser, name: str, request: dict[str, Any]) -> Visit:
    """Call an endpoint."""
    seen = EngineCalls()
    strict.engine.observe(seen)
    strict.log.calls.clear()
    response = browser.call(name, request)
    problem = None
    if response.headers["content-type"] == "application/json":
        document = response.json()
        problem = document.get("problem") if isinstance(document, dict) else None
    return Visit(response.status_code, problem, response.text, seen.calls, list(strict.log.calls))


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrictStudio]:
    """One studio for the whole table, on a bookshop."""
    with strict_studio(tmp_path_factory.mktemp("strict")) as result:
        yield result


@pytest.fixture(scope="module")
def browsers(strict: StrictStudio) -> dict[str, Browser]:
    """A browser for each person."""
    return {name: strict.signed_in(key) for name, key in PEOPLE.items()}


def test_every_endpoint_has_a_request() -> None:
    """A new endpoint needs a request here, and so it is covered by every test below."""
    assert set(REQUESTS) == {endpoint.name for endpoint in ENDPOINTS}


def test_the_requests_are_answered(tmp_path: Path) -> None:
    """For an administrator each request is answered, so a refusal below is about rights."""
    with strict_studio(tmp_path) as strict:
        browser = strict.signed_in(ADMIN)
        visits = {name: visit(strict, browser, name, request) for name, request in REQUESTS.items()}

    refused = {
        name: result.problem["code"]
        for name, result in visits.items()
        if result.status != 200 and result.problem is not None
    }
    assert refused == REFUSED
    assert sum(bool(result.executed) for result in visits.values()) > 40


@pytest.mark.parametrize("name", REQUESTS)
def test_without_a_session_every_endpoint_is_refused(strict: StrictStudio, name: str) -> None:
    """Nothing is answered, nothing reaches the engine, and the response says how to sign in."""
    result = visit(strict, strict.browser(), name, REQUESTS[name])

    assert result.status == 401
    assert result.problem is not None
    assert result.problem["code"] == "sign-in-required"
    assert "sign in with an access key" in result.problem["remedy"]
    assert not result.executed
    assert not result.logged


def test_an_unknown_endpoint_does_not_show_itself(strict: StrictStudio) -> None:
    """Without a session, a path that does not exist is refused like one that does."""
    assert visit(strict, strict.browser(), "GET /nothing", {}).status == 401


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in SLOW])
@pytest.mark.parametrize("person", PEOPLE)
def test_an_endpoint_does_what_the_person_may_do(
    strict: StrictStudio, browsers: dict[str, Browser], person: str, name: str
) -> None:
    """I22: each call of an endpoint is logged as the person's own, and one that no policy allows is a clear refusal."""
    endpoint = next(endpoint for endpoint in ENDPOINTS if endpoint.name == name)
    result = visit(strict, browsers[person], name, REQUESTS[name])

    assert result.unlogged == 0
    assert {call.caller.identity["userName"] for call in result.logged} <= {person}
    assert {call.caller.source for call in result.logged} <= {"studio"}
    assert {call.scope.account for call in result.executed} <= {ACCOUNT}
    assert result.status != 500
    if result.status == 403:
        assert result.problem is not None
        assert result.problem["title"] == "Access denied"
        assert result.problem["detail"] in result.denials  # with its action and resource
        assert " is not authorized to perform: " in result.problem["detail"]
        assert " on resource: " in result.problem["detail"]
    if person == "admin":
        assert not result.denials
    if endpoint.permission and (
        person in ("keeper", "clerk", "novice") or "cloudtrail" in endpoint.permission
    ):
        assert (result.status == 403) == (person != "admin")
        assert bool(result.executed) <= (person == "admin")
    if endpoint.is_write and person in ("clerk", "novice"):
        assert all(call.fault is not None for call in result.logged if not _reads(call.operation))


def _reads(operation: str) -> bool:
    return operation.startswith(("Describe", "Get", "List", "Query", "Scan"))


def test_a_person_without_rights_sees_nothing(strict: StrictStudio, browsers: dict[str, Browser]) -> None:
    """For a person whom no policy allows anything, no call succeeds, and no response contains anything of an item."""
    for name, request in REQUESTS.items():
        if name in SLOW:
            continue
        result = visit(strict, browsers["novice"], name, request)
        assert all(call.fault is not None for call in result.logged), name
        assert "xxxxxxxx" not in result.text, name  # a note of every second order


# The same decisions as over HTTP.


def differing_decisions(
    strict: StrictStudio, browser: Browser, key: tuple[str, ...], requests: Mapping[str, dict[str, Any]]
) -> list[str]:
    """Return the calls that the studio and the endpoint over HTTP decide differently for one person."""
    calls: dict[tuple[str, bytes], bool] = {}
    for name, request in requests.items():
        for call in visit(strict, browser, name, request).logged:
            if call.operation not in STUDIO_EVENTS:
                calls[call.operation, call.body] = _is_denied(call.fault)
    strict.engine.observe(None)
    differing = []
    callers = StrictCallers(DirectoryFile(strict.folder / "iam.json"), SYSTEM_CLOCK)  # clients sign now
    with (
        running(strict.engine, safeguards=Safeguards(callers=callers)) as endpoint,
        connect(endpoint.url, region=REGION, credentials=Credentials(key[0], key[1])) as db,
    ):
        for (operation, body), is_denied in calls.items():
            fault: Fault | None = None
            try:
                db.call(operation, json.loads(body))
            except Fault as error:
                fault = error
            if _is_denied(fault) != is_denied:
                differing.append(f"{operation} {body.decode()}: {fault}")
    assert calls
    return differing


def _is_denied(fault: Fault | None) -> bool:
    return fault is not None and fault.code == "AccessDeniedException"


@pytest.mark.parametrize("person", PEOPLE)
def test_the_studio_decides_as_the_endpoint_does(tmp_path: Path, person: str) -> None:
    """I22 over HTTP: every call that the endpoints make for a person gets the same decision as when that person sends it over HTTP."""
    with strict_studio(tmp_path) as strict:
        requests = {name: request for name, request in REQUESTS.items() if name not in SLOW}
        browser = strict.signed_in(PEOPLE[person])
        assert not differing_decisions(strict, browser, PEOPLE[person], requests)


# Planted: endpoints that go around the caller's rights.


async def around_by_the_engine(studio: Studio, params: NoParameters) -> str:
    """Call the engine itself."""
    engine = _any_engine(studio)
    return json.dumps(engine.call("Scan", {"TableName": "readings", "Limit": 1}, Scope(ACCOUNT, REGION)))


async def around_by_a_backend(studio: Studio, params: NoParameters) -> str:
    """Open a connection of its own, without the caller."""
    from tavola.connections import connect_async

    async with connect_async(_any_engine(studio), region=REGION, account=ACCOUNT) as db:
        return json.dumps(await db.call("Scan", {"TableName": "readings", "Limit": 1}))


_kept: list[Engine] = []


def _any_engine(studio: Studio) -> Engine:
    """Return an engine that the endpoint got in some way; `Studio.permit` gives it none."""
    assert studio.engine is None
    return _kept[0]


PLANTED = (
    Endpoint("GET", "/planted/engine", around_by_the_engine),
    Endpoint("GET", "/planted/backend", around_by_a_backend),
)


@pytest.mark.parametrize("endpoint", PLANTED, ids=lambda endpoint: endpoint.path)
def test_a_planted_way_around_is_found(tmp_path: Path, endpoint: Endpoint) -> None:
    """An endpoint that reaches the engine without the caller is found: its calls have no record."""
    with strict_studio(tmp_path, (*ENDPOINTS, endpoint)) as strict:
        _kept[:] = [strict.engine]
        result = visit(strict, strict.signed_in(NOVICE), endpoint.name, {})

    assert result.status == 200
    assert result.unlogged == 1


def test_a_planted_other_decision_is_found(tmp_path: Path) -> None:
    """The comparison sees a caller whose rights in the studio are not those over HTTP."""
    with strict_studio(tmp_path) as strict:
        browser = strict.signed_in(ADMIN)
        requests = {name: REQUESTS[name] for name in ("GET /session", "POST /operations/sample")}

        assert differing_decisions(strict, browser, NOVICE, requests)


@pytest.mark.parametrize("member", ["engine", "monitor", "log", "directory"])
def test_an_endpoint_without_a_permission_gets_nothing_of_others(tmp_path: Path, member: str) -> None:
    """Whatever shows the requests of others is not there for an endpoint that does not name a permission."""

    async def peek(studio: Studio, params: NoParameters) -> bool:
        return getattr(studio, member) is None

    plain = Endpoint("GET", "/planted/plain", peek)
    named = replace(plain, path="/planted/named", permission=SEE_REQUESTS)
    with strict_studio(tmp_path, (plain, named), stocked=False) as strict:
        browser = strict.signed_in(ADMIN)

        assert browser.call("GET /planted/plain").json() is True
        assert browser.call("GET /planted/named").json() is False


# What shows more than the caller's own requests.


def test_the_pages_about_others_need_a_permission() -> None:
    """These endpoints name a permission; a change of this list is a decision."""
    permissions = {endpoint.name: endpoint.permission for endpoint in ENDPOINTS if endpoint.permission}

    assert permissions == {
        "GET /operations": SEE_REQUESTS,
        "GET /operations/expensive-requests": SEE_REQUESTS,
        "GET /operations/failed-calls": SEE_REQUESTS,
        "GET /access/log": SEE_REQUESTS,
        "GET /access/principals": SEE_POLICIES,
        "POST /access/explain": SEE_POLICIES,
        "GET /heat": SEE_REQUESTS,
        "GET /heat/cell": SEE_REQUESTS,
        "GET /heat/hottest": SEE_REQUESTS,
    }


def _record(account: str, table: str) -> str:
    record = {
        "eventTime": "2026-09-21T14:00:00Z",
        "eventName": "GetItem",
        "recipientAccountId": account,
        "userIdentity": {"type": "IAMUser", "userName": f"user of {account}"},
        "requestParameters": {"tableName": table},
    }
    return json.dumps(record) + "\n"


def test_an_administrator_sees_one_account(tmp_path: Path) -> None:
    """Log, operations and principals are those of the caller's account, whatever the request says."""
    (tmp_path / "access.log").write_text(_record(ACCOUNT, "mine") + _record("444455556666", "theirs"))
    with strict_studio(tmp_path) as strict:
        strict.change_users()
        other = strict.signed_in(OTHER_ACCOUNT)
        other.call("POST /browse/page", {"question": {"table": "readings"}})
        admin = strict.signed_in(ADMIN)
        log = admin.call("GET /access/log", {"account": "444455556666"}).json()["rows"]
        operations = admin.call("GET /operations").json()
        principals = admin.call("GET /access/principals").json()["principals"]
        explained = admin.call(
            "POST /access/explain",
            {
                "principal": "arn:aws:iam::444455556666:user/stranger",
                "action": "dynamodb:GetItem",
                "resource": "readings",
            },
        )

    assert [row["places"] for row in log] == [["mine"]]
    assert operations["rows"] == []
    assert {row["principal"]["account"] for row in principals} == {ACCOUNT}
    assert explained.status_code == 404


def test_a_person_of_another_account_sees_its_tables(tmp_path: Path) -> None:
    """The tables are those of the person's account, as over HTTP; the same name is another table there."""
    with strict_studio(tmp_path) as strict:
        browser = strict.signed_in(OTHER_ACCOUNT)
        session = browser.call("GET /session").json()
        page = browser.call("POST /browse/page", {"question": {"table": "readings"}}).json()

    assert session["where"]["account"] == "444455556666"
    assert [table["name"] for table in session["tables"] if table["status"] == "ACTIVE"] == ["readings"]
    assert page["rows"] == []


def test_the_past_is_read_with_the_same_rights(tmp_path: Path) -> None:
    """Reads as of a moment are checked and logged like reads of now."""
    with strict_studio(tmp_path) as strict:
        admin, novice = strict.signed_in(ADMIN), strict.signed_in(NOVICE)
        admin.call("POST /past", {"table": "bookshop", "on": True})
        strict.clock.advance(60)
        request = {"table": "bookshop", "key": ORDER, "as_of": "2026-09-21T14:13:50Z"}
        allowed = visit(strict, admin, "POST /items/get", request)
        denied = visit(strict, novice, "POST /items/get", request)

    assert (allowed.status, denied.status) == (200, 403), allowed.text
    assert allowed.unlogged == denied.unlogged == 0


def test_the_session_says_what_there_is_without_showing_it(tmp_path: Path) -> None:
    """A person without the permission still learns that there is a monitor, a log and a directory, to ask for it."""
    with strict_studio(tmp_path, stocked=False) as strict:
        session = strict.signed_in(CLERK).call("GET /session").json()

    assert (session["watching"], session["log"], session["directory"]) == (True, True, True)

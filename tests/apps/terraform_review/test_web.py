"""Reviews as JSON over HTTP: every route, asked well and badly."""

from __future__ import annotations

import json
import shlex
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tavola import connect
from tavola.apps.shell import AppSettings, SettingsRefused
from tavola.apps.shell.openapi import group_operations
from tavola.apps.terraform_review.web import create, in_environment
from tavola.clock import SYSTEM_CLOCK
from tests.apps.conftest import Target
from tests.apps.terraform_review.faces import CODE, LARGE, SECRET, Client, Served, problem, result_json, start

FOUND = {"category": "security", "severity": "high", "title": "A"}


@pytest.fixture
def client(served: Served, target: Target) -> Client:
    """A review history on one of the targets."""
    return start(served, target)


@pytest.fixture
def trial(served: Served) -> Client:
    """A review history in memory, for what is refused before the store is asked."""
    return start(served, Target("memory", "memory:", ""))


@pytest.fixture
def today(served: Served, target: Target) -> Client:
    """The same, now: an endpoint has a clock of its own, and deletes what is a day old there."""
    return start(served, target, at_s=SYSTEM_CLOCK.now())


# Recording.


def test_a_review_is_recorded_and_read(client: Client) -> None:
    """POST gives 201 with the place and the version of the review; GET gives all of it."""
    answer = client.http.post("/reviews", json=result_json("run-1", "Bucket is public"))

    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"] == f"/reviews/{made['review_id']}"
    assert answer.headers["etag"] == '"1"'
    assert (made["version"], made["previous_version"], made["changed_by"]) == (1, None, "eng-01")
    assert (made["overall_risk_score"], made["risk_band"]) == (0.72, "high")
    assert made["security_findings"] == {"total": 1, "high": 1, "medium": 0, "low": 0}
    assert made["code"]["stored"] == "item"
    assert client.get(answer.headers["location"]) == made


def test_a_result_that_comes_again_is_stored_once(client: Client) -> None:
    """A run has one review: the same result is what is there, another one is told where it is."""
    first = client.http.post("/reviews", json=result_json())
    again = client.http.post("/reviews", json=result_json())
    other = client.http.post("/reviews", json=result_json(overall_risk_score=0.1))

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    assert problem(other, 409, "run-recorded")["review_id"] == first.json()["review_id"]


def test_a_request_with_a_key_is_done_once(today: Client) -> None:
    """The same key and body give the same answer; the same key and another body are refused."""
    headers = {"Idempotency-Key": "key-1"}
    first = today.http.post("/reviews", json=result_json(), headers=headers)
    again = today.http.post("/reviews", json=result_json(), headers=headers)
    other = today.http.post("/reviews", json=result_json("run-2"), headers=headers)

    assert (first.status_code, again.status_code) == (201, 201)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    problem(other, 422, "idempotency-mismatch")


def test_a_key_is_answered_as_before(today: Client) -> None:
    """Who asks again under a key is told what the first answer told, whatever came since."""
    headers = {"Idempotency-Key": "key-1"}
    first = today.http.post("/reviews", json=result_json(), headers=headers)
    patch = {"status": "pending", "changed_by": "eng-02"}
    today.http.patch(first.headers["location"], json=patch, headers={"If-Match": "*"})
    again = today.http.post("/reviews", json=result_json(), headers=headers)

    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["etag"] == first.headers["etag"]


def test_a_run_on_record_is_made_by_no_other_key(today: Client) -> None:
    """A new key for a run that is there makes nothing: 200, and the same each time."""
    today.post("run-1")
    headers = {"Idempotency-Key": "key-2"}
    first = today.http.post("/reviews", json=result_json(), headers=headers)
    again = today.http.post("/reviews", json=result_json(), headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.headers["idempotency-replayed"] == again.headers["idempotency-replayed"] == "true"
    assert first.json() == again.json()


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"overall_risk_score": 1.5}, "#/overall_risk_score"),
        ({"stack_id": "a/b"}, "#/stack_id"),
        ({"stack_id": ".."}, "#/stack_id"),
        ({"spacelift_run_id": ""}, "#/spacelift_run_id"),
        ({"created_by": None}, "#/created_by"),
        ({"status": "done"}, "#/status"),
        ({"status": "failed"}, "#"),
        ({"colour": "red"}, "#/colour"),
        (
            {"cost_analysis": {"estimated_monthly_cost": 1, "resource_count": 10**60 + 1}},
            "#/cost_analysis/resource_count",
        ),
        (
            {"error_details": {"error_type": "x", "retry_after": 10**60 + 1}},
            "#/error_details/retry_after",
        ),
        ({"metadata": {"much": 0.1234567890123456789012345}}, "#/metadata/much"),
        ({"findings": [{"title": "x"}]}, "#/findings/0/category"),
    ],
)
def test_a_bad_result_is_told_where(trial: Client, change: dict[str, Any], pointer: str) -> None:
    """What is wrong with a result is told by its place, and nothing of it is repeated."""
    body = json.dumps(result_json(**change)).replace("0.12345678901234568", "0.1234567890123456789012345")
    answer = trial.http.post("/reviews", content=body, headers={"Content-Type": "application/json"})

    assert pointer in {error["pointer"] for error in problem(answer, 422, "invalid")["errors"]}


@pytest.mark.parametrize(
    ("content", "kind", "status", "slug"),
    [
        (b"{", "application/json", 400, "malformed"),
        (b"[" * 50_000, "application/json", 400, "malformed"),
        (b'{"spacelift_run_id": ' + b"9" * 5_000 + b"}", "application/json", 400, "malformed"),
        (b"\xff", "application/json", 400, "malformed"),
        (b"a=b", "application/x-www-form-urlencoded", 415, "media-type"),
        (b"", "application/json", 422, "invalid"),
        (b"[]", "application/json", 422, "invalid"),
    ],
)
def test_what_is_no_result_is_refused(
    trial: Client, content: bytes, kind: str, status: int, slug: str
) -> None:
    """A body that is no JSON, not UTF-8, too deep or of another type is refused with its reason."""
    problem(trial.http.post("/reviews", content=content, headers={"Content-Type": kind}), status, slug)


def test_a_body_that_is_too_large_is_refused(trial: Client) -> None:
    """More than 24 MB are not read."""
    headers = {"Content-Type": "application/json", "Content-Length": str(30_000_000)}

    problem(trial.http.post("/reviews", content=b"{}", headers=headers), 413, "too-large")


def test_wrong_13_money_keeps_its_digits(client: Client) -> None:
    """Pitfall 13: a number with more digits than a float holds is stored as it was written."""
    body = json.dumps(result_json(cost_analysis={"estimated_monthly_cost": 7}))
    exact = body.replace(
        '"estimated_monthly_cost": 7', '"estimated_monthly_cost": 1234567890.12345678901234567'
    )
    answer = client.http.post("/reviews", content=exact, headers={"Content-Type": "application/json"})

    assert answer.status_code == 201, answer.text
    found = client.get(answer.headers["location"])
    assert found["cost_analysis"]["estimated_monthly_cost"] == "1234567890.12345678901234567"


# Versions.


def test_etags_are_of_versions(client: Client) -> None:
    """Who has the version is told 304; a missing review is 404."""
    made = client.post()
    path = f"/reviews/{made['review_id']}"

    assert client.http.get(path, headers={"If-None-Match": '"1"'}).status_code == 304
    assert client.http.get(path, headers={"If-None-Match": '"2"'}).status_code == 200
    problem(client.http.get("/reviews/none"), 404, "not-found")


def test_a_version_is_added(client: Client) -> None:
    """POST to versions stores what is said now, with who and why, if the review is the version that was read."""
    path = f"/reviews/{client.post('run-1', 'Bucket is public')['review_id']}"
    body = {
        "changed_by": "eng-02",
        "why": "looked again",
        "overall_risk_score": 0.3,
        "terraform_code": "# closed\n",
        "spacelift_run_id": "run-9",
    }

    answer = client.http.post(f"{path}/versions", json=body, headers={"If-Match": '"1"'})
    late = client.http.post(f"{path}/versions", json=body, headers={"If-Match": '"1"'})
    blind = client.http.post(f"{path}/versions", json=body)

    assert answer.status_code == 201, answer.text
    assert answer.headers["etag"] == '"2"'
    made = answer.json()
    assert (made["version"], made["changed_by"], made["findings_total"]) == (2, "eng-02", 0)
    assert (made["overall_risk_score"], made["found_risk_score"]) == (0.3, 0.72)
    assert problem(late, 412, "precondition-failed")
    assert late.headers["etag"] == '"2"'
    problem(blind, 428, "if-match-missing")
    assert client.get("/runs/run-9/review")["review_id"] == made["review_id"]


def test_a_fix_is_applied(client: Client) -> None:
    """POST to fixes resolves findings; one that does not stand is told."""
    made = client.post("run-1", "Bucket is public", "Port 22 is open")
    path = f"/reviews/{made['review_id']}"
    fix = {
        "changed_by": "eng-02",
        "fixes_applied": [{"finding_id": "run-1-f1", "effectiveness_score": 0.9}],
        "overall_risk_score": 0.35,
    }

    answer = client.http.post(f"{path}/fixes", json=fix, headers={"If-Match": "*"})
    again = client.http.post(f"{path}/fixes", json=fix, headers={"If-Match": "*"})

    assert answer.status_code == 201, answer.text
    done = answer.json()
    assert done["fix_applied"]
    assert done["fix_details"]["findings_resolved"] == 1
    assert done["fix_details"]["risk_reduction"] == 0.37
    assert [each["finding_id"] for each in client.get(f"{path}/findings")["items"]] == ["run-1-f2"]
    assert len(client.get(f"{path}/findings", query={"version": 1})["items"]) == 2
    problem(again, 422, "invalid")


def test_a_status_is_changed(client: Client) -> None:
    """PATCH makes a review pending or failed; what cannot follow is told with what can."""
    path = f"/reviews/{client.post()['review_id']}"
    patch = {"status": "pending", "changed_by": "eng-02", "why": "again"}

    answer = client.http.patch(path, json=patch, headers={"If-Match": '"1"'})
    wrong = {**patch, "error_details": {"error_type": "X"}}
    refused = client.http.patch(path, json=wrong, headers={"If-Match": '"2"'})
    failed = client.http.patch(
        path,
        json={"status": "failed", "changed_by": "eng-02", "error_details": {"error_type": "TIMEOUT"}},
        headers={"If-Match": '"2"'},
    )

    assert (answer.status_code, answer.json()["status"]) == (200, "pending")
    problem(refused, 422, "invalid")
    assert failed.json()["error_details"]["error_type"] == "TIMEOUT"
    assert failed.json()["overall_risk_score"] is None
    problem(client.http.patch(path, json=patch), 428, "if-match-missing")


def test_a_status_that_cannot_follow_is_told(client: Client) -> None:
    """A completed review does not become failed."""
    path = f"/reviews/{client.post()['review_id']}"

    answer = client.http.patch(path, json={"status": "failed", "changed_by": "e"}, headers={"If-Match": "*"})

    assert problem(answer, 409, "transition-refused")["allowed"] == ["pending", "completed"]


def test_versions_are_listed_and_read(client: Client) -> None:
    """Versions come newest first, a page at a time; each is read by its number, and a number that is none is 404."""
    path = f"/reviews/{client.post()['review_id']}"
    for number in range(1, 12):
        status = "pending" if number % 2 else "failed"
        answer = client.http.patch(
            path, json={"status": status, "changed_by": "eng-02"}, headers={"If-Match": f'"{number}"'}
        )
        assert answer.status_code == 200, answer.text

    first = client.http.get(f"{path}/versions", params={"limit": 7})
    second = client.get(f"{path}/versions", query={"limit": 7, "cursor": first.json()["next"]})

    numbers = [each["version"] for each in [*first.json()["items"], *second["items"]]]
    assert numbers == [12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert 'rel="next"' in first.headers["link"]
    assert second["next"] is None
    assert client.get(f"{path}/versions/10")["version"] == 10
    assert client.http.get(f"{path}/versions/3", headers={"If-None-Match": '"3"'}).status_code == 304
    problem(client.http.get(f"{path}/versions/13"), 404, "not-found")
    problem(client.http.get(f"{path}/versions/0"), 422, "invalid")
    problem(client.http.get("/reviews/none/versions"), 404, "not-found")
    problem(client.http.get(f"{path}/versions", params={"cursor": "forged"}), 400, "cursor-refused")


def test_two_versions_are_compared(client: Client) -> None:
    """A comparison tells fields, and code line by line."""
    path = f"/reviews/{client.post('run-1', 'Bucket is public')['review_id']}"
    body = {
        "changed_by": "eng-02",
        "overall_risk_score": 0.1,
        "terraform_code": CODE.replace("public-read", "private"),
    }
    client.http.post(f"{path}/versions", json=body, headers={"If-Match": '"1"'})

    found = client.get(f"{path}/diff", query={"from": 1, "to": 2})

    differences = {
        each["path"]: (each["kind"], each["before"], each["after"]) for each in found["differences"]
    }
    assert differences["overall_risk_score"] == ("changed", "0.72", "0.1")
    assert '-  acl = "public-read"\n+  acl = "private"\n' in found["code"]
    problem(client.http.get(f"{path}/diff", params={"from": 1, "to": 9}), 404, "not-found")
    problem(client.http.get(f"{path}/diff"), 422, "invalid")


def test_code_is_given_as_text(client: Client) -> None:
    """Code comes back whole, whether it is in the item or in the blob store."""
    small = client.post()
    big_code = "".join(f'resource "aws_sqs_queue" "q{n}" {{}}\n' for n in range(6_000))
    big = client.post("run-2", terraform_code=big_code)
    answer = client.http.get(f"/reviews/{big['review_id']}/code")

    assert big["code"]["stored"] == "blob"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == big_code
    again = client.http.get(
        f"/reviews/{big['review_id']}/code", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    assert client.http.get(f"/reviews/{small['review_id']}/code", params={"version": 1}).text == CODE
    problem(client.http.get("/reviews/none/code"), 404, "not-found")


# Audit.


def test_the_audit_trail_tells_who_what_and_why(client: Client) -> None:
    """A review's trail and an actor's are newest first, with differences."""
    made = client.post()
    path = f"/reviews/{made['review_id']}"
    client.clock.advance(60)
    client.http.patch(
        path, json={"status": "pending", "changed_by": "eng-02", "why": "again"}, headers={"If-Match": '"1"'}
    )

    trail = client.get(f"{path}/audit")["items"]
    mine = client.get("/actors/eng-02/audit")["items"]

    assert [(each["version"], each["actor"], each["kind"]) for each in trail] == [
        (2, "eng-02", "changed"),
        (1, "eng-01", "created"),
    ]
    assert trail[0]["why"] == "again"
    assert ("status", "completed", "pending") in {
        (each["path"], each["before"], each["after"])
        for each in trail[0]["differences"]
        if each["path"] == "status"
    }
    assert [each["review_id"] for each in mine] == [made["review_id"]]
    assert client.get("/actors/eng-02/audit", query={"to": "2026-03-01"})["items"] == []
    assert len(client.get("/actors/eng-02/audit", query={"from": "2026-03-02T12:00:30Z"})["items"]) == 1
    assert client.get("/actors/nobody/audit")["items"] == []
    problem(client.http.get("/reviews/none/audit"), 404, "not-found")
    problem(client.http.get("/actors/eng-02/audit", params={"from": "yesterday"}), 422, "invalid")


def test_a_trail_that_was_tampered_with_is_told(served: Served, endpoint: str) -> None:
    """Verification finds a version that somebody wrote over past the library."""
    target = Target("http", endpoint, "tampered-")
    client = start(served, target)
    made = client.post("run-tampered")
    path = f"/reviews/{made['review_id']}/verify"
    before = client.get(path)
    with connect(endpoint) as db:
        name = next(name for name in db.call("ListTables")["TableNames"] if name.startswith("tampered-"))
        key = {"PK": {"S": f"HISTORY#{made['review_id']}"}, "SK": {"S": "VERSION#0000000000000000001"}}
        change = {
            "UpdateExpression": "SET StackId = :s",
            "ExpressionAttributeValues": {":s": {"S": "forged"}},
        }
        db.call("UpdateItem", {"TableName": name, "Key": key, **change})
        after = client.get(path)
        db.call("DeleteTable", {"TableName": name})

    assert (before["intact"], before["versions"], before["problems"]) == (True, 1, [])
    assert not after["intact"]
    assert after["problems"][0]["version"] == 1


def test_verification_of_nothing_is_not_found(client: Client) -> None:
    """A review that is not there is not intact: it is 404."""
    problem(client.http.get("/reviews/none/verify"), 404, "not-found")


# By status.


def test_wrong_21_only_the_current_version_has_a_status(client: Client) -> None:
    """Pitfall 21: a review that was pending once is not among the pending ones."""
    pending = client.post("run-1", status="pending", overall_risk_score=None)
    path = f"/reviews/{pending['review_id']}"
    client.clock.advance(timedelta(hours=2).total_seconds())
    client.post("run-2", status="pending", overall_risk_score=None)

    def runs(**query: Any) -> list[str]:
        return [each["spacelift_run_id"] for each in client.get("/reviews", query=query)["items"]]

    assert runs(status="pending") == ["run-2", "run-1"]
    assert runs(status="pending", older_than_minutes=60) == ["run-1"]
    body = {"changed_by": "eng-02", "overall_risk_score": 0.3}
    client.http.post(f"{path}/versions", json=body, headers={"If-Match": '"1"'})
    assert runs(status="pending") == ["run-2"]
    assert runs(status="completed") == ["run-1"]
    problem(client.http.get("/reviews"), 422, "invalid")
    problem(client.http.get("/reviews", params={"status": "done"}), 422, "invalid")
    problem(client.http.get("/reviews?status=failed&older_than_minutes=5"), 422, "invalid")


def test_it_works_under_a_base_path(served: Served) -> None:
    """Behind a proxy that has it under a path, places and redirects are below that path."""
    client = start(served, Target("memory", "memory:", ""), base_path="/review")
    answer = client.http.post("/reviews", json=result_json())

    assert answer.headers["location"].startswith("/review/reviews/")
    front = client.http.get("/", follow_redirects=False)
    assert (front.status_code, front.headers["location"]) == (303, "/review/ui/")


def test_another_site_cannot_record(trial: Client) -> None:
    """A page of another site makes the browser send, and is refused."""
    headers = {"Origin": "https://evil.example"}

    problem(trial.http.post("/reviews", json=result_json(), headers=headers), 403, "origin-refused")


def test_an_id_of_our_own_may_come_back(trial: Client) -> None:
    """An id that was given is nobody else's: one that is made for another finding is another."""
    made = trial.post("run-1", findings=[FOUND, FOUND | {"title": "B"}])
    ours = trial.get(f"/reviews/{made['review_id']}/findings")["items"][1]["finding_id"]
    findings = [FOUND | {"finding_id": ours}, FOUND | {"title": "B"}]
    other = trial.post("run-2", findings=findings)
    version = {"changed_by": "eng-02", "findings": findings}
    path = f"/reviews/{made['review_id']}/versions"

    assert other["findings_total"] == 2
    answer = trial.http.post(path, json=version, headers={"If-Match": "*"})
    assert (answer.status_code, answer.json()["findings_total"]) == (201, 2)


# What is not as it should be.


def test_code_that_is_gone_is_told(served: Served, tmp_path: Path) -> None:
    """Where the blob store has lost the code, that is said, and everything else is answered."""
    client = start(served, Target("memory", "memory:", ""), blobs=tmp_path)
    made = client.post("run-1", terraform_code=LARGE)
    path = f"/reviews/{made['review_id']}"
    version = {"changed_by": "eng-02", "terraform_code": CODE}
    client.http.post(f"{path}/versions", json=version, headers={"If-Match": "*"})
    for blob in tmp_path.rglob("*"):
        if blob.is_file():
            blob.unlink()

    lost = problem(client.http.get(f"{path}/code", params={"version": 1}), 503, "blob-lost")
    assert "bytes) is missing from the blob store" in lost["detail"]
    problem(client.http.get(f"{path}/diff", params={"from": 1, "to": 2}), 503, "blob-lost")
    assert client.get(f"{path}/diff", query={"from": 1, "to": 1})["code"] == ""
    assert client.http.get(f"{path}/code").text == CODE
    assert client.get(f"{path}/versions/1")["code"]["stored"] == "blob"


def test_a_review_that_is_closed_is_told(trial: Client) -> None:
    """After a year a review is changed no more, and who tries is told what to do."""
    made = trial.post("run-1")
    trial.clock.advance(366 * 86_400)
    patch = {"status": "pending", "changed_by": "eng-02"}

    answer = trial.http.patch(f"/reviews/{made['review_id']}", json=patch, headers={"If-Match": "*"})

    assert "record a new run" in problem(answer, 409, "review-closed")["detail"]


def test_a_record_that_was_set_back_is_told(served: Served, endpoint: str) -> None:
    """Who changes a review whose current record somebody put back hears that it must be mended, not that they are late."""
    prefix = f"e{uuid.uuid4().hex[:10]}-"
    client = start(served, Target("http", endpoint, prefix))
    made = client.post("run-1")
    table = f"{prefix}terraform-spacelift-ai-reviewer-reviews-dev"
    key = {"PK": {"S": f"REVIEW#{made['review_id']}"}, "SK": {"S": "CURRENT"}}
    path = f"/reviews/{made['review_id']}"
    patch = {"status": "pending", "changed_by": "eng-02"}
    with connect(endpoint) as db:
        before = db.call("GetItem", {"TableName": table, "Key": key})["Item"]
        client.http.patch(path, json=patch, headers={"If-Match": "*"})
        db.call("PutItem", {"TableName": table, "Item": before})

    problem(client.http.patch(path, json=patch, headers={"If-Match": "*"}), 409, "history-ahead")
    form = {"status": "pending", "by": "eng-02", "version": "1"}
    told_of = client.http.post(f"/ui{path}/status", data=form).text
    assert "is older than its history" in told_of
    assert not client.get(f"{path}/verify")["intact"]


# Callers and environments.


def test_who_changes_is_who_calls(served: Served) -> None:
    """Where a proxy names its callers, nobody acts as somebody else, and nobody as nobody."""
    client = start(served, Target("memory", "memory:", ""), caller_header="X-Forwarded-User")
    other, mine = {"X-Forwarded-User": "eng-99"}, {"X-Forwarded-User": "eng-01"}
    problem(client.http.post("/reviews", json=result_json()), 403, "caller-unknown")
    problem(client.http.post("/reviews", json=result_json(), headers=other), 403, "not-the-caller")
    made = client.http.post("/reviews", json=result_json("run-1", "A"), headers=mine)
    path = made.headers["location"]
    bodies: dict[str, Any] = {
        "/fixes": {"changed_by": "eng-01", "fixes_applied": [{"finding_id": "run-1-f1"}]},
        "/versions": {"changed_by": "eng-01"},
    }
    for below, body in bodies.items():
        problem(
            client.http.post(path + below, json=body, headers=other | {"If-Match": "*"}),
            403,
            "not-the-caller",
        )
        assert client.http.post(path + below, json=body, headers=mine | {"If-Match": "*"}).status_code == 201
    patch = {"status": "pending", "changed_by": "eng-01"}
    problem(client.http.patch(path, json=patch, headers=other | {"If-Match": "*"}), 403, "not-the-caller")

    assert client.http.get(path).status_code == 200  # to look needs no name


@pytest.mark.parametrize("header", ["", "X Forwarded User", "X-Forwarded-User:"])
def test_a_header_has_a_name(header: str) -> None:
    """A name that no header has would let everybody in as nobody."""
    with pytest.raises(SettingsRefused, match="caller_header"):
        create(AppSettings(), caller_header=header)


def test_each_environment_has_a_table(served: Served, endpoint: str) -> None:
    """Reviews of one environment are in a table of its own, which its name says."""
    prefix = f"e{uuid.uuid4().hex[:10]}-"
    settings = AppSettings(target=endpoint, table_prefix=prefix, secret=SECRET)
    staged = served(create(in_environment(settings, "staging")))
    served(create(settings))
    staged.post("/reviews", json=result_json())
    with connect(endpoint) as db:
        names = [name for name in db.call("ListTables")["TableNames"] if name.startswith(prefix)]

    assert sorted(name.removeprefix(prefix) for name in names) == [
        "terraform-spacelift-ai-reviewer-reviews-dev",
        "terraform-spacelift-ai-reviewer-reviews-staging",
    ]
    with pytest.raises(SettingsRefused, match="environment"):
        in_environment(settings, "a/b")


def test_the_bodies_of_the_api_page_are_taken(trial: Client) -> None:
    """What the page shows for a new review can be sent as it stands: the short body, and the one with every member."""
    application: Any = trial.http.app
    operations = [each for group in group_operations(application.openapi(), "") for each in group.operations]
    (told_of,) = (each for each in operations if (each.method, each.path) == ("POST", "/reviews"))

    assert {"findings[].severity", "cost_analysis", "metadata"} <= {each.path for each in told_of.members}
    assert told_of.body is not None
    whole = {**json.loads(told_of.body), "spacelift_run_id": "another-run"}
    for body in (shlex.split(told_of.command)[-1], json.dumps(whole)):
        answer = trial.http.post("/reviews", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 201, answer.text

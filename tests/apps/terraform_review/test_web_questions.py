"""Runs, stacks, risk and issues as JSON over HTTP: every route, asked well and badly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apps.conftest import Target
from tests.apps.terraform_review.faces import Client, Served, problem, start

DAY_S = 86_400


@pytest.fixture
def client(served: Served, target: Target) -> Client:
    """A review history on one of the targets."""
    return start(served, target)


def test_wrong_22_a_run_leads_to_its_review(client: Client) -> None:
    """Pitfall 22: the review of a run is found by the run."""
    made = client.post("run-7")

    assert client.get("/runs/run-7/review") == made
    problem(client.http.get("/runs/run-8/review"), 404, "not-found")


def test_stacks_have_numbers(client: Client) -> None:
    """The stacks are listed by name, each with its numbers; one without reviews is 404."""
    client.post("run-1", "Bucket is public", "Port 22 is open")
    client.post("run-2", stack_id="edge", overall_risk_score=0.1)
    client.post("run-3", stack_id="edge", status="failed", overall_risk_score=None)
    client.counted()

    listed = client.get("/stacks", query={"limit": 1})
    rest = client.get("/stacks", query={"cursor": listed["next"]})
    edge = client.get("/stacks/edge")

    assert [each["stack_id"] for each in [*listed["items"], *rest["items"]]] == ["edge", "prod-net"]
    assert (edge["total_reviews"], edge["assessed_reviews"], edge["failed_reviews"]) == (2, 1, 1)
    assert (edge["average_risk_score"], edge["high_risk_count"]) == (0.1, 0)
    assert client.get("/stacks/prod-net")["total_findings"] == 2
    problem(client.http.get("/stacks/none"), 404, "not-found")


def test_a_stacks_reviews_are_listed_by_time(client: Client) -> None:
    """Newest first, a page at a time, from a day or a moment to another; the latest has an address of its own."""
    for number in range(5):
        client.post(f"run-{number}")
        client.clock.advance(DAY_S)

    def runs(**query: Any) -> list[str]:
        return [
            each["spacelift_run_id"] for each in client.get("/stacks/prod-net/reviews", query=query)["items"]
        ]

    first = client.get("/stacks/prod-net/reviews", query={"limit": 3})
    assert runs() == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert runs(limit=3, cursor=first["next"]) == ["run-1", "run-0"]
    assert runs(**{"from": "2026-03-03", "to": "2026-03-04"}) == ["run-2", "run-1"]
    assert runs(**{"from": "2026-03-05T12:00:00Z"}) == ["run-4", "run-3"]
    assert runs(to="2026-03-02") == ["run-0"]
    assert client.get("/stacks/prod-net/latest")["spacelift_run_id"] == "run-4"
    assert client.get("/stacks/none/reviews")["items"] == []
    problem(client.http.get("/stacks/none/latest"), 404, "not-found")
    problem(client.http.get("/stacks/prod-net/reviews", params={"from": "2026-03-03T12:00"}), 422, "invalid")
    problem(client.http.get("/stacks/prod-net/reviews", params={"limit": 0}), 422, "invalid")


def test_wrong_25_the_trend_is_of_days_that_are_counted(client: Client) -> None:
    """Pitfall 25: ten years are one query of numbers that are kept, and days say what is known of them."""
    client.post("run-1", overall_risk_score=0.9)
    client.post("run-2", overall_risk_score=0.1)
    client.clock.advance(DAY_S)
    client.post("run-3", status="pending", overall_risk_score=None)
    client.counted()

    month = client.get("/risk/days")
    years = client.get("/risk/days", query={"from": "2016-03-05", "to": "2026-03-04"})
    day = client.get("/risk/days/2026-03-02")

    assert (month["from_day"], month["to_day"]) == ("2026-02-02", "2026-03-03")
    assert month["days"] == years["days"]
    assert month["days"][0] == day
    assert (day["reviews"], day["assessed"], day["average_risk"]) == (2, 2, 0.5)
    assert (day["high"], day["medium"], day["low"]) == (1, 0, 1)
    assert (month["days"][1]["average_risk"], month["days"][1]["pending"]) == (None, 1)
    assert client.get("/risk/days/2020-01-01")["reviews"] == 0
    problem(client.http.get("/risk/days", params={"from": "2016-03-03", "to": "2016-03-01"}), 422, "invalid")
    problem(client.http.get("/risk/days", params={"from": "0001-01-01"}), 422, "invalid")
    problem(client.http.get("/risk/days/soon"), 422, "invalid")


def test_wrong_26_an_unknown_risk_is_not_the_highest(client: Client) -> None:
    """Pitfall 26: a failed review is among no high-risk ones."""
    client.post("run-1", status="failed", overall_risk_score=None)
    client.post("run-2", overall_risk_score=1)
    client.post("run-3", overall_risk_score=0.7)
    client.post("run-4", overall_risk_score=0.69)
    client.clock.advance(DAY_S)
    client.post("run-5", overall_risk_score=0.8)

    def runs(**query: Any) -> list[str]:
        return [each["spacelift_run_id"] for each in client.get("/risk/high", query=query)["items"]]

    assert runs() == ["run-5", "run-2", "run-3"]
    assert runs(min=0.65, to="2026-03-02") == ["run-2", "run-3", "run-4"]
    assert runs(min=0.75, limit=1) == ["run-5"]
    assert runs(min=0.70001, to="2026-03-02") == ["run-2"]
    assert runs(min="0.69999999999999999999", to="2026-03-02") == ["run-2", "run-3"]
    problem(client.http.get("/risk/high", params={"min": 2}), 422, "invalid")
    problem(client.http.get("/risk/high", params={"from": "2016-01-01"}), 422, "invalid")


def test_high_risk_goes_on_where_it_was_cut(client: Client) -> None:
    """A list that is cut has a cursor and a link, over days too."""
    for number in range(5):
        client.post(f"run-{number}", overall_risk_score=0.8 + number / 100)
        client.clock.advance(DAY_S / 2)
    first = client.http.get("/risk/high", params={"limit": 2})
    more = client.http.get(f"/risk/high{first.links['next']['url']}")
    last = client.get("/risk/high", query={"limit": 2, "cursor": more.json()["next"]})

    pages = [page["items"] for page in (first.json(), more.json(), last)]
    assert [[each["spacelift_run_id"] for each in page] for page in pages] == [
        ["run-4", "run-3"],
        ["run-2", "run-1"],
        ["run-0"],
    ]
    assert last["next"] is None
    problem(client.http.get("/risk/high", params={"cursor": "nonsense"}), 400, "cursor-refused")


def test_the_review_of_a_run_has_an_etag(client: Client) -> None:
    """Who has the version already is told so."""
    client.post("run-1")
    found = client.http.get("/runs/run-1/review")
    again = client.http.get("/runs/run-1/review", headers={"If-None-Match": found.headers["etag"]})

    assert (found.status_code, again.status_code) == (200, 304)


def test_issues_are_counted(client: Client) -> None:
    """The most frequent first, of a category and of a stack; one issue with its stacks and occurrences."""
    for number in range(3):
        client.post(f"run-{number}", "Bucket is public", *(["Port 22 is open"] if number else []))
        client.clock.advance(60)
    client.post("run-9", "Bucket is public", stack_id="edge")
    client.counted()

    found = client.get("/issues", query={"category": "security"})["items"]
    bucket = client.get(f"/issues/{found[0]['issue_hash']}")
    first = client.get(f"/issues/{found[0]['issue_hash']}/occurrences", query={"limit": 3})
    rest = client.get(
        f"/issues/{found[0]['issue_hash']}/occurrences", query={"limit": 3, "cursor": first["next"]}
    )
    repeated = client.get("/stacks/prod-net/issues", query={"min": 3})["items"]

    assert [(each["title"], each["occurrence_count"]) for each in found] == [
        ("Bucket is public", 4),
        ("Port 22 is open", 2),
    ]
    assert [(each["stack_id"], each["occurrence_count"]) for each in bucket["stacks"]] == [
        ("prod-net", 3),
        ("edge", 1),
    ]
    assert bucket["stacks"][0]["affected_runs"] == ["run-2", "run-1", "run-0"]
    assert [each["spacelift_run_id"] for each in [*first["items"], *rest["items"]]] == [
        "run-9",
        "run-2",
        "run-1",
        "run-0",
    ]
    assert [each["title"] for each in repeated] == ["Bucket is public"]
    assert len(client.get("/stacks/prod-net/issues", query={"min": 1})["items"]) == 2
    assert client.get("/issues", query={"category": "cost"})["items"] == []
    assert client.get("/issues/none/occurrences")["items"] == []
    problem(client.http.get("/issues/none"), 404, "not-found")
    problem(client.http.get("/issues"), 422, "invalid")
    problem(client.http.get("/issues", params={"category": "colour"}), 422, "invalid")
    problem(client.http.get("/stacks/prod-net/issues", params={"min": 0}), 422, "invalid")


def test_it_tells_how_it_is(client: Client) -> None:
    """Health, readiness and measures have their addresses."""
    client.post("run-1")

    assert client.get("/healthz") == {"status": "ok"}
    assert client.get("/readyz")["followers"] == {"terraform-review": "following"}
    assert 'route="/reviews"' in client.http.get("/metrics").text
    assert client.get("/openapi.json")["openapi"].startswith("3.1")

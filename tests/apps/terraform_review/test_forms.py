"""The forms of the review history: a result that is uploaded, a status that is changed, and by whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apps.conftest import Target
from tests.apps.terraform_review.faces import Client, Served, problem, result_json, start

EVIL = "<script>alert('x')</script>"
HEADER = "X-Forwarded-User"


@pytest.fixture
def client(served: Served, target: Target) -> Client:
    """A review history on one of the targets."""
    return start(served, target)


@pytest.fixture
def trial(served: Served) -> Client:
    """A review history in memory."""
    return start(served, Target("memory", "memory:", ""))


@pytest.fixture
def known(served: Served) -> Client:
    """A review history behind a proxy that names its callers."""
    return start(served, Target("memory", "memory:", ""), caller_header=HEADER)


def test_a_result_is_uploaded(client: Client) -> None:
    """A file or pasted text is stored and leads to its review; a list is told one by one."""
    pasted = client.http.post(
        "/ui/upload", data={"result": json.dumps(result_json())}, follow_redirects=False
    )
    file = ("result.json", json.dumps(result_json("run-2")), "application/json")
    sent = client.http.post("/ui/upload", files={"file": file}, follow_redirects=False)
    both = json.dumps([result_json("run-2"), result_json("run-3")])
    several = client.http.post("/ui/upload", data={"result": both})

    assert (pasted.status_code, sent.status_code) == (303, 303)
    assert "run-1" in client.page(pasted.headers["location"])
    assert "run-2" in client.page(sent.headers["location"])
    assert "run-3" in several.text
    assert "(already stored)" in several.text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Choose a file, or paste a result"),
        ("{", "not valid JSON"),
        ('{"stack_id": "s"}', "spacelift_run_id: this field is required"),
        (json.dumps(result_json(overall_risk_score=2)), "overall_risk_score"),
        (f'{{"{EVIL}": 1}}', "unknown field. Remove it"),
    ],
)
def test_a_bad_upload_is_told_and_kept(trial: Client, typed: str, said: str) -> None:
    """What is wrong is said in place, what was typed is still there, and nothing is stored."""
    answer = trial.http.post("/ui/upload", data={"result": typed})

    assert answer.status_code == 422
    assert said in answer.text
    assert "The result was not stored" in answer.text
    assert EVIL not in answer.text
    assert trial.get("/reviews", query={"status": "completed"})["items"] == []


def test_one_bad_result_in_a_list_stores_none(trial: Client) -> None:
    """A list is stored whole or not at all."""
    listed = json.dumps([result_json(), result_json("run-2", status="nonsense")])

    answer = trial.http.post("/ui/upload", data={"result": listed})

    assert (answer.status_code, "result 2: status" in answer.text) == (422, True)
    assert trial.get("/reviews", query={"status": "completed"})["items"] == []


def test_a_run_with_another_result_is_told(trial: Client) -> None:
    """An upload of a run that has a review says which one."""
    made = trial.post("run-1")

    answer = trial.http.post("/ui/upload", data={"result": json.dumps(result_json(overall_risk_score=0.1))})

    assert answer.status_code == 422
    assert made["review_id"] in answer.text


def test_a_status_is_changed_by_a_form(client: Client) -> None:
    """Who and why go into the trail; who comes second is told."""
    made = client.post("run-1")
    path = f"/ui/reviews/{made['review_id']}/status"
    form = {"version": "1", "status": "pending", "by": "eng-02", "why": "again"}

    answer = client.http.post(path, data=form, follow_redirects=False)
    late = client.http.post(path, data=form)

    assert answer.status_code == 303
    assert client.get(f"/reviews/{made['review_id']}")["status"] == "pending"
    assert late.status_code == 422
    assert "The review was changed by someone else" in late.text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"status": "pending", "by": ""}, "Enter your name"),
        ({"status": "completed", "by": "eng-02"}, "Select Pending or Failed"),
        ({"status": "failed", "by": "eng-02"}, "cannot become failed"),
        ({"status": "pending", "by": "eng-02", "why": "x" * 1001}, "at most 1,000"),
        ({"status": "pending", "by": "eng/02"}, "Enter your name"),
    ],
)
def test_a_bad_change_is_told_in_place(trial: Client, form: dict[str, Any], said: str) -> None:
    """The page comes back with what is wrong, and what was typed."""
    made = trial.post("run-1")

    answer = trial.http.post(f"/ui/reviews/{made['review_id']}/status", data=form)

    assert answer.status_code == 422
    assert said in answer.text
    assert trial.get(f"/reviews/{made['review_id']}")["version"] == 1


# What comes from outside.


# Lists of results.


def missing(client: Client, run: str) -> bool:
    """Say whether a run has no review."""
    return bool(client.http.get(f"/runs/{run}/review").status_code == 404)


def test_a_list_with_a_run_on_record_stores_none(client: Client) -> None:
    """All runs of a list are looked up before the first is stored, so what is told is so."""
    client.post("run-1")
    listed = [result_json("new-1"), result_json("run-1", overall_risk_score=0.11), result_json("new-2")]

    answer = client.http.post("/ui/upload", data={"result": json.dumps(listed)})

    assert answer.status_code == 422
    assert "The result was not stored" in answer.text
    assert missing(client, "new-1")
    assert missing(client, "new-2")


def test_a_list_with_one_run_twice_stores_none(trial: Client) -> None:
    """Two results of one run contradict each other; the same one twice does not."""
    differ = [result_json("run-1"), result_json("run-2"), result_json("run-1", overall_risk_score=0.1)]

    answer = trial.http.post("/ui/upload", data={"result": json.dumps(differ)})
    same = trial.http.post(
        "/ui/upload", data={"result": json.dumps([result_json("run-3"), result_json("run-3")])}
    )

    assert "appears twice" in answer.text
    assert missing(trial, "run-1")
    assert missing(trial, "run-2")
    assert same.status_code == 200


def test_what_is_stored_before_a_refusal_is_told(client: Client) -> None:
    """A record that only the store finds too large ends the list; what came before it is named, with its review."""
    listed = [result_json("run-1"), result_json("run-2", metadata={"x": "y" * 410_000}), result_json("run-3")]

    answer = client.http.post("/ui/upload", data={"result": json.dumps(listed)})

    assert answer.status_code == 422
    assert "The result was not stored" not in answer.text
    assert "Some results were not stored" in answer.text
    assert client.get("/runs/run-1/review")["review_id"] in answer.text
    assert missing(client, "run-3")


def test_results_may_be_one_on_each_line(trial: Client) -> None:
    """What the command line takes, the form takes."""
    lines = "\n".join(json.dumps(result_json(f"run-{number}")) for number in (1, 2))

    answer = trial.http.post("/ui/upload", data={"result": lines})

    assert answer.status_code == 200
    assert not missing(trial, "run-2")


# Callers.


def test_a_form_is_sent_by_who_the_proxy_names(known: Client) -> None:
    """The page asks nobody who they are, and the trail tells the caller, whatever the form says."""
    caller = {HEADER: "eng-01"}
    made = known.http.post("/reviews", json=result_json(), headers=caller).json()
    path = f"/ui/reviews/{made['review_id']}"
    page = known.http.get(path, headers={**caller, "Accept": "text/html"}).text
    form = {"status": "pending", "by": "eng-99", "why": "again", "version": "1"}
    known.http.post(f"{path}/status", data=form, headers={HEADER: "eng-02"})

    assert "Who you are" not in page
    assert "eng-01" in page
    (latest, _) = known.get(f"/reviews/{made['review_id']}/audit")["items"]
    assert latest["actor"] == "eng-02"


def test_a_form_without_a_caller_is_refused(known: Client) -> None:
    """Where callers are known, nobody is nobody; to look needs no name."""
    made = known.http.post("/reviews", json=result_json(), headers={HEADER: "eng-01"}).json()
    path = f"/ui/reviews/{made['review_id']}"

    problem(known.http.post(f"{path}/status", data={"status": "pending", "by": "x"}), 403, "caller-unknown")
    problem(
        known.http.post("/ui/upload", data={"result": json.dumps(result_json("run-2"))}),
        403,
        "caller-unknown",
    )
    known.page(path)


def test_an_upload_is_of_ones_own_results(known: Client) -> None:
    """A list with a result by somebody else stores none."""
    listed = json.dumps([result_json("run-1"), result_json("run-2", created_by="eng-02")])

    answer = known.http.post("/ui/upload", data={"result": listed}, headers={HEADER: "eng-01"})

    assert answer.status_code == 422
    assert "upload only your own results" in answer.text
    assert missing(known, "run-1")


def test_a_form_says_that_names_are_taken_at_their_word(trial: Client) -> None:
    """Without a proxy nobody is checked, and who types a name is told so."""
    made = trial.post("run-1")

    assert "Recorded in the audit trail without verification" in trial.page(
        f"/ui/reviews/{made['review_id']}"
    )

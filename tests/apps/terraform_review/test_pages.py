"""The pages of the review history: each shows what it should, keeps what was typed, and runs nothing that came from outside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.apps.conftest import Target
from tests.apps.terraform_review.faces import CODE, LARGE, Client, Served, result_json, start

DAY_S = 86_400
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def client(served: Served, target: Target) -> Client:
    """A review history on one of the targets."""
    return start(served, target)


@pytest.fixture
def trial(served: Served) -> Client:
    """A review history in memory."""
    return start(served, Target("memory", "memory:", ""))


def text_of(page: str) -> str:
    """Return what a person reads of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_an_empty_history_says_what_to_do(client: Client) -> None:
    """Every page that needs no review is there before the first one, and says how one comes."""
    assert "No reviews in the last 30 days" in client.page("/ui/")
    assert "No stacks yet" in client.page("/ui/stacks")
    assert "No pending reviews." in client.page("/ui/reviews")
    assert "No issues in this category" in client.page("/ui/issues")
    assert "No high-risk reviews" in client.page("/ui/risk")
    assert "No changes by nobody" in client.page("/ui/actors/nobody")


def test_the_overview_tells_what_matters(client: Client) -> None:
    """What waits, what failed, what is risky, the trend and the issues are on one page."""
    client.post("run-risky", "Bucket is public")
    client.post("run-waits", status="pending", overall_risk_score=None)
    client.post("run-broke", status="failed", overall_risk_score=None)
    client.counted()

    page = client.page("/ui/")

    for told_of in ("run-risky", "run-waits", "run-broke", "Bucket is public", "Average risk by day"):
        assert told_of in page
    assert page.count("<svg") >= 3


def test_the_overview_is_kept_until_something_is_counted(client: Client) -> None:
    """Within a second it is made once, unless a change was counted meanwhile."""
    before = client.page("/ui/")
    again = client.page("/ui/")
    client.post("run-1")
    client.counted()

    assert again == before
    assert "run-1" in client.page("/ui/")


def test_a_stack_has_its_history(client: Client) -> None:
    """A stack's page has numbers, charts, reviews of a range of days and repeated issues."""
    for number in range(3):
        client.post(f"run-{number}", "Bucket is public")
        client.clock.advance(DAY_S)
    client.counted()

    page = client.page("/ui/stacks/prod-net")
    some = client.page("/ui/stacks/prod-net", query={"from": "2026-03-03", "to": "2026-03-03"})
    wrong = client.page("/ui/stacks/prod-net", query={"to": "2026-03-99"})

    assert "prod-net" in client.page("/ui/stacks")
    assert all(f"run-{number}" in page for number in range(3))
    assert "Bucket is public" in page
    assert "run-1" in some
    assert ">run-2<" not in some
    assert "Enter a date such as" in wrong
    assert "Bucket is public" in client.page("/ui/stacks/prod-net/issues", query={"min": 3})
    assert "No issue has 4 or more occurrences." in client.page(
        "/ui/stacks/prod-net/issues", query={"min": 4}
    )
    assert "No issue has 999,999,999 or more occurrences." in client.page(
        "/ui/stacks/prod-net/issues", query={"min": "99999999999999"}
    )
    assert "Not found" in client.page("/ui/stacks/none", 404)


def test_a_long_history_is_paged(client: Client) -> None:
    """A list shows a page, and leads to the older ones and back."""
    for number in range(27):
        client.post(f"run-{number:02}")
        client.clock.advance(60)

    first = client.page("/ui/stacks/prod-net")
    older = re.search(r'href="([^"]+)" rel="next"', first)

    assert older is not None
    second = client.page(older[1].replace("&amp;", "&"))
    assert "run-00" not in first.partition("Reviews</h2>")[2]
    assert "run-00" in second.partition("Reviews</h2>")[2]
    assert 'rel="first"' in second


def test_a_review_shows_all_of_itself(client: Client) -> None:
    """Facts, findings by category, code, versions with who and why; an old version says that it is one."""
    made = client.post("run-1", "Bucket is public", metadata={"model_used": "reviewer-2"})
    path = f"/ui/reviews/{made['review_id']}"
    body = {"changed_by": "eng-02", "why": "looked again", "overall_risk_score": 0.2}
    client.http.post(f"/reviews/{made['review_id']}/versions", json=body, headers={"If-Match": "*"})

    page, old = client.page(path), client.page(path, query={"version": 1})

    for told_of in (
        "eng-02",
        "looked again",
        "prod-net",
        "0.20",
        "before fixes: 0.72",
        "Compare with version 1",
    ):
        assert told_of in page
    assert "Bucket is public" in old
    assert "reviewer-2" in old
    assert "This is version 1 of 2" in old
    assert "aws_s3_bucket" in page
    assert "Not found" in client.page(path, 404, query={"version": 7})
    assert "Not found" in client.page("/ui/reviews/none", 404)


def test_a_run_leads_to_its_review(client: Client) -> None:
    """The page of a run is that of its review."""
    made = client.post("run-1")
    answer = client.http.get("/ui/runs/run-1", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, f"/ui/reviews/{made['review_id']}")
    assert client.http.get("/ui/runs/none").status_code == 404


def test_a_failed_review_says_why(client: Client) -> None:
    """The reason is on the page, and an unknown risk is called so."""
    details = {"error_type": "TIMEOUT", "error_message": "no answer in time", "retry_after": 60}
    made = client.post("run-1", status="failed", overall_risk_score=None, error_details=details)

    page = text_of(client.page(f"/ui/reviews/{made['review_id']}"))

    assert "no answer in time" in page
    assert "Risk — not assessed" in page


def test_versions_are_compared(client: Client) -> None:
    """Fields side by side and code line by line; without numbers, the last two."""
    made = client.post("run-1", "Bucket is public")
    path = f"/ui/reviews/{made['review_id']}/compare"
    body = {
        "changed_by": "eng-02",
        "overall_risk_score": 0.2,
        "terraform_code": CODE.replace("public-read", "private"),
    }
    client.http.post(f"/reviews/{made['review_id']}/versions", json=body, headers={"If-Match": "*"})

    page = client.page(path)

    assert ">Risk</th>" in page
    assert "<del>0.72</del>" in page
    assert "Bucket is public (high, security)" in page
    assert "diff-removed" in page
    assert "diff-added" in page
    assert "The code did not change." in client.page(path, query={"from": 2, "to": 2})
    assert "Not found" in client.page(path, 404, query={"from": 1, "to": 9})


def test_another_status_than_the_current_one_is_preselected(client: Client) -> None:
    """A pending review can be set to failed, a completed one is reviewed again: the form proposes a change."""
    for run, status, proposed in (("run-1", "pending", "failed"), ("run-2", "completed", "pending")):
        score = None if status == "pending" else 0.5
        made = client.post(run, status=status, overall_risk_score=score)
        page = client.page(f"/ui/reviews/{made['review_id']}")

        assert f'<option value="{proposed}" selected' in page


def test_high_risk_reviews_are_newest_first(client: Client) -> None:
    """The overview lists a day's risky reviews by time, although they are stored by risk."""
    client.post("run-riskiest", overall_risk_score=0.95)
    client.clock.advance(1)
    client.post("run-newest", overall_risk_score=0.8)
    page = client.page("/ui/")
    card = page[page.index("newest first") :]

    assert 0 < card.index("run-newest") < card.index("run-riskiest")


def test_the_audit_trail_says_that_it_is_intact(client: Client) -> None:
    """Who, when, why and what, and whether the seals hold; the same by actor."""
    made = client.post("run-1")
    patch = {"status": "pending", "changed_by": "eng-02", "why": "again"}
    client.http.patch(f"/reviews/{made['review_id']}", json=patch, headers={"If-Match": "*"})

    path = f"/ui/reviews/{made['review_id']}/audit"
    page = client.page(path)

    assert "Verified." not in page
    assert f'href="{path}?verify=all"' in page
    assert "Verified." in client.page(path, query={"verify": "all"})
    for told_of in ("eng-01", "eng-02", "again", "version 2"):
        assert told_of in page
    assert "again" in client.page("/ui/actors/eng-02")


def test_risk_is_shown_over_days(client: Client) -> None:
    """A range is chosen, long ones are put together, and a range that is none is told with what was typed."""
    client.post("run-1", overall_risk_score=0.9)
    client.counted()

    month = client.page("/ui/risk")
    year = client.page("/ui/risk", query={"from": "2025-06-01", "to": "2026-03-02"})
    years = client.page("/ui/risk", query={"from": "2017-06-01", "to": "2026-03-02"})
    wrong = client.page("/ui/risk", 422, query={"from": "2026-13-01"})
    backwards = client.page("/ui/risk", 422, query={"from": "2026-03-02", "to": "2026-03-01"})
    endless = client.page("/ui/risk", 422, query={"from": "0001-01-01"})

    assert "Average risk by day" in month
    assert "run-1" in month
    assert "Average risk by week" in year
    assert "Average risk by month" in years
    assert 'value="2026-13-01"' in wrong
    assert "The end date is before the start date." in backwards
    assert "Select a range" in endless


def test_a_day_has_its_distribution(client: Client) -> None:
    """The bands of a day and its reviews, the riskiest first; the first and last day there is lead no further."""
    client.post("run-1", overall_risk_score=0.9)
    client.post("run-2", overall_risk_score=0.1)
    client.post("run-3", status="failed", overall_risk_score=None)
    client.counted()

    page = client.page("/ui/risk/2026-03-02")
    listed = page.partition("Reviews</h2>")[2]

    assert "2 March 2026" in page
    assert listed.index("run-1") < listed.index("run-2")
    assert "run-3" not in listed
    assert "Day after" not in client.page("/ui/risk/9999-12-31")
    assert "Day before" not in client.page("/ui/risk/0001-01-01")


def test_issues_are_listed_and_shown(client: Client) -> None:
    """By category, and one with its stacks and occurrences."""
    client.post("run-1", "Bucket is public")
    client.counted()
    issue = client.get("/issues", query={"category": "security"})["items"][0]["issue_hash"]

    page = text_of(client.page(f"/ui/issues/{issue}"))

    assert "Bucket is public" in client.page("/ui/issues", query={"category": "security"})
    assert "Bucket is public" not in client.page("/ui/issues", query={"category": "cost"})
    assert "prod-net" in page
    assert "main.tf:1" in page
    assert "Not found" in client.page("/ui/issues/none", 404)


def test_reviews_are_listed_by_status(client: Client) -> None:
    """A status is chosen; what cannot be chosen shows the pending ones."""
    client.post("run-1", status="pending", overall_risk_score=None)
    client.post("run-2")

    assert "run-1" in client.page("/ui/reviews")
    assert "run-2" in client.page("/ui/reviews", query={"status": "completed"})
    assert "run-1" in client.page("/ui/reviews", query={"status": "nonsense"})
    assert "No review has been pending for 60 minutes or longer." in client.page(
        "/ui/reviews", query={"status": "pending", "older": 60}
    )


@pytest.mark.parametrize(
    "path",
    [
        f"/ui/stacks/prod-net/issues?min={'9' * 5_000}",
        "/ui/stacks/prod-net/issues?min=0",
        "/ui/stacks/prod-net/issues?min=-1",
        f"/ui/reviews?status=pending&older={'9' * 5_000}",
        "/ui/risk?from=0001-01-01&to=0001-01-05",
        "/ui/risk?from=9999-12-30&to=9999-12-31",
        "/ui/risk?to=0001-01-01",
        "/ui/risk/0001-01-01",
        "/ui/risk/9999-12-31",
        "/ui/stacks/prod-net?from=9999-12-31",
    ],
)
def test_a_strange_question_is_answered(trial: Client, path: str) -> None:
    """However a link was bent, there is a page, and never an error of ours."""
    trial.post("run-1")

    trial.page(path)


def test_the_overview_says_which_pending_ones_it_counts(trial: Client) -> None:
    """The tiles count reviews of 30 days; that older ones wait is said beside."""
    trial.post("run-old", status="pending", overall_risk_score=None)
    trial.clock.advance(40 * DAY_S)
    trial.post("run-new")
    trial.counted()
    told_of = text_of(trial.page("/ui/"))

    assert "Pending 0 created in the last 30 days, plus older ones" in told_of
    assert "Failed 0 created in the last 30 days" in told_of


def test_a_pending_review_keeps_its_risk_on_the_tiles(trial: Client) -> None:
    """Who is reviewed again is not of unknown risk, and the tiles do not say so."""
    made = trial.post("run-1", overall_risk_score=0.9)
    patch = {"status": "pending", "changed_by": "eng-02"}
    trial.http.patch(f"/reviews/{made['review_id']}", json=patch, headers={"If-Match": "*"})
    trial.counted()

    for path in ("/ui/risk", "/ui/risk/2026-03-02"):
        told_of = text_of(trial.page(path))
        assert "Unknown risk 0 not included in the average" in told_of
        assert "Pending 1 0 failed" in told_of


def test_an_issue_is_open_fixed_or_gone(trial: Client) -> None:
    """What stands, what was fixed and what is only not found any more are told apart."""
    made = trial.post("run-1", "Stays", "Fixed", "Gone")
    path = f"/reviews/{made['review_id']}"
    fix = {"changed_by": "eng-02", "fixes_applied": [{"finding_id": "run-1-f2"}]}
    trial.http.post(f"{path}/fixes", json=fix, headers={"If-Match": "*"})
    stays = result_json("run-1", "Stays")["findings"]
    trial.http.post(
        f"{path}/versions", json={"changed_by": "eng-02", "findings": stays}, headers={"If-Match": "*"}
    )
    trial.counted()
    page = trial.page("/ui/stacks/prod-net/issues", query={"min": 1})
    rows = [text_of(row.partition("</tr>")[0]) for row in page.split("<tr>") if "main-cell" in row]

    assert {row.split()[0]: row.rsplit("2026", 1)[1].strip() for row in rows} == {
        "Stays": "Open",
        "Fixed": "Fixed",
        "Gone": "No longer found",
    }


def test_a_busy_day_is_paged(trial: Client) -> None:
    """A day with more reviews than a page holds leads on to the others, and none is left out."""
    for number in range(30):
        trial.post(f"run-{number:02}", overall_risk_score=0.5)
    first = trial.page("/ui/risk/2026-03-02")
    more = re.search(r'href="(/ui/risk/2026-03-02\?cursor=[^"]+)"', first)
    assert more is not None
    second = trial.page(more[1])
    runs_by_page = [set(re.findall(r"run-\d\d", page)) for page in (first, second)]

    assert len(runs_by_page[0]) == 25
    assert len(runs_by_page[0] | runs_by_page[1]) == 30
    assert "Less risky" not in second


def test_a_page_shows_what_is_left_of_a_review(served: Served, tmp_path: Path) -> None:
    """Where the large code is gone from the blob store, its page and its comparison show all else, and say it."""
    client = start(served, Target("memory", "memory:", ""), blobs=tmp_path)
    made = client.post("run-1", "Bucket is public", terraform_code=LARGE)
    path = f"/ui/reviews/{made['review_id']}"
    version = {"changed_by": "eng-02", "terraform_code": CODE}
    client.http.post(f"/reviews/{made['review_id']}/versions", json=version, headers={"If-Match": "*"})
    for blob in tmp_path.rglob("*"):
        if blob.is_file():
            blob.unlink()
    page = client.page(path, query={"version": 1})
    compared = client.page(f"{path}/compare", query={"from": 1, "to": 2})

    assert "Bucket is public" in page
    assert "is missing from the blob store" in page
    assert "is missing from the blob store" in compared
    assert "eng-02" in compared


def test_nothing_from_outside_runs(client: Client) -> None:
    """Whatever a result says is shown as text, on every page that shows it."""
    made = client.post(
        "run-1",
        EVIL,
        created_by="<i>eng",
        terraform_code=f'"></code>{EVIL}',
        metadata={EVIL: EVIL},
        spacelift_context={"branch": EVIL, "changed_files": [EVIL]},
    )
    client.counted()
    path = f"/ui/reviews/{made['review_id']}"
    body = {"changed_by": "eng-02", "why": EVIL, "terraform_code": EVIL}
    client.http.post(f"/reviews/{made['review_id']}/versions", json=body, headers={"If-Match": "*"})
    issue = client.get("/issues", query={"category": "security"})["items"][0]["issue_hash"]

    for each in (
        "/ui/",
        path,
        f"{path}?version=1",
        f"{path}/compare",
        f"{path}/audit",
        f"/ui/issues/{issue}",
    ):
        answer = client.http.get(each)
        assert answer.status_code == 200
        assert EVIL not in answer.text
        assert "<i>eng" not in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert " style=" not in answer.text
        assert "onclick" not in answer.text


def test_names_with_signs_are_reached_by_their_links(client: Client) -> None:
    """A stack, a run and an actor whose names need escaping have links that lead to them."""
    client.post("run?1#2", stack_id="a b&c=é 100%", created_by="who? me#")
    client.counted()

    page = client.page("/ui/stacks")
    link = re.search(r'href="(/ui/stacks/[^"]+)"', page)

    assert link is not None
    stack = client.page(link[1].replace("&amp;", "&"))
    review = re.search(r'href="(/ui/reviews/[^"]+)"', stack)
    assert review is not None
    actor = re.search(r'href="(/ui/actors/[^"]+)"', client.page(review[1]))
    assert actor is not None
    assert "Changes by who? me#" in client.page(actor[1])


def test_pages_hold_under_a_base_path(served: Served) -> None:
    """Every link and form of every page begins with the base path."""
    client = start(served, Target("memory", "memory:", ""), base_path="/review")
    made = client.post("run-1", "Bucket is public")
    client.counted()

    for path in (
        "/ui/",
        "/ui/stacks",
        "/ui/stacks/prod-net",
        f"/ui/reviews/{made['review_id']}",
        "/ui/upload",
        "/ui/risk",
    ):
        page = client.page(path)
        inner = re.findall(r'(?:href|src|action)="(/[^"]*)"', page)
        assert inner
        assert not [each for each in inner if not each.startswith("/review/")]

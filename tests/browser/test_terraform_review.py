"""The review history as an engineer uses it."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect

HOME = "/terraform-review/ui/"


def result(run: str, **more: object) -> dict[str, object]:
    """Return a review result as an analyser gives it."""
    return {
        "spacelift_run_id": run,
        "stack_id": "browser-stack",
        "created_by": "eng-walk",
        "status": "completed",
        "overall_risk_score": 0.82,
        "terraform_code": 'resource "aws_s3_bucket" "a" {}\n',
        "findings": [
            {
                "category": "security",
                "severity": "high",
                "title": "Bucket of the browser is public",
                "file_path": "main.tf",
                "line_number": 5,
                "recommendation": "Add a public access block",
            }
        ],
        **more,
    }


def upload(page: Page, *results: dict[str, object]) -> None:
    """Store results by the form; a single one leads to its review."""
    page.goto(f"{HOME}upload")
    page.get_by_label("JSON").fill(json.dumps(results[0] if len(results) == 1 else list(results)))
    page.get_by_role("button", name="Upload").click()


def test_a_result_is_uploaded_and_read(page: Page, tmp_path: Path) -> None:
    """A file of results becomes reviews, with their findings, code and risk."""
    file = tmp_path / "result.json"
    file.write_text(json.dumps(result("run-file")))
    page.goto(f"{HOME}upload")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Review of run-file")

    main = page.get_by_role("main")
    expect(main).to_contain_text("Bucket of the browser is public")
    expect(main).to_contain_text("Add a public access block")
    expect(main).to_contain_text('resource "aws_s3_bucket" "a" {}')
    expect(main).to_contain_text("0.82")


def test_a_result_that_is_none_is_told(page: Page) -> None:
    """What cannot be read is refused, with where it is wrong, and kept in the field."""
    page.goto(f"{HOME}upload")
    page.get_by_label("JSON").fill('{"stack_id": 7}')
    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_role("alert")).to_contain_text("The result was not stored")
    expect(page.get_by_label("JSON")).to_have_value('{"stack_id": 7}')


def test_versions_are_made_compared_and_audited(page: Page) -> None:
    """A changed status is a new version; two versions are compared field by field, and the trail is intact."""
    upload(page, result("run-versions", status="pending", overall_risk_score=None, findings=[]))
    expect(page.get_by_role("heading", level=1)).to_have_text("Review of run-versions")
    page.get_by_label("New status").select_option("failed")
    page.get_by_label("Your name").fill("eng-walk")
    page.get_by_label("Reason").fill("The analyser broke down")
    page.get_by_role("button", name="Change status").click()
    expect(page.locator("ol.timeline")).to_contain_text("The analyser broke down")

    page.get_by_role("link", name="Compare with version 1").click()
    row = page.locator(".differences tr").filter(has_text="status").first
    expect(row).to_contain_text("Pending")
    expect(row).to_contain_text("Failed")

    page.go_back()
    page.get_by_role("link", name="Audit trail").click()
    page.get_by_role("link", name="Verify").click()
    expect(page.get_by_role("main")).to_contain_text("Verified.")
    expect(page.get_by_role("main")).to_contain_text("eng-walk")


def test_a_stale_change_is_refused(page: Page) -> None:
    """Of two changes to one version the second is refused and creates no version."""
    upload(page, result("run-stale", status="pending", overall_risk_score=None, findings=[]))
    expect(page.get_by_role("heading", level=1)).to_have_text("Review of run-stale")
    other = page.context.new_page()
    other.goto(page.url)
    for each in (page, other):
        each.get_by_label("New status").select_option("failed")
        each.get_by_label("Your name").fill("eng-walk")
        each.get_by_role("button", name="Change status").click()

    expect(other.get_by_role("alert")).to_be_visible()
    expect(other.get_by_role("main")).not_to_contain_text("Version 3")


def test_a_stack_has_its_history_and_its_repeated_issues(page: Page) -> None:
    """After two runs with the same finding, the stack lists both runs and the issue both occurrences."""
    upload(page, *(result(f"run-again-{number}", stack_id="browser-repeats") for number in (1, 2)))
    for _ in range(100):  # the projector follows
        page.goto(f"{HOME}stacks/browser-repeats")
        if page.get_by_role("link", name="Bucket of the browser is public").count():
            break
    expect(page.locator("svg[role=img]").first).to_be_visible()
    page.get_by_role("link", name="Bucket of the browser is public").first.click()

    expect(page.get_by_role("main")).to_contain_text("run-again-1")
    expect(page.get_by_role("main")).to_contain_text("run-again-2")
    page.goto(f"{HOME}issues?category=security")
    expect(page.get_by_role("link", name="Bucket of the browser is public").first).to_be_visible()


def test_the_risk_trend_is_drawn(page: Page) -> None:
    """The risk page draws the days of a range and lists them in a table; a day links to its reviews."""
    upload(page, result("run-risk", stack_id="browser-risk"))
    for _ in range(100):  # the projector follows
        page.goto(f"{HOME}risk")
        if page.get_by_role("link", name="run-risk").count():
            break
    assert page.locator("svg[role=img]").count() >= 2
    page.locator("tbody td.main-cell a[href*='/risk/']").first.click()

    expect(page.get_by_role("link", name="run-risk")).to_be_visible()


def test_pending_reviews_are_those_that_are_pending_now(page: Page) -> None:
    """A review that was pending once and is not any more is not among the pending ones."""
    upload(page, result("run-pending", status="pending", overall_risk_score=None, findings=[]))
    page.goto(f"{HOME}reviews?status=pending")
    page.get_by_role("link", name="run-pending").click()
    page.get_by_label("New status").select_option("failed")
    page.get_by_label("Your name").fill("eng-walk")
    page.get_by_role("button", name="Change status").click()
    expect(page.get_by_role("main")).to_contain_text("Version 2")

    page.goto(f"{HOME}reviews?status=pending")
    expect(page.get_by_role("link", name="run-pending")).to_have_count(0)
    page.goto(f"{HOME}reviews?status=failed")
    expect(page.get_by_role("link", name="run-pending")).to_have_count(1)

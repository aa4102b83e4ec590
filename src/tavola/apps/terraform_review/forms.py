"""The forms of the pages: upload a result, change a status. A refused form is shown again with the input and the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from tavola import TavolaError
from tavola.apps.shell import Pages, problem_of
from tavola.apps.terraform_review import service
from tavola.apps.terraform_review.domain import ReviewStatus
from tavola.apps.terraform_review.errors import ReviewError
from tavola.apps.terraform_review.intake import IntakeStopped, ingest
from tavola.apps.terraform_review.pages import review_page
from tavola.apps.terraform_review.requests import require_caller, store_of
from tavola.apps.terraform_review.results import Id
from tavola.patterns import HistoryAhead, VersionConflict

UPLOAD_KEPT_CHARACTERS: Final = 200_000  # of input that is shown again after an error
UPLOAD_BYTES_MAX: Final = 24 * 1024 * 1024
WHY_CHARACTERS_MAX: Final = 1_000
EXAMPLE: Final = """\
{
  "spacelift_run_id": "run-0421",
  "stack_id": "shop-prod",
  "created_by": "reviewer-1",
  "status": "completed",
  "overall_risk_score": 0.72,
  "terraform_code": "resource \\"aws_s3_bucket\\" \\"a\\" {}",
  "findings": [
    {
      "category": "security",
      "severity": "high",
      "title": "Public bucket",
      "file_path": "main.tf",
      "line_number": 5,
      "recommendation": "Add a public access block"
    }
  ]
}"""
_ID: Final = TypeAdapter[str](Id)


def router_of(pages: Pages) -> APIRouter:
    """Return the routes of the forms."""
    pages.environment.globals.update(example=EXAMPLE)
    router = APIRouter(include_in_schema=False)
    _add_status(router, pages)
    _add_upload(router, pages)
    return router


def _add_status(router: APIRouter, pages: Pages) -> None:
    @router.post("/ui/reviews/{review_id}/status")
    async def change_status(request: Request, review_id: str) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        by = require_caller(request) or form.get("by", "").strip()
        errors = _check_form(form, by)
        if not errors:
            try:
                await service.change_status(
                    store_of(request),
                    review_id,
                    ReviewStatus(form["status"]),
                    by=by,
                    why=form.get("why", "").strip(),
                    expected_version=_parse_number(form.get("version", "")),
                )
            except HistoryAhead:
                errors[""] = (
                    "The review is older than its history and cannot be changed. Verify its audit trail."
                )
            except VersionConflict:
                errors[""] = (
                    "The review was changed by someone else. Check its current version and try again."
                )
            except ReviewError as error:
                errors["status"] = error.detail
        if errors:
            return await review_page(request, pages, review_id, None, form=form, errors=errors)
        request.app.state.follower.wake()
        return pages.redirect(request, f"/ui/reviews/{review_id}")


def _add_upload(router: APIRouter, pages: Pages) -> None:
    def render_upload(request: Request, text_input: str, status: int = 200, **more: Any) -> Response:
        context = {"typed": text_input, "errors": {}, "recorded": (), **more}
        return pages.render(request, "upload.html", context, status=status)

    @router.get("/ui/upload")
    async def upload(request: Request) -> Response:
        return render_upload(request, "")

    @router.post("/ui/upload")
    async def submit_upload(request: Request) -> Response:
        caller = require_caller(request)
        async with request.form(max_files=1, max_fields=4, max_part_size=UPLOAD_BYTES_MAX) as form:
            text_input = str(form.get("result") or "")
            file = form.get("file")
            data: bytes | str = text_input
            if isinstance(file, UploadFile) and file.filename:
                data = await file.read()
        text = data if isinstance(data, str) else data.decode(errors="replace")
        shown_again = text if len(text) <= UPLOAD_KEPT_CHARACTERS else ""
        recorded: Sequence[service.RecordedReview] = ()
        problem = ""
        try:
            if data.strip():
                recorded = await ingest(store_of(request), data, caller=caller)
            else:
                problem = "Choose a file, or paste a result as JSON."
        except IntakeStopped as stopped:
            recorded, problem = stopped.recorded, _client_error(stopped)
        except TavolaError as error:
            problem = _client_error(error)
        if recorded:
            request.app.state.follower.wake()
        if problem:
            return render_upload(request, shown_again, 422, errors={"result": problem}, recorded=recorded)
        if len(recorded) == 1:
            return pages.redirect(request, f"/ui/reviews/{recorded[0].review.review_id}")
        return render_upload(request, "", recorded=recorded)


def _client_error(error: TavolaError) -> str:
    """Return the message for the person who submitted a result; re-raise errors that are not theirs."""
    problem = problem_of(error)
    if problem is None or problem.status >= 500:
        raise error
    return problem.detail


def _check_form(form: Mapping[str, str], by: str) -> dict[str, str]:
    errors: dict[str, str] = {}
    if form.get("status") not in (ReviewStatus.PENDING, ReviewStatus.FAILED):
        errors["status"] = "Select Pending or Failed."
    if not _is_id(by):
        errors["by"] = "Enter your name: up to 200 characters without slashes."
    if len(form.get("why", "")) > WHY_CHARACTERS_MAX:
        errors["why"] = f"Use at most {WHY_CHARACTERS_MAX:,} characters."
    return errors


def _parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _is_id(text: str) -> bool:
    try:
        _ID.validate_python(text)
    except ValidationError:
        return False
    return True

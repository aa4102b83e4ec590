"""`tavola app terraform-review ingest`, `analyze` and `sweep`: load reviews and delete unused blobs, without a server."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from tavola.cli.applications import EnvironmentOption, StorageOptions, reporting_app_errors
from tavola.cli.errors import CommandError
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, Option
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.apps.shell import AppSettings
    from tavola.apps.terraform_review.service import RecordedReview
    from tavola.apps.terraform_review.store import ReviewStore

T = TypeVar("T")
AsJsonLines = Annotated[bool, Option("--json", help="Print one line of JSON for each review.")]


def ingest(
    file: Annotated[
        str,
        Argument(
            metavar="FILE", help="Review results as JSON: one, a list, or one per line; - is standard input."
        ),
    ],
    environment: EnvironmentOption = "dev",
    storage: StorageOptions = BUNDLE,
    as_json: AsJsonLines = False,
) -> None:
    """Store review results from a file.

    Results that are stored already are reported and skipped.
    """
    with reporting_app_errors(f"Cannot ingest {file}."):
        from tavola.apps.terraform_review import intake

        _require_store(storage)
        data = _read(file)
        with _reporting_recorded(as_json=as_json):
            recorded = _with_store(storage, environment, lambda store, _: intake.ingest(store, data))
    for recorded_review in recorded:
        _say_recorded(recorded_review, as_json=as_json)


def analyze(
    folder: Annotated[Path, Argument(help="Folder of Terraform code.")],
    stack: Annotated[str, Option("--stack", metavar="NAME", help="Stack that the code belongs to.")],
    run: Annotated[
        str | None, Option("--run", metavar="ID", help="ID of this run. Default: a random one.")
    ] = None,
    by: Annotated[str, Option("--by", metavar="NAME", help="Author in the audit trail.")] = "checkov",
    commit: Annotated[str | None, Option("--commit", help="Commit of the code.")] = None,
    branch: Annotated[str | None, Option("--branch", help="Branch of the code.")] = None,
    checkov: Annotated[
        Path | None, Option("--checkov", metavar="FILE", help="The checkov program. Default: found in PATH.")
    ] = None,
    search: Annotated[str, Option("--search", envvar="PATH", hidden=True)] = "",
    timeout: Annotated[int, Option("--timeout", metavar="S", min=1, help="Time limit in seconds.")] = 300,
    environment: EnvironmentOption = "dev",
    storage: StorageOptions = BUNDLE,
    as_json: AsJsonLines = False,
) -> None:
    """Check Terraform code with checkov and store the review."""
    with reporting_app_errors(f"Cannot review {folder}."):
        from tavola.apps.terraform_review import intake
        from tavola.apps.terraform_review.checkov import Checkov, find_program

        _require_store(storage)
        program = find_program(None if checkov is None else checkov.expanduser(), search)
        analyser = Checkov(program, timeout_s=timeout)
        with _reporting_recorded(as_json=as_json):
            recorded = _with_store(
                storage,
                environment,
                lambda store, settings: intake.analyse(
                    store,
                    folder,
                    analyser,
                    stack=stack,
                    run=run,
                    by=by,
                    commit=commit,
                    branch=branch,
                    clock=settings.clock,
                    entropy=settings.entropy,
                ),
            )
        _say_recorded(recorded, as_json=as_json)
        failure = recorded.review.error_details
        if failure is not None:
            raise CommandError(
                failure.error_message,
                "Fix the cause and run the command again; this run is stored as a failed review.",
                ErrorKind.INVALID,
            )


def sweep(
    environment: EnvironmentOption = "dev", storage: StorageOptions = BUNDLE, as_json: AsJson = False
) -> None:
    """Delete blobs of code that no review refers to.

    Run it every day or week: a sweep marks unreferenced blobs, and a sweep at least a day later deletes them.
    """
    with reporting_app_errors("Cannot sweep the blobs of the reviews."):
        _require_store(storage)
        swept = _with_store(storage, environment, lambda store, _: store.sweep_blobs())
    counts = {
        "deleted": len(swept.orphans),
        "noted": len(swept.noted),
        "kept": swept.kept,
        "young": swept.young,
    }
    if as_json:
        say_json("tavola.sweep/1", counts)
    else:
        say(
            f"{counts['deleted']} deleted, {counts['noted']} marked for the next sweep, {counts['kept']} in use"
        )


def _require_store(storage: StorageOptions) -> None:
    if storage.store == "memory:":
        raise CommandError(
            "--store is missing.", "Name the database file or endpoint of the reviews with --store."
        )


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).expanduser().read_bytes()
    except OSError as error:
        cause = f"{file} cannot be read: {error.strerror}."
        raise CommandError(
            cause, "Name a JSON file, or - for standard input.", ErrorKind.NOT_FOUND
        ) from error


def _with_store(
    storage: StorageOptions, environment: str, work: Callable[[ReviewStore, AppSettings], Awaitable[T]]
) -> T:
    """Return the result of work on the reviews of an environment."""
    import asyncio

    from tavola.apps.shell import opened_store
    from tavola.apps.terraform_review.model import Reviews
    from tavola.apps.terraform_review.web import in_environment, review_store

    with storage.open() as opened:
        settings = in_environment(storage.settings(opened), environment)
        if isinstance(settings.target, str) and settings.blobs is None:
            note(f"Large values go to {settings.state}; give the application the same --state or --blobs.")

        async def run() -> T:
            async with opened_store(settings, Reviews) as store:
                return await work(review_store(store), settings)

        return asyncio.run(run())


@contextmanager
def _reporting_recorded(*, as_json: bool) -> Iterator[None]:
    """Print the reviews that were stored before an error."""
    from tavola.apps.terraform_review.errors import RunRecorded
    from tavola.apps.terraform_review.intake import IntakeStopped

    remedy = "Give the run another ID, or create a new version of its review."
    try:
        yield
    except RunRecorded as error:
        raise CommandError(str(error), f"Nothing was stored. {remedy}", ErrorKind.IN_USE) from error
    except IntakeStopped as error:
        for recorded_review in error.recorded:
            _say_recorded(recorded_review, as_json=as_json)
        is_duplicate = isinstance(error.__cause__, RunRecorded)
        kind = ErrorKind.IN_USE if is_duplicate else ErrorKind.INVALID
        raise CommandError(str(error), remedy if is_duplicate else None, kind) from error


def _say_recorded(recorded: RecordedReview, *, as_json: bool) -> None:
    review = recorded.review
    if as_json:
        members = {
            "review_id": review.review_id,
            "version": review.version,
            "status": str(review.status.value),
            "replayed": recorded.replayed,
        }
        say_json("tavola.review/1", members)
    else:
        suffix = " (stored already)" if recorded.replayed else ""
        say(f"{review.review_id} version {review.version}: {review.status.value}{suffix}")

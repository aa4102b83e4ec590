"""`tavola app terraform-review ingest`, `analyse` and `sweep`: load reviews and delete unused blobs, without a server."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.app_options import (
    AppStoreOption,
    Environment,
    StorageOptions,
)
from tavola.cli.applications import TERRAFORM_REVIEW, module_of, reporting_app_errors, shell
from tavola.cli.exits import Exit
from tavola.cli.output import complain, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option

AsJson = Annotated[bool, Option("--json", help="Print a JSON line for each review.")]


def ingest(
    file: Annotated[
        str,
        Argument(
            metavar="FILE",
            help="A review result as JSON, a list of them, or one on each line; - reads them here.",
        ),
    ],
    store: AppStoreOption,
    environment: Environment = "dev",
    storage: StorageOptions = BUNDLE,
    as_json: AsJson = False,
) -> None:
    """Store review results from a file; results that are stored already are reported and skipped."""
    what = f"Cannot take in {file}."
    data = _read(file, what)
    with reporting_app_errors(what):
        intake = module_of(TERRAFORM_REVIEW, "intake")
        with (
            _reporting_intake_errors(what, as_json=as_json),
            storage.open(store) as keeping,
        ):
            settings = _in_environment(storage.settings(store, keeping), environment)
            recorded = _with_store(settings, lambda made: intake.ingest(made, data))
    for each in recorded:
        _tell(each, as_json=as_json)


def analyse(
    folder: Annotated[Path, Argument(help="The folder of Terraform code.")],
    stack: Annotated[str, Option("--stack", help="The stack that the code is of.")],
    store: AppStoreOption,
    run: Annotated[
        str | None, Option("--run", help="What this run is called; one made of chance if left out.")
    ] = None,
    by: Annotated[str, Option("--by", help="Who says so, in the audit trail.")] = "checkov",
    commit: Annotated[str | None, Option("--commit", help="The commit that was looked at.")] = None,
    branch: Annotated[str | None, Option("--branch", help="The branch that it is on.")] = None,
    checkov: Annotated[
        Path | None, Option("--checkov", help="Where checkov is; looked for in PATH if left out.")
    ] = None,
    search: Annotated[str, Option("--search", envvar="PATH", hidden=True)] = "",
    timeout_s: Annotated[int, Option("--timeout-s", min=1, help="The most seconds it may take.")] = 300,
    environment: Environment = "dev",
    storage: StorageOptions = BUNDLE,
    as_json: AsJson = False,
) -> None:
    """Let checkov look at a folder of Terraform code, and store what it finds as a review of a stack."""
    what = f"Cannot review {folder}."
    with reporting_app_errors(what):
        intake = module_of(TERRAFORM_REVIEW, "intake")
        program = module_of(TERRAFORM_REVIEW, "checkov")
        with _reporting_intake_errors(what, as_json=as_json):
            found = program.find_program(None if checkov is None else checkov.expanduser(), search)
            analyser = program.Checkov(found, timeout_s=timeout_s)
            with storage.open(store) as keeping:
                settings = _in_environment(storage.settings(store, keeping), environment)
                recorded = _with_store(
                    settings,
                    lambda made: intake.analyse(
                        made,
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
    _tell(recorded, as_json=as_json)
    broken = recorded.review.error_details
    if broken is not None:
        complain(what, broken.error_message, "The run is stored as a failed review, whose risk nobody knows.")
        raise click.exceptions.Exit(Exit.FAILED)


def sweep(
    store: AppStoreOption,
    environment: Environment = "dev",
    storage: StorageOptions = BUNDLE,
    as_json: Annotated[bool, Option("--json", help="Print how many as one JSON line.")] = False,
) -> None:
    """Delete code in the blob store that no version points to: what refused, overtaken and expired reviews left behind.

    A sweep marks unreferenced blobs, and a sweep at least a day later deletes them. Run it every day or week.
    """
    what = "Cannot sweep the blobs of the reviews."
    with (
        reporting_app_errors(what),
        storage.open(store) as keeping,
    ):
        settings = _in_environment(storage.settings(store, keeping), environment)
        swept = _with_store(settings, lambda made: made.sweep_blobs())
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
            f"{counts['deleted']} deleted, {counts['noted']} noted for a sweep a day from now, {counts['kept']} in use"
        )


def _read(file: str, what: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).expanduser().read_bytes()
    except OSError as error:
        complain(
            what, f"It cannot be read: {error.strerror}.", "Name a file of JSON, or - for standard input."
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND) from error


def _in_environment(settings: Any, environment: str) -> Any:
    """Return settings for the reviews of one environment."""
    return module_of(TERRAFORM_REVIEW, "web").in_environment(settings, environment)


def _with_store(settings: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return what the work comes to on the store of reviews that the settings name."""
    import asyncio

    web = module_of(TERRAFORM_REVIEW, "web")
    reviews = module_of(TERRAFORM_REVIEW, "model").Reviews

    if isinstance(settings.target, str) and settings.blobs is None:
        note(
            f"What is large goes to {settings.state}, where the application must look too: give both one --state or --blobs."
        )

    async def run() -> Any:
        async with shell().opened_store(settings, reviews) as store:
            return await work(web.review_store(store))

    return asyncio.run(run())


@contextmanager
def _reporting_intake_errors(what: str, *, as_json: bool) -> Iterator[None]:
    """Turn results that cannot be stored, or not all, into three lines and an exit code; tell those that were."""
    taken = module_of(TERRAFORM_REVIEW, "errors").RunRecorded
    stopped = module_of(TERRAFORM_REVIEW, "intake").IntakeStopped
    try:
        yield
    except taken as error:
        complain(
            what,
            str(error),
            "Nothing was stored. Give the run another id, or make a new version of its review.",
        )
        raise click.exceptions.Exit(Exit.CONFLICT) from error
    except stopped as error:
        for each in error.recorded:
            _tell(each, as_json=as_json)
        complain(what, str(error), None)
        raise click.exceptions.Exit(
            Exit.CONFLICT if isinstance(error.__cause__, taken) else Exit.FAILED
        ) from error


def _tell(recorded: Any, *, as_json: bool) -> None:
    review = recorded.review
    if as_json:
        say_json(
            "tavola.review/1",
            {
                "review_id": review.review_id,
                "version": review.version,
                "status": str(review.status.value),
                "replayed": recorded.replayed,
            },
        )
    else:
        there = ", there already" if recorded.replayed else ""
        say(f"{review.review_id} version {review.version}: {review.status.value}{there}")

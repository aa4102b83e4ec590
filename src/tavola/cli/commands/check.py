"""`tavola check` and `tavola probe`: what a design needs of an engine, and what an engine can do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import click

from tavola import __version__
from tavola.cli.design_files import read_design_files
from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.files import FileRefused, deliver
from tavola.cli.output import bar, note, say, say_json
from tavola.cli.parameters import BUNDLE, Option
from tavola.cli.targets import Target, TargetOptions

_SLICE_MS = 20  # of a store's longer work, such as filling an index, between two calls
_MARKS = {"yes": "fine", "no": "missing", "partial": "differs", "version": "depends", "unknown": "unknown"}


def check(
    target: DesignArgument,
    on: Annotated[
        str,
        Option(
            "--target",
            metavar="NAME[@VERSION]|FILE",
            help="The engine: aws, alternator, extenddb, phoenix, geminidb, spanner-adapter, dynamodb-local, tavola, "
            "perhaps with a version; or the file that `tavola probe` wrote.",
        ),
    ],
    all_: Annotated[bool, Option("--all", help="Tell also what is there as it is needed.")] = False,
    strict: Annotated[
        bool, Option("--strict", help="Exit with 1 also for what differs or is unknown.")
    ] = False,
    sarif: Annotated[
        str | None,
        Option("--sarif", metavar="FILE", help="Write the findings as SARIF; - prints them."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print every verdict as JSON.")] = False,
) -> None:
    """Hold what a design needs against what an engine can do; the exit code is 1 if something is missing there."""
    with reporting_errors(f"Cannot check {target}."):
        from tavola.design import targets

        engine = targets.find_target(on)
        design = load_design(target)
        verdicts = targets.check(design, engine)
        findings = targets.unmet_findings(verdicts, engine)
        if sarif is not None:
            _write_sarif(sarif, target, findings)
    if engine.version and not any(verdict.answer.since for verdict in verdicts):
        note(f"Nothing that the design needs of {engine.title} depends on its version.")
    if as_json:
        _say_verdicts(engine, verdicts)
    elif sarif != "-":
        _tell(engine, verdicts, everything=all_)
    missing = any(verdict.answer.value == "no" for verdict in verdicts)
    if missing or (strict and findings):
        raise click.exceptions.Exit(Exit.FAILED)


def probe(
    out: Annotated[
        Path | None,
        Option("--out", help="Write what was found to this file, for `tavola check --target FILE`."),
    ] = None,
    wait: Annotated[
        float, Option("--wait", help="Seconds to wait for a table, an index or a change.", min=0.1)
    ] = 60.0,
    as_json: Annotated[bool, Option("--json", help="Print the result as JSON.")] = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Find out by small calls what a server can do, on tables of its own that it removes again.

    What small calls cannot show stays unknown. On AWS the tables cost a few cents at most.
    """
    server_name = str(at)
    with reporting_errors(f"Cannot probe {server_name}."):
        from tavola.clock import SYSTEM_CLOCK
        from tavola.design.targets import probe as find_out
        from tavola.design.targets import write_target
        from tavola.entropy import SYSTEM_ENTROPY

        if out is not None:
            _writable(out)
        with at.open(new=True) as server, bar("Probing", 0) as show:
            found, left = find_out(
                _Tended(server),
                server_name,
                clock=SYSTEM_CLOCK,
                entropy=SYSTEM_ENTROPY,
                wait_s=wait,
                progress=lambda done, _total: show(done),
            )
        if out is not None:
            deliver(out, write_target(found), "--out")
    for name in left:
        kind = "backup" if name.startswith("arn:") else "table"
        note(f"The {kind} {name} could not be removed; remove it yourself.")
    if as_json:
        say_json(
            "tavola.probe/1",
            {
                "target": found.title,
                "checked": found.checked.isoformat(),
                "source": found.source,
                "capabilities": {
                    name: {"value": answer.value, "told": answer.told}
                    for name, answer in found.answers.items()
                },
            },
        )
    elif out is None:
        _tell_probe(found)
    else:
        note(f"Wrote {out}; hold a design against it with `tavola check TARGET --target {out}`.")


class _Tended:
    """A server as the probe asks it; the engine of a store does its longer work between the calls."""

    def __init__(self, server: Target) -> None:
        self._backend = server.connection.backend
        self._engine = server.engine

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._engine is not None:
            self._engine.run_background_work(_SLICE_MS)
        answer: dict[str, Any] = self._backend.call(operation, request)
        return answer

    def close(self) -> None:
        self._backend.close()


def _writable(out: Path) -> None:
    """Refuse a file that cannot be written before anything is asked; a probe's result should not be lost."""
    if not out.parent.is_dir():
        raise FileRefused(str(out), f"there is no folder {out.parent}", "--out")
    if out.is_dir():
        raise FileRefused(str(out), "it is a folder", "--out")


def _tell(engine: Any, verdicts: Any, *, everything: bool) -> None:
    from tavola.design.targets import capabilities

    by_capability: dict[str, list[Any]] = {}
    for verdict in verdicts:
        by_capability.setdefault(verdict.use.capability, []).append(verdict)
    counts = dict.fromkeys(_MARKS.values(), 0)
    for name, needed in by_capability.items():
        answer = needed[0].answer
        counts[_MARKS[answer.value]] += 1
        if everything or answer.value != "yes":
            otherwise = f": {answer.told}" if answer.told else ""
            say(f"{_MARKS[answer.value]:<8} {name} ({capabilities()[name].title}){otherwise}")
            for verdict in needed:
                say(f"           {verdict.use.place} {verdict.use.what}")
    version = f" {engine.version}" if engine.version else ""
    sum_up = ", ".join(f"{count} {mark}" for mark, count in counts.items() if count) or "nothing is needed"
    say(f"{engine.title}{version}, as of {engine.checked} ({engine.source}): {sum_up}.")


def _tell_probe(found: Any) -> None:
    from tavola.design.targets import capabilities

    for name, answer in found.answers.items():
        say(
            f"{_MARKS[answer.value] if answer.value != 'yes' else 'yes':<8} {name:<26} {capabilities()[name].title}"
        )
        if answer.told:
            say(f"         {answer.told}")
    say(f"{found.title}, {found.checked}: {found.source}.")


def _say_verdicts(engine: Any, verdicts: Any) -> None:
    say_json(
        "tavola.check/1",
        {
            "target": engine.name,
            "version": engine.version or None,
            "checked": engine.checked.isoformat(),
            "verdicts": [
                {
                    "capability": verdict.use.capability,
                    "place": str(verdict.use.place),
                    "table": verdict.use.place.table,
                    "what": verdict.use.what,
                    "value": verdict.answer.value,
                    "told": verdict.answer.told,
                    "source": verdict.answer.source or engine.source,
                }
                for verdict in verdicts
            ],
        },
    )


def _write_sarif(place: str, subject: str, findings: Any) -> None:
    from tavola.design.lint import LintReport, Rule, sarif_log
    from tavola.design.targets import capabilities

    rules = [
        Rule(
            name=f"target-{each.name}",
            severity="error",
            title=f"The design needs {each.title}.",
            why="An engine that speaks DynamoDB's API need not do all that DynamoDB does.",
            example=each.title,
            remedy="Do without it there, or stay with a target that has it.",
            find=lambda _subject: iter(()),
        )
        for each in capabilities().values()
    ]
    log = sarif_log(LintReport(findings), rules, read_design_files(subject), __version__)
    deliver(place, json.dumps(log, indent=2, ensure_ascii=False), "--sarif")

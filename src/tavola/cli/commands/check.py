"""`tavola check` and `tavola probe`: compare a design with the features of a DynamoDB-compatible engine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from tavola import __version__
from tavola.cli.designs import DesignArgument, load_design, read_source_files
from tavola.cli.errors import Exit, reporting_errors
from tavola.cli.files import check_writable, write_result
from tavola.cli.output import bar, note, say, say_json
from tavola.cli.parameters import BUNDLE, AsJson, Option
from tavola.cli.targets import NewTargetOptions, Target, check_is_dynamodb
from tavola.cli.terminal import Role, style

if TYPE_CHECKING:
    from tavola.design.findings import Finding
    from tavola.design.targets import TargetFile, Verdict

_SLICE_MS = 20  # background work of an engine in this process, such as building an index, between two calls
_LABELS = {
    "yes": "supported",
    "no": "missing",
    "partial": "differs",
    "version": "depends",
    "unknown": "unknown",
}
_ROLES: dict[str, Role] = {
    "yes": "success",
    "no": "error",
    "partial": "warning",
    "version": "warning",
    "unknown": "muted",
}


def check(
    design: DesignArgument,
    target: Annotated[
        str,
        Option(
            "--target", metavar="NAME[@VERSION]|FILE",
            help="Engine: aws, alternator, extenddb, phoenix, geminidb, spanner-adapter, dynamodb-local or tavola; or a file "
            "from `tavola probe`.",
        ),
    ],
    all_: Annotated[bool, Option("--all", help="List supported features too.")] = False,
    strict: Annotated[
        bool, Option("--strict", help="Exit with 1 also if a feature differs or is unknown.")
    ] = False,
    sarif: Annotated[
        str | None, Option("--sarif", metavar="FILE|-", help="Write the findings as SARIF 2.1.0; - prints them.")
    ] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Check a design against a DynamoDB-compatible engine.

    Exits with 1 if the engine lacks a feature that the design needs.
    """
    with reporting_errors(f"Cannot check {design}."):
        from tavola.design import targets

        engine = targets.find_target(target)
        verdicts = targets.check(load_design(design), engine)
        findings = targets.unmet_findings(verdicts, engine)
        if sarif is not None:
            _write_sarif(sarif, design, findings)
    if engine.version and not any(verdict.answer.since for verdict in verdicts):
        note(f"No feature that the design needs depends on the version of {engine.title}.")
    if as_json:
        _say_json(engine, verdicts)
    elif sarif != "-":
        _say_verdicts(engine, verdicts, include_supported=all_)
    missing = any(verdict.answer.value == "no" for verdict in verdicts)
    if missing or (strict and findings):
        raise click.exceptions.Exit(Exit.FAILED)


def probe(
    output: Annotated[
        Path | None,
        Option(
            "--output",
            metavar="FILE",
            help="Write the result to this file, for `tavola check --target FILE`.",
        ),
    ] = None,
    timeout: Annotated[
        float, Option("--timeout", metavar="S", help="Seconds to wait for a table, index or change.", min=0.1)
    ] = 60.0,
    as_json: AsJson = False,
    at: NewTargetOptions = BUNDLE,
) -> None:
    """Find out which DynamoDB features a server supports.

    Creates temporary tables and deletes them again; on AWS they cost a few cents at most. Features that small calls cannot
    show stay unknown.
    """
    server_name = str(at)
    with reporting_errors(f"Cannot probe {server_name}."):
        from tavola.clock import SYSTEM_CLOCK
        from tavola.design.targets import capabilities, write_target
        from tavola.design.targets import probe as run_probe
        from tavola.entropy import SYSTEM_ENTROPY

        if output is not None:
            check_writable(output, "--output")
        with at.open(new=True) as server, bar("Probing", 0) as show:
            check_is_dynamodb(server, server_name)
            probed_target, remaining = run_probe(
                _ProbedBackend(server),
                server_name,
                clock=SYSTEM_CLOCK,
                entropy=SYSTEM_ENTROPY,
                wait_s=timeout,
                progress=lambda done, _total: show(done),
            )
        if output is not None:
            write_result(output, write_target(probed_target), "--output")
    for name in remaining:
        kind = "backup" if name.startswith("arn:") else "table"
        note(f"The {kind} {name} could not be deleted; delete it yourself.")
    if as_json:
        members = {
            "target": probed_target.title,
            "checked": probed_target.checked.isoformat(),
            "source": probed_target.source,
            "capabilities": {
                name: {"value": answer.value, "remark": answer.remark}
                for name, answer in probed_target.answers.items()
            },
        }
        say_json("tavola.probe/1", members)
    elif output is not None:
        note(f"Wrote {output}. Check a design with: tavola check DESIGN --target {output}")
    else:
        for name, answer in probed_target.answers.items():
            say(f"{_label(answer.value)} {name:<26} {capabilities()[name].title}")
            if answer.remark:
                say(f"          {answer.remark}")
        say(f"{probed_target.title}, {probed_target.checked}: {probed_target.source}.")


class _ProbedBackend:
    """A server as the probe calls it; the engine of a database file does background work between calls."""

    def __init__(self, server: Target) -> None:
        self._backend = server.connection.backend
        self._engine = server.engine

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._engine is not None:
            self._engine.run_background_work(_SLICE_MS)
        return self._backend.call(operation, request)

    def close(self) -> None:
        self._backend.close()


def _label(value: str) -> str:
    return style(f"{_LABELS[value]:<9}", _ROLES[value])


def _say_verdicts(engine: TargetFile, verdicts: Sequence[Verdict], *, include_supported: bool) -> None:
    from tavola.design.targets import capabilities

    by_capability: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_capability.setdefault(verdict.use.capability, []).append(verdict)
    counts = dict.fromkeys(_LABELS.values(), 0)
    for name, uses in by_capability.items():
        answer = uses[0].answer
        counts[_LABELS[answer.value]] += 1
        if include_supported or answer.value != "yes":
            remark = f": {answer.remark}" if answer.remark else ""
            say(f"{_label(answer.value)} {name} ({capabilities()[name].title}){remark}")
            for verdict in uses:
                say(f"            {verdict.use.place} {verdict.use.what}")
    version = f" {engine.version}" if engine.version else ""
    summary = (
        ", ".join(f"{count} {label}" for label, count in counts.items() if count) or "no features needed"
    )
    if by_capability and counts[_LABELS["yes"]] == len(by_capability):
        summary = (
            "The one feature that this design needs is supported"
            if len(by_capability) == 1
            else f"All {len(by_capability)} features that this design needs are supported"
        )
    say(f"{engine.title}{version}, as of {engine.checked} ({engine.source}): {summary}.")


def _say_json(engine: TargetFile, verdicts: Sequence[Verdict]) -> None:
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
                    "remark": verdict.answer.remark,
                    "source": verdict.answer.source or engine.source,
                }
                for verdict in verdicts
            ],
        },
    )


def _write_sarif(path: str, design: str, findings: tuple[Finding, ...]) -> None:
    from tavola.design.lint import LintReport, Rule, sarif_log
    from tavola.design.targets import capabilities

    rules = [
        Rule(
            name=f"target-{capability.name}",
            severity="error",
            title=f"The design needs {capability.title}.",
            why="An engine with DynamoDB's API does not necessarily have all of DynamoDB's features.",
            example=capability.title,
            remedy="Avoid the feature, or choose a target that supports it.",
            find=lambda _subject: iter(()),
        )
        for capability in capabilities().values()
    ]
    log = sarif_log(LintReport(findings), rules, read_source_files(design), __version__)
    write_result(path, json.dumps(log, indent=2, ensure_ascii=False), "--sarif")

"""`tavola lint` and `tavola explain`: what is wrong with a design, and why each rule says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import click

from tavola import __version__
from tavola.cli.design_files import read_design_files
from tavola.cli.designs import DesignArgument, DesignRefused, load_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.files import FileRefused, deliver
from tavola.cli.output import complain, say, say_json
from tavola.cli.parameters import Argument, Option
from tavola.errors import TavolaError

_WIDTH = 110
_TEXT = 11  # where sentences begin, behind the severity


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class PolicyUnreadable(TavolaError):
    """A file that is to hold a policy and does not."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path} is no policy: {reason}; name a JSON file with Version and Statement")


def lint(
    target: DesignArgument,
    production: Annotated[
        bool, Option("--production", help="Judge it as a design that real data will live in.")
    ] = False,
    policy: Annotated[
        list[Path] | None,
        Option("--policy", metavar="FILE", help="An IAM policy of who uses the tables; again for more."),
    ] = None,
    select: Annotated[
        list[str] | None,
        Option("--select", metavar="RULE", help="Run this rule alone; again for more."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        Option("--ignore", metavar="RULE", help="Leave this rule out; again for more."),
    ] = None,
    severity: Annotated[
        Severity,
        Option("--severity", help="The mildest finding that makes the command fail; all are shown."),
    ] = Severity.WARNING,
    sarif: Annotated[
        str | None,
        Option("--sarif", metavar="FILE|-", help="Write the findings as SARIF 2.1.0; - prints them."),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Say what is wrong with a design, where, and what to do; exit with 1 if there are errors or warnings.

    A comment `# tavola: ignore[RULE] why` on or above a declaration lets a finding of it stand; `ignore[RULE@POLICY] why` one of a policy.
    """
    if sarif == "-" and as_json:
        complain(
            f"Cannot lint {target}.",
            "--sarif - and --json would both be printed, and nobody could read the two as one",
            "Give --sarif a file, or leave one of them out.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    with reporting_errors(f"Cannot lint {target}."), _usage(f"Cannot lint {target}."):
        from tavola.design.lint import RULES, sarif_log
        from tavola.design.lint import lint as judged
        from tavola.model.document import with_ignores

        sources = read_design_files(target)
        written = [(source.file, source.text) for source in sources if source.file.endswith(".py")]
        design = with_ignores(load_design(target, unkeyed=True), written)
        design = replace(design, policies=(*design.policies, *map(_policy, policy or ())))
        if ":" in target:
            design = replace(
                design, ignores=tuple(each for each in design.ignores if _speaks_of(design, each))
            )
        report = judged(design, production=production, select=_rule_names(select), ignore=_rule_names(ignore))
    if as_json:
        _say_json(report, sources)
    elif sarif != "-":
        _say(design, report, sources)
    if sarif is not None:
        log = sarif_log(report, tuple(RULES.values()), sources, __version__, _root(sources))
        _write(sarif, json.dumps(log, indent=2, ensure_ascii=False))
    fails = list(Severity)[: list(Severity).index(severity) + 1]
    if any(finding.severity in fails for finding in report.findings):
        raise click.exceptions.Exit(Exit.FAILED)


def explain(
    rule: Annotated[str | None, Argument(metavar="[RULE]", help="A rule; none lists them all.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say what a rule of `tavola lint` finds, why it matters, and what to do instead; without one, list the rules."""
    with _usage(f"Cannot explain {rule}."):
        from tavola.design.lint import RULES, find_rule, rule_document

        rules = list(RULES.values()) if rule is None else [find_rule(rule)]
    if as_json:
        say_json("tavola.rules/1", {"rules": [rule_document(found) for found in rules]})
    elif rule is None:
        width = max(len(found.name) for found in rules)
        for found in sorted(rules, key=lambda found: found.name):
            say(f"{found.name:<{width}}  {found.severity:<7}  {found.title}")
    else:
        [found] = rules
        say(f"{found.name} ({found.severity})")
        for word, text in (
            ("", found.title),
            ("Why", found.why),
            ("Example", found.example),
            ("Instead", found.remedy),
        ):
            say("")
            say(fill(f"{word}: {text}" if word else text, _WIDTH, break_on_hyphens=False))


@contextmanager
def _usage(what: str) -> Iterator[None]:
    """Tell of a design, a rule or a policy that cannot be read as of a wrong command line: 1 is for findings."""
    try:
        yield
    except (DesignRefused, FileRefused):
        raise  # reported with its remedy and exit code 1
    except TavolaError as error:
        complain(what, str(error), None)
        raise click.exceptions.Exit(Exit.USAGE) from error


def _write(sarif: str, log: str) -> None:
    """Write the SARIF log. A failure is reported after the findings, with the usage exit code, since 1 means findings."""
    try:
        deliver(sarif, log, "--sarif")
    except FileRefused as refused:
        complain("Cannot write the log.", str(refused), None)
        raise click.exceptions.Exit(Exit.USAGE) from refused


def _root(sources: Sequence[Any]) -> Path | None:
    """Return the root of the repository that the first file is in, None if it is in none."""
    for source in sources[:1]:
        for folder in Path(source.file).resolve().parents:
            if (folder / ".git").exists():
                return folder
    return None


def _speaks_of(design: Any, ignore: Any) -> bool:
    """Tell whether an ignore in a module is about the table of it that was named, or about what is linted with it."""
    if ignore.place in ("*", *(policy.name for policy in design.policies)):
        return True
    entities = {entity.name for table in design.tables for entity in table.entities}
    if any(ignore.place == need.name and entities & set(need.entities) for need in design.needs):
        return True
    head = ignore.place.partition(": ")[0].partition(".")[0]
    return head in entities or any(
        head in (table.label, *(each.name for each in (*table.collections, *table.consumers)))
        for table in design.tables
    )


def _rule_names(options: Sequence[str] | None) -> list[str]:
    """Return the rules of an option, which may name several with commas."""
    return [name.strip() for each in options or () for name in each.split(",") if name.strip()]


def _policy(path: Path) -> Any:
    from tavola.model.document import Policy

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PolicyUnreadable(path, f"it cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise PolicyUnreadable(path, str(error)) from error
    if not isinstance(document, dict):
        raise PolicyUnreadable(path, "it is no object")
    return Policy(path.stem, document)


def _say_json(report: Any, sources: Sequence[Any]) -> None:
    from tavola.design.lint import report_document

    say_json("tavola.lint/1", report_document(report, sources))


def _say(design: Any, report: Any, sources: Sequence[Any]) -> None:
    from tavola.design.lint import find_locations, locate_place

    known = find_locations(sources)

    def heading(finding: Any) -> str:
        at = locate_place(finding.place, known, sources)
        return str(finding.place) if at is None else f"{finding.place}  {at.file}:{at.line}"

    for head_line, found in groupby(report.findings, key=heading):
        say(head_line)
        for finding in found:
            indent = " " * _TEXT
            head = f"  {finding.severity:<{_TEXT - 2}}"
            message = f"{finding.message} [{finding.rule}]"
            say(fill(message, _WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False))
            say(
                fill(
                    f"→ {finding.remedy}",
                    _WIDTH,
                    initial_indent=indent,
                    subsequent_indent=f"{indent}  ",
                    break_on_hyphens=False,
                )
            )
        say("")
    say(_summary(design, report))


def _summary(design: Any, report: Any) -> str:
    ignored = f"; {len(report.ignored)} ignored, with their reasons" if report.ignored else ""
    if not report.findings:
        if not design.tables:
            return f"Nothing found, and no table judged: {_many(len(design.views), 'entity', 'entities')} without keys{ignored}."
        tables, entities = len(design.tables), sum(len(table.entities) for table in design.tables)
        return f"Nothing found in {_many(tables, 'table')} with {_many(entities, 'entity', 'entities')}{ignored}."
    from tavola.design.lint import severity_counts

    counts = severity_counts(report.findings)
    words = [
        _many(counts["error"], "error"),
        _many(counts["warning"], "warning"),
        _many(counts["advice"], "piece of advice", "pieces of advice"),
    ]
    shown = [word for word, count in zip(words, counts.values(), strict=True) if count]
    return f"{', '.join(shown)}{ignored}. `tavola explain RULE` says why."


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"

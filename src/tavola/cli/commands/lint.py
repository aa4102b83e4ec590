"""`tavola lint` and `tavola explain`: problems of a design, and the rules that find them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import click

from tavola import __version__
from tavola.cli.designs import DesignArgument, find_file_format, load_annotated_design
from tavola.cli.errors import CommandError, Exit, reporting_errors
from tavola.cli.files import read_text, write_result
from tavola.cli.output import count_noun, say, say_json, text_width
from tavola.cli.parameters import Argument, AsJson, Option
from tavola.cli.terminal import Role, align_columns, style

if TYPE_CHECKING:
    from tavola.design.findings import Finding
    from tavola.design.lint import LintReport, SourceFile
    from tavola.model.document import Design, Ignore, Policy

Severity: TypeAlias = Literal["error", "warning", "advice"]

_WIDTH_MAX = 110
_INDENT = 11  # of a message, after the severity
_ROLES: dict[str, Role] = {"error": "error", "warning": "warning", "advice": "advice"}


def lint(
    design: DesignArgument,
    production: Annotated[
        bool,
        Option("--production", help="Apply production rules: recovery, deletion protection, encryption."),
    ] = False,
    policy: Annotated[
        list[Path] | None,
        Option(
            "--policy", metavar="FILE", help="IAM policy of a user of the tables, to check too; repeatable."
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        Option("--select", metavar="RULES", help="Run only these rules, separated by commas."),
    ] = None,
    ignore: Annotated[
        list[str] | None, Option("--ignore", metavar="RULES", help="Skip these rules, separated by commas.")
    ] = None,
    fail_on: Annotated[
        Severity, Option("--fail-on", help="Lowest severity that makes the command exit with 1.")
    ] = "warning",
    exit_zero: Annotated[bool, Option("--exit-zero", help="Exit with 0 even if there are findings.")] = False,
    sarif: Annotated[
        str | None,
        Option("--sarif", metavar="FILE|-", help="Write the findings as SARIF 2.1.0; - prints them."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a design for problems and suggest fixes.

    Exits with 1 if there are errors or warnings.

    To suppress a finding, put the comment `# tavola: ignore[RULE] reason` on or above the declaration, or
    `ignore[RULE@POLICY] reason` for a finding about a policy.
    """
    with reporting_errors(f"Cannot lint {design}.", failed=Exit.USAGE):
        from tavola.design.lint import RULES, sarif_log
        from tavola.design.lint import lint as find_problems

        if sarif == "-" and as_json:
            raise CommandError(
                "--sarif - and --json both write to standard output.",
                "Give --sarif a file, or use one of them.",
            )
        loaded, sources = load_annotated_design(design)
        loaded = replace(loaded, policies=(*loaded.policies, *map(_read_policy, policy or ())))
        if ":" in design:
            loaded = replace(
                loaded, ignores=tuple(ignore for ignore in loaded.ignores if _concerns(loaded, ignore))
            )
        report = find_problems(
            loaded,
            production=production,
            select=_split_names(select),
            ignore=_split_names(ignore),
            file_format=find_file_format(design),
        )
        if as_json:
            from tavola.design.lint import report_document

            say_json("tavola.lint/1", report_document(report, sources))
        elif sarif != "-":
            _say_findings(report, sources)
            say(_summarize(loaded, report))
        if sarif is not None:
            log = sarif_log(report, tuple(RULES.values()), sources, __version__, _repository_root(sources))
            write_result(sarif, json.dumps(log, indent=2, ensure_ascii=False), "--sarif")
    severities = list(_ROLES)
    failing = severities[: severities.index(fail_on) + 1]
    if not exit_zero and any(finding.severity in failing for finding in report.findings):
        raise click.exceptions.Exit(Exit.FAILED)


def explain(
    rule: Annotated[
        str | None, Argument(metavar="[RULE]", help="Name of a rule. Default: list all rules.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain a lint rule, or list all rules."""
    with reporting_errors(f"Cannot explain {rule}.", failed=Exit.USAGE):
        from tavola.design.lint import RULES, find_rule, rule_document

        rules = list(RULES.values()) if rule is None else [find_rule(rule)]
    if as_json:
        say_json("tavola.rules/1", {"rules": [rule_document(rule) for rule in rules]})
    elif rule is None:
        ordered = sorted(rules, key=lambda rule: rule.name)
        rows = [
            ("RULE", "SEVERITY", "PROBLEM"),
            *((rule.name, rule.severity, rule.title) for rule in ordered),
        ]
        for line in align_columns(rows):
            say(line)
    else:
        [only_rule] = rules
        say(f"{style(only_rule.name, 'heading')} ({style(only_rule.severity, _ROLES[only_rule.severity])})")
        for heading, text in (
            ("", only_rule.title),
            ("Why: ", only_rule.why),
            ("Example: ", only_rule.example),
            ("Fix: ", only_rule.remedy),
        ):
            say("\n" + fill(f"{heading}{text}", text_width(_WIDTH_MAX), break_on_hyphens=False))


def _repository_root(sources: Sequence[SourceFile]) -> Path | None:
    """Return the root of the git repository of the first file; None if it is in none."""
    for source in sources[:1]:
        for folder in Path(source.file).resolve().parents:
            if (folder / ".git").exists():
                return folder
    return None


def _concerns(design: Design, ignore: Ignore) -> bool:
    """Return whether an ignore comment of a module concerns the one table of it that is linted."""
    if ignore.place in ("*", *(policy.name for policy in design.policies)):
        return True
    entities = {entity.name for table in design.tables for entity in table.entities}
    if any(ignore.place == need.name and entities & set(need.entities) for need in design.needs):
        return True
    owner = ignore.place.partition(": ")[0].partition(".")[0]
    parts = [
        name
        for table in design.tables
        for name in (
            table.label,
            *(collection.name for collection in table.collections),
            *(consumer.name for consumer in table.consumers),
        )
    ]
    return owner in entities or owner in parts


def _split_names(options: Sequence[str] | None) -> list[str]:
    return [name.strip() for option in options or () for name in option.split(",") if name.strip()]


def _read_policy(path: Path) -> Policy:
    from tavola.model.document import Policy

    remedy = "Name a JSON file with Version and Statement."
    try:
        document = json.loads(read_text(path, "--policy"))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise CommandError(f"{path} is not valid JSON ({where}: {error.msg}).", remedy) from error
    if not isinstance(document, dict):
        raise CommandError(f"{path} is not an IAM policy.", remedy)
    return Policy(path.stem, document)


def _say_findings(report: LintReport, sources: Sequence[SourceFile]) -> None:
    from tavola.design.lint import find_locations, locate_place

    locations = find_locations(sources)

    def heading(finding: Finding) -> str:
        at = locate_place(finding.place, locations, sources)
        place = style(str(finding.place), "heading")
        return place if at is None else f"{place}  {style(f'{at.file}:{at.line}', 'muted')}"

    indent, width = " " * _INDENT, text_width(_WIDTH_MAX)
    for place, findings in groupby(report.findings, key=heading):
        say(place)
        for finding in findings:
            message = fill(
                f"{finding.message} [{finding.rule}]", width, initial_indent=indent, subsequent_indent=indent,
                break_on_hyphens=False,
            )  # fmt: skip
            severity = style(f"{finding.severity:<{_INDENT - 2}}", _ROLES[finding.severity])
            say(f"  {severity}{message[_INDENT:]}")
            say(
                fill(
                    f"→ {finding.remedy}", width, initial_indent=indent, subsequent_indent=f"{indent}  ",
                    break_on_hyphens=False,
                )
            )  # fmt: skip
        say("")


def _summarize(design: Design, report: LintReport) -> str:
    ignored = f"; {count_noun(len(report.ignored), 'finding')} suppressed" if report.ignored else ""
    if not report.findings:
        if not design.tables:
            entities = count_noun(len(design.views), "entity", "entities")
            return f"No problems found; no table was checked, only {entities} without keys{ignored}."
        entities = count_noun(sum(len(table.entities) for table in design.tables), "entity", "entities")
        clean = f"No problems found in {count_noun(len(design.tables), 'table')} with {entities}{ignored}."
        return style(clean, "success")
    from tavola.design.lint import severity_counts

    shown = [
        style(count_noun(count, severity, "advice" if severity == "advice" else ""), _ROLES[severity])
        for severity, count in severity_counts(report.findings).items()
        if count
    ]
    return f"{', '.join(shown)}{ignored}. Run `tavola explain RULE` for details."

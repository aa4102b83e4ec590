"""Writes docs/reference/ from the code: the API, commands, operations, faults, limits, settings, and the linter's rules.

`make docs` runs it. A test compares the pages with the code, so that a change of the code changes them too.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import cleandoc, getsource
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from tavola import limits
from tavola.design.lint import RULES, Rule
from tools import api

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Made by `make docs`; edit the code. -->"

_BUILT_IN = frozenset({"--help"})


def commands_page() -> str:
    """Return the command line, command by command, as its own help describes it."""
    from tavola.cli.main import app

    sections = [
        'Every command has `--help`. Completion for bash: `eval "$(_TAVOLA_COMPLETE=bash_source tavola)"`; zsh and fish alike.',
        *(section for path, command in _commands("tavola", app) for section in _told(path, command)),
    ]
    return _page("Commands", sections)


def settings_page() -> str:
    """Return what a person may turn, from the rows that the help is made of."""
    from tavola.cli.settings import APP_SETTINGS, SETTINGS, STUDIO_SETTINGS, Setting

    def rows(settings: Sequence[Setting]) -> list[tuple[str, ...]]:
        return [
            (
                f"`{row.flag}`",
                f"`{row.variable}`",
                f"`{row.default}`{f' {row.unit}' if row.unit else ''}",
                row.sentence,
            )
            for row in settings
        ]

    heads = ("option", "environment", "default", "meaning")
    told = "An option wins over its environment variable, and the variable over the default."
    applications = "Those of `tavola app`, whose port is `--port`, and of `tavola demo`, which have `--host` and `--allow-host` too."
    return _page(
        "Settings",
        [
            told,
            _table(heads, rows(SETTINGS)),
            "## Applications",
            applications,
            _table(heads, rows(APP_SETTINGS)),
            "## Studio",
            "Those of `tavola studio`, whose port is `--port`, and of `tavola serve --studio`.",
            _table(heads, rows(STUDIO_SETTINGS)),
        ],
    )


def operations_page() -> str:
    """Return the operations of DynamoDB, and which of them are built."""
    from tavola.protocol.operations import OPERATIONS

    own = sorted(name for name, operation in OPERATIONS.items() if operation.service == "tavola")
    aws = sorted(name for name, operation in OPERATIONS.items() if operation.service != "tavola")
    told = (
        f"All {len(aws)} operations of DynamoDB and its streams are answered; those that answer otherwise than "
        "AWS are listed in [fidelity](fidelity.md#operations-that-answer-otherwise):"
    )
    return _page(
        "Operations",
        [
            told,
            "\n".join(f"- {name}" for name in aws),
            "Tavola's own, for reading the past of an item:",
            "\n".join(f"- {name}" for name in own),
        ],
    )


def faults_page() -> str:
    """Return every fault with its status, whether it is worth trying again, and when it is raised."""
    from tavola.protocol.faults import Fault

    rows = [
        (f"`{kind.code}`", str(kind.status), "yes" if kind.retryable else "no", _first_line(kind))
        for kind in sorted(_kinds(Fault), key=lambda kind: kind.code)
        if not kind.__name__.startswith("_") and kind.__module__.startswith("tavola.protocol")
    ]
    return _page(
        "Faults",
        [
            "What an operation can answer besides success. Over HTTP the code is in `__type`; in process each is an exception.",
            _table(("code", "status", "worth trying again", "when"), rows),
        ],
    )


def limits_page() -> str:
    """Return the limits, in the groups and with the remarks of the module that holds them."""
    told = (
        "The numbers that AWS published, as `tavola.limits` holds them. Sources: DG is the AWS developer guide, "
        "B the service model of botocore, C behaviour captured on AWS."
    )
    sections = [told]
    for title, rows in _limit_groups(limits):
        sections += [f"## {title}", _table(("name", "value", "remark"), rows)]
    return _page("Limits", sections)


def api_page() -> str:
    """Return the public names of the library, with their signatures and what they say of themselves."""
    return _page("The Python API", list(api.sections()))


def rules_page() -> str:
    """Return the list of the linter's rules, each with its page."""
    rows = [
        (f"[{rule.name}]({rule.name}.md)", rule.severity, rule.title)
        for rule in sorted(RULES.values(), key=lambda rule: rule.name)
    ]
    return _page(
        "Rules of the linter",
        [
            (
                f"What [`tavola lint`](../../how-to/lint.md) finds, {len(rows)} rules. An error will fail, lose data or give wrong "
                "answers; a warning will throttle, cost or break in time; advice is a cheaper or clearer way. The severity here "
                "is the worst that a rule says of a place."
            ),
            _table(("rule", "severity", "what is wrong"), rows),
        ],
    )


def rule_page(rule: Rule) -> str:
    """Return what one rule says of itself."""
    told = [f"**{rule.title}** ({rule.severity})"]
    told += [f"## {title}\n\n{text}" for title, text in (("Why", rule.why), ("Example", rule.example))]
    return _page(f"`{rule.name}`", [*told, f"## Instead\n\n{rule.remedy}", "[All rules](index.md)"])


PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "commands.md": commands_page,
    "faults.md": faults_page,
    "limits.md": limits_page,
    "operations.md": operations_page,
    "settings.md": settings_page,
    "rules/index.md": rules_page,
} | {f"rules/{name}.md": partial(rule_page, rule) for name, rule in RULES.items()}


def behind() -> list[str]:
    """Return the names of the pages that do not say what the code says, or tell of a rule that is gone."""
    return [
        name
        for name, make in PAGES.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text(encoding="utf-8") != make()
    ] + _gone()


def write() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(make(), encoding="utf-8")
    for name in _gone():
        (FOLDER / name).unlink()


def _gone() -> list[str]:
    """Return the pages of rules that there are no longer."""
    names = [f"rules/{path.name}" for path in sorted((FOLDER / "rules").glob("*.md"))]
    return [name for name in names if name not in PAGES] if "rules/index.md" in PAGES else []


def _commands(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Give a command and those under it, in the order of their names."""
    yield path, command
    names = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ()
    for name in sorted(names):
        under = command.get_command(click.Context(command), name)
        if not under.hidden:
            yield from _commands(f"{path} {name}", under)


def _told(path: str, command: Any) -> Iterator[str]:
    yield f"## {path}"
    yield cleandoc(command.help or "").replace("\b\n", "").replace("\f", "")
    shown = [parameter for parameter in command.params if not _BUILT_IN & set(parameter.opts)]
    rows = [
        (f"`{_spelling(parameter)}`", _default(parameter), " ".join((parameter.help or "").split()))
        for parameter in shown
        if not getattr(parameter, "hidden", False)
    ]
    if rows:
        yield _table(("option", "default", "meaning"), rows)


def _spelling(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name or "").upper()
        return name if parameter.required else f"[{name.strip('[]')}]"
    return ", ".join([*parameter.opts, *parameter.secondary_opts])


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or callable(value) or value == () or isinstance(value, bool):
        return ""
    return f"`{value}`" if isinstance(value, int | float | str) and value != "" else ""


def _kinds(kind: Any) -> Iterator[Any]:
    for under in kind.__subclasses__():
        yield under
        yield from _kinds(under)


def _first_line(kind: type) -> str:
    return cleandoc(kind.__doc__ or "").partition("\n")[0]


def _limit_groups(module: ModuleType) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Give the constants of a module under the comment that heads them, with the comment beside each."""
    source = getsource(module)
    comments = {
        token.start[0]: (token.start[1], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    title = ""
    rows: list[tuple[str, str, str]] = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        column, heading = comments.get(node.lineno - 1, (1, ""))
        if column == 0 and heading:
            if rows:
                yield title, rows
            title, rows = heading.rstrip("."), []
        if not name.startswith("_"):
            rows.append((f"`{name}`", _number(getattr(module, name)), comments.get(node.lineno, (0, ""))[1]))
    if rows:
        yield title, rows


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(head: tuple[str, ...], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(title: str, sections: list[str]) -> str:
    return "\n\n".join([f"# {title}", MADE, *(section for section in sections if section)]) + "\n"


if __name__ == "__main__":
    write()

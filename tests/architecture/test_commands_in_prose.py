"""The commands that pages show exist, with their options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from tavola.cli.main import app
from tests.architecture.prose import examples
from tests.architecture.source_tree import ROOT, repository_files

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(tavola [^`\n]+)`")
_IN_SHELL = re.compile(r"(?:^|[ (])(tavola [^$)|;&\n]*)")


def test_commands_in_prose_exist() -> None:
    """A reader can type every `tavola …` of a page, in a block or in a sentence."""
    wrong = [
        f"{page.relative_to(ROOT)}: {command}: {problem}"
        for page in repository_files()
        if page.suffix == ".md"
        for command in commands_in(page.read_text(encoding="utf-8"))
        if (problem := problem_of(command))
    ]

    assert not wrong, "\n".join(wrong)


def test_planted_commands_are_found() -> None:
    """Commands are found in blocks, behind a prompt, in substitutions and in sentences; outputs are not commands."""
    text = (
        "Run `tavola lint shop --sarrif x`.\n\n```console\n$ tavola cots shop\ntavola is not a command here\n```\n\n"
        '```sh\neval "$(tavola env --prt 1)" # tavola x\ntavola serve \\\n  --port 1\n```\n'
    )

    assert [problem_of(command) for command in commands_in(text)] == [
        "no command 'cots'",
        "no option '--prt'",
        None,
        "no option '--sarrif'",
    ]


def commands_in(text: str) -> Iterator[str]:
    """Yield each command line of `tavola` that a page shows."""
    for block in examples(text):
        for line in block.text.replace("\\\n", " ").splitlines():
            if block.language == "sh" or (block.language == "console" and line.startswith("$ ")):
                yield from _IN_SHELL.findall(line.removeprefix("$ ").partition(" # ")[0])
    yield from _INLINE.findall(_FENCED.sub("", text))


def problem_of(line: str) -> str | None:
    """Return what is wrong with the command or the options of a command line."""
    command: click.Command = app
    context = click.Context(app)
    words = shlex.split(line.replace('"', "").replace("'", ""))[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name, *words = words
        found = command.get_command(context, name)
        if found is None:
            return f"no command {name!r}"
        command, context = found, click.Context(found, parent=context)
    known = {
        name
        for parameter in command.get_params(context)
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in known | {"--", "--help"}:
            return f"no option {word!r}"
    return None

"""The command tree, its exit codes and its last words."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tavola import __version__
from tavola.cli import main
from tavola.cli.errors import Exit
from tavola.cli.main import app
from tavola.cli.settings import SETTINGS

runner = CliRunner()


def test_the_version_is_told() -> None:
    """`--version` is for a person, `--version --json` for a program."""
    assert runner.invoke(app, ["--version"]).stdout == f"tavola {__version__}\n"
    told = json.loads(runner.invoke(app, ["--version", "--json"]).stdout)
    assert told["schema"] == "tavola.version/1"
    assert told["version"] == __version__


def test_the_version_needs_no_engine() -> None:
    """`tavola --version` loads neither SQLite nor the server."""
    script = (
        "import sys\nsys.argv = ['tavola', '--version']\n"
        "from tavola.cli import run\n"
        "try:\n    run()\nfinally:\n"
        "    heavy = {'apsw', 'uvloop', 'httptools', 'msgspec', 'asyncio', 'rich'} & set(sys.modules)\n"
        "    assert not heavy, heavy\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout == f"tavola {__version__}\n"


def test_help_names_commands_and_exit_codes() -> None:
    """The help lists every command, and says what each exit code means."""
    told = " ".join(runner.invoke(app, ["--help"]).output.split())

    assert "serve" in told
    assert "env" in told
    for code in Exit:
        assert f"{code.value} {code.meaning}" in told


def test_the_help_of_serve_is_made_from_the_settings() -> None:
    """Each setting has its option, its sentence, its default and its variable in the help."""
    told = " ".join(runner.invoke(app, ["serve", "--help"]).output.split())

    for setting in SETTINGS:
        assert setting.flag in told
        assert setting.variable in told
        assert setting.help.split()[0] in told
        assert setting.default == "" or f"default: {setting.default}" in told


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["cook"],
        ["serve", "--port", "many"],
        ["serve", "--port", "70000"],
        ["serve", "--sync", "sometimes"],
        ["serve", "--wording", "loud"],
        ["serve", "a.db", "b.db"],
        ["env", "--shell", "tcsh"],
    ],
)
def test_a_command_line_that_is_none_exits_with_2(arguments: list[str]) -> None:
    """What cannot be understood is a usage error, told on standard error."""
    result = runner.invoke(app, arguments)

    assert result.exit_code == Exit.USAGE
    assert result.stdout == ""
    assert "Usage:" in result.stderr


def test_exit_codes_are_those_that_are_documented() -> None:
    """The codes are part of the interface."""
    assert [(code.name, code.value) for code in Exit] == [
        ("OK", 0),
        ("FAILED", 1),
        ("USAGE", 2),
        ("NOT_FOUND", 3),
        ("CONFLICT", 4),
        ("UNREACHABLE", 5),
        ("INTERNAL", 70),
        ("INTERRUPTED", 130),
    ]


def test_our_own_mistake_is_told_in_sentences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unexpected exception ends in three lines and code 70; the traceback is for who asks for it."""

    def broken() -> None:
        raise RuntimeError("a screw is loose")

    monkeypatch.setattr(main, "app", broken)
    monkeypatch.delenv("TAVOLA_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        main.run()
    told = capsys.readouterr()

    assert ended.value.code == 70
    assert told.out == ""
    assert [line.split(":")[0].strip() for line in told.err.splitlines()] == ["Error", "Cause", "Fix"]
    assert "a screw is loose" in told.err

    monkeypatch.setenv("TAVOLA_DEBUG", "1")
    with pytest.raises(SystemExit):
        main.run()
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_given_completion(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program completes its own commands in the common shells."""
    monkeypatch.setenv("_TAVOLA_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "tavola se")
    monkeypatch.setenv("COMP_CWORD", "se" if shell == "fish" else "1")  # fish passes the word, not its number

    assert "serve" in runner.invoke(app, [], prog_name="tavola").stdout


def test_the_help_lists_a_command_once() -> None:
    """A command that was loaded for an earlier listing is not listed again."""
    first = runner.invoke(app, ["--help"]).output

    assert runner.invoke(app, ["--help"]).output == first


def test_every_summary_fits_on_one_line() -> None:
    """At 80 columns no summary of a command is cut or wrapped, and each begins with a verb and ends with a full stop."""
    told = runner.invoke(app, ["--help"], terminal_width=80).output
    context = click.Context(app)
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        (line,) = [line for line in told.splitlines() if line.startswith(f"  {name} ")]

        assert line.endswith(".")
        assert "..." not in line
        assert line.split(maxsplit=1)[1] in " ".join((command.help or "").split())


def test_a_mistyped_command_suggests_the_right_one() -> None:
    """Commands that were not loaded yet are suggested too."""
    assert "Did you mean 'simulate'?" in runner.invoke(app, ["simulat"]).stderr


@pytest.mark.parametrize(
    ("arguments", "environment", "is_styled"),
    [
        (["explain", "unused-index"], {}, True),
        (["explain", "unused-index", "--no-color"], {}, False),
        (["--no-color", "explain", "unused-index"], {}, False),
        (["explain", "unused-index"], {"NO_COLOR": "1"}, False),
        (["explain", "unused-index"], {"TERM": "dumb"}, False),
        (["explain", "unused-index", "--json"], {}, False),
        (["--help"], {"NO_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals(
    arguments: list[str], environment: dict[str, str], is_styled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Styles reach a terminal unless colour is off; a pipe never sees them."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    piped = runner.invoke(app, arguments, env=environment)
    shown = runner.invoke(app, arguments, env=environment, color=True)  # as on a terminal

    assert "\x1b[" not in piped.output
    assert ("\x1b[" in shown.output) == is_styled


def test_ctrl_c_ends_a_command_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted command says so in one line; a shell or a script sees the usual code."""

    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tavola.cli.commands.lint.load_annotated_design", interrupt)
    result = runner.invoke(app, ["lint", "shop"])

    assert result.exit_code == Exit.INTERRUPTED
    assert result.stderr.strip() == "Interrupted."
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lnt"], "No such command 'lnt'. Did you mean 'lint'?"),
        (["lint", "--prodction"], "No such option '--prodction'. Did you mean '--production'?"),
        (
            ["serve", "--port", "99999"],
            "--port (or TAVOLA_PORT) must be a whole number from 0 to 65535, not '99999'.",
        ),
        (["read", "t", "--limit", "many"], "--limit must be a whole number, 1 or more, not 'many'."),
        (["cost", "--reads", "-5"], "--reads must be a number, 0 or more, not '-5'."),
        (["cost", "--reads", "inf"], "--reads must be a number, 0 or more, not 'inf'."),
        (["lint", "shop", "--fail-on", "fatal"], "'fatal' is not one of 'error', 'warning', 'advice'."),
    ],
)
def test_a_wrong_command_line_is_described_in_words(arguments: list[str], message: str) -> None:
    """A misspelt name is suggested; a number out of range names the range in words, not as `x>=0`."""
    result = runner.invoke(app, arguments)

    assert result.exit_code == Exit.USAGE
    assert result.stderr.splitlines()[-1].endswith(message)


def test_every_summary_fits_its_line() -> None:
    """At 80 columns `tavola --help` and the help of each group show whole summaries."""

    def check(command: click.Command, path: list[str]) -> None:
        if isinstance(command, click.Group):
            shown = runner.invoke(app, [*path, "--help"], terminal_width=80).stdout
            assert "..." not in shown.partition("\n")[2], path
            with click.Context(command) as context:
                for name in command.list_commands(context):
                    inner = command.get_command(context, name)
                    assert inner is not None
                    check(inner, [*path, name])

    check(app, [])

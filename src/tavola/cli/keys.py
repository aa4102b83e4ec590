"""Keys: where the encryption key of a database file comes from: a file, a command's output, or the environment."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tavola.cli.errors import CommandError
from tavola.cli.files import read_text
from tavola.cli.parameters import Option
from tavola.cli.settings import KEY_COMMAND, KEY_FILE, STORE_KEY, option

_COMMAND_S_MAX = 60


@dataclass(frozen=True, slots=True)
class StoreKeyOptions:
    """The options that give the encryption key of a database file."""

    key_file: Annotated[Path | None, option(KEY_FILE)] = None
    key_command: Annotated[str | None, option(KEY_COMMAND)] = None
    store_key: Annotated[
        str | None,
        Option(
            STORE_KEY.flag,
            metavar=STORE_KEY.metavar,
            envvar=STORE_KEY.variable,
            help=STORE_KEY.help,
            show_envvar=False,
        ),
    ] = None

    def read_key(self) -> str | None:
        """Return the key without its line end; None if no option gives one."""
        return read_store_key(self.key_file, self.key_command, self.store_key)


def read_store_key(file: Path | None, command: str | None, key: str | None = None) -> str | None:
    """Return the key from a file, from a command's output or as it is; None if all are None."""
    if sum(1 for source in (file, command, key) if source) > 1:
        raise CommandError(
            "The encryption key is given more than once.",
            "Use one of --key-file, --key-command and the variable TAVOLA_KEY.",
        )
    if file is not None:
        return _check_one_line(read_text(file, KEY_FILE.flag), f"The key file {file}")
    if command:
        return _check_one_line(_output_of(command), f"The output of {command!r}")
    return key or None


def _output_of(command: str) -> str:
    remedy = f"Run it yourself to see what is wrong, or use {KEY_FILE.flag}."
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=_COMMAND_S_MAX, check=True
        )
    except subprocess.CalledProcessError as error:
        stderr = (error.stderr or "").strip()
        raise CommandError(
            f"The key command exited with code {error.returncode}{f': {stderr}' if stderr else '.'}", remedy
        ) from error
    except subprocess.TimeoutExpired as error:
        cause = f"The key command {command!r} did not end within {_COMMAND_S_MAX} seconds."
        raise CommandError(cause, remedy) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CommandError(f"The key command {command!r} cannot be run: {reason}.", remedy) from error
    return done.stdout


def _check_one_line(text: str, what: str) -> str:
    key = text.rstrip("\r\n")
    if key and "\n" not in key and "\r" not in key:
        return key
    problem = "is empty" if not key else "has more than one line"
    raise CommandError(f"{what} {problem}.", "A key is one line of text.")

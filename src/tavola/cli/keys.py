"""Keys: where the key of an encrypted store comes from: a file, the environment, or a command's output."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from tavola.cli.parameters import Option
from tavola.cli.settings import KEY, KEY_COMMAND, KEY_FILE, option
from tavola.errors import ErrorKind, TavolaError

_COMMAND_S_MAX = 60

KeyFile: TypeAlias = Annotated[Path | None, option(KEY_FILE)]
KeyCommand: TypeAlias = Annotated[str | None, option(KEY_COMMAND)]
Key: TypeAlias = Annotated[
    str | None,
    Option(KEY.flag, envvar=KEY.variable, help=KEY.sentence, show_envvar=False, show_default=False),
]


class KeyUnusable(TavolaError):
    """A key that cannot be had, or more than one."""

    kind = ErrorKind.USAGE
    remedy = "Give one key, with --key-file, --key-command or TAVOLA_KEY."


def read_store_key(file: Path | None, command: str | None, key: str | None) -> str | None:
    """Return the key of an encrypted store without its line end; None if no option names one."""
    given = [each for each in (file, command, key) if each]
    if not given:
        return None
    if len(given) > 1:
        raise KeyUnusable("The key is given twice: by a file, by a command or by the environment, choose one")
    if file is not None:
        try:
            found = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise KeyUnusable(f"The key file {file} cannot be read: {error}") from error
        return _whole(found, f"The key file {file}")
    if command:
        return _whole(_output_of(command), f"The output of {command!r}")
    return key


def _output_of(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=_COMMAND_S_MAX, check=True
        )
    except subprocess.CalledProcessError as error:
        stderr = (error.stderr or "").strip()
        raise KeyUnusable(f"The key command failed with code {error.returncode}: {stderr}") from error
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise KeyUnusable(f"The key command {command!r} cannot be run: {error}") from error
    return done.stdout


def _whole(text: str, what: str) -> str:
    key = text.rstrip("\r\n")
    if not key:
        raise KeyUnusable(f"{what} is empty; a key is one line of text")
    if "\n" in key or "\r" in key:
        raise KeyUnusable(f"{what} has more than one line; a key is one line of text")
    return key


@dataclass(frozen=True, slots=True)
class StoreKeyOptions:
    """The options that say where the key of an encrypted store comes from."""

    key_file: KeyFile = None
    key_command: KeyCommand = None
    key: Key = None

    def read(self) -> str | None:
        """Return the key; None if no option names one."""
        return read_store_key(self.key_file, self.key_command, self.key)

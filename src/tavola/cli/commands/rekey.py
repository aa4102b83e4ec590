"""`tavola rekey`: encrypt a database file, change its key, or decrypt it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.keys import StoreKeyOptions, read_store_key
from tavola.cli.output import say
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.targets import missing_file


def rekey(
    file: Annotated[Path, Argument(help="Database file; no other process may have it open.")],
    new_key_file: Annotated[
        Path | None, Option("--new-key-file", metavar="FILE", help="File with the new key, on one line.")
    ] = None,
    new_key_command: Annotated[
        str | None, Option("--new-key-command", metavar="COMMAND", help="Command that prints the new key.")
    ] = None,
    decrypt: Annotated[bool, Option("--decrypt", help="Remove the encryption.")] = False,
    store_key: StoreKeyOptions = BUNDLE,
) -> None:
    """Encrypt, decrypt or change the key of a database file.

    The file is rewritten, which needs as much free disk space as the file has now.
    """
    with reporting_errors(f"Cannot change the key of {file}."):
        from tavola.engine import change_key

        if not file.is_file():
            raise missing_file(file)
        old = store_key.read_key()
        new = read_store_key(new_key_file, new_key_command)
        if (new is None) != decrypt:
            problem = "Both a new key and --decrypt are given." if decrypt else "No new key is given."
            raise CommandError(problem, "Use --new-key-file, --new-key-command or --decrypt.")
        change_key(str(file), old, new)
    say(f"{file} is {'no longer encrypted' if new is None else 'encrypted with the new key'}.")

"""`tavola rekey`: a store's file under another key, or under one for the first time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.keys import KeyUnusable, StoreKeyOptions, read_store_key
from tavola.cli.output import complain, say
from tavola.cli.parameters import BUNDLE, Argument, Option


def rekey(
    file: Annotated[Path, Argument(help="The store's file; no process may have it open.")],
    new_key_file: Annotated[
        Path | None, Option("--new-key-file", help="The file that holds the new key, in one line.")
    ] = None,
    new_key_command: Annotated[
        str | None, Option("--new-key-command", help="A command that prints the new key.")
    ] = None,
    decrypt: Annotated[bool, Option("--decrypt", help="Write it in clear, without any key.")] = False,
    store_key: StoreKeyOptions = BUNDLE,
) -> None:
    """Encrypt FILE, change its key, or decrypt it; the file is rewritten, which needs as much free space as it has now."""
    if not file.is_file():
        complain(f"Cannot rekey {file}.", "It is not there.", "Name the file of a store.")
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    with reporting_errors(f"Cannot rekey {file}."):
        from tavola.engine import change_key

        old = store_key.read()
        new = read_store_key(new_key_file, new_key_command, None)
        if (new is None) != decrypt:
            raise KeyUnusable("Say what it shall be: a new key, or --decrypt")
        change_key(str(file), old, new)
    say(f"{file} is {'in clear now' if new is None else 'encrypted under the new key'}.")

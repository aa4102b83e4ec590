"""Files: write a command's result to a file, atomically."""

from __future__ import annotations

from pathlib import Path

from tavola.cli.output import say
from tavola.errors import TavolaError


class FileRefused(TavolaError):
    """A file that cannot be written: its name, why, and the option that names another."""

    def __init__(self, path: str, reason: str, option: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be written: {reason}; name another file with {option}")


def deliver(where: Path | str, content: str | bytes, option: str) -> None:
    """Write a result to the file that an option names; `-` prints it. The old file stays until the new one is complete."""
    from tavola.folders import write_whole

    if isinstance(content, str) and not content.endswith("\n"):
        content += "\n"
    if str(where) == "-" and isinstance(content, str):
        say(content.rstrip("\n"))
        return
    try:
        write_whole(Path(where), content)
    except OSError as error:
        raise FileRefused(str(where), error.strerror or str(error), option) from error

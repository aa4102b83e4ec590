"""Files: read the files that options name, and write a command's results."""

from __future__ import annotations

from pathlib import Path

from tavola.cli.errors import CommandError
from tavola.cli.output import say
from tavola.errors import ErrorKind


def write_result(path: Path | str, content: str | bytes, option: str) -> None:
    """Write a result to the file that an option names; `-` prints it. The old file stays until the new one is complete."""
    from tavola.folders import write_whole

    if isinstance(content, str) and not content.endswith("\n"):
        content += "\n"
    if str(path) == "-" and isinstance(content, str):
        say(content.rstrip("\n"))
        return
    try:
        write_whole(Path(path), content)
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error), option) from error


def check_writable(path: Path, option: str) -> None:
    """Raise unless a file can be created at `path`; for commands whose result must not be lost."""
    if not path.parent.is_dir():
        raise _not_writable(path, f"there is no folder {path.parent}", option)
    if path.is_dir():
        raise _not_writable(path, "it is a folder", option)


def make_folder(folder: Path, option: str) -> Path:
    """Create a folder and its parents unless it exists, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error.strerror or str(error), option) from error
    return folder


def check_parent_exists(path: Path) -> None:
    """Raise if the folder of a file does not exist."""
    if not path.parent.is_dir():
        cause = f"The folder {path.parent} does not exist."
        raise CommandError(cause, "Create it, or choose a file in another folder.", ErrorKind.NOT_FOUND)


def read_text(path: Path, option: str) -> str:
    """Return the text of a file that an option names."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        kind = ErrorKind.NOT_FOUND if isinstance(error, FileNotFoundError) else ErrorKind.INVALID
        raise CommandError(
            f"{path} cannot be read: {reason}.", f"Name a readable file with {option}.", kind
        ) from error


def _not_writable(path: Path | str, reason: str, option: str) -> CommandError:
    return CommandError(
        f"{path} cannot be written: {reason}.", f"Name another location with {option}.", ErrorKind.INVALID
    )

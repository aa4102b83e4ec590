"""Exit: what the program's exit code says. One table, for every command, and for the docs."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """An exit code; its `sentence` is what the manual says of it."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    UNREACHABLE = 5
    INTERNAL = 70

    @property
    def sentence(self) -> str:
        """What it means, for a person."""
        return _SENTENCES[self]


_SENTENCES = {
    Exit.OK: "done",
    Exit.FAILED: "a check failed, or there are findings; a damaged file is one",
    Exit.USAGE: "the command line is not one that Tavola knows",
    Exit.NOT_FOUND: "a file or folder that was named is not there",
    Exit.CONFLICT: "somebody else has it: a file that is open elsewhere, a port that is taken",
    Exit.UNREACHABLE: "an address that cannot be reached or listened on",
    Exit.INTERNAL: "a mistake of Tavola's own",
}

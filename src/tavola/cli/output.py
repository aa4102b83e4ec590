"""Output: the only print.

What a program may read goes to standard output, and nothing else does; what a person should know beside it
goes to standard error.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping


def say(text: str) -> None:
    """Print a line of the command's result."""
    print(text, flush=True)


def say_json(schema: str, members: Mapping[str, object]) -> None:
    """Print a result as one line of JSON; `schema` names its form, and its number grows with a break."""
    say(json.dumps({"schema": schema, **members}))


def note(text: str) -> None:
    """Print a line for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def complain(what: str, why: str, remedy: str) -> None:
    """Print what went wrong, why, and what to do about it: a line each."""
    note(f"Error: {what}")
    note(f"  Why: {why}")
    note(f"  Do:  {remedy}")


def log_to_terminal() -> None:
    """Let what the server logs be read on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("tavola")
    logger.handlers[:] = [handler]
    logger.propagate = False

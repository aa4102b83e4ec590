"""The long campaign: consumers killed under eight writers, and scenarios in one process, from a seed.

`python -m tests.triggers.campaign --seconds 600 --seed 7`. Prints the seed first and a line for each round; ends
with 1 at the first fault, whose round can be repeated with its own seed.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from random import Random

from tavola.clock import monotonic
from tests.triggers.kills import campaign
from tests.triggers.scenario import run_scenario

KILLS_A_ROUND = 20
WRITES_A_ROUND = 400
SCENARIOS_A_ROUND = 500


def main() -> int:
    """Run rounds until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = Random().getrandbits(32) if given.seed is None else given.seed
    logging.getLogger("tavola.triggers").setLevel(logging.CRITICAL)
    _say(f"seed {seed}")
    random, end_s = Random(seed), monotonic() + given.seconds
    kills = records = scenarios = 0
    while monotonic() < end_s:
        of_round = random.getrandbits(32)
        with tempfile.TemporaryDirectory() as folder:
            run, faults = campaign(Path(folder), of_round, KILLS_A_ROUND, WRITES_A_ROUND)
        for number in range(SCENARIOS_A_ROUND):
            found = run_scenario(of_round + number, windows=number % 2 == 1)
            faults += [f"scenario {of_round + number}: {fault}" for fault in found]
        kills, records = kills + run.kills, records + sum(run.written.values())
        scenarios += SCENARIOS_A_ROUND
        _say(
            f"round {of_round}: {kills} kills, {records} records, {scenarios} scenarios, {len(faults)} faults"
        )
        if faults:
            _say("\n".join(faults))
            return 1
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

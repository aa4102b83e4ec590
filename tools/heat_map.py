"""The guide's heat map, drawn from the design on its own page: `python -m tools.heat_map`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

from tavola.design.simulation import Scenario, chart, simulate
from tavola.model.document import design_of

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "how-to" / "simulate.md"
PICTURE = DOCS / "pictures" / "simulate-status.png"


def draw(path: Path) -> None:
    """Write the picture of a day of the page's first design."""
    source = re.findall(r"```python runnable\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    module = sys.modules["tickets"] = ModuleType("tickets")
    exec(compile(source, str(PAGE), "exec", dont_inherit=True), vars(module))  # the page is our own
    path.write_bytes(chart(simulate(design_of(module), Scenario()), "png"))


if __name__ == "__main__":
    draw(PICTURE)

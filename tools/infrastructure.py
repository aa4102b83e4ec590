"""Writes tests/iac/golden/ again: what the writers of infrastructure make of the samples.

`python -m tools.infrastructure`, after a change of the writers or of a sample that is meant; what changed is read in the diff.
"""

from __future__ import annotations

from tests.iac.samples import GOLDEN, SAMPLES, renderings


def write() -> list[str]:
    """Write all renderings, take away what is of no sample, and return the names of what is different now."""
    texts = {name: text for sample in SAMPLES for name, text in renderings(sample).items()}
    GOLDEN.mkdir(exist_ok=True)
    changed = []
    for name, text in texts.items():
        path = GOLDEN / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    for path in GOLDEN.iterdir():
        if path.name not in texts:
            path.unlink()
            changed.append(path.name)
    return changed


if __name__ == "__main__":
    write()

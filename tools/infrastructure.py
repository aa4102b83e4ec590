"""Write tests/iac/golden/ again: the infrastructure files of the reviewed samples.

Run `python -m tools.infrastructure` after an intended change of the writers or of a sample, and review the diff.
"""

from __future__ import annotations

from tests.iac.samples import GOLDEN, REVIEWED, renderings


def write() -> list[str]:
    """Write all renderings, delete files of no sample, and return the names of the files that changed."""
    texts = {name: text for sample in REVIEWED for name, text in renderings(sample).items()}
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

"""What all charts of a design share: file formats, matplotlib loaded on first use, and bytes out of a figure.

matplotlib comes with the extra `tavola[charts]`. It is imported only when a chart is drawn.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from tavola.errors import ErrorKind, TavolaError

FORMATS = ("svg", "png")


class ChartRefused(TavolaError):
    """A chart in a format that cannot be drawn."""


class ChartLibraryMissing(TavolaError):
    """matplotlib is not installed."""

    kind = ErrorKind.NOT_INSTALLED


def chart_format(path: Path) -> str:
    """Return the format of a chart's file, by its name."""
    form = path.suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise ChartRefused(f"{path} is no picture that can be made; let its name end in .svg or .png")
    return form


def load_matplotlib() -> Any:
    """Return the module `matplotlib`, for figures without a window."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise ChartLibraryMissing(
            "a chart needs matplotlib, which is not installed; install it with: pip install 'tavola[charts]'"
        ) from error
    return mpl


def save_figure(figure: Any, form: str) -> bytes:
    """Return a figure as a file; the same figure gives the same bytes."""
    file = BytesIO()
    metadata = {"Date": None, "Creator": "Tavola"} if form == "svg" else {"Software": None}
    figure.savefig(file, format=form, dpi=120, metadata=metadata)
    return file.getvalue()

"""Shared by all charts of a design: file formats, matplotlib loaded on first use, and a figure as bytes.

matplotlib comes with the extra `tavola[charts]`. It is imported only when a chart is drawn.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from tavola.errors import ErrorKind, TavolaError

FORMATS = ("svg", "png")


class ChartError(TavolaError):
    """A chart in a format that cannot be drawn."""

    code = "chart-refused"


class MissingChartLibrary(TavolaError):
    """matplotlib is not installed."""

    code = "chart-library-missing"
    kind = ErrorKind.NOT_INSTALLED


def chart_format(path: Path) -> str:
    """Return the format of a chart's file, by its name."""
    form = path.suffix.lower().lstrip(".")
    if form not in FORMATS:
        raise ChartError(f"cannot draw {path}; use a file name that ends in .svg or .png")
    return form


def load_matplotlib() -> Any:
    """Return the module `matplotlib`, for figures without a window."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise MissingChartLibrary(
            "matplotlib is not installed; install it with: pip install 'tavola[charts]'"
        ) from error
    return mpl


def save_figure(figure: Any, form: str) -> bytes:
    """Return a figure as a file; the same figure gives the same bytes."""
    file = BytesIO()
    metadata = {"Date": None, "Creator": "Tavola"} if form == "svg" else {"Software": None}
    figure.savefig(file, format=form, dpi=120, metadata=metadata)
    return file.getvalue()

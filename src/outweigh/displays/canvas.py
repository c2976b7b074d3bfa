"""Axes to draw on, colours, and figures as bytes; matplotlib is loaded when it is first needed."""

from __future__ import annotations

import io
from typing import Any

__all__ = ["DISTRUSTED", "LINE", "NOISE", "PLAIN", "TRUSTED", "axes_for", "new_figure", "png"]

# Told apart in grey and by colour-blind readers; the shape of the markers differs too.
TRUSTED = "#1f6fb2"
DISTRUSTED = "#c8442b"
PLAIN = "#8a8a8a"
NOISE = "#d9e6f2"
LINE = "#333333"

_STYLE = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
}


def axes_for(ax: Any) -> Any:
    """Return the axes given, or new ones of a new pyplot figure."""
    if ax is not None:
        return ax
    pyplot = _import("matplotlib.pyplot")
    return pyplot.subplots(layout="constrained")[1]


def new_figure(width: float = 5.0, height: float = 3.0) -> Any:
    """Return the axes of a figure that no window knows of."""
    figure_module = _import("matplotlib.figure")
    matplotlib = _import("matplotlib")
    with matplotlib.rc_context(_STYLE):
        return figure_module.Figure(figsize=(width, height), layout="constrained").subplots()


def png(ax: Any, dots_per_inch: int = 160) -> bytes:
    """Return the figure that the axes are in as a PNG."""
    matplotlib = _import("matplotlib")
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        ax.figure.savefig(buffer, format="png", dpi=dots_per_inch, metadata={"Software": None})
    return buffer.getvalue()


def plain_text(name: object) -> str:
    r"""Return a name in which matplotlib finds no mathematics, cut where it is long.

    Examples
    --------
    >>> plain_text("a$b"), plain_text("x" * 40)
    ('a\\$b', 'xxxxxxxxxxxxxxxxxxxxxxx…')
    """
    text = " ".join(str(name).split())
    text = text if len(text) <= 24 else text[:23] + "…"
    return text.replace("$", r"\$")


def _import(name: str) -> Any:
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install matplotlib, or outweigh[plot]"
        ) from error

"""Axes to draw on, colours, and figures as bytes; matplotlib is loaded when it is first needed."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from outweigh.estimators.base import RobustEstimator
from outweigh.libraries import library
from outweigh.protocols import Array

# Told apart in grey and by colour-blind readers; the shape of the markers differs too.
TRUSTED = "#1f6fb2"
DISTRUSTED = "#c8442b"
PLAIN = "#8a8a8a"
NOISE = "#d9e6f2"
LINE = "#333333"

NEEDED_BY = "figures need"

_STYLE = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.titlesize": 10.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "svg.hashsalt": "outweigh",
}

# Without dates and versions, so that the same picture is the same bytes.
_METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


class Display:
    """What can be drawn of a fitted estimator, on given axes or on new ones."""

    ax_: Any
    figure_: Any
    _draw: Callable[..., None]
    # What an estimator must have, and what is for those that do not.
    _needs: ClassVar[tuple[str, str]] = ("offset_", "fit one of this library")

    @classmethod
    def from_estimator(
        cls, estimator: RobustEstimator, X: ArrayLike | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw what a fitted estimator found.

        Parameters
        ----------
        estimator : estimator
        X : array-like of shape (n_samples, n_features)
            Rows; those of the fit where weights or means are drawn. Components alone and the trace
            are drawn without.
        ax : matplotlib Axes, optional
        **options
            As the display takes them.
        """
        check_is_fitted(estimator)
        attribute, other = cls._needs
        if not hasattr(estimator, attribute):
            raise TypeError(f"estimator: {type(estimator).__name__} has no {attribute}; {other}")
        return cls._of(estimator, X).plot(ax, **options)

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        """Return the display of a fitted estimator."""
        raise NotImplementedError

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on `ax`, or on the axes of a new pyplot figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **options
            As the display takes them.
        """
        if ax is None:
            ax = library("matplotlib.pyplot", NEEDED_BY).subplots(layout="constrained")[1]
        self._draw(ax, **options)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def draw_rows(ax: Any, x: NDArray[Any], y: Array, flagged: NDArray[np.bool_]) -> None:
    """Draw a point for each row, in the colour and shape of trusted and distrusted ones."""
    for chosen, colour, marker, name in (
        (~flagged, TRUSTED, ".", "trusted"),
        (flagged, DISTRUSTED, "x", "distrusted"),
    ):
        if chosen.any():
            label = f"{name} ({chosen.sum()})"
            ax.plot(x[chosen], y[chosen], marker, color=colour, markersize=4, label=label,
                    rasterized=True)  # fmt: skip


def styled(**changes: Any) -> AbstractContextManager[None]:
    """Draw in the style of all pictures, with changes; the user's own settings stay."""
    context: AbstractContextManager[None]
    context = library("matplotlib", NEEDED_BY).rc_context({**_STYLE, **changes})
    return context


def new_figure(width: float = 5.0, height: float = 3.0) -> Any:
    """Return the axes of a figure that no window knows of."""
    figures = library("matplotlib.figure", NEEDED_BY)
    with styled():
        return figures.Figure(figsize=(width, height), layout="constrained").subplots()


def image(figure: Any, kind: str = "png", dots_per_inch: int = 160) -> bytes:
    """Return a figure as a PNG or an SVG."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=kind, dpi=dots_per_inch, metadata=_METADATA[kind])
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

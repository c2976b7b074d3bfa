"""The estimated mean beside the plain one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from outweigh.displays.canvas import DISTRUSTED, LINE, PLAIN, TRUSTED, Display, plain_text
from outweigh.estimators.input import each_block
from outweigh.protocols import Array, Indices


@dataclass(eq=False)
class LocationDisplay(Display):
    """The nonzero entries of a sparse mean, or those of a mean that outliers moved most.

    The option `n_features` is the largest number of them, 15 by default.

    A sparse mean is drawn as it is, and one that is not relative to itself: where it lies says
    nothing about outliers, how far the plain mean is from it does.

    Parameters
    ----------
    robust, plain : ndarray of shape (d,)
        In units of each feature's noise, so that features can be compared.
    support : ndarray of int or None
        The nonzero entries of a sparse estimate.
    names : sequence of str

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    robust: Array
    plain: Array
    support: Indices | None
    names: Sequence[str]

    _needs: ClassVar[tuple[str, str]] = (
        "location_",
        "ComponentsDisplay is for principal components",
    )

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        robust, scale = estimator.location_, estimator.scale_
        *total, count = np.asarray(each_block(estimator, X, _sums, robust.size + 1).sum(axis=0))
        support = getattr(estimator, "support_", None)
        return cls(robust / scale, total / count / scale, support, estimator._feature_names)

    def _draw(self, ax: Any, n_features: int = 15) -> None:
        entries = telling_entries(self.robust, self.plain, sparse=self.support is not None)
        shown = entries[:n_features]
        places = np.arange(shown.size)[::-1]
        robust, plain = self.robust[shown], self.plain[shown]
        if self.support is None:
            robust, plain = robust - robust, plain - robust
        ax.hlines(places, robust, plain, color=PLAIN, linewidth=0.8)
        ax.plot(plain, places, "o", markerfacecolor="white", color=PLAIN, markersize=5,
                label="plain mean")  # fmt: skip
        inside = np.ones(shown.size, dtype=bool)
        if self.support is not None:
            inside = np.isin(shown, self.support)
        ax.plot(robust[inside], places[inside], "o", color=TRUSTED, markersize=5,
                label="robust" if self.support is None else "robust, in the support")  # fmt: skip
        if not inside.all():
            ax.plot(robust[~inside], places[~inside], "x", color=DISTRUSTED, markersize=5,
                    label="set to zero")  # fmt: skip
        ax.axvline(0.0, color=LINE, linewidth=0.6)
        ax.set_yticks(places, [plain_text(self.names[j]) for j in shown])
        what = "mean less the robust one" if self.support is None else "mean"
        ax.set(xlabel=f"{what}, in units of the noise")
        ax.margins(y=0.06)
        ax.legend(loc="best")


def telling_entries(robust: Array, plain: Array, *, sparse: bool) -> Indices:
    """Return the features of a mean in the order in which they are worth a look.

    Parameters
    ----------
    robust, plain : ndarray of shape (d,)
        In units of each feature's noise.
    sparse : bool
        Whether entries that are not zero come first; then those that the weights moved most.
    """
    size = np.abs(robust - plain)
    if sparse:
        entries = np.abs(robust)
        size = np.where(entries > 0.0, entries + size.max(initial=0.0), size)
    return np.asarray(np.argsort(-size, kind="stable"), dtype=np.intp)


def _sums(rows: Array) -> Array:
    """Return the sum of some rows, and their number."""
    return np.append(rows.sum(axis=0, dtype=np.float64), len(rows))[None, :]

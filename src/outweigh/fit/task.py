"""What is asked of a fit: what differs between the estimators, and what a user may set."""

from __future__ import annotations

from dataclasses import dataclass

from outweigh.fit.tuning import TUNING
from outweigh.norms import KyFan, RowwiseLargest
from outweigh.protocols import Array, Norm


@dataclass(frozen=True, slots=True)
class Task:
    """What differs between the four estimators.

    Attributes
    ----------
    n_components : int
        0 for a mean.
    n_nonzero : tuple of int or None
        Nonzero entries of the mean, or of each component; () counts them, None is for all.
    centred : bool
        Whether second moments are about the weighted mean.
    """

    n_components: int = 0
    n_nonzero: tuple[int, ...] | None = None
    centred: bool = True

    @property
    def is_sparse(self) -> bool:
        """Whether the answer has few nonzero entries."""
        return self.n_nonzero is not None

    def norm(self, n_nonzero: int) -> Norm:
        """Return the norm of a mean of so many nonzero entries, if it is sparse."""
        return RowwiseLargest(n_nonzero) if self.is_sparse else KyFan(1)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may set beside the task.

    ``contamination`` is None where it is to be found. ``covariance`` is that of clean rows where it
    is known; else None, and ``find_covariance`` says whether rows may be correlated.
    """

    contamination: float | None
    scale: str | Array | None
    covariance: Array | None
    solver: str
    max_iter: int
    find_covariance: bool = False

    @property
    def is_white(self) -> bool:
        """Whether the noise is declared to be uncorrelated."""
        return self.covariance is None and not self.find_covariance

    @property
    def finds_scales(self) -> bool:
        """Whether the scale of each column follows from the weights of the rows."""
        return isinstance(self.scale, str) and self.scale == "auto"

    @property
    def bound(self) -> float:
        """The largest share that may be removed, before the data says more."""
        return TUNING.loose_bound if self.contamination is None else self.contamination

    @property
    def expected(self) -> float:
        """The share whose removal is no surprise.

        All that may be removed, where the noise is known: rows above its level are then wrong.
        Where it is found, the contamination that was given, and a tenth in any case.
        """
        return max(0.1, self.contamination or 0.0) if self.find_covariance else 1.0

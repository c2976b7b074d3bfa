"""The set of sample weights, the capped simplex, and the exact operations on it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

# Caps may sum to this much less than 1 and still count as 1: they are quotients of rounded sums.
_ROUNDING = 1e-12
# Entries of a linear form closer than this, relatively, differ by rounding alone.
_TIED = 1e-9
# A sum is first asked to be this near to its total, relative to its terms.
_TOLERANCE = 2.0**-48


@dataclass(frozen=True, slots=True, eq=False)
class CappedSimplex:
    r"""Weights that sum to one and stay below their caps.

    .. math:: D = \{ w \in R^n : \sum_i w_i = 1,\; 0 \le w_i \le c_i \}

    With ``c_i = 1 / ((1 - eps) n)`` this is the set over which "Outlier-Robust Sparse Estimation
    via Non-Convex Optimization" minimises. A cap of 0 removes its row.

    A row of sample weight ``s_i`` stands for ``s_i`` equal rows that share the weight ``w_i``
    equally. Moving each copy by t moves ``w_i`` by ``s_i t`` at the squared cost ``s_i t^2``, so
    distances on D are measured by ``|h|^2 = sum_i h_i^2 / s_i`` and a gradient step reads
    ``v = w - step * metric * g`` with ``metric = s``. Integer sample weights then act exactly as
    repeated rows do, with the same step; unit weights give the Euclidean case.

    Parameters
    ----------
    caps : array of shape (n,)
        The caps c, finite, nonnegative, of sum at least 1.
    metric : array of shape (n,) or scalar, default 1
        The sample weights s, finite and nonnegative; where s is 0 the cap must be 0.

    Examples
    --------
    >>> D = CappedSimplex.from_contamination(4, contamination=0.25)
    >>> D.project([0.9, 0.1, 0.1, -2.0]).round(6)
    array([0.333333, 0.333333, 0.333333, 0.      ])
    >>> D.pruned([3]).reference().round(6)
    array([0.333333, 0.333333, 0.333333, 0.      ])
    """

    caps: FloatArray
    metric: FloatArray = field(default_factory=lambda: np.ones(()))
    _total: float = field(init=False, repr=False)
    _step_size: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        caps = _nonnegative("caps", self.caps)
        metric = np.array(self.metric, dtype=np.float64)
        metric = _nonnegative("metric", metric if metric.ndim else np.full(caps.shape, metric))
        metric = _finite_rows("metric", metric, caps.size)
        if caps[metric == 0].any():
            raise ValueError("caps must be 0 where metric is 0: a row of no weight gets none.")
        total = float(caps.sum())
        if total < 1 - _ROUNDING:
            raise ValueError(f"caps must sum to at least 1, else D is empty; they sum to {total}.")
        caps.flags.writeable = metric.flags.writeable = False
        object.__setattr__(self, "caps", caps)
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "_total", min(1.0, total))
        # Rows of no weight are held at 0 by their caps: any positive number serves them.
        object.__setattr__(self, "_step_size", np.where(caps > 0, metric, 1.0))

    @classmethod
    def from_contamination(
        cls, sample_weight: ArrayLike | int, contamination: float
    ) -> CappedSimplex:
        r"""Return D for samples of which a fraction may be wrong.

        .. math:: c_i = s_i / ((1 - \epsilon) \sum_j s_j)

        Parameters
        ----------
        sample_weight : array of shape (n,), or int
            Nonnegative sample weights s; a number n stands for n unit weights.
        contamination : float in [0, 1)
            The fraction eps of sample weight that may be removed. 0 leaves one point.

        Examples
        --------
        >>> CappedSimplex.from_contamination([1, 2, 0], 0.5).caps.round(6)
        array([0.666667, 1.333333, 0.      ])
        """
        if not 0 <= contamination < 1:
            raise ValueError(f"contamination must lie in [0, 1); got {contamination}.")
        if isinstance(sample_weight, (int, np.integer)):
            if sample_weight < 1:
                raise ValueError(f"sample_weight must count at least 1 row; got {sample_weight}.")
            weights = np.ones(int(sample_weight))
        else:
            weights = _nonnegative("sample_weight", sample_weight)
            if weights.max() == 0:
                raise ValueError("sample_weight must be nonnegative, with a positive entry.")
        return cls(weights / ((1 - contamination) * weights.sum()), weights)

    def pruned(self, rows: ArrayLike) -> CappedSimplex:
        """Return D with the caps of some rows set to 0.

        Parameters
        ----------
        rows : array of int, or of bool and shape (n,)
            The rows to remove. The caps of the others must still sum to 1.
        """
        index = np.asarray(rows)
        if index.dtype == np.bool_:
            if index.shape != self.caps.shape:
                raise ValueError(f"rows, a mask, must have shape {self.caps.shape}.")
        elif index.size == 0:
            return self
        elif index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= self.caps.size:
            raise ValueError(f"rows must be a mask or integers in [0, {self.caps.size}).")
        caps = self.caps.copy()
        caps[index] = 0.0
        if caps.sum() < 1 - _ROUNDING:
            raise ValueError(
                f"rows removes too much: the caps left sum to {caps.sum():.6g}, below 1. "
                "Prune fewer rows or raise the contamination."
            )
        return CappedSimplex(caps, self.metric)

    def reference(self) -> FloatArray:
        """Return c / sum(c): the weights before any evidence, uniform for equal caps."""
        return np.asarray(self.caps / self.caps.sum())

    def project(self, v: ArrayLike) -> FloatArray:
        r"""Return the point of D nearest to v in the metric.

        .. math:: \arg\min_{w \in D} \sum_i (w_i - v_i)^2 / s_i = clip(v - \tau s, 0, c)

        Exact up to rounding, in O(n) for most vectors.

        Parameters
        ----------
        v : array of shape (n,)
            Any finite vector.

        References
        ----------
        K. C. Kiwiel, "Breakpoint searching algorithms for the continuous quadratic knapsack
        problem", Mathematical Programming 112 (2008).

        Examples
        --------
        >>> D = CappedSimplex.from_contamination([1, 3], 0.5)
        >>> D.project([0.5, 0.9])
        array([0.4, 0.6])
        """
        target = _finite_rows("v", v, self.caps.size)
        return _clip_to_sum(target, self._step_size, np.zeros_like(target), self.caps, self._total)

    def project_kl(self, log_v: ArrayLike) -> FloatArray:
        r"""Return the point of D nearest to v = exp(log_v) in relative entropy.

        .. math:: \arg\min_{w \in D} \sum_i w_i \log(w_i / v_i) = \min(c, v e^{-\tau})

        Exact up to rounding, in O(n log n).

        Parameters
        ----------
        log_v : array of shape (n,)
            Logarithms, finite or -inf (weight 0), of weights known up to a common factor.

        Examples
        --------
        >>> D = CappedSimplex.from_contamination(4, 0.5)
        >>> D.project_kl([1e6, 0.0, 0.0, -float("inf")])
        array([0.5 , 0.25, 0.25, 0.  ])
        """
        logs = np.asarray(log_v, dtype=np.float64)
        if logs.shape != self.caps.shape or not (logs < np.inf).all():
            raise ValueError(
                f"log_v must have shape {self.caps.shape} and entries finite or -inf, "
                f"no nan; got shape {logs.shape}."
            )
        rows = np.flatnonzero((self.caps > 0) & (logs > -np.inf))
        caps = self.caps[rows]
        if caps.sum() < self._total - _ROUNDING:
            raise ValueError(
                f"log_v is -inf on too many rows: the caps of the others sum to {caps.sum():.6g}, "
                "below 1. Give more rows a finite log_v."
            )
        weights = np.zeros(self.caps.size)
        weights[rows] = _scale_to_sum(logs[rows], caps, min(self._total, float(caps.sum())))
        return weights

    def minimize_linear(self, g: ArrayLike) -> FloatArray:
        """Return the w of D that minimises <g, w>: caps filled in order of increasing g.

        Where caps are filled in part, entries of g that are equal but for rounding are filled in
        equal parts: the order of the rows decides nothing.

        Parameters
        ----------
        g : array of shape (n,)
            Any finite vector.

        Examples
        --------
        >>> CappedSimplex.from_contamination(3, 0.5).minimize_linear([2.0, 1.0, 2.0]).round(6)
        array([0.166667, 0.666667, 0.166667])
        """
        gradient = _finite_rows("g", g, self.caps.size)
        order = np.argsort(gradient)
        # A running sum of many caps is off by rounding: it only finds the entry at the edge.
        edge = min(int(np.searchsorted(np.cumsum(self.caps[order]), self._total)), order.size - 1)
        level = gradient[order[edge]]
        ties = np.abs(gradient - level) <= _TIED * np.abs(level)
        weights = np.where((gradient < level) & ~ties, self.caps, 0.0)
        share = (self._total - weights.sum()) / self.caps[ties].sum()
        weights[ties] = min(max(share, 0.0), 1.0) * self.caps[ties]
        return weights

    def project_tangent(
        self, w: ArrayLike, direction: ArrayLike, atol: float = _ROUNDING
    ) -> FloatArray:
        r"""Return the direction nearest in the metric that does not leave D at w.

        .. math:: \arg\min_h \sum_i (h_i - d_i)^2 / s_i \quad\text{over}\quad \sum_i h_i = 0,\;
            h_i \ge 0 \text{ where } w_i = 0,\; h_i \le 0 \text{ where } w_i = c_i

        For ``d = -metric * g`` its length in the metric is the stationarity of w: 0 exactly where
        no feasible direction descends.

        Parameters
        ----------
        w : array of shape (n,)
            A point of D.
        direction : array of shape (n,)
            Any finite vector d.
        atol : float
            Entries of w this close to 0 or to their cap count as there; close to both, as fixed.

        Examples
        --------
        >>> D = CappedSimplex.from_contamination(3, 0.5)
        >>> D.project_tangent([1 / 3, 2 / 3, 0.0], [0.0, 1.0, -1.0])
        array([0., 0., 0.])
        """
        weights = _finite_rows("w", w, self.caps.size)
        target = _finite_rows("direction", direction, self.caps.size)
        lower = np.where(weights <= atol, 0.0, -np.inf)
        upper = np.where(weights >= self.caps - atol, 0.0, np.inf)
        # To a cone multiples project as multiples: sizes near the least of all numbers are avoided.
        exponent = np.frexp(np.abs(target).max(initial=0.0))[1]
        target = np.ldexp(target, -exponent)
        projected = _clip_to_sum(target, self._step_size, lower, upper, 0.0)
        return np.asarray(np.ldexp(projected, exponent))

    def contains(self, w: ArrayLike, atol: float = _ROUNDING) -> bool:
        """Tell whether w lies in D, each bound and the sum to within atol."""
        weights = np.asarray(w, dtype=np.float64)
        return bool(
            weights.shape == self.caps.shape
            and np.all(weights >= -atol)
            and np.all(weights <= self.caps + atol)
            and abs(weights.sum() - 1) <= atol
        )

    def n_effective(self, w: ArrayLike) -> float:
        """Return 1 / sum(w_i^2 / s_i) over s_i > 0: how many equal rows are as good as these.

        Examples
        --------
        >>> CappedSimplex.from_contamination([2, 2], 0.5).n_effective([0.5, 0.5])
        4.0
        """
        weights = _finite_rows("w", w, self.caps.size)
        seen = self.metric > 0
        return 1.0 / float(np.sum(weights[seen] ** 2 / self.metric[seen]))


def _nonnegative(name: str, values: ArrayLike) -> FloatArray:
    """Return a copy of values, one for each row, or say what is wrong with them."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must have shape (n,) with n >= 1; got shape {array.shape}.")
    if _finite_rows(name, array, array.size).min() < 0:
        raise ValueError(f"{name} must be nonnegative; got {array.min()}.")
    return array


def _finite_rows(name: str, values: ArrayLike, n: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise ValueError(f"{name} must have one entry per row, shape ({n},); got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; remove or replace its nan and inf entries.")
    return array


def _clip_to_sum(
    v: FloatArray, s: FloatArray, lower: FloatArray, upper: FloatArray, total: float
) -> FloatArray:
    """Return clip(v - tau s, lower, upper) for the tau that makes it sum to total.

    Each entry is monotone in tau, hence so is the sum, and the l1 distance to the answer *is* the
    excess of the sum: a small excess proves a small error, however tau was found. Newton steps on
    this piecewise linear function end exactly, after 1 to 6 passes on most vectors, faster than
    ordering 2n breakpoints. Where they wander, the median of the breakpoints left halves them.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tau = (float(v.sum()) - total) / float(s.sum())
        tau = tau if np.isfinite(tau) else 0.0
        tolerance = _TOLERANCE
        while True:
            low, high, previous = -np.inf, np.inf, np.inf
            points: FloatArray | None = None
            while points is None or points.size:
                moved = v - tau * s
                w = np.minimum(np.maximum(moved, lower), upper)
                excess = float(w.sum()) - total
                scale = total or float(np.abs(w).sum())
                if abs(excess) <= tolerance * scale:
                    return w
                if excess > 0:
                    low, free = tau, (moved > lower) & (moved <= upper)
                else:
                    high, free = tau, (moved >= lower) & (moved < upper)
                slope = float(s @ free)
                step = excess / slope if slope > 0 else np.inf
                if abs(step) <= 2.0**-20 * abs(tau):
                    w = np.minimum(np.maximum(moved - step * s, lower), upper)
                    if abs(float(w.sum()) - total) <= tolerance * scale:
                        return w
                if low < tau + step < high and abs(excess) <= previous / 2:
                    tau, previous = tau + step, abs(excess)
                    continue
                if points is None:
                    points = np.concatenate([(v - upper) / s, (v - lower) / s])
                points = points[(points > low) & (points < high)]
                if points.size:
                    middle = points.size // 2
                    tau, previous = float(np.partition(points, middle)[middle]), np.inf
            # What was found is moved into v and polished there: v - tau s may need digits that tau
            # does not have. A round gains 16 of at most 308 digits; what rounding withholds is let
            # go by and by.
            if tolerance > _ROUNDING:
                return _between(v, s, lower, upper, total, low, high)
            v, tau = v - _linear_root(v, s, lower, upper, total, low, high) * s, 0.0
            tolerance *= 1.2


def _between(
    v: FloatArray,
    s: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    total: float,
    low: float,
    high: float,
) -> FloatArray:
    """Return entries of the sum wanted between those at low and at high.

    Where no row meets a bound between the two, each entry is linear there, and no digit of tau is
    needed.
    """
    least, most = np.clip(v - high * s, lower, upper), np.clip(v - low * s, lower, upper)
    missing, room = total - float(least.sum()), float((most - least).sum())
    if 0.0 < room < np.inf:
        return least + missing / room * (most - least)
    return np.clip(v - _linear_root(v, s, lower, upper, total, low, high) * s, lower, upper)


def _linear_root(
    v: FloatArray,
    s: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    total: float,
    low: float,
    high: float,
) -> float:
    """Return the tau of `_clip_to_sum` between low and high, where no row meets a bound."""
    # Unless the slope is too steep for floats: then the root lies at one end, at high if the rows
    # that are free there can take what is missing.
    free = (v - high * s < upper) & (v - low * s > lower) & (lower < upper)
    if not free.any():
        return low if np.isfinite(low) else high
    at_high = np.clip(v - high * s, lower, upper)
    missing, slope = total - float(at_high.sum()), float(s @ free)
    room = (upper - at_high)[free & (v - high * s >= lower)].sum()
    if low == -np.inf or (high < np.inf and room >= missing):
        return max(high - missing / slope, low)
    return min(low + (float(np.clip(v - low * s, lower, upper).sum()) - total) / slope, high)


def _scale_to_sum(log_v: FloatArray, caps: FloatArray, total: float) -> FloatArray:
    """Return min(caps, exp(log_v - tau)) for the tau that makes it sum to total."""
    log_caps = np.log(caps)
    pivot, nearest = 0.0, np.inf
    while True:
        log_v = log_v - pivot
        ratio = log_v - log_caps
        order = np.argsort(ratio)
        # Entry m of tau belongs to the guess that all but the first m + 1 rows, in order of v / c,
        # are at their caps: right for the last m whose own row then stays below its cap.
        full = np.append(np.cumsum(caps[order[:0:-1]])[::-1], 0.0)
        room = np.maximum(total - full, 0.0)
        with np.errstate(divide="ignore"):
            tau = np.logaddexp.accumulate(log_v[order]) - np.log(room)
        below = np.flatnonzero(ratio[order] <= tau)
        n_free = int(below[-1]) + 1 if below.size else 0
        # Far from 0 a logarithm lacks the digits to decide; start again with the last row at 0.
        pivot = float(log_v[order[max(n_free - 1, 0)]])
        if abs(pivot) <= 2.0**10 or abs(pivot) > nearest / 2:
            break
        nearest = abs(pivot)
    weights, free = caps.copy(), order[:n_free]
    while free.size:
        weights[free] = 0.0
        share = np.exp(log_v[free] - log_v[free].max())
        share *= max(total - float(weights.sum()), 0.0) / share.sum()
        above = share > caps[free]
        weights[free] = share
        if not above.any():
            break
        weights[free[above]] = caps[free[above]]
        free = free[~above]
    return weights

"""The multipliers that make clipped or scaled vectors sum to a total, found exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clipped", "clip_to_sum", "scale_to_sum"]

FloatArray = NDArray[np.float64]

# A sum this near to its total, relative to its terms, is as good as equal to it.
_ROUNDING = 1e-12

# clip(v - tau s, lower, upper) must sum to a total. Each entry is monotone in tau, hence so is the
# sum, and the l1 distance to the answer *is* the excess of the sum: a small excess proves a small
# error, however tau was found. Newton steps on this piecewise linear function end exactly, after 1
# to 6 passes on most vectors, faster than ordering 2n breakpoints. Where they wander, the sorted
# breakpoints of a sample of rows propose tau (of all rows, if few: then it is the answer), the full
# sum tells on which side it lies, and rows that can no longer change drop out. Once found, tau is
# moved into v and polished there, since v - tau may need digits that tau does not have.

_TOLERANCE = 2.0**-48
_SAMPLE = 2048


class Clipped(NamedTuple):
    """The function tau -> clip(v - tau s, lower, upper); s is 1.0 where all its entries are 1."""

    v: FloatArray
    s: float | FloatArray
    lower: FloatArray
    upper: FloatArray

    def clip(self, moved: FloatArray) -> FloatArray:
        """Return values moved back between the bounds."""
        w = np.maximum(moved, self.lower)
        return np.minimum(w, self.upper, out=w)

    def at(self, tau: float) -> FloatArray:
        """Return the clipped vector at tau."""
        return self.clip(self.v - tau * self.s)

    def sum_at(self, tau: float) -> float:
        """Return the sum of the clipped vector at tau."""
        return float(self.at(tau).sum())

    def take(self, rows: slice | NDArray[np.intp]) -> Clipped:
        """Return the function of some rows alone."""
        s = self.s if isinstance(self.s, float) else self.s[rows]
        return Clipped(self.v[rows], s, self.lower[rows], self.upper[rows])

    def breakpoints(self) -> FloatArray:
        """Where the n rows leave their upper bounds, then where they reach their lower ones."""
        return np.concatenate([(self.v - self.upper) / self.s, (self.v - self.lower) / self.s])

    def slope(self, free: NDArray[np.bool_] | None = None) -> float:
        """Return minus the slope of the sum where some rows are free; None stands for all."""
        if isinstance(self.s, float):
            return self.s * (self.v.size if free is None else int(np.count_nonzero(free)))
        return float((self.s if free is None else self.s[free]).sum())


def clip_to_sum(f: Clipped, total: float) -> FloatArray:
    """Return f(tau) for the tau that makes it sum to total."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tau = (float(f.v.sum()) - total) / f.slope()
        tau = tau if np.isfinite(tau) else 0.0
        tolerance = _TOLERANCE
        while tolerance <= _ROUNDING:
            low, high, previous, proposed = -np.inf, np.inf, np.inf, False
            while True:
                moved = f.v - tau * f.s
                w = f.clip(moved)
                excess = float(w.sum()) - total
                scale = total or float(np.abs(w).sum())
                if abs(excess) <= tolerance * scale:
                    return w
                if excess > 0:
                    low, free = tau, (moved > f.lower) & (moved <= f.upper)
                else:
                    high, free = tau, (moved >= f.lower) & (moved < f.upper)
                slope = f.slope(free)
                step = excess / slope if slope > 0 else np.inf
                if abs(step) <= 2.0**-20 * abs(tau):
                    w = f.clip(moved - step * f.s)
                    if abs(float(w.sum()) - total) <= tolerance * scale:
                        return w
                if low < tau + step < high and abs(excess) <= previous / 2:
                    tau, previous = tau + step, abs(excess)
                    continue
                proposal = np.nan if proposed else _propose(f, tau, excess, low, high)
                if not low < proposal < high:
                    break
                tau, previous, proposed = proposal, np.inf, True
            tau = _search(f, tau, excess, low, high)
            f, tau = f._replace(v=f.v - tau * f.s), 0.0
            # A round gains 16 of at most 308 digits; what rounding withholds is let go by and by.
            tolerance *= 1.2
    raise ArithmeticError("the entries cannot be made to sum to their total: rescale the input.")


def _search(f: Clipped, tau: float, excess: float, low: float, high: float) -> float:
    """Return the root in (low, high), of which tau is one end, to the precision of a float."""
    n_left = np.inf
    while True:
        # Rows left out do not change between low and high, so differences of sums stay the same.
        above, below = f.v - high * f.s < f.upper, f.v - low * f.s > f.lower
        f = f.take(np.flatnonzero(above & below & (f.lower < f.upper)))
        if f.v.size == 0:
            return tau
        total = f.sum_at(tau) - excess
        points = f.breakpoints()
        points = points[(points > low) & (points < high)]
        if points.size == 0:
            break
        root = _propose(f, tau, excess, low, high) if 2 * points.size <= n_left else np.nan
        if not low < root < high:
            # The last proposal did not halve what is left, or there is none: the median halves.
            root = float(np.partition(points, points.size // 2)[points.size // 2])
        tau, n_left = root, points.size
        excess = f.sum_at(tau) - total
        if excess == 0:
            return tau
        low, high = (tau, high) if excess > 0 else (low, tau)
    # Linear from low to high, unless the slope is too steep for floats. Then the root lies at one
    # end: at high, if the rows that are free there can take what is missing.
    slope, missing = f.slope(), total - f.sum_at(high)
    room = (f.upper - f.at(high))[f.v - high * f.s >= f.lower].sum()
    if low == -np.inf or (high < np.inf and room >= missing):
        return max(high - missing / slope, low)
    return min(low + (f.sum_at(low) - total) / slope, high)


def _propose(f: Clipped, tau: float, excess: float, low: float, high: float) -> float:
    """Guess the root in (low, high) from the sorted breakpoints of a sample; nan if it has none."""
    n = f.v.size
    if n > _SAMPLE:
        f = f.take(slice(None, None, -(-n // _SAMPLE)))
        # Twice as far as seems needed, so that the root is likely to lie between: a bracket with
        # two near ends keeps few rows. The first time there is no near end yet.
        excess *= f.v.size / n * (2.0 if np.isfinite(low) and np.isfinite(high) else 1.0)
    total = f.sum_at(tau) - excess
    points = f.breakpoints()
    enter, leave = points[: f.v.size], points[f.v.size :]
    inside = np.flatnonzero((points > low) & (points < high))
    if inside.size == 0:
        return np.nan
    inside = inside[np.argsort(points[inside])]
    points = points[inside]
    # A row that leaves its upper bound adds its s to the slope and takes it back at the lower one.
    change = np.outer([1.0, -1.0], np.broadcast_to(f.s, f.v.shape)).ravel()
    slopes = change[inside].cumsum()
    slopes += f.slope((enter <= low) & (leave > low))
    sums = np.full(points.size, f.sum_at(float(points[0])))
    sums[1:] -= np.cumsum(slopes[:-1] * np.diff(points))
    last = max(int(np.searchsorted(-sums, -total, side="right")) - 1, 0)
    step = (sums[last] - total) / slopes[last] if slopes[last] > 0 else 0.0
    return float(points[last] + max(step, 0.0))


def scale_to_sum(log_v: FloatArray, caps: FloatArray, total: float) -> FloatArray:
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

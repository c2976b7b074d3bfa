"""How stable a set of clean samples is: the conditions under which the paper's theorems hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from outweigh.constraints import COUNT, SHARE, Number, StrOptions, check
from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.norms.entrywise import hard_threshold
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, MomentMatrix, Norm
from outweigh.samples import DenseSamples
from outweigh.samples.matrices import Deflated

# What each problem asks for, beside the contamination.
_NEEDED = {
    "sparse mean": {"n_nonzero", "mean"},
    "mean": {"mean"},
    "sparse pca": {"n_nonzero", "component", "spike"},
    "pca": {"component", "spike"},
}

_MAX_ALTERNATIONS = 50
_N_STARTS = 4


@dataclass(frozen=True, slots=True)
class Stability:
    r"""A lower bound on the delta for which samples are stable.

    Attributes
    ----------
    problem : str
    contamination : float
        The eps of the definition.
    mean_deviation : float or None
        The largest :math:`\|\mu_w - \mu\|` found over D(n, 2 eps); None for PCA.
    moment_deviation : float
        The largest norm of the second moments less their reference found over D(n, 2 eps).
    delta_lower_bound : float
        No smaller delta satisfies the definition. It is a lower bound only: maximising over
        weights is not convex, and alternating ascent may miss the maximum.
    delta_theory : float
        eps sqrt(log(1/eps)) for means and eps log(1/eps) for PCA, constants one: what subgaussian
        samples reach when there are enough of them.
    n_samples_theory : float
        k^2 log(d) / delta_theory^2 for the sparse and d / delta_theory^2 for the dense problems,
        constants one: how many samples the theory asks for.
    """

    problem: str
    contamination: float
    mean_deviation: float | None
    moment_deviation: float
    delta_lower_bound: float
    delta_theory: float
    n_samples_theory: float


def stability(
    X: ArrayLike,
    *,
    problem: str,
    contamination: float,
    n_nonzero: int | None = None,
    mean: ArrayLike | None = None,
    component: ArrayLike | None = None,
    spike: float | None = None,
) -> Stability:
    r"""Measure how stable clean samples are, for any of the four problems of the paper.

    A set is stable if no reweighting in D(n, 2 eps) moves its moments by much. For means,
    :math:`\|\mu_w - \mu\| \le \delta` and :math:`\|S_w - I\| \le \delta^2/\epsilon`; for PCA,
    :math:`\|M_w - I - \rho vv^\top\| \le \delta`. The norms are those of the problem. The maxima
    are approached by alternating between a norm's maximiser and the best weights for it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Clean samples, of unit noise.
    problem : {"sparse mean", "mean", "sparse pca", "pca"}
    contamination : float in (0, 0.5)
        The eps of the definition; weights range over D(n, 2 eps).
    n_nonzero : int, optional
        The sparsity k; for the sparse problems, which need it.
    mean : array-like of shape (n_features,), optional
        The true mean; for the means, which need it.
    component : array-like of shape (n_features,), optional
        The true direction v; for PCA, which needs it.
    spike : float, optional
        The true strength rho; for PCA, which needs it.

    Returns
    -------
    Stability

    References
    ----------
    Definitions 2.1 and 2.2, D.2 and E.2 of Cheng et al., "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022. The dense PCA condition is read with the spike
    subtracted, as its proof uses it.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import stability
    >>> X = np.random.default_rng(0).standard_normal((2000, 20))
    >>> found = stability(X, problem="mean", contamination=0.05, mean=np.zeros(20))
    >>> bool(0.05 < found.delta_lower_bound < 1.0)
    True
    """
    rows = check_array(X, dtype=np.float64, ensure_min_samples=2)
    d = rows.shape[1]
    given = {"n_nonzero": n_nonzero, "mean": mean, "component": component, "spike": spike}
    any_problem = {"problem": [StrOptions({*_NEEDED})], "contamination": SHARE[:1]}
    check("stability", any_problem, {"problem": problem, "contamination": contamination})
    may_be: dict[str, list[Any]] = {
        "n_nonzero": [COUNT],
        "mean": ["array-like"],
        "component": ["array-like"],
        "spike": [Number(Real, 0.0, None, closed="left")],
    }
    asked = {name: may_be[name] if name in _NEEDED[problem] else [None] for name in given}
    check(f"stability for {problem!r}", asked, given)
    k = d if n_nonzero is None else int(n_nonzero)
    if k > d:
        raise ValueError(f"n_nonzero={k} is more than the {d} features of X")
    domain = CappedSimplex.from_contamination(rows.shape[0], min(2.0 * contamination, 0.999))
    mean_deviation = None
    if problem.endswith("mean"):
        samples = DenseSamples(rows - _vector("mean", mean, d))
        norm: Norm = RowwiseLargest(k) if problem == "sparse mean" else KyFan(1)
        mean_deviation = _largest_mean(samples, domain, k)
        moment_deviation = _largest_moment(MomentObjective(samples, norm, True), domain)
        delta = max(mean_deviation, math.sqrt(contamination * moment_deviation))
        theory = contamination * math.sqrt(math.log(1.0 / contamination))
    else:
        assert spike is not None
        direction = _vector("component", component, d)
        unit = (direction / np.linalg.norm(direction))[:, None]
        norm = LargestEntries(2 * k**2) if problem == "sparse pca" else KyFan(2)
        objective = _Spiked(DenseSamples(rows), norm, False, unit=unit, spike=float(spike))
        delta = moment_deviation = _largest_moment(objective, domain)
        theory = contamination * math.log(1.0 / contamination)
    n_samples = rows_in_theory(d, k if problem.startswith("sparse") else None, theory)
    return Stability(
        problem, contamination, mean_deviation, moment_deviation, delta, theory, n_samples
    )


def rows_in_theory(n_features: int, n_nonzero: int | None, delta: float) -> float:
    """Return the rows after which the paper calls samples stable, its constant taken to be one."""
    if n_nonzero is None:
        return n_features / delta**2
    return n_nonzero**2 * math.log(max(n_features, 2)) / delta**2


def _vector(name: str, values: Any, d: int) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (d,) or not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite and of shape ({d},); got shape {vector.shape}")
    return vector


def _largest_mean(samples: DenseSamples, domain: CappedSimplex, k: int) -> float:
    """Ascend on |mu_w|_{2,k}: the best weights for a direction, the best direction for weights."""
    best = 0.0
    uniform = np.full(samples.n_samples, 1.0 / samples.n_samples)
    mean = hard_threshold(samples.mean(uniform), k)
    drawn = np.random.default_rng(0).standard_normal((_N_STARTS, mean.size))
    for direction in (mean, -mean, *(hard_threshold(row, k) for row in drawn)):
        value = -math.inf
        for _ in range(_MAX_ALTERNATIONS):
            weighted = samples.mean(domain.minimize_linear(-samples.project(direction)))
            direction = hard_threshold(weighted, k)
            previous, value = value, float(np.linalg.norm(direction))
            if value <= previous * (1.0 + 1e-9):
                break
        best = max(best, value, previous)
    return best


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Spiked(MomentObjective):
    """A norm of the second moments less I and less a spike along a unit vector."""

    unit: Array
    spike: float

    def moment(self, weights: Array) -> MomentMatrix:
        """Return T(w) - I - spike v v'."""
        whole = MomentObjective.moment(self, weights)
        return Deflated(whole, self.unit, np.array([[self.spike]]))


def _largest_moment(objective: MomentObjective, domain: CappedSimplex) -> float:
    """Ascend on the norm of the second moments: both ends of its subgradient are tried."""
    best = 0.0
    first = objective.evaluate(domain.reference())
    for start in (first.subgradient, -first.subgradient):
        weights = domain.minimize_linear(-start)
        value = first.value
        for _ in range(_MAX_ALTERNATIONS):
            evaluation = objective.evaluate(weights)
            best = max(best, evaluation.value)
            if evaluation.value <= value * (1.0 + 1e-9):
                break
            value = evaluation.value
            weights = domain.minimize_linear(-evaluation.subgradient)
    return max(best, first.value)

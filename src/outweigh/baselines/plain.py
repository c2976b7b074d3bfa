"""The plain algorithms of the paper, for comparison with what this library does by default.

Both assume unit noise and a known contamination, and a step costs a covariance, O(n d^2).
"""

from __future__ import annotations

from outweigh.baselines.base import ComponentsBaseline, Found
from outweigh.baselines.weights import WeightDescent, descended
from outweigh.fit.readers import DenseReader, SparseReader
from outweigh.objectives import MomentObjective, mean, pca, sparse_mean, sparse_pca
from outweigh.optimise.steps import Backtracking
from outweigh.protocols import Array, StepRule
from outweigh.samples import DenseSamples
from outweigh.samples.matrices import as_array


class SparseGradientDescent(WeightDescent):
    """Algorithm 1 as the paper states it: a stationary point on all features, then the k largest.

    Steps are halved, as in the authors' program: that of the convergence theorem, which
    ``solver="paper"`` of the estimators takes, is too short to be practical.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        None is for the dense form of Appendix D.
    contamination : float, default=0.1
    max_iter : int, default=200
    tol : float, default=1e-3
        As in `outweigh.optimise.Backtracking`.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    n_iter_ : int

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(300, 30, 3, 0.1, 0)
    >>> SparseGradientDescent(3, contamination=0.1).fit(sample.X).location_.shape
    (30,)
    """

    max_iter: int = 200
    tol: float = 1e-3

    def _objective(self, samples: DenseSamples) -> MomentObjective:
        k = self._kept(samples.n_features)
        return mean(samples) if self.n_nonzero is None else sparse_mean(samples, k)

    def _rule(self) -> StepRule:
        return Backtracking(self.tol)


class SparseComponentsDescent(ComponentsBaseline):
    """Algorithm 2 as the paper states it: a stationary point, then the component read off there.

    Second moments are about zero.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        None is for the dense form of Appendix E.
    contamination : float, default=0.1
    max_iter : int, default=200

    Attributes
    ----------
    components_ : ndarray of shape (1, n_features)
    n_iter_ : int

    References
    ----------
    As for `SparseGradientDescent`.

    Examples
    --------
    >>> from outweigh.adversaries import spiked_mixture
    >>> sample = spiked_mixture(300, 30, 3, 0.1, 0)
    >>> SparseComponentsDescent(3, contamination=0.1).fit(sample.X).components_.shape
    (1, 30)
    """

    n_nonzero: int | None = None
    contamination: float = 0.1
    max_iter: int = 200

    def _find(self, X: Array) -> Found:
        samples = DenseSamples(X)
        objective, reader = pca(samples), DenseReader(1).plain
        if self.n_nonzero is not None:
            k = self._kept(X.shape[1])
            objective, reader = sparse_pca(samples, k), SparseReader((k,)).plain
        found = descended(objective, self.contamination, Backtracking(), self.max_iter)
        component = reader(as_array(objective.moment(found.weights)))
        return Found(component.T, weights=found.weights, n_iter=found.n_iter)

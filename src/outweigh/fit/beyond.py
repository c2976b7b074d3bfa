r"""Components beyond a known covariance of the noise: found in whitened rows, read off in features.

Clean rows have the covariance :math:`\sigma^2 R + B`, R known. In the whitened rows
:math:`z = R^{-1/2}y` that is :math:`\sigma^2(I + R^{-1/2}BR^{-1/2}/\sigma^2)`: white noise and
spikes, which the descent knows. What is sparse in the features y is not so in z, and orthogonal
spikes are not orthogonal there, so components are read off on the way back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from outweigh.fit.columns import largest_of, robust_variance
from outweigh.fit.noise import Noise
from outweigh.fit.readers import SparseReader, orthonormal, projected_out
from outweigh.fit.task import Task
from outweigh.fit.tuning import TUNING
from outweigh.norms.entrywise import top_k_indices
from outweigh.protocols import Array, Indices, MomentMatrix, Samples

_STEPS = 50
# A found direction of no excess keeps this share of the strongest one's, to be a direction at all.
_FAINT = 1e-9
# A direction of which no more than this is left beside the components, as a length, is rounding.
_SPANNED = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Beyond:
    r"""The way from whitened rows back to the features.

    Parameters
    ----------
    whitener : ndarray of shape (d, d)
        :math:`W = R^{-1/2}`, R the correlations of the noise.
    scale : ndarray of shape (d,)
        Of the features, in the units of X.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.samples import ArrayMoment
    >>> R, v = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([1.0, 0.0])
    >>> values, axes = np.linalg.eigh(R)
    >>> W = axes / np.sqrt(values) @ axes.T
    >>> excess = W @ (3.0 * np.outer(v, v)) @ W
    >>> found = np.linalg.eigh(excess)[1][:, 1:]
    >>> abs(Beyond(W, np.ones(2)).dense(ArrayMoment(excess), found)[:, 0]).round(6)
    array([1., 0.])
    """

    whitener: Array
    scale: Array

    def dense(self, excess: MomentMatrix, found: Array) -> Array:
        r"""Return the eigenvectors of the covariance beyond that of the noise.

        It is :math:`B = R^{1/2}U(U^\top EU)U^\top R^{1/2}` in units of the noise, U the directions
        found: of largest likelihood among the covariances of noise and that many spikes.

        Parameters
        ----------
        excess : MomentMatrix of shape (d, d)
            The weighted second moments E of the whitened rows less the identity.
        found : ndarray of shape (d, r)
            Directions in the whitened rows.

        Returns
        -------
        ndarray of shape (d, r)
            In units of `scale`; orthogonal in those of X.
        """
        basis = orthonormal(found)
        strengths, axes = np.linalg.eigh(basis.T @ excess.product(basis))
        faint = _FAINT * max(float(strengths[-1]), 1.0)
        # Those of no more than noise stay in their order: of equals any mixture would do.
        strengths = np.where(
            strengths > faint, strengths, faint * np.exp(np.minimum(strengths, 0.0))
        )
        root = self._to_features((basis @ axes) * np.sqrt(strengths)) * self.scale[:, None]
        left = np.linalg.svd(root, full_matrices=False)[0]
        return np.asarray(left / self.scale[:, None])

    def sparse(
        self, excess: Array, found: Array, n_nonzero: tuple[int, ...], limit: float
    ) -> Array:
        r"""Return sparse components, one after the other by deflation.

        Truncated power iteration on E, truncated in the features: from the direction u of a
        sparse v in the whitened rows, Wv, to :math:`R^{1/2}(E + I)u`, its largest entries, and
        on these features the v for which Wv has the largest excess.

        Parameters
        ----------
        excess : ndarray of shape (d, d)
            The E of `dense`.
        found : ndarray of shape (d, r)
            Directions in the whitened rows, to start from.
        n_nonzero : tuple of int
            Of each component; () counts the entries that stand out of their noise.
        limit : float
            What an entry of a component must exceed to stand out, in deviations of its noise
            times sqrt(1 + excess along the component).

        Returns
        -------
        ndarray of shape (d, r)
            Unit columns in units of `scale`.
        """
        components: list[Array] = []
        # Taken out of the second moments a direction has less than any other; of directions along
        # which rows do not vary any mixture would do, so features come in their order.
        order = np.linspace(1.0, 0.5, excess.shape[0])
        faint = _FAINT * max(float(np.abs(excess).max()), 1.0)
        moment = excess + np.diag(1.0 + faint * order)
        # A feature whose whitened direction is spanned by components has nothing left to tell.
        left, whole = self.whitener, np.linalg.norm(self.whitener, axis=0)
        for j, start in enumerate(found.T):
            count = n_nonzero[j] if n_nonzero else None
            free = np.linalg.norm(left, axis=0) > _SPANNED * whole
            v = self._truncated_power(moment - np.eye(order.size), start, count, limit, free)
            components.append(v)
            u = self.whitened(v)[:, None]
            moment = projected_out(moment, u)
            left = left - u @ (u.T @ left)
        return np.column_stack(components)

    def whitened(self, components: Array) -> Array:
        """Return the unit directions in the whitened rows of components of the features."""
        images = self.whitener @ components
        return np.asarray(images / np.linalg.norm(images, axis=0))

    def _truncated_power(
        self, excess: Array, start: Array, count: int | None, limit: float, free: Array
    ) -> Array:
        kept = self._kept(excess, start, count, limit, free)
        for _ in range(_STEPS):
            v = self._on_features(excess, kept)
            last, kept = kept, self._kept(excess, self.whitened(v), count, limit, free)
            if np.array_equal(kept, last):
                break
        return v

    def _kept(
        self, excess: Array, u: Array, count: int | None, limit: float, free: Array
    ) -> Indices:
        image = excess @ u
        if count is not None:
            return top_k_indices(self._to_features(image + u) * free, count)
        level = limit * np.sqrt(1.0 + max(float(u @ image), 0.0))
        entries = self._to_features(image) * free
        kept = np.flatnonzero(np.abs(entries) > level)
        return kept if kept.size else top_k_indices(entries, 1)

    def _on_features(self, excess: Array, kept: Indices) -> Array:
        """Return the unit v on these features for which Wv has the largest excess."""
        part = self.whitener[:, kept]
        top = kept.size - 1
        _, vectors = scipy.linalg.eigh(
            part.T @ excess @ part, part.T @ part, subset_by_index=(top, top)
        )
        v = np.zeros(self.scale.size)
        v[kept] = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
        return v

    def _to_features(self, vectors: Array) -> Array:
        return np.asarray(np.linalg.solve(self.whitener, vectors), dtype=np.float64)


def level_beside(samples: Samples, weights: Array, components: Array) -> float:
    """Return the typical deviation of a column, without its part in the components.

    What is sparse in the features is in most of the whitened columns, so their typical variance is
    not that of the noise.

    Parameters
    ----------
    samples : Samples
        n rows in d columns.
    weights : ndarray of shape (n,)
    components : ndarray of shape (d, r)
    """
    basis = orthonormal(components)
    along = samples.moment(weights, centred=True).product(basis)
    left = samples.variances(weights) - 2.0 * np.einsum("ij,ij->i", along, basis)
    left += np.einsum("ij,jk,ik->i", basis, basis.T @ along, basis)
    share = 1.0 - np.square(basis).sum(axis=1)
    kept = share > TUNING.beside
    # Where the components hold all variance, rounding is left, of either sign.
    return float(np.sqrt(max(np.median(left[kept] / share[kept]), 0.0))) if kept.any() else 1.0


def feature_variances(samples: Samples, weights: Array, whitener: Array) -> Array:
    """Return the weighted variances of the features that whitened rows were made of."""
    moment = samples.moment(weights, centred=True)
    covariance = moment.restrict(np.arange(moment.n_features))
    inverse = np.linalg.inv(whitener)
    return np.asarray(np.einsum("ij,jk,ik->i", inverse, covariance, inverse, optimize=True))


def in_features(noise: Noise, weights: Array, found: Array, task: Task) -> Array:
    """Return components of the features in place of those of the whitened rows."""
    whitener = noise.standardizer.whitener
    assert whitener is not None
    matrix = noise.samples.moment(weights, centred=task.centred, reference=1.0)
    beyond = Beyond(whitener, noise.standardizer.scale)
    dense = beyond.dense(matrix, found)
    if task.n_nonzero is None:
        return dense
    d = noise.samples.n_features
    counts = tuple(min(k, d) for k in task.n_nonzero)
    n_effective = 1.0 / float(np.sum(weights**2 / noise.sample_weight))
    limit = largest_of(d) / float(np.sqrt(n_effective))
    excess = matrix.restrict(np.arange(d))
    # Below the spectral edge a weak spike is in no leading direction, but in a few whitened
    # columns. The bulk varies most along the better ones.
    few = counts or (min(TUNING.start_entries, d),) * task.n_components
    weak = SparseReader(few).initial(excess, noise.samples, noise.kept)[:, : task.n_components]
    ends = [beyond.sparse(excess, start, counts, limit) for start in (found, weak)]

    def of_bulk(components: Array) -> float:
        along = noise.samples.project(beyond.whitened(components))
        return sum(robust_variance(column, noise.kept) for column in along.T)

    return max(ends, key=of_bulk)

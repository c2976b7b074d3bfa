"""Reading components off a moment matrix: the paper's way, truncated power iteration, dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from outweigh.fit.columns import largest_of, robust_scatter, robust_variance
from outweigh.fit.tuning import TUNING
from outweigh.fit.whiteness import bulk_variance
from outweigh.norms import KyFan, LargestEntries
from outweigh.norms.entrywise import top_k_indices
from outweigh.norms.floor import noise_floor
from outweigh.protocols import Array, Indices, Norm, Samples
from outweigh.samples import ArrayMoment

_POWER_STEPS = 100
_LANCZOS_ABOVE = 80
_THRESHOLD_STEPS = 20
# What decides between directions of equal excess, beside the largest entry.
_FAINT = 1e-9


@dataclass(frozen=True, slots=True)
class DenseReader:
    """Components without sparsity: eigenvectors.

    Parameters
    ----------
    n_components : int
    candidates : int, default=3
        Directions looked at beyond those, at least: there are outliers' among them. All along which
        rows vary more than noise does are looked at.
    n_features : int, default=0
        Whose noise there is, where rows are in coordinates of a span; 0 for as many as coordinates.
    """

    n_components: int
    candidates: int = 3
    n_features: int = 0

    @property
    def norm(self) -> Norm:
        """The paper's objective: Ky Fan, one singular value more than components."""
        return KyFan(self.n_components + 1)

    @property
    def residual_norm(self) -> Norm:
        """What is left once the components are taken out: the largest eigenvalue."""
        return KyFan(1)

    def plain(self, excess: Array) -> Array:
        """Return the top eigenvectors of `excess` as columns (the paper's read-out)."""
        return top_eigenvectors(excess, self.n_components)

    def initial(self, excess: Array, samples: Samples, sample_weight: Array) -> Array:
        """Return the components of the bulk of the rows, and what else the bulk varies along.

        The top eigenvectors, where the bulk varies along them as much as all rows do: then nothing
        speaks against them. Else outliers' are among them, or mixed with those of the bulk where
        their heights are close; a robust scatter in the few directions that they span tells them
        apart. Further directions in which the bulk varies more than noise does come after them.
        """
        r, n = self.n_components, float(sample_weight.sum())
        d, rows = self.n_features or excess.shape[0], int(n / TUNING.rows_per_feature)
        edge = float((1.0 + np.sqrt(d / n)) ** 2)
        above = int(np.count_nonzero(np.linalg.eigvalsh(excess) > TUNING.above_edge * edge - 1.0))
        count = min(max(r + self.candidates, above), excess.shape[0], max(rows, r))
        basis = top_eigenvectors(excess, count)
        if rows < count:
            return basis[:, :r]
        along = samples.project(basis)
        bulk = np.array([robust_variance(column, sample_weight) for column in along[:, :r].T])
        if np.any(bulk < _whole(n) * _plain_variances(excess, basis[:, :r])):
            scatter = robust_scatter(along, sample_weight)
            turn = top_eigenvectors(scatter, count)
            basis, along = basis @ turn, along @ turn
        more = _varies(along[:, r:], excess, basis[:, r:], sample_weight, edge)
        return np.hstack([basis[:, :r], basis[:, r:][:, more]])

    def leading(self, excess: Array) -> Array:
        """Return the direction of largest excess."""
        return top_eigenvectors(excess, 1)[:, 0]

    def refined(self, excess: Array, components: Array) -> Array:
        """Return the eigenvectors that overlap most with `components`, largest first."""
        wanted = components.shape[1]
        vectors = top_eigenvectors(excess, min(wanted + self.candidates, excess.shape[0]))
        overlap = np.square(components.T @ vectors).sum(axis=0)
        chosen = np.argsort(-overlap, kind="stable")[:wanted]
        return np.asarray(vectors[:, np.sort(chosen)])


@dataclass(frozen=True, slots=True)
class SparseReader:
    """Components with few nonzero entries.

    Parameters
    ----------
    n_nonzero : tuple of int
        The number of nonzero entries of each component.
    candidates : int, default=3
        Directions looked at beyond each component: there are outliers' among them.
    """

    n_nonzero: tuple[int, ...]
    candidates: int = 3

    @property
    def n_components(self) -> int:
        """The number of components."""
        return len(self.n_nonzero)

    @property
    def norm(self) -> Norm:
        """The paper's objective F,2k^2; for several components F, sum k_j^2 + max k_j^2."""
        squares = [k * k for k in self.n_nonzero]
        return LargestEntries(sum(squares) + max(squares))

    @property
    def residual_norm(self) -> Norm:
        """What is left once the components are taken out."""
        return LargestEntries(2 * max(self.n_nonzero) ** 2)

    def plain(self, excess: Array) -> Array:
        """Return the paper's read-out, one component after the other by deflation."""
        left, found = excess.copy(), []
        for k in self.n_nonzero:
            found.append(entries_read_out(left, k))
            left = projected_out(left, found[-1][:, None])
        return np.column_stack(found)

    def initial(self, excess: Array, samples: Samples, sample_weight: Array) -> Array:
        """Return, of several sparse candidates, those along which the bulk varies most.

        Further ones along which it varies more than noise does come after them.
        """
        n, k = float(sample_weight.sum()), max(self.n_nonzero)
        pool = np.column_stack(self._candidates(excess, k, n))
        along = samples.project(pool)
        order = np.argsort([-robust_variance(column, sample_weight) for column in along.T])
        first, others = order[: self.n_components], order[self.n_components :]
        found = np.column_stack(
            [_truncated(pool[:, j], count) for count, j in zip(self.n_nonzero, first, strict=True)]
        )
        if n < TUNING.rows_per_feature * (1 + self.n_components):
            return found
        edge = 1.0 + _sparse_level(n, excess.shape[0], k)
        more = _varies(along[:, others], excess, pool[:, others], sample_weight, edge)
        return np.hstack([found, pool[:, others][:, more]])

    def best(self, excess: Array) -> Array:
        """Return the best sparse directions found, one after the other by deflation."""
        found: list[Array] = []
        for k in self.n_nonzero:
            found.append(best_sparse(_deflated(excess, *found), k))
        return np.column_stack(found)

    def leading(self, excess: Array) -> Array:
        """Return the sparse direction of largest excess that was found."""
        return best_sparse(excess, max(self.n_nonzero))

    def refined(self, excess: Array, components: Array) -> Array:
        """Return the components improved by truncated power iteration on `excess`."""
        found: list[Array] = []
        further = (max(self.n_nonzero),) * (components.shape[1] - self.n_components)
        for k, start in zip(self.n_nonzero + further, components.T, strict=True):
            found.append(truncated_power(_deflated(excess, *found), start, k))
        return np.column_stack(found)

    def _candidates(self, excess: Array, k: int, n: float) -> list[Array]:
        """Return sparse directions, one after the other until what is left is as noise is."""
        d = excess.shape[0]
        level = _sparse_level(n, d, k)
        pool: list[Array] = []
        while len(pool) < self.n_components or len(pool) * k < d:
            pool.append(best_sparse(excess, k))
            enough = len(pool) >= self.n_components + self.candidates
            if enough and pool[-1] @ _image(excess, pool[-1], k) <= level:
                break
            excess = _deflated(excess, pool[-1])
        return pool


Reader = DenseReader | SparseReader


def entries_read_out(
    excess: Array, n_nonzero: int, eigenvectors: Callable[[Array, int], Array] | None = None
) -> Array:
    """Return the top eigenvector of A_Q + A_Q', Q the k^2 largest entries (Algorithm 2).

    Parameters
    ----------
    excess : ndarray of shape (d, d)
    n_nonzero : int
        The k of the algorithm.
    eigenvectors : callable, optional
        `top_eigenvectors`, or another way to find them.

    Examples
    --------
    >>> import numpy as np
    >>> v = np.array([0.6, 0.8, 0.0])
    >>> abs(entries_read_out(np.outer(v, v), 2)).round(6)
    array([0.6, 0.8, 0. ])
    """
    largest = LargestEntries(n_nonzero**2).maximize(ArrayMoment(excess)).form.entries
    support = np.union1d(*largest.nonzero()).astype(np.intp)
    if support.size == 0:
        support = np.arange(1)
    block = largest[support][:, support].toarray()
    found = np.zeros(excess.shape[0])
    found[support] = (eigenvectors or top_eigenvectors)(block + block.T, 1)[:, 0]
    return found


def best_sparse(excess: Array, n_nonzero: int) -> Array:
    """Return the best k-sparse unit vector u by u'Au that power iteration finds from three starts.

    The starts are the paper's read-out, the dense eigenvector, and the largest diagonal entries.
    """
    by_diagonal = top_k_indices(np.maximum(np.diagonal(excess), 0.0), n_nonzero)
    starts = [
        entries_read_out(excess, n_nonzero, rough_eigenvectors),
        rough_eigenvectors(excess, 1)[:, 0],
        _on_support(excess, by_diagonal),
    ]
    climbed = [truncated_power(excess, start, n_nonzero) for start in starts]
    return max(climbed, key=lambda u: float(u @ _image(excess, u, n_nonzero)))


def truncated_power(excess: Array, start: Array, n_nonzero: int) -> Array:
    """Improve a k-sparse unit vector by u <- k largest entries of (A + I)u, then on its support.

    References
    ----------
    Yuan and Zhang, "Truncated power method for sparse eigenvalue problems", JMLR 14 (2013).
    """
    u = _truncated(start, n_nonzero)
    for _ in range(_POWER_STEPS):
        moved = _truncated(_image(excess, u, n_nonzero) + u, n_nonzero)
        turned = abs(float(moved @ u))
        u = moved
        if turned > 1.0 - 1e-12:
            break
    support = top_k_indices(u, n_nonzero)
    return _on_support(excess, support)


def count_significant(
    excess: Array,
    samples: Samples,
    sample_weight: Array,
    n_components: int,
    n_effective: float,
) -> tuple[int, ...]:
    """Return how many entries of each component stand out of the noise, at least one.

    Entry j of A u has standard deviation sqrt(u'Mu / n) where component u has no entry j. Power
    iteration that keeps the entries beyond the largest of d such Gaussians ends in a support.

    References
    ----------
    Ma, "Sparse principal component analysis and iterative thresholding", Annals of Statistics 41
    (2013).
    """
    d = excess.shape[0]
    start = SparseReader((max(1, min(TUNING.start_entries, d)),) * n_components)
    largest = largest_of(d)
    counts = []
    for u in start.initial(excess, samples, sample_weight).T[:n_components]:
        for _ in range(_THRESHOLD_STEPS):
            image = excess @ u
            noise = np.sqrt((1.0 + max(float(u @ image), 0.0)) / n_effective)
            kept = np.where(np.abs(image) > noise * largest, image, 0.0)
            length = float(np.linalg.norm(kept))
            if length == 0.0:
                break
            u = kept / length
        counts.append(max(1, int(np.count_nonzero(u))) if length > 0.0 else 1)
    return tuple(counts)


def count_entries(mean: Array, n_effective: float) -> int:
    """Return how many entries of a mean exceed the largest of as many Gaussians N(0, 1/n).

    At level 0.05, in units of the noise.
    """
    if mean.size == 0:
        return 0
    return int(np.count_nonzero(np.abs(mean) > largest_of(mean.size) / np.sqrt(n_effective)))


def count_factors(variances: Array, n_samples: float, n_features: int) -> int:
    r"""Return how many eigenvalues of a covariance stand out from white noise: the spectral edge.

    One after the other, :math:`\lambda_k` stands out where

    .. math:: \lambda_k > (1 + \tau) \sigma_k^2, \qquad
              \sigma_k^2 = \frac{1}{d - k + 1} \sum_{j \ge k} \lambda_j,

    with :math:`1 + \tau` the 0.99 quantile of the largest eigenvalue of n - k + 1 rows of unit
    noise in d - k + 1 features (Tracy and Widom): each factor takes one of either.

    Parameters
    ----------
    variances : ndarray
        The eigenvalues that may be positive, in decreasing order.
    n_samples : float
    n_features : int
        All eigenvalues; those that are not named are zero.

    References
    ----------
    Kritchman and Nadler, "Non-parametric detection of the number of signals: hypothesis testing and
    random matrix theory", IEEE Transactions on Signal Processing 57 (2009).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 20))
    >>> X[:, :2] *= 3.0
    >>> count_factors(np.linalg.eigvalsh(np.cov(X.T))[::-1], 500, 20)
    2
    """
    edges = spectral_edges(variances, n_samples, n_features)
    beyond = (value > edge for value, edge in zip(variances.tolist(), edges, strict=False))
    return sum(1 for _ in takewhile(bool, beyond))


def spectral_edges(variances: Array, n_samples: float, n_features: int) -> Iterator[float]:
    """Yield what each eigenvalue in turn must exceed to stand out; see `count_factors`."""
    left = float(np.sum(variances))
    for k, value in enumerate(variances.tolist()):
        d, n = n_features - k, n_samples - k
        if d < 2 or n < 3.0:
            return
        yield left / d * (1.0 + noise_floor(KyFan(1), n, d).clean)
        left = max(left - value, 0.0)


def is_white(
    moment: Array, n_samples: float, n_features: int, n_components: int, allowed: float
) -> bool:
    """Tell whether a covariance, some spikes set aside, could be that of white noise.

    For white noise the mean square of the eigenvalues is 1 + d/n times their squared mean; heavy
    tails and outliers add to the second term.

    Parameters
    ----------
    moment : ndarray of shape (d', d')
        In units of the noise level of a typical column and in an orthonormal basis of the span of
        the rows; other eigenvalues are zero.
    n_samples : float
    n_features : int
        The number d of features, at least d'.
    n_components : int
    allowed : float
        How many times the second term there may be.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 50))
    >>> uneven = X * 0.9 ** np.arange(50)
    >>> is_white(X.T @ X / 500, 500, 50, 1, 2.0), is_white(uneven.T @ uneven / 500, 500, 50, 1, 2.0)
    (True, False)
    """
    aside = n_components + TUNING.aside
    if too_few_for_white(n_samples, n_features, n_components) or moment.shape[0] <= aside:
        return False
    vectors = rough_eigenvectors(moment, aside)
    spikes = np.einsum("ij,ij->j", vectors, moment @ vectors)
    # Taken out of the matrix: a difference of sums has no digits left beside a huge spike.
    rest = moment - (vectors * spikes) @ vectors.T
    total, squares = float(np.trace(rest)), float(np.vdot(rest, rest))
    if total <= 0.0:
        return False
    # In units of the noise level; strong components common to all columns raise that far above.
    level = total / (n_features - aside)
    ratio = squares / (n_features - aside) / level**2
    return (
        1.0 / TUNING.white_level <= level <= TUNING.white_level
        and ratio <= TUNING.uneven + allowed * n_features / n_samples
    )


def too_few_for_white(n_samples: float, n_features: int, n_components: int) -> bool:
    """Tell whether a level of white noise could not be told from that many components."""
    aside = n_components + TUNING.aside
    return n_samples < TUNING.white_rows or n_features < TUNING.white_features + aside


def effective_entries(vector: Array) -> int:
    """Return 1 / sum u_j^4 rounded up: how many equal entries would be as concentrated.

    Examples
    --------
    >>> import numpy as np
    >>> effective_entries(np.array([0.5, 0.5, -0.5, 0.5, 0.0]))
    4
    """
    unit = vector / np.linalg.norm(vector)
    return int(np.ceil(1.0 / float(np.sum(unit**4)) - 1e-9))


def fix_signs(components: Array) -> Array:
    """Return rows whose entry of largest magnitude is positive.

    Examples
    --------
    >>> import numpy as np
    >>> fix_signs(np.array([[0.6, -0.8]]))
    array([[-0.6,  0.8]])
    """
    largest = np.argmax(np.abs(components), axis=1)
    signs = np.sign(components[np.arange(components.shape[0]), largest])
    return np.asarray(components * np.where(signs == 0, 1.0, signs)[:, None] + 0.0)


def orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis of the span of some columns."""
    left, strengths, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, strengths > 1e-8 * max(float(strengths.max(initial=0.0)), 1e-300)])


def _whole(n: float) -> float:
    """Return the part of the variance that is the bulk's, at least, where there are no outliers.

    Two and a half deviations of a variance of n Gaussians below one: more than the least of ten
    directions showed, in clean rows of 100x50 to 2000x200.
    """
    return 1.0 - TUNING.deviations * float(np.sqrt(2.0 / n))


def _plain_variances(excess: Array, basis: Array) -> Array:
    """Return the variance of all rows along each direction."""
    return np.asarray(1.0 + np.einsum("ij,ij->j", basis, excess @ basis))


def _varies(
    along: Array, excess: Array, basis: Array, sample_weight: Array, edge: float
) -> NDArray[np.bool_]:
    """Tell along which directions the bulk varies more than noise does, and not outliers alone."""
    least = np.maximum(TUNING.bulk_part * _plain_variances(excess, basis), TUNING.above_edge * edge)
    varies = [
        # The second is never more, and takes longer.
        robust_variance(column, sample_weight) >= level
        and bulk_variance(column, sample_weight)[0] >= level
        for column, level in zip(along.T, least, strict=True)
    ]
    return np.array(varies, dtype=np.bool_)


def _sparse_level(n: float, d: int, k: int) -> float:
    r"""Return what u'Au of noise hardly exceeds over all unit vectors u of k entries.

    :math:`(1 + \sqrt{m/n})^2 - 1` with :math:`m = k (1 + 2 \log(ed/k))`: the edge for k features,
    and a bound on the number of their choices.
    """
    m = k * (1.0 + 2.0 * float(np.log(np.e * d / k)))
    return float((1.0 + np.sqrt(m / n)) ** 2 - 1.0)


def _image(excess: Array, u: Array, n_nonzero: int) -> Array:
    """Return A u for a symmetric A and a vector of at most so many nonzero entries."""
    support = np.flatnonzero(u) if 4 * n_nonzero <= u.size else slice(None)
    return np.asarray(u[support] @ excess[support])


def _truncated(vector: Array, k: int) -> Array:
    kept = np.zeros_like(vector)
    support = top_k_indices(vector, k)
    kept[support] = vector[support]
    length = float(np.linalg.norm(kept))
    if length == 0.0:
        kept[0] = length = 1.0
    return kept / length


def _on_support(excess: Array, support: Indices) -> Array:
    """Return the unit vector on some features of largest u'Au."""
    u = np.zeros(excess.shape[0])
    u[support] = top_eigenvectors(excess[np.ix_(support, support)], 1)[:, 0]
    return u


def _deflated(excess: Array, *found: Array) -> Array:
    """Return the excess of the moments I + A with each found direction projected out of them.

    That is -1 along those, and not 0: where rows vary less than noise all other excess is negative,
    and they would be the largest again. Of directions along which rows do not vary any mixture
    would do, so features come in their order.
    """
    if not found:
        return excess
    basis = orthonormal(np.column_stack(found))
    left = projected_out(excess, basis) - basis @ basis.T
    d = excess.shape[0]
    left.flat[:: d + 1] += _FAINT * max(float(np.abs(excess).max()), 1.0) * np.linspace(1.0, 0.5, d)
    return left


def projected_out(excess: Array, basis: Array) -> Array:
    """Return (I - UU')A(I - UU') for a symmetric A and orthonormal columns U.

    Examples
    --------
    >>> import numpy as np
    >>> projected_out(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0], [0.0]]))
    array([[0., 0.],
           [0., 3.]])
    """
    along = excess @ basis
    # A - V U' - U V' with V = AU - U(U'AU)/2: one product and one array beside A.
    half = along - basis @ (basis.T @ along) / 2.0
    taken = np.hstack([half, basis]) @ np.hstack([basis, half]).T
    return np.asarray(np.subtract(excess, taken, out=taken))


def top_eigenvectors(matrix: Array, count: int) -> Array:
    """Return the eigenvectors of the algebraically largest eigenvalues, largest first.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    count : int
        Clipped to d.
    """
    d = int(matrix.shape[0])
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=(max(d - count, 0), d - 1))
    return np.asarray(vectors[:, ::-1])


def rough_eigenvectors(matrix: Array, count: int) -> Array:
    """Return `top_eigenvectors` to a few digits, as for a start: much faster for large d."""
    d = int(matrix.shape[0])
    if d <= _LANCZOS_ABOVE or 4 * count >= d:
        return top_eigenvectors(matrix, count)
    operator = LinearOperator((d, d), matvec=lambda v: matrix @ v, dtype=np.float64)
    start = np.random.default_rng(d).standard_normal(d)
    try:
        values, vectors = eigsh(
            operator, k=count, which="LA", v0=start, tol=1e-2, maxiter=int(20 * d)
        )
    except ArpackNoConvergence:
        return top_eigenvectors(matrix, count)
    return np.asarray(vectors[:, np.argsort(-values, kind="stable")])

"""Reading components off a moment matrix: the paper's way, truncated power iteration, dense."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from outweigh.fit.bulk import robust_scatter, robust_variance
from outweigh.fit.columns import largest_of
from outweigh.norms import KyFan, LargestEntries
from outweigh.norms.entrywise import top_k_indices
from outweigh.protocols import Array, Indices, Norm, Samples
from outweigh.samples import ArrayMoment

__all__ = [
    "DenseReader",
    "Reader",
    "SparseReader",
    "count_entries",
    "count_significant",
    "effective_entries",
    "entries_read_out",
    "fix_signs",
    "is_white",
    "orthonormal",
    "projected_out",
    "top_eigenvectors",
]

# Below these sizes a level of white noise cannot be told from the spikes.
_MIN_ROWS, _MIN_FEATURES = 30, 8
_SPIKES_SET_ASIDE = 4
_POWER_STEPS = 100
_LANCZOS_ABOVE = 80
_START_ENTRIES, _THRESHOLD_STEPS = 12, 20
# A robust scatter in m directions wants this many rows for each.
_ROWS_PER_DIRECTION = 10


@dataclass(frozen=True, slots=True)
class DenseReader:
    """Components without sparsity: eigenvectors.

    Parameters
    ----------
    n_components : int
    candidates : int, default=3
        Directions looked at beyond those: there are outliers' among them.
    """

    n_components: int
    candidates: int = 3

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
        """Return the components of the bulk of the rows, seen in the candidate directions.

        The top eigenvectors mix clean spikes with those of outliers when their heights are close;
        a robust scatter in the few directions that they span tells them apart.
        """
        rows = int(sample_weight.sum() / _ROWS_PER_DIRECTION)
        count = min(
            self.n_components + self.candidates, excess.shape[0], max(rows, self.n_components)
        )
        basis = top_eigenvectors(excess, count)
        if count <= self.n_components or rows < count:
            return basis[:, : self.n_components]
        scatter = robust_scatter(samples.project(basis), sample_weight)
        return np.asarray(basis @ top_eigenvectors(scatter, self.n_components))

    def leading(self, excess: Array) -> Array:
        """Return the direction of largest excess."""
        return top_eigenvectors(excess, 1)[:, 0]

    def refined(self, excess: Array, components: Array) -> Array:
        """Return the eigenvectors that overlap most with `components`."""
        count = min(self.n_components + self.candidates, excess.shape[0])
        vectors = top_eigenvectors(excess, count)
        overlap = np.square(components.T @ vectors).sum(axis=0)
        chosen = np.argsort(-overlap, kind="stable")[: self.n_components]
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
            left = _deflated(left, found[-1])
        return np.column_stack(found)

    def initial(self, excess: Array, samples: Samples, sample_weight: Array) -> Array:
        """Return, of several sparse candidates, those along which the bulk varies most."""
        found: list[Array] = []
        for k in self.n_nonzero:
            left = _deflated(excess, *found)
            found.append(_of_most_variance(self._candidates(left, k), samples, sample_weight))
        return np.column_stack(found)

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
        for k, start in zip(self.n_nonzero, components.T, strict=True):
            found.append(truncated_power(_deflated(excess, *found), start, k))
        return np.column_stack(found)

    def _candidates(self, excess: Array, k: int) -> list[Array]:
        pool: list[Array] = []
        for _ in range(1 + self.candidates):
            pool.append(best_sparse(excess, k))
            excess = _deflated(excess, pool[-1])
        return pool


Reader = DenseReader | SparseReader


def entries_read_out(excess: Array, n_nonzero: int, *, rough: bool = False) -> Array:
    """Return the top eigenvector of A_Q + A_Q', Q the k^2 largest entries (Algorithm 2).

    Parameters
    ----------
    excess : ndarray of shape (d, d)
    n_nonzero : int
        The k of the algorithm.
    rough : bool, default=False
        Whether a few digits suffice, as for a start.

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
    return _embedded(block + block.T, support, excess.shape[0], rough)


def best_sparse(excess: Array, n_nonzero: int) -> Array:
    """Return the best k-sparse unit vector u by u'Au that power iteration finds from three starts.

    The starts are the paper's read-out, the dense eigenvector, and the largest diagonal entries.
    """
    by_diagonal = top_k_indices(np.maximum(np.diagonal(excess), 0.0), n_nonzero)
    starts = [
        entries_read_out(excess, n_nonzero, rough=True),
        top_eigenvectors(excess, 1, rough=True)[:, 0],
        _embedded(excess[np.ix_(by_diagonal, by_diagonal)], by_diagonal, excess.shape[0]),
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
    return _embedded(excess[np.ix_(support, support)], support, excess.shape[0])


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
    start = SparseReader((max(1, min(_START_ENTRIES, d)),) * n_components)
    largest = largest_of(d)
    counts = []
    for u in start.initial(excess, samples, sample_weight).T:
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
    aside = n_components + _SPIKES_SET_ASIDE
    if n_samples < _MIN_ROWS or n_features < _MIN_FEATURES + aside or moment.shape[0] <= aside:
        return False
    vectors = top_eigenvectors(moment, aside, rough=True)
    spikes = np.einsum("ij,ij->j", vectors, moment @ vectors)
    total = float(np.trace(moment) - spikes.sum())
    squares = float(np.vdot(moment, moment) - np.square(spikes).sum())
    if total <= 0.0:
        return False
    # In units of the noise level; strong components common to all columns raise that far above.
    level = total / (n_features - aside)
    ratio = squares / (n_features - aside) / level**2
    return 0.5 <= level <= 2.0 and ratio <= 1.1 + allowed * n_features / n_samples


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


def _of_most_variance(pool: list[Array], samples: Samples, sample_weight: Array) -> Array:
    projected = samples.project(np.column_stack(pool))
    variances = [robust_variance(column, sample_weight) for column in projected.T]
    return pool[int(np.argmax(variances))]


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


def _embedded(block: Array, support: Indices, n_features: int, rough: bool = False) -> Array:
    u = np.zeros(n_features)
    u[support] = top_eigenvectors(block, 1, rough=rough)[:, 0]
    return u


def _deflated(excess: Array, *found: Array) -> Array:
    """Return A with each found direction projected out on both sides."""
    if not found:
        return excess
    return projected_out(excess, orthonormal(np.column_stack(found)))


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


def top_eigenvectors(matrix: Array, count: int, *, rough: bool = False) -> Array:
    """Return the eigenvectors of the algebraically largest eigenvalues, largest first.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    count : int
        Clipped to d.
    rough : bool, default=False
        Whether a few digits suffice, as for a start; much faster for large d.
    """
    d = int(matrix.shape[0])
    count = min(count, d)
    if rough and d > _LANCZOS_ABOVE and 4 * count < d:
        operator = LinearOperator((d, d), matvec=lambda v: matrix @ v, dtype=np.float64)
        try:
            values, vectors = eigsh(
                operator,
                k=count,
                which="LA",
                v0=np.random.default_rng(d).standard_normal(d),
                tol=1e-2,
                maxiter=int(20 * d),
            )
        except ArpackNoConvergence:
            return top_eigenvectors(matrix, count)
        return np.asarray(vectors[:, np.argsort(-values, kind="stable")])
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=(d - count, d - 1))
    return np.asarray(vectors[:, ::-1])

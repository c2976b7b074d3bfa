"""The four objectives of the paper: a norm of the weighted second moments less I."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.protocols import (
    Array,
    Evaluation,
    Indices,
    MomentMatrix,
    Norm,
    Samples,
    Survey,
)
from outweigh.samples import DenseSamples
from outweigh.samples.matrices import Deflated

__all__ = ["MomentObjective", "mean", "pca", "sparse_mean", "sparse_pca"]

# Multiplications in a full pass above which halving its time is worth its rounding.
_SINGLE_PRECISION_ABOVE = 2e8


@dataclass(frozen=True, slots=True, eq=False)
class MomentObjective:
    r"""The objective :math:`f(w) = N(T(w) - r I)`, T the covariance or the second moment.

    One chain rule serves every norm: with Z the norm's maximiser,
    :math:`g_i = x_i^\top Z x_i - x_i^\top (Z + Z^\top)\mu_w` when centred and
    :math:`g_i = x_i^\top Z x_i` when not.

    Parameters
    ----------
    samples : Samples
    norm : Norm
    centred : bool
        Whether T is S_w (means) or M_w (principal components).
    reference : float, default=1.0
        The r: what clean data looks like is r I.
    removed : ndarray of shape (d, r), optional
        Orthonormal directions taken out: the norm then sees A - U (U'AU) U'.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.samples import DenseSamples
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> objective = sparse_mean(DenseSamples(X), n_nonzero=1)
    >>> objective.evaluate(np.full(4, 0.25)).value
    0.5
    """

    samples: Samples
    norm: Norm
    centred: bool
    reference: float = 1.0
    removed: Array | None = None

    def moment(self, weights: Array) -> MomentMatrix:
        """Return the matrix T(w) - r I, with the removed directions taken out."""
        matrix = self.samples.moment(weights, centred=self.centred, reference=self.reference)
        return matrix if self.removed is None else Deflated.of(matrix, self.removed)

    def centre(self, weights: Array) -> Array:
        """Return what the second moments are about: the weighted mean, or zero."""
        return self.samples.mean(weights) if self.centred else np.zeros(self.n_features)

    def evaluate(self, weights: Array) -> Evaluation:
        """Return value, subgradient and the form behind it at `weights`."""
        found, samples = self.norm.maximize(self.moment(weights)), self.samples
        # A form that is blind to what was taken out.
        form = found.form if self.removed is None else found.form.without(self.removed)
        drift = np.zeros(self.n_features)
        if self.centred:
            drift = form.symmetric_product(samples.mean(weights))
        subgradient = samples.quadratic(form, drift if self.centred else None)
        return Evaluation(found.value, subgradient, found.attained, form, drift)

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.samples.n_features

    def verify(self, weights: Array) -> float:
        """Return the value over all features."""
        return self.norm.maximize(self._full_moment(weights)).value

    def survey(self, weights: Array, n_coordinates: int) -> Survey:
        """Return the value over all features, and the features that carry it.

        A large pass runs in single precision; what it finds is read again in double.
        """
        assert isinstance(self.norm, RowwiseLargest | LargestEntries)
        found = self.norm.survey(self._full_moment(weights), n_coordinates)
        if self.removed is None or found.coordinates is None:
            return found
        # What was taken out must stay out: a working set holds its features too.
        taken_out = np.flatnonzero(self.removed.any(axis=1))
        return replace(found, coordinates=np.union1d(found.coordinates, taken_out))

    def _full_moment(self, weights: Array) -> MomentMatrix:
        """Return the matrix for a norm that reads all of it once."""
        samples = self.samples
        if (
            not isinstance(samples, DenseSamples)
            or samples.n_samples * self.n_features**2 <= _SINGLE_PRECISION_ABOVE
            # Eigenvectors come of many products, for which blocks are no help.
            or isinstance(self.norm, KyFan)
            # A row that is read again in double costs up to 4/d of the pass of which half is saved.
            or (isinstance(self.norm, RowwiseLargest) and 8 * self.norm.n_nonzero > self.n_features)
            # Beside components, which are read off the whole matrix at the weights surveyed last.
            or (self.removed is not None and samples.remembers_moments)
        ):
            return self.moment(weights)
        mean = samples.mean(weights) if self.centred else None
        matrix = samples.rounded_moment(weights, mean, self.reference)
        return matrix if self.removed is None else Deflated.of(matrix, self.removed)

    def restrict(self, coordinates: Indices) -> MomentObjective:
        """Return the same objective on the named columns only."""
        removed = None
        if self.removed is not None:
            # What is left of the directions on these columns, again orthonormal; maybe nothing.
            left, lengths, _ = np.linalg.svd(self.removed[coordinates], full_matrices=False)
            removed = left[:, lengths > 1e-8] if np.any(lengths > 1e-8) else None
        return replace(
            self,
            samples=self.samples.columns(coordinates),
            removed=removed,
        )


def sparse_mean(samples: Samples, n_nonzero: int) -> MomentObjective:
    r"""Return :math:`\|S_w - I\|_{F,k,k}`, the objective of Algorithm 1."""
    return MomentObjective(samples, RowwiseLargest(n_nonzero), True)


def mean(samples: Samples) -> MomentObjective:
    r"""Return :math:`\|S_w - I\|_2`, the objective of Appendix D."""
    return MomentObjective(samples, KyFan(1), True)


def sparse_pca(samples: Samples, n_nonzero: int) -> MomentObjective:
    r"""Return :math:`\|M_w - I\|_{F,2k^2}`, the objective of Algorithm 2."""
    return MomentObjective(samples, LargestEntries(2 * n_nonzero**2), False)


def pca(samples: Samples, n_components: int = 1) -> MomentObjective:
    """Return the Ky Fan norm of M_w - I with one singular value more than components."""
    return MomentObjective(samples, KyFan(n_components + 1), False)

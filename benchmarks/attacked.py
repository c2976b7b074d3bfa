"""Attacked rows for the studies of means: nine laws of clean rows, thirty attacks on them.

The adversaries of the library are those of the paper and of its relatives. These here are mostly
harder: outliers that *overlap* the clean rows, moved by two to four deviations, so that along the
best direction no cut tells one from the other. All take any law.

Clean rows have independent entries of variance one about a sparse mean, whose entries have random
signs and sizes between 0.5 and 2. The error of an estimate is its distance from that mean, the
mean of the law, not from the average of the rows drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from outweigh.adversaries import INLIERS, Sample
from outweigh.adversaries.sample import (
    Shape,
    choose_rows,
    choose_support,
    random_signs,
    sparse_mean,
)

Array = np.ndarray
Law = Callable[[Generator, tuple[int, int]], Array]

# Laws of clean rows, each of mean zero and variance one


def t10(rng: Generator, shape: tuple[int, int]) -> Array:
    """Draw Student entries with 10 degrees of freedom, kurtosis 4."""
    return rng.standard_t(10.0, size=shape) * np.sqrt(0.8)


def lognormal(rng: Generator, shape: tuple[int, int]) -> Array:
    """Draw exponentials of Gaussians of deviation 0.5: skewness 1.75, kurtosis 8.9."""
    variance = 0.25
    mean = np.exp(variance / 2.0)
    return (rng.lognormal(0.0, 0.5, shape) / mean - 1.0) / np.sqrt(np.expm1(variance))


def logistic(rng: Generator, shape: tuple[int, int]) -> Array:
    """Draw logistic entries, kurtosis 4.2."""
    return rng.logistic(0.0, np.sqrt(3.0) / np.pi, shape)


def rounded(rng: Generator, shape: tuple[int, int]) -> Array:
    """Draw Gaussians rounded to whole numbers: few values, many ties."""
    # Sheppard's correction is exact here to eight digits.
    return np.rint(rng.standard_normal(shape)) / np.sqrt(1.0 + 1.0 / 12.0)


LAWS: Mapping[str, Law] = MappingProxyType(
    {
        **{name: INLIERS[name] for name in ("gaussian", "laplace", "t5")},
        "t10": t10,
        "lognormal": lognormal,
        **{name: INLIERS[name] for name in ("exponential", "uniform")},
        "rounded": rounded,
        "logistic": logistic,
    }
)

# What an attack begins with and what it leaves


@dataclass(frozen=True, eq=False)
class Attacked(Sample):
    """A sample that knows along which unit vectors (rows) its outliers differ from clean rows."""

    directions: Array = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def excess(self) -> float:
        """By how many standard errors the variance along the attack exceeds that of clean rows.

        Of several directions the one that shows most counts. The standard error is that of the
        variance of as many clean rows, from their own fourth moment.
        """
        along = self.X @ self.directions.T
        clean = along[self.inliers]
        squares = (clean - clean.mean(axis=0)) ** 2
        error = squares.std(axis=0) / np.sqrt(len(along))
        return float(np.max((along.var(axis=0) - clean.var(axis=0)) / error))


@dataclass(frozen=True, eq=False)
class Scene:
    """Clean rows before an attack, the mean they are drawn about, and the rows to be replaced."""

    rng: Generator
    law: Law
    X: Array
    mean: Array
    kept: Array

    @classmethod
    def draw(cls, law: str, n: int, d: int, k: int, eps: float, seed: int | list[int]) -> Scene:
        """Draw `n` clean rows of `d` entries about a mean of `k` nonzero entries."""
        rng = np.random.default_rng(seed)
        shape = Shape(n, d, k, eps)
        mean = sparse_mean(rng, shape)
        X = LAWS[law](rng, (n, d)) + mean
        return cls(rng, LAWS[law], X, mean, choose_rows(rng, shape))

    @property
    def d(self) -> int:
        return self.mean.size

    @property
    def support(self) -> Array:
        """The features on which the mean is not zero."""
        return np.flatnonzero(self.mean)

    @property
    def outliers(self) -> Array:
        """The rows to be replaced, as clean as they still are."""
        return self.X[~self.kept]

    def direction(self, where: str) -> Array:
        """Draw a unit vector, flat and of random signs, on features of one of the `PLACES`."""
        vector = np.zeros(self.d)
        features = PLACES[where](self)
        vector[features] = random_signs(self.rng, len(features)) / np.sqrt(len(features))
        return vector

    def own_features(self, count: int, where: str) -> Array:
        """Draw `count` unit vectors, each along a feature of its own, on the support or beside.

        Where there are too few such features the others serve too.
        """
        first = self.rng.permutation(self.support)
        other = self.rng.permutation(np.flatnonzero(self.mean == 0.0))
        order = np.concatenate([first, other] if where == "support" else [other, first])
        features = order[: min(count, self.d)]
        vectors = np.zeros((len(features), self.d))
        vectors[np.arange(len(features)), features] = random_signs(self.rng, len(features))
        return vectors

    def moved(self, shifts: Array, directions: Array) -> Attacked:
        """Add `shifts`, one for all outliers or one each, to their clean rows."""
        return self.replaced(self.outliers + shifts, directions)

    def replaced(self, outliers: Array, directions: Array) -> Attacked:
        """Put `outliers` in the places of the rows to be replaced."""
        X = self.X.copy()
        X[~self.kept] = outliers
        return Attacked(X, self.kept, self.mean, directions=np.atleast_2d(directions))


def _beside(scene: Scene, count: int) -> Array:
    return choose_support(scene.rng, scene.d, count, scene.support)


# Where a shift sits, seen from the features that carry the mean.
PLACES: Mapping[str, Callable[[Scene], Array]] = MappingProxyType(
    {
        "support": lambda scene: scene.support,
        "beside": lambda scene: _beside(scene, scene.support.size),
        "half beside": lambda scene: np.concatenate(
            [scene.support[::2], _beside(scene, scene.support.size // 2)]
        ),
        "feature": lambda scene: _beside(scene, 1),
        "all": lambda scene: np.arange(scene.d),
    }
)

Attack = Callable[[Scene], Attacked]

# Attacks: one group along one direction


def shift(where: str, norm: float, spread: float = 1.0) -> Attack:
    """Move the outliers by a vector of length `norm`; their own noise is multiplied by `spread`."""

    def attack(scene: Scene) -> Attacked:
        direction = scene.direction(where)
        noise = scene.outliers - scene.mean
        return scene.replaced(scene.mean + spread * noise + norm * direction, direction)

    return attack


def tenth_doubled(scene: Scene) -> Attacked:
    """Move by 2.5 on the support, a tenth of the outliers twice as far: these lead astray."""
    direction = scene.direction("support")
    lengths = np.where(np.arange(len(scene.outliers)) % 10 == 0, 5.0, 2.5)
    return scene.moved(np.outer(lengths, direction), direction)


def smeared(scene: Scene) -> Attacked:
    """Move each outlier by a length of its own between 1 and 4."""
    direction = scene.direction("support")
    lengths = scene.rng.uniform(1.0, 4.0, len(scene.outliers))
    return scene.moved(np.outer(lengths, direction), direction)


def one_sided_tail(scene: Scene) -> Attacked:
    """Make one feature of the outliers 2.5 times the absolute value of its noise."""
    direction = scene.direction("feature")
    along = (scene.outliers - scene.mean) @ direction
    return scene.moved(np.outer(2.5 * np.abs(along) - along, direction), direction)


def two_sided(share: float) -> Attack:
    """Move a share of the outliers by 3 along a direction beside the support, the others back."""

    def attack(scene: Scene) -> Attacked:
        direction = scene.direction("beside")
        count = len(scene.outliers)
        lengths = np.where(np.arange(count) < round(share * count), 3.0, -3.0)
        return scene.moved(np.outer(lengths, direction), direction)

    return attack


def at_zero(scene: Scene) -> Attacked:
    """Centre the outliers at zero: they shrink the mean on its own support."""
    return scene.moved(-scene.mean, scene.mean / np.linalg.norm(scene.mean))


def wrong_support(scene: Scene) -> Attacked:
    """Give the outliers a mean of the same kind on other features."""
    other = np.zeros(scene.d)
    features = _beside(scene, scene.support.size)
    signs = random_signs(scene.rng, len(features))
    other[features] = signs * scene.rng.uniform(0.5, 2.0, len(features))
    away = other - scene.mean
    return scene.moved(away, away / np.linalg.norm(away))


def linear_hiding(scene: Scene) -> Attacked:
    """Move half of the outliers by one on each feature of the support, widen the others off it."""
    direction = np.where(scene.mean != 0.0, 1.0, 0.0)
    noise = scene.outliers - scene.mean
    noise[::2] += direction
    noise[1::2] *= np.where(scene.mean != 0.0, 1.0, np.sqrt(2.0))
    return scene.replaced(scene.mean + noise, direction / np.linalg.norm(direction))


# Several groups


def groups(
    where: str, sizes: Sequence[float], norms: Sequence[float], radius: float | None = None
) -> Attack:
    """Split the outliers into groups, each moved along a feature of its own.

    `sizes` are relative. With a `radius` the rows of a group lie in a ball of it, else they have
    the noise of clean rows.
    """

    def attack(scene: Scene) -> Attacked:
        vectors = scene.own_features(len(sizes), where)
        shares = np.asarray(sizes[: len(vectors)]) / np.sum(sizes[: len(vectors)])
        count = len(scene.outliers)
        ends = np.round(np.cumsum(shares) * count)
        group = np.searchsorted(ends, np.arange(count), side="right")
        shifts = (np.asarray(norms[: len(vectors)])[:, None] * vectors)[group]
        directions = vectors[np.unique(group)]
        if radius is None:
            return scene.moved(shifts, directions)
        return scene.replaced(scene.mean + shifts + _ball(scene, radius), directions)

    return attack


def many_directions(scene: Scene) -> Attacked:
    """Move by 2 on each of as many random features as carry the mean, in ten directions."""
    size = np.sqrt(scene.support.size)
    directions = []
    for _ in range(10):
        vector = np.zeros(scene.d)
        features = choose_support(scene.rng, scene.d, scene.support.size)
        vector[features] = random_signs(scene.rng, len(features)) / size
        directions.append(vector)
    group = np.arange(len(scene.outliers)) % len(directions)
    return scene.moved(2.0 * size * np.stack(directions)[group], np.stack(directions))


# Apart from the clean rows


def tight_ball(scene: Scene) -> Attacked:
    """Put all outliers into a small ball 6 away, beside the support."""
    direction = scene.direction("beside")
    return scene.replaced(scene.mean + 6.0 * direction + _ball(scene, 0.1), direction)


def one_point(scene: Scene) -> Attacked:
    """Make all outliers one ordinary row, moved by 4 beside the support."""
    direction = scene.direction("beside")
    point = scene.mean + 4.0 * direction + scene.law(scene.rng, (1, scene.d))[0]
    away = point - scene.mean
    count = len(scene.outliers)
    return scene.replaced(np.tile(point, (count, 1)), away / np.linalg.norm(away))


def constant_bias(scene: Scene) -> Attacked:
    """Subtract 2 from every entry."""
    return scene.moved(np.full(scene.d, -2.0), np.full(scene.d, 1.0 / np.sqrt(scene.d)))


def widened_rows(scene: Scene) -> Attacked:
    """Multiply the noise of the outliers by 2 on every feature; nothing is moved."""
    direction = scene.direction("support")
    return scene.moved(scene.outliers - scene.mean, direction)


def _ball(scene: Scene, radius: float) -> Array:
    """Draw a point for each outlier, uniform in a ball about zero."""
    points = scene.rng.standard_normal((len(scene.outliers), scene.d))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return radius * points * scene.rng.random((len(points), 1)) ** (1.0 / scene.d)


# What second moments cannot see


def tail_flipping(scene: Scene) -> Attacked:
    """Mirror in the mean the rows that are lowest along a direction on the support."""
    direction = scene.direction("support")
    noise = scene.X - scene.mean
    count = len(scene.outliers)
    kept = np.ones(len(noise), dtype=bool)
    kept[np.argsort(noise @ direction, kind="stable")[:count]] = False
    X = scene.mean + np.where(kept[:, None], noise, -noise)
    return Attacked(X, kept, scene.mean, directions=direction[None, :])


def mimic(scene: Scene) -> Attacked:
    """Move by as much along the mean as the variance that the outliers lack there pays for."""
    direction = scene.mean / np.linalg.norm(scene.mean)
    along = (scene.outliers - scene.mean) @ direction
    excess = 1.0 / np.sqrt(scene.kept.mean())
    return scene.moved(np.outer(excess - along, direction), direction)


def subtractive(scene: Scene) -> Attacked:
    """Take the rows away that are largest along the mean; those left are all genuine."""
    direction = scene.mean / np.linalg.norm(scene.mean)
    order = np.argsort(scene.X @ direction, kind="stable")
    X = scene.X[np.sort(order[: np.count_nonzero(scene.kept)])]
    return Attacked(X, np.ones(len(X), dtype=bool), scene.mean, directions=direction[None, :])


# Name to attack, by how the outliers lie to the clean rows.
OVERLAPPING: Mapping[str, Attack] = MappingProxyType(
    {
        "support 2": shift("support", 2.0),
        "support 3": shift("support", 3.0),
        "beside 2.5": shift("beside", 2.5),
        "beside 3.5": shift("beside", 3.5),
        "half beside 3": shift("half beside", 3.0),
        "feature 3": shift("feature", 3.0),
        "spread 3": shift("all", 3.0),
        "narrow 3": shift("support", 3.0, spread=0.5),
        "wide 2": shift("support", 2.0, spread=1.5),
        "tenth doubled": tenth_doubled,
        "smeared": smeared,
        "one-sided tail": one_sided_tail,
        "two-sided uneven": two_sided(0.7),
        "two-sided even": two_sided(0.5),
        "groups near": groups("beside", (5, 4, 3, 2, 1), (3.0,) * 5),
        "groups on support": groups("support", (3, 2, 1), (2.5, 3.0, 3.5)),
        "groups far and near": groups("support", (1, 2, 3, 4), (10.0, 3.0, 2.5, 3.0)),
        "at zero": at_zero,
        "wrong support": wrong_support,
        "linear hiding": linear_hiding,
    }
)
APART: Mapping[str, Attack] = MappingProxyType(
    {
        "tight ball": tight_ball,
        "tight groups": groups("support", (4, 3, 2, 1), (3.0,) * 4, radius=0.1),
        "one point": one_point,
        "far": shift("beside", 1e6),
        "constant bias": constant_bias,
        "many directions": many_directions,
        "widened rows": widened_rows,
    }
)
UNSEEN: Mapping[str, Attack] = MappingProxyType(
    {"tail flipping": tail_flipping, "mimic": mimic, "subtractive": subtractive}
)
ATTACKS: Mapping[str, Attack] = MappingProxyType({**OVERLAPPING, **APART, **UNSEEN})


def kind_of(attack: str) -> str:
    """Return how the outliers of an attack lie to the clean rows."""
    if attack in OVERLAPPING:
        return "overlapping"
    return "apart" if attack in APART else "unseen"

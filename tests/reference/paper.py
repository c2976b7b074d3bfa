"""The four algorithms of the paper in plain NumPy: each line a line of theirs.

Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
Non-Convex Optimization", NeurIPS 2022: Algorithms 1 and 2, and their dense forms (Appendices D, E).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from tests.reference.projections import project

Array = NDArray[np.float64]


def maximizer(problem: str, A: Array, k: int) -> Array:
    """Return the matrix Z of the dual ball with <Z, A> the norm of A, over all supports."""
    d = len(A)
    if problem in ("mean", "pca"):
        values, vectors = np.linalg.eigh(A)
        top = np.argsort(-np.abs(values))[: 1 if problem == "mean" else 2]
        return np.asarray((vectors[:, top] * np.sign(values[top])) @ vectors[:, top].T)
    Z = np.zeros((d, d))
    if problem == "sparse pca":
        places = sorted(np.ndindex(d, d), key=lambda place: -abs(A[place]))[: 2 * k * k]
        for place in places:
            Z[place] = A[place]
    else:
        best = [
            max(itertools.combinations(range(d), k), key=lambda s: sum(row[list(s)] ** 2))
            for row in A
        ]
        energy = [float(sum(A[i, list(best[i])] ** 2)) for i in range(d)]
        chosen = max(
            itertools.combinations(range(d), k), key=lambda rows: sum(energy[i] for i in rows)
        )
        for i in chosen:
            Z[i, list(best[i])] = A[i, list(best[i])]
    return Z / np.linalg.norm(Z)


def step_length(problem: str, X: Array, eps: float, start: float, n_steps: int) -> float:
    """Return the constant step of the theorem: weakly convex for means, convex for components."""
    n = len(X)
    longest, spectral = max(float(x @ x) for x in X), float(np.linalg.norm(X, 2)) ** 2
    if problem.endswith("pca"):
        return float(np.sqrt(eps / n) / (np.sqrt(n) * longest) / np.sqrt(n_steps))
    lipschitz, beta = np.sqrt(n) * longest + 2.0 * spectral / np.sqrt(n), 2.0 * spectral
    return float(np.sqrt(start / beta) / lipschitz / np.sqrt(n_steps))


def descend(problem: str, X: Array, k: int, eps: float, n_steps: int) -> tuple[Array, list[float]]:
    """Return the best weights of so many evaluations, and the value of each."""
    n, d = X.shape
    caps, w = np.full(n, 1.0 / ((1.0 - eps) * n)), np.full(n, 1.0 / n)
    best, values, step = w, [], 0.0
    for _ in range(n_steps):
        mu = w @ X if problem.endswith("mean") else np.zeros(d)
        A = (X.T * w) @ X - np.outer(mu, mu) - np.eye(d)
        Z = maximizer(problem, A, k)
        values.append(float(np.sum(Z * A)))
        best = w if values[-1] <= min(values) else best
        step = step or step_length(problem, X, eps, values[0], n_steps)
        g = np.array([x @ Z @ x - mu @ Z @ x - x @ Z @ mu for x in X])
        w = project(w - step * g, caps)
    return best, values


def read_out(problem: str, X: Array, w: Array, k: int) -> Array:
    """Return the k largest entries of the mean, or the component."""
    mu = w @ X
    if problem == "mean":
        return np.asarray(mu)
    if problem == "sparse mean":
        return np.where(np.abs(mu) >= np.sort(np.abs(mu))[-k], mu, 0.0)
    A = (X.T * w) @ X - np.eye(X.shape[1])
    if problem == "sparse pca":
        kept = np.argsort(-np.abs(A).ravel())[: k * k]
        A = np.where(np.isin(np.arange(A.size), kept).reshape(A.shape), A, 0.0)
    return np.asarray(np.linalg.eigh(A + A.T)[1][:, -1])

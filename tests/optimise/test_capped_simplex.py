"""Every operation on the capped simplex, against optimality conditions and brute force."""

from __future__ import annotations

import doctest
import itertools
import pickle
from fractions import Fraction

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

import outweigh.optimise.capped_simplex
from outweigh.optimise.capped_simplex import CappedSimplex, _linear_root

FloatArray = NDArray[np.float64]
ATOL = 1e-12
many = settings(max_examples=60, deadline=None)
few = settings(max_examples=20, deadline=None)


@st.composite
def simplices(draw: st.DrawFn, max_rows: int = 12) -> CappedSimplex:
    """Sets with any mixture of unit, real and zero sample weights, unequal caps and pruned rows."""
    n = draw(st.integers(1, max_rows))
    kind = draw(st.sampled_from(["unit", "integer", "real", "caps"]))
    if kind == "unit":
        weights = np.ones(n)
    elif kind == "integer":
        weights = draw(hnp.arrays(np.float64, n, elements=st.integers(0, 4)))
    else:
        weights = draw(hnp.arrays(np.float64, n, elements=st.floats(0.01, 10.0)))
    if not weights.any():
        weights[0] = 1.0
    contamination = draw(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]))
    simplex = CappedSimplex.from_contamination(weights, contamination)
    if kind == "caps":
        caps = draw(hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.2, 0.5, 1.0])))
        caps[0] += max(0.0, 1.0 - caps.sum())
        simplex = CappedSimplex(caps, weights)
    return simplex


@st.composite
def simplices_and_vectors(
    draw: st.DrawFn, count: int = 1, max_rows: int = 12, bound: float = 1e6
) -> tuple[CappedSimplex, list[FloatArray]]:
    simplex = draw(simplices(max_rows))
    entries = st.one_of(
        st.floats(-2, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-bound, bound)
    )
    shape = simplex.caps.shape
    return simplex, [draw(hnp.arrays(np.float64, shape, elements=entries)) for _ in range(count)]


def squared_length(simplex: CappedSimplex, h: FloatArray) -> float:
    return inner(simplex, h, h)


def inner(simplex: CappedSimplex, a: FloatArray, b: FloatArray) -> float:
    seen = simplex.metric > 0
    return float(np.sum(a[seen] * b[seen] / simplex.metric[seen]))


def exact_projection(simplex: CappedSimplex, v: FloatArray) -> FloatArray:
    """The projection in rational arithmetic: every interval between breakpoints is tried."""
    rows = [i for i in range(v.size) if simplex.caps[i] > 0]
    c = {i: Fraction(float(simplex.caps[i])) for i in rows}
    s = {i: Fraction(float(simplex.metric[i])) for i in rows}
    x = {i: Fraction(float(v[i])) for i in rows}
    target = min(Fraction(1), sum(c.values(), Fraction(0)))

    def at(tau: Fraction) -> dict[int, Fraction]:
        return {i: min(max(x[i] - tau * s[i], Fraction(0)), c[i]) for i in rows}

    points = sorted({(x[i] - c[i]) / s[i] for i in rows} | {x[i] / s[i] for i in rows})
    for left, right in itertools.pairwise(points):
        above, below = sum(at(left).values()), sum(at(right).values())
        if above >= target >= below:
            share = (above - target) / (above - below) if above > below else Fraction(0)
            answer = np.zeros(v.size)
            for i, value in at(left + share * (right - left)).items():
                answer[i] = float(value)
            return answer
    raise AssertionError("no interval holds the root")


def repeat_rows(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Each row as many times as its integer weight, its value shared among the copies."""
    counts = weights.astype(int)
    return np.repeat(values / np.maximum(weights, 1), counts)


def merge_rows(weights: FloatArray, values: FloatArray) -> FloatArray:
    owner = np.repeat(np.arange(weights.size), weights.astype(int))
    return np.bincount(owner, values, minlength=weights.size)


class TestProjection:
    @many
    @given(simplices_and_vectors())
    def test_meets_its_optimality_conditions(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v,) = case
        w = simplex.project(v)
        assert simplex.contains(w)
        # The multiplier (v - w) / s is one number on free rows, at least it on capped rows and at
        # most it on empty ones; so no empty or free row may exceed a free or capped one.
        rows = simplex.caps > 0
        multiplier = (v[rows] - w[rows]) / simplex.metric[rows]
        can_rise, can_fall = w[rows] < simplex.caps[rows], w[rows] > 0
        if can_rise.any() and can_fall.any():
            slack = 1e-9 * max(1.0, np.abs(multiplier).max())
            assert multiplier[can_rise].max() <= multiplier[can_fall].min() + slack

    @many
    @given(simplices_and_vectors(bound=1e300))
    def test_equals_the_rational_answer_at_any_magnitude_for_unit_weights(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v,) = case
        simplex = CappedSimplex(simplex.caps)
        np.testing.assert_allclose(simplex.project(v), exact_projection(simplex, v), atol=ATOL)

    @many
    @given(simplices_and_vectors(bound=100.0))
    def test_equals_the_rational_answer_for_any_weights(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v,) = case
        np.testing.assert_allclose(simplex.project(v), exact_projection(simplex, v), atol=ATOL)

    @few
    @given(simplices_and_vectors(max_rows=5, bound=3.0))
    def test_equals_a_general_solver(self, case: tuple[CappedSimplex, list[FloatArray]]) -> None:
        simplex, (v,) = case
        rows = simplex.caps > 0
        found = minimize_distance(
            v[rows],
            simplex.metric[rows],
            [(0.0, c) for c in simplex.caps[rows]],
            1.0,
            simplex.reference()[rows],
        )
        np.testing.assert_allclose(simplex.project(v)[rows], found, atol=2e-5)

    @many
    @given(simplices_and_vectors())
    def test_leaves_points_of_the_set_where_they_are(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v,) = case
        w = simplex.project(v)
        np.testing.assert_allclose(simplex.project(w), w, atol=ATOL)
        uniform = simplex.reference()
        np.testing.assert_allclose(simplex.project(uniform), uniform, atol=ATOL)

    @many
    @given(simplices_and_vectors(count=2, bound=100.0))
    def test_brings_no_two_points_further_apart(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (a, b) = case
        a, b = np.where(simplex.caps > 0, a, 0.0), np.where(simplex.caps > 0, b, 0.0)
        after = squared_length(simplex, simplex.project(a) - simplex.project(b))
        assert np.sqrt(after) <= np.sqrt(squared_length(simplex, a - b)) + 1e-9

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("shape", ["normal", "cauchy", "offset", "ties", "outliers", "sorted"])
    def test_holds_its_conditions_on_many_rows(
        self, scale: float, weighted: bool, shape: str
    ) -> None:
        rng = np.random.default_rng(7)
        n = 30_000
        weights = rng.uniform(0.1, 3.0, n) if weighted else np.ones(n)
        simplex = CappedSimplex.from_contamination(weights, 0.2).pruned(np.arange(0, n, 10))
        base = {
            "normal": rng.standard_normal(n),
            "cauchy": rng.standard_cauchy(n),
            "offset": 1e3 + rng.standard_normal(n),
            "ties": rng.integers(0, 3, n).astype(float),
            "outliers": np.where(np.arange(n) < n // 8, -1e12, rng.standard_normal(n)),
            "sorted": np.sort(rng.standard_normal(n)),
        }[shape]
        v = scale * base
        w = simplex.project(v)
        assert simplex.contains(w)
        rows = simplex.caps > 0
        multiplier = (v[rows] - w[rows]) / simplex.metric[rows]
        rises = multiplier[w[rows] < simplex.caps[rows]]
        falls = multiplier[w[rows] > 0]
        assert rises.max() <= falls.min() + 1e-12 * max(1.0, abs(falls.min()))

    def test_shares_equally_among_ties_too_large_to_hold_the_difference(self) -> None:
        simplex = CappedSimplex(np.full(4, 0.6))
        np.testing.assert_allclose(
            simplex.project([1e300, 1e300, -1e300, 0.0]), [0.5, 0.5, 0.0, 0.0], atol=ATOL
        )
        above = np.nextafter(1e300, np.inf)
        np.testing.assert_allclose(
            simplex.project([1e300, above, -1e300, 1e300]), [0.2, 0.6, 0.0, 0.2], atol=ATOL
        )

    def test_keeps_small_differences_beside_huge_entries(self) -> None:
        simplex = CappedSimplex(np.full(4, 0.6))
        # One row full; the rest share 0.4 with their difference kept: 0.25 and 0.15.
        v = [1e300, 0.3, 0.2, -1e300]
        np.testing.assert_allclose(simplex.project(v), [0.6, 0.25, 0.15, 0.0], atol=ATOL)

    def test_tells_apart_rows_whose_difference_is_lost_beside_others(self) -> None:
        v = np.repeat([6e284, 0.0, -1e20, -6e284], [2, 1, 1, 2])
        simplex = CappedSimplex(np.full(6, 0.3))
        np.testing.assert_allclose(simplex.project(v), [0.3, 0.3, 0.3, 0.1, 0.0, 0.0], atol=ATOL)

    @pytest.mark.parametrize("weight", [1e-6, 0.3, 1.0, 3e5])
    def test_finds_a_single_huge_row_of_any_weight(self, weight: float) -> None:
        simplex = CappedSimplex(np.array([1.4]), np.array([weight]))
        assert simplex.project([1e300]) == pytest.approx(1.0, abs=ATOL)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_sums_to_one_at_the_largest_floats(self, weighted: bool) -> None:
        rng = np.random.default_rng(3)
        weights = rng.uniform(1, 3, 200) if weighted else np.ones(200)
        simplex = CappedSimplex.from_contamination(weights, 0.3)
        v = rng.choice([-1.7e308, -1e300, -1.0, 0.0, 1e-300, 1.0, 1e300, 1.7e308], 200)
        assert simplex.contains(simplex.project(v))


def minimize_distance(
    v: FloatArray,
    s: FloatArray,
    bounds: list[tuple[float, float]],
    total: float,
    start: FloatArray,
) -> FloatArray:
    """A general solver's argmin of sum (x - v)^2 / s over a box and a fixed sum."""
    found = optimize.minimize(
        lambda x: np.sum((x - v) ** 2 / s),
        start,
        jac=lambda x: 2 * (x - v) / s,
        bounds=bounds,
        constraints={
            "type": "eq",
            "fun": lambda x: x.sum() - total,
            "jac": lambda x: np.ones(x.size),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(found.x)


class TestRelativeEntropyProjection:
    @many
    @given(simplices_and_vectors(bound=700.0))
    def test_meets_its_optimality_conditions(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (log_v,) = case
        w = simplex.project_kl(log_v)
        assert simplex.contains(w)
        rows = w > 1e-290
        multiplier = log_v[rows] - np.log(w[rows])
        free = w[rows] < simplex.caps[rows]
        if free.any():
            tau = multiplier[free].max()
            assert multiplier[free].min() >= tau - 1e-9
            assert (multiplier[~free] >= tau - 1e-9).all()
            assert (log_v[~rows & (simplex.caps > 0)] < tau - 600).all()

    @many
    @given(simplices_and_vectors(bound=50.0), st.sampled_from([0.0, 1e3, -1e6, 2.0**60, -1e300]))
    def test_ignores_a_common_factor(
        self, case: tuple[CappedSimplex, list[FloatArray]], shift: float
    ) -> None:
        simplex, (log_v,) = case
        shifted = log_v + shift
        back = shifted - shift  # what is left of log_v after rounding, exactly
        np.testing.assert_allclose(
            simplex.project_kl(shifted), simplex.project_kl(back), rtol=1e-9, atol=ATOL
        )

    @few
    @given(simplices_and_vectors(max_rows=5, bound=2.0))
    def test_equals_the_root_of_its_equation(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (log_v,) = case
        caps = simplex.caps

        def weights(tau: float) -> FloatArray:
            return np.minimum(caps, np.exp(log_v - tau))

        if caps.sum() <= 1 + 1e-9:
            expected = caps
        else:
            root = optimize.brentq(lambda tau: weights(tau).sum() - 1, -50, 50, xtol=1e-14)
            expected = weights(root)
        np.testing.assert_allclose(simplex.project_kl(log_v), expected, atol=1e-9)

    def test_fills_caps_one_after_another_when_logarithms_are_far_apart(self) -> None:
        simplex = CappedSimplex.from_contamination(1000, 0.5)
        w = simplex.project_kl(1e5 * np.arange(1000.0))
        np.testing.assert_allclose(w, np.repeat([0.0, 0.002], 500), atol=1e-15)

    def test_holds_its_conditions_on_many_rows_under_caps_that_hardly_bind(self) -> None:
        rng = np.random.default_rng(2)
        caps = 10.0 ** rng.uniform(-6, 3, 20_000)
        log_v = 20 * rng.standard_normal(20_000)
        w = CappedSimplex(caps).project_kl(log_v)
        assert CappedSimplex(caps).contains(w)
        tau = np.max(log_v[w < caps] - np.log(w[w < caps]))
        np.testing.assert_allclose(w, np.minimum(caps, np.exp(log_v - tau)), rtol=1e-9)

    def test_shares_among_ties_too_large_to_hold_the_caps(self) -> None:
        simplex = CappedSimplex(np.array([0.1, 0.9, 0.9, 0.9]))
        w = simplex.project_kl([1e300, 1e300, 1e300, -1e300])
        np.testing.assert_allclose(w, [0.1, 0.45, 0.45, 0.0], atol=ATOL)

    def test_gives_no_weight_where_the_logarithm_is_minus_infinity(self) -> None:
        simplex = CappedSimplex.from_contamination(3, 0.5)
        w = simplex.project_kl([-np.inf, 0.0, 0.0])
        np.testing.assert_allclose(w, [0.0, 0.5, 0.5], atol=ATOL)

    def test_says_so_when_too_few_logarithms_are_finite(self) -> None:
        with pytest.raises(ValueError, match="log_v is -inf on too many rows"):
            CappedSimplex.from_contamination(3, 0.1).project_kl([-np.inf, 0.0, 0.0])


class TestLinearOracle:
    @many
    @given(simplices_and_vectors(max_rows=6, bound=100.0))
    def test_is_as_low_as_the_lowest_vertex(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (g,) = case
        w = simplex.minimize_linear(g)
        assert simplex.contains(w)
        # A vertex has all rows at a bound but one.
        values = []
        for last in range(g.size):
            others = [i for i in range(g.size) if i != last]
            for full in itertools.product([0.0, 1.0], repeat=g.size - 1):
                vertex = np.zeros(g.size)
                vertex[others] = np.array(full) * simplex.caps[others]
                vertex[last] = 1 - vertex.sum()
                if simplex.contains(vertex):
                    values.append(g @ vertex)
        assert g @ w == pytest.approx(min(values), abs=1e-9)

    @few
    @given(simplices_and_vectors(bound=10.0))
    def test_equals_linear_programming(self, case: tuple[CappedSimplex, list[FloatArray]]) -> None:
        simplex, (g,) = case
        caps = simplex.caps * (1 + 1e-12)
        # By default the program takes a vertex with reduced costs above -1e-7 for optimal.
        found = optimize.linprog(
            g,
            A_eq=np.ones((1, g.size)),
            b_eq=[1.0],
            bounds=list(zip(0 * caps, caps, strict=True)),
            options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
        )
        assert g @ simplex.minimize_linear(g) == pytest.approx(found.fun, abs=1e-8)

    def test_fills_equal_rows_in_equal_parts(self) -> None:
        simplex = CappedSimplex.from_contamination(1000, 0.75)
        g = np.where(np.arange(1000) < 100, 1.0, 2.0 + 1e-14 * np.arange(1000))
        expected = np.where(np.arange(1000) < 100, 0.004, 0.6 / 900)
        np.testing.assert_allclose(simplex.minimize_linear(g), expected, atol=ATOL)

    def test_sums_to_one_on_many_rows(self) -> None:
        simplex = CappedSimplex.from_contamination(200_000, 0.1)
        g = np.random.default_rng(0).standard_normal(200_000)
        w = simplex.minimize_linear(g)
        assert simplex.contains(w)
        np.testing.assert_allclose(np.sort(g)[180_000:].min(), g[w < 1e-9].min())


class TestTangentProjection:
    @many
    @given(simplices_and_vectors(count=2, bound=100.0))
    def test_splits_a_direction_into_tangent_and_normal_parts(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v, direction) = case
        w = simplex.project(v)
        direction = np.where(simplex.metric > 0, direction, 0.0)
        h = simplex.project_tangent(w, direction)
        size = max(1.0, np.abs(direction).max())
        at_zero, at_cap = w <= ATOL, w >= simplex.caps - ATOL
        assert abs(h.sum()) <= 1e-11 * size
        assert (h[at_zero] >= 0).all()
        assert (h[at_cap] <= 0).all()
        residual = direction - h
        assert abs(inner(simplex, h, residual)) <= 1e-9 * size**2 * v.size * 100
        # In the normal cone: no generator of the tangent cone has a positive product with it.
        rows = simplex.caps > 0
        multiplier = residual[rows] / simplex.metric[rows]
        rises, falls = multiplier[~at_cap[rows]], multiplier[~at_zero[rows]]
        if rises.size and falls.size:
            assert rises.max() <= falls.min() + 1e-9 * size * 100

    @few
    @given(simplices_and_vectors(count=2, max_rows=5, bound=3.0))
    def test_equals_a_general_solver(self, case: tuple[CappedSimplex, list[FloatArray]]) -> None:
        simplex, (v, direction) = case
        w = simplex.project(v)
        rows = simplex.caps > 0
        far = 1e3
        bounds = [
            (0.0 if low <= ATOL else -far, 0.0 if low >= high - ATOL else far)
            for low, high in zip(w[rows], simplex.caps[rows], strict=True)
        ]
        found = minimize_distance(
            direction[rows], simplex.metric[rows], bounds, 0.0, np.zeros(int(rows.sum()))
        )
        h = simplex.project_tangent(w, direction)
        assert (h[~rows] == 0).all()
        np.testing.assert_allclose(h[rows], found, atol=1e-4)

    @many
    @given(simplices_and_vectors(bound=10.0))
    def test_vanishes_where_the_set_is_left_at_its_nearest_point(
        self, case: tuple[CappedSimplex, list[FloatArray]]
    ) -> None:
        simplex, (v,) = case
        w = simplex.project(v)
        h = simplex.project_tangent(w, np.where(simplex.caps > 0, v - w, 0.0))
        np.testing.assert_allclose(h, 0.0, atol=1e-10)

    def test_holds_its_conditions_on_many_rows(self) -> None:
        rng = np.random.default_rng(4)
        n = 30_000
        simplex = CappedSimplex.from_contamination(rng.uniform(0.5, 2.0, n), 0.2)
        w = simplex.project(rng.standard_normal(n) / n)
        direction = rng.standard_cauchy(n)
        h = simplex.project_tangent(w, direction)
        at_zero, at_cap = w <= ATOL, w >= simplex.caps - ATOL
        assert abs(h.sum()) <= 1e-12 * np.abs(h).sum()
        assert (h[at_zero] >= 0).all()
        assert (h[at_cap] <= 0).all()
        multiplier = (direction - h) / simplex.metric
        scale = np.abs(h / simplex.metric).max()
        assert multiplier[~at_cap].max() <= multiplier[~at_zero].min() + 1e-12 * scale

    def test_is_a_centred_direction_inside_the_set(self) -> None:
        simplex = CappedSimplex.from_contamination(4, 0.2)
        h = simplex.project_tangent(simplex.reference(), [1.0, 2.0, 3.0, 6.0])
        np.testing.assert_allclose(h, [-2.0, -1.0, 0.0, 3.0], atol=ATOL)


class TestRepeatedRows:
    weights = np.array([1.0, 3.0, 0.0, 2.0, 4.0, 1.0])

    def pair(self, contamination: float = 0.4) -> tuple[CappedSimplex, CappedSimplex]:
        return (
            CappedSimplex.from_contamination(self.weights, contamination),
            CappedSimplex.from_contamination(int(self.weights.sum()), contamination),
        )

    vectors = hnp.arrays(np.float64, 6, elements=st.floats(-3, 3))

    @many
    @given(vectors)
    def test_project_alike(self, v: FloatArray) -> None:
        merged, repeated = self.pair()
        expected = merge_rows(self.weights, repeated.project(repeat_rows(self.weights, v)))
        np.testing.assert_allclose(merged.project(v), expected, atol=ATOL)

    @many
    @given(vectors)
    def test_take_the_same_gradient_step(self, g: FloatArray) -> None:
        merged, repeated = self.pair()
        counts = self.weights.astype(int)
        stepped = merged.project(merged.reference() - 0.1 * merged.metric * g)
        other = repeated.project(
            repeated.reference() - 0.1 * repeated.metric * np.repeat(g, counts)
        )
        np.testing.assert_allclose(stepped, merge_rows(self.weights, other), atol=ATOL)

    @many
    @given(vectors)
    def test_project_in_relative_entropy_alike(self, log_v: FloatArray) -> None:
        merged, repeated = self.pair()
        logs = np.repeat(log_v - np.log(np.maximum(self.weights, 1)), self.weights.astype(int))
        expected = merge_rows(self.weights, repeated.project_kl(logs))
        np.testing.assert_allclose(merged.project_kl(log_v), expected, atol=ATOL)

    @many
    @given(vectors)
    def test_have_the_same_linear_minimum(self, g: FloatArray) -> None:
        merged, repeated = self.pair()
        copies = np.repeat(g, self.weights.astype(int))
        assert g @ merged.minimize_linear(g) == pytest.approx(
            copies @ repeated.minimize_linear(copies), abs=1e-12
        )

    @many
    @given(vectors, vectors)
    def test_have_the_same_tangent_projection_and_length(
        self, v: FloatArray, direction: FloatArray
    ) -> None:
        merged, repeated = self.pair()
        w, copies = merged.project(v), repeated.project(repeat_rows(self.weights, v))
        h = merged.project_tangent(w, direction)
        other = repeated.project_tangent(copies, repeat_rows(self.weights, direction))
        np.testing.assert_allclose(h, merge_rows(self.weights, other), atol=1e-9)
        assert squared_length(merged, h) == pytest.approx(float(other @ other), abs=1e-8)

    @many
    @given(vectors)
    def test_count_alike(self, v: FloatArray) -> None:
        merged, repeated = self.pair()
        w = merged.project(v)
        copies = repeat_rows(self.weights, w)
        assert merged.n_effective(w) == pytest.approx(repeated.n_effective(copies))


class TestSmallestSets:
    def test_without_contamination_everything_leads_to_the_one_point(self) -> None:
        weights = np.array([1.0, 0.3, 7.0, 0.1])
        simplex = CappedSimplex.from_contamination(weights, 0.0)
        v = np.array([3.0, -1e300, 2.0, 1e300])
        only = weights / weights.sum()
        np.testing.assert_allclose(simplex.project(v), only, atol=ATOL)
        np.testing.assert_allclose(simplex.project_kl(v), only, atol=ATOL)
        np.testing.assert_allclose(simplex.minimize_linear(v), only, atol=ATOL)
        np.testing.assert_allclose(simplex.reference(), only, atol=ATOL)
        np.testing.assert_allclose(simplex.project_tangent(only, [1.0, 2.0, 3.0, 4.0]), 0.0)

    def test_with_one_cap_left_everything_leads_to_its_vertex(self) -> None:
        simplex = CappedSimplex(np.array([0.0, 1.5, 0.0]))
        for v in ([1e300, -1e300, 0.0], [0.0, 0.0, 0.0]):
            for w in (simplex.project(v), simplex.project_kl(v), simplex.minimize_linear(v)):
                np.testing.assert_allclose(w, [0.0, 1.0, 0.0], atol=ATOL)
        np.testing.assert_allclose(simplex.project_tangent([0.0, 1.0, 0.0], [1.0, 2.0, 3.0]), 0.0)

    @pytest.mark.parametrize("contamination", [0.0, 0.4])
    def test_with_one_row_the_weight_is_one(self, contamination: float) -> None:
        simplex = CappedSimplex.from_contamination(1, contamination)
        for value in (-1e300, 0.0, 0.7, 1e300):
            assert simplex.project([value]) == pytest.approx(1.0)
            assert simplex.project_kl([value]) == pytest.approx(1.0)
            assert simplex.minimize_linear([value]) == pytest.approx(1.0)
        assert simplex.project_tangent([1.0], [5.0]) == pytest.approx(0.0)


class TestTheSetItself:
    def test_pruning_by_mask_and_by_index_agree_and_leave_the_original(self) -> None:
        simplex = CappedSimplex.from_contamination(5, 0.5)
        mask = np.array([True, False, False, True, False])
        np.testing.assert_array_equal(simplex.pruned(mask).caps, simplex.pruned([0, 3]).caps)
        assert (simplex.caps > 0).all()
        assert simplex.pruned([]).caps.sum() == simplex.caps.sum()

    def test_pruning_exactly_the_contamination_is_allowed(self) -> None:
        for n in (10, 30, 70, 1000):
            simplex = CappedSimplex.from_contamination(n, 0.1).pruned(np.arange(n // 10))
            expected = np.where(np.arange(n) < n // 10, 0.0, 10 / (9 * n))
            np.testing.assert_allclose(simplex.project(np.zeros(n)), expected, atol=ATOL)

    def test_the_arrays_cannot_be_written(self) -> None:
        simplex = CappedSimplex.from_contamination(3, 0.2)
        with pytest.raises(ValueError, match="read-only"):
            simplex.caps[0] = 1.0

    def test_survives_pickling(self) -> None:
        simplex = CappedSimplex.from_contamination([1.0, 2.0, 3.0], 0.2)
        copy = pickle.loads(pickle.dumps(simplex))
        np.testing.assert_array_equal(copy.project([1.0, 2.0, 3.0]), simplex.project([1, 2, 3]))

    def test_does_not_change_its_arguments(self) -> None:
        simplex = CappedSimplex.from_contamination(50, 0.2)
        v = np.linspace(-1, 1, 50)
        kept = v.copy()
        simplex.project(v)
        simplex.project_kl(v)
        simplex.minimize_linear(v)
        simplex.project_tangent(simplex.reference(), v)
        np.testing.assert_array_equal(v, kept)

    @pytest.mark.parametrize(
        "w", [[0.5, 0.5], [0.7, 0.3, 0.0], [0.5, 0.6, -0.1], [0.5, 0.4, 0.0], [np.nan, 0.5, 0.5]]
    )
    def test_does_not_contain_what_breaks_a_constraint(self, w: list[float]) -> None:
        assert not CappedSimplex.from_contamination(3, 0.45).contains(w)

    @pytest.mark.parametrize(
        ("weights", "contamination", "message"),
        [
            (0, 0.1, "sample_weight must count"),
            ([], 0.1, "sample_weight must have shape"),
            ([1.0, -1.0], 0.1, "sample_weight must be nonnegative"),
            ([0.0, 0.0], 0.1, "sample_weight must be nonnegative"),
            ([1.0, np.nan], 0.1, "sample_weight must be finite"),
            (3, 1.0, "contamination must lie"),
            (3, np.nan, "contamination must lie"),
        ],
    )
    def test_bad_contamination_or_weights_are_named(
        self, weights: int | list[float], contamination: float, message: str
    ) -> None:
        with pytest.raises(ValueError, match=message):
            CappedSimplex.from_contamination(weights, contamination)

    def test_caps_that_leave_no_point_are_refused(self) -> None:
        with pytest.raises(ValueError, match="caps must sum to at least 1"):
            CappedSimplex(np.full(3, 0.3))
        with pytest.raises(ValueError, match="caps must be 0 where metric is 0"):
            CappedSimplex(np.ones(2), np.array([1.0, 0.0]))
        with pytest.raises(ValueError, match="rows removes too much"):
            CappedSimplex.from_contamination(10, 0.1).pruned([1, 2])
        with pytest.raises(ValueError, match="rows must be a mask or integers"):
            CappedSimplex.from_contamination(10, 0.1).pruned([10])

    @pytest.mark.parametrize("bad", [[1.0, 2.0], [1.0, np.nan, 0.0], [np.inf, 0.0, 0.0]])
    def test_bad_vectors_are_named(self, bad: list[float]) -> None:
        simplex = CappedSimplex.from_contamination(3, 0.2)
        with pytest.raises(ValueError, match=r"^v must"):
            simplex.project(bad)
        with pytest.raises(ValueError, match=r"^g must"):
            simplex.minimize_linear(bad)
        with pytest.raises(ValueError, match=r"^log_v must"):
            simplex.project_kl(bad)
        with pytest.raises(ValueError, match=r"^direction must"):
            simplex.project_tangent(simplex.reference(), bad)


def test_the_examples_run() -> None:
    assert doctest.testmod(outweigh.optimise.capped_simplex).failed == 0


@pytest.mark.parametrize("n", [1, 3, 10, 49, 1000])
def test_caps_whose_running_sum_falls_short_by_rounding_are_all_filled(n: int) -> None:
    D = CappedSimplex.from_contamination(n, 0.0)
    np.testing.assert_allclose(D.minimize_linear(np.arange(n)), 1.0 / n, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("least", "most", "total"),
    [(0.0, 0.4, 1.0), (0.0, np.inf, 1.0), (0.0, np.inf, 50.0), (-np.inf, 0.4, -50.0)],
)
def test_between_two_breakpoints_the_root_makes_the_sum(
    seed: int, least: float, most: float, total: float
) -> None:
    rng = np.random.default_rng(seed)
    v, s = rng.standard_normal(8), rng.uniform(0.5, 2.0, 8)
    lower, upper = np.full(8, least), np.full(8, most)
    # One row is held where it is: it does not take part in the slope.
    lower[0] = upper[0] = 0.3

    def excess(tau: float) -> float:
        return float(np.clip(v - tau * s, lower, upper).sum()) - total

    points = np.append((v - upper)[1:] / s[1:], (v - lower)[1:] / s[1:])
    points = np.unique([-np.inf, *points, np.inf])
    sums = np.array([excess(p) if np.isfinite(p) else -p for p in points])
    last = np.flatnonzero(sums > 0.0)[-1]
    # Not at the breakpoints themselves, where rounding decides who is free.
    low, high = float(points[last]) + 1e-9, float(points[last + 1]) - 1e-9
    v[0] = 0.3 + s[0] * np.clip(0.0, low + 1e-3, high - 1e-3)
    tau = _linear_root(v, s, lower, upper, total, low, high)
    assert low <= tau <= high
    assert abs(excess(tau)) < 1e-10


def test_a_set_is_shown_by_its_caps_and_its_metric() -> None:
    shown = repr(CappedSimplex(np.array([0.5, 0.75])))
    assert shown == "CappedSimplex(caps=array([0.5 , 0.75]), metric=array([1., 1.]))"


def test_a_negative_contamination_is_refused() -> None:
    with pytest.raises(ValueError, match="contamination must lie in"):
        CappedSimplex.from_contamination(4, -0.5)


def test_rows_to_prune_are_not_counted_from_the_end() -> None:
    with pytest.raises(ValueError, match="rows must be a mask or integers"):
        CappedSimplex.from_contamination(4, 0.5).pruned([-1])


@pytest.mark.parametrize(
    "w", [[-0.25, 0.5, 0.75], [0.0, -0.25, 1.25], [0.5, 0.5, 0.25], [0.25, 0.25, 0.25]]
)
def test_a_point_is_in_the_set_if_it_is_off_by_the_tolerance_at_most(w: list[float]) -> None:
    D = CappedSimplex(np.ones(3))
    assert D.contains(w, atol=0.25)
    assert not D.contains(w, atol=0.249)


@pytest.mark.parametrize(
    ("w", "direction"), [([0.125, 0.875], [-1.0, 1.0]), ([0.375, 0.625], [1.0, -1.0])]
)
def test_an_entry_as_near_to_a_bound_as_the_tolerance_counts_as_there(
    w: list[float], direction: list[float]
) -> None:
    D = CappedSimplex(np.array([0.5, 2.0]))
    np.testing.assert_array_equal(D.project_tangent(w, direction, atol=0.125), [0.0, 0.0])
    np.testing.assert_array_equal(D.project_tangent(w, direction, atol=0.124), direction)


def test_directions_of_the_least_size_are_projected_as_larger_ones_are() -> None:
    D = CappedSimplex.from_contamination(5, 0.5)
    direction = np.array([3.0, 1.0, -2.0, 7.0, -3.0])
    projected = D.project_tangent(np.full(5, 0.2), np.ldexp(direction, -1070))
    np.testing.assert_array_equal(
        projected, np.ldexp(D.project_tangent(np.full(5, 0.2), direction), -1070)
    )


def test_the_nearest_point_in_entropy_is_in_the_set_where_sizes_differ_beyond_all_digits() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        n = int(rng.integers(2, 9))
        D = CappedSimplex.from_contamination(rng.choice([0.1, 1.0, 3.0, 50.0], n), 0.1)
        assert D.contains(D.project_kl(1e3 * rng.standard_normal(n)))


def test_the_nearest_point_to_a_huge_vector_is_in_the_set() -> None:
    rng = np.random.default_rng(0)
    for contamination in (0.1, 0.5, 0.8):
        for _ in range(100):
            n = int(rng.integers(2, 9))
            weight = rng.choice([0.1, 1.0, 3.0, 50.0], n)
            D = CappedSimplex.from_contamination(weight, contamination)
            assert D.contains(D.project(1e200 * rng.standard_normal(n)))

"""The working set of directions: which are chosen, and what is descended on in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.directions import (
    SPARE,
    DirectionSet,
    _held,
    leading_directions,
    rescaled_span,
)
from outweigh.estimators.search import SearchOptions, find_weights, floor_at
from outweigh.forms import Form
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Samples, Span, Status
from outweigh.samples import ArrayMoment, DenseSamples
from outweigh.separation import Separator

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, EPS = 1500, 140, 0.1
DOMAIN = CappedSimplex.from_contamination(N, EPS)


def rows(seed: int = 0, shift: float = 1.0) -> Array:
    rng = np.random.default_rng([77, seed])
    X = rng.standard_normal((N, D))
    X[: int(EPS * N), :6] += shift
    return X


def median(X: Array, weights: Array) -> float:
    return floor_at(objectives.mean(DenseSamples(X)), DOMAIN, weights, 3.0).median


def spanned(X: Array) -> DirectionSet:
    directions = DirectionSet(objectives.mean(DenseSamples(X)), lambda w: median(X, w))
    directions.widen(directions.survey(DOMAIN.reference()), DOMAIN.reference())
    directions.restricted()
    return directions


def span_of(X: Array) -> Span:
    span = spanned(X).span
    assert span is not None
    return span


def spectrum_with_a_gap_after(count: int) -> ArrayMoment:
    values = np.linspace(1.0, 0.9, 40)
    values[:3] += 2.0
    values[count:] -= 0.5
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((40, 40)))[0]
    return ArrayMoment((Q * values) @ Q.T)


@pytest.mark.parametrize("count", [3 + SPARE, 15, 3 + 2 * SPARE])
def test_the_directions_end_where_eigenvalues_have_their_widest_gap(count: int) -> None:
    found = leading_directions(spectrum_with_a_gap_after(count), 1.5, 30)
    assert found is not None
    values, vectors, n_above = found
    assert (values.size, vectors.shape[1], n_above) == (count, count, 3)


def test_more_directions_than_allowed_are_none_at_all() -> None:
    assert leading_directions(spectrum_with_a_gap_after(15), 1.5, 3 + SPARE - 1) is None


def test_eigenvalues_of_either_sign_are_evidence() -> None:
    values = np.r_[-3.0, 2.0, np.linspace(0.5, 0.1, 38)]
    found = leading_directions(ArrayMoment(np.diag(values)), 1.0, 20)
    assert found is not None
    assert found[2] == 2
    np.testing.assert_allclose(found[0][:2], [-3.0, 2.0])


def test_more_pairs_than_first_computed_are_found_where_they_exceed_the_level() -> None:
    values = np.r_[np.linspace(3.0, 2.0, 40), np.linspace(1.0, 0.1, 260)]
    found = leading_directions(ArrayMoment(np.diag(values)), 1.5, 100)
    assert found is not None
    assert found[2] == 40


@pytest.mark.parametrize("gained", [0.8, 2.0])
def test_an_eigenvector_holds_the_expected_share_of_the_true_direction(gained: float) -> None:
    n, d = 2000, 300
    shares, expected = [], []
    for seed in range(5):
        X = np.random.default_rng([5, seed]).standard_normal((n, d))
        X[:, 0] *= np.sqrt(1.0 + gained)
        values, vectors = np.linalg.eigh(X.T @ X / n - np.eye(d))
        shares.append(vectors[0, -1] ** 2)
        level = (1.0 + np.sqrt(d / n)) ** 2 - 1.0
        expected.append(float(_held(values[-1:], level)[0]))
    assert np.mean(expected) == pytest.approx(np.mean(shares), abs=0.04)


def test_an_eigenvector_within_the_bulk_holds_nothing() -> None:
    np.testing.assert_array_equal(_held(np.array([0.3, -0.3]), 0.5), 0.0)


def test_the_basis_is_orthonormal_and_the_rows_are_projected_on_it() -> None:
    X = rows()
    span = span_of(X)
    np.testing.assert_allclose(span.basis.T @ span.basis, np.eye(span.held.size), atol=1e-12)
    np.testing.assert_allclose(span.projected, X @ span.basis, atol=1e-12)


def test_the_value_on_the_span_is_the_norm_of_the_matrix_seen_in_it() -> None:
    X = rows()
    directions = spanned(X)
    V = span_of(X).basis
    w = DOMAIN.project(np.random.default_rng(1).random(N) / N)
    S = (X - w @ X).T @ (w[:, None] * (X - w @ X)) - np.eye(D)
    expected = np.abs(np.linalg.eigvalsh(V.T @ S @ V)).max()
    assert directions.restricted().evaluate(w).value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("reference", [np.linspace(0.5, 2.0, D), np.diag(np.linspace(0.5, 2.0, D))])
def test_a_reference_is_seen_in_the_span_too(reference: Array) -> None:
    X = rows()
    span = span_of(X)
    w = DOMAIN.reference()
    R = np.diag(reference) if reference.ndim == 1 else reference
    S = np.cov(X.T, bias=True) - R
    expected = np.abs(np.linalg.eigvalsh(span.basis.T @ S @ span.basis)).max()
    found = objectives.mean(DenseSamples(X), reference).restrict_to(span).evaluate(w).value
    assert found == pytest.approx(expected, rel=1e-10)


def test_a_lifted_form_says_of_a_row_what_the_form_says_of_its_projection() -> None:
    X = rows()
    directions, span = spanned(X), span_of(X)
    r = span.held.size
    rng = np.random.default_rng(2)
    form = Form.from_directions(rng.standard_normal((r, 2)), np.array([1.0, -2.0]))
    drift = rng.standard_normal(r)
    found = DenseSamples(X).quadratic(directions.lift_form(form), directions.lift(drift))
    expected = DenseSamples(span.projected).quadratic(form, drift)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_a_second_pass_at_the_same_weights_names_nothing_new() -> None:
    directions = spanned(rows())
    survey = directions.survey(DOMAIN.reference())
    assert not directions.widen(survey, DOMAIN.reference())


def test_evidence_outside_the_span_widens_it() -> None:
    X = rows()
    directions = spanned(X)
    n_before = span_of(X).held.size
    # Weight on rows that are long in one direction puts evidence there.
    w = 1.0 + X[:, 40] ** 2
    w /= w.sum()
    assert directions.widen(directions.survey(w), w)
    directions.restricted()
    assert directions.span is not None
    basis = directions.span.basis
    assert basis.shape[1] > n_before
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)


def test_evidence_in_most_directions_is_descended_on_everywhere() -> None:
    X = rows()
    X[: int(EPS * N)] *= 3.0
    directions = spanned(X)
    assert directions.span is None
    w = DOMAIN.reference()
    full = objectives.mean(DenseSamples(X)).evaluate(w).value
    assert directions.restricted().evaluate(w).value == pytest.approx(full, rel=1e-12)


def test_the_force_recorded_row_by_row_is_the_function_recorded(samples_of: Kind) -> None:
    samples = samples_of(rows())
    result = find_weights(objectives.mean(samples), DOMAIN, SearchOptions(working_set=SPARE))
    assert result.span is not None
    assert result.pushed is not None
    expected = samples.quadratic(result.force, result.drift)
    assert np.ptp(expected) > 0.0
    np.testing.assert_allclose(result.pushed, expected, rtol=1e-9, atol=1e-12)


def test_the_value_is_that_of_a_full_pass_at_the_returned_weights(samples_of: Kind) -> None:
    objective = objectives.mean(samples_of(rows()))
    result = find_weights(objective, DOMAIN, SearchOptions(working_set=SPARE))
    assert result.value == pytest.approx(objective.evaluate(result.weights).value, rel=1e-8)


def test_clean_data_is_verified_by_one_full_pass(samples_of: Kind) -> None:
    X = np.random.default_rng(9).standard_normal((N, D))
    options = SearchOptions(working_set=SPARE)
    result = find_weights(objectives.mean(samples_of(X)), DOMAIN, options)
    assert (result.n_iter, result.status) == (1, Status.REACHED)


@pytest.mark.parametrize("budget", [1, 4])
def test_the_budget_counts_the_steps_on_the_span(samples_of: Kind, budget: int) -> None:
    steps = 0

    def count(_: object) -> None:
        nonlocal steps
        steps += 1

    search = SearchOptions(working_set=SPARE, max_iter=budget)
    find_weights(objectives.mean(samples_of(rows(shift=3.0))), DOMAIN, search, count)
    assert 0 < steps <= budget


def test_a_span_known_before_is_descended_on_without_another_projection() -> None:
    X = rows(shift=3.0)
    objective = objectives.mean(DenseSamples(X))
    options = SearchOptions(working_set=SPARE)
    first = find_weights(objective, DOMAIN, options)
    assert first.span is not None
    again = find_weights(objective, DOMAIN, options, span=first.span, earlier=first)
    assert again.span is not None
    assert again.span.projected is first.span.projected


def test_cuts_found_in_a_span_are_cuts_of_the_rows() -> None:
    X = rows(shift=2.0)
    w = DOMAIN.project(DOMAIN.reference() - (np.arange(N) < 60) / N)
    separator = Separator(DenseSamples(X), DOMAIN, sparse=False)
    found = separator(w, span=span_of(X))
    cuts = separator.cuts_of(found)
    assert cuts
    expected = sum(np.maximum(cut.excess(X @ cut.direction), 0.0) for cut in cuts)
    beyond = separator.beyond(found)
    assert beyond is not None
    assert beyond.any()
    np.testing.assert_allclose(beyond, expected, atol=1e-9)


def test_what_a_span_misses_of_the_outliers_is_sought_outside_of_it() -> None:
    X = rows(shift=2.0)
    w = DOMAIN.project(DOMAIN.reference() - (np.arange(N) < 120) / N)
    separator = Separator(DenseSamples(X), DOMAIN, sparse=False)
    # A span that holds but half of the shift on six features, and says so.
    basis = np.zeros((D, 1))
    basis[:3, 0] = 3.0**-0.5
    direction = separator.outside(w, Span(basis, X @ basis, np.array([0.5])))
    assert direction is not None
    assert abs(float(direction @ basis[:, 0])) < 1e-12
    assert abs(direction[3:6].sum()) / 3.0**0.5 > 0.8


@pytest.mark.parametrize("held", [0.99, 0.0])
def test_a_span_that_holds_the_outliers_or_none_is_not_left(held: float) -> None:
    X = rows(shift=2.0)
    w = DOMAIN.project(DOMAIN.reference() - (np.arange(N) < 120) / N)
    separator = Separator(DenseSamples(X), DOMAIN, sparse=False)
    basis = np.eye(D)[:, :1]
    assert separator.outside(w, Span(basis, X @ basis, np.array([held]))) is None


def test_a_span_in_other_units_projects_the_rows_as_they_are_there() -> None:
    X = rows()
    span = span_of(X)
    factor = np.linspace(0.8, 1.2, X.shape[1])
    found = rescaled_span(span, factor)
    r = found.held.size
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(found.projected, (X / factor) @ found.basis, atol=1e-10)


def test_a_first_look_adds_nothing_to_directions_that_hold_the_evidence() -> None:
    X = rows()
    known = span_of(X)
    objective = objectives.mean(DenseSamples(X))
    again = DirectionSet(objective, lambda w: median(X, w), known, look_first=True)
    w = DOMAIN.reference()
    assert not again.widen(again.survey(w), w)
    again.restricted()
    assert again.span is not None
    assert again.span.held.size == known.held.size
    # Directions that miss it are not enough.
    little = Span(known.basis[:, -2:], known.projected[:, -2:], known.held[-2:])
    missing = DirectionSet(objective, lambda w: median(X, w), little, look_first=True)
    assert missing.widen(missing.survey(w), w)

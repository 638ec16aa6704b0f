"""Whether two halves of the rows show the same view, and what chance would make them share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from helpers import standardised
from imapce import IMAPCE, Attributes, Samples, Subset
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.estimators.stability import agreement
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import StandardizedRows

RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal((600, 8))
CENTRES = np.array([[0.0, 0.0, 8.0], [0.0, 8.0, 0.0], [8.0, 0.0, 0.0]])
CLUSTERS = NOISE.copy()
CLUSTERS[:, :3] += CENTRES[RNG.integers(0, 3, 600)]


def stability(X: Any, prior: Any = None, **options: Any) -> dict[str, float]:
    return IMAPCE(**{"random_state": 0} | options).fit(X, prior=prior).stability(X, prior=prior)


def test_clear_clusters_are_seen_in_both_halves() -> None:
    found = stability(CLUSTERS)
    # All clusters are seen in many views; the one that keeps most neighborhoods has some of the noise columns.
    assert found["score"] > 0.85
    assert found["chance"] < 0.5


@pytest.mark.parametrize("options", [{}, {"alpha": 0.0, "mu": "paper"}])
def test_noise_is_seen_as_often_as_by_chance(options: dict[str, Any]) -> None:
    found = stability(NOISE, **options)
    # Of columns that share nothing two random planes have k of d directions in common.
    assert found["chance"] == pytest.approx(2 / 8, abs=0.05)
    assert abs(found["score"] - found["chance"]) < 0.2


@pytest.mark.parametrize(
    "prior", [Attributes([7]), Samples(NOISE[:200]), Subset(np.arange(100)), [Attributes([7]), Subset(np.arange(100))]]
)
def test_halves_are_told_what_is_known(prior: Any) -> None:
    assert stability(CLUSTERS, prior)["score"] > 0.85


def test_a_half_that_is_not_told_shows_the_known_instead() -> None:
    loud = CLUSTERS.copy()
    loud[:, 3:7] += 12 * RNG.integers(0, 2, (600, 1))
    model = IMAPCE(random_state=0).fit(loud, prior=Attributes([3, 4, 5, 6]))
    assert model.stability(loud, prior=Attributes([3, 4, 5, 6]))["score"] > 0.98
    assert model.stability(loud)["score"] < 0.95


def test_agreement_is_that_of_the_places_of_the_rows() -> None:
    X = standardised(CLUSTERS)
    V, W = RNG.standard_normal((2, 8, 2))
    left, right = (np.linalg.qr(X @ axes)[0] for axes in (V, W))
    rho = np.linalg.svd(left.T @ right, compute_uv=False)
    Z = StandardizedRows(DenseRows(CLUSTERS))
    assert agreement(V, W, Z.second_moment) == pytest.approx(np.mean(rho**2))
    assert agreement(V, V @ RNG.standard_normal((2, 2)), Z.second_moment) == pytest.approx(1.0)


def test_columns_that_repeat_each_other_do_not_make_a_view_unstable() -> None:
    doubled = np.column_stack([CLUSTERS, CLUSTERS[:, :3] + 1e-3 * NOISE[:, 3:6]])
    assert stability(doubled)["score"] > 0.98


def test_it_depends_on_the_seed_alone_changes_nothing_and_takes_tables() -> None:
    table = pa.table({f"c{i}": column for i, column in enumerate(CLUSTERS.T)} | {"kind": ["a", "b", "c"] * 200})
    model = IMAPCE(random_state=0).fit(table)
    before = model.components_.copy()
    assert model.stability(table, n_splits=1) == model.stability(table, n_splits=1)
    assert np.array_equal(model.components_, before)
    assert model.stability(table, n_splits=1)["score"] > 0.7


def test_what_cannot_be_split_is_refused() -> None:
    model = IMAPCE(random_state=0).fit(CLUSTERS)
    with pytest.raises(InvalidValueError, match="n_splits must be at least 1; got 0"):
        model.stability(CLUSTERS, n_splits=0)
    with pytest.raises(InvalidTypeError, match="n_splits must be a whole number"):
        model.stability(CLUSTERS, n_splits=2.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="X must have at least 6 rows to be halved; got 5"):
        model.stability(CLUSTERS[:5])


def test_halves_are_compared_in_the_rows_given_the_known() -> None:
    """A label that moves every row is in no view, and so in no measure of how well two views agree."""
    run = np.array(["a", "b"])[np.arange(600) % 2]
    moved = CLUSTERS + 50 * (run == "b")[:, None]
    found = stability(moved, prior=run)
    assert found["score"] > 0.95
    # Of the rows as they are, one direction is nearly all there is, and random planes share it.
    assert found["chance"] < 0.6 < stability(moved)["chance"]

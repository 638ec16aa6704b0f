"""Fair-NeRV and Fair-t-NeRV against values of the original program, differences of the cost, and their contract."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from helpers import grouped
from imapce import Attributes, Samples, Subset, metrics
from imapce.baselines import FairNeRV, FairTNeRV, fair_nerv
from imapce.baselines.fair_nerv import FairCost, Weights, descend
from imapce.errors import ImapceError

BOTH = pytest.mark.parametrize("student", [False, True], ids=["normal", "student"])
ESTIMATORS = pytest.mark.parametrize("Estimator", [FairNeRV, FairTNeRV])

ROW = np.arange(12.0)[:, None]
X12 = np.sin(1 + 2.3 * ROW + 1.7 * np.arange(3))
Y12 = np.cos(0.5 + 1.1 * ROW + 2.9 * np.arange(2))
LABELS12 = np.array([0, 0, 2, 0, 0, 2, 0, 1, 2, 0, 1, 2])
WEIGHTS = Weights(0.3, 0.7, 0.4, 0.6, 0.8)
DATA = grouped(90)


def cost12(student: bool, precision: Any = "double", labels: Any = LABELS12, **changes: Any) -> FairCost:
    return FairCost(X12, labels, WEIGHTS, n_neighbors=4, student=student, precision=precision, **changes)


def small(Estimator: Any = FairNeRV, **changes: Any) -> Any:
    return Estimator(**{"n_neighbors": 8, "n_iter": 30, "random_state": 0} | changes)


# --- the original program ---------------------------------------------------------------------------------------------


def test_scales_and_neighbourhoods_are_the_original_s() -> None:
    fair = cost12(False)
    assert fair.scales[:4] == pytest.approx([0.71847717, 0.86663137, 0.87772149, 0.63999702], abs=5e-9)
    assert np.exp(fair.log_neighbourhoods[0, 11]) == pytest.approx(0.38775509, abs=5e-9)
    others = ~np.eye(12, dtype=bool)
    assert np.sum(np.exp(fair.log_neighbourhoods), axis=1, where=others) == pytest.approx(np.ones(12))


ORIGINAL = {
    False: {
        "cost": (15.3190010871, 114.5382698630),
        "norm": (5.4689392232, 39.7726711331),
        "first": (0.63690872, -0.67501657),
        "sums": (32.3561585, 8.64677684, 20.25442715, 19.81885146, 1.70304592, 1.46902602),
        "path": {1: (0.56209223, -0.64758098), 20: (0.91802798, -0.56232866), 120: (0.85180499, -0.35375861)},
        "end": ((0.85150196, -0.35161190), 3.11216880),
    },
    True: {
        "cost": (8.6830612556, 64.3938367657),
        "norm": (1.3631392652, 4.6482038856),
        "first": (-0.36771394, 0.34095459),
        "sums": (8.21781021, 7.97038519, 8.38292243, 20.92263488, 0.99183101, 1.04259395),
        "path": {1: (0.94814588, -1.03686536), 20: (3.89681846, 2.96713850), 120: (4.97350620, 3.48240913)},
        "end": ((7.86621811, 5.74665759), 3.14412330),
    },
}


@BOTH
def test_cost_and_gradient_are_the_original_s(student: bool) -> None:
    expected: Any = ORIGINAL[student]
    fair = cost12(student)
    for factor, cost, norm in zip((1.0, 8.0), expected["cost"], expected["norm"], strict=True):
        gradient, sums = fair.evaluate(Y12, factor)
        assert fair.weights.cost(sums) == pytest.approx(cost, abs=1e-9)
        assert np.linalg.norm(gradient) == pytest.approx(norm, abs=1e-9)
    gradient, sums = fair.evaluate(Y12)
    assert gradient[0] == pytest.approx(expected["first"], abs=5e-9)
    assert sums == pytest.approx(expected["sums"], abs=1e-8)


@BOTH
def test_the_descent_takes_the_original_s_steps(student: bool) -> None:
    expected: Any = ORIGINAL[student]
    for n_iter, place in expected["path"].items():
        assert descend(cost12(student), Y12, n_iter=n_iter)[0][0] == pytest.approx(place, abs=2e-8)
    Y, cost, _, _ = descend(cost12(student), Y12)
    assert Y[0] == pytest.approx(expected["end"][0], abs=1e-6)
    assert cost == pytest.approx(expected["end"][1], abs=1e-8)


# --- the gradient -----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "labels",
    [np.arange(12) % 3, np.r_[0, np.arange(11) % 2 + 1], np.zeros(12, dtype=int), np.arange(12)],
    ids=["three classes", "a class of one", "one class", "twelve classes of one"],
)
@pytest.mark.parametrize("m", [2, 3])
def test_the_gradient_is_that_of_the_cost(student: bool, labels: Any, m: int) -> None:
    fair = cost12(student, labels=labels)
    Y = np.cos(0.5 + 1.1 * ROW + 2.9 * np.arange(m))
    gradient, _ = fair.evaluate(Y, 8.0)
    differences = np.empty_like(Y)
    for place in np.ndindex(Y.shape):
        step = np.zeros_like(Y)
        step[place] = 1e-5
        up, down = (fair.weights.cost(fair.evaluate(Y + sign * step, 8.0)[1]) for sign in (1, -1))
        differences[place] = (up - down) / 2e-5
    assert np.linalg.norm(gradient - differences) < 1e-6 * np.linalg.norm(gradient)


@BOTH
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_single_precision_agrees_with_double(student: bool, spread: float) -> None:
    Y = spread * np.random.default_rng(0).normal(size=(90, 2))
    found = []
    for precision in ("single", "double"):
        fair = FairCost(DATA.X, DATA.kind, WEIGHTS, n_neighbors=8, student=student, precision=precision)  # type: ignore[arg-type]
        gradient, sums = fair.evaluate(Y, 8.0)
        found.append((gradient, fair.weights.cost(sums)))
    (single, single_cost), (double, double_cost) = found
    assert np.linalg.norm(single - double) < 1e-5 * np.linalg.norm(double)
    assert single_cost == pytest.approx(double_cost, rel=1e-6)


@BOTH
def test_classes_far_apart_still_attract(student: bool) -> None:
    # r of the other class is below the smallest float, its logarithm is not.
    Y = np.random.default_rng(0).normal(size=(90, 2))
    Y[DATA.batch == 1, 0] += 1000.0
    fair = FairCost(DATA.X, DATA.batch, Weights(0.3, 0.7, 0.0, 1.0, 0.5), n_neighbors=8, student=student)
    gradient, sums = fair.evaluate(Y)
    assert np.isfinite(sums).all()
    assert gradient[DATA.batch == 1, 0].mean() > 0 > gradient[DATA.batch == 0, 0].mean()


@BOTH
def test_threads_and_the_order_of_classes_change_nothing(student: bool) -> None:
    X = np.random.default_rng(0).normal(size=(200, 4))
    labels = np.arange(200) % 3
    one, two = (
        FairCost(X, labels, WEIGHTS, n_neighbors=8, student=student, n_threads=n_threads) for n_threads in (1, 2)
    )
    assert np.array_equal(descend(one, X[:, :2], n_iter=15)[0], descend(two, X[:, :2], n_iter=15)[0])
    renamed = FairCost(X, (labels + 1) % 3, WEIGHTS, n_neighbors=8, student=student)
    assert renamed.evaluate(X[:, :2])[0] == pytest.approx(one.evaluate(X[:, :2])[0], rel=1e-4, abs=1e-5)


# --- the estimators ---------------------------------------------------------------------------------------------------


@parametrize_with_checks([FairNeRV(n_neighbors=2, n_iter=5), FairTNeRV(n_neighbors=2, n_iter=5)])
def test_scikit_learn_s_own_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*nearest rows at one distance", category=UserWarning)
        check(estimator)


@ESTIMATORS
def test_equal_seeds_give_equal_maps(Estimator: Any) -> None:
    first, second, other = (
        small(Estimator, random_state=seed).fit_transform(DATA.X, prior=DATA.batch) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, second)
    assert not np.allclose(first, other)


@ESTIMATORS
def test_the_known_classes_are_mixed(Estimator: Any) -> None:
    parameters = {"n_iter": 300, "tau_in": 0.51, "tau_out": 0.98, "gamma": 0.95, "omega": 0.65}
    scores = [
        metrics.normalized_laplacian_score(
            small(Estimator, beta=beta, **parameters).fit_transform(DATA.X, prior=DATA.batch), DATA.batch, [10]
        )
        for beta in (0.1, 1.0)
    ]
    assert scores[0] > 0.4
    assert scores[1] < 0.2


def test_priors_of_every_kind_of_labels_mean_the_same() -> None:
    names = np.array(["left", "right"])[DATA.batch]
    expected = small().fit_transform(DATA.X, prior=DATA.batch)
    assert np.array_equal(small().fit_transform(DATA.X, prior=names), expected)
    assert np.array_equal(small().fit_transform(DATA.X, prior=Subset(DATA.batch == 1)), expected)
    table = pd.DataFrame(DATA.X).assign(batch=DATA.batch)
    table.columns = table.columns.astype(str)
    by_column = small().fit_transform(table, prior=Attributes(["batch"]))
    assert np.array_equal(by_column, small().fit_transform(table, prior=DATA.batch))
    with pytest.raises(ImapceError, match="Samples"):
        small().fit(DATA.X, prior=Samples(DATA.X))


def test_without_a_prior_neighbours_alone_count() -> None:
    without = small().fit(DATA.X)
    assert np.array_equal(without.embedding_, small(beta=0.9, omega=0.6).fit_transform(DATA.X))
    assert np.array_equal(without.embedding_, small().fit_transform(DATA.X, prior=np.ones(90)))
    assert without.cost_ > 0


def test_fitted_attributes_and_the_ways_to_stop() -> None:
    model = small().fit(DATA.X, prior=DATA.batch)
    assert model.embedding_.shape == (90, 2)
    assert model.n_iter_ == 30
    assert "30" in model.stop_reason_
    assert small(max_seconds=0.0).fit(DATA.X).n_iter_ == 1
    early = small(tol=0.5, n_iter=400).fit(DATA.X)
    assert early.n_iter_ == 301
    assert "tol=0.5" in early.stop_reason_


def test_a_pca_start_needs_no_seed() -> None:
    maps = [small(initialization="pca", random_state=seed).fit_transform(DATA.X) for seed in (0, 1)]
    assert np.array_equal(*maps)
    with pytest.raises(ValueError, match="n_components"):
        small(initialization="pca", n_components=9).fit(DATA.X)


@pytest.mark.usefixtures("every_word")
def test_progress_is_told_and_may_cancel() -> None:
    seen: list[tuple[str, float | None]] = []
    small(verbose=lambda words, share: seen.append((words, share))).fit(DATA.X)
    assert [share for _, share in seen] == [iteration / 30 for iteration in range(1, 31)]
    assert all(np.isfinite(float(words.rpartition("cost ")[2])) for words, _ in seen)

    def cancel(words: str, share: float | None) -> None:
        raise KeyboardInterrupt

    model = small(verbose=cancel)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X)
    assert not hasattr(model, "embedding_")


@ESTIMATORS
@pytest.mark.parametrize("n_equal", [20, 90])
def test_duplicates_are_told_and_do_not_rule_the_map(Estimator: Any, n_equal: int) -> None:
    X = DATA.X.copy()
    X[:n_equal] = X[0]
    with pytest.warns(UserWarning, match="rows of X have n_neighbors=8 or more"):
        places = small(Estimator, n_iter=200).fit_transform(X, prior=DATA.batch)
    assert np.isfinite(places).all()
    assert np.ptp(places[n_equal - 1 :], axis=0).max() < 1000 or n_equal == 90


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tau_in": 0.9, "tau_out": 0.9}, "tau_out must be larger than tau_in"),
        ({"tau_in": -0.1}, "tau_in"),
        ({"beta": 1.1}, "beta must lie between 0 and 1"),
        ({"gamma": "much"}, "gamma"),
        ({"omega": np.nan}, "omega"),
        ({"n_neighbors": 89}, "n_neighbors must be smaller"),
        ({"n_neighbors": 2.5}, "n_neighbors"),
        ({"n_iter": 0}, "n_iter"),
        ({"exaggeration": 0.5}, "exaggeration must be at least 1"),
        ({"exaggeration_iter": -1}, "exaggeration_iter"),
        ({"max_seconds": -1}, "max_seconds"),
        ({"tol": "small"}, "tol"),
        ({"initialization": "spectral"}, "initialization"),
        ({"precision": "half"}, "precision"),
        ({"verbose": "yes"}, "verbose"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ImapceError, match=words) as error:
        small(**changes).fit(DATA.X)
    assert "\n" not in str(error.value)


def test_too_many_rows_are_refused_before_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_nerv, "MOST_ROWS", 50)
    with pytest.raises(ImapceError, match=r"at most 50 rows.*got 90"):
        small().fit(DATA.X)
    with pytest.raises(ImapceError, match="at most 35 rows"):
        small(precision="double").fit(DATA.X)

"""The effect of the known given the clusters: what is theirs is given back, what is the known's is taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from helpers import angle_between
from imapce import IMAPCE, Attributes, Exploration, Labels, metrics
from imapce.errors import InvalidValueError

RNG = np.random.default_rng(0)


def two_types(n: int = 600, *, confounded: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two types in three runs, each of which shifts its rows; confounded, two runs hold a tenth of one type each."""
    rng = np.random.default_rng(1)
    run = rng.integers(0, 3, n)
    kind = rng.integers(0, 2, n)
    if confounded:
        kind = (rng.random(n) < np.array([0.3, 0.7, 0.5])[run]).astype(int)
    shift = 2.0 * rng.standard_normal((3, 8))
    return rng.standard_normal((n, 8)) + 5 * kind[:, None] * np.repeat([1, 0], [2, 6]) + shift[run], run, kind


@pytest.mark.parametrize("confounded", [False, True])
def test_types_are_shown_and_runs_are_not(confounded: bool) -> None:
    X, run, kind = two_types(confounded=confounded)
    model = IMAPCE()
    view = model.fit_transform(X, prior=Labels(run.astype(str)))
    assert metrics.knn_accuracy(view, kind) >= 0.97
    inside = kind == 1
    largest = np.bincount(run[inside]).max() / inside.sum()
    assert metrics.knn_accuracy(view[inside], run[inside]) <= largest + 0.1
    exploration = Exploration(X, prior=Labels(run.astype(str))).run()
    assert adjusted_rand_score(kind, exploration.labels_) >= 0.95


def test_the_effect_is_the_shift_of_the_runs() -> None:
    X, run, kind = two_types()
    model = IMAPCE().fit(X, prior=Labels(run.astype(str)))
    left = model.given(X, labels=run.astype(str))
    for c in (0, 1):
        means = np.array([left[(run == r) & (kind == c)].mean(axis=0) for r in range(3)])
        assert np.ptp(means, axis=0).max() < 0.25
    assert left[kind == 1, 0].mean() - left[kind == 0, 0].mean() > 1.0


def test_one_knowledge_has_one_answer_by_whichever_door_it_comes() -> None:
    X, run, _ = two_types()
    text = np.array(["first", "second", "third"])[run]
    plain = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    with_run = plain.assign(run=pd.Categorical(text))
    doors = [(with_run, Attributes(["run"])), (plain, Labels(text)), (with_run, Labels(text)), (plain, Labels(run))]
    first, *others = (IMAPCE().fit(table, prior=prior) for table, prior in doors)
    assert np.all(first.components_[:, 8:] == 0)
    for other in others:
        assert angle_between(first.components_[:, :8], other.components_[:, :8]) < 1e-7
        assert np.allclose(other.components_[:, 8:], 0)
    clusters = [Exploration(table, prior=prior).run().labels_ for table, prior in doors]
    for labels in clusters[1:]:
        assert np.array_equal(labels, clusters[0])


def test_what_the_known_tells_wholly_has_no_part() -> None:
    X, run, _ = two_types()
    twin = np.column_stack([X, 3.0 * run - 1.0])
    model = IMAPCE().fit(twin, prior=Labels(run.astype(str)))
    assert np.all(model.components_[:, 8] == 0)
    assert np.abs(model.given(twin, labels=run.astype(str))[:, 8]).max() < 1e-12


@pytest.mark.parametrize("erase", [False, True])
def test_a_known_column_that_does_not_vary_takes_nothing(erase: bool) -> None:
    X, _, _ = two_types()
    X[:, 7] = 3.0
    known = Attributes([7], erase=erase)
    # Beside the answer itself: nothing is divided by nothing on the way, which warns and so fails.
    np.testing.assert_allclose(IMAPCE().fit_transform(X, prior=known), IMAPCE().fit_transform(X), atol=1e-9)
    assert np.array_equal(Exploration(X, prior=known).run().labels_, Exploration(X).run().labels_)


def test_a_label_that_says_nothing_costs_nothing() -> None:
    costs, found = [], []
    for seed in range(2, 7):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 3, 500)
        X = rng.standard_normal((500, 6)) + 6 * np.eye(3, 6)[kind]
        coin = rng.integers(0, 2, 500).astype(str)
        views = IMAPCE().fit_transform(X), IMAPCE().fit_transform(X, prior=Labels(coin))
        costs.append(metrics.knn_accuracy(views[0], kind) - metrics.knn_accuracy(views[1], kind))
        found.append(adjusted_rand_score(kind, Exploration(X, prior=Labels(coin)).run().labels_))
    assert max(costs) <= 0.01
    # One of the five tables falls into four clusters by the luck of its folds.
    assert np.mean(found) >= 0.97


def test_the_class_itself_known_leaves_nothing_of_it() -> None:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 3, 600)
    X = rng.standard_normal((600, 6)) + 6 * np.eye(3, 6)[kind]
    model = IMAPCE()
    view = model.fit_transform(X, prior=Labels(kind.astype(str)))
    assert metrics.knn_accuracy(view, kind) <= 0.42
    labels = Exploration(X, prior=Labels(kind.astype(str))).run().labels_
    assert normalized_mutual_info_score(kind, labels) < 0.05


def test_several_labels_add_and_rows_without_one_keep_what_they_have() -> None:
    X, run, kind = two_types()
    day = RNG.integers(0, 2, len(X))
    moved = X + 3.0 * day[:, None] * np.ones(8)
    first = run.astype(str).astype(object)
    first[::10] = None
    model = IMAPCE().fit(moved, prior=[Labels(first), Labels(day.astype(str))])
    left = model.given(moved, labels=[first, day.astype(str)])
    stated = np.array([one is not None for one in first])
    for c in (0, 1):
        means = [left[stated & (kind == c) & (day == d)].mean(axis=0) for d in (0, 1)]
        assert np.abs(means[0] - means[1]).max() < 0.3
    # A row whose run is not known loses nothing for it: only the day's part.
    without = model.given(moved[:1], labels=[[None], [None]])
    assert np.allclose(without, (moved[:1] - model.mean_) / model.scale_)


def test_a_number_is_explained_by_its_line() -> None:
    rng = np.random.default_rng(4)
    dose = rng.standard_normal(500)
    kind = rng.integers(0, 2, 500)
    X = rng.standard_normal((500, 6)) + 5 * kind[:, None] * np.eye(1, 6) + 3 * dose[:, None] * np.eye(6)[1]
    model = IMAPCE().fit(X, prior=Labels(dose))
    left = model.given(X, labels=dose)
    assert abs(np.corrcoef(left[:, 1], dose)[0, 1]) < 0.1
    assert metrics.knn_accuracy(model.transform(X, labels=dose), kind) >= 0.97
    column = IMAPCE().fit(np.column_stack([X, dose]), prior=Attributes([6]))
    assert angle_between(column.components_[:, :6], model.components_) < 1e-7


def test_more_classes_than_rows_can_tell_are_refused() -> None:
    X = RNG.standard_normal((60, 4))
    with pytest.raises(InvalidValueError, match="must be classes of several rows"):
        IMAPCE().fit(X, prior=Labels([f"row {i}" for i in range(60)]))


def test_new_rows_need_their_labels_and_classes_that_were_seen() -> None:
    X, run, _ = two_types()
    model = IMAPCE().fit(X, prior=Labels(pd.Series(run.astype(str), name="run")))
    with pytest.raises(InvalidValueError, match=r"labels must be given for the rows of X.*given run"):
        model.transform(X)
    with pytest.raises(InvalidValueError, match=r"labels must be classes that fit saw.*'9'"):
        model.transform(X[:2], labels=["9", "0"])
    with pytest.raises(InvalidValueError, match="one label per row"):
        model.transform(X[:3], labels=["0", "1"])
    one = model.transform(X[:1], labels=[run[0]])
    assert np.allclose(one, model.transform(X, labels=run.astype(str))[:1], atol=1e-12)
    erased = IMAPCE().fit(X, prior=Labels(run.astype(str), erase=True))
    assert erased.effect_ is None
    assert erased.transform(X[:5]).shape == (5, 2)
    with pytest.raises(InvalidValueError, match="no labels were known"):
        erased.transform(X[:5], labels=run[:5])


def test_clusters_of_an_erased_column_are_free_of_it() -> None:
    X, run, kind = two_types()
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)]).assign(run=pd.Categorical(run.astype(str)))
    exploration = Exploration(table, prior=Attributes(["run"], erase=True)).run()
    assert normalized_mutual_info_score(run, exploration.labels_) < 0.1
    assert adjusted_rand_score(kind, exploration.labels_) >= 0.9


def test_clusters_choose_a_view_free_of_erased_columns_as_one_given_them() -> None:
    rng = np.random.default_rng(0)
    kind, known = rng.integers(0, 3, 400), rng.integers(0, 2, 400)
    X = np.column_stack([known, rng.standard_normal((400, 6)) + 6 * np.eye(3, 6)[kind] + known[:, None]])
    for erase in (False, True):
        model = IMAPCE().fit(X, prior=Attributes([0], erase=erase))
        # Of rows that are taken for others, clusters are seen as often as chance would have it.
        assert model.optima_[0].seen > 0.95
        told = model.read_back_
        assert told is not None
        assert told["clusters"] - told["chance"] < 0.1  # type: ignore[operator]
        assert metrics.knn_accuracy(model.transform(X), kind) > 0.95


def test_inputs_are_not_changed() -> None:
    X, run, _ = two_types(200)
    before, labels = X.copy(), run.astype(str)
    X.flags.writeable = False
    IMAPCE().fit(X, prior=Labels(labels))
    assert np.array_equal(X, before)
    assert labels.tolist() == run.astype(str).tolist()


def test_days_that_were_numbers_in_a_fit_are_numbers_of_new_rows() -> None:
    rng = np.random.default_rng(5)
    days = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 200, 300), "D"), name="day")
    X = rng.standard_normal((300, 4)) + 0.05 * (days - days.min()).dt.days.to_numpy()[:, None]
    model = IMAPCE().fit(X, prior=Labels(days))
    whole = model.transform(X, labels=days)
    assert np.allclose(model.transform(X[:3], labels=days[:3]), whole[:3], atol=1e-9)

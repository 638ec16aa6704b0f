"""Clusters found once and in all directions: planted ones come back, whatever the seed, the sample and the hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.common.settings import SETTINGS
from imapce.errors import CancelledError

QUICK = IMAPCE(alpha=1.0, mu=50.0, n_starts=2)


def three(n: int = 300, seed: int = 0, *, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Three Gaussians 8 standard deviations apart."""
    group = np.arange(n) % 3
    return np.random.default_rng(seed).standard_normal((n, d)) + 8 / np.sqrt(2) * np.eye(3, d)[group], group


def session(X: Any, **options: Any) -> Exploration:
    return Exploration(X, **{"estimator": QUICK, "random_state": 0, **options})


@pytest.mark.parametrize("seed", range(5))
def test_three_gaussians_are_three_clusters_and_every_row_is_taken(seed: int) -> None:
    X, group = three(600, seed)
    exploration = session(X).run()
    assert len(exploration.clusters_) == 3
    assert adjusted_rand_score(group, exploration.labels_) >= 0.99
    assert exploration.stop_reason == "Every row is taken."
    assert [len(step.clusters) for step in exploration.steps] == [1, 2]


@pytest.mark.parametrize("seed", range(3))
def test_random_booleans_split_nothing(seed: int) -> None:
    X, group = three(600, seed)
    coins = np.random.default_rng(seed + 50).integers(0, 2, (600, 2))
    exploration = session(np.column_stack([X, coins])).run()
    assert adjusted_rand_score(group, exploration.labels_) >= 0.97


def test_a_planted_minority_of_three_percent_is_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 10))
    few = np.arange(2000) < 60
    X[few] += 7 / np.sqrt(10)
    exploration = session(X).run()
    assert len(exploration.clusters_) == 2
    assert adjusted_rand_score(few, exploration.labels_) >= 0.9


def test_all_seeds_find_the_same() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 6)) * rng.gamma(2, size=(400, 1)) + 4 * np.eye(5, 6)[np.arange(400) % 5]
    first, *others = (session(X, random_state=seed).run() for seed in range(3))
    for other in others:
        assert adjusted_rand_score(first.labels_, other.labels_) == 1.0


def test_many_rows_are_learned_from_a_sample_and_go_where_they_belong() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, 5000)
    X = rng.standard_normal((5000, 6)) + 5 * np.eye(4, 6)[group]
    step = session(X).propose()
    assert "a seeded sample of 1,500 of 5,000 unexplored rows" in step.clustered_from
    assert adjusted_rand_score(group, step.clusters) >= 0.98
    sampled = np.sort(np.random.default_rng(0).choice(5000, 1500, replace=False))
    assert adjusted_rand_score(group[sampled], step.clusters[sampled]) >= 0.98


def test_rows_accepted_by_hand_leave_the_clusters_of_the_others() -> None:
    X, group = three()
    exploration = session(X)
    before = exploration.propose().clusters
    taken = np.flatnonzero(group == 0)[:60]
    exploration.accept(mask=taken)
    after = exploration.propose().clusters
    assert set(after[taken]) == {-1}
    left = np.setdiff1d(np.arange(300), taken)
    assert adjusted_rand_score(before[left], after[left]) == 1.0
    exploration.run()
    assert exploration.known.all()
    assert len(exploration.clusters_) == 4


def test_a_piece_that_is_too_small_goes_to_the_next_best_cluster() -> None:
    X, group = three()
    exploration = session(X, min_cluster_size=10)
    exploration.accept(mask=np.flatnonzero(group == 0)[:97])
    step = exploration.propose()
    assert len(step.distinctness) == 2
    assert (step.clusters[np.flatnonzero(group == 0)[97:]] >= 0).all()
    first, second = step.numbers
    exploration.accept(clusters=int(first))
    last = exploration.propose()
    assert last.most_distinct == (second,)
    exploration.accept()
    assert exploration.stop_reason == "Every row is taken."
    exploration.undo(2)
    assert exploration.propose() == step


def test_what_is_left_of_all_clusters_is_outliers_where_it_is_too_small() -> None:
    X, _ = three()
    exploration = session(X, min_cluster_size=10)
    exploration.accept(mask=np.arange(288))
    assert len(set(exploration.propose().clusters[288:]) - {-1}) <= 1
    exploration = session(X, min_cluster_size=100).run()
    assert {cluster.size for cluster in exploration.clusters_} <= {100}


def test_clusters_do_not_show_what_is_known() -> None:
    X, group = three(600, d=6)
    kind = np.arange(600) // 300
    data = np.column_stack([X, 9.0 * kind, 9.0 * kind + np.random.default_rng(1).standard_normal(600)])
    exploration = session(data, prior=Attributes([6])).run()
    assert adjusted_rand_score(group, exploration.labels_) >= 0.98
    subset = session(X, prior=Subset(group == 0)).run()
    assert len(subset.clusters_) == 2
    assert set(subset.labels_[group == 0]) == {-1}


def test_beside_a_background_clusters_are_found_view_by_view() -> None:
    X, _ = three()
    exploration = session(X, prior=Samples(np.random.default_rng(1).standard_normal((200, 10))))
    assert not exploration.is_joint
    assert exploration.propose().structure is None
    assert exploration.min_cluster_size == 10
    assert session(X).is_joint
    assert not session(X, clusterer="dpgmm").is_joint


def test_a_session_goes_on_as_it_began(tmp_path: Path) -> None:
    X, _ = three(300, 2)
    whole = session(X).run()
    half = session(X)
    half.accept()
    half.save(tmp_path / "s.imapce")
    loaded = Exploration.load(tmp_path / "s.imapce", X)
    assert loaded.clusterer == "auto"
    assert loaded.structure == half.structure == whole.structure
    assert loaded.propose() == half.propose()
    np.testing.assert_array_equal(loaded.run().labels_, whole.labels_)


@pytest.mark.usefixtures("every_word")
def test_a_cancelled_search_changes_nothing() -> None:
    X, _ = three()
    told: list[str] = []
    exploration = session(X)
    exploration.propose(clusters=False)
    with pytest.raises(CancelledError, match="selecting the number of clusters"):
        exploration.propose(progress=lambda words, share: told.append(words), cancel=lambda: len(told) > 5)
    assert exploration.structure is None
    assert exploration.propose() == session(X).propose()


def odd() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    X, _ = three(120, d=4)
    return {
        "constant columns": np.column_stack([X, np.full(120, 3.0), np.zeros(120)]),
        "rows twice": np.vstack([X[:40], X[:40], X[:40]]),
        "one column and noise": np.column_stack([np.repeat([0.0, 9.0], 60), rng.standard_normal((120, 2))]),
        "twelve rows": X[:12],
        "a far origin": X + 1e12,
        "a huge row": np.vstack([X, np.full((1, 4), 1e9)]),
        "few values": rng.integers(0, 3, (120, 4)).astype(float),
        "two values": rng.integers(0, 2, (120, 5)).astype(float),
        "two places": np.repeat(np.eye(3, 4), 40, axis=0),
        "columns that repeat each other": np.column_stack([X, X, X @ np.ones(4)]),
        "more columns than rows": rng.standard_normal((40, 90)),
        "very many columns": rng.standard_normal((40, SETTINGS.clusters.columns + 10)),
    }


@pytest.mark.parametrize("name", odd())
def test_odd_tables_come_to_an_end_in_words(name: str) -> None:
    exploration = session(odd()[name]).run()
    assert exploration.stop_reason is not None
    assert exploration.labels_.shape == (len(odd()[name]),)


@pytest.mark.parametrize("steps", [1.0, 2.0])
def test_rounded_columns_are_not_cut_at_their_values(steps: float) -> None:
    rng = np.random.default_rng(1)
    group = np.arange(600) % 3
    X = np.round((rng.standard_normal((600, 4)) + 6 / np.sqrt(2) * np.eye(3, 4)[group]) / steps)
    exploration = session(X).run()
    assert len(exploration.clusters_) == 3
    assert adjusted_rand_score(group, exploration.labels_) >= 0.9


def test_answers_on_a_scale_that_ends_are_one_group() -> None:
    rng = np.random.default_rng([8, 9])
    mood = rng.standard_normal((300, 1))
    X = np.clip(np.round(np.exp(0.8 * (mood + 0.8 * rng.standard_normal((300, 6))))), 1, 10)
    assert session(X).run().stop_reason.startswith("No structure beyond chance")


def test_many_groups_of_few_rows_are_found_among_many_columns() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(360) % 15
    course = rng.standard_normal((15, 7))[group] + 0.5 * rng.standard_normal((360, 7))
    noise = 0.1 * rng.standard_normal((360, 90))
    exploration = session(course @ rng.standard_normal((7, 90)) + noise).run()
    assert adjusted_rand_score(group, exploration.labels_) >= 0.5


def odd_category(kind: str) -> pd.DataFrame:
    """A category that most rows lack; of those left one level is not there, or no row says any."""
    rng = np.random.default_rng(0)
    n = 200
    colour = np.array(["red", "green", "blue"], dtype=object)[np.arange(n) % 3]
    colour[rng.random(n) < 0.6] = None
    if kind == "a level of known rows alone":
        colour[(np.arange(n) >= 40) & (colour == "blue")] = "red"
    else:
        colour[40:] = None
    run = rng.integers(0, 2, n)
    x = rng.standard_normal((n, 3)) + 4 * (np.arange(n) % 2)[:, None] + run[:, None]
    return pd.DataFrame({"run": run.astype(float), "colour": colour, "x": x[:, 0], "y": x[:, 1], "z": x[:, 2]})


@pytest.mark.parametrize("kind", ["a level of known rows alone", "a category of known rows alone"])
@pytest.mark.parametrize("method", ["auto", "paper"])
def test_levels_that_no_row_to_explore_has_tell_nothing(kind: str, method: str) -> None:
    table = odd_category(kind)
    prior = [Attributes(["run"]), Subset(np.arange(40))]
    estimator = IMAPCE(outliers="keep", missing="mean", n_starts=3)
    exploration = Exploration(table, prior=prior, estimator=estimator, method=method, random_state=0).run(max_steps=2)
    assert exploration.stop_reason is None or exploration.stop_reason
    assert exploration.labels_[:40].max() == -1

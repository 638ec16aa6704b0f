"""The automatic setting: what α and μ it tries, what it refuses to show, what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from helpers import angle_between, literal_objective, standardised
from imapce import IMAPCE, Attributes, Samples, Subset, datasets, load_model, metrics
from imapce.choice import path as search
from imapce.clusters.clustering import find_clusters
from imapce.common import archive as storage
from imapce.common.settings import SETTINGS
from imapce.errors import InvalidValueError
from imapce.estimators.model_file import MODEL_VERSION
from imapce.priors.problem import pose
from imapce.rows.open import open_rows
from imapce.search.race import Solution
from imapce.tables.reader import Reader

CHOICE = SETTINGS.choice
PAPER_FILE = "synthetic_dataset.csv"
RNG = np.random.default_rng(0)
SIDES = RNG.permutation(np.repeat([-1.0, 1.0], 300))
KNOWN = RNG.permutation(np.repeat([-1.0, 1.0], 300))
NOISE = RNG.standard_normal((600, 9))


def table() -> np.ndarray:
    """Columns 0 and 1 show the known groups loudly, column 2 follows them a little, column 3 shows the others."""
    X = NOISE.copy()
    X[:, 0] += 6 * KNOWN
    X[:, 1] += 6 * KNOWN
    X[:, 2] += 0.5 * KNOWN
    X[:, 3] += 4 * SIDES
    return X


def automatic(**changes: Any) -> IMAPCE:
    return IMAPCE(**{"random_state": 0} | changes)


def test_known_columns_have_no_part_in_the_view_and_the_rest_shows() -> None:
    X = table()
    model = automatic().fit(X, prior=Attributes([0, 1]))
    assert model.alpha_ == np.inf
    assert np.allclose(model.components_[:, :2], 0, atol=1e-9)
    assert metrics.knn_accuracy(model.transform(X), SIDES) > 0.97
    assert metrics.residual_predictability(model.transform(X), KNOWN)["score"] < 0.6


def test_a_copy_of_a_known_column_goes_with_it() -> None:
    X = table()
    X[:, 4] = X[:, 0] + 0.1 * NOISE[:, 4]
    model = automatic().fit(X, prior=Attributes([0, 1]))
    view = model.transform(X)
    assert np.abs(np.corrcoef(np.column_stack([view, X[:, :2]]).T)[:2, 2:]).max() < 0.1
    assert metrics.knn_accuracy(view, SIDES) > 0.97


def test_groups_that_have_a_little_to_do_with_the_known_are_still_shown() -> None:
    X = table()
    X[:, 3] += 0.8 * KNOWN
    view = automatic().fit_transform(X, prior=Attributes([0, 1]))
    assert metrics.knn_accuracy(view, SIDES) > 0.97


def test_where_too_few_columns_are_left_it_is_said() -> None:
    X = table()[:, :4]
    with pytest.raises(InvalidValueError, match="n_components=2 directions"):
        automatic().fit(X, prior=Attributes([0, 1, 2]))
    model = automatic().fit(X, prior=Attributes([0, 1]))
    assert np.all(model.components_[:, :2] == 0)
    assert np.abs(np.corrcoef(np.column_stack([model.transform(X), X[:, :2]]).T)[:2, 2:]).max() < 0.1
    weighed = automatic(alpha=1.0).fit(X, prior=Attributes([0, 1, 2]))
    assert weighed.alpha_ == 1.0


def test_a_split_of_the_background_is_not_what_is_shown() -> None:
    X = table()
    background = RNG.standard_normal((400, 9))
    background[:, :2] += 6 * RNG.choice([-1.0, 1.0], size=(400, 1))
    model = automatic().fit(X, prior=Samples(background))
    assert metrics.knn_accuracy(model.transform(X), SIDES) > 0.97
    weights = sorted({one.alpha for one in model.path_})
    assert weights == pytest.approx([a * 600 / 400 for a in CHOICE.alphas])
    mus = sorted({one.mu for one in model.path_})
    assert np.array(mus) / mus[0] == pytest.approx(CHOICE.background_mus)


def test_known_rows_are_weighed_and_the_rest_is_pulled_apart() -> None:
    X = table()
    model = automatic().fit(X, prior=Subset(KNOWN > 0))
    rest = KNOWN < 0
    assert metrics.knn_accuracy(model.transform(X)[rest], SIDES[rest]) > 0.97


def test_without_a_prior_only_mu_is_chosen() -> None:
    model = automatic().fit(table())
    assert model.alpha_ == np.inf
    assert {one.alpha for one in model.path_} == {np.inf}
    scale = sorted({one.mu for one in model.path_ if one.mu > 0})[0] / CHOICE.mus[1]
    assert {round(one.mu / scale, 9) for one in model.path_} <= {*CHOICE.mus, *CHOICE.minority_mus}


def test_the_chosen_view_leads_the_optima_and_has_the_best_score() -> None:
    background = RNG.standard_normal((400, 9))
    model = automatic().fit(table(), prior=Samples(background))
    best = max(model.path_, key=lambda one: one.score)
    assert (model.alpha_, model.mu_) == (best.alpha, best.mu)
    assert angle_between(model.components_, best.components) < 1e-2
    assert np.array_equal(model.optima_[0].components, model.components_)


def test_the_objective_of_an_explained_view_is_equation_two_of_what_is_left() -> None:
    model = automatic().fit(table(), prior=Attributes([0, 1]))
    assert model.alpha_ == np.inf
    left = model.given(table())
    value = literal_objective(left, None, left, model.components_.T, 0.0, model.mu_)
    assert model.objective_ == pytest.approx(value, rel=1e-9)


def test_objectives_are_equation_two_on_all_rows_and_columns() -> None:
    X, background = table(), RNG.standard_normal((300, 9))
    model = automatic().fit(X, prior=Samples(background))
    Z, Y = standardised(X), standardised(background)
    value = literal_objective(Z, Y, Z, model.components_.T, model.alpha_, model.mu_)
    assert model.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("fixed", [{"alpha": 2.0}, {"mu": 30.0}, {"alpha": 0.0, "mu": "auto"}])
def test_a_number_holds_its_coordinate_of_the_path(fixed: dict[str, Any]) -> None:
    background = RNG.standard_normal((300, 9))
    model = automatic(**fixed).fit(table(), prior=Samples(background))
    for name, value in fixed.items():
        if value != "auto":
            assert {getattr(one, name) for one in model.path_} == {value}


def test_mu_by_the_paper_s_rule_may_go_with_alpha_chosen() -> None:
    model = automatic(mu="paper").fit(table(), prior=Samples(RNG.standard_normal((300, 9))))
    assert len({one.alpha for one in model.path_}) == len(CHOICE.alphas) == len({one.mu for one in model.path_})


@pytest.mark.parametrize("prior", [None, Attributes([0, 1]), Attributes([0, 1], erase=True)])
def test_the_weights_of_a_view_lead_to_it_again(prior: Any, tmp_path: Path) -> None:
    first = automatic().fit(table(), prior=prior)
    assert first.alpha_ == np.inf
    again = automatic(alpha=first.alpha_, mu=first.mu_).fit(table(), prior=prior)
    assert angle_between(first.components_, again.components_) < 1e-6
    again.save(tmp_path / "view.imapce")
    assert load_model(tmp_path / "view.imapce").get_params()["alpha"] == np.inf


def test_the_weights_of_a_minority_lead_to_it_again() -> None:
    """Of 4 % of the rows, beside a row that only a path sets aside."""
    X = np.random.default_rng(0).normal(size=(1000, 8))
    X[:40, :2] += 6
    X[500] = 1e4
    first = automatic().fit(X)
    again = automatic(alpha=first.alpha_, mu=first.mu_).fit(X)
    assert again.outliers_.tolist() == [500] == first.outliers_.tolist()
    assert angle_between(first.components_, again.components_) < 1e-6
    below = automatic(mu=-abs(first.mu_) - 1.0).fit(X)
    assert {one.mu for one in below.path_} == {-abs(first.mu_) - 1.0}


def test_optima_of_a_given_mu_that_are_compared_lie_apart() -> None:
    model = automatic(mu=30.0).fit(table(), prior=Samples(RNG.standard_normal((300, 9))))
    for alpha in {one.alpha for one in model.path_}:
        axes = [one.components for one in model.path_ if one.alpha == alpha]
        for first, second in combinations(axes, 2):
            assert np.sum(np.sin(subspace_angles(first.T, second.T)) ** 2) >= CHOICE.apart


@pytest.mark.parametrize(
    "load",
    [datasets.make_synthetic, pytest.param(datasets.load_synthetic_paper, marks=pytest.mark.data(PAPER_FILE))],
)
def test_synthetic_data_come_out_perfect_from_every_seed(load: Callable[[], datasets.Dataset]) -> None:
    data = load()
    for seed in range(5):
        view = IMAPCE(random_state=seed).fit_transform(data.X, prior=Attributes([0, 1, 2, 3]))
        assert metrics.kmeans_nmi(view, data.labels["celltype"]) >= 0.98, seed
        assert metrics.residual_predictability(view, data.labels["batch"])["score"] <= 0.52, seed


def test_many_columns_of_noise_are_not_searched_for_chance_clusters() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([3 * rng.standard_normal((300, 1)) + 9 * np.sign(rng.standard_normal((300, 1)))] * 3)
    sides = X[:, 0] > 0
    X = np.column_stack([X + rng.standard_normal(X.shape), rng.standard_normal((300, 200))])
    model = automatic().fit(X)
    assert metrics.knn_accuracy(model.transform(X), sides) > 0.95


class OfFewRows(IMAPCE):
    settings = replace(SETTINGS, clusters=replace(SETTINGS.clusters, many_rows=400))


def test_of_many_rows_a_sample_is_searched() -> None:
    X = table()
    model = OfFewRows(random_state=0).fit(X, prior=Attributes([0, 1]))
    assert not np.array_equal(model.components_, automatic().fit(X, prior=Attributes([0, 1])).components_)
    assert metrics.knn_accuracy(model.transform(X), SIDES) > 0.97
    left = model.given(X)
    value = literal_objective(left, None, left, model.components_.T, 0.0, model.mu_)
    assert model.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
def test_engines_choose_the_same_view(engine: str) -> None:
    reference = automatic().fit(table(), prior=Attributes([0, 1]))
    other = automatic(engine=engine).fit(table(), prior=Attributes([0, 1]))
    assert angle_between(other.components_, reference.components_) < 1e-7


def test_the_same_seed_gives_the_same_path() -> None:
    one, other = (automatic().fit(table(), prior=Attributes([0])) for _ in range(2))
    assert np.array_equal(one.components_, other.components_)
    assert [c.seen for c in one.path_] == [c.seen for c in other.path_]


def test_a_saved_model_keeps_its_path(tmp_path: Path) -> None:
    model = automatic().fit(table(), prior=Attributes([0, 1]))
    model.save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert loaded.alpha_ == np.inf
    assert loaded.get_params() == model.get_params()
    assert len(loaded.path_) == len(model.path_)
    for one, other in zip(loaded.path_, model.path_, strict=True):
        assert np.array_equal(one.components, other.components)
        assert (one.alpha, one.mu, one.seen) == (other.alpha, other.mu, other.seen)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": "paper"}, 'alpha must be a number or "auto"'),
        ({"mu": "often"}, "mu must be"),
    ],
)
def test_unknown_rules_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        automatic(**changes).fit(table())


def test_files_from_before_the_path_keep_the_meaning_of_their_mu(tmp_path: Path) -> None:
    model = IMAPCE(alpha=1.0, mu="paper", random_state=0).fit(table())
    model.save(tmp_path / "new.imapce")
    header, arrays = storage.read_archive(tmp_path / "new.imapce", "model", MODEL_VERSION)
    del header["path"], header["parameters"]["outliers"]
    header["parameters"]["mu"] = "auto"
    stated = {"format", "kind", "version", "written_by", "arrays"}
    plain = {name: value for name, value in header.items() if name not in stated}
    storage.write_archive(tmp_path / "old.imapce", "model", MODEL_VERSION, plain, arrays)
    old = load_model(tmp_path / "old.imapce")
    assert (old.mu, old.alpha, old.path_) == ("paper", 1.0, [])
    assert np.array_equal(old.components_, model.components_)


def test_the_trace_is_that_of_the_starts_that_found_the_view() -> None:
    from imapce.plotting import plot_trace

    model = automatic(mu=50.0).fit(table(), prior=Attributes([0, 1]))
    assert np.isfinite(model.trace_.objectives).any(axis=0).all()
    assert len(model.trace_.outcomes) > 1
    assert plot_trace(model) is not None
    assert model.stop_reason_.startswith(f"Converged: of {len(model.path_)} optima, the one that separates")


@pytest.mark.parametrize("k", [2, 3])
def test_as_many_columns_left_as_axes_have_one_view(k: int) -> None:
    X = np.random.default_rng(0).standard_normal((100, k + 1))
    X[:, -1] += X[:, 0]
    model = IMAPCE(k).fit(X, prior=Attributes([0]))
    assert np.all(model.components_[:, 0] == 0)
    assert {one.mu for one in model.path_} == {0.0}
    bound = IMAPCE(k).fit(X, prior=Attributes([0], erase=True))
    assert np.abs(np.corrcoef(np.column_stack([bound.transform(X), X[:, 0]]).T)[:k, k]).max() < 1e-6


def later_step(before: np.ndarray | None) -> tuple[search.PathSearch, Solution]:
    """Three groups, a fifth of the rows known, a minority among the others."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], [200, 60, 140])
    X = rng.standard_normal((400, 6)) + 6 * np.eye(3, 6)[group]
    known = np.arange(400) < 80
    reader, matrix = Reader.learn(X)
    problem = pose(open_rows(matrix), [Subset(known)], reader, n_components=2, explain=True)
    walk = search.PathSearch(problem, candidate=find_clusters(problem, ~known), before=before)
    return walk, walk.run()


def test_a_later_step_tries_less_and_shows_as_much() -> None:
    whole, first = later_step(None)
    walk, later = later_step(first.optima[0].components)
    assert walk.n_evaluations < whole.n_evaluations / 3
    assert any(one.mu < 0 for one in first.path)
    assert all(one.mu >= 0 for one in later.path)
    assert later.optima[0].seen >= first.optima[0].seen - 0.01
    assert all(one.converged and one.relative_gradient <= walk.tol for one in later.optima)
    assert len(later.optima) <= CHOICE.later_listed


def test_a_later_step_begins_at_the_view_before_too() -> None:
    before = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 2)))[0].T
    walk, solution = later_step(before)
    starts = walk.find_starts(solution.optima[0].alpha)
    # One more start lies along the axes between the clusters.
    assert len(starts) == CHOICE.later_starts + 2
    assert sum(np.array_equal(start.T, before) for start in starts) == 1


def test_a_view_before_of_other_axes_is_no_start() -> None:
    walk, solution = later_step(np.eye(3, 6))
    assert len(walk.find_starts(solution.optima[0].alpha)) == CHOICE.later_starts + 1

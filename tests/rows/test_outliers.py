"""Gross outliers: scattered ones are found and leave no trace in a view, and nothing that is no outlier is taken."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from commands import succeed
from helpers import angle_between, grouped
from imapce import IMAPCE, Attributes, Exploration, Samples, Subset, load_model
from imapce.common.work import quiet_about_convergence
from imapce.errors import InvalidValueError
from imapce.rows.open import open_rows
from imapce.rows.outliers import outlying_rows
from imapce.tables.files import write_table

N = 600
DATA = grouped(N)
PRIOR = Attributes([0, 1])
SETTINGS = {"random_state": 0, "n_starts": 4, "tol": 1e-4}


def everywhere(X: np.ndarray, rng: np.random.Generator, size: float) -> np.ndarray:
    return size * X.std(axis=0) * rng.normal(size=(len(X) // 100, X.shape[1]))


def one_cell(X: np.ndarray, rng: np.random.Generator, size: float) -> np.ndarray:
    rows = X[rng.choice(len(X), len(X) // 100)].copy()
    place = np.arange(len(rows)), rng.integers(0, X.shape[1], len(rows))
    rows[place] = size * rng.choice([-1.0, 1.0], len(rows)) * X.std(axis=0)[place[1]]
    return rows


Kind = Callable[[np.ndarray, np.random.Generator], np.ndarray]
GROSS: dict[str, Kind] = {
    "20 sd everywhere": lambda X, rng: everywhere(X, rng, 20.0),
    "100 sd everywhere": lambda X, rng: everywhere(X, rng, 100.0),
    "50 sd in one column": lambda X, rng: one_cell(X, rng, 50.0),
    "1000 sd in one column": lambda X, rng: one_cell(X, rng, 1000.0),
    "1e6": lambda X, rng: one_cell(X, rng, 1e6),
}


def with_outliers(X: np.ndarray, kind: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X with 1 % more rows scattered among its own, and where these are."""
    rows = GROSS[kind](X, np.random.default_rng(seed))
    at = np.random.default_rng(1).choice(len(X) + len(rows), len(rows), replace=False)
    mask = np.zeros(len(X) + len(rows), dtype=bool)
    mask[at] = True
    full = np.empty((len(mask), X.shape[1]))
    full[mask], full[~mask] = rows, X
    return full, np.flatnonzero(mask)


def positions(X: object, engine: str = "auto") -> np.ndarray:
    return np.flatnonzero(outlying_rows(open_rows(X, engine=engine)))


# --- which rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(GROSS))
@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
def test_gross_rows_are_found_by_every_engine(kind: str, engine: str) -> None:
    X, at = with_outliers(DATA.X, kind)
    np.testing.assert_array_equal(positions(X, engine), at)


def test_float32_sparse_and_far_columns_make_no_difference() -> None:
    X, at = with_outliers(DATA.X, "100 sd everywhere")
    np.testing.assert_array_equal(positions(X.astype(np.float32)), at)
    np.testing.assert_array_equal(positions(sparse.csr_array(X)), at)
    np.testing.assert_array_equal(positions(X + 1e5), at)


def test_no_number_is_too_large_or_too_small_to_be_judged() -> None:
    X = DATA.X.copy()
    X[:, 3] *= 1e-140
    X[[5, 250], [3, 4]] = 1e70
    np.testing.assert_array_equal(positions(X), [5, 250])


def far_cluster(rng: np.random.Generator, share: float, n: int = 1500, d: int = 12) -> np.ndarray:
    X = rng.normal(size=(n, d))
    X[: int(share * n)] += 40.0 * rng.choice([-1.0, 1.0], d)
    return X


def in_one_column(rng: np.random.Generator, at: float = 30.0, spread: float = 1.0) -> np.ndarray:
    X = rng.normal(size=(1500, 60))
    X[:45, 3] = at + spread * X[:45, 3]
    return X


def rare_categories(rng: np.random.Generator) -> np.ndarray:
    category = rng.choice(8, 2000, p=[0.7, 0.2, 0.06, 0.02, 0.01, 0.006, 0.003, 0.001])
    return np.hstack([np.eye(8)[category], rng.random((2000, 10)) < 0.004, rng.normal(size=(2000, 3))])


CLEAN: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "Gaussian": lambda rng: rng.normal(size=(3000, 20)),
    "Gaussian of few rows": lambda rng: rng.normal(size=(40, 3)),
    "rare categories": rare_categories,
    "rare counts": lambda rng: rng.poisson(0.05, size=(2000, 30)),
    "skewed counts": lambda rng: rng.poisson(rng.gamma(0.3, 5.0, size=(2000, 20))),
    "exponentials of Gaussians": lambda rng: np.exp(rng.normal(size=(3000, 10))),
    "sparse grey values": lambda rng: rng.integers(0, 256, size=(1500, 80)) * (rng.random((1500, 80)) < rng.random(80)),
    "3 % far away": lambda rng: far_cluster(rng, 0.03),
    "3 % far away in one column": in_one_column,
    "3 % across the fence": lambda rng: in_one_column(rng, at=15.0, spread=2.0),
    "5 % four times as wide": lambda rng: (
        rng.normal(size=(2000, 10)) * np.where(np.arange(2000) % 20 == 0, 4, 1)[:, None]
    ),
    "constant but for rounding": lambda rng: np.column_stack(
        [0.1 + 1e-17 * rng.normal(size=500), rng.normal(size=500)]
    ),
    "constant": lambda rng: np.ones((100, 3)),
}


@pytest.mark.parametrize("kind", list(CLEAN))
def test_clean_rows_are_left_alone(kind: str) -> None:
    for seed in range(3):
        assert positions(CLEAN[kind](np.random.default_rng(seed))).size == 0


def test_heavy_tails_lose_less_than_one_row_in_a_thousand() -> None:
    assert positions(np.random.default_rng(0).standard_t(5, size=(10_000, 10))).size < 10


def test_outliers_beside_a_far_cluster_are_found_and_the_cluster_stays() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([far_cluster(rng, 0.03), 500.0 * rng.normal(size=(10, 12))])
    np.testing.assert_array_equal(positions(X), np.arange(1500, 1510))


def test_where_many_rows_are_far_they_are_a_tail() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    X[::14] *= 200.0
    assert positions(X).size == 0


# --- what a fit does with them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(GROSS))
@pytest.mark.parametrize("engine", ["auto", "dense"])
def test_the_automatic_view_is_that_of_the_other_rows(kind: str, engine: str) -> None:
    X, at = with_outliers(DATA.X, kind)
    clean = IMAPCE(engine=engine, **SETTINGS).fit(DATA.X, prior=PRIOR)
    model = IMAPCE(engine=engine, **SETTINGS).fit(X, prior=PRIOR)
    np.testing.assert_array_equal(model.outliers_, at)
    np.testing.assert_array_equal(model.components_, clean.components_)
    np.testing.assert_array_equal(model.mean_, clean.mean_)
    np.testing.assert_array_equal(model.transform(DATA.X), clean.transform(DATA.X))
    assert np.isfinite(model.transform(X)).all()
    assert clean.outliers_.size == 0


def test_kept_they_take_the_view_over() -> None:
    X, _ = with_outliers(DATA.X, "100 sd everywhere")
    clean = IMAPCE(**SETTINGS).fit(DATA.X, prior=PRIOR)
    kept = IMAPCE(outliers="keep", **SETTINGS).fit(X, prior=PRIOR)
    assert kept.outliers_.size == 0
    assert "outlier" not in kept.stop_reason_
    assert np.degrees(angle_between(kept.components_ / kept.scale_, clean.components_ / clean.scale_)) > 30


@pytest.mark.parametrize("mu", [50.0, "paper"])
def test_at_given_weights_every_row_counts_unless_told_otherwise(mu: float | str) -> None:
    X, at = with_outliers(DATA.X, "100 sd everywhere")
    given = {"alpha": 1.0, "mu": mu, **SETTINGS}
    as_given = IMAPCE(**given).fit(X, prior=PRIOR)
    np.testing.assert_array_equal(
        as_given.components_, IMAPCE(outliers="keep", **given).fit(X, prior=PRIOR).components_
    )
    np.testing.assert_allclose(as_given.mean_, X.mean(axis=0), atol=1e-10)
    trimmed = IMAPCE(outliers="trim", **given).fit(X, prior=PRIOR)
    np.testing.assert_array_equal(trimmed.outliers_, at)
    np.testing.assert_array_equal(trimmed.components_, IMAPCE(**given).fit(DATA.X, prior=PRIOR).components_)


def test_known_rows_are_still_the_same_rows() -> None:
    X, at = with_outliers(DATA.X, "100 sd everywhere")
    here = np.setdiff1d(np.arange(len(X)), at)
    known = DATA.batch == 1
    clean = IMAPCE(**SETTINGS).fit(DATA.X, prior=Subset(known))
    model = IMAPCE(**SETTINGS).fit(X, prior=[Subset(np.append(here[known], at[:2])), Subset(at[2:])])
    np.testing.assert_array_equal(model.components_, clean.components_)


def test_a_background_is_rid_of_its_own() -> None:
    background = DATA.X[DATA.batch == 1]
    dirty, _ = with_outliers(background, "100 sd everywhere")
    clean = IMAPCE(**SETTINGS).fit(DATA.X, prior=Samples(background))
    model = IMAPCE(**SETTINGS).fit(DATA.X, prior=Samples(dirty))
    np.testing.assert_array_equal(model.components_, clean.components_)
    assert "3 of 303 background rows are gross outliers and were set aside" in model.stop_reason_
    assert model.outliers_.size == 0


def test_nothing_is_set_aside_where_only_outliers_are_left_to_explore() -> None:
    X, at = with_outliers(DATA.X, "100 sd everywhere")
    known = np.ones(len(X), dtype=bool)
    known[at] = False
    # Six rows far out are no table to converge on, which is not what is asked here.
    with quiet_about_convergence():
        assert IMAPCE(**SETTINGS).fit(X, prior=Subset(known)).outliers_.size == 0


def test_the_number_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    X, _ = with_outliers(DATA.X, "100 sd everywhere")
    model = IMAPCE(verbose=True, **SETTINGS).fit(X, prior=PRIOR)
    sentence = '6 of 606 rows are gross outliers and were set aside; outliers="keep" uses them.'
    assert model.stop_reason_.endswith(f" {sentence}")
    assert sentence in capsys.readouterr().out.splitlines()


def test_an_unknown_rule_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidValueError, match="outliers must be one of 'auto', 'keep', 'trim'; got 'drop'"):
        IMAPCE(outliers="drop").fit(DATA.X)  # type: ignore[arg-type]


# --- the influence of rows ---------------------------------------------------------------------------------------


def test_influence_is_the_larger_share_of_variance_and_kurtosis() -> None:
    model = IMAPCE(alpha=1.0, mu=50.0, **SETTINGS).fit(DATA.X)
    Q = model.transform(DATA.X)
    variance = np.sum(Q**2, axis=1) / np.sum(Q**2)
    squares = np.einsum("ik,kl,il->i", Q, np.linalg.inv(Q.T @ Q), Q) ** 2
    np.testing.assert_allclose(model.influence(DATA.X), N * np.maximum(variance, squares / squares.sum()), rtol=1e-9)


def test_influence_names_the_row_that_would_decide() -> None:
    X = DATA.X.copy()
    X[17] *= 1e5
    influence = IMAPCE(**SETTINGS).fit(X, prior=PRIOR).influence(X)
    assert influence.shape == (N,)
    assert np.argmax(influence) == 17
    assert influence[17] == pytest.approx(N, rel=1e-3)


def test_the_influence_of_huge_and_of_equal_rows_is_finite() -> None:
    model = IMAPCE(**SETTINGS).fit(DATA.X, prior=PRIOR)
    assert np.isfinite(model.influence(1e90 * DATA.X)).all()
    np.testing.assert_allclose(model.influence(np.tile(DATA.X[:1], (5, 1))), 1.0)
    np.testing.assert_array_equal(model.influence(np.tile(model.mean_, (3, 1))), 0.0)


# --- files, sessions, the command line ---------------------------------------------------------------------------


def test_a_saved_model_brings_its_outliers_back(tmp_path: Path) -> None:
    X, at = with_outliers(DATA.X, "100 sd everywhere")
    IMAPCE(**SETTINGS).fit(X, prior=PRIOR).save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert loaded.outliers == "auto"
    np.testing.assert_array_equal(loaded.outliers_, at)


def test_a_model_file_from_before_used_every_row(tmp_path: Path) -> None:
    IMAPCE(**SETTINGS).fit(DATA.X, prior=PRIOR).save(tmp_path / "new.imapce")
    with zipfile.ZipFile(tmp_path / "new.imapce") as new, zipfile.ZipFile(tmp_path / "old.imapce", "w") as old:
        for name in set(new.namelist()) - {"outliers.npy"}:
            content = new.read(name)
            if name == "header.json":
                header = json.loads(content)
                del header["parameters"]["outliers"]
                content = json.dumps(header).encode()
            old.writestr(name, content)
    loaded = load_model(tmp_path / "old.imapce")
    assert loaded.outliers == "keep"
    assert loaded.outliers_.size == 0


def test_an_exploration_leaves_them_unexplored() -> None:
    X, at = with_outliers(DATA.X[:, 2:], "100 sd everywhere")
    clean = Exploration(DATA.X[:, 2:], estimator=IMAPCE(n_starts=4, tol=1e-4), random_state=0)
    session = Exploration(
        X, estimator=IMAPCE(n_starts=4, tol=1e-4), random_state=0, min_cluster_size=clean.min_cluster_size
    )
    here = np.setdiff1d(np.arange(len(X)), at)
    for _ in range(2):
        expected, step = clean.propose(), session.propose()
        assert step.unexplored[at].all()
        assert (step.clusters[at] == -1).all()
        # Clusters of one size have any numbers.
        assert adjusted_rand_score(step.clusters[here], expected.clusters) == 1.0
        assert step.clustered_from.endswith("unexplored rows but 6 gross outliers.")
        told = {tuple(np.searchsorted(here, np.sort(one.rows))): one.features for one in session.accept().clusters}
        for one in clean.accept().clusters:
            assert [f.name for f in told[tuple(np.sort(one.rows))]] == [f.name for f in one.features]
    assert (session.labels_[at] == -1).all()


def test_the_command_prints_the_number_and_can_keep_them(tmp_path: Path) -> None:
    X, _ = with_outliers(DATA.X, "100 sd everywhere")
    write_table({f"c{i}": column for i, column in enumerate(X.T)}, tmp_path / "rows.csv")
    words = ("embed", tmp_path / "rows.csv", "--known", "c0,c1", "--starts", "3")
    assert "6 rows set aside" in succeed(*words, "--plot", tmp_path / "view.png")
    assert "none set aside" in succeed(*words, "--outliers", "keep")
    assert "6 rows set aside" in succeed(*words, "--outliers", "trim", "--alpha", "1", "--mu", "paper")


def test_influence_does_not_depend_on_what_transform_gives_back() -> None:
    X = np.random.default_rng(0).standard_normal((50, 4))
    plain = IMAPCE(random_state=0).fit(X).influence(X)
    np.testing.assert_allclose(IMAPCE(random_state=0).set_output(transform="pandas").fit(X).influence(X), plain)

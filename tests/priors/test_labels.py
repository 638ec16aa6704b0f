"""Labels(y): what is known of the rows beside their columns explains nothing of the view, in every way to give it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from archives import repacked, unpacked
from imapce import IMAPCE, Attributes, Exploration, Labels, Samples, Subset, load_model
from imapce.baselines import CPCA, CTSNE, GCPCA, LEACE, PCA, SIDE, KurtosisPursuit
from imapce.comparison import compare
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.metrics import knn_accuracy, residual_predictability
from imapce.priors.kinds import as_list
from imapce.priors.labels import LabelCode, LabelTerm, ReadLabels
from imapce.rows.dense import DenseRows
from imapce.rows.standardized import StandardizedRows

rng = np.random.default_rng(0)
N = 300
BATCH = rng.integers(0, 2, N)
KIND = rng.integers(0, 3, N)
DEPTH = rng.normal(size=N)
X = rng.normal(size=(N, 8)) + (2.5 * rng.normal(size=(3, 8)))[KIND] + (3 * rng.normal(size=(2, 8)))[BATCH]
GRADED = X + 2 * np.outer(DEPTH, rng.normal(size=8))
GAPS = np.where(np.arange(N) % 7 == 0, None, BATCH.astype(object))


def readable(view: np.ndarray, known: np.ndarray = BATCH) -> float:
    read = residual_predictability(view, known)
    return float(read["score"] - read["chance"])


def same_view(one: IMAPCE, other: IMAPCE) -> None:
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-9)


# --- what they are ---------------------------------------------------------------------------------------------------


def test_y_is_the_part_of_x_that_labels_explain_and_alpha_1_leaves_the_scatter_within_classes() -> None:
    rows = StandardizedRows(DenseRows(X))
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    means = np.stack([z[c == KIND].mean(axis=0) for c in range(3)])[KIND]
    term = LabelTerm.of(ReadLabels.read(KIND), rows)
    np.testing.assert_allclose(term.explained.matrix, means.T @ means, atol=1e-8)
    line = np.outer(DEPTH - DEPTH.mean(), np.linalg.lstsq((DEPTH - DEPTH.mean())[:, None], z, rcond=None)[0][0])
    term = LabelTerm.of(ReadLabels.read(DEPTH), rows)
    np.testing.assert_allclose(term.explained.matrix, line.T @ line, atol=1e-8)
    assert np.isclose(term.explained.trace, np.trace(line.T @ line))
    axis = IMAPCE(2, alpha=1.0, mu=0.0).fit(X, prior=Labels(KIND)).components_
    within = z - means
    vectors = np.linalg.eigh(within.T @ within)[1]
    np.testing.assert_allclose(np.abs(np.linalg.svd(axis @ vectors[:, -2:])[1]), 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "same",
    [
        BATCH.tolist(),
        pd.Series(BATCH, name="batch"),
        pd.Series(BATCH).astype("category"),
        pd.Series(BATCH, dtype="Int64"),
        pd.DataFrame({"batch": BATCH}),
        pl.Series("batch", BATCH),
        pl.Series("batch", BATCH.astype(str), dtype=pl.Categorical),
        pa.array(BATCH),
        pa.chunked_array([BATCH[:100].astype(str), BATCH[100:].astype(str)]),
        pa.array(BATCH.astype(str)).dictionary_encode(),
        np.array(["a", "b"])[BATCH],
        BATCH.astype(bool),
        BATCH * 0.5,
    ],
    ids=lambda same: f"{type(same).__module__.split('.')[0]} {getattr(same, 'dtype', getattr(same, 'type', ''))}",
)
def test_labels_of_every_kind_mean_the_same(same: Any) -> None:
    expected = IMAPCE(alpha=1.0, mu=0.0).fit(X, prior=Labels(BATCH))
    same_view(IMAPCE(alpha=1.0, mu=0.0).fit(X, prior=Labels(same)), expected)
    same_view(IMAPCE(alpha=1.0, mu=0.0).fit(X, prior=same), expected)


def test_whole_numbers_are_classes_where_they_repeat_and_missing_ones_are_nothing() -> None:
    assert ReadLabels.read(np.arange(100) % 20).names is not None
    assert ReadLabels.read(np.arange(100) % 21).names is None
    # Fewer than five rows for each: a measurement in a small table.
    assert ReadLabels.read(np.arange(15.0)).names is None
    for missing in (None, np.nan, pd.NA, pd.NaT):
        read = ReadLabels.read(["a", missing, "b", "a", "b"])
        assert read.names == ("a", "b")
        assert read.stated.tolist() == [True, False, True, True, True]
        assert not LabelCode.of(read).columns(read)[1].any()
    assert ReadLabels.read(pl.Series("kind", ["a", None, "b"])).title == "kind"


def test_many_dates_are_a_measurement_and_few_are_classes() -> None:
    days = pd.date_range("2024-01-01", periods=60, freq="12h")
    expected = np.arange(60) / 2
    for dates in (days.to_series(), days.tz_localize("Europe/Vienna"), pl.Series(days), pa.array(days)):
        read = ReadLabels.read(dates)
        assert read.names is None
        # The hour of the change to summer time lies outside.
        np.testing.assert_allclose(read.values - read.values[0], expected, atol=1e-9)
    few = ReadLabels.read([one.date() for one in days[:4]] * 10)
    assert few.names == ("2024-01-01", "2024-01-02")


def test_the_label_cannot_be_read_back_and_the_rest_is_shown_whatever_the_way() -> None:
    assert readable(IMAPCE(random_state=0).fit_transform(X)) > 0.4
    for prior in (Labels(BATCH), Labels(BATCH, erase=True), BATCH, Labels(GAPS)):
        model = IMAPCE(random_state=0)
        view = model.fit_transform(X, prior=prior)
        assert readable(view) < 0.1
        assert knn_accuracy(view, KIND, 15) > 0.95
        assert model.read_back_ is not None
        for place in ("view", "clusters"):
            assert model.read_back_[place] - model.read_back_["chance"] < 0.06  # type: ignore[operator]
        assert "The prior (labels) can be predicted from the view with accuracy" in model.stop_reason_
        # The table keeps its columns.
        assert model.n_features_in_ == model.components_.shape[1] == len(model.loadings()) == 8


def test_a_number_is_erased_along_its_line_beside_classes_and_columns() -> None:
    view = IMAPCE(random_state=0).fit_transform(GRADED, prior=[Labels(DEPTH, erase=True), Labels(BATCH, erase=True)])
    assert np.abs(np.corrcoef(view.T, DEPTH)[:2, 2]).max() < 1e-9
    assert np.abs(np.corrcoef(view.T, BATCH)[:2, 2]).max() < 1e-9
    model = IMAPCE(random_state=0).fit(GRADED, prior=[DEPTH, Attributes([0]), Subset(np.arange(30))])
    assert "The prior (x0, labels) can be predicted from the view with R²" in model.stop_reason_


def test_a_label_that_has_nothing_to_do_with_the_rows_takes_nothing_from_the_view() -> None:
    coin = np.random.default_rng(5).integers(0, 2, N)
    alone, beside = IMAPCE(random_state=0).fit(X), IMAPCE(random_state=0).fit(X, prior=Labels(coin))
    assert knn_accuracy(beside.transform(X, labels=coin), BATCH, 15) > 0.95
    assert abs(beside.optima_[0].kept - alone.optima_[0].kept) < 0.1


def test_engines_and_outliers_make_no_difference() -> None:
    expected = IMAPCE(alpha=2.0, mu=1.0, random_state=0).fit(X, prior=Labels(GAPS))
    for given, engine in ((X, "moment_tensor"), (sparse.csr_array(X), "sparse")):
        model = IMAPCE(alpha=2.0, mu=1.0, engine=engine, random_state=0).fit(given, prior=Labels(GAPS))
        np.testing.assert_allclose(np.linalg.svd(model.components_ @ expected.components_.T)[1], 1.0, atol=1e-6)
    strays = np.vstack([X, 1e6 * np.ones((2, 8))])
    trimmed = IMAPCE(alpha=2.0, mu=1.0, outliers="trim", random_state=0).fit(strays, prior=[*GAPS, 1, 0])
    assert trimmed.outliers_.tolist() == [N, N + 1]
    same_view(trimmed, expected)


# --- where else they go ----------------------------------------------------------------------------------------------


def test_an_exploration_finds_the_other_groups_and_a_saved_one_goes_on_with_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "session.imapce"
    labels = pd.Series(GAPS, name="batch")
    exploration = Exploration(X, prior=Labels(labels, weight=2.0), random_state=0, path=path)
    first = exploration.propose()
    exploration.accept()
    second = exploration.propose()
    assert exploration.labels_.max() >= 0
    for step in (first, second):
        left = step.unexplored
        assert readable(step.embedding[left], BATCH[left]) < 0.1
    for again in (Exploration.load(path, X), pickle.loads(pickle.dumps(exploration))):
        prior = again.record().priors[0]
        assert (prior.weight, prior.erase, prior.y.title) == (2.0, False, "batch")
        assert prior.y.entries.tolist() == [None if one is None else str(one) for one in GAPS]
        np.testing.assert_array_equal(again.propose().clusters, second.clusters)
    exploration.run()
    taken = exploration.labels_ >= 0
    assert all(len(np.unique(KIND[exploration.labels_ == c])) == 1 for c in range(len(exploration.clusters_)))
    assert taken.mean() > 0.95


def test_numbers_and_erased_labels_come_back_from_a_file_and_other_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "session.imapce"
    Exploration(X, prior=Labels(DEPTH, erase=True), random_state=0).save(path)
    prior = Exploration.load(path, X).record().priors[0]
    assert isinstance(prior, Labels)
    assert prior.erase
    np.testing.assert_array_equal(prior.y.values, DEPTH)
    header, arrays = unpacked(path)
    arrays["labels0"] = arrays["labels0"][::-1].copy()
    with pytest.raises(FileFormatError, match="fingerprint"):
        Exploration.load(repacked(path, header, arrays), X)


def test_a_model_file_tells_how_well_labels_are_read_back(tmp_path: Path) -> None:
    model = IMAPCE(random_state=0).fit(X, prior=Labels(BATCH))
    model.save(tmp_path / "view.imapce")
    again = load_model(tmp_path / "view.imapce")
    assert again.read_back_ == model.read_back_
    assert again.stop_reason_ == model.stop_reason_


def test_baselines_use_labels_or_say_that_they_cannot() -> None:
    for baseline in (CPCA(random_state=0), GCPCA(), LEACE()):
        assert readable(baseline.fit_transform(X, prior=Labels(BATCH))) < 0.2
    np.testing.assert_allclose(LEACE().fit_transform(X, prior=Labels(BATCH)), LEACE().fit_transform(X, prior=BATCH))
    assert abs(np.corrcoef(LEACE().fit_transform(GRADED, prior=Labels(DEPTH)).T, DEPTH)[2, :2]).max() < 1e-9
    for by_classes in (CTSNE(n_iter=20, random_state=0), SIDE(random_state=0)):
        same = [by_classes.fit_transform(X, prior=prior) for prior in (BATCH, Labels(BATCH))]
        np.testing.assert_array_equal(*same)
    assert readable(PCA().fit_transform(X, prior=Labels(BATCH))) > 0.4
    with pytest.raises(InvalidTypeError, match="Labels"):
        KurtosisPursuit().fit(X, prior=Labels(BATCH))
    with pytest.raises(InvalidValueError, match="300 values in 300 rows"):
        SIDE().fit(X, prior=Labels(DEPTH))
    with pytest.raises(InvalidValueError, match="row 0"):
        SIDE().fit(X, prior=Labels(GAPS))


def test_a_comparison_scores_labels_on_the_rows_that_have_them() -> None:
    comparison = compare(X, pd.Series(GAPS, name="batch"), "IMAPCE,PCA,KurtosisPursuit,SIDE", labels=KIND)
    assert list(comparison.known) == ["batch"]
    ours, pca, pursuit, side = comparison.results
    assert ours.scores["prior_chance"] == pca.scores["prior_chance"] == 0.5
    assert max(ours.scores["prior_linear"], ours.scores["prior_knn"]) < 0.57
    assert pca.scores["prior_knn"] > 0.9
    assert pursuit.left_out == "It can be told of known columns and known rows, not of known labels."
    assert "row 0" in side.left_out
    combined = compare(X, [Labels(BATCH), Labels(KIND)], "PCA", max_rows=100)
    assert list(combined.known) == ["known labels × known labels 2"]


# --- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "too few": (lambda: Labels([0, 1]), ("Labels(y)", "300", "got 2", "Attributes")),
    "no names": (lambda: ["a", "b"], ("prior must name a column of X", "got 'a'")),
    "one class": (lambda: Labels(["a"] * N), ("'a'", "prior=None")),
    "nothing": (lambda: Labels([None] * N), ("missing", "prior=None")),
    "ids": (lambda: Labels([f"id{i}" for i in range(N)]), ("300 classes in 300 rows", "id")),
    "a matrix": (lambda: Labels(X), ("Labels(y)", "one-dimensional", "list of Labels")),
    "a sparse matrix": (lambda: Labels(sparse.csr_array(X)), ("Labels(y)", "one-dimensional")),
    "a table": (lambda: Labels(pd.DataFrame(X)), ("Labels(y)", "8", "Samples(background)")),
    "text": (lambda: Labels("batch"), ("Labels(y)", "'batch'", "Attributes")),
    "infinity": (lambda: Labels([np.inf, *DEPTH[1:]]), ("Labels(y)", "finite")),
    "another index": (lambda: Labels(pd.Series(BATCH)[::-1]), ("Labels(y)", "to_numpy")),
    "a weight": (lambda: Labels(BATCH, weight=-1.0), ("Labels(weight=...)", "-1")),
    "a flag": (lambda: Labels(BATCH, erase="yes"), ("Labels(erase=...)", "'yes'")),  # type: ignore[arg-type]
    "too many directions": (lambda: Labels(np.arange(N) % 9, erase=True), ("Labels(y, erase=True)", "classes")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_labels_are_refused_in_one_sentence(case: str) -> None:
    make, parts = REFUSED[case]
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    with pytest.raises((InvalidValueError, InvalidTypeError)) as caught:
        IMAPCE(alpha=1.0, mu=0.0).fit(table, prior=make())
    assert "\n" not in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_a_session_refuses_labels_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "session.imapce"
    with pytest.raises(InvalidValueError, match=r"Labels\(y\) must have one label per row"):
        Exploration(X, prior=Labels(BATCH[:-1]), path=path)
    assert not path.exists()


def test_a_list_is_of_priors_or_of_labels_and_never_guessed() -> None:
    kinds = [[type(one).__name__ for one in as_list(prior)] for prior in (BATCH, [BATCH, DEPTH], list("ab"), [])]
    assert kinds == [["Labels"], ["Labels", "Labels"], ["Labels"], []]
    assert [type(one) for one in as_list([Samples(X), ["ab"]])] == [Samples, Labels]
    with pytest.raises(InvalidTypeError, match="int"):
        as_list([Attributes([0]), 3])


@pytest.mark.parametrize("wrap", [lambda labels: labels, Labels])
def test_a_set_has_no_order_and_so_no_label_for_a_row(wrap: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(InvalidTypeError):
        IMAPCE(n_starts=2, random_state=0).fit(X, prior=wrap(set(range(60))))

"""Leakage of the prior: predicted from views and clusters, relative to chance, and reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris, load_wine

from imapce import IMAPCE, Attributes, Labels, load_model, metrics
from imapce.choice.leakage import PriorPredictor

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_class_given_as_prior_can_hardly_be_predicted_and_the_stop_reason_reports_it(load, tmp_path: Path) -> None:
    data = load()
    columns = {f"x{i}": column for i, column in enumerate(data.data.T)}
    table = pa.table(columns | {"class": data.target.astype(str)})
    model = IMAPCE().fit(table, prior=Attributes(["class"]))
    assert model.read_back_ is not None
    assert model.read_back_["chance"] == pytest.approx(1 / 3)
    assert model.read_back_["view"] <= 1 / 3 + 0.1
    assert model.read_back_["clusters"] <= 1 / 3 + 0.1
    assert f"predicted from the view with accuracy {model.read_back_['view']:.2f}" in model.stop_reason_
    assert f"from the clusters with {model.read_back_['clusters']:.2f}; chance 0.33" in model.stop_reason_
    assert metrics.knn_accuracy(model.transform(table), data.target) <= 0.5
    model.save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert loaded.read_back_ == model.read_back_
    assert [one.seen for one in loaded.optima_] == pytest.approx([one.seen for one in model.optima_], nan_ok=True)


def test_without_columns_or_labels_as_prior_there_is_no_leakage() -> None:
    assert IMAPCE().fit(RNG.standard_normal((100, 4))).read_back_ is None


def test_a_number_for_alpha_explains_nothing_and_no_clusters_are_looked_for() -> None:
    X = RNG.standard_normal((100, 4))
    weighed = IMAPCE(alpha=1.0, mu="paper").fit(X, prior=Attributes([0]))
    assert weighed.effect_ is None
    assert weighed.read_back_ is not None
    assert weighed.read_back_["clusters"] is None


def test_the_prior_is_predicted_from_a_view_of_it_and_not_from_a_random_view() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, 2, (300, 1)).astype(float)
    predictor = PriorPredictor(known)
    assert predictor.from_view(np.column_stack([known, known])) == 1.0
    assert predictor.from_view(rng.normal(size=(300, 2))) == pytest.approx(0.5, abs=0.05)
    line = PriorPredictor(rng.normal(size=(300, 1)))
    assert line.from_view(np.column_stack([line.values, line.values])) > 0.95


def test_the_prior_is_predicted_from_its_own_classes_and_not_from_one_cluster() -> None:
    known = RNG.integers(0, 3, (300, 1)).astype(float)
    predictor = PriorPredictor(known)
    assert predictor.from_clusters(known[:, 0].astype(int)) == 1.0
    assert predictor.from_clusters(np.zeros(300, dtype=int)) == pytest.approx(1 / 3)
    number = PriorPredictor(RNG.standard_normal((300, 1)))
    assert number.chance == 0.0
    assert number.from_clusters((number.values[:, 0] > 0).astype(int)) > 0.5
    assert abs(number.from_clusters(np.arange(300) % 2)) < 0.05


def test_rows_without_a_label_are_not_predicted() -> None:
    X = RNG.standard_normal((200, 4))
    labels = np.array(["a", "b"], dtype=object)[np.arange(200) % 2]
    labels[:50] = None
    model = IMAPCE().fit(X, prior=Labels(labels))
    assert model.read_back_ is not None
    assert model.read_back_["chance"] == 0.5
    assert 0.3 < model.read_back_["view"] < 0.7

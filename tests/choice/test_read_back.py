"""What is left of the known: read from views and clusters by neighbours, against chance, and said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris, load_wine

from imapce import IMAPCE, Attributes, Labels, load_model, metrics
from imapce.choice.read_back import KnownReader

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_a_known_class_is_hardly_read_back_and_it_is_said(load, tmp_path: Path) -> None:
    data = load()
    columns = {f"x{i}": column for i, column in enumerate(data.data.T)}
    table = pa.table(columns | {"class": data.target.astype(str)})
    model = IMAPCE().fit(table, prior=Attributes(["class"]))
    assert model.read_back_ is not None
    assert model.read_back_["chance"] == pytest.approx(1 / 3)
    assert model.read_back_["view"] <= 1 / 3 + 0.1
    assert model.read_back_["clusters"] <= 1 / 3 + 0.1
    assert f"read back from the view with accuracy {model.read_back_['view']:.2f}" in model.stop_reason_
    assert f"from the clusters {model.read_back_['clusters']:.2f}; chance 0.33" in model.stop_reason_
    assert metrics.knn_accuracy(model.transform(table), data.target) <= 0.5
    model.save(tmp_path / "view.imapce")
    loaded = load_model(tmp_path / "view.imapce")
    assert loaded.read_back_ == model.read_back_
    assert [one.seen for one in loaded.optima_] == pytest.approx([one.seen for one in model.optima_], nan_ok=True)


def test_without_known_columns_or_labels_nothing_is_read_back() -> None:
    assert IMAPCE().fit(RNG.standard_normal((100, 4))).read_back_ is None


def test_a_number_for_alpha_explains_nothing_and_no_clusters_are_looked_for() -> None:
    X = RNG.standard_normal((100, 4))
    weighed = IMAPCE(alpha=1.0, mu="paper").fit(X, prior=Attributes([0]))
    assert weighed.effect_ is None
    assert weighed.read_back_ is not None
    assert weighed.read_back_["clusters"] is None


def test_a_view_that_shows_the_known_is_read_and_one_of_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, 2, (300, 1)).astype(float)
    reader = KnownReader(known)
    assert reader.from_view(np.column_stack([known, known])) == 1.0
    assert reader.from_view(rng.normal(size=(300, 2))) == pytest.approx(0.5, abs=0.05)
    line = KnownReader(rng.normal(size=(300, 1)))
    assert line.from_view(np.column_stack([line.known, line.known])) > 0.95


def test_clusters_that_are_the_known_are_read_and_one_cluster_tells_nothing() -> None:
    known = RNG.integers(0, 3, (300, 1)).astype(float)
    reader = KnownReader(known)
    assert reader.from_clusters(known[:, 0].astype(int)) == 1.0
    assert reader.from_clusters(np.zeros(300, dtype=int)) == pytest.approx(1 / 3)
    number = KnownReader(RNG.standard_normal((300, 1)))
    assert number.chance == 0.0
    assert number.from_clusters((number.known[:, 0] > 0).astype(int)) > 0.5
    assert abs(number.from_clusters(np.arange(300) % 2)) < 0.05


def test_rows_without_a_label_are_not_asked() -> None:
    X = RNG.standard_normal((200, 4))
    labels = np.array(["a", "b"], dtype=object)[np.arange(200) % 2]
    labels[:50] = None
    model = IMAPCE().fit(X, prior=Labels(labels))
    assert model.read_back_ is not None
    assert model.read_back_["chance"] == 0.5
    assert 0.3 < model.read_back_["view"] < 0.7

"""A table is encoded once for a fit with its view, once for a report, once for a session."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from helpers import grouped
from imapce import IMAPCE, Exploration, Labels
from imapce.choice.leakage import PriorPredictor
from imapce.errors import InvalidValueError
from imapce.plotting import plot_path, write_view_report
from imapce.search.objective import Objective
from imapce.tables import reader

DATA = grouped(200)
TABLE = pa.table({f"c{i}": column for i, column in enumerate(DATA.X.T)} | {"batch": DATA.batch.astype(str)})


@pytest.fixture
def encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of every table that was encoded."""
    counted: list[int] = []
    encode = reader.encode

    def counting(X: Any, **options: Any) -> Any:
        counted.append(len(X))
        return encode(X, **options)

    monkeypatch.setattr(reader, "encode", counting)
    return counted


def test_categories_that_fit_did_not_see_are_refused_or_taken_for_none() -> None:
    model = IMAPCE(n_starts=3, random_state=0).fit(TABLE)
    strange = TABLE.set_column(TABLE.column_names.index("batch"), "batch", pa.array(["new"] * len(TABLE)))
    with pytest.raises(InvalidValueError, match="unknown category 'new'"):
        model.transform(strange)
    with pytest.warns(UserWarning, match="new"):
        view = model.transform(strange, unknown="ignore")
    with pytest.warns(UserWarning, match="new"):
        assert np.array_equal(model.transform_all(strange, unknown="ignore")[0], view)
    seen = model.transform(TABLE, unknown="ignore")
    assert np.array_equal(seen, model.transform(TABLE))
    assert not np.allclose(view, seen)


def test_a_fit_and_its_view_read_the_table_once(encodings: list[int]) -> None:
    model = IMAPCE(n_starts=3, random_state=0)
    view = model.fit_transform(TABLE)
    assert encodings == [200]
    np.testing.assert_array_equal(view, model.transform(TABLE))


def test_all_views_read_the_table_once_and_are_those_of_transform(encodings: list[int]) -> None:
    model = IMAPCE(n_starts=3, random_state=0).fit(TABLE)
    encodings.clear()
    views = model.transform_all(TABLE)
    assert encodings == [200]
    assert len(views) == len(model.optima_) > 1
    for place, view in enumerate(views):
        np.testing.assert_array_equal(view, model.transform(TABLE, view=place))
    assert len(model.transform_all(TABLE, most=1)) == 1
    with pytest.raises(InvalidValueError, match=f"view must be from 0 to {len(views) - 1}, a place in optima_; got -1"):
        model.transform(TABLE, view=-1)


def test_a_path_and_a_report_read_the_table_once(encodings: list[int], tmp_path: Path) -> None:
    model = IMAPCE(n_starts=3, random_state=0).fit(TABLE)
    encodings.clear()
    plot_path(model, TABLE)
    assert encodings == [200]
    encodings.clear()
    write_view_report(model, TABLE, tmp_path / "view.html", title="a view", facts={})
    assert encodings == [200]


def test_a_session_reads_its_table_once(encodings: list[int], tmp_path: Path) -> None:
    exploration = Exploration(TABLE, estimator=IMAPCE(n_starts=3), random_state=0).run(max_steps=2)
    exploration.to_frame()
    exploration.report(tmp_path / "report.html")
    assert encodings == [200]


def test_kurtosis_and_what_is_left_of_the_known_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        original = getattr(owner, name)

        def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, counting)

    evaluate = Objective.evaluate

    def evaluated(self: Objective, *args: Any) -> Any:
        # Without μ the kurtosis is no part of f, and an evaluation asks for it beside f: that is its one time.
        before = counted["kurtosis"]
        result = evaluate(self, *args)
        counted["kurtosis"] = before
        return result

    count(Objective, "kurtosis")
    for name in ("__init__", "from_view", "from_clusters"):
        count(PriorPredictor, name)
    monkeypatch.setattr(Objective, "evaluate", evaluated)
    data = grouped(120)
    model = IMAPCE().fit(data.X, prior=Labels(data.batch))
    assert np.isfinite(model.kurtosis_)
    assert counted["kurtosis"] == 0
    assert (counted["__init__"], counted["from_view"], counted["from_clusters"]) == (1, 1, 1)

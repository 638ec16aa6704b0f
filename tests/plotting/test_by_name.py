"""Colours by the name of a column, in figures of a view, of an exploration and on its page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from imapce import IMAPCE, Exploration, ImapceError
from imapce.tables.named import NamedMatrix

SEX = np.where(np.arange(150) % 2, "f", "m")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    X = np.random.default_rng(0).normal(size=(150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    return pd.DataFrame(X, columns=list("abcd")).assign(sex=SEX)


@pytest.fixture(scope="module")
def explored(table: pd.DataFrame) -> Exploration:
    return Exploration(table, prior="sex", random_state=0).run()


def words_of(figure: object) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]  # type: ignore[attr-defined]


def test_a_view_is_coloured_by_the_name_of_a_column(table: pd.DataFrame) -> None:
    model = IMAPCE(random_state=0).fit(table, prior="sex")
    assert {"sex", "f", "m"} <= set(words_of(model.plot(table, color="sex")))
    cells = NamedMatrix(table[list("abcd")].to_numpy(), ("a", "b", "c", "d"), pa.table({"sex": SEX}))
    of_cells = IMAPCE(random_state=0).fit(cells)
    assert {"sex", "f", "m"} <= set(words_of(of_cells.plot(cells, color="sex")))
    assert "a" in words_of(of_cells.plot(cells, color="a"))


def test_of_many_axes_the_first_two_are_drawn(table: pd.DataFrame) -> None:
    model = IMAPCE(4, random_state=0).fit(table)
    (panel,) = model.plot(table, color="sex").axes
    drawn = np.vstack([points.get_offsets() for points in panel.collections])
    view = model.transform(table)
    np.testing.assert_allclose(np.sort(drawn[:, 0]), np.sort(view[:, 0]))
    np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(view[:, 1]))


def test_an_unknown_name_is_told(table: pd.DataFrame, explored: Exploration) -> None:
    model = IMAPCE(random_state=0).fit(table)
    with pytest.raises(ImapceError, match=r"color must name a column of X, got 'sexe': did you mean 'sex'\?"):
        model.plot(table, color="sexe")
    with pytest.raises(ImapceError, match="color must hold one label per row where X has no names of columns"):
        IMAPCE().fit(np.eye(9)).plot(np.eye(9), color="sex")
    with pytest.raises(ImapceError, match=r"got 'sexe': did you mean 'sex'\?"):
        explored.plot(labels="sexe")


def test_an_exploration_is_shown_by_the_name_of_a_column_or_by_several_labels(
    explored: Exploration, tmp_path: Path
) -> None:
    assert {"f", "m"} <= set(words_of(explored.plot(labels="sex")))
    explored.report(tmp_path / "one.html", labels="sex")
    assert "sex (explained away)" in (tmp_path / "one.html").read_text()
    third = np.array(["x", "y", "z"])[np.arange(150) % 3]
    explored.report(tmp_path / "two.html", labels={"sex": SEX, "third": third})
    page = (tmp_path / "two.html").read_text()
    assert "sex (explained away)" in page
    assert "sex was explained away, third was not used" in page


def test_a_saved_model_is_loaded_by_its_class(table: pd.DataFrame, tmp_path: Path) -> None:
    model = IMAPCE(random_state=0).fit(table, prior="sex")
    model.save(tmp_path / "view.imapce")
    np.testing.assert_array_equal(IMAPCE.load(tmp_path / "view.imapce").transform(table), model.transform(table))

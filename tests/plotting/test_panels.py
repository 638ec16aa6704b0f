"""Several columns of labels: a panel, or a row of panels, for each."""

from __future__ import annotations

import numpy as np
import pytest

from imapce import Labels
from imapce.comparison import compare
from imapce.errors import InvalidValueError
from imapce.plotting import plot_embedding, plot_methods


def test_several_columns_of_labels_colour_a_panel_each_with_its_own_key() -> None:
    view = np.random.default_rng(0).normal(size=(40, 2))
    columns = {"kind": ["a", "b"] * 20, "depth": np.arange(40.0), "batch": [None, "x"] * 20, "four": [1, 2] * 20}
    figure = plot_embedding(view, color=columns, title="rows")
    panels = [ax for ax in figure.axes if ax.get_xlabel() == "imapce0"]
    assert len(panels) == 4
    headings = [ax.get_legend().get_texts()[0].get_text() for ax in panels if ax.get_legend() is not None]
    assert headings == ["kind", "batch", "four"]
    assert {ax.get_subplotspec().rowspan.start for ax in panels} == {0, 1}
    with pytest.raises(InvalidValueError, match="ax is for one column of labels, got 4"):
        plot_embedding(view, color=columns, ax=panels[0])
    alone = plot_embedding(view, color={"kind": columns["kind"]})
    assert [ax.get_legend().get_texts()[0].get_text() for ax in alone.axes] == ["kind"]


def test_several_columns_of_labels_colour_the_panels_of_a_comparison_once_more() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    comparison = compare(X, Labels(np.arange(60) % 2), "PCA,LEACE")
    figure = plot_methods(comparison, color={"kind": ["a", "b", "c"] * 20, "known labels": np.arange(60) % 2})
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["PCA", "LEACE"] * 2
    first, second = (figure.axes[place].get_legend().get_texts() for place in (1, 3))
    assert [text.get_text() for text in first].count("known labels") == 1
    # What colours the rows is not said by shapes as well.
    assert [text.get_text() for text in second] == ["known labels", "0", "1"]

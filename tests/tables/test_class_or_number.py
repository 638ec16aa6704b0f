"""Whether numbers are classes or a measurement is asked in one way by labels, figures and the page."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from imapce import Exploration
from imapce.app.study import ShownColumns
from imapce.common.checks import are_classes
from imapce.plotting import plot_embedding
from imapce.priors.labels import ReadLabels


@pytest.mark.parametrize(
    ("n_values", "n_rows", "classes"), [(15, 300, True), (20, 100, True), (21, 500, False), (15, 60, False)]
)
def test_numbers_that_are_classes_as_labels_are_classes_in_figures_and_on_the_page(
    n_values: int, n_rows: int, classes: bool
) -> None:
    values = np.arange(n_rows) % n_values
    assert are_classes(n_values, n_rows) == classes
    assert (ReadLabels.read(values, n_rows).names is not None) == classes
    rows = np.random.default_rng(0).normal(size=(n_rows, 3))
    # Classes have a legend, a scale its colour bar.
    assert (plot_embedding(rows[:, :2], color=values).axes[0].get_legend() is not None) == classes
    page = ShownColumns(Exploration(rows, random_state=0), pa.table({"number": values}))
    assert page.column("number").is_number != classes

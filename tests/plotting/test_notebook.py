"""A plain notebook: every figure and every line appears, once, and nothing fills the screen."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks are made with nbformat")
nbclient = pytest.importorskip("nbclient", reason="notebooks are run with nbclient")
pytest.importorskip("ipykernel", reason="notebooks are run in IPython's kernel")

MOST_CHARACTERS = 2_000
DATA = """
import numpy as np
from imapce import IMAPCE, Exploration, Labels
from imapce.plotting import plot_embedding, plot_loadings, plot_path

rng = np.random.default_rng(0)
kind, batch = np.arange(150) % 3, rng.integers(0, 2, 150)
X = rng.normal(size=(150, 5)) + 9 * np.eye(3, 5)[kind] + 4 * batch[:, None] * np.eye(5)[4]
"""


def run(folder: Path, *cells: str) -> list[list[dict[str, Any]]]:
    """The outputs of each cell, none of which may hold more text than a screen."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (DATA, *cells)])
    here = {"metadata": {"path": str(folder)}}
    with warnings.catch_warnings():
        # Its kernel client warns of what its own libraries will change.
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=here).execute()
    outputs = [cell.outputs for cell in notebook.cells[1:]]
    for output in (one for cell in outputs for one in cell):
        assert output.output_type in ("display_data", "execute_result", "stream"), output
        text = output.text if output.output_type == "stream" else output.data.get("text/plain", "")
        assert len(text) <= MOST_CHARACTERS, text[:200]
    return outputs


def images(cell: list[dict[str, Any]]) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell)


def line(cell: list[dict[str, Any]]) -> str:
    """The one line a cell shows as its result."""
    (output,) = cell
    text: str = output["data"]["text/plain"]
    assert "\n" not in text
    return text


def test_figures_appear_without_pyplot_and_every_result_is_a_line_or_a_picture(tmp_path: Path) -> None:
    (
        figure,
        shown,
        plot,
        panels,
        model,
        optima,
        path,
        session,
        step,
        view,
        accepted,
        all_steps,
        after,
        overview,
        gone,
    ) = run(
        tmp_path,
        "plot_embedding(X[:, :2], color=kind)",
        "figure = plot_embedding(X[:, :2])\nfigure.show()",
        "model = IMAPCE(random_state=0).fit(X, prior=Labels(batch))\nmodel.plot(X, color=kind, labels=batch)",
        "model.plot(X, color={'kind': kind, 'batch': batch}, labels=batch)",
        "model",
        "model.optima_",
        "model.path_",
        "exploration = Exploration(X, prior=batch, random_state=0)\nexploration",
        "step = exploration.propose()\nstep",
        "step.views[0]",
        "exploration.accept()",
        "exploration.run().steps",
        "exploration",
        "exploration.plot(labels=kind)",
        "import sys\n'matplotlib.pyplot' in sys.modules",
    )
    for cell in (figure, shown, plot, panels, overview):
        assert images(cell) == len(cell) == 1
    # scikit-learn's own picture of an estimator stays.
    assert "sk-top-container" in model[0]["data"]["text/html"]
    assert line(optima).count("Optimum(") == line(path).count("Optimum(") == 1
    assert line(session) == "Exploration of 150 rows × 5 columns: 0 steps, 150 unexplored"
    assert line(step).startswith("Step 1: 3 clusters (50, 50, 50); most distinct ")
    assert re.search(r": x\d (high|low) \(\S+ against \S+\)", line(step))
    assert line(view).startswith("View(3 clusters (50, 50, 50); Optimum(")
    assert line(accepted).startswith("AcceptedStep(50 rows: ")
    assert all_steps[0]["data"]["text/plain"].count("AcceptedStep(") == 2
    assert line(after).endswith("150 rows in 3 clusters (50, 50, 50), 0 unexplored; Every row is taken.")
    for cell, picture in ((session, False), (step, True), (after, True)):
        assert ("data:image/png;base64," in cell[0]["data"]["text/html"]) is picture
    assert line(gone) == "False"


@pytest.mark.parametrize(
    "first", ["import matplotlib.pyplot as plt", "%matplotlib inline\nimport matplotlib.pyplot as plt"]
)
def test_with_pyplot_every_figure_is_shown_once_and_none_stays_open(first: str, tmp_path: Path) -> None:
    _, result, asked, twice, assigned, own, report, many = run(
        tmp_path,
        first,
        "plot_embedding(X[:, :2])",
        "figure = plot_embedding(X[:, :2])\nplt.show()",
        "figure.show()",
        "figure = plot_embedding(X[:, :2])\nfigure",
        "plt.plot([1, 2])\nplot_embedding(X[:, :2])\nplt.show()",
        "session = Exploration(X, random_state=0)\nsession.accept()\nsession.report('page.html')\nsession",
        "for _ in range(25):\n    plot_embedding(X[:, :2])\nprint(len(plt.get_fignums()))\nplt.close('all')",
    )
    for cell in (result, asked, twice, assigned):
        assert images(cell) == len(cell) == 1
    assert images(own) == 2
    # Figures of a page or of a picture in HTML are nobody's to show.
    assert images(report) == 0
    assert [output["text"] for output in many] == ["20\n"]


def test_a_window_is_asked_for_only_where_there_is_one() -> None:
    import matplotlib.pyplot as plt
    import numpy as np

    from imapce.plotting import plot_embedding

    plt.switch_backend("agg")
    before = plt.get_fignums()
    figure = plot_embedding(np.eye(3)[:, :2])
    assert figure.canvas.manager is None
    figure.show(warn=False)
    assert plt.get_fignums() == before

"""The frame of the experiments: cells that outlive an interruption, tables with the paper's number beside ours."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from experiments import cells as cells_module
from experiments import paper
from experiments.cells import Cells, fingerprint
from experiments.methods import IMAPCE_PAPER, view
from experiments.problems import ADULT_PRIORS, TABLE_1, Problem
from experiments.results import Row, show
from experiments.running import Run
from experiments.tuning import ctsne_grid, fair_nerv_draws
from rich.console import Console

from imapce import Attributes, datasets


@pytest.fixture
def small_problem() -> Problem:
    data = datasets.make_synthetic(200, random_state=0)
    structure = {"celltype": data.labels["celltype"]}
    return Problem("small", 0, data.X, Attributes([0, 1, 2, 3]), data.labels["batch"], structure, 200.0, "nls")


def test_a_finished_cell_is_not_computed_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def compute() -> dict[str, object]:
        calls.append(1)
        return {"score": 0.25, "embedding": np.eye(3)}

    first = Cells(tmp_path).recall({"data": "a"}, "imapce.search.stiefel", compute)
    again = Cells(tmp_path).recall({"data": "a"}, "imapce.search.stiefel", compute)
    assert calls == [1]
    assert again["score"] == first["score"] == 0.25
    np.testing.assert_array_equal(again["embedding"], np.eye(3))
    Cells(tmp_path).recall({"data": "b"}, "imapce.search.stiefel", compute)
    assert calls == [1, 1]


def test_an_interrupted_cell_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cells(tmp_path).recall({"data": "a"}, "imapce.search.stiefel", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_fresh_computes_every_cell_once_more(tmp_path: Path) -> None:
    Cells(tmp_path).recall({"data": "a"}, "imapce.search.stiefel", lambda: {"score": 1.0})
    fresh = Cells(tmp_path, fresh=True)
    assert fresh.recall({"data": "a"}, "imapce.search.stiefel", lambda: {"score": 2.0})["score"] == 2.0
    # What this run has made itself stands: two tables share cells.
    assert fresh.recall({"data": "a"}, "imapce.search.stiefel", lambda: {"score": 3.0})["score"] == 2.0


def test_changed_code_makes_cells_anew_and_changed_comments_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "experiments_example"
    package.mkdir()
    source = package / "__init__.py"
    monkeypatch.syspath_prepend(tmp_path)

    def digest(text: str) -> str:
        source.write_text(text)
        cells_module.fingerprint.cache_clear()
        return fingerprint("experiments_example")

    plain = digest('"""Words."""\nx = 1\n')
    assert digest('"""Other words."""\n# why\nx = 1\n') == plain
    assert digest('"""Words."""\nx = 2\n') != plain
    cells_module.fingerprint.cache_clear()


def test_the_fingerprint_follows_imports() -> None:
    trees = {
        name: fingerprint(name) for name in ("imapce.search.stiefel", "imapce.search.race", "imapce.estimators.imapce")
    }
    assert len(set(trees.values())) == 3


def test_a_view_is_the_estimators_own(tmp_path: Path, small_problem: Problem) -> None:
    from imapce import IMAPCE

    cell = view(Cells(tmp_path), IMAPCE_PAPER, small_problem, 3)
    own = IMAPCE(alpha=1.0, mu=200.0, random_state=3).fit_transform(small_problem.X, prior=small_problem.prior)
    np.testing.assert_allclose(cell["embedding"], own, rtol=1e-5, atol=1e-5)
    assert cell["seconds"] > 0


def test_a_table_prints_the_papers_number_beside_ours_and_writes_all_of_it(tmp_path: Path) -> None:
    printed = io.StringIO()
    rows = [
        Row("synthetic", "IMAPCE", "NLS", 0.45, [0.44, 0.46], "seeds 0–1", {"NLS / ceiling": 0.9}, 0.5),
        Row("synthetic", "LEACE", "NLS", None, [0.4], "seed 0"),
    ]
    show("table", rows, tmp_path, Console(file=printed, width=60))
    line = next(line for line in printed.getvalue().splitlines() if "IMAPCE" in line)
    assert [part.strip() for part in line.split("│")[1:-1]] == [
        *("synthetic", "IMAPCE", "NLS", "0.45", "0.450 ± 0.010", "0.900", "seeds 0–1", "0.50")
    ]
    with open(tmp_path / "table.csv", newline="") as stream:
        written = list(csv.DictReader(stream))
    assert written[0]["paper"] == "0.45"
    assert float(written[0]["ours"]) == pytest.approx(0.45)
    assert float(written[0]["difference"]) == pytest.approx(0.0)
    assert written[1]["paper"] == written[1]["NLS / ceiling"] == ""


def test_seeds_overrule_and_one_is_enough_where_nothing_is_random(tmp_path: Path, small_problem: Problem) -> None:
    from experiments.methods import CPCA

    def count(quick: bool, seeds: int | None, method: object) -> int:
        return Run(Cells(tmp_path), tmp_path, Console(), quick, seeds).count(method, small_problem)

    assert count(False, None, IMAPCE_PAPER) > count(True, None, IMAPCE_PAPER) >= 1
    assert count(True, 7, IMAPCE_PAPER) == 7
    assert count(False, 7, CPCA) == 1


def test_every_table_of_the_paper_is_covered() -> None:
    assert set(paper.TABLE_1) == set(paper.SECONDS) == set(TABLE_1)
    assert set(paper.LINEAR) == set(paper.SVM) == set(paper.ABLATION_SVM)
    assert set(paper.ABLATION_NLS) == {"synthetic", *ADULT_PRIORS}
    for numbers in (*paper.TABLE_1.values(), *paper.LINEAR.values(), *paper.SVM.values()):
        assert len(numbers) == len(paper.METHODS)
    assert len(paper.IMAGE_SEGMENTATION) == 8
    assert len(paper.MNIST_EXPLORATION) == 11


def test_hyper_parameters_come_from_the_papers_ranges() -> None:
    grid = ctsne_grid()
    assert len(grid) == 18
    assert {one["perplexity"] for one in grid} == {50, 100, 200}
    draws = fair_nerv_draws()
    assert len(draws) == 20
    assert all(0 <= one["tau_in"] < one["tau_out"] <= 1 and 0.5 <= one["omega"] <= 0.99 for one in draws)

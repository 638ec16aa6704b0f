"""The frame of the experiments: cells that outlive an interruption, tables with the paper's number beside ours."""

from __future__ import annotations

import csv
import doctest
import io
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from experiments import (
    batch_cases,
    batch_scores,
    batches,
    correcting,
    judging,
    known,
    known_cells,
    made_tables,
    noise_tables,
    paper,
    plain_rows,
    planted_tables,
    rival_graphs,
    rival_mixtures,
    rival_prototypes,
    rivals,
    stories,
    table_blocks,
    table_cells,
    table_constants,
    table_noise,
    table_stability,
    table_suite,
)
from experiments import cells as cells_module
from experiments.__main__ import EXPERIMENTS, experiment
from experiments.cells import Cells, fingerprint
from experiments.methods import IMAPCE_PAPER, view
from experiments.problems import ADULT_PRIORS, TABLE_1, Problem
from experiments.provenance import commit, note_run, read_runs
from experiments.results import Row, show
from experiments.running import Run
from experiments.tuning import ctsne_grid, fair_nerv_draws
from rich.console import Console

from imapce import IMAPCE, Attributes, Samples, datasets


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

    first = Cells(tmp_path).recall({"data": "a"}, "imapce.search.descent", compute)
    again = Cells(tmp_path).recall({"data": "a"}, "imapce.search.descent", compute)
    assert calls == [1]
    assert again["score"] == first["score"] == 0.25
    assert set(again) == {"score", "embedding"}
    np.testing.assert_array_equal(again["embedding"], np.eye(3))
    Cells(tmp_path).recall({"data": "b"}, "imapce.search.descent", compute)
    assert calls == [1, 1]


def test_the_time_of_an_interrupted_run_is_that_of_all_its_cells(tmp_path: Path) -> None:
    first = Cells(tmp_path)
    for data in ("a", "b"):
        first.recall(
            {"data": data}, "imapce.search.descent", lambda: {"score": float(np.linalg.svd(np.eye(200))[1][0])}
        )
    again = Cells(tmp_path)
    for data in ("a", "b", "a"):
        again.recall({"data": data}, "imapce.search.descent", lambda: {"score": 0.0})
    assert again.seconds == pytest.approx(first.seconds)
    assert first.seconds > 0


def test_where_figures_come_from_is_kept_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAPCE_COMMIT", "abc1234")
    for name in ("table1", "adult"):
        note_run(tmp_path, name, 12.34, load=0.1)
    runs = read_runs(tmp_path)
    assert list(runs) == ["adult", "table1"]
    assert runs["adult"]["commit"] == "abc1234"
    assert runs["adult"]["seconds"] == 12.3


def test_the_code_is_told_by_its_last_change_and_of_an_archive_by_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IMAPCE_COMMIT", raising=False)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("one = 1\n")
    assert commit(tmp_path) == "1.2.3"
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    for words in (("init", "-q"), ("add", "src"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    told = commit(tmp_path)
    assert re.fullmatch(r"[0-9a-f]{7,}", told)
    (tmp_path / "src" / "code.py").write_text("one = 2\n")
    assert commit(tmp_path) == f"{told}+"


def test_an_interrupted_cell_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> dict[str, object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cells(tmp_path).recall({"data": "a"}, "imapce.search.descent", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_fresh_computes_every_cell_once_more(tmp_path: Path) -> None:
    Cells(tmp_path).recall({"data": "a"}, "imapce.search.descent", lambda: {"score": 1.0})
    fresh = Cells(tmp_path, fresh=True)
    assert fresh.recall({"data": "a"}, "imapce.search.descent", lambda: {"score": 2.0})["score"] == 2.0
    # What this run has made itself stands: two tables share cells.
    assert fresh.recall({"data": "a"}, "imapce.search.descent", lambda: {"score": 3.0})["score"] == 2.0


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
        name: fingerprint(name) for name in ("imapce.search.descent", "imapce.search.race", "imapce.estimators.imapce")
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
        written = {(line["row"], line["column"]): line["value"] for line in csv.DictReader(stream)}
    ours, other = "synthetic · IMAPCE · NLS", "synthetic · LEACE · NLS"
    assert {column: value for (row, column), value in written.items() if row == ours} == {
        "paper": "0.45",
        "ours": "0.45",
        "sd": "0.01",
        "NLS / ceiling": "0.9",
        "runs": "seeds 0–1",
        "seconds": "0.5",
    }
    assert written[other, "ours"] == "0.4"
    assert (other, "paper") not in written


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


DOCUMENTED = (
    *(batch_cases, batch_scores, batches, correcting, judging, known, rivals, stories),
    *(made_tables, noise_tables, plain_rows, planted_tables, rival_graphs, rival_mixtures),
    rival_prototypes,
    *(table_blocks, table_cells, table_constants, table_noise, table_stability, table_suite),
)


@pytest.mark.parametrize("module", DOCUMENTED, ids=lambda one: one.__name__)
def test_examples_of_the_suite_run(module: object) -> None:
    failed, tried = doctest.testmod(module, extraglobs={"np": np})
    assert tried > 0
    assert failed == 0


def test_every_experiment_is_there_by_its_name() -> None:
    for name in EXPERIMENTS:
        assert experiment(name).__name__ == name


def test_views_are_judged_with_five_neighbours_where_rows_are_few() -> None:
    assert (judging.neighbours(150), judging.neighbours(151)) == (5, 15)
    view = np.random.default_rng(0).standard_normal((120, 2))
    labels = np.repeat(["a", "b"], [60, 60])
    assert 0.3 < judging.accuracy(view, labels) < 0.7
    assert judging.accuracy(view + 20 * (labels == "b")[:, None], labels) == 1.0
    assert judging.accuracy(view, labels) == judging.accuracy(view, labels)


def test_within_counts_only_classes_of_the_known_that_hold_enough() -> None:
    rng = np.random.default_rng(0)
    looked_for = np.tile(["x", "y"], 50)
    known_of = np.repeat(["many", "few"], [80, 20])
    apart = rng.standard_normal((100, 1)) + 20 * (looked_for == "y")[:, None]
    # In the class of 20 rows nothing can be told, which would pull the mean down if it counted.
    apart[80:] = 0.0
    assert judging.within(apart, looked_for, known_of) == 1.0
    assert np.isnan(judging.within(apart, looked_for, looked_for))


def test_a_planted_batch_is_confounded_with_the_class_and_shifts_every_column() -> None:
    story = stories.tell("iris", stories.PLANTED, "class")
    share = [np.mean(story.known[story.looked_for == one] == "1") for one in ("0", "1", "2")]
    assert share[1] > 0.5 > max(share[0], share[2])
    Z = correcting.standardised(table_suite.read("iris").X)
    shift = (story.X - Z)[story.known == "1"]
    assert np.ptp(shift, axis=0) == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(story.X[story.known == "0"], Z[story.known == "0"], atol=1e-12)
    assert len(stories.STORIES) == 12


def batch_of_two_kinds(n_rows: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of two kinds in two batches; the batch moves them as far as the kinds are apart."""
    rng = np.random.default_rng(0)
    kind, batch = np.arange(n_rows) % 2, (np.arange(n_rows) // 2) % 2
    X = rng.standard_normal((n_rows, 4)) + 8 * np.outer(kind, [1, 1, 0, 0]) + 8 * np.outer(batch, [0, 0, 1, 1])
    return X, kind.astype(str), batch.astype(str)


@pytest.mark.parametrize("method", correcting.METHODS)
def test_every_way_takes_the_batch_and_leaves_the_kinds(method: str) -> None:
    if not correcting.is_installed(method):
        pytest.skip(f"{' and '.join(correcting.NEEDS[method])} are not installed")
    X, kind, batch = batch_of_two_kinds()
    found = correcting.corrected(method, X, batch)
    scores = batch_scores.scores(found.space, kind, batch)
    assert scores["content"] > 0.9
    # Of few rows in few columns Harmony leaves more than the others.
    most = {correcting.NOTHING: 1.0, correcting.HARMONY: 0.9}.get(method, 0.75)
    assert scores["read back"] <= most
    if method == correcting.NOTHING:
        assert scores["read back"] > 0.95
    # Harmony corrects components: there are no columns to be had.
    assert (found.columns is None) == (method == correcting.HARMONY)


def test_ours_gives_back_the_columns_a_batch_was_planted_in() -> None:
    rng = np.random.default_rng(0)
    kind = np.repeat(["x", "y"], 400)
    rows = rng.standard_normal((800, 6)) + 6 * (kind == "y")[:, None] * [1, 1, 0, 0, 0, 0]
    case = batch_cases.planted("small", rows, kind, (0.7, 0.4), n_shifted=3)
    assert case.truth is not None
    assert case.shifted is not None
    _, columns, words = batches.ours(case.X, case.batch)
    ours = batch_scores.column_errors(columns, case.truth, case.shifted)
    before = batch_scores.column_errors(case.X, case.truth, case.shifted)
    assert ours["shifted"] < 0.5 * before["shifted"]
    assert before["others"] < 1e-12 < before["shifted"]
    assert "can be predicted from the view" in words


def test_what_is_not_installed_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert correcting.missing((correcting.MEANS,)) == ""
    monkeypatch.setitem(correcting.NEEDS, correcting.MEANS, ("no_such_library",))
    words = correcting.missing((correcting.MEANS,))
    assert "no_such_library" in words
    assert "imapce[batches]" in words
    assert words.count(". ") == 0


def test_a_class_that_vanishes_among_others_is_not_apart() -> None:
    X, kind, _ = batch_of_two_kinds()
    assert batch_scores.apart(X, kind, "1")["told"] == 1.0
    noise = np.random.default_rng(0).standard_normal(X.shape)
    assert batch_scores.apart(noise, kind, "1")["told"] < 0.8


def test_a_story_is_told_by_views_and_clusters_and_kept_as_cells(tmp_path: Path) -> None:
    X, kind, batch = batch_of_two_kinds()
    story = stories.Story("small", "batch", "kind", X, batch, kind)
    run = Run(Cells(tmp_path), tmp_path, Console(file=io.StringIO()))
    scores = known_cells.our_view(run, story)
    assert scores["content"] > 0.95
    assert scores["read back"] < 0.75
    plain = known_cells.plain_view(run, story, correcting.NOTHING)
    assert plain["read back"] > 0.95
    labels = known_cells.our_clusters(run, story)
    assert len(set(zip(labels.tolist(), kind.tolist(), strict=True))) == 2
    assert known.of_one_class(labels, batch, kind) == []
    assert {len(np.unique(batch[labels == one])) for one in np.unique(labels)} == {2}
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.data("tables/mouse.csv.gz")
def test_random_labels_are_tried_on_ten_tables() -> None:
    assert known.random_tables() == [
        *("biopsy", "crabs", "ecoli", "glass", "iris", "olive", "penguins", "vehicle", "vowel", "yeast_genes")
    ]


def test_a_category_by_two_doors_is_one_answer(tmp_path: Path) -> None:
    X, classes = planted_tables.three_gaussians(0, n_rows=240, n_columns=4, distance=9.0)
    batch = (np.random.default_rng(0).random(240) < 0.5).astype(int)
    table = table_suite.Table("small", X + 3 * batch[:, None], classes, {"batch": batch.astype(str)})
    cell = known_cells.doors(Run(Cells(tmp_path), tmp_path, Console(file=io.StringIO())), table, "batch")
    assert cell["angle"] < 1e-3
    assert cell["agreement"] == 1.0


def test_the_authors_search_is_one_descent_of_the_same_objective() -> None:
    pytest.importorskip("pymanopt", reason="a peer to compare with")
    from experiments.authors_search import SteepestIMAPCE

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    X[:100, 0] += 6
    background = Samples(rng.standard_normal((100, 6)))
    settings = {"alpha": 1.0, "mu": 100.0, "random_state": 0}
    theirs = SteepestIMAPCE(**settings).fit(X, prior=background)
    ours = IMAPCE(**settings).fit(X, prior=background)
    assert theirs.components_ @ theirs.components_.T == pytest.approx(np.eye(2), abs=1e-8)
    assert len(theirs.optima_) == 1
    assert ours.optima_[0].objective <= theirs.optima_[0].objective + 1e-6

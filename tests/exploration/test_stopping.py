"""Whether structure is left: the level of the test, what it finds, what it takes for no cluster, how a run ends."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from archives import repacked, unpacked
from commands import refusal, succeed
from imapce import IMAPCE, Attributes, Exploration, Samples, Subset
from imapce.errors import FileFormatError, ImapceError
from imapce.exploration import stopping
from imapce.exploration.stopping import DRAWS, ENOUGH, TESTED_ROWS, StructureTest, clearest_cut, clearest_cut_by_chance
from imapce.exploration.traits import p_value_in_words
from imapce.tables.files import write_table

Array = NDArray[np.float64]


def gaussian(n: int, d: int, rng: np.random.Generator) -> Array:
    """Random axes, standard deviations up to a hundred times apart."""
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (rng.standard_normal((n, d)) * np.logspace(0, rng.uniform(0, 2), d)) @ axes + rng.uniform(-5, 5, d)


def two_clusters(n: int, d: int, share: float, apart: float, rng: np.random.Generator) -> Array:
    X = rng.standard_normal((n, d))
    X[: round(share * n), 0] += apart
    return X


def p_values(table: Callable[[np.random.Generator], Array], runs: int) -> Array:
    return np.array([StructureTest(run).p_value(table(np.random.default_rng([run, 7]))) for run in range(runs)])


def quick(X: Any, **options: Any) -> Exploration:
    estimator = IMAPCE(alpha=1.0, mu=50.0, n_starts=3)
    return Exploration(X, **{"estimator": estimator, "random_state": 0, **options})


def blob(n: int = 200) -> Array:
    return np.random.default_rng(0).standard_normal((n, 5))


# --- the test itself --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(60, 2), (100, 4)])
def test_one_gaussian_is_rejected_as_often_as_the_level_says(n: int, d: int) -> None:
    found = p_values(lambda rng: gaussian(n, d, rng), 40)
    for level in (0.05, 0.1, 0.5):
        low, high = binom.interval(0.999, 40, level)
        assert low <= (found <= level).sum() <= high, level


@pytest.mark.parametrize(("share", "apart"), [(0.5, 4.0), (0.2, 4.0), (0.1, 6.0), (0.05, 6.0)])
def test_two_clusters_are_found(share: float, apart: float) -> None:
    found = p_values(lambda rng: two_clusters(300, 10, share, apart, rng), 4)
    assert (found <= 0.05).sum() >= 3


@pytest.mark.parametrize(
    "table",
    [
        lambda rng: rng.standard_normal((150, 4)) / np.sqrt(rng.chisquare(3, (150, 1)) / 3),
        lambda rng: rng.standard_t(5, (150, 4)),
        lambda rng: np.vstack([rng.standard_normal((147, 4)), rng.standard_normal((3, 4)) + 30]),
    ],
    ids=["elliptical t(3)", "independent t(5)", "three outliers"],
)
def test_heavy_tails_and_a_few_outliers_are_no_clusters(table: Callable[[np.random.Generator], Array]) -> None:
    # At a level of 0.1 more than 6 of 20 happen twice in a thousand times.
    assert (p_values(table, 20) <= 0.05).sum() <= 6


def test_it_does_not_depend_on_unit_origin_or_rotation() -> None:
    rng = np.random.default_rng(3)
    X = two_clusters(200, 5, 0.5, 2.5, rng)
    moved = 1e-3 * X @ np.linalg.qr(rng.standard_normal((5, 5)))[0] + 1e3
    assert StructureTest(0).p_value(moved) == StructureTest(0).p_value(X)


def test_draws_end_early_where_p_is_large_and_are_kept() -> None:
    clearest_cut_by_chance.cache_clear()
    p = StructureTest(0).p_value(blob())
    drawn = clearest_cut_by_chance.cache_info().misses
    assert p == ENOUGH / drawn
    assert drawn < DRAWS
    split = two_clusters(200, 5, 0.5, 6.0, np.random.default_rng(1))
    assert StructureTest(0).p_value(split) == 1 / (DRAWS + 1)
    assert StructureTest(0).p_value(blob()) == p
    assert clearest_cut_by_chance.cache_info().misses == DRAWS


def test_another_seed_draws_anew_and_the_same_one_the_same() -> None:
    first = [clearest_cut_by_chance(0, 50, 3, number) for number in (1, 0)]
    clearest_cut_by_chance.cache_clear()
    assert [clearest_cut_by_chance(0, 50, 3, number) for number in (1, 0)] == first
    assert clearest_cut_by_chance(1, 50, 3, 0) != first[1]


def test_half_and_half_leave_nothing_unexplained_and_points_on_a_line_little() -> None:
    sides = np.repeat([[-1.0], [1.0]], 50, axis=0)
    assert clearest_cut(sides) == pytest.approx(1.0)
    assert 0 < clearest_cut(np.linspace(-1.7, 1.7, 99)[:, None]) < 0.5


@pytest.mark.parametrize(
    "points",
    [
        np.ones((20, 3)),
        np.zeros((20, 0)),
        np.eye(2),
        np.eye(4),
        np.repeat([[0.0, 0.0], [1.0, 2.0]], [99, 1], axis=0),
        np.vstack([np.zeros((90, 3)), np.random.default_rng(0).standard_normal((10, 3))]),
        np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float),
    ],
    ids=["constant", "no axes", "two rows", "as many axes as rows", "one odd row", "mostly one point", "binary"],
)
def test_odd_tables_have_a_p_value(points: Array) -> None:
    assert 0 < StructureTest(0).p_value(points) <= 1


def test_rows_that_do_not_vary_and_rows_too_few_show_nothing() -> None:
    assert StructureTest(0).p_value(np.ones((20, 3))) == 1.0
    assert StructureTest(0).p_value(np.random.default_rng(0).standard_normal((4, 9))) == 1.0


# --- the rows of a step -----------------------------------------------------------------------------------------------


def test_the_rows_left_are_tested_and_not_those_already_known() -> None:
    X = blob(240)
    X[:60, 0] += 10
    assert quick(X).test() == 0.01
    assert quick(X, prior=Subset(np.arange(60))).test() > 0.1


@pytest.mark.parametrize("alpha", [1.0, "auto"])
@pytest.mark.parametrize("erase", [False, True])
def test_a_known_column_is_no_structure_that_is_left(alpha: float | str, erase: bool) -> None:
    X = blob()
    X[:100, 1] += 10
    estimator = IMAPCE(alpha=alpha, mu=50.0, n_starts=3)
    assert quick(X, estimator=estimator).test() == 0.01
    assert quick(X, estimator=estimator, prior=Attributes([1], erase=erase)).test() > 0.05


def test_columns_without_weight_are_not_known() -> None:
    X = blob()
    X[:100, 1] += 10
    assert quick(X, estimator=IMAPCE(alpha=0.0, mu=50.0), prior=Attributes([1])).test() == 0.01


def test_what_is_correlated_with_the_known_goes_where_it_is_explained_away() -> None:
    rng = np.random.default_rng(1)
    group = np.arange(300) % 2
    X = rng.standard_normal((300, 6)) * 0.1
    X[:, 2:] = rng.standard_normal((300, 4))
    X[:, :2] += group[:, None]
    assert quick(X, estimator=IMAPCE(n_starts=3), prior=Attributes([0])).test() > 0.05
    assert quick(X, prior=Attributes([0])).test() == 0.01


def test_of_many_rows_a_seeded_sample_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def draw(seed: int, n: int, q: int, number: int) -> float:
        asked.append((n, q))
        return clearest_cut_by_chance(seed, n, q, number)

    monkeypatch.setattr(stopping, "clearest_cut_by_chance", draw)
    X = np.random.default_rng(0).standard_normal((TESTED_ROWS + 500, 4))
    first = quick(X, prior=Samples(X[:50])).test()
    assert set(asked) == {(TESTED_ROWS, 4)}
    assert quick(X, prior=Samples(X[:50])).test() == first


# --- how a run ends ---------------------------------------------------------------------------------------------------


def test_nothing_is_tested_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any) -> float:
        raise AssertionError("the test was run")

    monkeypatch.setattr(StructureTest, "of_step", asked)
    exploration = quick(blob(), clusterer="dpgmm").run()
    assert exploration.steps
    assert {step.p_value for step in exploration.steps} == {None}
    with pytest.raises(AssertionError, match="the test was run"):
        quick(blob(), clusterer="dpgmm").run(significance=0.05)


def test_a_run_ends_where_one_gaussian_is_left() -> None:
    exploration = quick(blob(), clusterer="dpgmm").run(significance=0.05)
    p = exploration.test()
    assert p > 0.05
    sentence = f"No structure is left that one Gaussian would not show (p = {p:.2g}); the 200 rows left are not split"
    sentence += " further."
    assert exploration.stop_reason == sentence
    assert exploration.done
    assert exploration.steps == []


def test_the_end_belongs_to_the_proposal_and_not_to_the_session() -> None:
    stopped = quick(blob(), clusterer="dpgmm").run(significance=0.05)
    accepted = stopped.accept()
    assert accepted.p_value is not None
    assert accepted.p_value > 0.05
    assert stopped.undo().stop_reason is None
    assert stopped.run(significance=0.05).done
    assert stopped.steps == []
    by_default = stopped.run()
    np.testing.assert_array_equal(by_default.labels_, quick(blob(), clusterer="dpgmm").run().labels_)


def test_clear_clusters_are_taken_as_without_the_test() -> None:
    group = np.arange(160) % 4
    X = np.random.default_rng(0).standard_normal((160, 8))
    X[:, :4] += 8 * np.eye(4)[group]
    tested, plain = quick(X).run(2, significance=0.05), quick(X).run(2)
    np.testing.assert_array_equal(tested.labels_, plain.labels_)
    assert [step.p_value for step in tested.steps] == [0.01, 0.01]


@pytest.mark.parametrize("bad", [0, 1, -0.1, 5, float("nan"), "x", True])
def test_a_level_outside_zero_and_one_is_refused(bad: Any) -> None:
    exploration = quick(blob())
    with pytest.raises(ImapceError, match=r"significance must .* got") as caught:
        exploration.run(significance=bad)
    assert "\n" not in str(caught.value)
    assert exploration.steps == []


# --- where it is kept and shown ---------------------------------------------------------------------------------------


@pytest.fixture
def tested() -> Exploration:
    X = blob()
    X[:100, :2] += 8
    exploration = quick(X)
    assert exploration.test() == 0.01
    exploration.accept()
    return exploration


def test_a_saved_session_keeps_it_and_older_files_have_none(tested: Exploration, tmp_path: Path) -> None:
    X = blob()
    X[:100, :2] += 8
    tested.save(tmp_path / "new")
    assert Exploration.load(tmp_path / "new", X).steps[0].p_value == 0.01
    header, arrays = unpacked(tmp_path / "new")
    del header["steps"][0]["p_value"]
    assert Exploration.load(repacked(tmp_path / "old", header, arrays), X).steps[0].p_value is None
    for bad in (2.0, 0.0, "x", [1]):
        header["steps"][0]["p_value"] = bad
        with pytest.raises(FileFormatError):
            Exploration.load(repacked(tmp_path / "bad", header, arrays), X)


def test_the_report_says_it_where_it_is_known(tested: Exploration, tmp_path: Path) -> None:
    tested.report(tmp_path / "tested.html")
    assert p_value_in_words(0.01)[1:] in html.unescape((tmp_path / "tested.html").read_text())
    X = blob()
    X[:100, :2] += 8
    quick(X).run(1).report(tmp_path / "plain.html")
    assert "for one Gaussian" not in (tmp_path / "plain.html").read_text()


def test_the_command_stops_by_it_and_prints_it(tmp_path: Path) -> None:
    X = blob()
    write_table({f"c{j}": column for j, column in enumerate(X.T)}, tmp_path / "blob.csv")
    quickly = ("explore", tmp_path / "blob.csv", "--starts", 3)
    assert "No structure beyond chance: " in " ".join(succeed(*quickly).split())
    stopped = " ".join(succeed(*quickly, "--clusterer", "dpgmm", "--significance", 0.05).split())
    assert "No structure is left that one Gaussian would not show (p =" in stopped
    assert "0 rows in 0 clusters" in stopped
    X[:100, :2] += 8
    write_table({f"c{j}": column for j, column in enumerate(X.T)}, tmp_path / "two.csv")
    words = ("explore", tmp_path / "two.csv", "--starts", 3, "--max-steps", 1)
    assert re.search(r"overlap\s+stability\s+p\s", succeed(*words, "--significance", 0.05))
    assert not re.search(r"overlap\s+stability\s+p\s", succeed(*words))
    assert "significance must lie between 0 and 1" in refusal("explore", tmp_path / "blob.csv", "--significance", 2)
    assert "significance must be at least 0.01" in refusal("explore", tmp_path / "blob.csv", "--significance", 0.001)

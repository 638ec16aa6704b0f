"""Everyday tables of the experiments: what is read and drawn, who clusters it beside us, and how all is summed up."""

from __future__ import annotations

import ast
import csv
import importlib.util
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments import cells as cells_module
from experiments import (
    made_tables,
    noise_tables,
    plain_rows,
    planted_tables,
    rivals,
    table_blocks,
    table_cells,
    table_constants,
    table_explorations,
    table_generated,
    table_known,
    table_noise,
    table_planted,
    table_stability,
    table_suite,
    table_views,
)
from experiments.cells import Cells
from experiments.running import Run
from experiments.table_blocks import Block, Wanted, leave_one_out, rules_block, wanted_block
from rich.console import Console
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from imapce.common.settings import ClusterSettings
from imapce.errors import DataNotFoundError


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        pytest.param("vowel", (990, 10), 11, marks=pytest.mark.data("tables/vowel.csv.gz")),
        pytest.param("zoo", (101, 16), 7, marks=pytest.mark.data("tables/zoo.csv.gz")),
        pytest.param("ionosphere", (351, 34), 2, marks=pytest.mark.data("tables/ionosphere.csv.gz")),
        pytest.param("penguins", (333, 4), 3, marks=pytest.mark.data("tables/penguins.csv.gz")),
        pytest.param("mouse", (1080, 28), 8, marks=pytest.mark.data("tables/mouse.csv.gz")),
        ("wine", (178, 13), 3),
    ],
)
def test_a_table_is_its_features_and_its_classes(name: str, shape: tuple[int, int], n_classes: int) -> None:
    table = table_suite.read(name)
    assert table.X.shape == shape
    assert table.n_classes == n_classes
    assert np.isfinite(table.X).all()
    assert table.most_frequent.sum() == max(np.unique(table.classes, return_counts=True)[1])
    assert table.digest == table_suite.read(name).digest != table_suite.read("iris").digest


@pytest.mark.data("tables/vowel.csv.gz")
def test_who_speaks_is_known_about_a_vowel_and_no_feature() -> None:
    known = table_suite.read("vowel").known
    assert {name: len(np.unique(values)) for name, values in known.items()} == {"speaker": 15, "sex": 2}


@pytest.mark.data("tables/mouse.csv.gz")
def test_what_begins_with_known_is_known_and_no_feature() -> None:
    known_of = {name: len(np.unique(values)) for name, values in table_suite.read("mouse").known.items()}
    assert known_of == {"genotype": 2, "treatment": 2, "behaviour": 2}


def test_the_suite_is_of_33_tables_in_three_groups() -> None:
    assert [len(names) for names in table_suite.GROUPS.values()] == [14, 13, 6]
    assert len(set(table_suite.NAMES)) == 33
    assert set(table_known.HIDDEN) < set(table_known.CLASS_KNOWN) < set(table_suite.NUMERIC)
    assert len(table_known.CLASS_KNOWN) == 13


def test_nuisance_columns_come_beside_the_features_and_some_values_are_gone() -> None:
    X = table_suite.read("iris").X
    table = made_tables.with_nuisance(X, 0)
    assert table.column_names[4:] == ["yes0", "yes1", "kind0", "id", "amount"]
    assert 0.02 < sum(table[f"x{j}"].null_count for j in range(4)) / X.size < 0.08
    matrix = plain_rows.plain_matrix(table)
    assert matrix.shape == (150, 4 + 2 + 10 + 2)
    assert np.isfinite(matrix).all()
    assert set(made_tables.nuisances(0)) >= {"plain", "5 random booleans", "an id", "a bimodal column"}


@pytest.mark.parametrize("rival", rivals.CLUSTERERS)
def test_every_rival_gives_a_label_to_every_row(rival: str) -> None:
    if not rivals.is_installed(rival):
        pytest.skip(f"{' and '.join(rivals.NEEDS[rival])} are not installed")
    X, classes = planted_tables.three_gaussians(0, n_rows=150, n_columns=4, distance=12.0)
    labels = rivals.clustered(rival, made_tables.as_arrow(X), 3, 0)
    assert labels.shape == (150,)
    assert labels.dtype.kind == "i"
    if rival in rivals.TOLD_K:
        assert len(set(zip(labels.tolist(), classes.tolist(), strict=True))) == 3


def test_two_rivals_are_told_k_and_not_compared_with() -> None:
    assert [one for one in rivals.CLUSTERERS if "told k" in one] == list(rivals.TOLD_K)
    good, poor = (table_explorations.Scores(one, one, 3.0, 1.0, 0.1) for one in (0.9, 0.5))
    methods = (table_explorations.OURS, table_explorations.PAPER, *rivals.CLUSTERERS)
    found = {one: dict.fromkeys(table_suite.NAMES, good if one in rivals.TOLD_K else poor) for one in methods}
    over = [line.seen for line in table_explorations.wanted(found) if "not told k" in line.what]
    assert over == [0.0] * 6


@pytest.mark.parametrize("rival", rivals.CLUSTERERS)
def test_what_a_rival_computes_depends_on_nothing_of_ours(rival: str) -> None:
    waiting, seen = [rivals.code_of(rival), rivals.__name__], set()
    while waiting:
        name = waiting.pop()
        assert not name.startswith("imapce")
        spec = importlib.util.find_spec(name) if name not in seen and name.count(".") < 2 else None
        seen.add(name)
        if spec is not None and spec.origin is not None:
            imported = cells_module._imports(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
            waiting += [one for one in imported if one.split(".")[0] in ("imapce", "experiments")]


@pytest.mark.data("tables/mixed_heart_h.csv.gz")
def test_a_mixed_table_has_numbers_categories_flags_and_holes() -> None:
    table = table_suite.read("mixed_heart_h")
    mixed = table.mixed
    assert mixed is not None
    assert table.as_given is mixed
    assert "class" not in mixed.column_names
    assert str(mixed["fbs"].type) == "bool"
    assert str(mixed["chol"].type) == "double"
    assert mixed["slope"].combine_chunks().dictionary.to_pylist() == ["flat", "up", "down"]
    assert {name: mixed[name].null_count for name in ("age", "chol", "fbs", "slope", "ca")} == {
        "age": 0,
        "chol": 23,
        "fbs": 8,
        "slope": 190,
        "ca": 291,
    }
    assert table.X.shape == (294, 24)
    assert np.isfinite(table.X).all()
    assert table.digest == table_suite.read("mixed_heart_h").digest
    # Three rows have a number of vessels: without them there is no such column.
    without = table.rows(np.flatnonzero([one is None for one in mixed["ca"].to_pylist()]))
    assert set(mixed.column_names) - set(without.column_names) == {"ca"}
    assert len(without) == 291


@pytest.mark.parametrize("name", table_suite.MIXED)
def test_every_mixed_table_is_read(name: str) -> None:
    try:
        table = table_suite.read(name)
    except DataNotFoundError:
        pytest.skip("not in the folder of data")
    assert len(table.as_given) == len(table.classes) == len(table.X)
    assert {str(one.type) for one in table.as_given.columns} <= {
        *("bool", "double", "int64", "dictionary<values=string, indices=int32, ordered=0>")
    }


def test_prototypes_find_groups_that_only_categories_tell() -> None:
    rng = np.random.default_rng(0)
    group = np.arange(120) % 2
    told = {f"c{j}": np.where(rng.random(120) < 0.95, group, 1 - group).astype(str).tolist() for j in range(5)}
    labels = rivals.clustered(rivals.PROTOTYPES, made_tables.as_arrow(rng.standard_normal((120, 1)), told), 2, 0)
    assert max(np.mean(labels == group), np.mean(labels != group)) > 0.9


@pytest.mark.parametrize("kind", noise_tables.KINDS)
def test_noise_is_the_same_table_for_the_same_seed(kind: str) -> None:
    one, again, other = (noise_tables.noise(kind, seed) for seed in (0, 0, 1))
    for table in (one, other):
        assert 100 <= len(table) <= 2000
        assert 3 <= table.shape[1] <= 80
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, again)
        assert np.isfinite(one).all()
    else:
        assert one.equals(again)
    assert one.shape != other.shape


def test_verdicts_on_noise_are_counted_by_kind() -> None:
    def cell(verdict: str) -> dict[str, object]:
        return {"verdict": verdict, "labels": np.array([0, 1])}

    found = {"a": [cell("none")] * 4, "b": [cell("clear"), cell("possible"), cell("none"), cell("none")]}
    assert [row[:4] for row in table_noise.verdicts_block(found).rows] == [
        *(["a", 0, 0, 4], ["b", 1, 1, 2], ["all", 1, 1, 6])
    ]
    lines = table_noise.wanted(found)
    assert [(line.seen, line.holds, line.where) for line in lines] == [
        *((0.125, False, "b"), (0.25, False, ""), (0.5, False, "b"))
    ]


def test_what_is_planted_can_be_told_by_who_knows_where() -> None:
    X, classes = planted_tables.parallel_sheets(0)
    assert X.shape == planted_tables.SHEETS_SHAPE
    shares = np.linalg.eigvalsh(np.cov(X.T))
    assert shares[-1] / shares.sum() > 0.95
    assert shares[0] / shares.sum() < 0.005
    for X, classes in (planted_tables.parallel_sheets(0), planted_tables.overlapping_pair(0)):
        told = LinearDiscriminantAnalysis().fit(X, classes).score(X, classes)
        assert told == pytest.approx(1.0 if len(X) == 600 else 0.92, abs=0.015)


def test_what_is_planted_is_found_where_it_is_exactly_it() -> None:
    kind = table_planted.KINDS[0]
    classes = np.repeat(["a", "b", "c"], 20)
    three = np.repeat([0, 1, 2], 20)
    assert kind.is_found({"labels": three, "verdict": "clear"}, classes)
    assert not kind.is_found({"labels": np.repeat([0, 1, 2, 3], 15), "verdict": "clear"}, classes)
    curve = table_planted.KINDS[-1]
    told = [curve.is_found({"labels": three, "verdict": one}, classes) for one in ("clear", "possible", "none")]
    assert told == [False, True, False]


def test_an_exploration_says_whether_rows_are_groups() -> None:
    X, classes = planted_tables.three_gaussians(0, 150, 4, distance=12.0)
    cell = table_cells.to_its_end(X, 0, {})
    assert cell["verdict"] == "clear"
    assert table_cells.n_clusters(cell["labels"]) == 3
    mixed = made_tables.as_arrow(X, {"yes": classes == "0"}, missing=np.eye(150, 4, dtype=bool))
    assert table_cells.n_clusters(table_cells.to_its_end(mixed, 0, {})["labels"]) == 3


def test_two_random_parts_agree_where_clusters_are_far_apart(tmp_path: Path) -> None:
    X, classes = planted_tables.three_gaussians(0, 150, 4, distance=12.0)
    run = Run(Cells(tmp_path), tmp_path, Console(file=io.StringIO()))
    pair = table_stability._pair(run, table_suite.Table("small", X, classes), 0)
    assert pair == {"ari": 1.0, "agreed": True, "verdicts": "clear + clear"}
    assert len(list(tmp_path.iterdir())) == 2


def test_constants_are_judged_by_the_tables_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scores(table: table_suite.Table, *, is_accepted: bool, settings: ClusterSettings) -> dict[str, float]:
        assert not is_accepted
        # A value that wins by one table alone.
        return {"nmi": 0.9 if settings.exponent == 0.4 and table.name == "iris" else 0.5, "ari": settings.exponent}

    monkeypatch.setattr(table_constants, "CONSTANTS", {"exponent": (0.2, 0.4)})
    monkeypatch.setattr(table_constants, "EVIDENCE", {})
    monkeypatch.setattr(table_constants, "candidate_scores", scores)
    run = Run(Cells(tmp_path), tmp_path, Console(file=io.StringIO()))
    (block,), lines = table_constants.measure(run, ("iris", "wine"))
    tried = [
        *("exponent = 0.3 (default)", "exponent = 0.2", "exponent = 0.4"),
        "exponent, chosen, leave-one-table-out",
    ]
    assert [row[0] for row in block.rows] == tried
    assert [row[1] for row in block.rows[:4]] == pytest.approx([0.5, 0.5, 0.7, 0.5])
    assert [line.holds for line in lines] == [True, False]


def test_a_candidate_is_scored_in_the_rows_it_was_found_in() -> None:
    X, classes = planted_tables.three_gaussians(0, 150, 4, distance=12.0)
    table = table_suite.Table("small", X, classes)
    for is_accepted in (False, True):
        scores = table_constants.candidate_scores(table, is_accepted=is_accepted)
        assert scores == pytest.approx({"nmi": 1.0, "ari": 1.0}, abs=1e-12)
    strict = replace(ClusterSettings(), significance=0.0, weak_significance=0.0)
    assert table_constants.candidate_scores(table, is_accepted=True, settings=strict)["ari"] == 0.0
    assert table_constants.candidate_scores(table, settings=strict)["ari"] == pytest.approx(1.0)


def test_every_constant_is_a_setting_and_other_values_are_tried() -> None:
    default = ClusterSettings()
    for name, values in {**table_constants.CONSTANTS, **table_constants.EVIDENCE}.items():
        assert getattr(default, name) not in values
        assert table_constants.values_of(name, getattr(default, name))[1:] == values


def test_generated_tables_are_explored_beside_the_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, classes = planted_tables.three_gaussians(0, 150, 4, distance=12.0)
    for name in ("elliptical_groups", "hidden_groups"):

        def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
            return X, classes

        draw.__name__ = name
        monkeypatch.setattr(table_generated.generated_tables, name, draw)
    monkeypatch.setattr(table_generated, "QUICK_TABLES", 1)
    run = Run(Cells(tmp_path), tmp_path, Console(file=io.StringIO()), quick=True)
    (elliptical, wide, means), (above, hidden) = table_generated.measure(run)
    assert elliptical.rows == [["0", "150×4", 3, "clear", 3.0, "1.00 / 1.00", "1.00 / 1.00"]]
    assert wide.rows == [["0", "150×4", 3, "clear", 3.0, pytest.approx(1.0), pytest.approx(1.0)]]
    assert [row[:2] for row in means.rows] == [["ours", 1], [table_generated.PEER, 1], ["ours, wide", 1]]
    assert (above.bound, above.seen, above.holds) == (0.08, pytest.approx(0.0), False)
    assert (hidden.bound, hidden.seen, hidden.holds) == (0.9, pytest.approx(1.0), True)


def test_many_columns_are_shown_to_rivals_in_their_first_axes() -> None:
    X = np.random.default_rng(0).standard_normal((50, 40))
    assert plain_rows.standard_axes(X).shape == (50, 30)
    assert plain_rows.pca_plane(X).shape == (50, 2)


def test_the_best_optimum_is_at_least_the_view_itself() -> None:
    table = table_suite.read("iris")
    scores = table_views.our_scores(table.X, table.classes, np.ones(150, dtype=bool), None, "error")
    assert scores[table_views.BEST] >= scores[table_views.OURS] > 0.8


def test_a_rule_that_wins_by_one_table_loses_where_that_table_is_left_out() -> None:
    lucky = {"a": 1.0, "b": 0.1, "c": 0.1}
    steady = {"a": 0.3, "b": 0.3, "c": 0.3}
    # Without a, steady is chosen for a; with it, lucky is chosen for b and c.
    assert leave_one_out({"lucky": lucky, "steady": steady}) == pytest.approx((0.3 + 0.1 + 0.1) / 3)
    assert leave_one_out({"steady": steady}) == pytest.approx(0.3)
    assert np.isnan(leave_one_out({"one table": {"a": 1.0}}))
    assert rules_block("rules", {"steady": steady}).rows[-1][1] == pytest.approx(0.3)


def test_what_is_wanted_stands_beside_what_is_seen(tmp_path: Path) -> None:
    lines = [Wanted("more", 0.9, 0.95), Wanted("less", 0.1, 0.2, at_most=True), Wanted("unknown", 0.9, float("nan"))]
    block = wanted_block(lines)
    assert [row[3] for row in block.rows] == ["yes", "no", "not measured"]
    assert "| less | ≤ 0.1 | 0.200 | no |  |" in block.table()
    table_blocks.write("tables", [Block("Views", ("table", "ours"), [["iris", 0.95]]), block], tmp_path)
    with open(tmp_path / "tables.csv", newline="") as stream:
        assert next(csv.DictReader(stream)) == {"block": "Views", "row": "iris", "column": "ours", "value": "0.95"}


def test_explorations_are_summed_up_by_group() -> None:
    scores = table_explorations.Scores(0.5, 0.4, 3.0, 1.0, 0.1)
    found = {
        method: dict.fromkeys(table_suite.NAMES, scores)
        for method in (table_explorations.OURS, table_explorations.PAPER, *rivals.CLUSTERERS)
    }
    groups = [table_explorations.of_group(found, group) for group in table_suite.GROUPS]
    assert [len(one[table_explorations.OURS]) for one in groups] == [14, 13, 6]
    lines = table_explorations.wanted(found)
    begin = [line.what.split(":")[0] for line in lines]
    assert begin[:-1] == ["development"] * 8 + ["added"] * 8 + ["mixed"] * 6
    assert lines[-1].what == "tables of 33 more than 0.1 below the mixture by BIC in NMI"


def test_views_far_below_pca_are_counted_and_named() -> None:
    plain = {
        method: dict.fromkeys(table_suite.NUMERIC, 0.9)
        for method in (table_views.OURS, table_views.PCA, table_views.PAPER, table_views.BEST)
    }
    plain[table_views.OURS] |= {"iris": 0.8, "wine": 0.87}
    lines = {line.what: line for line in table_views.wanted({table_views.PLAIN: plain})}
    far = lines["tables more than 0.03 below PCA, of 27"]
    assert (far.seen, far.holds, far.where) == (1.0, True, "iris -0.100")
    assert lines["views, mean of 14 development tables"].holds

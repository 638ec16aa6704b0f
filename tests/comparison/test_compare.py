"""The comparison: the same knowledge and rows to every method, failures that stay where they happen, the scores."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from helpers import grouped, standardised
from imapce import Attributes, Samples, Subset, datasets
from imapce.comparison.compare import Comparison, compare
from imapce.comparison.methods import METHODS, chosen_methods
from imapce.comparison.scores import SCORES, class_labels, view_scores
from imapce.errors import InvalidTypeError, InvalidValueError
from imapce.metrics.readback import residual_predictability
from imapce.metrics.scores import kmeans_nmi, knn_accuracy, nls_ceiling, normalized_laplacian_score
from imapce.plotting import plot_methods
from imapce.plotting.comparison import HEADER, score_rows
from stand_ins import FirstColumns, fails, labelled, shows, warns

DATA = grouped(240)
BATCH = np.array(["old", "new"])[DATA.batch]
KIND = np.array(["a", "b", "c"])[DATA.kind]


def table(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({**{f"x{place}": column for place, column in enumerate(DATA.X.T)}, **more})


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is handed to the scores, one entry per method, in place of the work of scoring."""
    calls: list[dict[str, Any]] = []

    def record(embedding: Any, X: Any, **arguments: Any) -> dict[str, float | None]:
        calls.append({"embedding": embedding, "X": X, **arguments})
        return dict.fromkeys(SCORES)

    monkeypatch.setattr(sys.modules["imapce.comparison.compare"], "view_scores", record)
    return calls


def test_a_remark_says_what_imapce_explained_away_and_what_is_left_of_it() -> None:
    result = compare(table(batch=BATCH), Attributes(["batch"]), "IMAPCE,PCA").results
    (remark,) = result[0].remarks
    assert remark.startswith("IMAPCE explained batch away: the prior can be predicted from the view with accuracy ")
    assert remark.endswith("; chance 0.50.")
    assert result[1].remarks == ()
    (erased,) = compare(table(batch=BATCH), Attributes(["batch"], erase=True), "IMAPCE").results[0].remarks
    assert erased.startswith("IMAPCE: the prior can be predicted from the view with accuracy ")


# --- scores ------------------------------------------------------------------------------------------------------


def test_the_scores_are_those_of_the_metrics() -> None:
    view = DATA.X[:, 2:4]
    scores = view_scores(view, DATA.X, known=BATCH, labels=KIND)
    assert tuple(scores) == SCORES
    assert scores["nls"] == normalized_laplacian_score(view, BATCH)
    assert scores["nls_ceiling"] == nls_ceiling(BATCH)
    assert scores["nls_share"] == pytest.approx(scores["nls"] / scores["nls_ceiling"])
    read = residual_predictability(view, BATCH)
    assert (scores["prior_linear"], scores["prior_knn"], scores["prior_chance"]) == (read["linear"], read["knn"], 0.5)
    assert scores["knn_accuracy"] == scores["kmeans_nmi"] == 1.0
    assert 0.7 < scores["silhouette"] < 1.0
    assert 0.5 < scores["trustworthiness"] < 1.0


def test_scores_tell_a_view_of_the_known_from_a_view_of_the_rest() -> None:
    of_known, of_rest = (view_scores(DATA.X[:, places], known=BATCH, labels=KIND) for places in ([0, 1], [2, 3]))
    assert of_known["nls_share"] < 0.05 < 0.9 < of_rest["nls_share"]
    assert of_known["prior_knn"] == 1.0
    assert of_known["knn_accuracy"] < 0.6 < of_rest["knn_accuracy"]
    assert of_known["trustworthiness"] is None


def test_of_several_known_columns_the_one_that_shows_most_counts() -> None:
    view = DATA.X[:, :2]
    alone = view_scores(view, known=BATCH, labels=KIND)
    both = view_scores(view, known={"kind": KIND, "batch": BATCH}, labels=KIND)
    assert {name: both[name] for name in SCORES} == {name: alone[name] for name in SCORES}


def test_a_measurement_is_binned_for_mixing_and_read_back_as_r2() -> None:
    view = DATA.X[:, :2]
    scores = view_scores(view, known=DATA.X[:, 0], labels=KIND)
    assert scores["prior_linear"] > 0.99
    assert scores["prior_chance"] == 0.0
    assert scores["nls_ceiling"] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("common", [0.0, 99.0], ids=["smallest", "largest"])
def test_a_measurement_that_is_mostly_one_value_still_has_two_bins(common: float) -> None:
    column = np.where(np.arange(240) % 8 == 0, np.arange(240) / 4.0, common)
    assert 0 < view_scores(DATA.X[:, :2], known=column, labels=KIND)["nls_ceiling"] < 0.5


def test_without_labels_the_silhouette_is_that_of_the_best_clusters() -> None:
    clusters = view_scores(DATA.X[:, 2:4])
    labels = view_scores(DATA.X[:, 2:4], labels=KIND)
    assert clusters["silhouette"] == pytest.approx(labels["silhouette"])
    assert clusters["knn_accuracy"] is clusters["nls"] is None


def test_structure_is_that_of_the_unexplored_rows_with_a_label() -> None:
    labels = KIND.astype(object)
    labels[KIND == "a"] = None
    rest = KIND != "a"
    scores = view_scores(DATA.X[:, 2:4], labels=labels)
    assert scores["silhouette"] == view_scores(DATA.X[rest, 2:4], labels=KIND[rest])["silhouette"]
    assert scores["silhouette"] == view_scores(DATA.X[:, 2:4], labels=KIND, unexplored=rest)["silhouette"]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.linspace(0, 1, 40), "measurements"),
        (["a"] * 40, "the same"),
        ([None] * 40, "missing"),
        ([f"row {row}" for row in range(40)], "too many"),
    ],
)
def test_labels_that_are_no_classes_say_why(labels: Any, reason: str) -> None:
    said = class_labels(labels, 40)
    assert isinstance(said, str)
    assert reason in said


def test_a_known_class_of_one_row_is_no_obstacle() -> None:
    rare = BATCH.astype(object)
    rare[3] = "lonely"
    scores = view_scores(DATA.X[:, :2], known=rare, labels=KIND)
    assert scores["prior_knn"] == 1.0


def test_knn_accuracy_is_out_of_fold_and_keeps_the_scale_of_the_view() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(300, 2))
    labels = rng.integers(0, 2, 300)
    assert knn_accuracy(noise, labels, n_neighbors=1) < 0.6
    # The labels lie along the short axis; rescaled it would tell them.
    flat = np.column_stack([rng.normal(size=300), 0.001 * labels])
    assert knn_accuracy(flat, labels) < 0.65 < 1.0 == knn_accuracy(flat * [1, 1e5], labels)


def test_neighbour_and_cluster_scores_refuse_labels_that_are_none() -> None:
    points = np.arange(12.0).reshape(6, 2)
    for score in (knn_accuracy, kmeans_nmi):
        with pytest.raises(InvalidValueError, match="label of its own"):
            score(points, range(6))
    with pytest.raises(InvalidValueError, match="n_neighbors"):
        knn_accuracy(points, [0, 0, 0, 1, 1, 1], n_neighbors=0)
    assert kmeans_nmi(np.zeros((6, 2)), [0, 0, 0, 1, 1, 1]) == pytest.approx(0.0)


# --- methods -----------------------------------------------------------------------------------------------------


def test_all_methods_begin_with_imapce_and_names_may_be_spelled_freely() -> None:
    assert next(iter(METHODS)) == "IMAPCE"
    assert chosen_methods("all") == list(METHODS.values())
    spelled = chosen_methods("ct-SNE, imapce,CTSNE,fair_nerv")
    assert [method.title for method in spelled] == ["ct-SNE", "IMAPCE", "Fair-NeRV"]
    with pytest.raises(InvalidValueError, match=r"'cctsne'.*CTSNE"):
        chosen_methods("IMAPCE,cctsne")
    with pytest.raises(InvalidValueError, match="at least one"):
        chosen_methods(" , ")
    with pytest.raises(InvalidTypeError, match="names or Method"):
        chosen_methods([3])  # type: ignore[list-item]


# --- compare -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("every_word")
def test_imapce_drops_the_known_and_the_result_tells_all() -> None:
    said: list[tuple[str, float | None]] = []
    comparison = compare(
        DATA.X,
        Attributes([0, 1]),
        ["IMAPCE", shows()],
        labels=KIND,
        known_labels=BATCH,
        parameters={"IMAPCE": {"n_starts": 3}},
        progress=lambda words, share: said.append((words, share)),
    )
    ours, theirs = comparison.results
    assert ours.scores["nls_share"] > 0.9
    assert theirs.scores["nls_share"] < 0.1
    words = ["fitting IMAPCE, 1 of 2", "fitting columns 0, 1, 2 of 2", "scoring IMAPCE, 1", "scoring columns 0, 1, 2"]
    assert all(told.startswith(start) for (told, _), start in zip(said, words, strict=True))
    shares = [share or 0.0 for _, share in said]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] < 1.0
    assert ours.seconds is not None
    assert list(comparison.to_records()[0]) == ["method", "rows", "seconds", *SCORES, "left_out"]
    again = compare(DATA.X, Attributes([0, 1]), "IMAPCE", labels=KIND, parameters={"IMAPCE": {"n_starts": 3}})
    np.testing.assert_array_equal(again.results[0].embedding, ours.embedding)


def test_a_failure_is_a_sentence_and_loses_nobody_else(scored: list) -> None:
    comparison = compare(
        DATA.X,
        None,
        [fails(RuntimeError("no\nluck")), fails(InvalidValueError("X is odd.")), shows(), warns()],
        labels=KIND,
    )
    assert [result.left_out for result in comparison.results] == [
        "It failed with RuntimeError: no luck.",
        "X is odd.",
        None,
        None,
    ]
    assert [result.method.title for result in comparison.worked] == ["columns 0, 1", "loud"]
    assert comparison.results[3].remarks == ("loud: stopped early",)


def test_a_view_that_cannot_be_scored_keeps_its_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise InvalidValueError("nothing to score.")

    monkeypatch.setattr(sys.modules["imapce.comparison.compare"], "view_scores", refuse)
    one = compare(DATA.X, None, [shows()]).results[0]
    assert one.embedding is not None
    assert one.left_out is None
    assert one.remarks == ("nothing to score.",)


def test_an_embedding_that_is_not_finite_counts_as_a_failure(scored: list) -> None:
    broken = DATA.X.copy()
    broken[5, 1] = np.inf
    filled = shows("infinite")
    with pytest.raises(InvalidValueError, match="finite"):
        compare(broken, None, [filled])
    result = compare(DATA.X, None, [shows("nan", shown=broken)]).results[0]
    assert result.embedding is None
    assert "finite" in str(result.left_out)


def test_methods_get_the_prior_in_the_form_they_can_use(scored: list) -> None:
    compare(DATA.X, Subset(DATA.batch == 0), [shows()], labels=KIND)
    assert isinstance(FirstColumns.given[0], Subset)
    compare(DATA.X, Attributes([0]), [labelled()], known_labels=BATCH, labels=KIND)
    np.testing.assert_array_equal(FirstColumns.given, 1 - DATA.batch)
    compare(DATA.X, Attributes([0]), [shows(uses=frozenset())], labels=KIND)
    assert FirstColumns.given is None
    assert FirstColumns.settings == {"standardize": True, "missing": "error", "random_state": 0}


def test_a_background_is_refused_for_methods_of_labels_and_has_no_score() -> None:
    comparison = compare(DATA.X, Samples(DATA.X[:50]), [labelled(), shows()], labels=KIND)
    told = "It can be told of known columns, known labels and known rows, not of a background table."
    assert comparison.results[0].left_out == told
    assert comparison.results[1].scores["nls"] is None
    assert "a background table has no class" in comparison.notes[0]


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_known_columns_of_a_table_become_classes_with_their_names(convert: Any, scored: list) -> None:
    X = convert(table(batch=BATCH, kind=KIND, code=DATA.batch))
    one = compare(X, Attributes(["batch"]), [shows()], labels=KIND)
    assert list(one.known) == ["batch"]
    np.testing.assert_array_equal(one.known["batch"], BATCH)
    two = compare(X, Attributes(["kind", "code"]), [shows()], labels=KIND)
    assert list(two.known) == ["kind × code"]
    assert set(two.known["kind × code"]) == {f"{kind} · {code}" for kind in "abc" for code in "01"}
    mixed = compare(X, Attributes(["batch", "x2"]), [shows()], labels=KIND)
    assert list(mixed.known) == ["x2", "batch"]
    assert "the one that shows most" in mixed.notes[0]
    assert "x2" in mixed.notes[1]


def test_known_rows_are_one_class_and_structure_is_that_of_the_others(scored: list) -> None:
    comparison = compare(table(), Subset(np.flatnonzero(DATA.kind == 0)), [shows(columns=(2, 3))], labels=KIND)
    np.testing.assert_array_equal(comparison.known["known rows"] == "known", DATA.kind == 0)
    np.testing.assert_array_equal(scored[0]["unexplored"], DATA.kind != 0)
    assert "not known" in comparison.notes[-1]


@pytest.mark.parametrize("convert", [np.asarray, table().__class__, pl.DataFrame, sparse.csr_array])
def test_slow_methods_get_a_sample_and_all_are_scored_on_it(convert: Any, scored: list[dict]) -> None:
    X = convert(DATA.X)
    slow = shows("slow", max_rows=70)
    comparison = compare(X, Subset(DATA.batch == 0), [shows(), slow, shows("slower", max_rows=50)], labels=KIND)
    assert [len(result.rows) for result in comparison.worked] == [240, 70, 50]
    rows = comparison.scored_rows
    np.testing.assert_array_equal(rows, comparison.results[2].rows)
    for result in comparison.worked:
        np.testing.assert_allclose(comparison.embedding_of_scored_rows(result), DATA.X[rows][:, :2])
    np.testing.assert_array_equal(FirstColumns.given[0].rows, DATA.batch[rows] == 0)
    assert any("same 50 of 240 rows" in note for note in comparison.notes)
    for call in scored:
        np.testing.assert_array_equal(call["labels"], KIND[rows])
        np.testing.assert_array_equal(call["known"]["known rows"] == "known", DATA.batch[rows] == 0)
        if convert is sparse.csr_array:
            assert call["X"] is None
        else:
            np.testing.assert_allclose(call["X"], standardised(DATA.X)[rows], atol=1e-12)
    given = compare(X, None, [slow, shows()], labels=KIND, max_rows=60)
    assert [len(result.rows) for result in given.worked] == [60, 240]


def test_bad_arguments_are_refused_before_any_method_runs() -> None:
    never = fails(AssertionError("ran"))
    with pytest.raises(InvalidValueError, match="max_rows"):
        compare(DATA.X, None, [never], max_rows=1)
    with pytest.raises(InvalidValueError, match="known_labels"):
        compare(DATA.X, None, [never], known_labels=BATCH[:5])
    with pytest.raises(InvalidValueError, match="labels must have one value"):
        compare(DATA.X, None, [never], labels=BATCH[:5])
    with pytest.raises(InvalidValueError, match="no column"):
        compare(table(), Attributes(["bach"]), [never])
    with pytest.raises(KeyboardInterrupt):
        compare(DATA.X, None, [fails(KeyboardInterrupt())])


# --- the figure --------------------------------------------------------------------------------------------------


def drawn(comparison: Comparison, **look: Any) -> tuple[list[Any], str]:
    figure = plot_methods(comparison, **look)
    figure.draw_without_rendering()
    return figure.axes, figure.get_supxlabel()


def test_a_panel_for_each_method_that_worked_and_a_line_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = dict.fromkeys(SCORES, 0.25)
    monkeypatch.setattr(sys.modules["imapce.comparison.compare"], "view_scores", lambda *_, **__: scores)
    methods = [shows(f"view {place}") for place in range(5)]
    comparison = compare(
        DATA.X, Attributes([0]), [*methods, fails(RuntimeError("a $b"))], labels=KIND, known_labels=BATCH
    )
    panels, below = drawn(comparison, color=KIND, color_name="kind")
    assert [ax.get_title(loc="left") for ax in panels] == [f"view {place}" for place in range(5)]
    assert all(len(ax.collections[0].get_offsets()) == 240 for ax in panels)
    assert panels[0].get_xlabel().startswith("known: NLS share 0.25, read 0.25 (0.25)\n15-NN 0.25, NMI 0.25")
    assert below == "Left out: broken. It failed with RuntimeError: a $b."
    keys = [ax.get_legend() for ax in panels if ax.get_legend() is not None]
    assert len(keys) == 1
    words = [text.get_text() for text in keys[0].get_texts()]
    assert [word for word in words if word] == ["kind", "a", "b", "c", "known classes", "new", "old"]


def test_without_labels_or_prior_the_figure_is_plain_and_known_rows_are_grey(scored: list) -> None:
    panels, below = drawn(compare(DATA.X, None, [shows()]))
    assert below == ""
    assert panels[0].get_legend() is None
    panels, _ = drawn(compare(DATA.X, Subset(DATA.batch == 0), [shows()], labels=KIND))
    assert [text.get_text() for text in panels[0].get_legend().get_texts()] == ["known rows"]
    with pytest.raises(InvalidValueError, match="none"):
        plot_methods(compare(DATA.X, None, [fails(RuntimeError())]))


def test_the_table_has_the_scores_that_somebody_has() -> None:
    header, cells = score_rows(compare(DATA.X, Attributes([0]), [shows(), fails(RuntimeError())], labels=KIND))
    assert header == ["method", *[words for name, words in HEADER.items() if name != "method"]]
    assert cells[0][1] == "240"
    assert [row[0] for row in cells] == ["columns 0, 1"]


def test_a_comparison_is_shown_on_one_screen() -> None:
    data = datasets.make_synthetic(300)
    shown = compare(data.X, Attributes([0, 1, 2, 3]), ["IMAPCE", "PCA", "cPCA", "SIDE"], labels=data.labels["celltype"])
    text, page = repr(shown), shown._repr_html_()
    lines = text.splitlines()
    assert lines[0] == "Comparison of 4 methods on 300 rows"
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 100
    for result in shown.worked:
        assert result.method.title in text
        assert f"<td>{result.method.title}</td>" in page
        assert f"{result.scores['knn_accuracy']:.2f}" in text
    assert len(repr(shown.results)) < 500

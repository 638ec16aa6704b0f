"""Attributes(erase=True): nothing linear of the known columns is left in a view, and it is the best of such views."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import null_space

from commands import refusal, succeed
from helpers import angle_between, grouped, literal_objective, standardised
from imapce import IMAPCE, Attributes, Exploration, Samples, Subset, datasets, load_model
from imapce.baselines import CPCA, GCPCA, PCA
from imapce.errors import FileFormatError, InvalidTypeError, InvalidValueError
from imapce.metrics.readback import residual_predictability
from imapce.rows import dense
from imapce.rows import sparse as sparse_engine
from imapce.tables.files import read_table, write_table

DATA = grouped()
X = DATA.X + 0.3 * DATA.X @ np.random.default_rng(5).normal(size=(8, 8))
ERASED = Attributes([0, 1], erase=True)
QUICK: dict[str, Any] = {"alpha": 1.0, "mu": 50.0, "n_starts": 4, "random_state": 0}


def share_read_back(view: Any, known: Any) -> float:
    """The largest R² of a known column regressed on the view."""
    view, known = np.asarray(view, dtype=np.float64), np.asarray(known, dtype=np.float64)
    axes = np.linalg.qr(view - view.mean(axis=0))[0]
    known = known - known.mean(axis=0)
    varying = np.sum(known**2, axis=0) > 0
    return float(np.max(np.sum((axes.T @ known) ** 2, axis=0)[varying] / np.sum(known**2, axis=0)[varying]))


# --- what it promises -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.0, 50.0, 1e4, "paper"])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_nothing_linear_of_the_columns_is_left(mu: Any, n_components: int) -> None:
    model = IMAPCE(n_components, **QUICK | {"mu": mu})
    assert share_read_back(model.fit_transform(X, prior=ERASED), X[:, :2]) <= 1e-10
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(n_components), atol=1e-12)
    np.testing.assert_allclose(model.axis_correlation_[:, :2], 0, atol=1e-12)
    for optimum in model.optima_:
        assert share_read_back(standardised(X) @ optimum.components.T, X[:, :2]) <= 1e-10
    soft = IMAPCE(n_components, **QUICK | {"mu": mu}).fit_transform(X, prior=Attributes([0, 1]))
    assert share_read_back(soft, X[:, :2]) > 1e-6


def test_the_automatic_setting_erases_as_well() -> None:
    model = IMAPCE(random_state=0)
    assert share_read_back(model.fit_transform(X, prior=[ERASED, Attributes([7])]), X[:, :2]) <= 1e-10
    assert all(share_read_back(view, X[:, :2]) <= 1e-10 for view in model.transform_all(X))
    assert len(model.optima_) > 1
    assert len(model.path_) > 1
    data, known = X.copy(), DATA.kind == 0
    data[~known, 4] = 0.1
    model.fit(data, prior=[Subset(known), ERASED])
    np.testing.assert_allclose(model.components_[:, 4], 0, atol=1e-12)
    assert share_read_back(model.transform(data), data[:, :2]) <= 1e-10


@pytest.mark.data("uci_adult_data.csv")
@pytest.mark.parametrize(
    ("columns", "label", "most"),
    [
        (["ethnicity"], "ethnicity", 0.52),
        (["gender"], "gender", 0.52),
        (["ethnicity", "gender"], "ethnicity_gender", 0.27),
    ],
)
def test_adult_columns_are_read_back_at_chance(columns: list[str], label: str, most: float) -> None:
    data = datasets.fetch_adult()
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    for mu in ("paper", 1e4):
        view = IMAPCE(mu=mu, random_state=0).fit_transform(table, prior=Attributes(columns, erase=True))
        assert share_read_back(view, table[columns]) <= 1e-10
        assert residual_predictability(view, data.labels[label])["linear"] <= most


def test_the_batch_of_the_synthetic_set_is_gone_and_the_cell_types_are_there() -> None:
    data = datasets.make_synthetic(600)
    view = IMAPCE(**QUICK | {"mu": 1000.0}).fit_transform(data.X, prior=Attributes([0, 1, 2, 3], erase=True))
    assert residual_predictability(view, data.labels["batch"])["linear"] <= 0.52
    assert residual_predictability(view, data.labels["celltype"])["linear"] >= 0.99


def test_it_is_the_fit_on_the_columns_times_a_basis_of_what_is_left() -> None:
    Z = standardised(X)
    N = null_space(Z[:, :2].T @ Z)
    model = IMAPCE(**QUICK | {"n_starts": 10}).fit(X, prior=ERASED)
    reduced = IMAPCE(**QUICK | {"n_starts": 10, "alpha": 0.0, "standardize": False}).fit(Z @ N)
    assert angle_between(model.components_, reduced.components_ @ N.T) < 1e-6
    # Equation 2 counts all the variance of X that is not shown, also what no such view could show.
    unreachable = np.sum(Z**2) - np.sum((Z @ N) ** 2)
    assert model.objective_ == pytest.approx(reduced.objective_ + unreachable, rel=1e-10)
    assert model.objective_ == pytest.approx(literal_objective(Z, None, Z, model.components_.T, 0, 50.0), rel=1e-10)


def test_alpha_and_weight_do_not_act_on_erased_columns() -> None:
    one = IMAPCE(**QUICK | {"alpha": 1.0}).fit(X, prior=ERASED)
    other = IMAPCE(**QUICK | {"alpha": 30.0}).fit(X, prior=Attributes([0, 1], weight=7.0, erase=True))
    np.testing.assert_array_equal(one.components_, other.components_)
    assert one.alpha_ == other.alpha_ == 0.0


# --- with other priors, engines and kinds of columns ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["attributes", "samples", "subset"])
def test_other_priors_weigh_as_without_it(kind: str) -> None:
    known = DATA.kind == 0
    background = grouped(80, seed=4).X
    only = np.where(np.arange(8) == 7, standardised(X), 0.0)
    prior, Y, left = {
        "attributes": (Attributes([7]), only, X),
        "samples": (Samples(background), standardised(background), X),
        "subset": (Subset(known), standardised(X[known]), X[~known]),
    }[kind]
    model = IMAPCE(**QUICK | {"alpha": 0.6}).fit(X, prior=[prior, ERASED])
    expected = literal_objective(standardised(X), Y, standardised(left), model.components_.T, 0.6, 50.0)
    assert model.objective_ == pytest.approx(expected, rel=1e-10)
    assert share_read_back(model.transform(X), X[:, :2]) <= 1e-10
    alone = IMAPCE(**QUICK).fit(X, prior=ERASED)
    assert angle_between(model.components_, alone.components_) > 1e-3


@pytest.mark.parametrize("mu", [50.0, 1e4])
def test_every_engine_gives_the_same_subspace(mu: float) -> None:
    reference = IMAPCE(**QUICK | {"mu": mu}, engine="dense").fit(X, prior=[ERASED, Subset(DATA.kind == 0)])
    for engine in ("auto", "sparse", "moment_tensor"):
        other = IMAPCE(**QUICK | {"mu": mu}, engine=engine).fit(X, prior=[ERASED, Subset(DATA.kind == 0)])
        assert angle_between(other.components_, reference.components_) < 1e-6, engine


@pytest.mark.parametrize("engine", ["dense", "sparse"])
def test_second_moments_that_are_not_formed_give_the_same_subspace(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A third of the rows: most of a fit of all is the search for clusters, which is the same in both.
    rows = datasets.load_digits().X[:600]
    prior = Attributes([10, 20, 21], erase=True)
    options: dict[str, Any] = {"mu": 100.0, "n_starts": 4, "random_state": 0, "engine": engine}
    formed = IMAPCE(**options).fit(rows, prior=prior)
    monkeypatch.setattr(dense, "scatter_is_affordable", lambda n_features, n_bytes: False)
    monkeypatch.setattr(sparse_engine, "SCATTER_LIMIT", 0)
    model = IMAPCE(**options).fit(rows, prior=prior)
    assert angle_between(model.components_, formed.components_) < 1e-6
    assert share_read_back(model.transform(rows), rows[:, [10, 20, 21]]) <= 1e-10


def test_sparse_rows_of_many_columns_need_no_square_matrix() -> None:
    # A square matrix of this width takes 320 GB.
    rows = sparse.csr_array(sparse.random(300, 200_000, density=5e-4, random_state=0))
    varying = np.unique(rows.indices)[[3, 4, -1]]
    model = IMAPCE(mu=10.0, n_starts=1, max_iter=30, tol=1e-2, random_state=0)
    view = model.fit_transform(rows, prior=Attributes(varying.tolist(), erase=True))
    assert share_read_back(view, rows[:, varying].toarray()) <= 1e-10


def test_a_category_costs_one_direction_less_than_it_has_classes() -> None:
    table = pd.DataFrame(X[:, 2:5], columns=["p", "q", "r"]).assign(
        group=pd.Categorical(np.array(list("abcd"))[np.arange(300) % 4])
    )
    # Seven encoded columns; erasing the category leaves 7 − 3 = 4 directions, in one of which nothing varies.
    model = IMAPCE(3, **QUICK).fit(table, prior=Attributes("group", erase=True))
    assert share_read_back(model.transform(table), pd.get_dummies(table["group"])) <= 1e-10
    with pytest.raises(InvalidValueError, match="or what is erased"):
        IMAPCE(4, **QUICK).fit(table, prior=Attributes("group", erase=True))
    with pytest.raises(InvalidValueError, match=r"leaves 4 of 7 directions, and a view needs n_components=5; erase"):
        IMAPCE(5, **QUICK).fit(table, prior=Attributes("group", erase=True))


def test_columns_that_repeat_each_other_or_are_constant_cost_nothing_more() -> None:
    data = np.column_stack([X, 5.0 * X[:, 0] - 2.0, X[:, 0] + X[:, 1], np.full(300, 0.1)])
    more = Attributes([0, 1, 8, 9, 10], erase=True)
    one, other = (IMAPCE(6, **QUICK).fit(data, prior=prior) for prior in (ERASED, more))
    assert angle_between(one.components_, other.components_) < 1e-6
    nothing = IMAPCE(**QUICK).fit(data, prior=Attributes([10], erase=True))
    assert angle_between(nothing.components_, IMAPCE(**QUICK).fit(data).components_) < 1e-6


def test_a_column_constant_among_the_rows_left_gets_no_weight() -> None:
    data, known = X.copy(), DATA.kind == 0
    data[~known, 4] = 0.1
    for engine in ("dense", "moment_tensor"):
        model = IMAPCE(**QUICK, engine=engine).fit(data, prior=[Subset(known), ERASED])
        assert np.all(model.components_[:, 4] == 0)
        assert share_read_back(model.transform(data), data[:, :2]) <= 1e-10


def test_as_many_directions_as_axes_are_enough() -> None:
    model = IMAPCE(**QUICK).fit(X[:, :4], prior=ERASED)
    assert share_read_back(model.transform(X[:, :4]), X[:, :2]) <= 1e-10


@pytest.mark.parametrize("method", [CPCA, GCPCA, lambda: GCPCA(orthogonal=True)])
@pytest.mark.parametrize("others", [[], [Samples(grouped(80, seed=4).X), Attributes([6])]])
def test_contrastive_views_erase_too(method: Any, others: list[Any]) -> None:
    data = np.column_stack([X, np.ones(300)])
    others = [Samples(np.column_stack([p.background, np.ones(80)])) if isinstance(p, Samples) else p for p in others]
    view = method().fit_transform(data, prior=[ERASED, *others])
    assert share_read_back(view, X[:, :2]) <= 1e-10


def test_pca_goes_on_ignoring_every_prior() -> None:
    np.testing.assert_array_equal(PCA().fit(X, prior=ERASED).components_, PCA().fit(X).components_)


# --- manners ----------------------------------------------------------------------------------------------------------


def test_too_few_directions_and_a_flag_that_is_none_are_refused_in_one_sentence() -> None:
    for model in (IMAPCE(3, **QUICK), CPCA(3), GCPCA(3)):
        with pytest.raises(InvalidValueError, match=r"^Attributes\(columns, erase=True\) leaves 2 of 4 directions"):
            model.fit(X[:, :4], prior=ERASED)
    with pytest.raises(InvalidTypeError, match=r"Attributes\(erase=...\) must be True or False; got 'yes'"):
        Attributes([0], erase="yes")  # type: ignore[arg-type]


def test_the_input_is_unchanged_and_tables_keep_their_names() -> None:
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    before = table.copy()
    model = IMAPCE(**QUICK).set_output(transform="pandas")
    view = model.fit_transform(table, prior=Attributes(["a", "b"], erase=True))
    pd.testing.assert_frame_equal(table, before)
    assert list(view.columns) == ["imapce0", "imapce1"]
    assert set(model.loadings()["feature"]) == set("abcdefgh")
    np.testing.assert_array_equal(model.components_, IMAPCE(**QUICK).fit(X, prior=ERASED).components_)


def test_a_model_is_saved_and_loaded(tmp_path: Path) -> None:
    model = IMAPCE(**QUICK).fit(X, prior=ERASED)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").transform(X), model.transform(X))


def session(prior: Any) -> Exploration:
    return Exploration(X, prior=prior, estimator=IMAPCE(alpha=1.0, mu=50.0, n_starts=3), random_state=0)


def test_a_session_remembers_what_is_erased(tmp_path: Path) -> None:
    exploration = session([ERASED, Attributes([7])])
    assert share_read_back(exploration.propose().embedding, X[:, :2]) <= 1e-10
    exploration.accept(clusters=0)
    exploration.save(tmp_path / "session")
    loaded = Exploration.load(tmp_path / "session", X)
    np.testing.assert_array_equal(loaded.propose().components, exploration.propose().components)
    assert [getattr(prior, "erase", None) for prior in loaded.priors] == [True, False]
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "session").read_bytes()


def renamed_kinds(source: Path, target: Path, kinds: dict[str, str]) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "header.json":
                header = json.loads(content)
                for prior in header["priors"]:
                    prior["kind"] = kinds.get(prior["kind"], prior["kind"])
                content = json.dumps(header).encode()
            new.writestr(name, content)
    return target


def test_sessions_without_erasure_are_written_as_before_and_kinds_from_later_are_refused(tmp_path: Path) -> None:
    session(Attributes([0], weight=2.0)).save(tmp_path / "plain")
    header = json.loads(zipfile.ZipFile(tmp_path / "plain").read("header.json"))
    assert header["priors"] == [{"kind": "attributes", "columns": [0], "weight": 2.0}]
    later = renamed_kinds(tmp_path / "plain", tmp_path / "later", {"attributes": "something newer"})
    with pytest.raises(FileFormatError):
        Exploration.load(later, X)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    write_table({**dict(zip("abcdefgh", X.T, strict=True)), "kind": np.array(list("pqr"))[DATA.kind]}, path)
    return path


def axes(path: Path) -> NDArray[np.float64]:
    table = read_table(path)
    return np.column_stack([table["imapce0"].to_numpy(), table["imapce1"].to_numpy()])


def test_embed_erases_beside_known_columns(rows: Path, tmp_path: Path) -> None:
    told = succeed(
        *("embed", rows, "--erase", "a,b", "--known", "h", "--labels", "kind", "--mu", "50", "--starts", "4"),
        *("-o", tmp_path / "view.csv"),
    )
    assert "2 columns are erased: a, b" in told
    assert "1 column is known: h" in told
    assert share_read_back(axes(tmp_path / "view.csv"), X[:, :2]) <= 1e-10


def test_explore_and_compare_take_erase(rows: Path, tmp_path: Path) -> None:
    told = succeed("explore", rows, "--erase", "a,b", "--labels", "kind", "--starts", "3", "--max-steps", "1")
    assert "2 columns are erased: a, b" in told
    told = succeed("compare", rows, "--erase", "a", "--labels", "kind", "--methods", "CPCA")
    assert "1 column is erased: a" in told


def test_arrays_are_erased_by_position(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", X)
    succeed("embed", tmp_path / "rows.npy", "--erase", "0,1", "--starts", "3", "-o", tmp_path / "view.csv")
    assert share_read_back(axes(tmp_path / "view.csv"), X[:, :2]) <= 1e-10
    assert "--erase must be positions from 0" in refusal("embed", tmp_path / "rows.npy", "--erase", "a")


def test_bad_columns_to_erase_are_refused_by_the_name_of_the_option(rows: Path) -> None:
    assert "--erase must name a column of DATA, got 'nobody'" in refusal("embed", rows, "--erase", "nobody")
    both = refusal("embed", rows, "--erase", "a,b", "--known", "b")
    assert "--erase and --known must name different columns, and 'b' is in both" in both
    assert "leaves 1 of" in refusal("embed", rows, "--drop", "kind", "--erase", "a,b,c,d,e,f,g")

"""What a default fit shows is an optimum of equation 2 of the rows given the known, whatever is known: by formulas
written out here, from `given` alone.

    f(V) = ‖X − XVVᵀ‖² − α Σ w‖Y − YVVᵀ‖² + μ·n Σ s²,    s = qᵀA⁻¹q,  q = Vᵀz,  A = VᵀZᵀZV
    ∇f   = −2MV + 4μn [Zᵀ diag(s) Q A⁻¹ − ZᵀZ V A⁻¹ (Σ s q qᵀ) A⁻¹],     M = XᵀX − α Σ w YᵀY
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import imapce
from dask_clusters import needs_dask
from helpers import angle_between, grouped, standardised
from imapce import IMAPCE, Attributes, Labels, Samples, Subset, datasets

STATIONARY, SAME, PLACED, ENGINES = 1e-5, 1e-6, 1e-10, 1e-8

DATA = grouped(240)
FIVE = np.array(["a", "b", "c", "d", "e"], dtype=object)[np.arange(240) * 7 % 5]
RUN = np.array(["first", "second"], dtype=object)[DATA.batch]
NUMBER = DATA.X[:, 4] + np.random.default_rng(3).normal(size=240)
HOLES = np.where(np.arange(240) % 6 == 0, None, RUN)
BACKGROUND = grouped(150, seed=5).X * [1, 1, 0.1, 0.1, 1, 1, 1, 1]
KNOWN_ROWS = DATA.kind == 0


def clustered(n_rows: int = 240, n_features: int = 10, seed: int = 0) -> np.ndarray:
    """Three clusters, moved by runs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features)) / 2
    X += 4 * rng.normal(size=(3, n_features))[np.arange(n_rows) // 2 % 3]
    return X + 2 * rng.normal(size=(5, n_features))[np.arange(n_rows) * 7 % 5]


def with_categories() -> pd.DataFrame:
    table = pd.DataFrame(DATA.X, columns=[f"c{i}" for i in range(8)])
    return table.assign(kind=np.array(["u", "v", "w"])[DATA.kind], run=RUN)


def with_constants() -> np.ndarray:
    return np.insert(DATA.X, [2, 5], [0.1, 7.0], axis=1)


def with_a_minority() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(240, 6))
    X[:20, :3] += 6
    return X


def with_outliers() -> np.ndarray:
    X = clustered()
    X[[5, 17]] *= 1e3
    return X


@dataclass(frozen=True)
class Case:
    """A table, what is known of it, and the labels that `transform` needs; `weighed` are Y and the rows that are Z."""

    make: Callable[[], Any]
    prior: Any = None
    _: KW_ONLY
    labels: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    background: np.ndarray | None = None
    subset: np.ndarray | None = None
    erased: Callable[[np.ndarray], np.ndarray] | None = None

    def shuffled(self, order: np.ndarray) -> tuple[Any, Any]:
        """The table and the prior with the rows in another order."""
        X = self.make()
        X = X.iloc[order].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[order]
        priors = self.prior if isinstance(self.prior, list) else [] if self.prior is None else [self.prior]
        moved: list[Any] = []
        for one in priors:
            if isinstance(one, Labels):
                moved.append(Labels(np.asarray(one.y)[order], erase=one.erase))
            else:
                moved.append(Subset(np.asarray(one.rows)[order]) if isinstance(one, Subset) else one)
        return X, moved


def one_hot(labels: np.ndarray) -> np.ndarray:
    return (labels[:, None] == np.unique(labels)).astype(float)


CASES: dict[str, Case] = {
    "nothing known": Case(lambda: DATA.X),
    "nothing known, three clusters": Case(clustered),
    "nothing known, 64 columns": Case(lambda: datasets.load_digits().X[:300]),
    "a minority": Case(with_a_minority),
    "rows set aside": Case(with_outliers),
    "known numbers": Case(lambda: DATA.X, Attributes([0, 1])),
    "a known category": Case(with_categories, Attributes(["run"])),
    "a label of two classes": Case(lambda: DATA.X, Labels(RUN), labels=RUN),
    "a label of five classes": Case(clustered, Labels(FIVE), labels=FIVE),
    "a label that is a number": Case(lambda: DATA.X, Labels(NUMBER), labels=NUMBER),
    "a label with gaps": Case(lambda: DATA.X, Labels(HOLES), labels=HOLES),
    "two labels": Case(clustered, [Labels(RUN), Labels(FIVE)], labels=[RUN, FIVE]),
    "a label and a column": Case(clustered, [Labels(FIVE), Attributes([2])], labels=FIVE),
    "a label beside categories": Case(with_categories, Labels(NUMBER), labels=NUMBER),
    "erased columns": Case(lambda: DATA.X, Attributes([0, 1], erase=True), erased=lambda G: G[:, :2]),
    "an erased label": Case(clustered, Labels(FIVE, erase=True), erased=lambda G: one_hot(FIVE)),
    "three axes": Case(clustered, settings={"n_components": 3}),
    "three axes, a label": Case(clustered, Labels(FIVE), labels=FIVE, settings={"n_components": 3}),
    "sparse rows, a label": Case(lambda: sparse.csr_array(clustered()), Labels(FIVE), labels=FIVE),
    "constant columns": Case(with_constants),
    "constant columns, a label": Case(with_constants, Labels(RUN), labels=RUN),
    "a background": Case(lambda: DATA.X, Samples(BACKGROUND), background=BACKGROUND),
    "known rows": Case(lambda: DATA.X, Subset(KNOWN_ROWS), subset=KNOWN_ROWS),
    "known rows and a label": Case(clustered, [Subset(KNOWN_ROWS), Labels(FIVE)], labels=FIVE, subset=KNOWN_ROWS),
}
WEIGHED = [name for name, case in CASES.items() if case.background is not None or case.subset is not None]


@cache
def fitted(name: str) -> IMAPCE:
    case = CASES[name]
    return IMAPCE(**case.settings).fit(case.make(), prior=case.prior)


@cache
def given(name: str) -> np.ndarray:
    """X°, of the rows that count."""
    case = CASES[name]
    model = fitted(name)
    return np.delete(model.given(case.make(), labels=case.labels), model.outliers_, axis=0)


def own_units(name: str, rows: np.ndarray) -> np.ndarray:
    """Some rows of X°, centred and in units of their own spread before anything was taken from them."""
    model, X = fitted(name), np.asarray(CASES[name].make())[rows]
    left = given(name)[rows] * model.scale_
    spread = X.std(axis=0)
    return np.divide(left - left.mean(axis=0), spread, out=np.zeros_like(left), where=spread > 0)


def terms(name: str, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """M and Z."""
    case, X = CASES[name], given(name)
    if case.background is not None:
        Y = standardised(case.background)
        return X.T @ X - alpha * Y.T @ Y, X
    if case.subset is not None:
        Y, Z = own_units(name, case.subset), own_units(name, ~case.subset)
        return X.T @ X - alpha * Y.T @ Y, Z
    return X.T @ X, X


def gradient(M: np.ndarray, Z: np.ndarray, V: np.ndarray, mu: float) -> tuple[np.ndarray, float]:
    """∇f, and the size of its terms."""
    Q = Z @ V
    inverse = np.linalg.inv(Q.T @ Q)
    s = np.einsum("ik,kl,il->i", Q, inverse, Q)
    fourth = Z.T @ (s[:, None] * Q) @ inverse - Z.T @ Q @ inverse @ ((s[:, None] * Q).T @ Q) @ inverse
    pull = -2 * M @ V
    push = 4 * mu * len(Z) * fourth
    return pull + push, float(np.linalg.norm(pull) + np.linalg.norm(push))


def relative_gradient(name: str, V: np.ndarray, alpha: float, mu: float) -> float:
    """Along the manifold, within the directions that nothing erased bars."""
    case, X = CASES[name], given(name)
    slope, size = gradient(*terms(name, alpha), V, mu)
    taken = V
    if case.erased is not None:
        beside = case.erased(X)
        taken = np.linalg.svd(np.column_stack([V, X.T @ (beside - beside.mean(axis=0))]), full_matrices=False)
        kept = 1e-9 * taken.S[0] < taken.S
        taken = taken.U[:, kept]
    # A column in which the rows to explore do not vary is no direction to move in.
    slope = slope * (terms(name, alpha)[1].var(axis=0) > 1e-18)[:, None]
    return float(np.linalg.norm(slope - taken @ (taken.T @ slope))) / size


@pytest.mark.parametrize("name", CASES)
def test_every_optimum_is_stationary(name: str) -> None:
    model = fitted(name)
    assert model.optima_
    for one in model.optima_:
        assert np.allclose(one.components @ one.V, np.eye(len(one.components)), atol=1e-9)
        assert relative_gradient(name, one.V, one.alpha, one.mu) <= STATIONARY
    assert np.isinf(model.alpha_) == (name not in WEIGHED)


def test_what_is_no_optimum_is_not_stationary() -> None:
    """The formula above sees a view that is turned by a thousandth."""
    one = fitted("a label of five classes").optima_[0]
    turned = np.linalg.qr(one.V + 1e-3 * np.random.default_rng(0).normal(size=one.V.shape))[0]
    assert relative_gradient("a label of five classes", turned, one.alpha, one.mu) > 10 * STATIONARY


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.erased is not None])
def test_nothing_linear_is_left_of_what_is_erased(name: str) -> None:
    X, beside = given(name), CASES[name].erased(given(name))  # type: ignore[misc]
    for one in fitted(name).optima_:
        shared = (X @ one.V).T @ (beside - beside.mean(axis=0))
        assert np.abs(shared).max() < 1e-8 * len(X)


@pytest.mark.parametrize("name", CASES)
def test_the_view_is_given_times_the_axes(name: str) -> None:
    case, model = CASES[name], fitted(name)
    X = case.make()
    left = model.given(X, labels=case.labels)
    for place, one in enumerate(model.optima_):
        view = model.transform(X, labels=case.labels, view=place)
        np.testing.assert_allclose(view, left @ one.V, rtol=0, atol=PLACED * np.abs(left).max())
    again = IMAPCE(**case.settings).fit_transform(X, prior=case.prior)
    np.testing.assert_allclose(again, left @ model.components_.T, rtol=0, atol=PLACED * np.abs(left).max())


@pytest.mark.parametrize("name", [name for name in CASES if name not in WEIGHED])
def test_alpha_and_mu_lead_to_the_view_again(name: str) -> None:
    case, model = CASES[name], fitted(name)
    again = IMAPCE(**case.settings, alpha=model.alpha_, mu=model.mu_).fit(case.make(), prior=case.prior)
    assert angle_between(again.components_, model.components_) < SAME
    assert (again.alpha_, again.mu_) == (model.alpha_, pytest.approx(model.mu_, rel=1e-12))


@pytest.mark.parametrize("name", CASES)
def test_neither_the_order_of_rows_nor_the_seed_changes_the_view(name: str) -> None:
    case, model = CASES[name], fitted(name)
    order = np.random.default_rng(1).permutation(case.make().shape[0])
    X, prior = case.shuffled(order)
    other = IMAPCE(**case.settings, random_state=7).fit(X, prior=prior)
    assert angle_between(other.components_, model.components_) < SAME
    assert other.mu_ == pytest.approx(model.mu_, rel=1e-9)


KNOWN_BESIDE: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "a label": (Labels(FIVE), FIVE),
    "a label and a column": ([Labels(FIVE), Attributes([2])], FIVE),
    "an erased label": (Labels(FIVE, erase=True), None),
}


@cache
def fitted_beside(known: str) -> IMAPCE:
    return IMAPCE(engine="dense").fit(clustered(), prior=KNOWN_BESIDE[known][0])


def agree(one: IMAPCE, left: np.ndarray, known: str) -> None:
    _, labels = KNOWN_BESIDE[known]
    X, dense = clustered(), fitted_beside(known)
    assert angle_between(one.components_, dense.components_) < ENGINES
    np.testing.assert_allclose(left, dense.given(X, labels=labels), rtol=0, atol=ENGINES)


@pytest.mark.parametrize("known", KNOWN_BESIDE)
@pytest.mark.parametrize("engine", ["sparse", "moment_tensor", "files"])
def test_engines_agree(engine: str, known: str, tmp_path: Path) -> None:
    prior, labels = KNOWN_BESIDE[known]
    X: Any = clustered()
    if engine == "files":
        pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]).to_parquet(tmp_path / "rows.parquet")
        X = imapce.scan(tmp_path / "rows.parquet")
    elif engine == "sparse":
        X = sparse.csr_array(X)
    model = IMAPCE(engine=engine).fit(X, prior=prior)
    # With a label beside them so few rows are not worth folding.
    assert model.engine_ == ("dense" if engine == "moment_tensor" and known != "nothing" else engine)
    agree(model, model.given(X, labels=labels), known)


@needs_dask
@pytest.mark.parametrize("dask_scheduler", ["cluster"], indirect=True)
@pytest.mark.parametrize("known", KNOWN_BESIDE)
def test_a_cluster_agrees(known: str, dask_scheduler: str) -> None:
    import dask.array as da

    prior, labels = KNOWN_BESIDE[known]
    # Two chunks are a cluster's sums, and a round costs what its tasks cost the scheduler.
    X = da.from_array(clustered(), chunks=(130, 10))
    model = IMAPCE(engine="dask").fit(X, prior=prior)
    assert model.engine_ == "dask"
    agree(model, model.given(X, labels=labels).compute(), known)

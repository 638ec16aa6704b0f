"""Bad input is refused with one sentence that names the argument and what was got."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from imapce import IMAPCE, Attributes, ImapceError, Samples, Subset
from imapce.errors import InvalidValueError

X = np.random.default_rng(0).normal(size=(40, 5))
NAMED = pd.DataFrame(X, columns=list("abcde"))
DAYS = np.arange(200).reshape(40, 5).astype("datetime64[D]")


def as_np_matrix(values: np.ndarray) -> np.ndarray:
    """The matrix class NumPy warns of, whoever has silenced that or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.matrix(values)


def holding(value: float) -> np.ndarray:
    changed = X.copy()
    changed[3, 2] = value
    return changed


def refused(action: Callable[[], object], *parts: str) -> None:
    with pytest.raises(ImapceError) as caught:
        action()
    error, message = caught.value, str(caught.value)
    assert isinstance(error, (ValueError, TypeError))
    assert "\n" not in message
    for part in parts:
        assert part in message, message


ARRAYS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "NaN": (holding(np.nan), ("X ", "'x2'", "NaN")),
    "infinity": (holding(np.inf), ("X ", "'x2'", "inf")),
    "minus infinity": (holding(-np.inf), ("X ", "'x2'", "inf")),
    "NaN in a sparse matrix": (sparse.csr_array(holding(np.nan)), ("X ", "'x2'", "NaN")),
    "infinity in a sparse matrix": (sparse.csc_array(holding(np.inf)), ("X ", "'x2'", "inf")),
    "text": (np.array([["a", "b"], ["c", "d"], ["e", "f"]]), ("X ", "text")),
    "text in an object array": (np.array([["a", 1], ["c", 2], ["e", 3]], dtype=object), ("X ", "'a'")),
    "dates": (DAYS, ("X ", "datetime64")),
    "durations": (DAYS - DAYS[0, 0], ("X ", "timedelta64")),
    "complex numbers": (X + 1j, ("X ", "complex128")),
    "one row": (X[:1], ("X ", "1 sample")),
    "one column for two axes": (X[:, :1], ("n_components", "1 feature")),
    "as many rows as axes": (X[:2], ("X ", "n_components=2", "2 sample")),
    "constant columns": (np.ones((10, 4)), ("X ", "got 0")),
    "equal rows": (np.tile(X[:1], (10, 1)), ("X ", "got 0")),
    "one column that varies": (np.column_stack([X[:, 0], np.ones((40, 3))]), ("X ", "got 1")),
    "copies of one column": (np.column_stack([X[:, 0]] * 4), ("X ", "n_components=2", "repeat")),
    "1e300": (X * 1e300, ("X ", "1e75", "'x0'")),
    "1e300 in one column": (X * np.array([1, 1, 1, 1, 1e300]), ("X ", "'x4'")),
    "1e-300": (X * 1e-300, ("X ", "got 0")),
    "1e-155": (X * 1e-155, ("X ", "got 0", "below 1e-150")),
    "whole numbers beyond all floats": ([[10**400 + i, i % 3, i % 7] for i in range(9)], ("X ", "too large")),
    "one dimension": (X[0], ("X ", "(5,)")),
    "three dimensions": (X[None], ("X ", "(1, 40, 5)")),
    "no dimension": (3.0, ("X ", "()")),
    "nothing": (None, ("X ", "NoneType")),
    "a path": ("table.csv", ("X ", "str")),
    "a dict": ({"a": [1, 2, 3]}, ("X ", "dict")),
    "a ragged list": ([[1, 2], [3]], ("X ",)),
    "an empty list": ([], ("X ",)),
    "no rows": (np.empty((0, 3)), ("X ", "0 sample")),
    "no columns": (np.empty((5, 0)), ("X ", "0 feature")),
    "np.matrix": (as_np_matrix(X), ("X ", "np.matrix")),
    "a table of dates": (
        pd.DataFrame({"a": pd.date_range("2020", periods=9), "b": 1}),
        ("X ", "'a' is a date", "'b' is constant", 'dates="as-numbers"'),
    ),
    "a table of free text": (
        pl.DataFrame({"a": [f"t{i % 8}" for i in range(9)], "b": ["x"] * 9}),
        ("X ", "'a' is free text", "'b' is constant"),
    ),
    "a table with NaN": (pd.DataFrame(holding(np.nan), columns=list("abcde")), ("X ", "'c'", "NaN")),
    "a table with two columns of one name": (pd.DataFrame(X, columns=list("aabcd")), ("X ", "'a'")),
    "a lazy table": (pl.DataFrame(X).lazy(), ("X ", "LazyFrame")),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_fit_refuses(case: str) -> None:
    data, parts = ARRAYS[case]
    refused(lambda: IMAPCE(random_state=0).fit(data), *parts)


@pytest.mark.parametrize("mu", [0.0, "auto"])
@pytest.mark.parametrize("engine", ["dense", "sparse", "moment_tensor"])
def test_too_few_directions_are_refused_whatever_mu_and_engine(mu: float | str, engine: str) -> None:
    copies = X[:, [0, 0, 0]] * np.array([1.0, 2.0, -3.0])
    refused(lambda: IMAPCE(mu=mu, engine=engine, random_state=0).fit(copies), "X ", "n_components=2")
    assert IMAPCE(1, mu=mu, engine=engine, random_state=0).fit(copies).components_.shape == (1, 3)


def test_a_sparse_matrix_is_refused_by_the_dense_engine() -> None:
    refused(lambda: IMAPCE(engine="dense").fit(sparse.csr_array(X)), "engine='dense'", "sparse")


def test_nan_in_an_array_is_named_by_position_after_a_fit_on_a_table() -> None:
    model = IMAPCE(random_state=0).fit(NAMED[["a", "b", "c"]])
    refused(lambda: model.fit(holding(np.nan)), "X ", "'x2'")


@pytest.mark.parametrize("scale", [1e-140, 1e-80, 1e70])
def test_tiny_and_huge_units_still_work(scale: float) -> None:
    plain, scaled = IMAPCE(random_state=0).fit(X), IMAPCE(random_state=0).fit(X * scale)
    assert np.allclose(scaled.transform(X * scale), plain.transform(X), atol=1e-6)


ARRAY_MODEL = IMAPCE(mu=1.0, n_starts=2, random_state=0).fit(X)
PANDAS_MODEL = IMAPCE(mu=1.0, n_starts=2, random_state=0).fit(NAMED)
POLARS_MODEL = IMAPCE(mu=1.0, n_starts=2, random_state=0).fit(pl.from_pandas(NAMED))
TRANSFORMS: dict[str, tuple[IMAPCE, Any, tuple[str, ...]]] = {
    "fewer columns": (ARRAY_MODEL, X[:, :3], ("X has 3 features", "5")),
    "NaN": (ARRAY_MODEL, holding(np.nan), ("X ", "'x2'")),
    "one dimension": (ARRAY_MODEL, X[0], ("X ", "(5,)")),
    "no rows": (ARRAY_MODEL, X[:0], ("X ", "0 sample")),
    "text": (ARRAY_MODEL, np.array([list("abcde")]), ("X ", "text")),
    "a narrower table": (ARRAY_MODEL, pl.DataFrame(X[:, :3]), ("X ", "got 3")),
    "another name in polars": (POLARS_MODEL, pl.DataFrame(X, schema=list("abcdx")), ("X must have", "'x'")),
    "one more column in polars": (
        POLARS_MODEL,
        pl.DataFrame(X, schema=list("abcde")).with_columns(x=1),
        ("X must have", "'x'"),
    ),
}


@pytest.mark.parametrize("case", TRANSFORMS)
def test_transform_refuses(case: str) -> None:
    model, data, parts = TRANSFORMS[case]
    refused(lambda: model.transform(data), *parts)


@pytest.mark.parametrize("columns", ["abcdx", "edcba"])
def test_transform_refuses_other_names_in_pandas_in_scikit_learn_s_words(columns: str) -> None:
    with pytest.raises(ImapceError, match="The feature names should match those that were passed during fit"):
        PANDAS_MODEL.transform(pd.DataFrame(X, columns=list(columns)))


def test_inverse_transform_refuses_other_widths_and_text() -> None:
    refused(lambda: ARRAY_MODEL.inverse_transform(X), "X ", "(40, 5)")
    refused(lambda: ARRAY_MODEL.inverse_transform([["a", "b"]]), "X ", "'a'")


PRIORS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "no column": (lambda: Attributes([]), ("Attributes(columns)", "empty")),
    "all columns": (lambda: Attributes(range(5)), ("Attributes(columns)", "all 5")),
    "all columns by mask": (lambda: Attributes([True] * 5), ("Attributes(columns)", "all 5")),
    "a column too far": (lambda: Attributes([9]), ("Attributes(columns)", "got 9")),
    "a column too far back": (lambda: Attributes([-6]), ("Attributes(columns)", "got -6")),
    "a name without names": (lambda: Attributes(["q"]), ("Attributes(columns)", "'q'")),
    "a fraction as column": (lambda: Attributes([1.5]), ("Attributes(columns)", "1.5")),
    "a number as columns": (lambda: Attributes(3.5), ("Attributes(columns)", "3.5")),
    "True as columns": (lambda: Attributes(True), ("Attributes(columns)", "True")),
    "None as columns": (lambda: Attributes(None), ("Attributes(columns)", "None")),
    "a short column mask": (lambda: Attributes([True, False]), ("Attributes(columns)", "got 2")),
    "no background rows": (lambda: Samples(X[:0]), ("Samples(background)", "got 0")),
    "one background row": (lambda: Samples(X[:1]), ("Samples(background)", "got 1")),
    "a narrow background": (lambda: Samples(X[:, :2]), ("Samples(background)", "5 columns of X; got 2")),
    "a flat background": (lambda: Samples(X[0]), ("Samples(background)", "(5,)")),
    "no background": (lambda: Samples(None), ("Samples(background)", "()")),
    "NaN in the background": (lambda: Samples(holding(np.nan)), ("Samples(background)", "'x2'", "NaN")),
    "inf in a sparse background": (lambda: Samples(sparse.csr_array(holding(np.inf))), ("Samples(background)", "'x2'")),
    "1e300 in the background": (lambda: Samples(X * 1e300), ("Samples(background)", "'x0'")),
    "text in the background": (lambda: Samples(np.array([["a"] * 5] * 3)), ("Samples(background)", "text")),
    "objects in the background": (
        lambda: Samples(np.array([["a"] * 5] * 3, dtype=object)),
        ("Samples(background)", "'a'"),
    ),
    "dates in the background": (lambda: Samples(DAYS), ("Samples(background)", "datetime64")),
    "complex background": (lambda: Samples(X + 1j), ("Samples(background)", "complex128")),
    "no known row": (lambda: Subset([]), ("Subset(rows)", "empty")),
    "no known row by mask": (lambda: Subset(np.zeros(40, dtype=bool)), ("Subset(rows)", "empty")),
    "all rows known": (lambda: Subset(np.ones(40, dtype=bool)), ("Subset(rows)", "0 of 40")),
    "all rows known together": (
        lambda: [Subset(np.arange(20)), Subset(np.arange(20, 40))],
        ("Subset(rows)", "0 of 40"),
    ),
    "two rows left": (lambda: Subset(range(38)), ("Subset(rows)", "2 of 40")),
    "a mask of another length": (lambda: Subset(np.ones(39, dtype=bool)), ("Subset(rows)", "got 39")),
    "a row too far": (lambda: Subset([40]), ("Subset(rows)", "got 40")),
    "a row too far back": (lambda: Subset([-41]), ("Subset(rows)", "got -41")),
    "a fraction as row": (lambda: Subset([1.5]), ("Subset(rows)", "float64")),
    "text as row": (lambda: Subset(["a"]), ("Subset(rows)", "<U1")),
    "a matrix of rows": (lambda: Subset([[1]]), ("Subset(rows)", "(1, 1)")),
    "one number as rows": (lambda: Subset(3), ("Subset(rows)", "()")),
    "text": (lambda: "batch", ("prior", "'batch'", "pass X as a table")),
    "a matrix as labels": (lambda: X, ("Labels(y)", "ndarray", "Samples(background)")),
    "a list with a stranger": (lambda: [Attributes([0]), 3], ("prior", "int")),
    "the class itself": (lambda: Attributes, ("prior", "type")),
    "weight 0": (lambda: Attributes([0], weight=0), ("weight", "got 0")),
    "a negative weight": (lambda: Samples(X, weight=-1.5), ("weight", "got -1.5")),
    "weight NaN": (lambda: Subset([0], weight=float("nan")), ("weight", "got nan")),
    "an endless weight": (lambda: Subset([0], weight=float("inf")), ("weight", "got inf")),
    "text as weight": (lambda: Attributes([0], weight="x"), ("weight", "'x'")),  # type: ignore[arg-type]
    "True as weight": (lambda: Attributes([0], weight=True), ("weight", "True")),
}


@pytest.mark.parametrize("case", PRIORS)
def test_a_prior_is_refused(case: str) -> None:
    make, parts = PRIORS[case]
    refused(lambda: IMAPCE(n_starts=2, random_state=0).fit(X, prior=make()), *parts)


def test_an_unknown_name_in_a_table_is_refused_with_the_nearest_one() -> None:
    refused(lambda: IMAPCE().fit(NAMED, prior=Attributes(["aa"])), "Attributes(columns)", "'aa'", "'a'")
    refused(lambda: IMAPCE().fit(NAMED, prior=Attributes([9])), "Attributes(columns)", "9")


def test_a_background_table_without_a_column_of_x_is_refused() -> None:
    refused(lambda: IMAPCE().fit(NAMED, prior=Samples(NAMED.drop(columns="e"))), "Samples(background)", "'e'")


PARAMETERS: list[tuple[str, Any]] = [
    *[("n_components", value) for value in (0, -1, 2.5, True, "2", None, 6)],
    *[("alpha", value) for value in (-1, "x", np.nan, None, True)],
    *[("mu", value) for value in ("x", np.inf, np.nan, None, [1], 1e300, -1e300)],
    *[("engine", value) for value in ("gpu", None, 3)],
    *[("tol", value) for value in (np.nan, -1, "a", None)],
    *[("n_starts", value) for value in (0, 1.0, None, True)],
    *[("max_iter", value) for value in (0, None, 2.5)],
    *[("standardize", value) for value in ("yes", 2, None)],
    *[("random_state", value) for value in ("x", -1, 1.5)],
    ("verbose", "loud"),
]


@pytest.mark.parametrize(("name", "value"), PARAMETERS)
def test_a_parameter_is_refused(name: str, value: Any) -> None:
    refused(lambda: IMAPCE(**{name: value}).fit(X), name, str(value))


@pytest.mark.filterwarnings("error")
def test_weights_whose_squares_overflow_are_refused() -> None:
    refused(lambda: IMAPCE(alpha=1e300, mu=1e300).fit(X, prior=Attributes([0])), "alpha", "1e+300")
    refused(lambda: IMAPCE(alpha=1e300).fit(X, prior=Attributes([0])), "alpha", "1e+300")
    IMAPCE(alpha=1e100, mu=1e100, random_state=0).fit(X, prior=Attributes([0]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("standardize", [True, False])
def test_a_column_too_small_for_its_squares_counts_as_constant(standardize: bool) -> None:
    small = X * np.array([1, 1e-155, 1, 1, 1])
    model = IMAPCE(random_state=0, standardize=standardize).fit(small)
    assert model.scale_[1] == 0
    assert np.isfinite(model.transform(small)).all()


def test_whole_numbers_beyond_64_bits_are_read_as_floats() -> None:
    whole = [[2**70 * int(a), int(b), int(c)] for a, b, c in (100 * X[:, :3]).tolist()]
    model = IMAPCE(random_state=0).fit(whole)
    assert np.array_equal(model.transform(whole), model.transform(np.array(whole, dtype=np.float64)))


def test_masked_values_are_refused_and_an_empty_mask_is_not() -> None:
    masked = np.ma.array(np.random.default_rng(0).normal(size=(30, 3)))
    IMAPCE(n_starts=2, random_state=0).fit(masked)
    masked[3, 0] = np.ma.masked
    with pytest.raises(InvalidValueError, match="X must have no masked values, and 1 are"):
        IMAPCE(n_starts=2).fit(masked)


def test_a_mask_of_integers_is_refused_instead_of_read_as_two_positions() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(InvalidValueError, match=r"astype\(bool\)"):
        IMAPCE().fit(X, prior=Subset((X[:, 0] > 0).astype(int)))


def test_a_pandas_mask_with_another_index_is_refused() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))
    mask = table["a"] > 0
    IMAPCE(n_starts=2, random_state=0).fit(table, prior=Subset(mask))
    with pytest.raises(InvalidValueError, match="another index than X"):
        IMAPCE(n_starts=2).fit(table, prior=Subset(mask[::-1]))


def test_time_stamps_close_together_still_count_as_varying() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([1.7e18 + 1024.0 * rng.integers(0, 200, 60), rng.normal(size=(60, 2))])
    assert (IMAPCE(n_starts=2, random_state=0).fit(X).scale_ > 0).all()

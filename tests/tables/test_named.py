"""Matrices whose columns have names: fitted as the bare matrix is, matched by name, sparse throughout."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from imapce import IMAPCE, Attributes, Exploration, ImapceError, Samples, load_model
from imapce.tables import NamedMatrix

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, size=(160, 12)).astype(float)
NAMES = tuple(f"gene{place}" for place in range(12))
KINDS = {
    "array": COUNTS,
    "csr": sparse.csr_matrix(COUNTS),
    "csc": sparse.csc_array(COUNTS),
    "coo": sparse.coo_array(COUNTS),
}


def model(**parameters: Any) -> IMAPCE:
    return IMAPCE(random_state=0, n_starts=2, **parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_a_named_matrix_is_fitted_as_the_matrix_itself(kind: str) -> None:
    named = NamedMatrix(KINDS[kind], NAMES)
    fitted = model().fit(named, prior=Attributes(["gene3"]))
    bare = model().fit(KINDS[kind], prior=Attributes([3]))
    np.testing.assert_array_equal(fitted.components_, bare.components_)
    np.testing.assert_array_equal(fitted.transform(named), bare.transform(KINDS[kind]))
    assert fitted.feature_names_in_.tolist() == list(NAMES)
    assert set(fitted.loadings()["feature"]) == set(NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_a_background_is_matched_by_name(kind: str) -> None:
    named = NamedMatrix(KINDS[kind], NAMES)
    shuffled = RNG.permutation(12)
    extra = np.column_stack([COUNTS[:60, shuffled], np.ones(60)])
    background = NamedMatrix(sparse.csr_array(extra), (*(NAMES[place] for place in shuffled), "another"))
    fitted = model().fit(named, prior=Samples(background))
    np.testing.assert_allclose(
        fitted.transform(named), model().fit(COUNTS, prior=Samples(COUNTS[:60])).transform(COUNTS), atol=1e-8
    )


def test_a_saved_model_knows_the_names(tmp_path: Path) -> None:
    named = NamedMatrix(KINDS["csr"], NAMES)
    fitted = model().fit(named)
    fitted.save(tmp_path / "view.imapce")
    again = load_model(tmp_path / "view.imapce")
    np.testing.assert_array_equal(again.transform(named), fitted.transform(named))
    assert again.input_columns == NAMES


def test_an_exploration_describes_by_name() -> None:
    X = COUNTS.copy()
    X[:60, 4] += 12.0
    exploration = Exploration(NamedMatrix(sparse.csr_array(X), NAMES), random_state=0)
    assert exploration.describe(np.arange(60)).features[0].name == "gene4"


def test_gaps_are_filled_as_those_of_an_array() -> None:
    X = COUNTS.copy()
    X[3, 5] = np.nan
    named = NamedMatrix(X, NAMES)
    filled = model(missing="mean").fit(named)
    np.testing.assert_array_equal(filled.transform(named), model(missing="mean").fit(X).transform(X))
    with pytest.raises(ImapceError, match="'gene5' has 1"):
        model().fit(named)


def test_sparse_is_never_written_out() -> None:
    """200,000 x 4,000 numbers are 6 GB written out; the search must do with a small part of that."""
    sparse_rows = sparse.csr_array(sparse.random(200_000, 4_000, density=2.5e-4, random_state=0))
    names = tuple(f"gene{place}" for place in range(4_000))
    tracemalloc.start()
    try:
        fitted = model(alpha=0.0, mu=0.0, outliers="keep").fit(NamedMatrix(sparse_rows, names))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fitted.components_.shape == (2, 4_000)
    assert most < 600e6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NamedMatrix([[1.0]], ["a"]), "2-D array or a sparse matrix"),
        (lambda: NamedMatrix(np.eye(2), ["a"]), "one name for each of the 2 columns; got 1"),
        (lambda: NamedMatrix(np.eye(2), ["a", "a"]), "column, got .a. more than once: rename the repeats"),
        (lambda: NamedMatrix(np.eye(2), ["a", "b"], about_rows=[1]), "one row for each of the 2 rows; got 1"),
        (lambda: NamedMatrix(np.eye(2), ["a", "b"]).select(["aa"]), "lacks 'aa'"),
        (lambda: model().fit(NamedMatrix(COUNTS.astype(str), NAMES)), "must hold numbers"),
        (
            lambda: model().fit(NamedMatrix(COUNTS, NAMES), prior=Samples(NamedMatrix(COUNTS[:, :3], NAMES[:3]))),
            r"Samples\(background\) must have the columns asked for, and it lacks 'gene3'",
        ),
        (
            lambda: (
                model().fit(NamedMatrix(COUNTS, NAMES)).transform(NamedMatrix(COUNTS[:, ::-1], [*NAMES[1:], "new"]))
            ),
            f"must have the columns .* lacks '{NAMES[0]}' and has the extra 'new'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(make: Any, words: str) -> None:
    with pytest.raises(ImapceError, match=words):
        make()

"""Priors combine and weigh as the formula says: M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, Z is what no subset covers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers import angle_between, grouped, literal_objective, standardised
from imapce import IMAPCE, Attributes, Labels, Samples, Subset
from imapce.priors.base import Prior
from imapce.priors.kinds import KINDS, as_list, prior_of_json
from imapce.tables.reader import Reader

DATA = grouped()
X = DATA.X
BACKGROUND = grouped(80, seed=4).X * np.arange(1, 9)
KNOWN = DATA.kind == 0


def fitted(prior: Any, **changes: Any) -> IMAPCE:
    return IMAPCE(**{"alpha": 1.0, "mu": 50.0, "n_starts": 4, "random_state": 0} | changes).fit(X, prior=prior)


MAKERS: dict[str, Any] = {
    "attributes": lambda weight: Attributes([0, 1], weight=weight),
    "samples": lambda weight: Samples(BACKGROUND, weight=weight),
    "subset": lambda weight: Subset(KNOWN, weight=weight),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_weight_two_once_is_the_same_as_the_prior_listed_twice(kind: str) -> None:
    make = MAKERS[kind]
    once, twice = fitted(make(2.0)), fitted([make(1.0), make(1.0)])
    assert angle_between(once.components_, twice.components_) < 1e-7
    assert once.objective_ == pytest.approx(twice.objective_, rel=1e-10)
    assert once.objective_ != pytest.approx(fitted(make(1.0)).objective_, rel=1e-3)


@pytest.mark.parametrize("kind", MAKERS)
def test_the_weight_and_alpha_multiply(kind: str) -> None:
    make = MAKERS[kind]
    one, other = fitted(make(3.0), alpha=0.5), fitted(make(1.0), alpha=1.5)
    assert angle_between(one.components_, other.components_) < 1e-7


@pytest.mark.parametrize("kind", MAKERS)
def test_a_list_of_one_and_a_tuple_of_one_are_the_prior_itself(kind: str) -> None:
    prior = MAKERS[kind](1.0)
    assert np.array_equal(fitted([prior]).components_, fitted(prior).components_)
    assert np.array_equal(fitted((prior,)).components_, fitted(prior).components_)


def test_the_order_of_priors_does_not_matter() -> None:
    priors = [make(0.7) for make in MAKERS.values()]
    assert angle_between(fitted(priors).components_, fitted(priors[::-1]).components_) < 1e-6


def test_two_subsets_leave_what_neither_covers() -> None:
    other = DATA.kind == 1
    model = fitted([Subset(KNOWN), Subset(other)])
    Z = standardised(X[~(KNOWN | other)])
    V = model.components_.T
    expected = literal_objective(standardised(X), standardised(X[KNOWN]), Z, V, 1.0, 50.0)
    Y = standardised(X[other])
    expected -= np.linalg.norm(Y - Y @ V @ V.T) ** 2
    assert model.objective_ == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_subset_and_its_rest_are_each_scaled_on_their_own(standardize: bool) -> None:
    model = fitted(Subset(KNOWN), standardize=standardize)
    own = standardised if standardize else (lambda rows: rows - rows.mean(axis=0))
    V = model.components_.T
    expected = literal_objective(own(X), own(X[KNOWN]), own(X[~KNOWN]), V, 1.0, 50.0)
    assert model.objective_ == pytest.approx(expected, rel=1e-10)


def test_a_column_that_is_constant_among_the_unknown_rows_gets_no_weight_from_rounding() -> None:
    data = X.copy()
    data[~KNOWN, 4] = 0.1
    for engine in ("dense", "sparse", "moment_tensor"):
        model = IMAPCE(alpha=1.0, mu=1e4, n_starts=6, random_state=0, engine=engine).fit(data, prior=Subset(KNOWN))
        assert np.isfinite(model.kurtosis_)
        assert model.kurtosis_ >= 4 - 1e-9


def test_as_list_takes_none_one_and_several() -> None:
    prior = Attributes([0])
    assert as_list(None) == []
    assert as_list(prior) == [prior]
    assert as_list((prior, prior)) == [prior, prior]


def test_known_rows_reads_masks_and_positions_and_keeps_the_mask_its_own() -> None:
    mask = np.array([True, False, True, False])
    read = Subset(mask).row_mask(4)
    read[1] = True
    assert mask.tolist() == [True, False, True, False]
    assert Subset([0, -2]).row_mask(4).tolist() == mask.tolist()
    assert Subset(np.array([2, 0, 0], dtype=np.uint8)).row_mask(4).tolist() == mask.tolist()


def test_known_columns_reads_single_positions_and_masks() -> None:
    assert Attributes(1).column_mask(Reader(3)).tolist() == [False, True, False]
    assert Attributes([0, 2]).column_mask(Reader(3)).tolist() == [True, False, True]
    assert Attributes([True, False, False]).column_mask(Reader(3)).tolist() == [True, False, False]


def test_a_prior_says_what_it_is() -> None:
    assert repr(Attributes(["batch"], weight=2.0)) == "Attributes(columns=['batch'], weight=2.0, erase=False)"


EVERY_KIND = [
    Attributes([0, 2], weight=2.0, erase=True),
    Labels(np.arange(6) % 2),
    Samples(np.ones((3, 3))),
    Subset([1, 2]),
]


@pytest.mark.parametrize("prior", EVERY_KIND, ids=lambda prior: prior.kind)
def test_a_file_gives_back_what_was_known(prior: Prior) -> None:
    arrays: dict[str, Any] = {}
    read = prior_of_json(3, prior.to_json(3, arrays, 6), arrays, (6, 3))
    assert isinstance(read, KINDS[prior.kind])
    assert (read.weight, read.erase, read.listed) == (prior.weight, prior.erase, prior.listed)
    assert read.row_mask(6).tolist() == prior.row_mask(6).tolist()
    assert read.read_labels(6) == prior.read_labels(6)


@pytest.mark.parametrize(
    ("prior", "python", "phrase", "sentence"),
    [
        (
            EVERY_KIND[0],
            "Attributes([0, 2], erase=True)",
            "2 columns are erased: 0, 2",
            "2 columns were erased (x0, x2): nothing linear of them is left in views and clusters.",
        ),
        (
            EVERY_KIND[1],
            "Labels(...)",
            "the label is known",
            "A label was known: its effect is explained away, given the clusters.",
        ),
        (
            EVERY_KIND[2],
            "Samples(...)",
            "3 background rows are known",
            "A background of 3 rows was known: views give up what varies there too.",
        ),
        (
            EVERY_KIND[3].resolve(6),
            "Subset(np.r_[1:3])",
            "2 rows are known",
            "2 of 6 rows were known.",
        ),
    ],
    ids=KINDS,
)
def test_every_kind_has_its_words_and_its_python(prior: Prior, python: str, phrase: str, sentence: str) -> None:
    assert (prior.python(), prior.phrase, prior.sentence(Reader(3))) == (python, phrase, sentence)

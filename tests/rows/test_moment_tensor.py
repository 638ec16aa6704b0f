"""Fourth moments are folded when they are first asked for, and once in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers import grouped
from imapce import IMAPCE, Attributes, Exploration
from imapce.rows import moment_tensor
from imapce.rows.dense import DenseRows
from imapce.rows.moment_tensor import MomentTensorRows


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were folded, one entry a fold."""
    counted: list[int] = []
    fold = MomentTensorRows._fold

    def counting(self: MomentTensorRows, rows: Any) -> Any:
        counted.append(rows.n_rows)
        return fold(self, rows)

    monkeypatch.setattr(MomentTensorRows, "_fold", counting)
    return counted


def test_rows_are_folded_when_quartic_first_asks(folds: list[int]) -> None:
    rows = MomentTensorRows(DenseRows(grouped(100, 4).X))
    half = rows.subset(np.arange(100) < 50)
    rows.moments(), half.moments(), half.project(np.eye(4), np.zeros(4))
    assert folds == []
    half.quartic(np.eye(4)[None, :, :2], np.zeros((1, 2)))
    half.quartic(np.eye(4)[None, :, 2:], np.zeros((1, 2)))
    assert folds == [50]


@pytest.mark.parametrize("rest", [8, 40])
def test_a_large_part_is_the_whole_less_the_others(
    rest: int, folds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = grouped(100, 4).X
    inside = np.arange(100) >= rest
    W, offset = np.random.default_rng(0).normal(size=(2, 4, 2)), np.zeros((2, 2))
    anew = MomentTensorRows(DenseRows(X[inside])).quartic(W, offset)
    monkeypatch.setattr(moment_tensor, "QUICK_FOLD", 0)
    part = MomentTensorRows(DenseRows(X)).subset(inside)
    assert folds == [100 - rest]
    np.testing.assert_allclose(part.quartic(W, offset).weighted, anew.weighted, rtol=1e-8)
    assert folds == [100 - rest, 100, rest]


@pytest.mark.parametrize("estimator", [IMAPCE(n_starts=3), IMAPCE(alpha=1.0, mu=30.0, n_starts=3)])
def test_a_step_folds_once(estimator: IMAPCE, folds: list[int]) -> None:
    exploration = Exploration(grouped(400).X, estimator=estimator, random_state=0)
    for _ in range(2):
        folds.clear()
        exploration.propose()
        exploration.cluster(len(exploration.propose().views) - 1)
        exploration.test()
        exploration.accept()
        assert len(folds) == 1


def test_known_columns_fold_once_for_each_space_that_is_searched(folds: list[int]) -> None:
    IMAPCE(n_starts=3, random_state=0).fit(grouped(400).X, prior=Attributes([0, 1]))
    assert 1 <= len(folds) <= 2

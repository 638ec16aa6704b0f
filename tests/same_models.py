"""Every fitted attribute of two models, compared."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np

from helpers import angle_between
from imapce import IMAPCE
from imapce.priors.effect import Effect
from imapce.search.race import Optimum

SAME = 1e-6
# Rounding decides which of the last rounds of a search is its last.
OF_THE_SEARCH = ("engine_", "n_evaluations_", "n_iter_", "trace_")


def assert_same_fit(one: IMAPCE, other: IMAPCE, *, but: Collection[str] = OF_THE_SEARCH) -> None:
    """The same attributes with the same values, to a millionth of a relative or of an angle."""
    names = {name for name in vars(one) if name.endswith("_") and not name.startswith("_")}
    assert names == {name for name in vars(other) if name.endswith("_") and not name.startswith("_")}
    assert {"components_", "mean_", "scale_", "optima_", "objective_", "outliers_", "n_features_in_"} <= names
    for name in sorted(names - set(but)):
        _same(name, getattr(one, name), getattr(other, name))


def _same(name: str, one: Any, other: Any) -> None:
    if isinstance(one, Optimum):
        assert angle_between(one.components, other.components) < SAME, name
        for part in ("objective", "kurtosis", "alpha", "mu", "separation", "seen"):
            _same(f"{name}.{part}", getattr(one, part), getattr(other, part))
        # Last digits decide which of two equally distant rows is a neighbor.
        np.testing.assert_allclose(one.kept, other.kept, atol=1e-4, err_msg=f"{name}.kept")
    elif isinstance(one, Effect):
        assert [code.names for code in one.codes] == [code.names for code in other.codes], name
        for mine, theirs in zip(one.codes, other.codes, strict=True):
            _same(f"{name}.centre", mine.centre, theirs.centre)
            _same(f"{name}.unit", mine.unit, theirs.unit)
        _same(f"{name}.columns", one.columns, other.columns)
        _same(f"{name}.weights", one.weights, other.weights)
    elif isinstance(one, (list, tuple)) and one and isinstance(one[0], Optimum):
        assert len(one) == len(other), name
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            _same(f"{name}[{place}]", mine, theirs)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), name
        for key in one:
            _same(f"{name}[{key}]", one[key], other[key])
    elif isinstance(one, np.ndarray) and one.dtype.kind == "f":
        size = max(1e-300, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=SAME, atol=SAME * size, err_msg=name)
    elif isinstance(one, np.ndarray):
        assert list(one) == list(other), name
    elif isinstance(one, float):
        np.testing.assert_allclose(one, other, rtol=SAME, err_msg=name)
    elif name == "stop_reason_":
        # It counts the rounds.
        assert re.sub(r"\d+", "", one) == re.sub(r"\d+", "", other)
    elif name == "reader_":
        assert one.columns == other.columns
        assert one.encoding.categories == other.encoding.categories
        np.testing.assert_allclose(one.encoding.fill, other.encoding.fill, rtol=1e-12)
    else:
        assert one == other, name

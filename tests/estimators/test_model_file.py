"""What the known does to the rows is part of a model's file; older files open, and damaged ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from archives import repacked, unpacked
from helpers import grouped
from imapce import IMAPCE, Attributes, Labels, load_model
from imapce.errors import FileFormatError

DATA = grouped(120)
X = DATA.X
RUN = np.array(["first", "second"], dtype=object)[DATA.batch]
NUMBER = np.random.default_rng(1).normal(size=120)
KNOWN: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "columns": (Attributes([0, 1]), None),
    "classes": (Labels(pd.Series(RUN, name="run")), RUN),
    "a number": (Labels(NUMBER), NUMBER),
    "two labels and a column": ([Labels(RUN), Attributes([3]), Labels(NUMBER)], [RUN, NUMBER]),
    "an erased label": (Labels(RUN, erase=True), None),
}


def saved(known: str, folder: Path) -> tuple[IMAPCE, Path]:
    model = IMAPCE(n_starts=2).fit(X, prior=KNOWN[known][0])
    model.save(folder / "view.imapce")
    return model, folder / "view.imapce"


@pytest.mark.parametrize("known", KNOWN)
def test_a_model_with_something_known_comes_back_to_the_bit(known: str, tmp_path: Path) -> None:
    model, path = saved(known, tmp_path)
    again, labels = load_model(path), KNOWN[known][1]
    assert again.effect_ == model.effect_
    assert again.read_back_ == model.read_back_
    assert again.optima_ == model.optima_
    assert again.path_ == model.path_
    assert known != "nothing" or np.isfinite([one.seen for one in again.path_]).all()
    assert again.transform(X, labels=labels).tobytes() == model.transform(X, labels=labels).tobytes()
    assert again.given(X, labels=labels).tobytes() == model.given(X, labels=labels).tobytes()
    assert sorted(vars(again)) == sorted(vars(model))
    again.save(tmp_path / "again.imapce")
    assert (tmp_path / "again.imapce").read_bytes() == path.read_bytes()


def test_a_file_of_another_day_opens(tmp_path: Path) -> None:
    """Of the days of `rank`, when the known was weighed and predicted from the view alone."""
    model, path = saved("nothing", tmp_path)
    header, arrays = unpacked(path)
    del header["effect"]
    for one in (*header["optima"], *header["path"]):
        del one["seen"]
    header["parameters"]["rank"] = "separation"
    header["read_back_"] = {"score": 0.25, "chance": 0.5}
    again = load_model(repacked(tmp_path / "old.imapce", header, arrays))
    assert np.array_equal(again.transform(X), model.transform(X))
    assert again.effect_ is None
    assert again.read_back_ == {"view": 0.25, "clusters": None, "chance": 0.5}
    assert again.get_params() == model.get_params()
    assert np.isnan(again.optima_[0].seen)


def test_in_a_file_of_the_first_day_an_automatic_mu_is_the_paper_s(tmp_path: Path) -> None:
    header, arrays = unpacked(saved("nothing", tmp_path)[1])
    assert load_model(tmp_path / "view.imapce").mu == "auto"
    del header["parameters"]["outliers"]
    old = load_model(repacked(tmp_path / "old.imapce", header, arrays))
    assert (old.mu, old.outliers) == ("paper", "keep")


CODE = {"names": ["a", "b"], "centre": [0.5, 0.5], "unit": 1.0, "title": None}
DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no effect": lambda effect: None,
    "no codes": lambda effect: {"columns": effect["columns"]},
    "a code too few": lambda effect: effect | {"codes": []},
    "a column that is none": lambda effect: effect | {"columns": [99]},
    "a column before the first": lambda effect: effect | {"columns": [-1]},
    "half a column": lambda effect: effect | {"columns": [0.5]},
    "a column twice": lambda effect: {"columns": [1, 1], "codes": []},
    "classes without shares": lambda effect: effect | {"codes": [CODE | {"centre": []}]},
    "classes called alike": lambda effect: effect | {"codes": [CODE | {"names": ["a", "a"]}]},
    "classes that are numbers": lambda effect: effect | {"codes": [CODE | {"names": [1, 2]}]},
    "no unit": lambda effect: effect | {"codes": [CODE | {"unit": 0.0}]},
    "an endless unit": lambda effect: effect | {"codes": [CODE | {"unit": "inf"}]},
    "a title that is no text": lambda effect: effect | {"codes": [CODE | {"title": 7}]},
    "text for shares": lambda effect: effect | {"codes": [CODE | {"centre": ["x", "y"]}]},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_effect_is_refused_in_one_sentence(damage: str, tmp_path: Path) -> None:
    header, arrays = unpacked(saved("classes", tmp_path)[1])
    assert load_model(repacked(tmp_path / "whole.imapce", header, arrays)).effect_ is not None
    header["effect"] = DAMAGES[damage](header["effect"])
    with pytest.raises(FileFormatError, match="does not hold a whole imapce model") as caught:
        load_model(repacked(tmp_path / "damaged.imapce", header, arrays))
    assert "\n" not in str(caught.value)


def test_an_effect_of_another_shape_or_without_weights_is_refused(tmp_path: Path) -> None:
    header, arrays = unpacked(saved("columns", tmp_path)[1])
    for weights in (None, arrays["effect_weights"][:, 1:], arrays["effect_weights"][:1]):
        changed = {name: array for name, array in arrays.items() if name != "effect_weights"}
        if weights is not None:
            changed["effect_weights"] = weights
        with pytest.raises(FileFormatError, match="effect of the known"):
            load_model(repacked(tmp_path / "damaged.imapce", header, changed))


@pytest.mark.parametrize("told", [{"view": 0.5}, {"view": "x", "clusters": None, "chance": 0.0}, [1, 2]])
def test_a_damaged_reading_back_is_refused(told: Any, tmp_path: Path) -> None:
    header, arrays = unpacked(saved("columns", tmp_path)[1])
    header["read_back_"] = told
    with pytest.raises(FileFormatError, match="does not hold a whole imapce model"):
        load_model(repacked(tmp_path / "damaged.imapce", header, arrays))

"""Skewed columns, repeats and stand-ins on the command line: what is told, and what --log and --rank do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commands import QUICK, refusal, run, succeed
from imapce import load_model

LOOK = "strongly skewed: 'rent', 'food', 'travel', 'savings'; --log skewed looks at them on a log scale."


@pytest.fixture
def amounts(tmp_path: Path) -> Path:
    """Three kinds of households by what they spend, each log-normal: as they are, one group with a long tail."""
    rng = np.random.default_rng(1)
    kind = rng.choice(3, 300, p=[0.4, 0.35, 0.25])
    centres = np.array([[3.0, 6.0, 4.0, 5.0], [4.8, 4.2, 6.0, 5.0], [6.0, 5.8, 3.5, 7.0]])
    spent = np.exp(centres[kind] + rng.normal(scale=0.9, size=(300, 4))).round(2)
    path = tmp_path / "amounts.csv"
    pd.DataFrame(spent, columns=["rent", "food", "travel", "savings"]).to_csv(path, index=False)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    male, child, survived = (rng.random(300) < share for share in (0.6, 0.08, 0.4))
    table = pd.DataFrame(
        {
            "sex": np.where(male, "male", "female"),
            "who": np.where(child, "child", np.where(male, "man", "woman")),
            "adult_male": male & ~child,
            "age": np.where(child, 6.0, 35.0) + rng.normal(scale=3.0, size=300),
            "survived": survived.astype(int),
            "alive": np.where(survived, "yes", "no"),
        }
    )
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    return path


def test_a_table_of_amounts_is_no_dead_end(amounts: Path) -> None:
    as_it_is, on_log, by_rank = (
        run("explore", amounts, "--json", *scale) for scale in ((), ("--log", "skewed"), ("--rank", "skewed"))
    )
    assert json.loads(as_it_is.stdout)["notes"] == [LOOK]
    # Their tails are cut into clusters of their own.
    assert len(json.loads(as_it_is.stdout)["clusters"]) > 3
    told = json.loads(on_log.stdout)
    assert told["notes"] == ["'rent', 'food', 'travel', 'savings' are looked at on a log scale."]
    assert len(told["clusters"]) == 3
    assert len(json.loads(by_rank.stdout)["clusters"]) == 3


def test_scales_are_in_the_model_and_new_rows_go_through_them(amounts: Path, tmp_path: Path) -> None:
    model, first, again = tmp_path / "model.imapce", tmp_path / "first.csv", tmp_path / "again.csv"
    scales = ("--log", "rent,food", "--rank", "savings")
    assert run("embed", amounts, *scales, *QUICK, "--save", model, "-o", first).exit_code == 0
    assert load_model(model).reader_.transform == {"rent": "log", "food": "log", "savings": "rank"}
    succeed("transform", model, amounts, "-o", again)
    axes = ["imapce0", "imapce1"]
    assert pd.read_csv(again)[axes].to_numpy() == pytest.approx(pd.read_csv(first)[axes].to_numpy())


def test_a_session_on_a_log_scale_is_gone_on_with(amounts: Path, tmp_path: Path) -> None:
    session = tmp_path / "work.imapce"
    assert run("explore", amounts, "--log", "skewed", "--session", session, "--max-steps", "1").exit_code == 0
    told = json.loads(run("explore", amounts, "--session", session, "--resume", "--json").stdout)
    assert len(told["clusters"]) == 3


def test_compare_and_refusals(amounts: Path, people: Path) -> None:
    assert run("compare", amounts, "--log", "skewed", "--methods", "pca", "--json").exit_code == 0
    assert "'sex' is none" in refusal("embed", people, "--log", "sex")
    assert "did you mean 'age'?" in refusal("embed", people, "--rank", "agee")


def test_repeats_and_stand_ins_are_told(people: Path, tmp_path: Path) -> None:
    told = run("embed", people, "--known", "sex", *QUICK, "-o", tmp_path / "view.csv").stderr
    assert "note: 'alive' repeats 'survived'; --drop leaves it out." in told
    assert "note: 'who' and 'adult_male' tell 'sex': add them to --known?" in told
    more = ("--known", "sex,who,adult_male", "--drop", "alive")
    told = run("embed", people, *more, *QUICK, "-o", tmp_path / "view.csv").stderr
    assert "repeats" not in told
    assert "tell" not in told

"""`imapce explore` and `info`: clear, possible or no more than chance, --anyway, --granularity and --clusters."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import refusal, succeed
from imapce import Exploration
from imapce.tables.files import read_table, write_table
from judged import WORDS, judged

QUICK = ("--starts", "2", "--mu", "50")
explore = partial(succeed, "explore")
refused = partial(refusal, "explore")


def file_of(X: np.ndarray, path: Path) -> Path:
    write_table({f"c{place}": column for place, column in enumerate(X.T)}, path)
    return path


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    return file_of(np.random.default_rng(0).standard_normal((120, 4)), tmp_path / "noise.csv")


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    X = np.random.default_rng(0).standard_normal((150, 4)) + 9 * np.eye(3, 4)[np.arange(150) % 3]
    return file_of(X, tmp_path / "groups.csv")


def in_one_line(told: str) -> str:
    return " ".join(told.split())


def facts_of(*words: Any) -> dict[str, Any]:
    return json.loads(explore(*words, "--json"))


def test_rows_that_are_one_group_are_told_in_the_words_of_the_shell(noise: Path) -> None:
    told = in_one_line(explore(noise, *QUICK))
    assert "No structure beyond chance: " in told
    assert "The best split would be 5 clusters of " in told
    assert "8 rows, shown best by view 1 of 2: --anyway takes it." in told
    assert "ignore" not in told
    facts = facts_of(noise, *QUICK)
    assert facts["structure"]["verdict"] == "none"
    assert sum(facts["structure"]["best_split"]) == 120
    assert facts["stop_reason"].endswith("--anyway takes it.")
    assert facts["clusters"] == []


def test_anyway_takes_the_best_split_and_the_session_goes_on_so(noise: Path, tmp_path: Path) -> None:
    session, table = tmp_path / "s.imapce", tmp_path / "clusters.csv"
    wanted = facts_of(noise, *QUICK)["structure"]["best_split"]
    told = in_one_line(explore(noise, *QUICK, "--anyway", "--session", session, "-o", table))
    assert "No structure beyond chance, taken all the same: " in told
    counts = np.unique(read_table(table)["cluster"].to_numpy(), return_counts=True)[1]
    assert sorted(counts.tolist(), reverse=True) == wanted
    assert Exploration.load(session, read_table(noise), autosave=False).ignores_structure
    assert "No structure beyond chance, taken all the same" in in_one_line(succeed("info", session))


def test_a_session_that_ended_is_resumed_anyway(noise: Path, tmp_path: Path) -> None:
    session = tmp_path / "s.imapce"
    explore(noise, *QUICK, "--session", session)
    facts = facts_of(noise, *QUICK, "--session", session, "--resume", "--anyway")
    assert [one["rows"] for one in facts["clusters"]] == facts["structure"]["best_split"]


def test_possible_is_said_and_stability_is_explained(
    groups: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(monkeypatch, "possible")
    session = tmp_path / "s.imapce"
    printed = explore(groups, *QUICK, "--session", session)
    for told in (printed, succeed("info", session)):
        words = in_one_line(told)
        assert f"Possible structure: {WORDS}" in words
        assert "stability: in how many resamples of 80 % of the rows the cluster reappears" in words
        assert words.count("9 of 10 resamples") == 2
        assert "3 of 10 resamples: unstable" in words
    facts = json.loads(succeed("info", session, "--json"))
    assert facts["structure"] == {
        "verdict": "possible",
        "words": WORDS,
        "evidence": [{"against": "one peak", "z": 3.9, "p_value": 5e-5}],
        "best_split": None,
    }
    assert sorted(one["stability"] for one in facts["clusters"]) == [0.3, 0.9, 0.9]


def test_so_many_clusters_and_a_granularity_can_be_asked_for(groups: Path, tmp_path: Path) -> None:
    session = tmp_path / "s.imapce"
    facts = facts_of(groups, *QUICK, "--clusters", 4, "--granularity", "finer", "--session", session)
    assert len(facts["clusters"]) == 4
    settings = json.loads(succeed("info", session, "--json"))["settings"]
    assert (settings["n_clusters"], settings["granularity"], settings["ignores_structure"]) == (4, "finer", False)


REFUSED = {
    "one": (("--clusters", 1), "--clusters must be a whole number of at least 2; got 1."),
    "many": (
        ("--clusters", 40),
        "--clusters must leave --min-cluster-size 5 or more of 150 rows for each cluster; got 40: ask for fewer, or "
        "lower --min-cluster-size.",
    ),
    "word": (("--granularity", "fine"), "--granularity must be one of 'coarser', 'auto', 'finer'; got 'fine'."),
    "view by view": (
        ("--clusters", 3, "--clusterer", "dpgmm"),
        "--clusters is for clusters found in all directions, and here they are found view by view; got 3: use "
        "--clusterer joint, or leave it out.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_asked_for_is_refused_in_the_words_of_the_shell(name: str, groups: Path) -> None:
    words, sentence = REFUSED[name]
    assert refused(groups, *words) == f"imapce: {sentence}\n"

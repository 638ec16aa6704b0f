"""`imapce info`: what a model file tells, in words and in JSON."""

from __future__ import annotations

import json
from pathlib import Path

from commands import FEATURES, succeed
from imapce.estimators.model_file import load_model


def test_info_in_words_and_in_json(model: Path) -> None:
    told = succeed("info", model)
    for words in (
        "format version",
        "n_starts=3",
        "strongest features given d_0, d_1",
        "10 (d_0, d_1",
        "Converged",
        "The known (d_0, d_1) is read back from the view with R²",
    ):
        assert words in " ".join(told.split())
    facts = json.loads(succeed("info", model, "--json"))
    fitted = load_model(model)
    assert facts["format_version"] == 1
    assert facts["columns"] == FEATURES
    assert facts["parameters"]["random_state"] == 0
    assert facts["fitted"]["objective"] == fitted.objective_
    assert len(facts["optima"]) == len(fitted.optima_)
    assert facts["fitted"]["read_back"] == fitted.read_back_
    assert facts["fitted"]["explained_away"] == ["d_0", "d_1"]
    shares = [entry["share"] for entry in facts["strongest_features"]]
    assert len(shares) == 8
    assert not {"d_0", "d_1"} & {entry["feature"] for entry in facts["strongest_features"]}
    assert shares == sorted(shares, reverse=True)
    assert fitted.verbose is False

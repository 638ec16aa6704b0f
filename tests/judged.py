"""Clusters as they are found, with a verdict and a stability that a test chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from imapce.clusters.clustering import Partition, assign_rows
from imapce.clusters.significance import Evidence
from imapce.exploration import look

WORDS = "z = 3.9 against one peak"


def judged(monkeypatch: pytest.MonkeyPatch, verdict: Any) -> None:
    """Whatever is found gets this verdict, and every cluster came back in nine of ten draws, the last in three."""

    def found(*args: Any, **options: Any) -> Partition:
        partition = assign_rows(*args, **options)
        names = [int(name) for name in np.unique(partition.labels) if name >= 0]
        structure = replace(
            partition.structure, verdict=verdict, reason=WORDS, evidence=(Evidence("one peak", 3.9, 5e-5),)
        )
        stability = {name: 0.3 if name == names[-1] else 0.9 for name in names}
        return replace(partition, structure=structure, stability=stability)

    monkeypatch.setattr(look, "assign_rows", found)

"""What an automatic answer is made of: planted minorities, gross outliers, parts of the exploration."""

from __future__ import annotations

from experiments.exploration import parts_of_exploration
from experiments.planted import minorities, outliers
from experiments.results import Row
from experiments.running import Run


def insight(run: Run) -> list[Row]:
    """Planted minorities by F1, how far outliers turn a view, parts of the exploration by NMI and Jaccard."""
    return [*minorities(run), *outliers(run), *parts_of_exploration(run)]

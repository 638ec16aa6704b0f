"""Twelve stories: a table, a label that is known, and another that is looked for.

Nine are of real tables; in three a batch is planted in the standardised rows: every column is shifted by 1.5 times a
standard normal, in 35 % of the rows of even classes and 65 % of odd ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments import table_suite

Array = NDArray[np.float64]
Texts = NDArray[np.str_]

PLANTED = "a planted batch"
SHIFT, SHARES = 1.5, (0.35, 0.65)
# Table, what is known, what is looked for.
STORIES = (
    ("cell_lines", "run", "class"),
    ("crabs", "sex", "species"),
    ("crabs", "species", "sex"),
    ("penguins", "sex", "class"),
    ("penguins", "class", "sex"),
    ("olive", "region", "class"),
    ("pbmc68k", "phase", "class"),
    ("mouse", "behaviour", "genotype"),
    ("mouse", "genotype", "behaviour"),
    ("iris", PLANTED, "class"),
    ("wine", PLANTED, "class"),
    ("digits", PLANTED, "class"),
)


@dataclass(frozen=True, eq=False)
class Story:
    """Rows (n, d), the class of each that is known, and the one looked for."""

    table: str
    known_name: str
    wanted_name: str
    X: Array
    known: Texts
    looked_for: Texts

    @property
    def title(self) -> str:
        return f"{self.table}, {self.known_name} known: {self.wanted_name}"

    @property
    def settings(self) -> dict[str, str]:
        """What a finished cell of the story is found by."""
        digest = table_suite.Table(self.table, self.X, np.char.add(self.known, self.looked_for)).digest
        return {"story": self.title, "data": digest}


def tell(table: str, known: str, looked_for: str) -> Story:
    """One story by its names.

    >>> story = tell("iris", PLANTED, "class")
    >>> story.X.shape, np.unique(story.known).tolist()
    ((150, 4), ['0', '1'])
    """
    read = table_suite.read(table)
    if known == PLANTED:
        X, batch = with_batch(read.X, read.classes)
        return Story(table, known, looked_for, X, batch, read.classes)
    labels = {**read.known, "class": read.classes}
    return Story(table, known, looked_for, read.X, labels[known], labels[looked_for])


def with_batch(X: Array, classes: Texts) -> tuple[Array, Texts]:
    """Standardised columns with the planted batch, and which of two batches each row is of."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    rng = np.random.default_rng(1)
    parity = np.unique(classes, return_inverse=True)[1] % 2
    batch = rng.random(len(Z)) < np.asarray(SHARES)[parity]
    return Z + SHIFT * batch[:, None] * rng.standard_normal(Z.shape[1]), batch.astype(int).astype(str)

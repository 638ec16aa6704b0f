"""Tables with a batch in them: real ones, and blood cells with a planted one whose rows without it are known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import table_suite
from experiments.correcting import standardised

Array = NDArray[np.float64]
Texts = NDArray[np.str_]

# Table, batch, what is looked for.
REAL = (
    ("cell_lines", "run", "class"),
    ("pbmc68k", "phase", "class"),
    ("mouse", "behaviour", "genotype"),
    ("penguins", "sex", "class"),
    ("crabs", "sex", "species"),
    ("olive", "region", "class"),
    ("vowel", "speaker", "class"),
    ("vowel", "sex", "class"),
)
SHIFTED_GENES, SHIFT = 250, 1.5
# Share of the rows of even and of odd cell types that are of the second batch.
BALANCED, CONFOUNDED = (0.5, 0.5), (0.9, 0.3)
# A cell type that is well apart, put into one batch whole.
ALONE = "CD19+ B"


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, the batch of each and what is looked for; of a planted batch also the rows without it.

    `shifted` (d,) are the columns the batch was planted in, `alone` the class that only one batch holds.
    """

    title: str
    X: Array
    batch: Texts
    looked_for: Texts
    truth: Array | None = None
    shifted: NDArray[np.bool_] | None = None
    alone: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What a finished cell of the case is found by."""
        together = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        together.update("\n".join([*self.batch.tolist(), *self.looked_for.tolist()]).encode())
        return {"case": self.title, "data": together.hexdigest()[:16]}


def real(table: str, batch: str, looked_for: str) -> Case:
    read = table_suite.read(table)
    labels = {**read.known, "class": read.classes}
    return Case(f"{table}, {batch}: {looked_for}", read.X, labels[batch], labels[looked_for])


def planted(
    title: str, X: Array, classes: Texts, shares: Sequence[float], *, n_shifted: int = SHIFTED_GENES, alone: str = ""
) -> Case:
    """Standardised rows, some columns of the second batch shifted by 1.5 times a standard normal; seed 1.

    >>> rng = np.random.default_rng(0)
    >>> case = planted("a", rng.standard_normal((60, 5)), np.repeat(["x", "y"], 30), (0.5, 0.5), n_shifted=2)
    >>> bool(np.all((case.X != case.truth).any(axis=0) == case.shifted)), int(case.shifted.sum())
    (True, 2)
    """
    truth = standardised(X)
    rng = np.random.default_rng(1)
    parity = np.unique(classes, return_inverse=True)[1] % 2
    second = rng.random(len(truth)) < np.asarray(shares)[parity]
    if alone:
        second |= classes == alone
    shifted = np.zeros(truth.shape[1], dtype=bool)
    shifted[rng.choice(len(shifted), n_shifted, replace=False)] = True
    shift = SHIFT * rng.standard_normal(len(shifted)) * shifted
    batch = second.astype(int).astype(str)
    return Case(title, truth + second[:, None] * shift, batch, classes, truth, shifted, alone)


def cases(quick: bool = False) -> list[Case]:
    """All of them; quickly those of at most 600 rows, and none of the blood cells."""
    every = [real(*names) for names in REAL]
    if quick:
        return [one for one in every if len(one.X) <= 600]
    blood = table_suite.read("pbmc68k")
    return [
        *every,
        planted("pbmc68k, planted, balanced", blood.X, blood.classes, BALANCED),
        planted("pbmc68k, planted, 90/30 % of types", blood.X, blood.classes, CONFOUNDED),
        planted(f"pbmc68k, planted, {ALONE} in one batch", blood.X, blood.classes, BALANCED, alone=ALONE),
    ]

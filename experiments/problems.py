"""The paper's problems: data, what is known about it (as a prior and as labels), the structure that should appear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from imapce import Attributes, Samples, datasets

MNIST_PAIRS = {
    "Sandal/Sneaker": ("Sandal", "Sneaker"),
    "T-shirt/Dress": ("T-shirt/top", "Dress"),
    "Sandal/Ankle boot": ("Sandal", "Ankle boot"),
}
CIFAR_PAIRS = {
    "Trouser/Dress": ("Trouser", "Dress"),
    "T-shirt/Shirt": ("T-shirt/top", "Shirt"),
    "T-shirt/Coat": ("T-shirt/top", "Coat"),
}
ADULT_PRIORS = {
    "adult ethnicity": ("ethnicity",),
    "adult gender": ("gender",),
    "adult ethnicity and gender": ("ethnicity", "gender"),
}
TABLE_1 = ("synthetic", "adult ethnicity", "mnist Sandal/Sneaker", "cifar Trouser/Dress")


@dataclass(frozen=True)
class Problem:
    """`prior` is what IMAPCE and cPCA are given, `known` the labels ct-SNE and Fair-NeRV are given instead.

    `structure` holds the labels that should appear; `score` is what the paper measures: how well the known labels are
    gone ("nls") or how well a linear classifier tells the structure ("linear").
    """

    name: str
    draw: int
    X: np.ndarray
    prior: Any
    known: np.ndarray
    structure: Mapping[str, np.ndarray]
    mu: float
    score: Literal["nls", "linear"]

    def sample(self, n_rows: int) -> Problem:
        """The first rows only: the images of a draw are in random order."""
        structure = {name: labels[:n_rows] for name, labels in self.structure.items()}
        return replace(self, X=self.X[:n_rows], known=self.known[:n_rows], structure=structure)

    def given(self, way: str) -> Any:
        """What a method is told: the prior, its labels, the prior to be erased, or nothing."""
        if way == "erased":
            return replace(self.prior, erase=True)
        return {"prior": self.prior, "labels": self.known, "nothing": None}[way]

    @property
    def is_images(self) -> bool:
        return self.score == "linear"


def problem(name: str, draw: int = 0) -> Problem:
    """One problem by name; `draw` chooses the images and means nothing elsewhere.

    >>> problem("mnist Sandal/Sneaker", draw=3).X.shape                                     # doctest: +SKIP
    (6000, 784)
    """
    if name == "synthetic":
        data = datasets.load_synthetic_paper()
        structure = {"celltype": data.labels["celltype"]}
        return Problem(name, 0, data.X, Attributes([0, 1, 2, 3]), data.labels["batch"], structure, 200.0, "nls")
    if name in ADULT_PRIORS:
        return _adult(name)
    return _images(name, draw)


def _adult(name: str) -> Problem:
    data = datasets.fetch_adult()
    attributes = ADULT_PRIORS[name]
    known = data.labels["_".join(attributes)]
    structure = {one: data.labels[one] for one in ("ethnicity", "gender", "income") if one not in attributes}
    columns = [data.feature_names.index(attribute) for attribute in attributes]
    return Problem(name, 0, data.X, Attributes(columns), known, structure, 150.0, "nls")


def _images(name: str, draw: int) -> Problem:
    """Superimposed images; "… as uint8" sums as the authors' code does, which wraps at 256."""
    kind, pair = name.removesuffix(" as uint8").split(" ", 1)
    classes, mu, n_background = (MNIST_PAIRS[pair], 1e5, 1000) if kind == "mnist" else (CIFAR_PAIRS[pair], 1e7, 5000)
    reference, background = sources(kind)
    data = datasets.make_superimposed(
        reference, background, classes, n=6000, n_background=n_background, random_state=draw
    )
    X = data.X % 256 if name.endswith(" as uint8") else data.X
    known, structure = data.labels["background_class"], {"clothes": data.labels["class"]}
    return Problem(name, draw, X, Samples(data.background), known, structure, mu, "linear")


@cache
def sources(kind: str) -> tuple[datasets.Dataset, datasets.Dataset]:
    background = datasets.fetch_mnist() if kind == "mnist" else datasets.fetch_cifar100()
    return datasets.fetch_fashion_mnist(), background

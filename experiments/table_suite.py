"""The 27 labelled tables of the suite, tables made from them (with columns that say nothing), planted ones and noise.

14 development tables, which rules were settled on: nine lie as CSV in the folder `tables` of IMAPCE_DATA (the README
there says what they are), four come with scikit-learn, one is the paper's Image Segmentation. 13 were added later and
lie in the same folder. `Table.X` is always numeric; a mixed table is made by `as_arrow`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from sklearn import datasets as bundled

from imapce.datasets import fetch_image_segmentation
from imapce.datasets.downloads import find
from imapce.errors import DataNotFoundError

Array = NDArray[np.float64]
Labels = NDArray[np.str_]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

FILES = ("ecoli", "ionosphere", "optdigits", "page_blocks", "vehicle", "vertebral", "vowel", "waveform", "zoo")
BUNDLED: dict[str, Callable[..., Any]] = {
    "iris": bundled.load_iris,
    "wine": bundled.load_wine,
    "breast cancer": bundled.load_breast_cancer,
    "digits": bundled.load_digits,
}
DEVELOPMENT = (*FILES, *BUNDLED, "image segmentation")
ADDED = (
    *("olive", "flea", "crabs", "penguins", "glass", "biopsy", "yeast_genes", "thyroid", "dermatology"),
    *("pendigits", "mouse", "pbmc68k", "cell_lines"),
)
NAMES = (*DEVELOPMENT, *ADDED)
GROUPS = {"development": DEVELOPMENT, "added": ADDED}
# What one knows about a row before one looks, and never a feature: in vowel by these names, elsewhere by a prefix.
KNOWN_COLUMNS = ("speaker", "sex")
KNOWN_PREFIX = "known_"
MISSING_SHARE = 0.05
NOISE: dict[str, Draw] = {
    "Gaussian": lambda rng, shape: rng.standard_normal(shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "t(3)": lambda rng, shape: rng.standard_t(3, size=shape),
}
WIDE = (200, 5_000)
# Of 5,000 columns a cluster has so many of its own, each so far from the others that PCA still tells 0.99 of the rows.
OWN_COLUMNS, OWN_SHIFT = 50, 0.95


@dataclass(frozen=True, eq=False)
class Table:
    """Features, the class of every row, and further columns (`known`) that are not features."""

    name: str
    X: Array
    classes: Labels
    known: Mapping[str, Labels] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash of the data, so that a finished cell belongs to the table it was made of."""
        together = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        together.update("\n".join(self.classes.tolist()).encode())
        return together.hexdigest()[:16]

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.classes))

    @property
    def most_frequent(self) -> NDArray[np.bool_]:
        """The rows of the largest class (of equal ones the first by name): what is known where one class is."""
        names, counts = np.unique(self.classes, return_counts=True)
        return np.asarray(self.classes == names[np.argmax(counts)])


def read(name: str) -> Table:
    """One table of the suite by its name in `NAMES`.

    >>> read("iris").X.shape, read("iris").n_classes
    ((150, 4), 3)
    """
    if name in BUNDLED:
        data = BUNDLED[name]()
        return Table(name, np.asarray(data.data, dtype=np.float64), data.target.astype(str))
    if name == "image segmentation":
        images = fetch_image_segmentation()
        return Table(name, np.asarray(images.X, dtype=np.float64), np.asarray(images.labels["class_name"]).astype(str))
    path = find((f"tables/{name}.csv.gz",))
    if path is None:
        raise DataNotFoundError(f"tables/{name}.csv.gz must be in the folder named by IMAPCE_DATA; it is not there.")
    columns = pyarrow.csv.read_csv(path)
    told = [one for one in columns.column_names if one in KNOWN_COLUMNS or one.startswith(KNOWN_PREFIX)]
    known = {one.removeprefix(KNOWN_PREFIX): _texts(columns[one]) for one in told}
    features = [columns[one].to_numpy() for one in columns.column_names if one not in ("class", *told)]
    return Table(name, np.column_stack(features).astype(np.float64), _texts(columns["class"]), known)


def _texts(column: pa.ChunkedArray) -> Labels:
    return np.asarray(column.to_pylist()).astype(str)


def as_arrow(
    X: Array, further: Mapping[str, Any] | None = None, *, missing: NDArray[np.bool_] | None = None
) -> pa.Table:
    """Numbers as columns x0, x1, ... (no value where `missing`), and further columns; texts become categories."""
    columns: dict[str, pa.Array] = {
        f"x{j}": pa.array(column, mask=None if missing is None else missing[:, j]) for j, column in enumerate(X.T)
    }
    for name, values in (further or {}).items():
        column = pa.array(values)
        columns[name] = column.dictionary_encode() if pa.types.is_string(column.type) else column
    return pa.table(columns)


def random_booleans(rng: np.random.Generator, n_rows: int, count: int) -> dict[str, Any]:
    return {f"yes{j}": rng.random(n_rows) < 0.5 for j in range(count)}


def random_categories(rng: np.random.Generator, n_rows: int, count: int) -> dict[str, Any]:
    """Categories of ten levels."""
    return {f"kind{j}": [f"level {level}" for level in rng.integers(0, 10, n_rows)] for j in range(count)}


def with_nuisance(X: Array, seed: int) -> pa.Table:
    """The table as it might come: two random booleans, a category, an id, a heavy tail, 5 % of the features missing.

    The id is shuffled: many of the files are sorted by class, and their row number would tell it.
    """
    rng = np.random.default_rng(seed)
    n = len(X)
    further = random_booleans(rng, n, 2) | random_categories(rng, n, 1)
    further |= {"id": 100_000 + rng.permutation(n), "amount": np.exp(2 * rng.standard_normal(n))}
    return as_arrow(X, further, missing=rng.random(X.shape) < MISSING_SHARE)


def planted(seed: int, n_rows: int = 600, n_columns: int = 10, distance: float = 5.0) -> tuple[Array, Labels]:
    """Three Gaussian clusters of unit variance, `distance` standard deviations apart each from each."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, n_rows)
    directions = np.linalg.qr(rng.standard_normal((n_columns, 3)))[0].T
    return rng.standard_normal((n_rows, n_columns)) + distance / np.sqrt(2) * directions[classes], classes.astype(str)


def nuisances(seed: int) -> dict[str, tuple[Any, Labels]]:
    """The planted table plain and with one kind of column that says nothing about its clusters, each at a time."""
    X, classes = planted(seed)
    rng = np.random.default_rng([seed, 1])
    n = len(X)
    made: dict[str, tuple[Any, Labels]] = {"plain": (as_arrow(X), classes)}
    for count in (1, 2, 5):
        title = f"{count} random boolean{'s' * (count > 1)}"
        made[title] = (as_arrow(X, random_booleans(rng, n, count)), classes)
    made["two categories of ten levels"] = (as_arrow(X, random_categories(rng, n, 2)), classes)
    made["an id"] = (as_arrow(X, {"id": np.arange(n)}), classes)
    bimodal = rng.standard_normal(n) + 8 * (rng.random(n) < 0.5)
    made["a bimodal column"] = (as_arrow(X, {"two humps": bimodal}), classes)
    return made


def wide_planted(seed: int) -> tuple[Array, Labels]:
    """200 rows of 5,000 columns, three clusters."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, WIDE[0])
    X = rng.standard_normal(WIDE)
    for one in range(3):
        X[np.ix_(classes == one, range(one * OWN_COLUMNS, (one + 1) * OWN_COLUMNS))] += OWN_SHIFT
    return X, classes.astype(str)


def noise(kind: str, shape: tuple[int, int], seed: int) -> Array:
    return NOISE[kind](np.random.default_rng([seed, *shape]), shape)

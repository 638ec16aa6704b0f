"""The 33 labelled tables of the suite: 14 development tables, 13 added later, 6 mixed ones.

Rules were settled on the development tables: nine lie as CSV in the folder `tables` of IMAPCE_DATA (the README there
says what they are), four come with scikit-learn, one is the paper's Image Segmentation. The others lie in that folder.
Mixed tables hold numbers, categories, true/false and holes: what imapce gets is `Table.as_given`, while `Table.X` is
always numeric.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from sklearn import datasets as bundled

from experiments.plain_rows import plain_matrix
from imapce.datasets import fetch_image_segmentation
from imapce.datasets.downloads import find
from imapce.errors import DataNotFoundError

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

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
# By the names of their files: one of scikit-learn's tables is of breast cancer too.
MIXED = (
    *("mixed_audiology", "mixed_flags", "mixed_heart_h", "mixed_breast_cancer", "mixed_primary_tumor"),
    "mixed_hypothyroid",
)
NUMERIC = (*DEVELOPMENT, *ADDED)
NAMES = (*NUMERIC, *MIXED)
GROUPS = {"development": DEVELOPMENT, "added": ADDED, "mixed": MIXED}
# What one knows about a row before one looks, and never a feature: in vowel by these names, elsewhere by a prefix.
KNOWN_COLUMNS = ("speaker", "sex")
KNOWN_PREFIX = "known_"


@dataclass(frozen=True, eq=False)
class Table:
    """Features, the class of every row, and further columns (`known`) that are not features.

    Of a `mixed` table, `X` is what it usually is made into: dummies, and means for holes.
    """

    name: str
    X: Array
    classes: Labels
    known: Mapping[str, Labels] = field(default_factory=dict)
    mixed: pa.Table | None = None

    @property
    def as_given(self) -> Any:
        """What imapce gets: the numbers, or the mixed table with its categories and holes."""
        return self.X if self.mixed is None else self.mixed

    def rows(self, places: NDArray[np.intp]) -> Any:
        """What imapce gets of some rows; columns and levels that none of them has are left out, as no file has them."""
        if self.mixed is None:
            return self.X[places]
        some = self.mixed.take(pa.array(places))
        columns = {name: some[name] for name in some.column_names if some[name].null_count < len(some)}
        return pa.table({name: _with_its_levels(column) for name, column in columns.items()})

    @property
    def digest(self) -> str:
        """A hash of the data, so that a finished cell belongs to the table it was made of."""
        together = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        together.update("\n".join(self.classes.tolist()).encode())
        if self.mixed is not None:
            # The matrix does not tell a hole from the mean that fills it.
            together.update(repr(self.mixed.to_pydict()).encode())
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
    if name in MIXED:
        return _mixed(name)
    columns = pyarrow.csv.read_csv(_path(name))
    told = [one for one in columns.column_names if one in KNOWN_COLUMNS or one.startswith(KNOWN_PREFIX)]
    known = {one.removeprefix(KNOWN_PREFIX): _texts(columns[one]) for one in told}
    features = [columns[one].to_numpy() for one in columns.column_names if one not in ("class", *told)]
    return Table(name, np.column_stack(features).astype(np.float64), _texts(columns["class"]), known)


def _mixed(name: str) -> Table:
    """Numbers as numbers, t and f as true and false, other texts as categories; an empty cell is a hole.

    Codes written as numbers (a landmass, a language) stay numbers: the file does not say that they are none.
    """
    # Only an empty cell is a hole, so that no level of a name such as NA is taken for one.
    reading = pyarrow.csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        true_values=["t"],
        false_values=["f"],
        auto_dict_encode=True,
        column_types={"class": pa.string()},
    )
    columns = pyarrow.csv.read_csv(_path(name), convert_options=reading)
    table = columns.drop_columns(["class"]).combine_chunks()
    return Table(name, plain_matrix(table), _texts(columns["class"]), mixed=table)


def _path(name: str) -> Path:
    path = find((f"tables/{name}.csv.gz",))
    if path is None:
        raise DataNotFoundError(f"tables/{name}.csv.gz must be in the folder named by IMAPCE_DATA; it is not there.")
    return path


def _with_its_levels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same column; a category has the levels that are in it."""
    return column.cast(pa.string()).dictionary_encode() if pa.types.is_dictionary(column.type) else column


def _texts(column: pa.ChunkedArray) -> Labels:
    return np.asarray(column.to_pylist()).astype(str)

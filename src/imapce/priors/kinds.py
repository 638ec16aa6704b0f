"""What is already known, in its four kinds: attributes (columns), labels (beside X), samples (a background), a subset.

Attributes and labels are explained away: their effect is taken from the rows. To be erased they bind the axes instead,
vᵀ C_X[:, A] = 0 and vᵀXᵀL = 0. A background and a subset become a second moment YᵀY that the view should not keep, as
all that is known does where α is a number; a subset also leaves the rows whose clusters are looked for. They combine:
M = XᵀX − α Σ wⱼ YⱼᵀYⱼ, and Z is what no subset covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np

from imapce.common.arrays import Array, Codes, Mask, require_in_memory
from imapce.common.checks import as_codes, most_classes, require_truth, require_weight
from imapce.common.words import counted, listing
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.priors.base import UNTITLED, Arrays, Prior, Reads, given_names, require_index, rows_in_python, sentence_of
from imapce.priors.labels import LabelCode, ReadLabels
from imapce.tables.reader import Missing, Reader

# Of rows or columns that were named: how, and the way out where they are none.
AS_A_MASK = Phrase("as a mask", "as a mask ")
LEAVE_OUT_OR = Phrase("leave out or", "pass prior=None or ")


@dataclass(frozen=True, eq=False)
class Attributes(Prior):
    """Known columns, by name or position. IMAPCE explains them away: their effect on the others is taken from the rows.

    Where α is a number they are weighed as in the paper: Y is X with every other column set to zero. With erase=True
    they are a constraint instead, and neither α nor the weight acts on them: every axis v satisfies vᵀ C_X[:, A] = 0,
    C_X the second moment of all rows of X, so that nothing linear of these columns can be read from the view of X. What
    is not linear can stay (a class may still spread wider than another). The columns may keep a weight in the view: it
    takes out of the others what they share with the known. IMAPCE, CPCA and GCPCA erase; to other methods these are
    known columns like any.

    >>> Attributes(["batch"], weight=2.0)
    Attributes(columns=['batch'], weight=2.0, erase=False)
    """

    kind = "attributes"
    described = "known columns"
    has_effect = True

    columns: Any
    weight: float = 1.0
    erase: bool = False

    def __post_init__(self) -> None:
        require_weight("Attributes", self.weight)
        require_truth("Attributes(erase=...)", self.erase)

    def column_mask(self, reader: Reader) -> Mask:
        n_features, listed = reader.n_features, self.columns
        if isinstance(listed, (str, int, np.integer)) and not isinstance(listed, bool):
            listed = [listed]
        if isinstance(listed, bool) or not isinstance(listed, Iterable):
            raise InvalidTypeError("Attributes(columns)", f"must be names, positions or a mask; got {listed!r}.")
        values = np.asarray(listed)
        if values.ndim == 1 and values.dtype == bool:
            if len(values) != n_features:
                raise InvalidValueError(
                    "Attributes(columns)",
                    f"as a mask must have one entry per column ({n_features})",
                    str(len(values)),
                )
            listed = np.flatnonzero(values).tolist()
        mask = np.zeros(n_features, dtype=bool)
        for column in listed:
            mask[reader.columns_of(column)] = True
        if not mask.any():
            raise InvalidValueError(
                "Attributes(columns)", Sentence("is empty, so nothing is known; ", LEAVE_OUT_OR, "name some columns.")
            )
        if mask.all():
            raise InvalidValueError(
                "Attributes(columns)", f"names all {n_features} columns, so nothing is left to show; leave some out."
            )
        return mask

    def class_codes(self, matrix: Array, reader: Reader) -> list[Codes]:
        found = []
        for column in np.flatnonzero(self.column_mask(reader)):
            values = np.unique(matrix[:, column], return_inverse=True)[1]
            if values.max() + 1 > most_classes(len(matrix)):
                raise InvalidValueError(
                    f"prior must be labels for this method, and column {column} of Attributes takes "
                    f"{values.max() + 1} values in {len(matrix)} rows; pass an array with a class for each row instead."
                )
            found.append(values)
        return found

    @property
    def listed(self) -> list[Any]:
        return [self.columns] if np.ndim(self.columns) == 0 else list(self.columns)

    def names(self, reader: Reader, *, untitled: str = UNTITLED) -> list[str]:
        return given_names(self.column_mask(reader), reader)

    def sentence(self, reader: Reader) -> str:
        return sentence_of(self, "column", self.names(reader))

    @property
    def phrase(self) -> str:
        number = counted(len(self.listed), "column is", "columns are")
        return f"{number} {'erased' if self.erase else 'known'}: {listing(map(str, self.listed), 10)}"

    def python(self, *, background: str = "...", labels: str = "...") -> str:
        return f"Attributes({self.columns!r}{', erase=True' if self.erase else ''})"

    def to_json(self, place: int, arrays: Arrays, n_rows: int) -> dict[str, Any]:
        columns = [
            c if isinstance(c, str) else bool(c) if isinstance(c, (bool, np.bool_)) else int(c) for c in self.listed
        ]
        return {**super().to_json(place, arrays, n_rows), "columns": columns}

    @classmethod
    def from_json(cls, place: int, stored: dict[str, Any], arrays: Arrays, *, shape: tuple[int, int]) -> Self:
        return cls(stored["columns"], weight=stored["weight"], erase=stored["kind"] != cls.kind)


@dataclass(frozen=True, eq=False)
class Samples(Prior):
    """A background table with X's columns (matched by name where both have names); its rows need not be in X.

    >>> Samples(np.zeros((3, 2))).weight
    1.0
    """

    kind = "samples"
    described = "a background table"
    is_background = True

    background: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_weight("Samples", self.weight)

    def class_codes(self, matrix: Array, reader: Reader) -> list[Codes]:
        raise InvalidTypeError(
            "prior must be labels for this method (an array, Attributes of label columns or a Subset); got "
            "Samples(background), which only IMAPCE, cPCA and gcPCA can use."
        )

    def look_up(self, *, labels: Reads, rows: Reads, background: Reads) -> Samples:
        return replace(self, background=background(self.background))

    def background_matrix(self, reader: Reader, *, means: Array, missing: Missing) -> Any:
        return reader.background(self.background, means=means, missing=missing)

    def encode(self, reader: Reader, *, means: Array, missing: Missing) -> Samples:
        require_in_memory(self.background, "a session that is kept in a file")
        matrix = self.background_matrix(reader, means=means, missing=missing)
        matrix = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
        return EncodedSamples(matrix, weight=self.weight)

    def sentence(self, reader: Reader) -> str:
        count = int(np.shape(self.background)[0])
        return f"A background of {count:,} rows was known: views give up what varies there too."

    @property
    def phrase(self) -> str:
        return f"{counted(int(np.shape(self.background)[0]), 'background row is', 'background rows are')} known"

    def python(self, *, background: str = "...", labels: str = "...") -> str:
        return f"Samples({background})"

    def to_json(self, place: int, arrays: Arrays, n_rows: int) -> dict[str, Any]:
        arrays[f"background{place}"] = np.asarray(self.background)
        return super().to_json(place, arrays, n_rows)

    @classmethod
    def from_json(cls, place: int, stored: dict[str, Any], arrays: Arrays, *, shape: tuple[int, int]) -> Samples:
        background = arrays[f"background{place}"]
        if background.ndim != 2 or background.shape[1] != shape[1]:
            raise ValueError("a background does not fit the columns")
        return EncodedSamples(background, weight=stored["weight"])


@dataclass(frozen=True, eq=False)
class EncodedSamples(Samples):
    """A background as a matrix in the encoding of X, as the file of a session holds it."""

    def background_matrix(self, reader: Reader, *, means: Array, missing: Missing) -> Any:
        return reader.background(self.background, means=means, missing=missing, encoded=True)


@dataclass(frozen=True, eq=False)
class Subset(Prior):
    """Rows of X that are already understood, as a boolean mask or as positions; the rest is pulled apart.

    >>> Subset([0, 1, 2]).weight
    1.0
    """

    kind = "subset"
    described = "known rows"
    names_rows = True

    rows: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_weight("Subset", self.weight)

    @classmethod
    def of(cls, rows: Any) -> Subset:
        """Rows, or a subset as it is."""
        return rows if isinstance(rows, cls) else cls(rows)

    def row_mask(self, n_rows: int) -> Mask:
        values = np.asarray(self.rows)
        if values.ndim != 1:
            raise InvalidValueError(
                "Subset(rows)", f"must be one-dimensional, a mask or positions; got an array of shape {values.shape}."
            )
        if values.dtype == bool:
            if len(values) != n_rows:
                raise InvalidValueError(
                    "Subset(rows)",
                    Sentence(AS_A_MASK, f"must have one entry per row of X ({n_rows})"),
                    str(len(values)),
                )
            mask = values.copy()
        elif np.issubdtype(values.dtype, np.integer) or values.size == 0:
            if len(values) == n_rows > 2 and np.isin(values, (0, 1)).all():
                raise InvalidValueError(
                    "Subset(rows)",
                    f"has {n_rows} entries that are all 0 or 1, which reads as the positions 0 and 1; a "
                    "mask must be boolean, pass it as .astype(bool).",
                )
            outside = values[(values < -n_rows) | (values >= n_rows)]
            if outside.size:
                raise InvalidValueError(
                    "Subset(rows)", f"as positions must lie within the {n_rows} rows of X", str(int(outside[0]))
                )
            mask = np.zeros(n_rows, dtype=bool)
            mask[values.astype(np.intp)] = True
        else:
            raise InvalidTypeError(
                "Subset(rows)", f"must be a boolean mask or integer positions; got values of type {values.dtype}."
            )
        if not mask.any():
            raise InvalidValueError(
                "Subset(rows)", Sentence("is empty, so nothing is known; ", LEAVE_OUT_OR, "name some rows.")
            )
        return mask

    def require_same_index(self, X: Any) -> None:
        if getattr(getattr(self.rows, "dtype", None), "kind", None) == "b":
            require_index(self.rows, X, "Subset(rows)", "is a mask", "mask")

    def class_codes(self, matrix: Array, reader: Reader) -> list[Codes]:
        return [self.row_mask(len(matrix)).astype(np.intp)]

    def resolve(self, n_rows: int) -> Subset:
        return replace(self, rows=self.row_mask(n_rows))

    def of_rows(self, rows: Any, n_rows: int) -> Subset:
        return replace(self, rows=self.row_mask(n_rows)[rows])

    @property
    def says_nothing(self) -> bool:
        return not np.asarray(self.rows).any()

    def look_up(self, *, labels: Reads, rows: Reads, background: Reads) -> Subset:
        return replace(self, rows=rows(self.rows))

    def sentence(self, reader: Reader) -> str:
        mask = np.asarray(self.rows)
        count = int(mask.sum())
        return f"{count:,} of {len(mask):,} rows {'was' if count == 1 else 'were'} known."

    @property
    def phrase(self) -> str:
        return f"{counted(int(np.asarray(self.rows).sum()), 'row is', 'rows are')} known"

    def python(self, *, background: str = "...", labels: str = "...") -> str:
        rows = np.asarray(self.rows)
        return f"Subset({rows_in_python(np.flatnonzero(rows) if rows.dtype == bool else rows)})"

    def to_json(self, place: int, arrays: Arrays, n_rows: int) -> dict[str, Any]:
        arrays[f"rows{place}"] = self.row_mask(n_rows)
        return super().to_json(place, arrays, n_rows)

    @classmethod
    def from_json(cls, place: int, stored: dict[str, Any], arrays: Arrays, *, shape: tuple[int, int]) -> Self:
        rows = arrays[f"rows{place}"]
        if rows.shape != shape[:1] or rows.dtype != bool:
            raise ValueError("the known rows do not fit the data")
        return cls(rows, weight=stored["weight"])


@dataclass(frozen=True, eq=False)
class Labels(Prior):
    """A class or a number known of each row that is no column of X: an array, a list or a Series, in X's order.

    With L (n, q) the labels as centred columns (0/1 for each class; the number itself), IMAPCE explains them away: the
    view is one of X° = X − LB, with B their effect given the clusters, and `transform` needs the labels of new rows.
    Where α is a number they are weighed: Y = L(LᵀL)⁺LᵀX is what they explain of X, the means of the classes or the
    regression on the number, and α = 1 leaves the scatter within classes. With erase=True the axes are free of all with
    vᵀXᵀL ≠ 0, whatever α is; what is not linear can stay, and new rows need no label. Numbers are classes where they
    take at most 20 different values (and five rows or more for each), else a measurement, and so are dates: write
    classes that are numbered higher as text. A row whose label is missing says nothing. `prior=y` means Labels(y).

    >>> Labels(["a", "b", "a"], weight=2.0)
    Labels(3 labels, weight=2.0, erase=False)
    """

    kind = "labels"
    described = "known labels"
    has_effect = True

    y: Any
    _: KW_ONLY
    weight: float = 1.0
    erase: bool = False

    def __post_init__(self) -> None:
        require_weight("Labels", self.weight)
        require_truth("Labels(erase=...)", self.erase)

    def __repr__(self) -> str:
        count = f"{len(self.y):,} labels" if hasattr(self.y, "__len__") else repr(self.y)
        return f"Labels({count}, weight={self.weight}, erase={self.erase})"

    def read_labels(self, n_rows: int | None = None) -> ReadLabels:
        return ReadLabels.read(self.y, n_rows)

    def require_same_index(self, X: Any) -> None:
        require_index(self.y, X, "Labels(y)", "has labels", "y")

    def class_codes(self, matrix: Array, reader: Reader) -> list[Codes]:
        n_rows = len(matrix)
        codes = as_codes("Labels(y)", self.read_labels(n_rows).entries, n_rows)
        if codes.max() + 1 > most_classes(n_rows):
            raise InvalidValueError(
                "Labels(y)",
                f"must be classes for this method, and it takes {codes.max() + 1} values in {n_rows} rows; "
                "cut the numbers into classes.",
            )
        return [codes]

    def resolve(self, n_rows: int) -> Labels:
        return replace(self, y=self.read_labels(n_rows))

    def of_rows(self, rows: Any, n_rows: int) -> Labels:
        return replace(self, y=self.read_labels(n_rows).of_rows(rows))

    @property
    def says_nothing(self) -> bool:
        return not self.read_labels().varies

    def look_up(self, *, labels: Reads, rows: Reads, background: Reads) -> Labels:
        return replace(self, y=labels(self.y))

    @property
    def listed(self) -> list[Any]:
        return list(getattr(self.y, "column_names", []))

    @property
    def title(self) -> str | None:
        return getattr(self.y, "title", None)

    def names(self, reader: Reader, *, untitled: str = UNTITLED) -> list[str]:
        return [self.title or untitled]

    def sentence(self, reader: Reader) -> str:
        return sentence_of(self, "label", self.names(reader))

    @property
    def phrase(self) -> str:
        return f"the label{f' {self.title}' if self.title else ''} is {'erased' if self.erase else 'known'}"

    def python(self, *, background: str = "...", labels: str = "...") -> str:
        y = labels.format(names=self.listed) if self.listed else "..."
        return f"Labels({y}{', erase=True' if self.erase else ''})"

    def to_json(self, place: int, arrays: Arrays, n_rows: int) -> dict[str, Any]:
        labels = self.read_labels(n_rows).to_json(f"labels{place}", arrays)
        return {**super().to_json(place, arrays, n_rows), **labels}

    @classmethod
    def from_json(cls, place: int, stored: dict[str, Any], arrays: Arrays, *, shape: tuple[int, int]) -> Self:
        labels = ReadLabels.from_json(stored, f"labels{place}", arrays, shape[0])
        return cls(labels, weight=stored["weight"], erase=stored["kind"] != cls.kind)


KINDS: dict[str, type[Prior]] = {kind.kind: kind for kind in (Attributes, Labels, Samples, Subset)}


def as_list(prior: Any) -> list[Prior]:
    """None, one prior or a sequence of priors, as a list; labels themselves, one per row, are Labels.

    >>> [type(one).__name__ for one in as_list([Subset([0]), np.array(["a", "b"])])]
    ['Subset', 'Labels']
    """
    if prior is None:
        return []
    many = isinstance(prior, (list, tuple)) and (not prior or not all(map(is_label_of_row, prior)))
    candidates = list(prior) if many else [prior]
    listed: list[Prior] = []
    for one in candidates:
        if not isinstance(one, Prior):
            if isinstance(one, (str, bytes, dict, set, frozenset, type)) or not hasattr(one, "__len__"):
                raise InvalidTypeError(
                    "prior must be None, Attributes(columns), Labels(y), Samples(background), Subset(rows), the name "
                    f"of a column, a list of them, or labels, one for each row; got {type(one).__name__}."
                )
            one = Labels(one)
        listed.append(one)
    return listed


def is_label_of_row(entry: Any) -> bool:
    """Whether an entry of a plain list is one row's label, not a prior or the labels of all rows.

    >>> is_label_of_row("a"), is_label_of_row(["a", "b"])
    (True, False)
    """
    return isinstance(entry, str) or not (isinstance(entry, Prior) or hasattr(entry, "__len__"))


def is_prior(prior: Any) -> bool:
    """Whether `prior` is made of Attributes, Labels, Samples and Subset (or is None), not an array of labels."""
    several = prior if isinstance(prior, (list, tuple)) else [prior]
    return prior is None or any(isinstance(one, Prior) for one in several)


def prior_of_json(place: int, stored: dict[str, Any], arrays: Arrays, shape: tuple[int, int]) -> Prior:
    """The prior that `to_json` wrote, for a table of this shape; a ValueError or KeyError where it does not fit.

    >>> prior_of_json(0, Attributes([1], erase=True).to_json(0, {}, 5), {}, (5, 2))
    Attributes(columns=[1], weight=1.0, erase=True)
    """
    return KINDS[stored["kind"].removeprefix("erased ")].from_json(place, stored, arrays, shape=shape)


def labels_of_new_rows(labels: Any, codes: Sequence[LabelCode], n_rows: int | None = None) -> list[ReadLabels]:
    """The labels of rows that a fitted model is to place: one for each code, themselves or as Labels, in a list where
    they are several.
    """
    count = len(codes)
    many = isinstance(labels, (list, tuple)) and all(isinstance(one, (Labels, ReadLabels)) for one in labels)
    listed = list(labels) if many or (isinstance(labels, (list, tuple)) and len(labels) == count > 1) else [labels]
    if len(listed) != count:
        names = ", ".join(code.title or "labels" for code in codes)
        raise InvalidValueError("labels", f"must be a list of {count}, for {names}; got {len(listed)}.")
    return [
        ReadLabels.of_new_rows(one.y if isinstance(one, Labels) else one, n_rows, numbers=code.names is None)
        for one, code in zip(listed, codes, strict=True)
    ]


def prior_codes(prior: Any, X: Any, matrix: Array, *, reader: Reader) -> Codes:
    """The classes a prior stands for: one per row, all zero when nothing is known.

    An array holds the labels themselves. `Attributes` gives one class for each combination of values its columns
    take, `Labels` its own, `Subset` one for the known rows and one for the rest; several priors give the combinations
    of their classes.
    A background table has no rows of X to label, so `Samples` is refused. `matrix` is X as `reader` read it.
    """
    if not is_prior(prior):
        return as_codes("prior", prior, len(matrix))
    columns = [np.zeros(len(matrix), dtype=np.intp)]
    for known in as_list(prior):
        known.require_same_index(X)
        columns += known.class_codes(matrix, reader)
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].reshape(-1)

"""Labels as numbers: L (n, q), what is known of each row beside the columns of X, and the part of X it explains.

    L           a column for each class, 1 where a row has it, or the number itself in units of its spread; centred
    Y = L(LᵀL)⁺LᵀX     the projection of X on L: of classes their means, of a number its regression line
    YᵀY = SG⁺Sᵀ,       S = XᵀL (d, q),  G = LᵀL

So XᵀX − αYᵀY is at α = 1 the scatter within classes, and an axis v with vᵀS = 0 has the same mean in every class: no
linear reader of it beats chance. A row whose label is missing has zeros in L and says nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from imapce.common.arrays import Array, Mask, is_dask
from imapce.common.checks import are_classes, is_missing, most_classes
from imapce.common.records import Comparable
from imapce.common.words import listing
from imapce.errors import InvalidTypeError, InvalidValueError, Phrase, Sentence
from imapce.rows.standardized import QuadraticForm, StandardizedRows
from imapce.tables.columns import Column
from imapce.tables.encode import is_table

# Each class is a column of L and a direction that may be given up.
MOST_COLUMNS = 500
MISSING = -1
LEAVE_OUT = Phrase("leave out", "pass prior=None")


@dataclass(frozen=True, eq=False)
class ReadLabels(Comparable):
    """Labels as they were understood: classes by `names` with `values` the place of each row's, or numbers.

    A missing label is -1 among places and NaN among numbers. `title` is what a Series or table column is called.

    >>> ReadLabels.read(["b", "a", None, "b", "a"], 5).values
    array([ 1,  0, -1,  1,  0])
    """

    names: tuple[str, ...] | None
    values: NDArray[Any]
    title: str | None = None

    @classmethod
    def read(cls, y: Any, n_rows: int | None = None) -> ReadLabels:
        """Read labels of any kind, one per row; numbers are classes where they repeat: at most 20 different ones."""
        if isinstance(y, ReadLabels):
            _require_length(len(y.values), n_rows)
            return y
        entries, title = _entries(y)
        _require_length(len(entries), n_rows)
        stated = np.fromiter((not is_missing(one) for one in entries), dtype=bool, count=len(entries))
        told = entries[stated]
        if not len(told):
            raise InvalidValueError(
                "Labels(y)", Sentence("has no label, all are missing, so nothing is known; ", LEAVE_OUT)
            )
        if all(map(_is_number, told)):
            return cls._of_numbers(told.astype(np.float64), stated, title)
        kinds = {one: place for place, one in enumerate(sorted(set(map(str, told))))}
        most = min(MOST_COLUMNS, most_classes(len(told)))
        if not are_classes(len(kinds), len(told)) and all(isinstance(one, datetime.date) for one in told):
            return cls._of_numbers(np.array([_days(one) for one in told]), stated, title)
        if len(kinds) > most:
            raise InvalidValueError(
                "Labels(y)",
                f"must be classes of several rows, or numbers; got {len(kinds)} classes in {len(told)} rows, "
                f"where at most {most} can be told apart. Merge the rare ones, or leave it out if it is an id.",
            )
        values = np.full(len(entries), MISSING, dtype=np.intp)
        values[stated] = [kinds[str(one)] for one in told]
        return cls._varying(cls(tuple(kinds), values, title))

    @classmethod
    def of_new_rows(cls, y: Any, n_rows: int | None = None, *, numbers: bool = False) -> ReadLabels:
        """Labels of rows that a fitted model is to place: any number of rows may have the same one, or none.

        `numbers` says that the model knew them as numbers, as which it read many dates.
        """
        if isinstance(y, ReadLabels):
            _require_length(len(y.values), n_rows)
            return y
        entries, title = _entries(y)
        _require_length(len(entries), n_rows)
        stated = np.fromiter((not is_missing(one) for one in entries), dtype=bool, count=len(entries))
        told = entries[stated]
        if numbers and len(told) and all(isinstance(one, datetime.date) for one in told):
            told = np.array([_days(one) for one in told], dtype=object)
        if len(told) and all(map(_is_number, told)):
            values = np.full(len(entries), np.nan)
            values[stated] = told.astype(np.float64)
            return cls(None, values, title)
        names = sorted(set(map(str, entries[stated])))
        places = np.full(len(entries), MISSING, dtype=np.intp)
        places[stated] = [names.index(str(one)) for one in entries[stated]]
        return cls(tuple(names), places, title)

    @classmethod
    def _of_numbers(cls, told: Array, stated: Mask, title: str | None) -> ReadLabels:
        if not (np.abs(told) < 1e75).all():
            raise InvalidValueError("Labels(y)", "must be finite and below 1e75; it has larger values: rescale them.")
        levels, places = np.unique(told, return_inverse=True)
        if are_classes(len(levels), len(told)):
            values = np.full(len(stated), MISSING, dtype=np.intp)
            values[stated] = places
            return cls._varying(cls(tuple(f"{level:.15g}" for level in levels), values, title))
        numbers_ = np.full(len(stated), np.nan)
        numbers_[stated] = told
        return cls(None, numbers_, title)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def column(self) -> Column:
        """The labels as a column of a table."""
        if self.names is None:
            return Column(self.title or "labels", values=self.values)
        return Column(self.title or "labels", codes=self.values, levels=self.names)

    @staticmethod
    def _varying(read: ReadLabels) -> ReadLabels:
        if not read.varies:
            raise InvalidValueError(
                "Labels(y)",
                Sentence(f"is {read.names[0]!r} for every row, so nothing is known; ", LEAVE_OUT),  # type: ignore[index]
            )
        return read

    @property
    def stated(self) -> Mask:
        """(n,), the rows that have a label."""
        return np.isfinite(self.values) if self.names is None else self.values != MISSING

    @property
    def varies(self) -> bool:
        """Whether two rows have different labels."""
        told = self.values[self.stated]
        return bool(len(told)) and bool((told != told[0]).any())

    @property
    def entries(self) -> NDArray[Any]:
        """(n,), the numbers, or the name of each row's class, None where there is none."""
        if self.names is None:
            return self.values
        return np.array([*self.names, None], dtype=object)[self.values]

    @property
    def digest(self) -> str:
        """What tells labels apart: a hash of the names of classes and of every row's label."""
        digest = hashlib.blake2b(repr(self.names).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.values, dtype="<f8").tobytes())
        return digest.hexdigest()

    def to_json(self, name: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """The entry of a file, held to a fingerprint; the values go to `arrays` under a name."""
        arrays[name] = np.where(self.stated, self.values, 0)
        arrays[f"{name}_stated"] = self.stated
        names = None if self.names is None else list(self.names)
        return {"names": names, "title": self.title, "fingerprint": self.digest}

    @classmethod
    def from_json(
        cls, stored: Mapping[str, Any], name: str, arrays: Mapping[str, NDArray[Any]], n_rows: int
    ) -> ReadLabels:
        """The labels that `to_json` wrote; a ValueError where they are not those of n rows."""
        values, stated = arrays[name], arrays[f"{name}_stated"]
        names = None if stored["names"] is None else tuple(map(str, stored["names"]))
        if values.shape != (n_rows,) or stated.shape != (n_rows,) or stated.dtype != bool:
            raise ValueError("the labels do not fit the rows")
        if names is None:
            values = np.where(stated, values.astype(np.float64), np.nan)
        else:
            values = np.where(stated, values.astype(np.intp), MISSING)
            if not MISSING <= values.min(initial=MISSING) <= values.max(initial=MISSING) < len(names):
                raise ValueError("the labels are of classes that have no name")
        title = stored["title"]
        labels = cls(names, values, None if title is None else str(title))
        if labels.digest != stored["fingerprint"]:
            raise ValueError("the labels are not those of their fingerprint")
        return labels

    def as_numbers(self) -> ReadLabels:
        """Classes that are written as numbers, as numbers again: few rows may repeat what many do not."""
        assert self.names is not None
        try:
            values = np.array([*map(float, self.names), np.nan])[self.values]
        except ValueError as error:
            raise InvalidValueError("labels", f"must be numbers, as in fit; got {self.names[0]!r}.") from error
        return ReadLabels(None, values, self.title)

    def only(self, names: tuple[str, ...] | None) -> ReadLabels:
        """The same with classes of other names as missing labels; numbers stay as they are.

        >>> ReadLabels.read(["a", "b", "a", None]).only(("a",)).entries
        array(['a', None, 'a', None], dtype=object)
        """
        if names is None or self.names is None:
            return self
        kept = np.array([*(name in names for name in self.names), False])[self.values]
        return ReadLabels(self.names, np.where(kept, self.values, MISSING), self.title)

    def of_rows(self, rows: Any) -> ReadLabels:
        """The labels of some rows, by mask or positions."""
        return ReadLabels(self.names, self.values[rows], self.title)


@dataclass(frozen=True, eq=False)
class LabelCode(Comparable):
    """How labels become columns L: of the classes `names` one each, less its share, or a number less its mean, in units
    of its spread. A row without a label is 0 in all of them: it says nothing.

    >>> labels = ReadLabels.read([0, 1, 1, 0, None], 5)
    >>> LabelCode.of(labels).columns(labels)[:, 0].tolist()
    [0.5, -0.5, -0.5, 0.5, 0.0]
    """

    names: tuple[str, ...] | None
    centre: Array
    unit: float = 1.0
    title: str | None = None

    @classmethod
    def of(cls, labels: ReadLabels) -> LabelCode:
        """The code of some labels, of the classes that are there."""
        told = labels.values[labels.stated]
        if labels.names is None:
            spread = max(float(told.std()), np.finfo(np.float64).tiny)
            return cls(None, np.array([float(told.mean())]), spread, labels.title)
        sizes = np.bincount(told, minlength=len(labels.names))
        present = tuple(name for name, size in zip(labels.names, sizes, strict=True) if size)
        return cls(present, sizes[sizes > 0] / len(told), title=labels.title)

    @classmethod
    def of_file(cls, stored: Mapping[str, Any], centre: Array) -> LabelCode:
        """The code that a file tells by "names", "unit" and "title" beside its centre; a ValueError where it is none.

        >>> LabelCode.of_file({"names": ["a", "b"], "unit": 1.0, "title": None}, np.array([0.5, 0.5])).names
        ('a', 'b')
        """
        names, unit, title = stored["names"], float(stored["unit"]), stored["title"]
        if names is not None and not all(isinstance(name, str) for name in names):
            raise ValueError("the classes of a label are no names")
        width = 1 if names is None else len(set(names))
        if centre.shape != (width,) or centre.dtype.kind != "f" or (names is not None and len(names) != width):
            raise ValueError("the code of a label does not fit its classes")
        if not np.isfinite(centre).all():
            raise ValueError("the centre of a label is not finite")
        if not 0 < unit < np.inf:
            raise ValueError(f"the unit of a label is {stored['unit']!r}")
        if title is not None and not isinstance(title, str):
            raise ValueError("the title of a label is no text")
        return cls(None if names is None else tuple(names), centre, unit, title)

    def columns(self, labels: ReadLabels) -> Array:
        """L (n, q) of labels; a class that the code does not know is refused."""
        stated = labels.stated
        if self.names is None:
            if labels.names is not None:
                labels = labels.as_numbers()
            L = np.where(stated, labels.values, self.centre[0])[:, None].astype(np.float64)
        else:
            entries = (
                labels.entries
                if labels.names is not None
                else np.array(
                    [f"{one:.15g}" if there else None for one, there in zip(labels.values, stated, strict=True)],
                    dtype=object,
                )
            )
            strangers = sorted(set(entries[stated].tolist()) - set(self.names))
            if strangers:
                raise InvalidValueError(
                    "labels",
                    Sentence(
                        f"must be classes that fit saw ({listing(self.names, 5)}); got {strangers[0]!r}. ",
                        Phrase("no label", "Pass None"),
                        " for rows whose class is new: nothing is then taken from them.",
                    ),
                )
            L = (entries[:, None] == np.array(self.names, dtype=object)).astype(np.float64)
        L = (L - self.centre) / self.unit
        L[~stated] = 0.0
        return L


@dataclass(frozen=True, eq=False)
class LabelTerm:
    """L (n, q) beside the rows of X, which rows have a label, and S = XᵀL (d, q).

    >>> from imapce.rows.dense import DenseRows
    >>> X = StandardizedRows(DenseRows(np.array([[0.0, 1.0], [0.0, 2.0], [2.0, 1.0], [2.0, 2.0]])))
    >>> LabelTerm.of(ReadLabels.read(["a", "a", "b", "b"]), X).explained.matrix.round(9)
    array([[4., 0.],
           [0., 0.]])
    """

    values: Array
    stated: Mask
    shared: Array
    codes: tuple[LabelCode, ...] = ()

    @classmethod
    def of(cls, labels: ReadLabels, X: StandardizedRows) -> LabelTerm:
        """The term of some labels; one pass over the rows."""
        code = LabelCode.of(labels)
        L = code.columns(labels)
        return cls(L, labels.stated, X.cross(L), (code,))

    @classmethod
    def beside_each_other(cls, terms: list[LabelTerm]) -> LabelTerm:
        """Several labels as one; a row counts as labelled where it has all of them."""
        return cls(
            np.column_stack([one.values for one in terms]),
            np.logical_and.reduce([one.stated for one in terms]),
            np.column_stack([one.shared for one in terms]),
            tuple(code for one in terms for code in one.codes),
        )

    @property
    def explained(self) -> QuadraticForm:
        """YᵀY = SG⁺Sᵀ."""
        values, vectors = np.linalg.eigh(self.values.T @ self.values)
        kept = values > 1e-10 * max(float(values[-1]), np.finfo(np.float64).tiny)
        root = self.shared @ (vectors[:, kept] / np.sqrt(values[kept]))
        return QuadraticForm(len(root), float(np.sum(root**2)), lambda V: root @ (root.T @ V), root @ root.T)


def _entries(y: Any) -> tuple[NDArray[np.object_], str | None]:
    """One Python object per row, and the name of a Series or of the only column of a table."""
    if is_dask(y):
        y = y.compute()
    if is_table(y):
        table = nw.from_native(y, eager_only=True)
        if len(table.columns) != 1:
            raise InvalidValueError(
                "Labels(y)",
                f"must be one column, got a table of {len(table.columns)}; pass a list of Labels, one for "
                "each column, or Samples(background) where these are other rows.",
            )
        y = table[table.columns[0]].to_native()
        title: Any = table.columns[0]
    else:
        title = getattr(y, "name", None)
    if isinstance(y, (str, bytes, dict, set, frozenset)) or not (hasattr(y, "__len__") or hasattr(y, "ndim")):
        raise InvalidTypeError(
            "Labels(y)",
            f"must hold one label per row, an array, a list or a Series; got {y!r:.80}. A column of X "
            "that is known is Attributes(columns).",
        )
    if getattr(y, "ndim", 1) != 1:
        raise _not_flat(y)
    listed = y.to_pylist() if hasattr(y, "to_pylist") else y.tolist() if hasattr(y, "tolist") else list(y)
    if any(isinstance(one, (list, tuple, np.ndarray, dict)) for one in listed):
        raise _not_flat(y)
    entries = np.empty(len(listed), dtype=object)
    entries[:] = listed
    return entries, None if title is None else str(title)


def _is_number(entry: Any) -> bool:
    return isinstance(entry, numbers.Real) and not isinstance(entry, (bool, np.bool_))


def _days(moment: datetime.date) -> float:
    """Days since 1970-01-01, with the time of day where there is one; without a zone it is read as UTC.

    >>> _days(datetime.date(1970, 1, 3)), _days(datetime.datetime(1970, 1, 1, 12))
    (2.0, 0.5)
    """
    time = getattr(moment, "time", datetime.time)()
    zone = getattr(moment, "tzinfo", None) or datetime.UTC
    at = datetime.datetime.combine(datetime.date(moment.year, moment.month, moment.day), time, tzinfo=zone)
    return at.timestamp() / 86_400


def _not_flat(y: Any) -> InvalidValueError:
    return InvalidValueError(
        "Labels(y)",
        f"must be one-dimensional, a label for each row; got {type(y).__name__} of more dimensions. For "
        "several labels pass a list of Labels, for a table of other rows Samples(background).",
    )


def _require_length(length: int, n_rows: int | None) -> None:
    if n_rows is not None and length != n_rows:
        raise InvalidValueError(
            "Labels(y)",
            f"must have one label per row of X ({n_rows}); got {length}. Columns of X that are known are "
            "Attributes(columns).",
        )

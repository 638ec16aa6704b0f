"""New rows for a model that was saved: its features, the labels it was fitted given, and what goes along.

new_rows(load_model("view.imapce"), "new.csv").features     # the columns that the model reads, in its order
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from imapce.cli.on_disk import scanned
from imapce.cli.request import labels_to_place, no_columns, plain_columns, read_rows, require_column
from imapce.common.words import close_matches, counted, listing
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.tables.cells import dates_as_days
from imapce.tables.encode import column_names, is_table
from imapce.tables.named import NamedMatrix


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows to place: the features in the model's order, all columns as they were read, and the columns that hold the
    labels the model was fitted given, with these labels as `IMAPCE.transform` takes them.
    """

    features: Any
    everything: pa.Table
    label_names: tuple[str, ...] = ()
    labels: Any = None


def new_rows(model: IMAPCE, path: str, reading: Mapping[str, Any] | None = None, known: Sequence[str] = ()) -> NewRows:
    """Read the rows of a file for a model; a table larger than half of the memory stays on disk, labels and all.

    >>> new_rows(load_model("view.imapce"), "new.csv").everything   # doctest: +SKIP
    """
    columns = model.input_columns
    if (table := scanned(path, reading or {})) is not None:
        if columns is None:
            raise InvalidValueError(
                f"DATA must be .npy where the model was fitted on an array, got {Path(path).name!r}, which is larger "
                "than half of the memory."
            )
        return NewRows(table, no_columns(), label_columns(model, known, table.columns))
    data = read_rows(path, reading or {})
    if isinstance(data, NamedMatrix):
        about = plain_columns(data.about_rows, data.about_rows.column_names)
        names = label_columns(model, known, about.column_names)
        features = data.matrix if columns is None else data.select(columns, "DATA")
        return NewRows(features, about, names, labels_to_place(about, names))
    if not is_table(data):
        if columns is not None:
            raise InvalidValueError(
                f"DATA must be a table, since the model reads columns by name; {Path(path).name!r} has no names: "
                f"write it as .csv or .parquet with the columns {listing(map(repr, columns), 10)}."
            )
        return NewRows(data, no_columns(), label_columns(model, known, ()))
    present = column_names(data, "DATA")
    names = label_columns(model, known, present)
    labels = labels_to_place(data, names)
    if columns is None:
        features = data.select([name for name in present if name not in names])
        return NewRows(features, plain_columns(data, present), names, labels)
    if absent := [column for column in columns if column not in present]:
        raise InvalidValueError(
            f"DATA must have the {len(columns)} columns that the model reads, and it lacks "
            f"{listing(map(repr, absent), 10)}: {_way_out(absent[0], present, columns)}"
        )
    # A model reads numbers where its own rows had dates, as it was told with --dates as-numbers.
    features = dates_as_days(data.select(list(columns)))[0]
    return NewRows(features, plain_columns(data, present), names, labels)


def label_columns(model: IMAPCE, asked: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Which of the columns `names` hold the labels the model was fitted given, in its order: those of the same names,
    or those `asked` for.

    >>> import numpy as np
    >>> X, run = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    >>> label_columns(IMAPCE().fit(X, prior=run), ["run"], ["a", "b", "c", "run"])
    ('run',)
    """
    known = [] if model.effect_ is None else [code.title for code in model.effect_.codes]
    told = f"{counted(len(known), 'label')} ({listing(title or 'without a name' for title in known)})"
    if asked and len(asked) != len(known):
        raise InvalidValueError(
            "--known must name a column for every label that the model was fitted given, and these are "
            f"{told if known else 'none'}; got {listing(asked)}."
        )
    for column in asked:
        require_column("--known", column, names)
    if asked:
        return tuple(asked)
    if None in known:
        raise InvalidValueError(
            f"--known must name the columns of the {told} that the model was fitted given: their effect is taken "
            "from every row, and not all have a name to be found by."
        )
    for title in known:
        if title not in names:
            raise InvalidValueError(
                f"DATA must have the column {title!r}, a label that the model was fitted given, whose effect is taken "
                f"from every row: add it, or name it with --known; "
                f"{_way_out(str(title), names, [*(model.input_columns or ()), *map(str, known)])}"
            )
    return tuple(str(title) for title in known)


def _way_out(absent: str, names: Sequence[str], read: Collection[str]) -> str:
    """The names that a column which is not there may have got, none of them another that is read."""
    return close_matches(absent, [name for name in names if name not in read])

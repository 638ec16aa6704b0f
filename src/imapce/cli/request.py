"""From the words of a command to what the estimator takes: features, priors, and the columns that go along.

Columns named as labels or as known are answers, so they leave the features; the rows keep them in the output.

    request = Request("penguins.csv", known=("species=Adelie",), labels="island")
    prepare(request).priors          # [Subset(rows=...)]
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.cli.options import DataOptions
from imapce.common.words import close_matches, listing
from imapce.errors import InvalidValueError
from imapce.estimators.imapce import IMAPCE
from imapce.priors.kinds import Attributes, Prior, Samples, Subset
from imapce.tables.encode import column_names, is_table
from imapce.tables.files import read_table
from imapce.tables.select import select


@dataclass(frozen=True)
class Request:
    """What a user asked of a data file; `known` holds COLUMN=VALUE texts, the lists are in the user's order."""

    data: str
    attributes: tuple[str, ...] = ()
    background: str | None = None
    known: tuple[str, ...] = ()
    labels: str | None = None
    drop: tuple[str, ...] = ()
    known_labels: str | None = None
    erase: tuple[str, ...] = ()

    @classmethod
    def of_options(cls, options: DataOptions, known_labels: str | None = None) -> Request:
        """The request as the options of a command spell it, with names in comma-separated texts."""
        return cls(
            options.data,
            attributes=listed_names(options.attributes),
            background=options.background,
            known=tuple(options.known or ()),
            labels=options.labels,
            drop=listed_names(options.drop),
            known_labels=known_labels,
            erase=listed_names(options.erase),
        )

    @property
    def known_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that are known, by the option that named them."""
        return {"--attributes": self.attributes, "--erase": self.erase}


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features and priors for `IMAPCE.fit`, the priors in words, and what the output and the plot need besides."""

    features: Any
    carried: pa.Table
    priors: list[Prior]
    words: list[str]
    known: NDArray[np.bool_] | None
    labels: NDArray[Any] | None
    known_labels: NDArray[Any] | None = None


def listed_names(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated text; a name that holds a comma goes in double quotes.

    >>> listed_names('age, "size, cm"')
    ('age', 'size, cm')
    """
    if text is None:
        return ()
    names = next(csv.reader([text], skipinitialspace=True), [])
    listed = tuple(name.strip() for name in names if name.strip())
    if not listed:
        raise InvalidValueError(f"a list of columns must name at least one, got {text!r}: leave the option out.")
    return listed


def prepare(request: Request) -> Prepared:
    """Read the file of a request and take apart features, labels and what is known.

    >>> prepare(Request("penguins.csv", labels="species")).carried.column_names   # doctest: +SKIP
    ['species']
    """
    data = read_table(request.data)
    if not is_table(data):
        return _prepared_array(data, request)
    names = column_names(data, "DATA")
    known = [_column_and_value(text, names) for text in request.known]
    known_columns = list(dict.fromkeys(column for column, _ in known))
    answers = {"--labels": request.labels, "--known-labels": request.known_labels}
    named = {option: column for option, column in answers.items() if column is not None}
    for option, column in [
        *(("--known", column) for column in known_columns),
        *named.items(),
        *(("--drop", column) for column in request.drop),
        *((option, column) for option, columns in request.known_columns.items() for column in columns),
    ]:
        _require_column(option, column, names)
    carried = list(dict.fromkeys([*named.values(), *known_columns]))
    removed = {*carried, *request.drop}
    for option, asked in request.known_columns.items():
        if lost := [column for column in asked if column in removed]:
            raise InvalidValueError(
                f"{option} must name columns that are features, and {listing(map(repr, lost))} is a label, known or "
                "dropped: name it in one option only."
            )
    features = [name for name in names if name not in removed]
    if not features:
        raise InvalidValueError("DATA must keep at least one feature, and every column is a label, known or dropped.")
    priors, words = _column_and_sample_priors(request.known_columns, request.background)
    mask: NDArray[np.bool_] | None = None
    for column in known_columns:
        values = [value for name, value in known if name == column]
        rows = np.logical_or.reduce([select(data, column, value) for value in values])
        priors.append(Subset(rows))
        words.append(f"{rows.sum():,} of {len(rows):,} rows are known, with {column} = {' or '.join(values)}")
        mask = rows if mask is None else mask | rows
    columns = {option: _plain_columns(data, [column]).column(0).to_numpy() for option, column in named.items()}
    return Prepared(
        features=data.select(features),
        carried=_plain_columns(data, carried),
        priors=priors,
        words=words,
        known=mask,
        labels=columns.get("--labels"),
        known_labels=columns.get("--known-labels"),
    )


def rows_for_model(model: IMAPCE, path: str) -> tuple[Any, pa.Table]:
    """The features of new rows in the model's order, and every other column, which goes along unchanged.

    >>> features, carried = rows_for_model(load_model("view.imapce"), "new.csv")   # doctest: +SKIP
    """
    data = read_table(path)
    columns = model.input_columns
    if not is_table(data):
        if columns is not None:
            raise InvalidValueError(
                f"DATA must be a table, since the model reads columns by name; {Path(path).name!r} has no names: "
                f"write it as .csv or .parquet with the columns {listing(map(repr, columns), 10)}."
            )
        return data, _no_columns()
    if columns is None:
        return data, _no_columns()
    names = column_names(data, "DATA")
    if absent := [column for column in columns if column not in names]:
        raise InvalidValueError(
            f"DATA must have the {len(columns)} columns that the model reads, and it lacks "
            f"{listing(map(repr, absent), 10)}: {close_matches(absent[0], names)}"
        )
    return data.select(list(columns)), _plain_columns(data, [name for name in names if name not in columns])


def _prepared_array(data: Any, request: Request) -> Prepared:
    for option, asked in (
        ("--known", request.known),
        ("--labels", request.labels),
        ("--known-labels", request.known_labels),
        ("--drop", request.drop),
    ):
        if asked:
            raise InvalidValueError(
                f"{option} needs column names, and {Path(request.data).name!r} has none: write it as .csv or .parquet."
            )
    positions: dict[str, list[int]] = {}
    for option, texts in request.known_columns.items():
        if strangers := [text for text in texts if not text.isdecimal()]:
            raise InvalidValueError(
                f"{option} must be positions from 0, since {Path(request.data).name!r} has no column names; "
                f"got {strangers[0]!r}."
            )
        positions[option] = [int(text) for text in texts]
    priors, words = _column_and_sample_priors(positions, request.background)
    return Prepared(data, _no_columns(), priors, words, None, None)


def _column_and_sample_priors(
    columns: Mapping[str, Sequence[str | int]], background: str | None
) -> tuple[list[Prior], list[str]]:
    priors: list[Prior] = []
    words: list[str] = []
    if twice := set(columns["--attributes"]) & set(columns["--erase"]):
        raise InvalidValueError(
            f"--erase and --attributes must name different columns, and {listing(map(repr, sorted(twice)))} is in "
            "both: name it in one option only."
        )
    for option, state in (("--attributes", "known"), ("--erase", "erased")):
        if names := columns[option]:
            priors.append(Attributes(list(names), erase=option == "--erase"))
            plural = "columns are" if len(names) > 1 else "column is"
            words.append(f"{len(names)} {plural} {state}: {listing(map(str, names), 10)}")
    if background is not None:
        rows = read_table(background)
        priors.append(Samples(rows))
        words.append(f"{rows.shape[0]:,} background rows are known: {Path(background).name}")
    return priors, words


def _column_and_value(text: str, names: list[str]) -> tuple[str, str]:
    """COLUMN=VALUE taken apart at the first = that leaves the name of a column, since names may hold = too."""
    splits = [(text[:place], text[place + 1 :]) for place, letter in enumerate(text) if letter == "="]
    if not splits:
        raise InvalidValueError(
            f"--known must be COLUMN=VALUE, got {text!r}: write for example --known species=Adelie."
        )
    return next((split for split in splits if split[0] in names), splits[0])


def _require_column(option: str, column: str, names: list[str]) -> None:
    if column not in names:
        raise InvalidValueError(f"{option} must name a column of DATA, got {column!r}: {close_matches(column, names)}")


def _plain_columns(data: pa.Table, names: list[str]) -> pa.Table:
    """These columns with dictionaries written out, which not every file format can hold."""
    columns = {}
    for name in names:
        values = data.column(name)
        columns[name] = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    return pa.table(columns)


def _no_columns() -> pa.Table:
    return pa.table({})

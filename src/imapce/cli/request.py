"""From the words of a command to what the estimator takes: features, priors, and the columns that go along.

Columns named as labels or as known are answers, so they leave the features; the rows keep them in the output.

    request = Request("penguins.csv", known=("species=Adelie",), labels=("island",))
    prepare(request).priors          # [Subset(rows=...)]
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from imapce.cli.messages import in_own_words, named, note, warnings_in_one_line
from imapce.cli.on_disk import DRAWN_ROWS, scanned, whole_columns
from imapce.cli.options import DataOptions, Dates
from imapce.common.words import close_matches, counted, listing
from imapce.errors import InvalidValueError
from imapce.priors.base import Prior
from imapce.priors.kinds import Attributes, Labels, Samples, Subset
from imapce.tables.cells import ReadCells, dates_as_days, keeping_dates, read_cells
from imapce.tables.encode import Table, column_names, is_table
from imapce.tables.files import Contents, is_text_file, read_contents
from imapce.tables.named import NamedMatrix
from imapce.tables.reading import choose_features, file_notes
from imapce.tables.remarks import known_notes, looked_over
from imapce.tables.usable import select

if TYPE_CHECKING:
    from imapce.tables.scan import Scan

# These name features; the other options name what is told of rows. In a table both are columns.
OF_FEATURES = ("--attributes", "--erase", "--columns", "--drop")


@dataclass(frozen=True)
class Request:
    """What a user asked of a data file; `known` holds COLUMN=VALUE texts, the lists are in the user's order."""

    data: str
    attributes: tuple[str, ...] = ()
    background: str | None = None
    known: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    known_label: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    known_labels: str | None = None
    erase: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    dates: Dates = Dates.leave_out
    reading: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()

    @property
    def transform(self) -> dict[str, str] | None:
        """The columns that are looked at on another scale, and which; None where there are none."""
        return (dict.fromkeys(self.log, "log") | dict.fromkeys(self.rank, "rank")) or None

    @classmethod
    def of_options(cls, options: DataOptions, known_labels: str | None = None) -> Request:
        """The request as the options of a command spell it, with names in comma-separated texts."""
        return cls(
            options.data,
            attributes=listed_names(options.attributes),
            background=options.background,
            known=tuple(options.known or ()),
            labels=listed_names(options.labels),
            known_label=listed_names(options.known_label),
            drop=listed_names(options.drop),
            known_labels=known_labels,
            erase=listed_names(options.erase),
            columns=listed_names(options.columns),
            dates=options.dates,
            reading=options.reading,
            log=listed_names(options.log),
            rank=listed_names(options.rank),
        )

    @property
    def columns_by_option(self) -> dict[str, tuple[str, ...]]:
        """The columns that are known, by the option that named them."""
        return {"--attributes": self.attributes, "--erase": self.erase}


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features and priors for `IMAPCE.fit`, the priors in words, and what the output and the plot need besides.

    `carried` are the columns that are no features and were not dropped, `everything` all of DATA, `colours` the columns
    that colour the pictures, by name, `told` what is said of those columns that are known ("erased", "known"), and
    `row_labels` the known labels of the rows that are drawn, as `IMAPCE.transform` takes them, from the columns
    `label_names`.
    """

    features: Any
    carried: pa.Table
    priors: list[Prior]
    words: list[str]
    known: NDArray[np.bool_] | None
    colours: dict[str, NDArray[Any]] = field(default_factory=dict)
    known_labels: NDArray[Any] | None = None
    everything: pa.Table = field(default_factory=lambda: pa.table({}))
    told: Mapping[str, str] = field(default_factory=dict)
    row_labels: Any = None
    label_names: tuple[str, ...] = ()
    # Of a table that stays on disk: all of it, and the rows that stand for it in pictures, of which `colours` are.
    on_disk: Scan | None = None
    drawn: pa.Table | None = None

    @property
    def labels(self) -> NDArray[Any] | None:
        """The first of the columns that colour the pictures, by which structure is scored."""
        return next(iter(self.colours.values()), None)


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


def prepare(request: Request, *, from_disk: bool = False) -> Prepared:
    """Read the file of a request and take apart features, labels and what is known.

    `from_disk` says that the command can do without the rows in memory, where they are too many.

    >>> prepare(Request("penguins.csv", labels=("species",))).carried.column_names   # doctest: +SKIP
    ['species']
    """
    table = scanned(request.data, request.reading)
    if table is None:
        contents = file_contents(request.data, request.reading)
        return of_table(request, contents.table, decimal=contents.decimal)
    if not from_disk:
        raise InvalidValueError(
            f"DATA must fit in memory for this command, and {Path(request.data).name!r} is larger than half of it: "
            "take a sample of its rows, or use embed."
        )
    return on_disk(request, table)


def of_table(request: Request, data: Any, *, about: pa.Table | None = None, decimal: str | None = None) -> Prepared:
    """What was asked of a table that was read; `about` holds columns that are known, of all rows where `data` has some,
    which then lies on disk and is taken as it is typed. `decimal` is the decimal sign of the file.

    >>> of_table(Request("rows.csv", drop=("y",)), pa.table({"x": [1.0, 2.0], "y": [1, 2]})).features.column_names
    ['x']
    """
    # The features of an AnnData are its variables; what is told of its rows is a table beside them.
    matrix = data if isinstance(data, NamedMatrix) else None
    data = data if matrix is None else matrix.about_rows
    if not is_table(data):
        return _prepared_array(data, request)
    names = column_names(data, "DATA")
    variables = names if matrix is None else list(matrix.names)
    cells = ReadCells(data) if about is not None else read_cells(data, decimal=decimal)
    # Dates that are no features are carried as they were written.
    data = keeping_dates(cells, data)
    about = data if about is None else about
    known = [_column_and_value(text, names) for text in request.known]
    known_columns = list(dict.fromkeys(column for column, _ in known))
    classes = () if request.known_labels is None else (request.known_labels,)
    for option, asked in {
        "--known": known_columns,
        "--labels": request.labels,
        "--known-label": request.known_label,
        "--known-labels": classes,
        "--drop": request.drop,
        "--columns": request.columns,
        **request.columns_by_option,
    }.items():
        for column in asked:
            require_column(option, column, variables if option in OF_FEATURES else names)
    # A column that is known and a feature may colour the pictures as well.
    colours = [name for name in request.labels if name not in (*request.attributes, *request.erase)]
    carried = list(dict.fromkeys([*colours, *classes, *request.known_label, *known_columns]))
    removed = {*(carried if matrix is None else ()), *request.drop}
    for option, asked in {**request.columns_by_option, "--columns": request.columns}.items():
        if lost := [column for column in asked if column in removed]:
            raise InvalidValueError(
                f"{option} must name columns that are features, and {listing(map(repr, lost))} is a label, known or "
                "dropped: name it in one option only."
            )
    features: Any
    if matrix is None:
        features, left_out = _features(cells, [name for name in names if name not in removed], request)
    else:
        features, left_out = _variables(matrix, request), [name for name in names if name not in carried]
    carried += [name for name in names if name in left_out]
    priors, words = _column_and_sample_priors(request.columns_by_option, request)
    for column in request.known_label:
        labels = plain_columns(about, [column])
        priors.append(Labels(labels))
        missing = labels.column(0).null_count
        without = f", which {missing:,} rows lack" if missing else ""
        words.append(f"the label {column} is known{without}")
    _tell_stand_ins(features, {*request.attributes, *request.erase}, priors)
    mask: NDArray[np.bool_] | None = None
    for column in known_columns:
        values = [value for name, value in known if name == column]
        rows = np.logical_or.reduce([select(about, column, value) for value in values])
        priors.append(Subset(rows))
        verb = "is" if rows.sum() == 1 else "are"
        told = f"{rows.sum():,} of {counted(len(rows), 'row')} {verb} known"
        words.append(f"{told}, with {column} = {' or '.join(values)}")
        mask = rows if mask is None else mask | rows
    answers = {
        name: plain_columns(data, [name]).column(0).to_numpy() for name in dict.fromkeys((*request.labels, *classes))
    }
    return Prepared(
        features=features,
        carried=plain_columns(data, carried),
        everything=plain_columns(data, names),
        priors=priors,
        words=words,
        known=mask,
        colours={name: answers[name] for name in request.labels},
        told=dict.fromkeys((*request.attributes, *request.known_label, *known_columns), "known")
        | dict.fromkeys(request.erase, "erased"),
        row_labels=labels_to_place(data, request.known_label),
        label_names=request.known_label,
        known_labels=None if request.known_labels is None else answers[request.known_labels],
    )


def on_disk(request: Request, table: Scan) -> Prepared:
    """What was asked of a table that stays on disk: features and colours as some rows tell, what is known of all."""
    if request.dates == Dates.as_numbers:
        raise InvalidValueError(
            f"--dates as-numbers is for tables that are read whole, and {Path(request.data).name!r} is larger than "
            "half of the memory: write the dates as numbers first."
        )
    if request.transform is not None:
        raise InvalidValueError(
            f"--log and --rank are for tables that are read whole, and {Path(request.data).name!r} is larger than half "
            "of the memory: write the logarithm as a column of its own first."
        )
    drawn, names = table.sample(DRAWN_ROWS), list(table.columns)
    told = [*(_column_and_value(text, names)[0] for text in request.known), *request.known_label]
    prepared = of_table(request, drawn, about=whole_columns(table, [name for name in names if name in told]))
    for sentence in read_cells(drawn).notes.values():
        note(f"{sentence.removesuffix('.')}; a table that stays on disk is taken as it is typed: write it as numbers.")
    features = table.selected(prepared.features.column_names)
    return replace(prepared, features=features, on_disk=table, drawn=drawn, carried=no_columns(), known=None)


def _features(cells: ReadCells, names: list[str], request: Request) -> tuple[Table, list[str]]:
    """The columns that are features, dates as numbers if asked for, and the names of those left out, which are told."""
    asked = {*request.columns, *request.attributes, *request.erase}
    chosen = [name for name in names if name in asked] if request.columns else names
    features = looked_over(choose_features(cells, chosen, keep=asked, dates=request.dates), request.transform)
    for sentence in features.notes:
        note(in_own_words(sentence))
    return features, [name for name in names if name not in features.column_names]


def _tell_stand_ins(features: Any, names: Collection[str], priors: Sequence[Prior]) -> None:
    """A note on features that tell what is known: columns by name, or labels of the rows."""
    if isinstance(features, Table):
        read = [prior.read_labels(None) for prior in priors]
        # Of a table on disk the labels are those of all rows, and the features a sample.
        labels = [one.column for one in read if one is not None and len(one) == len(features)]
        for sentence in known_notes(features, names, labels):
            note(in_own_words(sentence))


def _variables(matrix: NamedMatrix, request: Request) -> NamedMatrix:
    """The variables of an AnnData that are features: all of them, or those asked for."""
    asked = {*request.columns, *request.attributes, *request.erase}
    chosen = [name for name in matrix.names if name not in request.drop and (not request.columns or name in asked)]
    if not chosen:
        raise InvalidValueError("DATA must keep at least one feature, and every variable is dropped: drop fewer.")
    return matrix.select(chosen)


def read_rows(path: str, reading: Mapping[str, Any], argument: str = "DATA") -> Any:
    """The table of a file, and notes on how it was read where that is not the usual way."""
    return file_contents(path, reading, argument).table


def file_contents(path: str, reading: Mapping[str, Any], argument: str = "DATA") -> Contents:
    """What a file holds, and notes on how it was read where that is not the usual way."""
    with warnings_in_one_line(), named(argument):
        contents = read_contents(path, given=reading, keep_words=True)
    for sentence in file_notes(contents, path):
        note(in_own_words(sentence))
    return contents


def labels_to_place(data: pa.Table, names: Sequence[str]) -> Any:
    """Known labels of rows as `IMAPCE.transform` takes them: a column, a list of several, None where none are known.

    >>> labels_to_place(pa.table({"sex": ["f", None]}), ["sex"]).to_pylist()
    ['f', None]
    """
    columns = [plain_columns(data, [name]).column(0) for name in names]
    return columns if len(columns) > 1 else next(iter(columns), None)


def _prepared_array(data: Any, request: Request) -> Prepared:
    for option, asked in (
        ("--known", request.known),
        ("--labels", request.labels),
        ("--known-label", request.known_label),
        ("--known-labels", request.known_labels),
        ("--drop", request.drop),
        ("--columns", request.columns),
        ("--log", request.log),
        ("--rank", request.rank),
    ):
        if asked:
            raise InvalidValueError(
                f"{option} needs column names, and {Path(request.data).name!r} has none: write it as .csv or .parquet."
            )
    positions: dict[str, list[int]] = {}
    for option, texts in request.columns_by_option.items():
        if strangers := [text for text in texts if not text.isdecimal()]:
            raise InvalidValueError(
                f"{option} must be positions from 0, since {Path(request.data).name!r} has no column names; "
                f"got {strangers[0]!r}."
            )
        positions[option] = [int(text) for text in texts]
    priors, words = _column_and_sample_priors(positions, request)
    return Prepared(data, no_columns(), priors, words, None)


def _column_and_sample_priors(
    columns: Mapping[str, Sequence[str | int]], request: Request
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
            words.append(f"{counted(len(names), 'column is', 'columns are')} {state}: {listing(map(str, names), 10)}")
    if (background := request.background) is not None:
        rows = scanned(background, {}, "--background")
        if rows is None:
            rows = read_rows(background, request.reading if is_text_file(background) else {}, "--background")
        if is_table(rows) and request.dates == Dates.as_numbers:
            rows = dates_as_days(rows)[0]
        priors.append(Samples(rows))
        told = counted(rows.shape[0], "background row is", "background rows are")
        words.append(f"{told} known: {Path(background).name}")
    return priors, words


def _column_and_value(text: str, names: list[str]) -> tuple[str, str]:
    """COLUMN=VALUE taken apart at the first = that leaves the name of a column, since names may hold = too."""
    splits = [(text[:place], text[place + 1 :]) for place, letter in enumerate(text) if letter == "="]
    if not splits:
        raise InvalidValueError(
            f"--known must be COLUMN=VALUE, got {text!r}: write for example --known species=Adelie."
        )
    return next((split for split in splits if split[0] in names), splits[0])


def require_column(option: str, column: str, names: Sequence[str]) -> None:
    """Refuse a name that is none of the columns.

    >>> require_column("--labels", "kind", ["kind", "size"])
    """
    if column not in names:
        raise InvalidValueError(f"{option} must name a column of DATA, got {column!r}: {close_matches(column, names)}")


def plain_columns(data: pa.Table, names: list[str]) -> pa.Table:
    """These columns with dictionaries written out and lists and bytes as text, which not every file format can hold."""
    columns = {}
    for name in names:
        values = data.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_nested(values.type) or pa.types.is_binary(values.type) or pa.types.is_duration(values.type):
            texts = [None if value is None else json.dumps(value, default=str) for value in values.to_pylist()]
            values = pa.chunked_array([pa.array(texts, pa.string())])
        columns[name] = values
    return pa.table(columns)


def no_columns() -> pa.Table:
    """A table that carries nothing along."""
    return pa.table({})

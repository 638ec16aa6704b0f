"""Tables too large to be read whole: noticed by their size, fitted where they lie, drawn from a sample of their rows.

scanned("huge.parquet", {})      # a Scan; None where the file fits in memory
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from imapce.cli.messages import named, note
from imapce.common.words import size_in_words
from imapce.errors import InvalidValueError
from imapce.tables.files import STREAM

if TYPE_CHECKING:
    from imapce.estimators.imapce import IMAPCE
    from imapce.tables.scan import Scan

# Rows that stand for all of them in pictures, and that tell which columns are features.
DRAWN_ROWS = 20_000
# Formats that are read whole and unpack to more than they are.
WHOLE_ONLY = (".xlsx", ".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".zst", ".zip")
# A fit at one given alpha and mu takes about so many rounds; those of few columns need one pass for all.
ROUNDS, FEW_COLUMNS = 100, 32
# Where Linux tells the limit of a container, in its second and its first way.
LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int | None:
    """The memory that this process may use, None where the system does not tell.

    >>> memory_bytes() is None or memory_bytes() > 1 << 20
    True
    """
    limits = []
    # Windows has no sysconf.
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in LIMIT_FILES:
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            # No such file, or "max" in it: no limit.
            continue
    return min(limits, default=None)


def scanned(path: str, reading: Mapping[str, Any], argument: str = "DATA") -> Scan | None:
    """The table as a scan where its files are larger than half of the memory; None where it can be read whole."""
    limit, size = memory_bytes(), _size(path)
    if limit is None or size <= limit // 2:
        return None
    name, suffix = Path(path).name, Path(path).suffix.lower()
    if suffix in WHOLE_ONLY:
        raise InvalidValueError(
            f"{argument} must be .parquet, .arrow or plain .csv where it is larger than half of the memory, got "
            f"{name!r} of {size_in_words(size)}: convert it first."
        )
    from imapce.tables.scan import FORMATS, scan

    if suffix not in FORMATS and not Path(path).is_dir():
        # An .npy file is mapped and not read, and of the others nothing else is known.
        return None
    if given := [option for option, value in reading.items() if value is not None]:
        raise InvalidValueError(
            f"--{given[0]} is for files that are read whole, and {name!r} is larger than half of the memory: convert "
            "it to .parquet first."
        )
    with named(argument):
        return scan(path)


def _size(path: str) -> int:
    """Bytes of a file, of those in a folder or of those that a pattern finds."""
    place = Path(path)
    if path == STREAM:
        return 0
    files = list(place.iterdir()) if place.is_dir() else [place] if place.exists() else map(Path, glob.glob(path))
    return sum(os.path.getsize(file) for file in files if file.is_file())


def whole_columns(table: Scan, columns: list[str]) -> pa.Table:
    """Some columns of all rows, texts as numbers into a list of them; one pass."""
    if not columns:
        return pa.table({})
    rows = pa.Table.from_batches([_short(batch) for batch in table.selected(columns).batches()])
    return rows.unify_dictionaries().combine_chunks()


def _short(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def tell_of_passes(table: Scan, model: IMAPCE | None) -> None:
    """Say that a table stays on disk, and what a fit of `model`, or one look at it, will read."""
    size = size_in_words(table.n_bytes)
    if model is None:
        told = f"1 pass of {size}"
    else:
        automatic = "auto" in (model.alpha, model.mu) or len(table.columns) <= FEW_COLUMNS
        told = str(table.estimate(evaluations=1 if automatic else ROUNDS))
    note(f"{Path(table.files[0]).name!r} is larger than half of the memory: read from disk, {told}.")


def require_table_file(output: str | None, **others: str | None) -> None:
    """Refuse outputs made of rows that would all have to be in memory; `others` are the options of such."""
    if output is not None and (output == STREAM or Path(output).suffix.lower() in (".npy", ".h5ad")):
        raise InvalidValueError(
            f"--output must be .parquet, .arrow, .csv or .tsv where DATA is larger than half of the memory, got "
            f"{output!r}."
        )
    if asked := [name for name, value in others.items() if value is not None]:
        raise InvalidValueError(
            f"--{asked[0]} is drawn from rows in memory, and DATA is larger than half of it: leave --{asked[0]} out, "
            "or run it on a sample of the rows."
        )


def write_view_of_scan(
    model: IMAPCE,
    table: Scan,
    drawn: pa.Table,
    *,
    output: str | None,
    plot: str | None,
    color: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    label_names: Sequence[str] = (),
) -> dict[str, str]:
    """Write the table and the plot that were asked for and tell where; the plot shows the drawn rows.

    `label_names` are the columns with the labels that the model was fitted given, `columns` those that go along, all of
    them by default.
    """
    # That module reads what this one scans.
    from imapce.cli.request import labels_to_place

    written: dict[str, str] = {}
    if output is not None:
        with named("--output"):
            labels = labels_to_place(whole_columns(table, list(label_names)), label_names)
            model.transform_to(output, table, columns=columns, labels=labels)
        written["table"] = output
    if plot is not None:
        from imapce.plotting import plot_embedding, save_figure
        from imapce.plotting.scatter import first_axes, words_of_view

        features = drawn.select(list(model.input_columns or drawn.column_names))
        view = model.transform(features, labels_to_place(drawn, label_names))
        if view.shape[1] > first_axes(view).shape[1]:
            note(f"the plot shows the first two of the {view.shape[1]} axes.")
        if len(drawn) < len(table):
            note(f"the plot shows {len(drawn):,} of the {len(table):,} rows.")
        with named("--plot"):
            title = f"{len(drawn):,} of {len(table):,} rows" if len(drawn) < len(table) else None
            words = words_of_view(model, title)
            save_figure(plot_embedding(first_axes(view), color=dict(color) or None, **words), plot)
        written["plot"] = plot
    return written
